"""Training: splits without leakage, and term classifiers for conversations."""

from .causality import CausalityMeasured, measure_causality, train_causality
from .duplicates import Duplicate
from .splits import Leakage, Part, Split, leakage, split
from .terms import TermProgress, TermSettings, TermTraining, train_terms

__all__ = [
    "CausalityMeasured",
    "Duplicate",
    "Leakage",
    "Part",
    "Split",
    "TermProgress",
    "TermSettings",
    "TermTraining",
    "leakage",
    "measure_causality",
    "split",
    "train_causality",
    "train_terms",
]
