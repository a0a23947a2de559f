"""Hints that a plain text was meant for the query language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..core.part import Part, walk

if TYPE_CHECKING:
    from ..index.state import State

RARE_OPERATORS = frozenset({"+", "-", "AND", "OR", "NOT", "field", "phrase", "*", "~"})  # seldom in plain texts
MAX_WORDS = 16  # longer texts are prose, with quotations and dashes
CHARACTERS = re.compile(r'["+*~:“„-]|!\w|AND|OR|NOT|&&|\|\|')


def has_operators(text: str, state: State) -> bool:
    """Whether a text is short and has operators of the query language that plain texts seldom have.

    Args:
        text: Any text.
        state: The index that is searched.
    """
    if not CHARACTERS.search(text) or len(text.split()) > MAX_WORDS or text.isupper():
        return False
    from .syntax import Names, read  # imported here because this takes longer than many searches

    return bool(read(text, Names.of(state)).operators & RARE_OPERATORS)


def reads_language(stage: Part) -> bool:
    """Whether a pipeline has the stage `query`."""
    return any(part.name == "query" for part in walk(stage))
