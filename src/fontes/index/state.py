"""State of an index: its segments, and what they hold together."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.arrays import Int64s, Ints
from ..core.checks import check_id
from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.query import Leaf as Clause
from ..core.strings import Strings
from ..core.values import Doc, Topic, added_terms
from ..storage.arrays import REMEDY
from ..storage.files import write
from ..storage.hashes import hash_json
from ..storage.temporary import TemporaryFolder
from ..text import Analyzer, Snippet
from ..text.snippets import clause_snippet, snippets
from .batches import content, field_contents
from .columns import Schema, facets_of
from .embeddings.encoding import VECTORS
from .embeddings.store import VectorStore
from .embeddings.weights import WEIGHTS
from .facts import facts_of
from .field_statistics import FIELDS
from .files import MANIFEST, check_contents, check_sizes, is_same_state, manifest_file, read_manifest, shard_of
from .parts import Searchable
from .positions import POSITIONS
from .postings import SegmentLists
from .segment import Deletions, Leaf, Segment, leaves_of
from .settings import IndexSettings, TermWeights
from .shards import readable_manifest
from .tables import find_positions

ANALYZER = "leave analyzer out, or give the one it was made with"

if TYPE_CHECKING:
    from ..core.run import Run
    from .embeddings.vectors import JoinedEmbeddings
    from .embeddings.weights import DocumentWeights


class Searchers(Protocol):
    """Processes that hold the shards of an index and search them."""

    def run(self, stage: object, method: str, arguments: Sequence[object]) -> Run:
        """Call a stage's method with these arguments on each shard, and merge the best documents of all shards."""
        ...


class ModelOfVectors(Protocol):
    """An encoder, dense or sparse."""

    @property
    def fingerprint(self) -> str:
        """Identifies everything that changes its vectors of documents."""
        ...


class State(Searchable):
    """Content of an index at one time. It never changes; `Index.refresh` opens a newer state.

    Ordinals count the living documents from 0, in their order.

    Attributes:
        path: The directory.
        manifest: The manifest of the state.
        analyzer: Makes the terms of documents and queries.
        fields: The indexed fields of each document.
        scale: Factor of the stored term weights; None for an index of texts.
        schema: Metadata columns and their types.
        ciff: Header of the CIFF file from which the index was made; None for an index of documents.
        fingerprint: SHA-256 of the state's content.
        leaves: Segments with documents.
        actors: Processes that hold and search the shards; None if this process does.
        missing: "shard", "documents" and "problem" of each unreadable shard that was left out.
        vectors: Encoders' vectors and term weights of the documents.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    path: Path
    manifest: dict[str, Any]
    analyzer: Analyzer
    fields: tuple[str, ...]
    scale: float | None
    schema: Schema
    ciff: dict[str, Any] | None
    fingerprint: str
    leaves: tuple[Leaf, ...]
    actors: Searchers | None
    missing: list[dict[str, Any]]
    vectors: VectorStore

    def __init__(self, path: Path, manifest: dict[str, Any], analyzer: Analyzer, older: State | None = None) -> None:
        """Use `Index.open`; `older` is an older state whose open segments are shared."""
        self.path, self.manifest, self.analyzer = path, manifest, analyzer
        self._temporary = TemporaryFolder.around(path)  # which lives as long as the state
        self.fields = tuple(manifest["fields"])
        self.scale = manifest["scale"]
        self.schema = Schema.read(manifest["columns"])
        self.fingerprint = manifest["fingerprint"]
        opened = {} if older is None else {leaf.segment.folder: leaf.segment for leaf in older.leaves}
        self.ciff = manifest.get("ciff")
        self.leaves = leaves_of(_open_segment(path, opened, manifest, entry) for entry in manifest["segments"])
        self.vectors = VectorStore(path, self.leaves)
        self.actors = None if older is None else older.actors
        self.missing = manifest.get("missing", [])
        self._partial = False

    @classmethod
    def newest(
        cls,
        path: Path,
        analyzer_of: Callable[[dict[str, Any]], Analyzer],
        older: State | None = None,
        *,
        partial: bool = False,
        verify: bool = False,
    ) -> State:
        """Open the newest state of the index in a directory.

        Args:
            path: The directory.
            analyzer_of: Makes the analyzer that a manifest names.
            older: An older state whose open segments are shared.
            partial: Leave out shards that cannot be read.
            verify: Read every file first.

        Raises:
            IndexFormatError: The index is absent, damaged, or of another format version.
        """
        while True:
            file_id = manifest_file(path)
            manifest = read_manifest(path)
            try:
                if partial:
                    manifest = readable_manifest(path, manifest, verify, functools.partial(_open_segment, path, {}, manifest))
                else:
                    check_sizes(path, manifest)
                state = cls(path, manifest, analyzer_of(manifest), older)
                state._partial = partial
                if verify and not partial:
                    state.check()
                return state
            except (IndexFormatError, FileNotFoundError):
                # Another process may have replaced the manifest meanwhile, perhaps by an equal one: try again.
                if manifest_file(path) == file_id:
                    raise

    def refreshed(self) -> State:
        """Return the newest state of the index, or itself if none is newer.

        Raises:
            IndexFormatError: The index is gone or damaged.
            FontesError: It was replaced by an index with another analyzer.
        """
        if is_same_state(read_manifest(self.path), self.manifest) and not self.missing:
            return self
        newest = State.newest(self.path, self._same_analyzer, self, partial=self._partial)
        return self if is_same_state(newest.manifest, self.manifest) else newest

    def _same_analyzer(self, manifest: dict[str, Any]) -> Analyzer:
        if {**manifest["analyzer"], "libraries": None} != {**self.manifest["analyzer"], "libraries": None}:
            raise FontesError(f"{self.path} was replaced by an index with another analyzer; open it again")
        return self.analyzer

    @cached_property
    def settings(self) -> IndexSettings:
        """Settings of the index: analyzer and fields."""
        weights = None if self.scale is None else TermWeights(self.fields[0])
        return IndexSettings(self.analyzer, self.fields, weights, tuple(self.manifest.get("components", ())))

    @property
    def state(self) -> State:
        """The state itself, as for an `Index`."""
        return self

    @cached_property
    def identity(self) -> str:
        """Digest of the fingerprint and folder names, which differs between equal states of one index."""
        return hash_json([self.fingerprint, self.manifest["segments"]])

    @cached_property
    def name(self) -> str:
        """Name of the directory without its ending: "papers" for `papers.index`."""
        return self.path.absolute().stem

    def lists_of(self, leaf: Leaf) -> SegmentLists:
        return leaf.segment.lists

    @cached_property
    def tokens(self) -> int:
        """Number of terms of all documents together; for an index of CIFF, the count in its header."""
        if self.ciff is None or self.ciff["surplus"] is None:
            return self.count("tokens")
        return int(self.lengths.sum(dtype=np.int64)) + int(self.ciff["surplus"])

    @property
    def separate(self) -> tuple[str, ...]:
        """Names of the fields whose frequencies and lengths are stored separately; () without any."""
        return self.fields if self._has(FIELDS.name) else ()

    def require_fields(self) -> None:
        """Raise ParameterError unless fields are stored separately."""
        if not self._has(FIELDS.name):
            raise ParameterError(f"{self.path} keeps no separate fields; build it with separate=True (--separate)")
        if any(FIELDS.of(leaf.segment).lengths.shape[1] != len(self.fields) for leaf in self.leaves):
            raise IndexFormatError(f"{self.path} is damaged: its segments have several numbers of fields; {REMEDY}")

    @property
    def has_positions(self) -> bool:
        """Whether positions of terms are stored, which phrases need."""
        return self._has(POSITIONS.name)

    def positions_remedy(self, name: str = "") -> str:
        """How to have positions in this index, for messages; `name` stands for its path."""
        if self.has_texts and self.settings.allows_positions:
            return f"fontes merge {name or shlex.quote(str(self.path))} --positions (index.merge(positions=True)) adds them"
        return "build it with positions=True (--positions), from texts and with an analyzer without n-grams"

    def require_positions(self) -> None:
        """Raise ParameterError unless positions are stored."""
        if not self.has_positions:
            raise ParameterError(f"{self.path} keeps no positions; {self.positions_remedy()}")

    def _has(self, component: str) -> bool:
        """Whether all documents have a component that was built with them."""
        return component in self.manifest.get("components", ()) and all(
            component in leaf.segment.opened for leaf in self.leaves
        )

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """Return the documents with these ids.

        Raises:
            InputError: An id is not in the index.
        """
        ids = list(ids)
        return self.documents(ids, [self.ordinal(doc_id) for doc_id in ids])

    def documents(self, ids: Sequence[str], ordinals: Sequence[int]) -> list[Doc]:
        """Return the documents with these ids and ordinals; raises as `DocumentStore.read`."""
        docs: list[Doc] = [None] * len(ids)  # type: ignore[list-item]
        for leaf, rows, positions in self._by_leaf(ordinals):
            for i, doc in zip(rows, leaf.segment.texts.read([ids[i] for i in rows], positions), strict=True):
                docs[i] = doc
        return docs

    def text_bytes(self, ordinals: Sequence[int]) -> int:
        """Return the bytes of titles, texts and metadata of the documents with these ordinals."""
        return sum(leaf.segment.texts.bytes_of(positions) for leaf, _, positions in self._by_leaf(ordinals))

    def _by_leaf(self, ordinals: Sequence[int]) -> Iterator[tuple[Leaf, list[int], list[int]]]:
        """Yield each leaf with some of the documents, their positions in `ordinals`, and in the segment."""
        firsts = [leaf.first for leaf in self.leaves]
        numbers = np.searchsorted(firsts, np.asarray(ordinals, dtype=np.int64), side="right") - 1
        for number in sorted(set(numbers.tolist())):  # numpy.unique would load numpy.ma
            leaf, rows = self.leaves[number], np.flatnonzero(numbers == number).tolist()
            positions = [ordinals[i] - leaf.first for i in rows]
            yield leaf, rows, positions if leaf.dead is None else leaf.live[positions].tolist()

    def doc(self, doc_id: str) -> Doc:
        """Return the document with this id.

        Raises:
            InputError: The id is not in the index.
        """
        return self.docs([doc_id])[0]

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """Return the terms of the documents with these ids, from their stored text.

        Raises:
            InputError: An id is not in the index.
        """
        return self.analyzed_docs(self.docs(ids))

    def analyzed_docs(self, docs: Sequence[Doc]) -> list[list[str]]:
        """Return the terms of documents of the index."""
        if not self.settings.apart:
            return self.analyzer.many([content(doc, self.fields) for doc in docs])
        terms = iter(self.analyzer.many([text for doc in docs for text in field_contents(doc, self.fields)]))
        return [list(chain.from_iterable(islice(terms, len(self.fields)))) for _ in docs]

    def ordinal(self, doc_id: str) -> int:
        """Position of a document in `ids`.

        Raises:
            InputError: The id is not in the index.
            ParameterError: It is no string.
        """
        check_id(doc_id)
        ordinal = self.ids.find(doc_id)
        if ordinal < 0:
            raise InputError(f"document '{doc_id}' is not in the index {self.path}")
        return ordinal

    def ordinals(self, ids: Strings) -> Int64s:
        """Ordinals of the documents with these ids; -1 for unknown ids."""
        return find_positions(ids, self.ids)

    def ordinals_in(self, run: Run, user: str) -> Ints:
        """Return the ordinal of each row's document in a run.

        Raises:
            InputError: A document is not in the index; `user`, such as a stage, is named.
        """
        if run.ids is self.ids:
            return run.codes
        used, rows = np.unique(run.codes, return_inverse=True)
        ordinals = self.ordinals(run.ids.reordered(used))
        if len(absent := np.flatnonzero(ordinals < 0)):
            doc_id = run.ids[int(used[absent[0]])]
            raise InputError(f"{user}: document '{doc_id}' of the run is not in the index {self.path}")
        return ordinals[rows]

    def check(self, deep: bool = False) -> None:
        """Read every file.

        Args:
            deep: Also compare postings with counts, lengths and deletions, and norms with vectors; check the order of ids and
                terms.

        Raises:
            IndexFormatError: A file has changed, or the parts do not fit together.
        """
        self.require_all()
        try:
            check_contents(self.path, self.manifest)
        except IndexFormatError:
            if is_same_state(read_manifest(self.path), self.manifest):
                raise
            raise FontesError(f"{self.path} has changed since it was opened; index.refresh() reads its newest state") from None
        for leaf in self.leaves if deep else ():
            leaf.check()
            leaf.segment.columns.require(self.schema.types)
        self.vectors.check(deep)

    def require_all(self) -> None:
        """Raise IndexFormatError if a shard is missing."""
        for shard in self.missing:
            raise IndexFormatError(f"shard {shard['shard']} of {self.manifest['shards']} cannot be read: {shard['problem']}")

    @property
    def provenance(self) -> dict[str, Any]:
        """Provenance of a run over this state: path, fingerprint, missing shards."""
        missing = {"missing": self.missing} if self.missing else {}
        return {"index": str(self.path), "fingerprint": self.fingerprint, **missing}

    def info(self) -> dict[str, Any]:
        """Facts of the index: counts, analyzer, sizes in bytes, fingerprint."""
        return facts_of(self)

    @cached_property
    def is_sound(self) -> bool:
        """Whether the files match the fingerprint; only then may derived data be cached under it."""
        try:
            check_contents(self.path, self.manifest)
        except IndexFormatError:
            return False
        return True

    @property
    def columns(self) -> dict[str, str]:
        """Metadata columns for filters and facets, with their types, in ascending order."""
        return self.schema.columns

    def facets(self, *columns: str, docs: Ints | Strings | None = None, bins: int | None = None) -> dict[str, dict[Any, int]]:
        """Count the documents with each value of some columns.

        Args:
            *columns: Names of columns.
            docs: Documents to count, by ordinals or ids; None: all.
            bins: Most equal-width bins for numbers and dates, keyed by pairs of first and last value; None: no bins.

        Returns:
            For each column its values with their counts, most frequent first, ties in ascending order; bins in ascending order.
            A document counts once for each keyword of a list, and not at all without a value.

        Raises:
            ParameterError: There is no such column, or `bins` is below 1.
            InputError: A document is not in the index.
        """
        if isinstance(docs, Strings):
            ids, docs = docs, self.ordinals(docs)
            if len(absent := np.flatnonzero(docs < 0)):
                raise InputError(f"document '{ids[int(absent[0])]}' is not in the index {self.path}")
        return facets_of(self, np.arange(len(self)) if docs is None else docs, columns, bins)

    def embeddings(self, encoder: ModelOfVectors, dtype: str | None = None) -> JoinedEmbeddings:
        """Return the vectors of the documents by `encoder`, the most exact ones if `dtype` is None.

        Raises:
            ParameterError: There are none.
            IndexFormatError: They are damaged.
        """
        return self.vectors.of(VECTORS, encoder, dtype)

    def weights(self, encoder: ModelOfVectors) -> DocumentWeights:
        """Return the term weights of the documents by a learned sparse encoder.

        Raises:
            ParameterError: There are none.
            IndexFormatError: They are damaged.
        """
        return self.vectors.of(WEIGHTS, encoder)

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the documents' texts; one made from a CIFF file does not."""
        return self.ciff is None

    def export(self, path: str | Path, description: str | None = None) -> None:
        """Write a CIFF file: terms, postings, lengths and ids of the living documents, without texts.

        Args:
            path: The file, compressed where its name ends in .gz; "-" is standard output.
            description: Description for the header; None: the one of the original CIFF file, or the analyzer's name.

        Raises:
            InputError: The file cannot be written.
        """
        from .ciff import ciff_messages

        write(path, ciff_messages(self, description))

    def snippet(self, query: str | Topic, doc: Doc) -> Snippet:
        """Return the passage of a document's text that fits a query best, with its matches."""
        return self.snippets([(query, doc)])[0]

    def snippets(self, pairs: Sequence[tuple[str | Topic, Doc]]) -> list[Snippet]:
        """Return snippets of several (query, document) pairs, much faster than one at a time.

        Snippets match the clauses of a topic's structured query, otherwise its text.
        """
        analyzer = self.analyzer
        plain = [(query if isinstance(query, str) else query.text, query, doc) for query, doc in pairs if not _clauses(query)]
        queries = list(dict.fromkeys(text for text, _, _ in plain))
        terms = dict(zip(queries, map(frozenset, analyzer.many(queries)), strict=True))
        added = [frozenset[str]() if isinstance(query, str) else added_terms(query) for _, query, _ in plain]
        texts = [(doc.text, terms[text] | more) for (text, _, doc), more in zip(plain, added, strict=True)]
        plain_snippets = iter(snippets(analyzer, texts))
        return [
            clause_snippet(analyzer, doc.text, clauses) if (clauses := _clauses(query)) else next(plain_snippets)
            for query, doc in pairs
        ]

    def marked(self, query: str | Topic, doc: Doc) -> str:
        """Title and best passage of a document as HTML, with the query terms in bold."""
        title = f"<i>{escape(doc.title)}</i> " if doc.title else ""
        return title + self.snippet(query, doc).html("<b>", "</b>")

    def count(self, name: str) -> int:
        """Sum of a count over the segments, without deleted documents."""
        return sum(
            segment[name] - (segment["deleted"][name] if segment["deleted"] else 0) for segment in self.manifest["segments"]
        )

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.ids

    def __repr__(self) -> str:
        return f"State('{self.path}', {len(self)} documents)"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self.path.absolute(), self.analyzer)


def _clauses(query: str | Topic) -> tuple[Clause, ...]:
    return () if isinstance(query, str) or query.query is None else tuple(query.query.scored)


def _reopen(path: Path, analyzer: Analyzer) -> State:
    """Open the newest state of an index, in another process."""
    return State.newest(path, lambda manifest: analyzer)


def _open_segment(
    path: Path, open_segments: dict[Path, Segment], manifest: dict[str, Any], entry: dict[str, Any]
) -> tuple[Segment, Deletions | None]:
    """Open a segment of a manifest with its deletions; an older state's open segment is shared."""
    folder, deleted = path / entry["name"], entry["deleted"]
    try:
        segment = open_segments.get(folder) or Segment(folder, entry, texts=manifest.get("ciff") is None)
        return segment, None if deleted is None else Deletions.read(folder / deleted["name"], segment.lists, deleted)
    except IndexFormatError as error:
        if "shards" not in manifest:
            raise
        raise IndexFormatError(f"shard {shard_of(entry)} of {manifest['shards']}: {error}") from error


def stored_analyzer(path: Path, manifest: dict[str, Any], analyzer: Any) -> Analyzer:
    """Return the analyzer in the manifest, or `analyzer` if it equals that one; raise ParameterError if it does not."""
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
    requested = Analyzer.of(analyzer).as_version(stored.version)
    if {**requested.to_dict(), "libraries": None} != {**manifest["analyzer"], "libraries": None}:
        raise ParameterError(f"{path} was made with another analyzer; {ANALYZER}")
    return requested
