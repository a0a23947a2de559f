"""The index: a directory of documents and statistics, and a factory of retrievers."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.progress import Report, silent
from ..core.strings import Strings
from ..core.values import Doc
from ..storage.files import as_path
from ..storage.remote import address_of
from ..text import Analyzer
from .attached.store import VectorStore
from .build import Form, memory_size
from .factory import Factory
from .facts import shown
from .reader import Reader, stored_analyzer
from .remote import local_copy
from .shards.actors import ShardActors
from .writer import Change, add, build, delete, merge


class Index(Factory):
    """A collection, ready to be searched. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents and statistics (ids, term frequencies, document lengths), never scores, and the analyzer that made
    them; so models and parameters are chosen when asking. Documents are added and deleted; an open index keeps reading its
    state until `refresh`.
    """

    def __init__(self, reader: Reader) -> None:
        """Use `Index.open`."""
        self._reader = reader
        self._lock = Lock()

    @classmethod
    def build(
        cls,
        docs: str | Path | Iterable[Any],
        path: str | Path,
        *,
        analyzer: str | Analyzer | Callable[[str], Sequence[str]] = "english",
        fields: Sequence[str] = ("title", "text"),
        vectors: str | None = None,
        columns: Mapping[str, str] | None = None,
        shards: int = 1,
        ray: bool | str | None = None,
        memory: str | int = "2G",
        threads: int | None = None,
        overwrite: bool = False,
        drop_vectors: bool = False,
        progress: Report = silent,
    ) -> Index:
        """Makes an index of documents in a directory and opens it. The same documents give the same bytes.

        Args:
            docs: What `read_corpus` accepts: a file or folder, or the address of one, a list of these, a DataFrame, or an
                iterable of Doc, of dicts with "_id" (or "id") and "text", or of (id, text) pairs. Or a CIFF file, of which an
                index without texts is made; the analyzer is for queries then.
            path: The directory.
            analyzer: A name, an Analyzer, or a callable from text to tokens; see `Analyzer.of`.
            fields: What is indexed, joined by a space: "title", "text", or keys of the metadata; everything is stored.
            vectors: Index no text but the term weights under this key of the metadata, for `index.learned_sparse()`; they are
                stored to two decimals.
            columns: The types of what filters compare of the metadata: "keyword", "integer", "float", "date", "boolean" or
                "keywords", a list of them, by key; strings are then read as these. None: every key with values of one type.
            shards: How many shards it has, of as many documents each, in their order, for several machines to search.
            ray: Build by tasks on a Ray cluster: True for a Ray on this machine, or the one that RAY_ADDRESS names; or an
                address, such as "auto" or "host:6379". All its machines must reach `docs`, which are files, and `path`.
            memory: What postings, their terms and ids may take before they go to the disk; with `ray`, in each task.
            threads: How many threads read, analyse and compress (default: the machine's); with `ray`, in each task (1).
            overwrite: Replace an index that is there; it stays as it is until the new one is complete.
            drop_vectors: Replace even an index that holds vectors, which the new one has not.
            progress: Is called after each batch of documents.

        Raises:
            InputError: A document cannot be used, an id occurs twice, or something at `path` may not be replaced.
            FontesError: The disk is full or cannot be written, and nothing is left behind.
        """
        form = Form.of(analyzer, fields, vectors)
        build(
            docs,
            Path(path),
            form,
            columns,
            shards=check_whole("shards", shards) if shards != 1 else None,
            ray=ray,
            memory=memory_size(memory),
            threads=threads,
            overwrite=overwrite,
            drop_vectors=drop_vectors,
            progress=progress,
        )
        return cls.open(path, analyzer=form.analyzer)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        analyzer: str | Analyzer | Callable[[str], Sequence[str]] | None = None,
        verify: bool = False,
        partial: bool = False,
        ray: bool | str | None = None,
    ) -> Index:
        """Opens the index in a directory.

        What is damaged never crashes a search, and is mostly an error already when it is opened: sizes, shapes and the bounds
        of all parts are looked at then. Values that have changed without that, as on a failing disk, can give wrong answers;
        the sums of all files, which `check` and `verify` compare, tell.

        Args:
            path: The directory; or the address of one, of which what is missing is copied to the user's cache.
            analyzer: The one that the index was made with, which is compared with the name that it has stored. It is needed
                where that was a function, or a model of spaCy in a folder: an index brings no code of its own. Without it such
                an index opens all the same, and analysing a text raises ParameterError.
            verify: Whether every file is read first, as `check` does.
            partial: Whether shards that cannot be read are left out. What is there is an index of its own then, with its own
                statistics; `info()` and the provenance of runs say what is "missing", and nothing can be changed.
            ray: Let actors of Ray, each of which holds some shards, search: True for those of this machine, or the address of a
                cluster. They end with the index.

        Raises:
            IndexFormatError: There is no index, or a damaged one, or one of another format version.
            ParameterError: The analyzer is not the one that the index was made with.
        """
        address = address_of(path)
        path = as_path(path) if address is None else local_copy(address)
        analyzer_of = functools.partial(stored_analyzer, path, analyzer=analyzer)
        reader = Reader.newest(path, analyzer_of, partial=partial, verify=verify)
        if ray:
            reader.actors = ShardActors(reader, ray, partial)
        return cls(reader)

    @property
    def _vectors(self) -> VectorStore:  # type: ignore[override]
        return self._reader.vectors

    @property
    def reader(self) -> Reader:
        """The state that it reads. A stage that is called takes all that it needs from the state of that moment."""
        return self._reader

    def refresh(self) -> bool:
        """Goes on to the newest state, whoever has made it.

        Returns:
            Whether there was a newer one, which may hold the same documents: those of an index that was built again.

        Raises:
            IndexFormatError: There is no index any more, or a damaged one.
            FontesError: In its place is an index that was made with another analyzer.
        """
        return self._go_on(self._reader)

    def add(
        self,
        docs: str | Path | Iterable[Any],
        *,
        duplicates: str = "error",
        memory: str | int = "2G",
        threads: int | None = None,
        progress: Report = silent,
    ) -> Change:
        """Adds documents, which come after those that are there, and commits them in one step.

        They are analysed as the others were. This index reads them at once; others that are open go on over their state until
        `refresh`. Vectors are made for them by the next `encode`. Where segments pile up they are merged.

        Args:
            docs: As `build` takes them.
            duplicates: How to treat duplicate ids, those of the index and those that come twice: "error"; "skip" keeps the
                document that came first; "replace" keeps the one that comes last, at the end of the index.
            memory: As of `build`.
            threads: As of `build`.
            progress: Is called after each batch of documents.

        Raises:
            InputError: A document cannot be used, or an id is there already; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        threads = threads or os.cpu_count() or 1
        change, after = add(self._reader, docs, duplicates, memory_size(memory), threads, progress)
        self._go_on(after)
        return change

    def delete(self, ids: str | Iterable[str], *, missing: str = "error") -> Change:
        """Deletes documents, in one step. They leave all statistics at once, and the disk when their segment is merged.

        Args:
            ids: Their ids, or the one id.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not there; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        change, after = delete(self._reader, [ids] if isinstance(ids, str) else list(ids), missing)
        self._go_on(after)
        return change

    def merge(
        self,
        *,
        memory: str | int = "2G",
        threads: int | None = None,
        drop_vectors: bool = False,
        progress: Report = silent,
    ) -> Change:
        """Makes one segment of all, or of each shard, without what was deleted: what `build` would have made of what is left.

        Vectors, token vectors and weights of terms are carried over.

        Args:
            memory: As of `build`.
            threads: As of `build`.
            drop_vectors: Merge even where only some documents have the vectors of an encoder, which are dropped.
            progress: Is called as terms and documents are done.

        Raises:
            FontesError: Another process changes the index, only some segments have the vectors of an encoder, or the disk is
                full or cannot be written; nothing was changed.
        """
        change, after = merge(self._reader, memory_size(memory), threads or os.cpu_count() or 1, drop_vectors, progress)
        self._go_on(after)
        return change

    def _go_on(self, reader: Reader) -> bool:
        """Goes on to the newest state, which may be that of a reader; whether it is another one than before."""
        with self._lock:  # so that none goes back to a state that it has read before another thread went on
            before = self._reader
            self._reader = reader.refreshed()
            return self._reader is not before

    @property
    def path(self) -> Path:
        """The directory."""
        return self._reader.path

    @property
    def analyzer(self) -> Analyzer:
        """Makes the terms of documents and queries."""
        return self._reader.analyzer

    @property
    def fields(self) -> tuple[str, ...]:
        """What is indexed of each document."""
        return self._reader.fields

    @property
    def scale(self) -> float | None:
        """What term weights were multiplied by when they were stored; None for an index of texts."""
        return self._reader.scale

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of all that its state is made of."""
        return self._reader.fingerprint

    @property
    def name(self) -> str:
        """The name of the directory without its ending: "papers" of `papers.index`."""
        return self._reader.name

    @property
    def ids(self) -> Strings:
        """The document ids, in the order in which the documents came."""
        return self._reader.ids

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many terms each document has."""
        return self._reader.lengths

    @property
    def terms(self) -> Strings:
        """The terms, in ascending order."""
        return self._reader.terms

    @property
    def df(self) -> NDArray[np.integer[Any]]:
        """For each term the number of documents that hold it."""
        return self._reader.df

    @property
    def cf(self) -> NDArray[np.integer[Any]]:
        """For each term how often it occurs in the collection."""
        return self._reader.cf

    @property
    def tokens(self) -> int:
        """How many terms all documents have together."""
        return self._reader.tokens

    def term_number(self, term: str) -> int:
        """The number of a term: its place in `terms`, from 0; -1 for a term that the index does not have."""
        return self._reader.term_number(term)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms with these numbers, end to end.

        Returns:
            The ordinals of the documents, ascending within a term, and the term frequencies; as many of each as the terms' `df`
            together.
        """
        return self._reader.postings(terms)

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids.

        Raises:
            InputError: For an id that is not in the index.
        """
        return self._reader.docs(ids)

    def doc(self, doc_id: str) -> Doc:
        """The document with this id.

        Raises:
            InputError: Where there is none.
        """
        return self._reader.doc(doc_id)

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """The terms of the documents with these ids, from their stored text.

        Raises:
            InputError: For an unknown id.
        """
        return self._reader.analyzed(ids)

    def ordinal(self, doc_id: str) -> int:
        """The number of a document in the index: its place in `ids`, from 0.

        Raises:
            InputError: Where there is no such id.
        """
        return self._reader.ordinal(doc_id)

    def check(self, deep: bool = False) -> None:
        """Reads every file.

        Args:
            deep: Whether each part is compared with the others as well: postings with counts and lengths, deletions with
                postings, norms with vectors, the order of ids and terms.

        Raises:
            IndexFormatError: Where anything is not as it was written, or does not fit together.
        """
        self._reader.check(deep)

    def info(self) -> dict[str, Any]:
        """What the index is: counts, analyzer, sizes on disk in bytes, fingerprint."""
        return self._reader.info()

    @property
    def is_sound(self) -> bool:
        """Whether its files are what its fingerprint says; only then what is worked out from them may be kept under it."""
        return self._reader.is_sound

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Index.open, analyzer=self.analyzer), (self.path.absolute(),)

    def __len__(self) -> int:
        return len(self._reader)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._reader

    def __repr__(self) -> str:
        return f"Index('{self.path}', {len(self)} documents)"

    def _repr_html_(self) -> str:
        """What the index is, as a table, for notebooks."""
        return shown(self.name, self.info())
