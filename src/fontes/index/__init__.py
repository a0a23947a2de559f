"""The index: build, open, read, change."""

from typing import TYPE_CHECKING

from ..core.renamed import renamed
from .index import Index
from .remote import copy_index
from .state import State
from .suggestions import Suggestions
from .writer import Change

__all__ = ["Change", "Index", "State", "Suggestions", "copy_index"]

if not TYPE_CHECKING:
    __getattr__ = renamed(__name__, {"Reader": "State"})
