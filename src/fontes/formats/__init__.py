"""File formats of corpora, topics, qrels and runs, one module each."""

from .corpus import Corpus, IterableCorpus, read_corpus, with_prefix
from .format import File, Format, formats_for
from .ir_metadata import read_metadata
from .reading import read_qrels, read_run, read_topics, write, write_corpus, write_qrels, write_run, write_topics

__all__ = [
    "Corpus",
    "File",
    "Format",
    "IterableCorpus",
    "formats_for",
    "read_corpus",
    "read_metadata",
    "read_qrels",
    "read_run",
    "read_topics",
    "with_prefix",
    "write",
    "write_corpus",
    "write_qrels",
    "write_run",
    "write_topics",
]
