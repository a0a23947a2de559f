"""Collections by name: folders, samples and data sets of ir-datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..core import Doc, InputError, ParameterError, Qrels, Topics
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.decoding import reading_of
from .base import BeirFolder, Dataset, IrDataset
from .samples import SAMPLES, sample


def dataset(name: str | Path) -> Dataset:
    """Return the test collection of this name.

    Args:
        name: A folder in BEIR's form (corpus.jsonl, queries.jsonl, qrels/<split>.tsv); else a sample ("harbour",
            "harbour/causal", …; see `fontes.datasets.samples`); else a name of ir-datasets, such as "beir/scifact" or
            "beir/scifact/test", which it may download.

    Raises:
        InputError: There is none.
        MissingExtraError: ir-datasets is needed and not installed.
    """
    if Path(name).is_dir():
        return BeirFolder(Path(name))
    return SAMPLES[str(name)] if name in SAMPLES else IrDataset(str(name))


PREFIXES: dict[str, Callable[[str], Dataset]] = {"irds:": dataset, "sample:": sample}


def named(name: str) -> Dataset | None:
    """Return the collection that a prefix names, or None for a path.

    Args:
        name: "irds:beir/scifact/test", of ir-datasets, or "sample:harbour/causal", of the package.

    Raises:
        InputError: The collection does not exist, or its name is empty.
        MissingExtraError: ir-datasets is needed and not installed.
    """
    if not name:
        raise InputError("the name of a file or collection is empty")
    return next((find(name.removeprefix(prefix)) for prefix, find in PREFIXES.items() if name.startswith(prefix)), None)


def corpus_of(name: str, format: str | None = None, fields: Mapping[str, str | Sequence[str]] | None = None) -> Iterable[Doc]:
    """Documents of a file, folder or collection that is `named`; arguments and errors as for `read_corpus`."""
    collection = named(name)
    if collection and fields:
        raise ParameterError(f"{name}: its documents have their id, title and text; they are chosen of files")
    return collection.corpus if collection else read_corpus(name, format, fields)


def topics_of(name: str, format: str | None = None, split: str | None = None) -> Topics:
    """Topics of a file, folder or collection that is `named`; arguments and errors as for `read_topics`."""
    collection = named(name)
    if collection and reading_of().fields:
        raise ParameterError(f"{name}: its topics have their id and text; they are chosen of files")
    return collection.topics(split) if collection else read_topics(name, format, split)


def qrels_of(name: str, format: str | None = None, split: str | None = None) -> Qrels:
    """Judgments of a file, folder or collection that is `named`; arguments and errors as for `read_qrels`."""
    collection = named(name)
    return collection.qrels(split) if collection else read_qrels(name, format, split)


def judged_topics(topics: str | None, qrels: str | None, split: str | None) -> tuple[Topics | None, Qrels | None]:
    """Topics and judgments as from `topics_of` and `qrels_of`, of one split.

    Args:
        topics: Name of a file, folder or collection, or None.
        qrels: Another, or the same, or None.
        split: Split of the folder or collection; does not apply to files.

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
    """Split that applies to each source: None for values, and for a file beside a folder or collection.

    Args:
        sources: Names of files, folders and collections, or values.
        split: Split of the folders and collections among them.

    Raises:
        ParameterError: There is a split, and no name.
    """
    names = [source for source in sources if isinstance(source, str)]
    if split is not None and not names:
        raise ParameterError(f"the split '{split}' is one of a folder or collection that is named, and here are values")
    divided = [name for name in names if named(name) or Path(name).is_dir()] or names
    return [split if isinstance(source, str) and source in divided else None for source in sources]
