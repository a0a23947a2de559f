"""Dense retrieval: vectors and their search."""

from .dense import Dense

__all__ = ["Dense"]
