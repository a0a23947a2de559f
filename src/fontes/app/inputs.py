"""What commands are given: files, "-", or collections by name.

A name is irds:beir/scifact/test, through ir-datasets, or sample:harbour/causal, which comes with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core import Doc, InputError, Qrels, Topics
from ..datasets import dataset
from ..datasets.datasets import Dataset
from ..datasets.samples import sample
from ..formats import read_corpus, read_qrels, read_topics

NAMED: dict[str, Callable[[str], Dataset]] = {"irds:": dataset, "sample:": sample}


def corpus_of(given: str, format: str | None = None) -> Iterable[Doc]:
    """The documents of a file, a folder or a collection by name."""
    named = _named(given)
    return named.corpus if named else read_corpus(given, format)


def collection_of(given: str) -> object:
    """A collection by name, or the path as it is."""
    return _named(given) or given


def topics_of(given: str, format: str | None = None) -> Topics:
    """The topics of a file or a collection by name."""
    named = _named(given)
    return named.topics() if named else read_topics(given, format)


def qrels_of(given: str) -> Qrels:
    """The judgments of a file or a collection by name."""
    named = _named(given)
    return named.qrels() if named else read_qrels(given)


def _named(given: str) -> Dataset | None:
    if not given:
        raise InputError("the name of a file or collection is empty")
    return next((find(given[len(prefix) :]) for prefix, find in NAMED.items() if given.startswith(prefix)), None)
