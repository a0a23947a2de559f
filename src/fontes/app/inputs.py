"""What commands are given: files, "-", or test collections by name (irds:beir/scifact/test, through ir-datasets)."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import Doc, Qrels, Topics
from ..data import dataset, read_corpus, read_qrels, read_topics

PREFIX = "irds:"


def corpus_of(given: str, format: str | None = None) -> Iterable[Doc]:
    """The documents of a file, a folder or a test collection."""
    return dataset(given[len(PREFIX) :]).corpus if given.startswith(PREFIX) else read_corpus(given, format)


def topics_of(given: str, format: str | None = None) -> Topics:
    """The topics of a file or a test collection."""
    return dataset(given[len(PREFIX) :]).topics() if given.startswith(PREFIX) else read_topics(given, format)


def qrels_of(given: str) -> Qrels:
    """The judgments of a file or a test collection."""
    return dataset(given[len(PREFIX) :]).qrels() if given.startswith(PREFIX) else read_qrels(given)
