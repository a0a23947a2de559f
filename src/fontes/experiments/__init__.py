"""Comparison of systems, the cache of their runs, and the runner of experiments."""

from .collection import Collection
from .experiment import Experiment
from .metadata import metadata_of
from .systems import compare

__all__ = ["Collection", "Experiment", "compare", "metadata_of"]
