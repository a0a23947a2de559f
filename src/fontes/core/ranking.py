"""Rankings and their sort order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any, TypeAlias, overload

import numpy as np

from .arrays import Float32s, Int32s, Ints, UInt32s, UInt64s
from .checks import check_key
from .errors import InputError, ParameterError, PipelineError
from .html import of_ranking
from .strings import Strings
from .tabular import Tabular
from .values import Doc, Documents, Hit, Topic, tolerated

SNIPPET = 240  # characters of a snippet if `documents` has no method `snippets`
PAGE = 10  # number of hits whose documents and snippets are read together
NO_FACETS: Mapping[str, dict[Any, int]] = MappingProxyType({})
MAX_COUNTED = 1000  # default limit of `total_up_to`
Counter: TypeAlias = Callable[..., int]
"""Counts all documents that match; with a number, as `Stage.count` with `up_to`."""


class Ranking(Tabular, Sequence[Hit]):
    """The documents of one topic, best first.

    Attributes:
        offset: Number of documents before the first, which are left out.
        scores: float32, best first.
        documents: Source of the documents' text, or None.
    """

    __slots__ = (
        "_codes",
        "_docs",
        "_facets",
        "_ids",
        "_matches",
        "_pieces",
        "_topic",
        "_total",
        "documents",
        "offset",
        "scores",
    )

    def __init__(
        self,
        topic: Topic | str,
        ids: Strings,
        codes: Int32s,
        scores: Float32s,
        documents: Documents | None = None,
        matches: Callable[[], Ints] | None = None,
        total: int | Counter | None = None,
        offset: int = 0,
    ) -> None:
        self._topic = topic
        self.offset = offset
        self._ids = ids
        self._codes = codes
        self.scores = scores
        self.documents = documents
        self._matches = matches
        self._total = total
        self._docs: dict[int, list[Doc]] | None = None  # of pages, by the position of the first hit
        self._pieces: dict[int, list[str]] | None = None
        self._facets: Mapping[str, dict[Any, int]] = NO_FACETS

    @property
    def topic(self) -> Topic:
        """The topic."""
        if isinstance(self._topic, str):
            self._topic = Topic("1", self._topic)
        return self._topic

    @property
    def ids(self) -> list[str]:
        """Document ids, best first."""
        return self._ids.take(self._codes)

    @property
    def has_texts(self) -> bool:
        """Whether document texts can be read; an index of statistics alone has none."""
        return self.documents is not None and bool(getattr(self.documents, "has_texts", True))

    @property
    def total(self) -> int:
        """Number of all documents that match the topic, beyond the k of this ranking; of a run without its retriever, its own.

        It is counted when read.

        Raises:
            PipelineError: There is no such number; see `Stage.count`.
        """
        if self._total is None:
            self._total = self.offset + len(self) if self._matches is None else len(self._matches())
        elif not isinstance(self._total, int):
            self._total = self._total()
        return self._total

    def total_up_to(self, most: int = MAX_COUNTED) -> int:
        """Return `total`, but `most` + 1 for any greater number, which a lexical retriever finds without counting further.

        Raises:
            PipelineError: As `total`.
        """
        if self._total is None or isinstance(self._total, int):
            return min(self.total, most + 1)
        return self._total(most)

    def page(self, offset: int, total: Counter) -> Ranking:
        """Return the ranking without its first `offset` documents; `total` counts all documents that match."""
        columns = self._ids, self._codes[offset:], self.scores[offset:]
        return Ranking(self._topic, *columns, self.documents, self._matches, total, self.offset + offset)

    def top(self, k: int) -> Ranking:
        """Return the ranking of the best `k` documents."""
        return Ranking(self._topic, self._ids, self._codes[:k], self.scores[:k], self.documents)

    def docs(self) -> list[Doc]:
        """Return the documents, best first.

        Raises:
            InputError: The run has no `documents`.
        """
        return docs_of([self])[0]

    def metadata(self) -> list[Mapping[str, Any]]:
        """Return the metadata of the documents, best first; raises as `docs`."""
        return [doc.metadata for doc in self.docs()]

    def snippets(self, before: str = "**", after: str = "**") -> list[str]:
        """Return the text passage of each document that best fits the topic, best document first; raises as `docs`.

        Args:
            before: Text before a matching word.
            after: Text after it.
        """
        return self._snippets(self.docs(), before, after)

    def _snippets(self, docs: list[Doc], before: str = "**", after: str = "**") -> list[str]:
        snippets: Any = getattr(self._source(), "snippets", None)
        if snippets is None:
            return [doc.text[:SNIPPET] for doc in docs]
        query = self.topic if self.topic.query or tolerated(self.topic) else self.topic.text
        return [piece.marked(before, after) for piece in snippets([(query, doc) for doc in docs])]

    def _doc_at(self, position: int) -> Doc:
        """The document at a position, counted from 0."""
        try:
            return self._docs_around(position)[position % PAGE]
        except InputError:  # perhaps of another document of the page
            (doc,) = self._source().docs([self._ids[int(self._codes[position])]])
            return doc

    def _snippet_at(self, position: int) -> str:
        """The snippet at a position, counted from 0."""
        pages = self._pieces = {} if self._pieces is None else self._pieces
        first = position - position % PAGE
        if first not in pages:
            try:
                pages[first] = self._snippets(self._docs_around(position))
            except InputError:
                return self._snippets([self._doc_at(position)])[0]
        return pages[first][position % PAGE]

    def _docs_around(self, position: int) -> list[Doc]:
        """The documents of the page that contains a position."""
        pages = self._docs = {} if self._docs is None else self._docs
        first = position - position % PAGE
        if first not in pages:
            page = slice(first, first + PAGE)
            pages[first] = Ranking(self._topic, self._ids, self._codes[page], self.scores[page], self.documents).docs()
        return pages[first]

    def to_columns(self, *, text: bool = False, columns: Sequence[str] = ()) -> dict[str, Any]:
        """Return the columns query_id, doc_id, score, rank (counted from 1).

        Args:
            text: Add the columns title and text.
            columns: Keys of the documents' metadata to add, with their stored values; None where a document has none.

        Raises:
            InputError: The run has no `documents`.
            ParameterError: No document has such a key, or it is the name of another column.
        """
        rows = {
            "query_id": [self.topic.id] * len(self),
            "doc_id": self.ids,
            "score": self.scores,
            "rank": np.arange(1, len(self) + 1) + self.offset,
        }
        return with_documents(rows, self.docs, text, columns)

    def with_facets(self, columns: Sequence[str], matches: Callable[[], Ints]) -> Ranking:
        """Return this ranking, whose `facets()` returns the counts of these columns, which are made now.

        Args:
            columns: Names of columns.
            matches: Returns the ordinals of all documents that match, or raises PipelineError: then this ranking's are counted.
        """
        if isinstance(columns, str):
            names = [name.strip() for name in columns.split(",")]
            raise ParameterError(f"facets is a list of columns: facets={names}")
        if self._matches is None and self.documents is not None:
            with suppress(PipelineError):
                docs = matches()
                self._matches = lambda: docs
        self._facets = self.facets(*columns)
        return self

    def facets(self, *columns: str, bins: int | None = None) -> dict[str, dict[Any, int]]:
        """Count the documents by their values in some columns of the index.

        Counts all documents that match the topic, beyond the k of this ranking, if a lexical retriever made it; of another
        ranking (of vectors, reranked, fused, read from a file) its own documents.

        Args:
            *columns: Names from `index.columns`; without any, the counts that `search(…, facets=…)` has made.
            bins: Greatest number of equal-width bins for numbers and dates; see `index.facets`.

        Returns:
            Counts by column and value, the most frequent first.

        Raises:
            InputError: The run has no `documents`, or they are not those of an index.
            ParameterError: The column is unknown.
        """
        if not columns:
            return dict(self._facets)
        documents: Any = self._source()
        if not hasattr(documents, "facets"):
            raise InputError("facets need the documents of an index; the documents of this run are not in one")
        docs = self._matches() if self._matches else Strings.of(self.ids)
        return dict(documents.facets(*columns, docs=docs, bins=bins))

    def _source(self) -> Documents:
        if self.documents is None:
            raise InputError("the run has no documents; set them with run.with_(documents=index)")
        return self.documents

    @overload
    def __getitem__(self, rank: int) -> Hit: ...
    @overload
    def __getitem__(self, rank: slice) -> list[Hit]: ...
    def __getitem__(self, rank: int | slice) -> Hit | list[Hit]:
        if isinstance(rank, slice):
            return list(self)[rank]
        if not -len(self) <= rank < len(self):
            raise IndexError(rank)
        rank %= len(self)
        hit = Hit(self._ids[int(self._codes[rank])], float(self.scores[rank]), self.offset + rank + 1)
        return hit if self.documents is None else hit._of(self)

    def __iter__(self) -> Iterator[Hit]:
        hits = map(Hit, self.ids, self.scores.tolist(), range(self.offset + 1, self.offset + len(self) + 1))
        return hits if self.documents is None else (hit._of(self) for hit in hits)

    def __len__(self) -> int:
        return len(self._codes)

    def __str__(self) -> str:
        return "\n".join(f"{hit.rank:>4}  {hit.score:>10.4f}  {hit.id}" for hit in self)

    def _repr_html_(self) -> str:
        return of_ranking(self)

    def __repr__(self) -> str:
        return f"Ranking({len(self)} documents for topic '{self.topic.id}')"


def with_documents(
    rows: dict[str, object], docs: Callable[[], list[Doc]], text: bool, columns: Sequence[str]
) -> dict[str, object]:
    """Add the title, text and metadata of each row's document to the columns of rows; see `Ranking.to_columns`."""
    if isinstance(columns, str):
        raise ParameterError(f"columns is a list of names: columns=['{columns}']")
    names = [*(("title", "text") if text else ()), *columns]
    if twice := sorted({name for name in names if name in rows or names.count(name) > 1}):
        raise ParameterError(f"columns: the rows have a column '{twice[0]}' already")
    documents = docs() if names else []
    for name in names:
        if name in ("title", "text"):
            rows[name] = [getattr(doc, name) for doc in documents]
            continue
        check_key("columns: no document of the run", name, (doc.metadata for doc in documents))
        rows[name] = [doc.metadata.get(name) for doc in documents]
    return rows


def docs_of(rankings: Sequence[Ranking], max_bytes: int | None = None) -> list[list[Doc]]:
    """Return the documents of each ranking, best first, reading those of one run together.

    Args:
        rankings: The rankings.
        max_bytes: Maximum bytes of documents of an index; None for no maximum.

    Raises:
        InputError: As `Ranking.docs`; or the documents have more bytes.
    """
    every: list[list[Doc]] = []
    for source, group in groupby(rankings, key=Ranking._source):
        members = list(group)
        state: Any = getattr(source, "state", None)
        if state is None or any(state.ids is not ranking._ids for ranking in members):
            every += [source.docs(ranking.ids) for ranking in members]
            continue
        codes = np.concatenate([ranking._codes for ranking in members])  # ordinals, so that no id is looked up
        ordinals = codes.tolist()
        if max_bytes is not None and (size := state.text_bytes(ordinals)) > max_bytes:
            raise InputError(
                f"the {len(ordinals):,} documents of the answer have {size:,} bytes, more than {max_bytes:,}; give a smaller k"
            )
        docs = iter(state.documents(state.ids.take(codes), ordinals))
        every += [list(islice(docs, len(ranking))) for ranking in members]
    return every


def order_keys(scores: Float32s, ranks: UInt32s) -> UInt64s:
    """Return uint64 keys whose descending order is descending scores, then descending ids.

    `ranks` are the positions of the ids in ascending order. -0.0 counts as 0.0.
    """
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))
    return (ordered.astype(np.uint64) << np.uint64(32)) | ranks.astype(np.uint64)
