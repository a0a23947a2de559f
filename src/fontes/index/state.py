"""A state of an index: its segments as one, over the documents that live."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.progress import Report
from ..core.run import Ranking
from ..core.strings import Strings
from ..core.values import Doc, Topic
from ..storage.arrays import REMEDY
from ..storage.files import write
from ..storage.hashes import hash_json
from ..text import Analyzer, Snippet
from ..text.snippets import snippets
from .batches import content
from .build import IndexSettings, TermWeights
from .ciff import ciff_messages
from .columns import Schema, facets_of
from .embeddings.encoding import VECTORS
from .embeddings.store import VectorStore
from .embeddings.weights import WEIGHTS
from .factory import StageMethod, stage_method, stage_methods
from .facts import facts_of
from .files import MANIFEST, check_contents, check_sizes, is_same_state, manifest_file, read_manifest, shard_of
from .postings import POSTINGS, JoinedLists, PostingLists
from .segment import Deletions, Leaf, Segment, leaves_of
from .shards import readable
from .tables import joined, located

ANALYZER = "leave analyzer out, or give the one it was made with"

if TYPE_CHECKING:
    from ..core.run import Run
    from ..lexical import BM25, RM3, TFIDF, CausalFeedback, LearnedSparse, QueryLikelihood
    from ..neural.dense.dense import Dense
    from ..neural.dense.settings import encoder_of
    from ..neural.encode import encode as encode_documents
    from ..neural.encoders.base import Encoder
    from ..neural.late.late import Late
    from ..neural.sparse.retriever import SpladeRetriever
    from ..neural.sparse.splade import SparseEncoder
    from .embeddings.vectors import JoinedEmbeddings
    from .embeddings.weights import JoinedWeights, WeightLists


class Searchers(Protocol):
    """Those who hold the shards of an index, and search them for it."""

    def run(self, stage: Any, method: str, arguments: Sequence[Any], progress: Report) -> Run:
        """The best documents of all shards: the results of a stage's method, called with these arguments over each."""
        ...


class State:
    """The content of an index at one time. It never changes; `Index.refresh` opens a newer state.

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

    def __init__(self, path: Path, manifest: dict[str, Any], analyzer: Analyzer, before: State | None = None) -> None:
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
        self._vectors = VectorStore(path, self.leaves)
        self.actors: Searchers | None = None if before is None else before.actors
        self.missing: list[dict[str, Any]] = manifest.get("missing", [])
        self._partial = False

    @classmethod
    def newest(
        cls,
        path: Path,
        analyzer_of: Callable[[dict[str, Any]], Analyzer],
        before: State | None = None,
        *,
        partial: bool = False,
        verify: bool = False,
    ) -> State:
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

    def refreshed(self) -> State:
        """The newest state of its index: itself where there is no newer one.

        Raises:
            IndexFormatError: There is no index any more, or a damaged one.
            FontesError: In its place is an index that was made with another analyzer.
        """
        if is_same_state(read_manifest(self.path), self.manifest) and not self.missing:
            return self
        newest = State.newest(self.path, self._same_analyzer, self, partial=self._partial)
        return self if is_same_state(newest.manifest, self.manifest) else newest

    def _same_analyzer(self, manifest: dict[str, Any]) -> Analyzer:
        if {**manifest["analyzer"], "libraries": None} != {**self.manifest["analyzer"], "libraries": None}:
            raise FontesError(f"{self.path} was replaced by an index with another analyzer; open it again")
        return self.analyzer

    @property
    def form(self) -> IndexSettings:
        """The settings of the index: its analyzer and fields."""
        weights = None if self.scale is None else TermWeights(self.fields[0])
        return IndexSettings(self.analyzer, self.fields, weights, tuple(self.manifest.get("components", ())))

    if TYPE_CHECKING:  # what `__getattr__` gives, for those who read types
        bm25 = StageMethod(BM25)
        tfidf = StageMethod(TFIDF)
        ql = StageMethod(QueryLikelihood)
        learned_sparse = StageMethod(LearnedSparse)
        rm3 = StageMethod(RM3)
        causal_feedback = StageMethod(CausalFeedback)
        dense = StageMethod(Dense)
        late = StageMethod(Late)
        splade = StageMethod(SpladeRetriever)
        encode = StageMethod(encode_documents)
        encoder = StageMethod(encoder_of)
    else:

        def __getattr__(self, name: str) -> Any:
            return MethodType(stage_method(name), self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *stage_methods()})

    @property
    def state(self) -> State:
        """Itself, as the state of an `Index`."""
        return self

    @cached_property
    def identity(self) -> str:
        """A digest of the fingerprint and of the folders' names, which tells equal states of one index apart."""
        return hash_json([self.fingerprint, self.manifest["segments"]])

    @cached_property
    def name(self) -> str:
        """The name of the directory without its ending: "papers" of `papers.index`."""
        return self.path.absolute().stem

    @property
    def vectors(self) -> VectorStore:
        """The vectors and term weights that encoders made of its documents."""
        return self._vectors

    @cached_property
    def ids(self) -> Strings:
        """The document ids, in the order of the documents."""
        return joined(
            [leaf.segment.ids for leaf in self.leaves], [None if leaf.dead is None else leaf.live for leaf in self.leaves]
        )

    @cached_property
    def _lists(self) -> PostingLists | JoinedLists:
        return POSTINGS.join(self.leaves, [leaf.segment.lists for leaf in self.leaves], {})

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
        """The number of a term: its place in `terms`, from 0; -1 for a term that the index does not have."""
        return self._lists.term_number(term)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms with these numbers, end to end.

        Returns:
            The ordinals of the documents, ascending within a term, and the term frequencies; as many of each as the terms' `df`
            together.
        """
        return self._lists.postings(np.asarray(terms))

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids.

        Raises:
            InputError: For an id that is not in the index.
        """
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
        """The document with this id.

        Raises:
            InputError: Where there is none.
        """
        return self.docs([doc_id])[0]

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """The terms of the documents with these ids, from their stored text.

        Raises:
            InputError: For an unknown id.
        """
        return self.analyzer.many([content(doc, self.fields) for doc in self.docs(ids)])

    def ordinal(self, doc_id: str) -> int:
        """The number of a document in the index: its place in `ids`, from 0.

        Raises:
            InputError: Where there is no such id.
        """
        ordinal = self.ids.find(doc_id)
        if ordinal < 0:
            raise InputError(f"document '{doc_id}' is not in the index {self.path}")
        return ordinal

    def ordinals(self, ids: Strings) -> NDArray[np.int64]:
        """The ordinals of the documents with these ids; -1 for one that is not there."""
        return located(ids, self.ids)

    def check(self, deep: bool = False) -> None:
        """Reads every file.

        Args:
            deep: Whether each part is compared with the others as well: postings with counts and lengths, deletions with
                postings, norms with vectors, the order of ids and terms.

        Raises:
            IndexFormatError: Where anything is not as it was written, or does not fit together.
        """
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
            leaf.segment.columns.require(self.schema.types)
        self._vectors.check(deep)

    def require_all(self) -> None:
        """Raises IndexFormatError where a shard is missing."""
        for shard in self.missing:
            raise IndexFormatError(f"shard {shard['shard']} of {self.manifest['shards']} cannot be read: {shard['problem']}")

    @property
    def provenance(self) -> dict[str, Any]:
        """The provenance of a run over this state: the path, the fingerprint, and the shards that are missing."""
        missing = {"missing": self.missing} if self.missing else {}
        return {"index": str(self.path), "fingerprint": self.fingerprint, **missing}

    def info(self) -> dict[str, Any]:
        """Facts of the index: counts, analyzer, sizes on disk in bytes, fingerprint."""
        return facts_of(self)

    @cached_property
    def is_sound(self) -> bool:
        """Whether its files are what its fingerprint says; only then what is worked out from them may be kept under it."""
        try:
            check_contents(self.path, self.manifest)
        except IndexFormatError:
            return False
        return True

    @property
    def columns(self) -> dict[str, str]:
        """The keys of the metadata that filters compare and facets count, each with its type, in ascending order."""
        return self.schema.columns

    def facets(
        self, *columns: str, docs: NDArray[np.integer[Any]] | Strings | None = None, bins: int | None = None
    ) -> dict[str, dict[Any, int]]:
        """How many documents have each value of some columns.

        Args:
            *columns: Names of columns.
            docs: The documents that count, by their ordinals or their ids; None: all.
            bins: Count numbers and dates in at most so many bins of equal width, whose keys are pairs of their first and last
                value; None: each value for itself.

        Returns:
            For each column its values with their counts, the most frequent first, equal ones in ascending order; bins in
            ascending order. A document counts once for each keyword of a list, and not at all where it has no value.

        Raises:
            ParameterError: There is no such column, or `bins` is below 1.
            InputError: A document is not in the index.
        """
        if isinstance(docs, Strings):
            ids, docs = docs, self.ordinals(docs)
            if len(absent := np.flatnonzero(docs < 0)):
                raise InputError(f"document '{ids[int(absent[0])]}' is not in the index {self.path}")
        return facets_of(self, np.arange(len(self)) if docs is None else docs, columns, bins)

    def embeddings(self, encoder: Encoder, dtype: str | None = None) -> JoinedEmbeddings:
        """The documents' vectors by `encoder`, the most exact ones where `dtype` is None.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        return self._vectors.of(VECTORS, encoder, dtype)

    def weights(self, encoder: SparseEncoder) -> WeightLists | JoinedWeights:
        """The weights of terms that a learned sparse encoder gave the documents.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        return self._vectors.of(WEIGHTS, encoder)

    @property
    def has_texts(self) -> bool:
        """Whether it holds the documents' texts, which an index that was made of a CIFF file does not."""
        return self.ciff is None

    def export(self, path: str | Path, description: str | None = None) -> None:
        """Writes a CIFF file: the terms, their postings, the lengths and the ids of the documents that live; no text.

        Args:
            path: The file, packed where its name ends in .gz; "-" is standard output.
            description: What its header says of it; None names the analyzer, or is what the CIFF file said that it was made of.

        Raises:
            InputError: The file cannot be written.
        """
        write(path, ciff_messages(self, description))

    def snippet(self, query: str, doc: Doc) -> Snippet:
        """The piece of a document's text that fits a query best, and where it matches."""
        return self.snippets([(query, doc)])[0]

    def snippets(self, pairs: Sequence[tuple[str, Doc]]) -> list[Snippet]:
        """The snippets of several queries with a document each, which takes much less time than one after the other."""
        analyzer = self.analyzer
        queries = list(dict.fromkeys(query for query, _ in pairs))
        terms = dict(zip(queries, map(frozenset, analyzer.many(queries)), strict=True))
        return snippets(analyzer, [(doc.text, terms[query]) for query, doc in pairs])

    def marked(self, query: str, doc: Doc) -> str:
        """The title of a document and the piece of its text that fits a query best, as HTML, the query's terms in bold."""
        title = f"<i>{escape(doc.title)}</i> " if doc.title else ""
        return title + self.snippet(query, doc).html("<b>", "</b>")

    def search(self, query: str | Topic, k: int = 10) -> Ranking:
        """The best `k` documents for one query by BM25 as it comes: the same as `index.bm25().search(query, k)`."""
        return self.bm25().search(query, k)

    def count(self, name: str) -> int:
        """The sum of a count of the segments, without what is deleted."""
        return sum(s[name] - (s["deleted"][name] if s["deleted"] else 0) for s in self.manifest["segments"])

    def __len__(self) -> int:
        return sum(leaf.documents for leaf in self.leaves)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.ids

    def __repr__(self) -> str:
        return f"State('{self.path}', {len(self)} documents)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.path.absolute(), self.analyzer)


def _again(path: Path, analyzer: Analyzer) -> State:
    """The newest state of the index in a directory, in another process."""
    return State.newest(path, lambda manifest: analyzer)


def _opened(
    path: Path, before: dict[Path, Segment], manifest: dict[str, Any], entry: dict[str, Any]
) -> tuple[Segment, Deletions | None]:
    """A segment of a manifest and its deletions, opened, or shared with an older state."""
    folder, deleted = path / entry["name"], entry["deleted"]
    try:
        segment = before.get(folder) or Segment(folder, entry, texts=manifest.get("ciff") is None)
        return segment, None if deleted is None else Deletions.read(folder / deleted["name"], segment.lists, deleted)
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
