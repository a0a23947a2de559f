"""Collections by name: folders, samples and data sets of ir-datasets; and files or collections where either may be named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..core import Doc, InputError, Qrels, Topics
from ..formats import read_corpus, read_qrels, read_topics
from .base import Dataset
from .beir import BeirFolder
from .irds import IrDataset
from .samples import SAMPLES, sample


def dataset(name: str | Path) -> Dataset:
    """The test collection of this name.

    Args:
        name: A folder in BEIR's form (corpus.jsonl, queries.jsonl, qrels/<split>.tsv); or else a collection that comes with the
            package ("harbour", "harbour/causal", …; see `fontes.datasets.samples`); or else what ir-datasets knows by this
            name, such as "beir/scifact" or "beir/scifact/test", which it may download.

    Raises:
        InputError: Where there is none.
        MissingExtraError: Where ir-datasets is needed and not installed.
    """
    if Path(name).is_dir():
        return BeirFolder(Path(name))
    return SAMPLES[str(name)] if name in SAMPLES else IrDataset(str(name))


PREFIXES: dict[str, Callable[[str], Dataset]] = {"irds:": dataset, "sample:": sample}


def named(name: str) -> Dataset | None:
    """The collection that is named by a prefix, or None for what must be a path.

    Args:
        name: "irds:beir/scifact/test", through ir-datasets, or "sample:harbour/causal", which comes with the package.

    Raises:
        InputError: For a collection that does not exist, and for an empty name.
        MissingExtraError: Where ir-datasets is needed and not installed.
    """
    if not name:
        raise InputError("the name of a file or collection is empty")
    return next((find(name.removeprefix(prefix)) for prefix, find in PREFIXES.items() if name.startswith(prefix)), None)


def corpus_of(name: str, format: str | None = None) -> Iterable[Doc]:
    """The documents of a file, a folder or a collection that is `named`; `format` and the errors are those of `read_corpus`."""
    collection = named(name)
    return collection.corpus if collection else read_corpus(name, format)


def topics_of(name: str, format: str | None = None, split: str | None = None) -> Topics:
    """The topics of a file, a folder or a collection that is `named`; arguments and errors are those of `read_topics`."""
    collection = named(name)
    return collection.topics(split) if collection else read_topics(name, format, split)


def qrels_of(name: str, format: str | None = None, split: str | None = None) -> Qrels:
    """The judgments of a file, a folder or a collection that is `named`; arguments and errors are those of `read_qrels`."""
    collection = named(name)
    return collection.qrels(split) if collection else read_qrels(name, format, split)


def judged_topics(topics: str | None, qrels: str | None, split: str | None) -> tuple[Topics | None, Qrels | None]:
    """Topics and judgments as `topics_of` and `qrels_of` give them, with one split for those of them that have splits.

    Args:
        topics: The name of a file, a folder or a collection, or None.
        qrels: Another, or the same, or None.
        split: The split of the folder or collection; a file beside it is taken as it is.

    Raises:
        InputError: Something cannot be read.
        ParameterError: There is no such split, or neither name has splits.
    """
    names = [name for name in (topics, qrels) if name is not None]
    divided = [name for name in names if named(name) or Path(name).is_dir()] or names
    return (
        None if topics is None else topics_of(topics, split=split if topics in divided else None),
        None if qrels is None else qrels_of(qrels, split=split if qrels in divided else None),
    )
