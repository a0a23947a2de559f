"""Index: the handle of a directory of documents and statistics, which builds, opens and changes it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.checks import check_whole
from ..core.progress import ProgressCallback, silent
from ..core.work import cluster, work
from ..storage.files import as_path
from ..storage.remote import address_of
from ..text import Analyzer
from .build import IndexSettings
from .facts import shown
from .remote import local_copy
from .state import State, stored_analyzer
from .writer import Change, add, build, delete, merge

if TYPE_CHECKING:
    _State = State
else:
    _State = object


class Index(_State):
    """Searchable collection. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents, their statistics (ids, term frequencies, document lengths) and the analyzer, but no scores:
    models and parameters are chosen at search time.

    All attributes and methods of the open state are available on the index: `index.ids`, `index.doc(id)`, `index.bm25()`.
    It keeps reading this state until `refresh()`, or until it changes the index itself.
    A stage keeps the state that it was made with.
    """

    def __init__(self, reader: State) -> None:
        """Use `Index.open`."""
        self._state = reader
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
        separate: bool = False,
        positions: bool = False,
        columns: Mapping[str, str] | None = None,
        components: Sequence[str] = (),
        shards: int = 1,
        ray: bool | str | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        overwrite: bool = False,
        drop_vectors: bool = False,
        progress: ProgressCallback = silent,
    ) -> Index:
        """Build an index of documents in a directory and open it. The same documents give the same bytes.

        Args:
            docs: What `read_corpus` accepts: a file or folder, or the address of one, a list of these, a DataFrame, or an
                iterable of Doc, of dicts with "_id" (or "id") and "text", or of (id, text) pairs. Or the name of a collection:
                "sample:harbour", "irds:beir/scifact". Or a CIFF file, of which an index without texts is made; the analyzer
                is for queries then.
            path: The directory.
            analyzer: A name, an Analyzer, or a callable from text to tokens; see `Analyzer.of`.
            fields: What is indexed, joined by a space: "title", "text", or keys of the metadata; everything is stored.
            vectors: Index no text but the term weights under this key of the metadata, for `index.learned_sparse()`; they are
                stored to two decimals.
            separate: Keep the frequencies and lengths of each field beside those of all together. Each field is then analysed
                by itself, so that word n-grams end with it.
            positions: Keep where each term stands in its document, which phrases need; the analyzer must have no n-grams.
            columns: The types of what filters compare of the metadata: "keyword", "integer", "float", "date", "boolean" or
                "keywords", a list of them, by key; strings are then read as these. None: every key with values of one type.
            components: Names of further components that are built with the documents; packages bring some.
            shards: How many shards it has, of as many documents each, in their order, for several machines to search.
            ray: Build by tasks on a Ray cluster: True for a Ray on this machine, or the one that RAY_ADDRESS names; or an
                address, such as "auto" or "host:6379". All its machines must reach `docs`, which are files, and `path`.
            memory: What postings, their terms and ids may take before they go to the disk (default: 2G); with `ray`, in each
                task.
            threads: How many threads read, analyse and compress (default: the machine's); with `ray`, in each task (1).
            overwrite: Replace an existing index, which stays until the new one is complete.
            drop_vectors: Replace even an index that holds vectors, which the new one has not.
            progress: Is called after each batch of documents.

        Raises:
            InputError: A document cannot be used, an id occurs twice, or something at `path` may not be replaced.
            FontesError: The disk is full or cannot be written, and nothing is left behind.
        """
        form = IndexSettings.of(analyzer, fields, vectors, components, separate, positions)
        with work(threads=threads, memory=memory, ray=ray):
            build(
                docs,
                Path(path),
                form,
                columns,
                shards=check_whole("shards", shards) if shards != 1 else None,
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
        """Open the index in a directory.

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
        reader = State.newest(path, analyzer_of, partial=partial, verify=verify)
        with work(ray=ray or False):
            if (actors := cluster()) is not None:
                reader.actors = actors.ShardActors(reader, partial)
        return cls(reader)

    @property
    def state(self) -> State:
        """The open state, which stages made from the index keep."""
        return self._state

    def refresh(self) -> bool:
        """Open the newest state.

        Returns:
            Whether there was a newer one; it may hold the same documents where the index was built again.

        Raises:
            IndexFormatError: The index is gone or damaged.
            FontesError: It was replaced by an index with another analyzer.
        """
        return self._go_on(self._state)

    def add(
        self,
        docs: str | Path | Iterable[Any],
        *,
        duplicates: str = "error",
        memory: str | int | None = None,
        threads: int | None = None,
        progress: ProgressCallback = silent,
    ) -> Change:
        """Add documents after the present ones, and commit them in one step.

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
            InputError: A document cannot be used, or an id exists already; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        with work(threads=threads, memory=memory):
            change, after = add(self._state, docs, duplicates, progress)
        self._go_on(after)
        return change

    def delete(self, ids: str | Iterable[str], *, missing: str = "error") -> Change:
        """Delete documents in one step. Statistics change at once; disk space is freed when their segment is merged.

        Args:
            ids: One id or several.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not in the index; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        change, after = delete(self._state, [ids] if isinstance(ids, str) else list(ids), missing)
        self._go_on(after)
        return change

    def merge(
        self,
        *,
        memory: str | int | None = None,
        threads: int | None = None,
        drop_vectors: bool = False,
        progress: ProgressCallback = silent,
    ) -> Change:
        """Merge all segments, or those of each shard, into one without deleted documents: what `build` would make of the rest.

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
        with work(threads=threads, memory=memory):
            change, after = merge(self._state, drop_vectors, progress)
        self._go_on(after)
        return change

    def _go_on(self, reader: State) -> bool:
        """Open the newest state, possibly that of `reader`. Returns whether it differs from the current one."""
        with self._lock:  # so that none goes back to a state that it has read before another thread went on
            before = self._state
            self._state = reader.refreshed()
            return self._state is not before

    if not TYPE_CHECKING:  # type checkers see what the base class has

        def __getattr__(self, name: str) -> Any:
            if name == "reader":
                warnings.warn("index.reader is now index.state", DeprecationWarning, stacklevel=2)
                return self._state
            if name.startswith("_"):
                raise AttributeError(f"'Index' object has no attribute '{name}'")
            return getattr(self._state, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._state)})

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Index.open, analyzer=self.analyzer), (self.path.absolute(),)

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._state

    def __repr__(self) -> str:
        return f"Index('{self.path}', {len(self)} documents)"

    def _repr_html_(self) -> str:
        return shown(self.name, self.info())
