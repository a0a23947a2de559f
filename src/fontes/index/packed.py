"""Packed lists: the postings of a segment in the one form in which they are stored and searched, three or four bytes each.

Each pair of tf and document length has a code. A model such as BM25, whose weight is idf times a function of tf and length, is
a table of this function by code, and all k1 and b share the lists. Rare pairs have the code 0, and their postings are also in a
separate list, `rest`. Where pairs are too many, as for learned weights, each tf has a code.

A term with a row of block bounds has 16 bits for each posting: the document's position in its window of 4,096 documents, and
the lowest 4 bits of the code. Other terms have 32 bits: the document, and as many bits of the code as fit. The remaining bits
of codes are in arrays of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import AnyArray, Bools, Bytes, Float32s, Float64s, Int32s, Int64s, Ints, UInt16s, UInt32s
from ..storage.arrays import fixed
from ..storage.compiled import affordable
from .packed_kernels import BLOCK, DEPTHS, POSITION_BITS, WINDOW, read_lists, unpack

if TYPE_CHECKING:
    from .packed_kernels import Lists, Packed, Rest

DOCUMENTS_PER_ROW = 5 * BLOCK  # documents per posting of the shortest list with a row
CHAMPIONS = 4 * BLOCK  # greatest length of a champion list, at most the df of terms with rows
POSTINGS_PER_STEP = 5  # postings that numpy reads in the time of one Python step
STEPS_PER_LIST = 30  # Python steps in the time that numpy needs for a short list
Shapes = dict[str, tuple[type[np.generic], tuple[int, ...]]]  # type and shape of arrays


class LazyRows:
    """Which terms of some arrays are filled in; a term is filled in when first needed. Thread-safe.

    Attributes:
        ready: Whether each term is filled in.
    """

    def __init__(self, terms: int) -> None:
        self.ready, self._lock = np.zeros(terms, dtype=np.bool_), threading.Lock()

    def ensure(self, terms: Ints, fill: Callable[[Int64s], object]) -> None:
        """Call `fill` with the terms that are not filled in yet."""
        if self.ready[terms].all():
            return
        with self._lock:
            if len(missing := np.unique(terms[~self.ready[terms]]).astype(np.int64)):
                fill(missing)
                self.ready[missing] = True


@dataclass(frozen=True, eq=False)
class PackedLists:
    """The postings of a segment, or of an index that is searched as one, shared by all models.

    Args:
        bounds: int64; term t has the postings from bounds[t] to bounds[t + 1].
        row_of: int32; row of block bounds of each term, -1 if its list is too short.
        docs: uint32; document << widths[0] | lowest bits of the code, for terms without a row, ascending in each term.
        codes: uint16; the other bits of these codes; empty if there are none.
        places: uint16; position in the window << POSITION_BITS | lowest bits of the code, for terms with a row.
        place_codes: uint8; the other bits of these codes, the lowest byte first.
        widths: int64, (3,); bits of codes in `docs`, 1 if `codes` has other bits, bytes per posting in `place_codes`.
        starts: uint32, (rows, windows + 1); start of each window in the list of a term with a row.
        pairs: int32, (2, codes); tf and length of each code, 0 for the code 0.
        rest: int32, (4, R); term, document, tf and length of each posting with the code 0, ascending.
        by_length: Whether each code has one length; if not, lengths in `pairs` are 0.
    """

    bounds: Int64s
    row_of: Int32s
    docs: UInt32s
    codes: UInt16s
    places: UInt16s
    place_codes: Bytes
    widths: Int64s
    starts: UInt32s
    pairs: Int32s
    rest: Int32s
    by_length: bool

    @property
    def postings(self) -> tuple[UInt32s, UInt16s, UInt16s, Bytes]:
        """The arrays that `pack` fills in: docs, codes, places, place_codes."""
        return self.docs, self.codes, self.places, self.place_codes

    @cached_property
    def offsets(self) -> Int64s:
        """Start of each term's postings in `docs`, or in `places` if it has a row."""
        return list_offsets(self.bounds, self.row_of)

    @cached_property
    def unweighted(self) -> Packed:
        """The `lists` argument of loops that read only documents, `row_of` and `starts`."""
        return self.weighted(NO_WEIGHTS), fixed(self.row_of), fixed(self.starts)

    @cached_property
    def _rest_bounds(self) -> Int64s:
        return np.searchsorted(self.rest[0], np.arange(len(self.bounds)))

    @cached_property
    def documents(self) -> tuple[LazyRows, Int32s]:
        """Which terms are filled in, and the documents of all postings."""
        return LazyRows(len(self.row_of)), np.zeros(self.bounds[-1], dtype=np.int32)

    def unpacked(self, terms: Ints) -> tuple[Int64s, Int32s]:
        """Return the bounds and documents of all postings, filled in for these terms; only these take memory."""
        filled, docs = self.documents
        filled.ensure(terms, lambda terms: unpack(terms, np.ones(len(terms)), self.unweighted, docs, NO_WEIGHTS))
        return self.bounds, fixed(docs)

    def weighted(
        self,
        weights: Float32s,
        saturation: Float64s | None = None,
        rest: Float64s | None = None,
    ) -> Lists:
        """Return the `lists` argument of the search: bounds, offsets, the arrays of `postings`, weights, curve, rest.

        Args:
            weights: Weight of each posting; empty if there is a curve.
            saturation: Weight of each code by a curve.
            rest: Weight of each posting in the rest by the curve.
        """
        docs, codes, places, place_codes = self.postings
        codes = codes if len(codes) else NO_CODES  # the search always reads one
        bounds, offsets, widths, weights = fixed(self.bounds), fixed(self.offsets), fixed(self.widths), fixed(weights)
        docs, codes, places, place_codes = fixed(docs), fixed(codes), fixed(places), fixed(place_codes)
        of_rest = np.zeros(self.rest.shape[1]) if rest is None else rest
        curve = fixed(NO_SATURATION if saturation is None else saturation)
        return bounds, offsets, docs, codes, places, place_codes, widths, weights, curve, self._rest_of(of_rest)

    def _rest_of(self, weights: Float64s) -> Rest:
        return fixed(self._rest_bounds), fixed(self.rest[1]), fixed(weights)

    def read(self, terms: Int64s, documents: int, edges: Int64s, outputs: bool = True) -> tuple[Int32s, Int32s] | None:
        """Return the documents and tf of some terms, end to end; None if the lists are damaged.

        Args:
            terms: The terms.
            documents: Number of documents.
            edges: Start of each term in the result, and the end of the last.
            outputs: Whether the result is wanted; if not, lists are checked, and the arrays are empty.
        """
        if affordable(int(edges[-1]) // POSTINGS_PER_STEP + STEPS_PER_LIST * len(terms)):
            return self._read_in_numpy(terms, documents)
        docs, tfs = (np.empty(edges[-1] if outputs else 0, dtype=np.int32) for _ in range(2))
        tables = fixed(self.pairs[0]), fixed(self.rest[2])
        is_sound = read_lists(fixed(terms), self.unweighted, documents, *tables, docs, tfs, fixed(edges))
        return (docs, tfs) if is_sound else None

    def _read_in_numpy(self, terms: Int64s, documents: int) -> tuple[Int32s, Int32s] | None:
        lists = [(np.zeros(0, np.int32), np.zeros(0, np.int32))]
        for term in terms.tolist():
            row, size = int(self.row_of[term]), int(self.bounds[term + 1] - self.bounds[term])
            rows = slice(int(self.offsets[term]), int(self.offsets[term]) + size)
            bits, has_rest, width = self.widths.tolist()
            if row < 0:
                words = self.docs[rows].astype(np.int64)
                docs, codes = words >> bits, words & (1 << bits) - 1
                if has_rest:
                    codes |= self.codes[rows].astype(np.int64) << bits
            else:
                starts, places = self.starts[row].astype(np.int64), self.places[rows].astype(np.int64)
                if starts[0] or starts[-1] != size or np.any(starts[1:] < starts[:-1]):
                    return None
                docs = np.repeat(np.arange(0, len(starts) - 1) * WINDOW, np.diff(starts)) + (places >> POSITION_BITS)
                codes = places & (1 << POSITION_BITS) - 1
                for byte, of_byte in enumerate(self.place_codes.reshape(-1, width)[rows].T):
                    codes |= of_byte.astype(np.int64) << POSITION_BITS + 8 * byte
            rest = slice(*np.searchsorted(self.rest[0], (term, term + 1)).tolist())
            rare = np.flatnonzero(codes == 0)
            if np.any(docs[1:] <= docs[:-1]) or docs[-1] >= documents or codes.max() >= len(self.pairs[0]):
                return None
            if not np.array_equal(docs[rare], self.rest[1, rest]):
                return None
            tfs = self.pairs[0, codes]
            tfs[rare] = self.rest[2, rest]
            if tfs.min() < 1:
                return None
            lists.append((docs.astype(np.int32), tfs))
        docs, tfs = map(np.concatenate, zip(*lists, strict=True))
        return docs, tfs


NO_CODES = fixed(np.zeros(1, np.uint16))
NO_WEIGHTS = np.zeros(0, np.float32)  # also an output that takes nothing
NO_SATURATION = fixed(np.zeros(0, np.float64))


@dataclass(frozen=True, eq=False)
class Bounds:
    """Greatest weights of terms and of blocks of documents, by which the search prunes; of one segment, in all its states.

    Args:
        saturation: float64; the curve by code with which the bounds were made, empty without one.
        rest: float64; the curve of the rest of the postings.
        best: float32; greatest weight of each term, without its idf if there is a curve.
        kth: uint16, (terms, DEPTHS); bin of a weight that this many postings of the term reach; 0 if it has fewer.
        positive: Whether all weights of a term are above 0.
        rows: uint8, (rows, blocks); block bounds of terms with long lists, as fractions of the greatest weight.
        champions: int32, (rows, CHAMPIONS); documents by descending weight, all of each weight in the row, then
            -1 (champion lists; Manning, Raghavan and Schütze 2008, section 7.1.3).
        champion_weights: float64; weights of the champions, without idf if there is a curve.
        cuts: float64, (rows,); greatest weight of the documents that are not among the champions; 0 if all are.
    """

    saturation: Float64s
    rest: Float64s
    best: Float32s
    kth: UInt16s
    positive: Bools
    rows: Bytes
    champions: Int32s
    champion_weights: Float64s
    cuts: Float64s


def list_shapes(df: Ints, documents: int, widths: Int64s, pairs: int, rest: int, per_row: int = DOCUMENTS_PER_ROW) -> Shapes:
    """Return types and shapes of the arrays of `PackedLists` that are stored."""
    rows = long_lists(df, documents, per_row)
    long = int(df[rows].sum(dtype=np.int64))
    short = int(df.sum(dtype=np.int64)) - long
    _, has_rest, width = widths.tolist()
    return {
        "docs": (np.uint32, (short,)),
        "codes": (np.uint16, (has_rest * short,)),
        "places": (np.uint16, (long,)),
        "place_codes": (np.uint8, (width * long,)),
        "starts": (np.uint32, (len(rows), -(-documents // WINDOW) + 1)),
        "pairs": (np.int32, (2, pairs)),
        "rest": (np.int32, (4, rest)),
    }


def bound_shapes(terms: int, rows: int, documents: int) -> Shapes:
    """Return types and shapes of the arrays of `Bounds` of a model, but those of its curve."""
    return {
        "best": (np.float32, (terms,)),
        "kth": (np.uint16, (terms, len(DEPTHS))),
        "positive": (np.bool_, (terms,)),
        "rows": (np.uint8, (rows, -(-documents // WINDOW) * (WINDOW // BLOCK))),
        "champions": (np.int32, (rows, CHAMPIONS)),
        "champion_weights": (np.float64, (rows, CHAMPIONS)),
        "cuts": (np.float64, (rows,)),
    }


def zeros(shapes: Shapes) -> dict[str, AnyArray]:
    """Return arrays of zeros."""
    return {name: np.zeros(shape, dtype) for name, (dtype, shape) in shapes.items()}


def row_of(df: Ints, documents: int, per_row: int = DOCUMENTS_PER_ROW) -> Int32s:
    """Return the row of block bounds of each term, -1 for none."""
    of_term = np.full(len(df), -1, dtype=np.int32)
    rows = long_lists(df, documents, per_row)
    of_term[rows] = np.arange(len(rows))
    return of_term


def long_lists(df: Ints, documents: int, per_row: int) -> Int64s:
    """Return the terms that have a row of block bounds, by document frequency."""
    return np.flatnonzero(df > max(4 * BLOCK, documents // per_row))


def list_offsets(bounds: Int64s, row_of: Int32s) -> Int64s:
    """Return the start of each term's postings in `docs`, or in `places` if it has a row."""
    sizes, has_row = np.diff(bounds), row_of >= 0
    starts = [np.cumsum(part_sizes) - part_sizes for part_sizes in (np.where(has_row, 0, sizes), np.where(has_row, sizes, 0))]
    return np.where(has_row, starts[1], starts[0])
