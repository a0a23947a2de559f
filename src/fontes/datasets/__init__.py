"""Test collections by name, and sample collections that the package contains."""

from . import samples
from .base import Dataset
from .names import corpus_of, dataset, judged_topics, named, splits_of
from .python_docs import known_item, python_docs

__all__ = [
    "Dataset",
    "corpus_of",
    "dataset",
    "judged_topics",
    "known_item",
    "named",
    "python_docs",
    "samples",
    "splits_of",
]
