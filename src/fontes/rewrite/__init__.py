"""Turns of conversations, rewritten so that each can be understood by itself."""

from .turns import Automatic, LastTurns, Manual, Raw

__all__ = ["Automatic", "LastTurns", "Manual", "Raw"]
