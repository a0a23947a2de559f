"""The component of positions: the positions in its document of each posting's term."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Bytes, Int32s, Int64s, Ints
from ..core.errors import IndexFormatError
from ..core.strings import offsets_of
from ..storage.arrays import REMEDY, UNSIGNED, fixed
from . import postings
from .component import Described, components
from .inversion import chunks
from .payload_kernels import MAX_BYTES, count_phrase, measure_rows, pack_positions, unpack_positions
from .payload_lists import RowLists, bytes_of, merge_payload
from .payloads import Occurrences, Payload, PayloadWriter, Rows
from .postings import PostingLists

if TYPE_CHECKING:
    from .field_statistics import FieldLists
    from .payload_kernels import Spans, TermRows
    from .segment import Leaf, Segment

PositionRows = tuple[Int64s, Int32s]
GAP = 100  # positions between two fields, as in Lucene between two values of a field
NO_ROWS = np.zeros(0, np.int64)
NO_LIMITS = np.zeros((0, 2), np.int32)
ROWS_PER_OFFSET = 32  # rows of a term between two stored offsets


class PositionLists(RowLists):
    """The positions of a segment's terms in its documents, deleted ones too, for terms numbered as in its postings.

    Positions count the tokens of a document from 0. Dropped ones, such as stop words, count, and GAP between two fields.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, lists: PostingLists) -> None:
        super().__init__(folder, POSITIONS.name, lists)
        self.tokens = self.arrays.array("positions.tokens", UNSIGNED, lists.documents, None)
        self._rows: Bytes = fixed(self.rows)
        # The type of offsets, so that loops are compiled for few types.
        self._type = np.uint32 if len(self.rows) < 1 << 32 else np.uint64
        self._offsets: Ints = fixed(self.arrays.array("positions.offsets", UNSIGNED, None).astype(self._type, copy=False))
        if len(self._offsets) != int(_offset_counts(lists.df).sum()):
            raise self.arrays.damaged("positions.offsets", "it has another number of offsets than the postings need")
        if np.any(self.tokens.sum(axis=1, dtype=np.uint64) < lists.lengths):
            raise self.arrays.damaged("positions.tokens", "it has fewer tokens than the documents have terms")

    @cached_property
    def field_starts(self) -> Int32s:
        """(documents, fields + 1): the first position of each field, and the position after the last token."""
        return field_starts(self.tokens)

    @property
    def row_arrays(self) -> TermRows:
        """Rows, offsets, bounds and indices of the first offsets, for `payload_kernels.count_phrase`."""
        return self._rows, self._offsets, self._bounds, self._firsts

    def of(self, term: int, indices: Ints | None = None) -> PositionRows:
        """Return the positions of a term in some documents.

        Args:
            term: Number of the term.
            indices: Indices into its postings, best ascending; None takes all postings.

        Returns:
            The offset of each posting's first position, int64, with one more entry for the end; and the positions, int32,
            ascending in each posting.

        Raises:
            IndexFormatError: The bytes do not fit the postings.
        """
        df = int(self.lists.df[term])
        span = [self.bounds[term], self.bounds[term + 1], df, self._firsts[term]]
        starts, ends, sizes, firsts = np.array(span, dtype=np.int64).reshape(4, 1)
        count = df if indices is None else len(indices)
        rows = NO_ROWS if indices is None else indices
        return self._unpacked((starts, ends, sizes, firsts), np.array([0, count]), rows, indices is None)

    def of_terms(self, terms: Ints, bounds: Ints, indices: Ints) -> PositionRows:
        """Return the positions of several terms like `of`, concatenated; term i has `indices[bounds[i]:bounds[i+1]]`."""
        return self._unpacked(self._spans(terms), bounds, indices, False)

    def count_phrase(
        self,
        terms: Int64s,
        words: Int64s,
        docs: Int32s,
        rows: Int64s,
        field: int,
    ) -> tuple[Int32s, Int32s]:
        """Count an exact phrase.

        Args:
            terms: Its distinct terms.
            words: The index of each word's term in `terms`, then the offset of each word in the phrase.
            docs: The documents that have all the terms, ascending; they are overwritten.
            rows: (terms, documents or more): their indices into the postings of each term.
            field: The field that must hold the phrase; -1 for any.

        Returns:
            The documents with the phrase, and its frequency in each.

        Raises:
            IndexFormatError: The bytes do not fit the postings.
        """
        limits = NO_LIMITS if field < 0 else self.field_starts[docs, field : field + 2]
        tf = np.empty(len(docs), dtype=np.int32)
        size = count_phrase(self.row_arrays, terms, rows, words, limits, ROWS_PER_OFFSET, docs, tf)
        if size < 0:
            raise self.damaged()
        return docs[:size], tf[:size]

    def all_of(self, terms: Ints) -> PositionRows:
        """Return all positions of several terms."""
        bounds = offsets_of(self.lists.df[terms])
        return self._unpacked(self._spans(terms), bounds, NO_ROWS, True)

    def check(self, fields: FieldLists | None) -> None:
        """Raise IndexFormatError unless the positions fit the postings and any frequencies by field."""
        starts = self.field_starts
        offset_count = 0
        for first, last in chunks(self.lists.df, postings.CHUNK_POSTINGS):
            terms = np.arange(first, last)
            docs, tfs = self.lists.postings(terms)
            bounds, positions = self.all_of(terms)
            if not np.array_equal(np.diff(bounds), tfs):
                raise self.arrays.damaged("positions.rows", "postings have more or fewer positions than their frequency")
            field_counts = np.zeros((len(docs), self.tokens.shape[1]), dtype=np.int64)
            token_docs = np.repeat(docs, tfs)
            for field, sizes in enumerate(self.tokens.T):
                relative = positions - starts[token_docs, field]
                inside_before = offsets_of((relative >= 0) & (relative < sizes[token_docs]))
                field_counts[:, field] = inside_before[bounds[1:]] - inside_before[bounds[:-1]]
            if not np.array_equal(field_counts.sum(axis=1), tfs):
                raise self.arrays.damaged("positions.rows", "positions are outside of their document's fields")
            if fields is not None and not np.array_equal(field_counts, fields.frequencies(terms)):
                raise self.arrays.damaged("positions.rows", "positions do not fit the frequencies by field")
            data = self.rows[int(self.bounds[first]) : int(self.bounds[last])]
            edges = self.bounds[first : last + 1].astype(np.int64) - int(self.bounds[first])
            (offsets,) = row_offsets(data, edges, self.lists.df[first:last].astype(np.int64))
            if not np.array_equal(offsets, self._offsets[offset_count : offset_count + len(offsets)]):
                raise self.arrays.damaged("positions.offsets", "it does not fit the positions")
            offset_count += len(offsets)

    @cached_property
    def _bounds(self) -> NDArray[np.unsignedinteger]:
        return fixed(self.bounds.astype(self._type, copy=False))

    @cached_property
    def _firsts(self) -> NDArray[np.unsignedinteger]:
        """Index of each term's first entry in the offsets."""
        counts = _offset_counts(self.lists.df)
        return fixed((np.cumsum(counts) - counts).astype(self._type))

    def _spans(self, terms: Ints) -> Spans:
        """Return the start, the end and the number of the terms' rows, and the indices of their first offsets."""
        starts, ends, df = self.spans(terms)
        return starts, ends, df, self._firsts[terms].astype(np.int64)

    def _unpacked(self, spans: Spans, bounds: Ints, indices: Ints, all_rows: bool) -> PositionRows:
        indices, bounds = np.ascontiguousarray(indices, dtype=np.int64), np.ascontiguousarray(bounds, dtype=np.int64)
        fit, row_bounds, positions = unpack_positions(
            self._rows, self._offsets, spans, bounds, indices, all_rows, ROWS_PER_OFFSET
        )
        if fit:
            return row_bounds, positions
        if len(indices) and (indices.min() < 0 or np.any(indices >= np.repeat(spans[2], np.diff(bounds)))):
            raise IndexError("an index is not among the postings of its term")
        raise self.damaged()


class TermPositions(Payload[PositionLists], name="positions"):
    """Positions of the terms of each posting."""

    def open(self, segment: Segment) -> PositionLists:
        return PositionLists(segment.folder, segment.lists)

    def packed(self, occurrences: Occurrences) -> Rows:
        starts = field_starts(occurrences.spans)[:, :-1].reshape(-1)
        positions = occurrences.by_posting(occurrences.positions + np.repeat(starts, np.diff(occurrences.bounds)))
        out = np.empty(MAX_BYTES * len(positions), dtype=np.uint8)
        sizes = np.empty(len(occurrences.terms), dtype=np.int32)
        length = pack_positions(positions, occurrences.counts, out, sizes)
        return out[:length].copy(), sizes

    def of_documents(self, occurrences: Occurrences) -> Ints:
        return occurrences.spans

    def payload_writer(self, folder: Path, fields: int) -> PayloadWriter:
        return PayloadWriter(folder, self.name, "tokens", {"offsets": None}, row_offsets, fields, 1)

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        parts = [self.of(leaf.segment) for leaf in leaves]
        writer = self.payload_writer(folder, parts[0].tokens.shape[1])
        for part, leaf in zip(parts, leaves, strict=True):
            writer.documents(part.tokens[leaf.live])
        merge_payload(leaves, parts, writer)
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            self.of(leaf.segment).check(leaf.segment.opened.get("fields"))

    def facts(self, state: Described) -> dict[str, object]:
        size = bytes_of(self.name, state)
        return {"positions": {"bytes": size, "bytes_per_token": size / max(1, state.tokens)}}


POSITIONS: TermPositions = components["positions"]


def field_starts(tokens: Ints) -> Int32s:
    """Return the first position of each field and the end of the last: (documents, fields + 1).

    `tokens` has the number of tokens of each field: (documents, fields).
    """
    starts = np.zeros((tokens.shape[0], tokens.shape[1] + 1), dtype=np.int32)
    np.cumsum(tokens.astype(np.int64), axis=1, out=starts[:, 1:])
    starts[:, :-1] += GAP * np.arange(tokens.shape[1], dtype=np.int32)
    starts[:, -1] += GAP * (tokens.shape[1] - 1)
    return starts


def row_offsets(data: Bytes, bounds: Int64s, df: Int64s) -> tuple[Int64s]:
    """Return the offsets of each term's rows number ROWS_PER_OFFSET, 2 · ROWS_PER_OFFSET and so on; see `measure_rows`.

    Raises:
        IndexFormatError: The bytes do not hold `df` rows.
    """
    offsets = np.empty(int(_offset_counts(df).sum()), dtype=np.int64)
    if measure_rows(data, bounds, df, ROWS_PER_OFFSET, offsets) != len(offsets):
        raise IndexFormatError(f"the positions of a segment do not fit its postings; {REMEDY}")
    return (offsets,)


def _offset_counts(df: Ints) -> Int64s:
    """Number of stored offsets of terms with so many postings."""
    return (df.astype(np.int64) - 1) // ROWS_PER_OFFSET
