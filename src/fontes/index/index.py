"""Index: the handle of a directory of documents and statistics, which builds, opens and changes it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from ..core.checks import check_whole, hinted
from ..core.errors import ParameterError
from ..core.registry import provided
from ..core.work import ProgressCallback, cluster, work
from ..storage.compiled import prepare_for_change
from ..storage.files import as_path
from ..storage.remote import address_of
from ..storage.temporary import TemporaryFolder
from ..text import Analyzer
from .facts import shown
from .parts import Searchable
from .settings import IndexSettings
from .state import State, stored_analyzer

if TYPE_CHECKING:
    from .writer import Change

    _State = State
else:
    _State = object


class Index(_State):
    """The handle of an index: builds, opens and changes it, and holds its newest state. `fontes.Index` adds stages' methods.

    All public attributes and methods of the state are also those of the index.
    """

    def __init__(self, state: State) -> None:
        """Use `Index.open`."""
        self._state = state
        self._lock = Lock()

    @classmethod
    @hinted
    def build(
        cls,
        docs: str | Path | Iterable[object],
        path: str | Path | None = None,
        *,
        analyzer: str | Analyzer | Callable[[str], Sequence[str]] = "english",
        fields: Sequence[str] = ("title", "text"),
        vectors: str | None = None,
        separate: bool = False,
        positions: bool = False,
        columns: Mapping[str, str] | None = None,
        components: Sequence[str] = (),
        duplicates: str = "error",
        shards: int = 1,
        ray: bool | str | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        overwrite: bool = False,
        drop_vectors: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Build an index of documents in a directory and open it. The same documents give the same bytes.

        Args:
            docs: Documents as for `read_corpus`: a file, a folder or an address, a list of these, a DataFrame, a list or Series
                of texts, or an iterable of Doc, of dicts with "_id" (or "id") and "text", or of (id, text) pairs. Or the name
                of a collection: "sample:harbour", "irds:beir/scifact". Or a CIFF file, which makes an index without texts; the
                analyzer is then for queries.
            path: The directory. None: a temporary one, removed with the last index, stage and run that use it, or with the
                process.
            analyzer: A name, an Analyzer, or a callable from text to tokens; see `Analyzer.of`.
            fields: Indexed fields, joined by a space: "title", "text", or keys of the metadata; everything is stored.
            vectors: Index no text but the term weights under this key of the metadata, for `index.learned_sparse()`; they are
                stored to two decimals.
            separate: Store frequencies and lengths by field, too. Each field is then
                analysed by itself, so that word n-grams end with it.
            positions: Store the positions of terms, which phrases need; the analyzer must have no n-grams.
            columns: Types of metadata columns for filters, by key: "keyword", "integer", "float", "date" (or, with the form of
                the dates, "date:%d/%m/%Y"), "boolean" or "keywords" (a list of them); strings are then converted to these.
                None: every key with values of one type.
            components: Names of further components that are built with the documents; packages bring some.
            duplicates: How to treat an id that comes twice: "error", or "skip", which keeps the first document.
            shards: Shards of equal size, for several machines to search.
            ray: Build by tasks on a Ray cluster: True for a Ray on this machine, or the one that RAY_ADDRESS names; or an
                address, such as "auto" or "host:6379". All its machines must reach `docs`, which are files, and `path`.
            memory: Memory for postings, terms and ids before they are written to disk (default: 64M for each processor, at
                least 128M); with `ray`, of each task.
            threads: Number of threads that read, analyse and compress (default: the machine's); with `ray`, of each task (1).
            overwrite: Replace an existing index, which stays until the new one is complete.
            drop_vectors: Replace even an index that holds vectors, which the new one does not have.
            progress: Called after each batch of documents.

        Raises:
            InputError: A document cannot be used, an id occurs twice, or something at `path` may not be replaced.
            FontesError: The disk is full or cannot be written, and nothing is left behind.
        """
        from . import writer

        settings = IndexSettings.of(analyzer, fields, vectors, components, separate, positions)
        with work(threads=threads, memory=memory, ray=ray, progress=progress):
            count = check_whole("shards", shards) if shards != 1 else None
            if path is None and cluster() is not None:
                raise ParameterError("a build on a cluster (ray) needs a path that all its machines reach")
            temporary = TemporaryFolder() if path is None else None  # the open state keeps it
            path = temporary.path / "memory" if temporary else Path(path)  # type: ignore[arg-type]
            try:
                writer.build(docs, path, settings, columns, duplicates, count, overwrite, drop_vectors)
            except BaseException:
                if temporary:  # which the traceback would keep
                    temporary.remove()
                raise
        return cls.open(path, analyzer=settings.analyzer)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        analyzer: str | Analyzer | Callable[[str], Sequence[str]] | None = None,
        verify: bool = False,
        partial: bool = False,
        ray: bool | str | None = None,
    ) -> Self:
        """Open the index in a directory.

        Damaged files never crash a search. Sizes, shapes and bounds of all parts are checked when the index is opened. Other
        changed values, as on a failing disk, may give wrong results; `check` and `verify` detect them by checksums of all
        files.

        Args:
            path: The directory; or an address, from which missing files are copied to the user's cache.
            analyzer: The analyzer of the index, compared with its stored name. Needed if it is a function, or a spaCy model in
                a folder, as an index contains no code. Without it such an index can be opened, but analysing a text raises
                ParameterError.
            verify: Read every file first, as `check` does.
            partial: Leave out shards that cannot be read. The rest is an index with its own statistics; `info()` and the
                provenance of runs list the "missing" shards, and nothing can be changed.
            ray: Let actors of Ray, each with some shards, search: True for those of this machine, or the address of a cluster.
                They end with the index.

        Raises:
            IndexFormatError: There is no index, or a damaged one, or one of another format version.
            ParameterError: The index was made with another analyzer.
        """
        address = address_of(path)
        if address is None:
            path = as_path(path)
        else:
            from .remote import local_copy

            path = local_copy(address)
        analyzer_of = functools.partial(stored_analyzer, path, analyzer=analyzer)
        state = State.newest(path, analyzer_of, partial=partial, verify=verify)
        with work(ray=ray or False):
            if (actors := cluster()) is not None:
                state.actors = actors.ShardActors(state, partial)
        index: Self = (provided("index") if cls is Index else cls)(state)
        return index

    @property
    def state(self) -> State:
        """The open state, which stages made from the index keep."""
        return self._state

    def refresh(self) -> bool:
        """Open the newest state.

        Returns:
            Whether there was a newer one; it may hold the same documents if the index was built again.

        Raises:
            IndexFormatError: The index is gone or damaged.
            FontesError: It was replaced by an index with another analyzer.
        """
        prepare_for_change()
        return self._advance(self._state)

    def add(
        self,
        docs: str | Path | Iterable[object],
        *,
        duplicates: str = "error",
        memory: str | int | None = None,
        threads: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Add documents after the present ones, and commit them in one step.

        They are analysed like the others. This index reads them at once; other open indexes keep their state until `refresh()`.
        The next `encode` makes their vectors. Small segments are merged as they accumulate. If another index is built at the
        path meanwhile, they are added to that one, unless `docs` can be read only once, which is an error.

        Args:
            docs: As for `build`.
            duplicates: How to treat duplicate ids, of the index or within `docs`: "error"; "skip" keeps the first document;
                "replace" keeps the last one, at the end of the index.
            memory: As for `build`.
            threads: As for `build`.
            progress: Called after each batch of documents.

        Raises:
            InputError: A document cannot be used, or an id exists already; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        from . import writer

        with work(threads=threads, memory=memory, progress=progress):
            change, newest = writer.add(self._state, docs, duplicates)
        self._advance(newest)
        return change

    def update(self, changes: Mapping[str, Mapping[str, object]], *, missing: str = "error") -> Change:
        """Change parts of documents in one step. Changed documents move to the end of the index.

        If only metadata change that are not indexed, the text is not analysed again, and the vectors, which are of title and
        text, stay.

        Args:
            changes: For each id, the new "title", "text" and "metadata", as a JSON merge patch (RFC 7396): what is left out
                stays, and a key of the metadata that is None is removed.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not in the index, or a change cannot be made; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        from . import writer

        change, newest = writer.update(self._state, changes, missing)
        self._advance(newest)
        return change

    def delete(self, ids: str | Iterable[str] = (), *, where: str | None = None, missing: str = "error") -> Change:
        """Delete documents in one step. Statistics change at once; disk space is freed when their segment is merged.

        If another index is built at the path meanwhile, they are deleted in that one.

        Args:
            ids: One id or several.
            where: A filter, in place of ids: all documents that pass it are deleted.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not in the index; nothing was changed.
            ParameterError: The filter is invalid, or there are ids too; nothing was changed.
            FontesError: Another process changes the index, or the disk is full or cannot be written; nothing was changed.
        """
        from . import writer

        change, newest = writer.delete(self._state, [ids] if isinstance(ids, str) else list(ids), where, missing)
        self._advance(newest)
        return change

    def merge(
        self,
        *,
        memory: str | int | None = None,
        threads: int | None = None,
        drop_vectors: bool = False,
        positions: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Merge all segments, or those of each shard, into one without deleted documents, equal to a new build of the
        documents.

        Vectors, token vectors and term weights are copied.

        Args:
            memory: As for `build`.
            threads: As for `build`.
            drop_vectors: Merge even if only some documents have the vectors of an encoder, which are dropped.
            positions: Also store the positions of terms, as `build` does, found in the stored texts if the index has none.
            progress: Called with the number of merged terms and documents.

        Raises:
            InputError: The index holds no texts to find positions in.
            ParameterError: The analyzer has n-grams, or the index has term weights in place of texts, which have no positions.
            FontesError: Another process changes the index, only some segments have the vectors of an encoder, or the disk is
                full or cannot be written; nothing was changed.
        """
        from . import writer

        with work(threads=threads, memory=memory, progress=progress):
            change, newest = writer.merge(self._state, drop_vectors, positions)
        self._advance(newest)
        return change

    def _advance(self, state: State) -> bool:
        """Open the newest state, possibly `state`. Returns whether it differs from the current one."""
        with self._lock:  # else a thread could restore an older state than another one has opened
            previous = self._state
            self._state = state.refreshed()
            return self._state is not previous

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(type(self).open, analyzer=self.analyzer), (self.path.absolute(),)

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._state

    def __repr__(self) -> str:
        return f"Index('{self.path}', {len(self)} documents)"

    def _repr_html_(self) -> str:
        return shown(self.name, self.info())


def _delegate_to_state() -> None:
    """Give `Index` the public attributes and methods of the state, which a type checker sees in the base class."""
    for name, value in (dict.fromkeys(State.__annotations__) | vars(Searchable) | vars(State)).items():
        if not (name.startswith("_") or name in vars(Index) or isinstance(value, classmethod)):
            setattr(Index, name, property(attrgetter(f"_state.{name}"), doc=value.__doc__))


_delegate_to_state()
