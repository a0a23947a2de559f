"""Collections by name: folders, samples and data sets of ir-datasets; and files or collections where either may be named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..core import Doc, InputError, ParameterError, Qrels, Topics
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.decoding import reading_of
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


def corpus_of(name: str, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None) -> Iterable[Doc]:
    """The documents of a file, a folder or a collection that is `named`; arguments and errors are those of `read_corpus`."""
    collection = named(name)
    if collection and fields:
        raise ParameterError(f"{name}: its documents have their id, title and text; they are chosen of files")
    return collection.corpus if collection else read_corpus(name, format, fields)


def topics_of(name: str, format: str | None = None, split: str | None = None) -> Topics:
    """The topics of a file, a folder or a collection that is `named`; arguments and errors are those of `read_topics`."""
    collection = named(name)
    if collection and reading_of().fields:
        raise ParameterError(f"{name}: its topics have their id and text; they are chosen of files")
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
    of_topics, of_qrels = splits_of((topics, qrels), split)
    return (
        None if topics is None else topics_of(topics, split=of_topics),
        None if qrels is None else qrels_of(qrels, split=of_qrels),
    )


def splits_of(sources: Sequence[object], split: str | None) -> list[str | None]:
    """The split that is meant of each source: None for what is no name, and for a file beside a folder or collection.

    Args:
        sources: Names of files, folders and collections, or values.
        split: The split of the folders and collections among them.

    Raises:
        ParameterError: A split is meant, and nothing is named.
    """
    names = [source for source in sources if isinstance(source, str)]
    if split is not None and not names:
        raise ParameterError(f"the split '{split}' is one of a folder or collection that is named, and here are values")
    divided = [name for name in names if named(name) or Path(name).is_dir()] or names
    return [split if isinstance(source, str) and source in divided else None for source in sources]
