"""Readers and writers of the field's formats, test collections by name, and a sample collection."""

from . import samples
from .canard import read_canard
from .corpora import Corpus, docs, read_corpus, write_corpus
from .datasets import Dataset, dataset
from .duplicates import Deduplicate, Duplicates, read_duplicates
from .python_docs import known_item, python_docs
from .qrels import read_qrels, write_qrels
from .runs import read_run, write_run
from .topics import read_topics, write_topics

__all__ = [
    "Corpus",
    "Dataset",
    "Deduplicate",
    "Duplicates",
    "dataset",
    "docs",
    "known_item",
    "python_docs",
    "read_canard",
    "read_corpus",
    "read_duplicates",
    "read_qrels",
    "read_run",
    "read_topics",
    "samples",
    "write_corpus",
    "write_qrels",
    "write_run",
    "write_topics",
]
