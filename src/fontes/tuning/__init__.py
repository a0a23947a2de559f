"""The parameters that do best on judged topics, and weights of fusion learned from judgments."""

from .result import Tuning
from .search import tune
from .weights import Fold, LearnedWeights, fit_weights

__all__ = ["Fold", "LearnedWeights", "Tuning", "fit_weights", "tune"]
