"""Comparison of systems, a cache of their runs, and a runner of experiments."""

from .collection import Collection
from .experiment import Experiment
from .metadata import metadata_of
from .suite import Suite
from .systems import compare

__all__ = ["Collection", "Experiment", "Suite", "compare", "metadata_of"]
