"""A state of an index: its segments as one, over the documents that live."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.progress import Report
from ..core.strings import Strings
from ..core.values import Doc
from ..storage.arrays import REMEDY
from ..storage.hashes import hash_json
from ..text import Analyzer
from .attached.store import VectorStore
from .build import Form, TermWeights
from .building.batches import content
from .columns import Schema, columns_of
from .deletions import Deletions
from .factory import Factory
from .facts import facts_of
from .files import MANIFEST, check_contents, check_sizes, is_same_state, manifest_file, read_manifest, shard_of
from .inverted import PostingLists
from .joined import JoinedLists
from .leaf import Leaf, leaves_of
from .segment import Segment
from .shards.partial import readable
from .tables import joined, located

ANALYZER = "leave analyzer out, or give the one it was made with"

if TYPE_CHECKING:
    from ..core.run import Run


class Searchers(Protocol):
    """Those who hold the shards of an index, and search them for it."""

    def run(self, stage: Any, method: str, arguments: Sequence[Any], progress: Report) -> Run:
        """The best documents of all shards: the results of a stage's method, called with these arguments over each."""
        ...


class Reader(Factory):
    """What an index holds at one time. It does not change; `Index.refresh` goes on to a newer state.

    Ordinals count the documents that live, from 0, in their order.

    Attributes:
        path: The directory.
        manifest: The manifest of the state.
        analyzer: Makes the terms of documents and queries.
        fields: What is indexed of each document.
        scale: What term weights were multiplied by when they were stored; None for an index of texts.
        schema: Which metadata are columns, and of which types.
        ciff: The header of the CIFF file that it was made of, for one without texts; None for one of documents.
        fingerprint: The SHA-256 of all that the state is made of.
        leaves: Its segments that have documents.
        actors: Who holds its shards and searches them; None where this process does.
        missing: What there is to say of each shard that could not be read, where that was allowed: "shard", "documents",
            "problem". All else is of the shards that are there.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], analyzer: Analyzer, before: Reader | None = None) -> None:
        """Use `Index.open`; `before` is an older state, whose open segments this one shares."""
        self.path = path
        self.manifest = manifest
        self.analyzer = analyzer
        self.fields: tuple[str, ...] = tuple(manifest["fields"])
        self.scale: float | None = manifest["scale"]
        self.schema = Schema.read(manifest["columns"])
        self.fingerprint: str = manifest["fingerprint"]
        opened = {} if before is None else {leaf.segment.folder: leaf.segment for leaf in before.leaves}
        self.ciff: dict[str, Any] | None = manifest.get("ciff")
        segments = [_opened(path, opened, manifest, entry) for entry in manifest["segments"]]
        self.leaves: tuple[Leaf, ...] = leaves_of(segments)
        for leaf in self.leaves:
            columns_of(leaf.segment)  # opens them, before a commit removes them
        self._vectors = VectorStore(path, self.leaves)
        self.actors: Searchers | None = None if before is None else before.actors
        self.missing: list[dict[str, Any]] = manifest.get("missing", [])
        self._partial = False

    @classmethod
    def newest(
        cls,
        path: Path,
        analyzer_of: Callable[[dict[str, Any]], Analyzer],
        before: Reader | None = None,
        *,
        partial: bool = False,
        verify: bool = False,
    ) -> Reader:
        """The newest state of the index in a directory.

        Args:
            path: The directory.
            analyzer_of: Makes the analyzer that a manifest names.
            before: An older state, whose open segments the new one shares.
            partial: Whether shards that cannot be read are left out.
            verify: Whether every file is read first.

        Raises:
            IndexFormatError: There is no index, or a damaged one, or one of another format version.
        """
        while True:
            seen = manifest_file(path)
            manifest = read_manifest(path)
            try:
                if partial:
                    manifest = readable(path, manifest, verify, functools.partial(_opened, path, {}, manifest))
                else:
                    check_sizes(path, manifest)
                reader = cls(path, manifest, analyzer_of(manifest), before)
                reader._partial = partial
                if verify and not partial:
                    reader.check()
                return reader
            except (IndexFormatError, FileNotFoundError):
                # Another process may have replaced the manifest between two files, perhaps by an equal one: once more.
                if manifest_file(path) == seen:
                    raise

    def refreshed(self) -> Reader:
        """The newest state of its index: itself where there is no newer one.

        Raises:
            IndexFormatError: There is no index any more, or a damaged one.
            FontesError: In its place is an index that was made with another analyzer.
        """
        if is_same_state(read_manifest(self.path), self.manifest) and not self.missing:
            return self
        newest = Reader.newest(self.path, self._same_analyzer, self, partial=self._partial)
        return self if is_same_state(newest.manifest, self.manifest) else newest

    def _same_analyzer(self, manifest: dict[str, Any]) -> Analyzer:
        if {**manifest["analyzer"], "libraries": None} != {**self.manifest["analyzer"], "libraries": None}:
            raise FontesError(f"{self.path} was replaced by an index with another analyzer; open it again")
        return self.analyzer

    @property
    def form(self) -> Form:
        """What is indexed of each document."""
        return Form(self.analyzer, self.fields, None if self.scale is None else TermWeights(self.fields[0]))

    @property
    def reader(self) -> Reader:
        """Itself, as `Index.reader` is its state."""
        return self

    @cached_property
    def identity(self) -> str:
        """A digest of the fingerprint and of the folders' names, which tells equal states of one index apart."""
        return hash_json([self.fingerprint, self.manifest["segments"]])

    @cached_property
    def name(self) -> str:
        """See `Index.name`."""
        return self.path.absolute().stem

    @property
    def vectors(self) -> VectorStore:
        """What encoders have made of its documents."""
        return self._vectors

    @cached_property
    def ids(self) -> Strings:
        """The document ids, in the order of the documents."""
        return joined(
            [leaf.segment.ids for leaf in self.leaves], [None if leaf.dead is None else leaf.live for leaf in self.leaves]
        )

    @cached_property
    def _lists(self) -> PostingLists | JoinedLists:
        if len(self.leaves) == 1 and self.leaves[0].dead is None:
            return self.leaves[0].segment
        return JoinedLists([leaf.segment for leaf in self.leaves], self.leaves)

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many terms each document has."""
        return self._lists.lengths

    @property
    def terms(self) -> Strings:
        """The terms, in ascending order."""
        return self._lists.terms

    @property
    def df(self) -> NDArray[np.integer[Any]]:
        """For each term the number of documents that hold it."""
        return self._lists.df

    @property
    def cf(self) -> NDArray[np.integer[Any]]:
        """For each term how often it occurs in the collection."""
        return self._lists.cf

    @cached_property
    def tokens(self) -> int:
        """How many terms all documents have together; of an index of CIFF as its header counts them."""
        if self.ciff is None or self.ciff["surplus"] is None:
            return self.count("tokens")
        return int(self.lengths.sum(dtype=np.int64)) + int(self.ciff["surplus"])

    def term_number(self, term: str) -> int:
        """See `Index.term_number`."""
        return self._lists.term_number(term)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """See `Index.postings`."""
        return self._lists.postings(np.asarray(terms))

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """See `Index.docs`."""
        ids = list(ids)
        return self.documents(ids, [self.ordinal(doc_id) for doc_id in ids])

    def documents(self, ids: Sequence[str], ordinals: Sequence[int]) -> list[Doc]:
        """The documents with these ordinals, which have these ids."""
        firsts = [leaf.first for leaf in self.leaves]
        of_leaf = np.searchsorted(firsts, np.asarray(ordinals, dtype=np.int64), side="right") - 1
        docs: list[Doc] = [None] * len(ids)  # type: ignore[list-item]
        for number in sorted(set(of_leaf.tolist())):  # numpy.unique would load numpy.ma
            leaf, here = self.leaves[number], np.flatnonzero(of_leaf == number).tolist()
            places = leaf.live[np.asarray([ordinals[i] for i in here]) - leaf.first] if leaf.dead is not None else None
            own = [ordinals[i] - leaf.first for i in here] if places is None else places.tolist()
            for i, doc in zip(here, leaf.segment.read([ids[i] for i in here], own), strict=True):
                docs[i] = doc
        return docs

    def doc(self, doc_id: str) -> Doc:
        """See `Index.doc`."""
        return self.docs([doc_id])[0]

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """See `Index.analyzed`."""
        return self.analyzer.many([content(doc, self.fields) for doc in self.docs(ids)])

    def ordinal(self, doc_id: str) -> int:
        """See `Index.ordinal`."""
        ordinal = self.ids.find(doc_id)
        if ordinal < 0:
            raise InputError(f"document '{doc_id}' is not in the index {self.path}")
        return ordinal

    def ordinals(self, ids: Strings) -> NDArray[np.int64]:
        """The ordinals of the documents with these ids; -1 for one that is not there."""
        return located(ids, self.ids)

    def check(self, deep: bool = False) -> None:
        """See `Index.check`."""
        self.require_all()
        try:
            check_contents(self.path, self.manifest)
        except IndexFormatError:
            if is_same_state(read_manifest(self.path), self.manifest):
                raise
            raise FontesError(
                f"{self.path} has changed since it was opened; index.refresh() goes on with what it is now"
            ) from None
        for leaf in self.leaves if deep else ():
            leaf.check()
            columns_of(leaf.segment).check(self.schema.types)
        self._vectors.check(deep)

    def require_all(self) -> None:
        """Raises IndexFormatError where a shard is missing."""
        for shard in self.missing:
            raise IndexFormatError(f"shard {shard['shard']} of {self.manifest['shards']} cannot be read: {shard['problem']}")

    @property
    def provenance(self) -> dict[str, Any]:
        """What a run says of the state that it comes from."""
        missing = {"missing": self.missing} if self.missing else {}
        return {"index": str(self.path), "fingerprint": self.fingerprint, **missing}

    def info(self) -> dict[str, Any]:
        """See `Index.info`."""
        return facts_of(self)

    @cached_property
    def is_sound(self) -> bool:
        """Whether its files are what its fingerprint says; only then what is worked out from them may be kept under it."""
        try:
            check_contents(self.path, self.manifest)
        except IndexFormatError:
            return False
        return True

    def count(self, name: str) -> int:
        """The sum of a count of the segments, without what is deleted."""
        return sum(s[name] - (s["deleted"][name] if s["deleted"] else 0) for s in self.manifest["segments"])

    def __len__(self) -> int:
        return sum(leaf.documents for leaf in self.leaves)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.ids

    def __repr__(self) -> str:
        return f"Reader('{self.path}', {len(self)} documents)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.path.absolute(), self.analyzer)


def _again(path: Path, analyzer: Analyzer) -> Reader:
    """The newest state of the index in a directory, in another process."""
    return Reader.newest(path, lambda manifest: analyzer)


def _opened(
    path: Path, before: dict[Path, Segment], manifest: dict[str, Any], entry: dict[str, Any]
) -> tuple[Segment, Deletions | None]:
    """A segment of a manifest and its deletions, opened, or shared with an older state."""
    folder, deleted = path / entry["name"], entry["deleted"]
    try:
        segment = before.get(folder) or Segment(folder, entry, texts=manifest.get("ciff") is None)
        return segment, None if deleted is None else Deletions.read(folder / deleted["name"], segment, deleted)
    except IndexFormatError as error:
        if "shards" not in manifest:
            raise
        raise IndexFormatError(f"shard {shard_of(entry)} of {manifest['shards']}: {error}") from error


def stored_analyzer(path: Path, manifest: dict[str, Any], analyzer: Any) -> Analyzer:
    """The analyzer of the manifest, with the function or as the analyzer of the argument, if it is the same."""
    try:
        stored = Analyzer.from_dict(manifest["analyzer"])
    except ParameterError as error:
        raise IndexFormatError(f"{path / MANIFEST}: {error}; {REMEDY}") from error
    if analyzer is None:
        return stored
    if callable(analyzer) and not isinstance(analyzer, Analyzer):
        try:
            return stored.with_tokenizer(analyzer)
        except ParameterError as error:
            raise ParameterError(f"{path} was made with another analyzer: {error}; {ANALYZER}") from error
    named = Analyzer.of(analyzer)
    if {**named.to_dict(), "libraries": None} != {**manifest["analyzer"], "libraries": None}:
        raise ParameterError(f"{path} was made with another analyzer; {ANALYZER}")
    return named
