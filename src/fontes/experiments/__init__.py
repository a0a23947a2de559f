"""Systems side by side: the runs they make, kept on disk, and the runner of experiments, for files and recipes."""

from .collection import Collection
from .compare import compare
from .experiment import Experiment

__all__ = ["Collection", "Experiment", "compare"]
