"""Turns of conversations, rewritten so that each can be understood by itself."""

from .canardt5 import CanardT5
from .conversation import Conversation
from .hqe import HQE
from .scores import RewritingScores, rewriting_scores
from .turns import Automatic, LastTurns, Manual, Raw
from .weighted import WeightedTurns

__all__ = [
    "HQE",
    "Automatic",
    "CanardT5",
    "Conversation",
    "LastTurns",
    "Manual",
    "Raw",
    "RewritingScores",
    "WeightedTurns",
    "rewriting_scores",
]
