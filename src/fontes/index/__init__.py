"""The index: build, open, read, change."""

from .index import Index
from .reader import Reader
from .remote import copy_index
from .writer import Change

__all__ = ["Change", "Index", "Reader", "copy_index"]
