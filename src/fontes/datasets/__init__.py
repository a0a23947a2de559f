"""Test collections by name, and the samples that come along."""

from . import samples
from .datasets import Dataset, dataset
from .python_docs import known_item, python_docs

__all__ = ["Dataset", "dataset", "known_item", "python_docs", "samples"]
