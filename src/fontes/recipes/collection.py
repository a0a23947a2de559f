"""The documents that a recipe searches, and the indexes that it makes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import Doc, InputError
from ..data import Dataset, docs as as_docs, read_corpus
from ..evaluation.hashes import hash_of, hash_of_dataset, hash_of_docs
from ..evaluation.indexes import Tell, built_once
from ..index import Index

if TYPE_CHECKING:
    from ..neural import Encoder
    from ..text import Analyzer

AT_ONCE = 1000  # documents read from an index
TOLD = 10.0  # seconds between two lines about the progress of an encoding


class Collection:
    """Documents, from a path, an `Index`, a `Dataset` or any iterable, and a folder for the indexes made of them."""

    def __init__(self, documents: object, folder: Path, tell: Tell | None = None) -> None:
        """`tell` is called with a line about each step. Raises InputError for what are no documents."""
        if isinstance(documents, (str, os.PathLike)):
            path = Path(documents)
            documents = Index.open(path) if (path / "manifest.json").is_file() else read_corpus(path)
            self._path: Path | None = path
        else:
            self._path = None
        if not isinstance(documents, (Index, Dataset, Iterable)):
            raise InputError(f"documents cannot be read from {type(documents).__name__}; give a path, an index or documents")
        self._given = documents if isinstance(documents, (Index, Dataset)) or self._path else list(as_docs(documents))
        self.folder = folder
        self.tell = tell or (lambda line: None)

    @property
    def documents(self) -> Iterable[Doc]:
        """The documents, in their order; can be iterated again and again."""
        match self._given:
            case Index():
                return _Documents(self._given)
            case Dataset():
                return self._given.corpus
        return self._given

    @cached_property
    def hash(self) -> str:
        """Of the documents: the same where they are the same."""
        match self._given:
            case Index():
                return self._given.fingerprint
            case Dataset():
                return hash_of_dataset(self._given, "corpus")
        return hash_of(self._path, "corpus") if self._path else hash_of_docs(self._given)

    def index(
        self, analyzer: str | Analyzer = "english", fields: Sequence[str] = ("title", "text"), vectors: str | None = None
    ) -> Index:
        """The index of the documents by this analyzer, built once; see `Index.build`."""
        return built_once(self.folder, self.documents, [self.hash], analyzer, fields, vectors, self.tell)

    def encode(self, index: Index, encoder: Encoder) -> None:
        """Stores the documents' vectors by `encoder` with the index, where they are not there."""
        last = 0.0

        def told(progress: Any) -> None:
            nonlocal last
            if progress.seconds - last >= TOLD:
                last = progress.seconds
                self.tell(f"encoding: {progress.documents:,} documents, {progress.rate:.0f} a second")

        index.encode(encoder, progress=told)


class _Documents:
    """The documents of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __iter__(self) -> Iterator[Doc]:
        ids = list(self._index.ids)
        for start in range(0, len(ids), AT_ONCE):
            yield from self._index.docs(ids[start : start + AT_ONCE])
