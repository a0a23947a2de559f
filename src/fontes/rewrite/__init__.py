"""Turns of conversations, rewritten so that each can be understood by itself."""

from .canardt5 import CanardT5
from .hqe import HQE
from .scores import RewritingScores, rewriting_scores
from .turns import Automatic, LastTurns, Manual, Raw

__all__ = ["HQE", "Automatic", "CanardT5", "LastTurns", "Manual", "Raw", "RewritingScores", "rewriting_scores"]
