"""Test collections: documents, and topics and judgments for each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, MissingExtraError, Qrels, Topic, Topics
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.folder import CORPUS, beir_file, qrels_files, split_of


class Dataset(ABC):
    """A collection of documents with topics and judgments, for each split.

    Attributes:
        name: Name of the collection, for `dataset`.
    """

    name: str

    @property
    @abstractmethod
    def corpus(self) -> Iterable[Doc]:
        """The documents; can be iterated repeatedly."""

    @property
    @abstractmethod
    def splits(self) -> list[str]:
        """Names of the splits with judgments, sorted."""

    def topics(self, split: str | None = None) -> Topics:
        """Topics of a split that have judgments, in the order of the collection.

        Args:
            split: Name of the split; by default the only one.

        Raises:
            ParameterError: The split does not exist, or is missing among several.
            InputError: There are no judgments, or none for any topic.
        """
        return Topics(self._all_topics(self._split(split))).judged(self.qrels(split))

    def qrels(self, split: str | None = None) -> Qrels:
        """Judgments of a split; argument and errors as for `topics`."""
        return self._qrels(self._split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _split(self, split: str | None) -> str:
        return split_of(self.name, self.splits, split)

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"


class BeirFolder(Dataset):
    """A folder in BEIR's form; each file may be packed (.gz)."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    @property
    def corpus(self) -> Iterable[Doc]:
        return read_corpus(beir_file(self._folder, CORPUS))

    @property
    def splits(self) -> list[str]:
        return list(qrels_files(self._folder))

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(self._folder).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(self._folder, split=split)


class IrDataset(Dataset):
    """A data set of ir-datasets, with those below its name as splits.

    "beir/scifact" has the splits test and train; "beir/scifact/test" has the one split test.
    """

    def __init__(self, name: str) -> None:
        try:
            import ir_datasets
        except ImportError:
            raise MissingExtraError.of(
                "ir-datasets", "datasets", f"'{name}' is no folder here; as the name of a data set it"
            ) from None
        self.name = name
        self._load = ir_datasets.load
        self._registered = ir_datasets.registry
        self._set: Any = self._loaded(name)

    @property
    def corpus(self) -> Iterable[Doc]:
        if not self._set.has_docs():
            raise InputError(f"{self.name}: the data set has no documents")
        return _IrdsDocuments(self._set)

    @property
    def splits(self) -> list[str]:
        below = [name for name in self._registered if name.startswith(f"{self.name}/")]
        splits = [name.removeprefix(f"{self.name}/") for name in below if self._loaded(name).has_qrels()]
        return sorted([*splits, *([self.name.rpartition("/")[2]] if self._set.has_qrels() else [])])

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return map(_topic, self._part(split).queries_iter())

    def _qrels(self, split: str) -> Qrels:
        rows = self._part(split).qrels_iter()
        return Qrels((r.query_id, str(getattr(r, "iteration", "0")), r.doc_id, int(r.relevance)) for r in rows)

    def _part(self, split: str) -> Any:
        below = f"{self.name}/{split}"
        return self._loaded(below) if below in self._registered else self._set

    def _loaded(self, name: str) -> Any:
        try:
            return self._load(name)
        except KeyError:
            raise InputError(f"'{name}' is neither a folder nor a data set that ir-datasets knows") from None


class _IrdsDocuments:
    def __init__(self, data_set: Any) -> None:
        self._set = data_set

    def __iter__(self) -> Iterator[Doc]:
        return map(_doc, self._set.docs_iter())


def _doc(record: Any) -> Doc:
    """The text is `text`, or ir-datasets' default text; other fields that JSON can hold are metadata."""
    row = record._asdict()
    doc_id, title = str(row.pop("doc_id")), str(row.pop("title", "") or "")
    text = str(row.pop("text") or "") if "text" in row else record.default_text()
    return Doc(doc_id, text, title, {k: v for k, v in row.items() if isinstance(v, (str, int, float))})


def _topic(record: Any) -> Topic:
    row = record._asdict()
    parts = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
    text = next((parts[name] for name in ("text", "query", "title") if parts.get(name)), None)
    return Topic(
        str(record.query_id),
        record.default_text() if text is None else text,
        parts.get("narrative", ""),
        parts.get("description", ""),
    )
