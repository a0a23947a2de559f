"""Systems side by side: the runs they make, kept on disk, and the runner of experiments, for files and recipes."""

from .collection import Collection
from .experiment import Experiment
from .systems import compare

__all__ = ["Collection", "Experiment", "compare"]
