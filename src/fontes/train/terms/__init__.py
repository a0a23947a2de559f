"""Term classifiers for QuReTeC, trained on conversations with manual rewrites."""

from .settings import TermSettings
from .training import TermTraining, train_terms

__all__ = ["TermSettings", "TermTraining", "train_terms"]
