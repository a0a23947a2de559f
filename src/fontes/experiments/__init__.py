"""Systems side by side: the runs they make, kept on disk, and experiments as files."""

from .compare import compare
from .experiment import Experiment

__all__ = ["Experiment", "compare"]
