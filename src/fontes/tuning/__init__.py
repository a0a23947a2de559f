"""Parameter tuning on judged topics, and fusion weights learned from judgments."""

from .result import Trial, TunedFold, Tuning
from .search import tune
from .weights import LearnedWeights, WeightsFold, fit_weights

__all__ = ["LearnedWeights", "Trial", "TunedFold", "Tuning", "WeightsFold", "fit_weights", "tune"]
