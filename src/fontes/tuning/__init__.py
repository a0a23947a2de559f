"""Parameter tuning on judged topics, and fusion weights learned from judgments."""

from .fitted import Candidate, Fitted
from .fitting import fit
from .result import Trial, TunedFold, Tuning
from .search import tune
from .weights import LearnedWeights, WeightsFold, fit_weights

__all__ = ["Candidate", "Fitted", "LearnedWeights", "Trial", "TunedFold", "Tuning", "WeightsFold", "fit", "fit_weights", "tune"]
