"""Test collections: documents, with topics and judgments for each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, MissingExtraError, Qrels, Topic, Topics
from ..formats import read_corpus, read_qrels, read_topics
from ..formats.folder import CORPUS, beir_file, qrels_files, split_of


class Dataset(ABC):
    """A collection of documents, with topics and judgments for each split.

    Attributes:
        name: Name by which `dataset` finds the collection.
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
        """Return the topics of a split that have judgments, in the order of the collection.

        Args:
            split: Name of the split; by default the only one.

        Raises:
            ParameterError: The split does not exist, or the collection has several splits and none is named.
            InputError: There are no judgments, or no topic has any.
        """
        return Topics(self._all_topics(self._check_split(split))).judged(self.qrels(split))

    def qrels(self, split: str | None = None) -> Qrels:
        """Return the judgments of a split; argument and errors as for `topics`."""
        return self._qrels(self._check_split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _check_split(self, split: str | None) -> str:
        """Return the split of this name, or the only split; ParameterError if there is none."""
        return split_of(self.name, self.splits, split)

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"


class BeirFolder(Dataset):
    """A folder in BEIR's layout; each file may be compressed."""

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
    """A data set of ir-datasets; the data sets below its name are its splits.

    "beir/scifact" has the splits "test" and "train"; "beir/scifact/test" has only the split "test".
    """

    def __init__(self, name: str) -> None:
        try:
            import ir_datasets
        except ImportError:
            raise MissingExtraError.of(
                "ir-datasets", "datasets", f"'{name}' is no folder here; as the name of a data set it"
            ) from None
        self.name = name
        self._load_registered = ir_datasets.load
        self._registry = ir_datasets.registry
        self._data_set: Any = self._load(name)

    @property
    def corpus(self) -> Iterable[Doc]:
        if not self._data_set.has_docs():
            raise InputError(f"{self.name}: the data set has no documents")
        return _IrDocuments(self._data_set)

    @property
    def splits(self) -> list[str]:
        prefix = f"{self.name}/"
        names = [name for name in self._registry if name.startswith(prefix)]
        splits = [name.removeprefix(prefix) for name in names if self._load(name).has_qrels()]
        if self._data_set.has_qrels():
            splits.append(self.name.rpartition("/")[2])
        return sorted(splits)

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return map(_topic, self._load_split(split).queries_iter())

    def _qrels(self, split: str) -> Qrels:
        rows = self._load_split(split).qrels_iter()
        return Qrels((row.query_id, str(getattr(row, "iteration", "0")), row.doc_id, int(row.relevance)) for row in rows)

    def _load_split(self, split: str) -> Any:
        name = f"{self.name}/{split}"
        return self._load(name) if name in self._registry else self._data_set

    def _load(self, name: str) -> Any:
        try:
            return self._load_registered(name)
        except KeyError:
            raise InputError(f"'{name}' is neither a folder nor a data set that ir-datasets knows") from None


class _IrDocuments:
    """The documents of a data set, which can be iterated repeatedly."""

    def __init__(self, data_set: Any) -> None:
        self._data_set = data_set

    def __iter__(self) -> Iterator[Doc]:
        return map(_doc, self._data_set.docs_iter())


def _doc(record: Any) -> Doc:
    """Return a document: the text is `text`, or ir-datasets' default text; other strings and numbers are metadata."""
    fields = record._asdict()
    doc_id, title = str(fields.pop("doc_id")), str(fields.pop("title", "") or "")
    text = str(fields.pop("text") or "") if "text" in fields else record.default_text()
    return Doc(doc_id, text, title, {name: value for name, value in fields.items() if isinstance(value, (str, int, float))})


def _topic(record: Any) -> Topic:
    """Return a topic: the text is the first non-empty field of text, query and title, or ir-datasets' default text."""
    fields = {name: value.strip() for name, value in record._asdict().items() if isinstance(value, str)}
    text = next((fields[name] for name in ("text", "query", "title") if fields.get(name)), None)
    return Topic(
        str(record.query_id),
        record.default_text() if text is None else text,
        fields.get("narrative", ""),
        fields.get("description", ""),
    )
