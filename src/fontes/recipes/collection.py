"""The documents that a recipe searches, and the indexes that it makes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import Doc, InputError
from ..core.progress import Progress
from ..datasets import Dataset
from ..experiments.hashes import hash_of, hash_of_dataset, hash_of_docs
from ..experiments.indexes import Tell, built_once
from ..formats import docs as as_docs, read_corpus
from ..index import Index
from ..storage.files import STANDARD
from .telling import Teller

if TYPE_CHECKING:
    from ..neural import Encoder
    from ..text import Analyzer

AT_ONCE = 1000  # documents read from an index


class Collection:
    """Documents, from a path, an `Index`, a `Dataset` or any iterable, and a folder for the indexes made of them.

    tell   may be called with a line about a step
    """

    def __init__(self, documents: object, folder: Path, tell: Tell | None = None, moving: Tell | None = None) -> None:
        """`tell` is called with a line about each step, `moving` with how far a long one is; without it, `tell` is.

        Raises InputError for what are no documents.
        """
        self._path: Path | None = None
        if isinstance(documents, (str, os.PathLike)):
            if os.fspath(documents) == STANDARD:
                raise InputError(
                    "a recipe reads its documents more than once, so not from standard input; write them to a file"
                )
            self._path = Path(documents)
            documents = Index.open(self._path) if (self._path / "manifest.json").is_file() else read_corpus(self._path)
        if not isinstance(documents, (Index, Dataset, Iterable)):
            raise InputError(f"documents cannot be read from {type(documents).__name__}; give a path, an index or documents")
        self._given = documents if isinstance(documents, (Index, Dataset)) or self._path else list(as_docs(documents))
        self.folder = folder
        self.tell = Teller(tell, moving)

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
        """The index of the documents by this analyzer, built once; see `Index.build`. Raises InputError without documents."""
        progress = self.tell.progress("indexing")
        index = built_once(self.folder, self.documents, [self.hash], analyzer, fields, vectors, self.tell, progress)
        if not len(index):
            raise InputError("there are no documents to run the recipe on")
        return index

    def encode(self, index: Index, encoder: Encoder) -> None:
        """Stores the documents' vectors by `encoder` with the index, where they are not there."""
        shown = self.tell.progress("encoding")
        last: Progress | None = None

        def told(progress: Progress) -> None:
            nonlocal last
            last = progress
            shown(progress)

        index.encode(encoder, progress=told)
        self.tell(f"vectors: {last.done:,} documents" if last else "vectors: as they were made before")


class _Documents:
    """The documents of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __iter__(self) -> Iterator[Doc]:
        ids = list(self._index.ids)
        for start in range(0, len(ids), AT_ONCE):
            yield from self._index.docs(ids[start : start + AT_ONCE])
