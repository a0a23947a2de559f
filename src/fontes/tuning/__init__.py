"""Parameter tuning on judged topics, and fusion weights learned from judgments."""

from .fitted import Candidate, Fitted
from .fitting import fit
from .result import Fold, Trial, Tuning
from .search import tune
from .weights import LearnedWeights, fit_weights

__all__ = ["Candidate", "Fitted", "Fold", "LearnedWeights", "Trial", "Tuning", "fit", "fit_weights", "tune"]
