"""Completions and corrections of words, and the words of an index before stemming."""

from .suggestions import Suggestions, suggest

__all__ = ["Suggestions", "suggest"]
