"""The index: build, open, read, change."""

from .index import Index
from .remote import copy_index
from .state import State
from .suggestions import Suggestions
from .writer import Change

__all__ = ["Change", "Index", "State", "Suggestions", "copy_index"]
