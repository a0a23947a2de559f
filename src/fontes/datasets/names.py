"""Collections by name: folders, samples of the package, and data sets of ir-datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..core import Doc, InputError, ParameterError, Qrels, Topics
from ..core.registry import readers
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.decoding import reading_of
from .base import BeirFolder, Dataset, IrDataset
from .samples import SAMPLES, sample


def dataset(name: str | Path) -> Dataset:
    """Return the test collection of this name.

    Args:
        name: A folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/<split>.tsv); or a sample ("harbour",
            "harbour/causal", …; see `fontes.datasets.samples`); or a name of ir-datasets, such as "beir/scifact" or
            "beir/scifact/test", which ir-datasets may download.

    Raises:
        InputError: The collection does not exist, or its name is empty.
        MissingExtraError: ir-datasets is needed and not installed.
    """
    if not str(name):
        raise InputError("the name of a collection is empty")
    if Path(name).is_dir():
        return BeirFolder(Path(name))
    return SAMPLES[str(name)] if name in SAMPLES else IrDataset(str(name))


PREFIXES: dict[str, Callable[[str], Dataset]] = {"irds:": dataset, "sample:": sample}


def named(name: str) -> Dataset | None:
    """Return the collection that a prefix names, or None for a path.

    Args:
        name: A path, "irds:" and a name of ir-datasets ("irds:beir/scifact/test"), or "sample:" and a sample of the package
            ("sample:harbour/causal").

    Raises:
        InputError: The collection does not exist, or its name is empty.
        MissingExtraError: ir-datasets is needed and not installed.
    """
    if not name:
        raise InputError("the name of a file or collection is empty")
    for prefix, collection_of in PREFIXES.items():
        if name.startswith(prefix):
            return collection_of(name.removeprefix(prefix))
    return None


def corpus_of(name: str, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None) -> Iterable[Doc]:
    """Return the documents of a file, folder or `named` collection; arguments and errors as for `read_corpus`."""
    collection = _named_without_format(name, format)
    if collection and fields:
        raise ParameterError(f"{name}: fields are chosen for files; documents of a collection have an id, title and text")
    return collection.corpus if collection else read_corpus(name, format, fields)


def _topics_of(name: str, split: str | None = None, format: str | None = None) -> Topics:
    collection = _named_without_format(name, format)
    if collection and reading_of().fields:
        raise ParameterError(f"{name}: fields are chosen for files; topics of a collection have an id and text")
    return collection.topics(split) if collection else read_topics(name, format, split)


def _qrels_of(name: str, split: str | None = None, groups: bool | None = None, format: str | None = None) -> Qrels:
    collection = _named_without_format(name, format)
    return collection.qrels(split) if collection else read_qrels(name, format, split, groups=groups)


readers.update(topics=_topics_of, qrels=_qrels_of)


def _named_without_format(name: str, format: str | None) -> Dataset | None:
    """As `named`; ParameterError if a collection has a format."""
    collection = named(name)
    if collection and format is not None:
        raise ParameterError(f"{name}: format='{format}' is of a file, not of a collection")
    return collection


def judged_topics(
    topics: object, qrels: object, split: str | None = None, groups: bool | None = None
) -> tuple[Topics | None, Qrels | None]:
    """Return topics and judgments of one split.

    Args:
        topics: Anything that `Topics.read` accepts; None returns no topics.
        qrels: Anything that `Qrels.of` accepts; None returns no judgments.
        split: Split of the folders or collections; it does not apply to a file beside one of these.
        groups: Whether the second column of TREC judgments names evidence sets.

    Raises:
        InputError: Topics or judgments cannot be read.
        ParameterError: The split does not exist, or nothing is named that has splits.
    """
    topics_split, qrels_split = splits_of((topics, qrels), split)
    return (
        None if topics is None else Topics.read(topics, topics_split),
        None if qrels is None else Qrels.of(qrels, qrels_split, groups),
    )


def splits_of(sources: Sequence[object], split: str | None) -> list[str | None]:
    """Return the split that applies to each source: None for values, and for a file beside a folder or collection.

    Args:
        sources: Names of files, folders and collections; or values, such as `Topics`.
        split: Split of the folders and collections among the sources.

    Raises:
        ParameterError: A split is given, but all sources are values.
    """
    names = [source for source in sources if isinstance(source, str)]
    if split is not None and not names:
        raise ParameterError(f"the split '{split}' needs the name of a folder or collection, not values")
    # A split applies to folders and collections; without any, the readers of the files raise the error.
    names_with_splits = [name for name in names if named(name) or Path(name).is_dir()] or names
    return [split if isinstance(source, str) and source in names_with_splits else None for source in sources]
