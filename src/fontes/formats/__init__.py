"""The field's formats: corpora, topics, qrels and runs, read and written."""

from .canard import read_canard
from .corpora import Corpus, docs, read_corpus, write_corpus
from .qrels import read_qrels, write_qrels
from .runs import read_run, write_run
from .topics import read_topics, write_topics

__all__ = [
    "Corpus",
    "docs",
    "read_canard",
    "read_corpus",
    "read_qrels",
    "read_run",
    "read_topics",
    "write_corpus",
    "write_qrels",
    "write_run",
    "write_topics",
]
