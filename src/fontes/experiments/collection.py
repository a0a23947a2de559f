"""Documents of an experiment, and the indexes built from them."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import Doc, IndexFormatError, InputError
from ..core.registry import provided
from ..core.work import Progress, reporter
from ..datasets import Dataset
from ..formats import Corpus, read_corpus
from ..formats.decoding import reading_of
from ..storage.files import STANDARD
from ..storage.hashes import hash_json
from ..text import Analyzer
from .provenance import hash_of, hash_of_dataset, hash_of_docs

if TYPE_CHECKING:
    from ..index import State
    from ..index_methods import Index
    from ..passages import Passages
    from ..text import Analyzer

BATCH_SIZE = 1000  # documents read from an index at a time
INDEXING = "indexing"  # the task in the progress of a build
STREAM_PROBLEM = "the documents are read several times, which standard input and pipes do not allow; write them to a file"


class Collection:
    """Documents, and a folder for their indexes.

    Args:
        documents: The path of a corpus or of an index, an `Index`, a `Dataset`, or any documents.
        folder: The folder of indexes, which are reused.
        format: Format of the corpus; None detects it.

    Raises:
        InputError: The value has no documents, or can be read only once.
    """

    def __init__(self, documents: object, folder: str | Path, *, format: str | None = None) -> None:
        from ..index import Index

        self._path: Path | None = None
        self._format = format
        if isinstance(documents, (str, os.PathLike)):
            if os.fspath(documents) == STANDARD:
                raise InputError(STREAM_PROBLEM)
            self._path = Path(documents)
            is_index = (self._path / "manifest.json").is_file()
            documents = Index.open(self._path) if is_index else read_corpus(self._path, format)
        if not isinstance(documents, (Index, Dataset, Iterable)):
            raise InputError(f"documents cannot be read from {type(documents).__name__}; give a path, an index or documents")
        if isinstance(documents, Corpus) and any(piece.is_stream for piece, _ in documents.pieces):
            raise InputError(STREAM_PROBLEM)
        is_rereadable = isinstance(documents, (Index, Dataset, Corpus))
        self._source = documents if is_rereadable or self._path else list(read_corpus(documents))  # type: ignore[arg-type]
        self.folder = Path(folder)

    @property
    def documents(self) -> Iterable[Doc]:
        """Documents in order, as an iterable that can be read repeatedly."""
        from ..index import Index

        if isinstance(self._source, Index):
            return _IndexDocuments(self._source)
        return self._source.corpus if isinstance(self._source, Dataset) else self._source

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the documents."""
        from ..index import Index

        if isinstance(self._source, Index):
            return self._source.fingerprint
        if isinstance(self._source, Dataset):
            return hash_of_dataset(self._source, "corpus")
        if not self._path:
            return hash_of_docs(self._source)
        reading, files_hash = reading_of(), hash_of(self._path, "corpus")
        is_default = reading == replace(reading, encoding=None, errors="strict")
        return files_hash if is_default else hash_json([files_hash, reading.encoding, reading.errors])

    def at(self, folder: Path) -> Collection:
        """Return a copy with another folder."""
        other = copy.copy(self)
        other.folder = folder
        return other

    def split(self, passages: Passages) -> Collection:
        """Return a copy whose documents are passages of these."""
        other = copy.copy(self)
        other._source, other._path = _SplitDocuments(passages, self), None
        other.__dict__["hash"] = hash_json([self.hash, passages.key()])
        return other

    def index(
        self,
        analyzer: str | Analyzer = "english",
        fields: Sequence[str] = ("title", "text"),
        vectors: str | None = None,
        separate: bool = False,
        positions: bool = False,
    ) -> Index:
        """Return the index of the documents, building it if missing or damaged; see `Index.build`."""
        opener: type[Index] = provided("index")
        report, start = reporter(), time.perf_counter()
        analyzer = Analyzer.of(analyzer)
        options = [name for name, is_on in (("separate", separate), ("positions", positions)) if is_on]
        key = hash_json([version("fontes"), self.hash, self._format, analyzer.to_dict(), list(fields), vectors, *options])
        path = self.folder / f"{key[:16]}.index"
        if path.is_symlink():
            raise InputError(f"{path} is a link, which may lead anywhere; remove it, and the index is built in its place")
        if damaged := path.exists():
            try:
                index = opener.open(path, analyzer=analyzer)
            except IndexFormatError:
                report(Progress(INDEXING, 0, None, 0.0, note="the index is damaged, so it is built again"))
            else:
                report(Progress(INDEXING, len(index), len(index), 0.0, note="an existing index is used"))
                return index
        self.folder.mkdir(parents=True, exist_ok=True)

        def report_unfinished(progress: Progress) -> None:
            if not progress.finished:
                report(progress)

        index = opener.build(
            self.documents,
            path,
            analyzer=analyzer,
            fields=tuple(fields),
            vectors=vectors,
            separate=separate,
            positions=positions,
            overwrite=damaged,
            drop_vectors=damaged,
            progress=report_unfinished,
        )
        report(Progress(INDEXING, len(index), len(index), time.perf_counter() - start))
        return index


class _SplitDocuments:
    def __init__(self, passages: Passages, collection: Collection) -> None:
        self._passages, self._collection = passages, collection

    def __iter__(self) -> Iterator[Doc]:
        return iter(self._passages.docs(self._collection.documents))


class _IndexDocuments:
    def __init__(self, index: State) -> None:
        self._index = index

    def __iter__(self) -> Iterator[Doc]:
        ids = list(self._index.ids)
        for start in range(0, len(ids), BATCH_SIZE):
            yield from self._index.docs(ids[start : start + BATCH_SIZE])
