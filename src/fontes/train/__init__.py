"""Training: splits without leakage, and term classifiers for conversations."""

from .split_duplicates import Duplicate
from .splits import Leakage, Part, Split, leakage, split
from .terms import TermProgress, TermSettings, TermTraining, train_terms

__all__ = [
    "Duplicate",
    "Leakage",
    "Part",
    "Split",
    "TermProgress",
    "TermSettings",
    "TermTraining",
    "leakage",
    "split",
    "train_terms",
]
