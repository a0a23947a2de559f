"""Test collections by name: a local folder in BEIR's form, or a data set of ir-datasets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, MissingExtraError, ParameterError, Qrels, Topic, Topics
from ..formats.corpora import read_corpus
from ..formats.qrels import read_qrels
from ..formats.topics import read_topics
from ..storage.files import plain_name


def dataset(name: str | Path) -> Dataset:
    """The collection in the folder `name` (corpus.jsonl, queries.jsonl, qrels/<split>.tsv), or else the one that comes with
    the package ("harbour", "harbour/causal", …; see `fontes.datasets.samples`), or else the one that ir-datasets knows by this name,
    such as "beir/scifact" or "beir/scifact/test", which it may download.

    Raises InputError where there is none, MissingExtraError where ir-datasets is needed and not installed.
    """
    from .samples import SAMPLES  # it builds on this module

    if Path(name).is_dir():
        return BeirFolder(Path(name))
    if name in SAMPLES:
        return SAMPLES[str(name)]
    return IrDataset(str(name))


class Dataset(ABC):
    """A collection of documents with topics and judgments, for each split."""

    name: str

    @property
    @abstractmethod
    def corpus(self) -> Iterable[Doc]:
        """The documents; can be iterated again and again."""

    @property
    @abstractmethod
    def splits(self) -> list[str]:
        """The names of the splits that have judgments, in alphabetical order."""

    def topics(self, split: str | None = None) -> Topics:
        """The topics of a split, those with judgments, in the order of the collection.

        Without `split` it is the only one, or else "test". Raises ParameterError for a split that does not exist.
        """
        qrels = self.qrels(split)
        return Topics(topic for topic in self._all_topics(self._split(split)) if topic.id in qrels)

    def qrels(self, split: str | None = None) -> Qrels:
        """The judgments of a split; `split` as for `topics`."""
        return self._qrels(self._split(split))

    @abstractmethod
    def _all_topics(self, split: str) -> Iterable[Topic]: ...

    @abstractmethod
    def _qrels(self, split: str) -> Qrels: ...

    def _split(self, split: str | None) -> str:
        splits = self.splits
        if not splits:
            raise InputError(f"{self.name}: the collection has no judgments")
        if split is None and (len(splits) == 1 or "test" in splits):
            return "test" if "test" in splits else splits[0]
        if split not in splits:
            asked = f"there is no split '{split}'" if split else "say which split"
            raise ParameterError(f"{self.name}: {asked}; there are {', '.join(splits)}")
        return split

    def __repr__(self) -> str:
        return f"dataset({self.name!r})"


class BeirFolder(Dataset):
    """A folder in BEIR's form; each file may be packed (.gz)."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    @property
    def corpus(self) -> Iterable[Doc]:
        return read_corpus(self._file("corpus.jsonl"))

    @property
    def splits(self) -> list[str]:
        return sorted(self._qrels_files())

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(self._file("queries.jsonl")).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(self._qrels_files()[split])

    def _qrels_files(self) -> dict[str, Path]:
        files = sorted((self._folder / "qrels").glob("*.tsv*"))
        return {plain_name(f).removesuffix(".tsv"): f for f in files if plain_name(f).endswith(".tsv")}

    def _file(self, name: str) -> Path:
        for path in (self._folder / name, self._folder / f"{name}.gz"):
            if path.is_file():
                return path
        raise InputError(f"{self._folder}: no {name} or {name}.gz; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/")


class IrDataset(Dataset):
    """A data set of ir-datasets (https://ir-datasets.com), with those below its name as splits.

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
        return _Documents(self._set)

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


class _Documents:
    """The documents of a data set of ir-datasets, read anew each time."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Doc]:
        return map(_doc, self._of.docs_iter())


def _doc(given: Any) -> Doc:
    """The text is `text`, or what ir-datasets itself takes for the text; other fields that JSON can hold are metadata."""
    row = given._asdict()
    doc_id, title = str(row.pop("doc_id")), str(row.pop("title", "") or "")
    text = str(row.pop("text") or "") if "text" in row else given.default_text()
    return Doc(doc_id, text, title, {k: v for k, v in row.items() if isinstance(v, (str, int, float))})


def _topic(given: Any) -> Topic:
    row = given._asdict()
    parts = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
    text = next((parts[name] for name in ("text", "query", "title") if parts.get(name)), None)
    return Topic(
        str(given.query_id),
        given.default_text() if text is None else text,
        parts.get("narrative", ""),
        parts.get("description", ""),
    )
