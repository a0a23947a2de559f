"""Packed lists: the postings of an index in the form that the search reads, three or four bytes each.

Each pair of tf and document length has a code. A model such as BM25, whose weight is idf times a function of tf and length, is
a table of this function by code, and all k1 and b share the lists; other models have a float32 weight for each posting. Rare
pairs have the code 0, and their postings are also in a separate list, `rest`.

A term with a row of block bounds has 16 bits for each posting: the document's position in its window of 4,096 documents, and
the lowest 4 bits of the code. Other terms have 32 bits: the document, and as many bits of the code as fit. The remaining bits
of codes are in arrays of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..storage.arrays import fixed
from .kernel import BLOCK, POSITION_BITS, unpack
from .weighting import Idfs, Saturation, Statistics, Weighting, in_one_byte, saturation_of

if TYPE_CHECKING:
    from ..index.postings import Searchable

SHORT_BITS, LONG_BITS = 12, 16  # bits of a code
WORD = 32  # bits of a document and the lowest bits of its code
MIN_SHORT = 0.99  # codes have SHORT_BITS bits if these cover at least this share of the postings that LONG_BITS cover
DOCUMENTS_PER_ROW = 8 * BLOCK  # documents per posting of the shortest list with a row
PAIRS = 1 << 20  # cells to count pairs: all lengths, with as many tf as fit
MAX_CODED_LENGTH = 1 << 24  # document length above which postings have no codes
MIN_CODED = 0.9  # least share of postings with a code above 0; below it, as for learned weights, postings have no codes


class Filled:
    """Which terms of some arrays are filled in; a term is filled in when first needed. Thread-safe.

    Attributes:
        ready: Whether each term is filled in.
    """

    def __init__(self, terms: int) -> None:
        self.ready, self._lock = np.zeros(terms, dtype=np.bool_), threading.Lock()

    def ensure(self, terms: NDArray[np.integer[Any]], fill: Callable[[NDArray[np.int64]], object]) -> None:
        """Call `fill` with the terms that are not filled in yet."""
        if self.ready[terms].all():
            return
        with self._lock:
            if len(missing := np.unique(terms[~self.ready[terms]]).astype(np.int64)):
                fill(missing)
                self.ready[missing] = True


@dataclass(frozen=True, eq=False)
class PackedLists:
    """The postings of an index, shared by all models.

    Args:
        bounds: int64; term t has the postings from bounds[t] to bounds[t + 1].
        row_of: int32; row of block bounds of each term, -1 if its list is too short.
        docs: uint32; document << widths[0] | lowest bits of the code, for terms without a row, ascending in each term.
        codes: uint16; the other bits of these codes; empty if there are none.
        places: uint16; position in the window << POSITION_BITS | lowest bits of the code, for terms with a row.
        place_codes: uint8; the other bits of these codes, the lowest byte first.
        widths: int64, (3,); bits of codes in `docs`, 1 if `codes` has other bits, bytes per posting in `place_codes`.
        starts: uint32, (rows, windows + 1); start of each window in the list of a term with a row.
        pairs: int32, (2, codes); tf and length of each code; empty if postings have no codes.
        rest: int32, (4, R); term, document, tf and length of each posting with the code 0, ascending.
    """

    bounds: NDArray[np.int64]
    row_of: NDArray[np.int32]
    docs: NDArray[np.uint32]
    codes: NDArray[np.uint16]
    places: NDArray[np.uint16]
    place_codes: NDArray[np.uint8]
    widths: NDArray[np.int64]
    starts: NDArray[np.uint32]
    pairs: NDArray[np.int32]
    rest: NDArray[np.int32]

    @property
    def postings(self) -> tuple[NDArray[Any], ...]:
        """The arrays that `pack` fills in: docs, codes, places, place_codes."""
        return self.docs, self.codes, self.places, self.place_codes

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Start of each term's postings in `docs`, or in `places` if it has a row."""
        return offsets_of(self.bounds, self.row_of)

    @cached_property
    def unweighted(self) -> tuple[Any, ...]:
        """The `lists` argument of loops that read only documents, `row_of` and `starts`."""
        return self.with_weights(NO_WEIGHTS, None), fixed(self.row_of), fixed(self.starts)

    @cached_property
    def _rest_bounds(self) -> NDArray[np.int64]:
        return np.searchsorted(self.rest[0], np.arange(len(self.bounds)))

    @cached_property
    def documents(self) -> tuple[Filled, NDArray[np.int32]]:
        """Which terms are filled in, and the documents of all postings."""
        return Filled(len(self.row_of)), np.zeros(self.bounds[-1], dtype=np.int32)

    def unpacked(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the bounds and documents of all postings, filled in for these terms; only these take memory."""
        filled, docs = self.documents
        filled.ensure(terms, lambda terms: self.unpack(terms, None, np.ones(len(terms)), docs, NO_WEIGHTS))
        return self.bounds, fixed(docs)

    def unpack(
        self,
        terms: NDArray[np.int64],
        curve: Curve | None,
        idfs: NDArray[np.float64],
        docs: NDArray[np.int32],
        weights: NDArray[np.float32],
    ) -> None:
        """Write the documents of some terms, and their weights by a curve and the terms' idfs if `weights` is not empty."""
        unpack(terms, idfs, self.with_weights(NO_WEIGHTS, curve), fixed(self.row_of), fixed(self.starts), docs, weights)

    def with_weights(self, weights: NDArray[np.float32], curve: Curve | None) -> tuple[Any, ...]:
        """Return the `lists` argument of the search: bounds, offsets, the arrays of `postings`, weights, curve, rest.

        Args:
            weights: Weight of each posting; empty if there is a curve.
            curve: The function of tf and length.
        """
        docs, codes, places, place_codes = self.postings
        codes = codes if len(codes) else NO_CODES  # the search always reads one
        arrays = _fixed(self.bounds, self.offsets, docs, codes, places, place_codes, self.widths, weights)
        if curve is None:
            return *arrays, NO_SATURATION, NO_REST
        return *arrays, fixed(curve.saturation), _fixed(self._rest_bounds, self.rest[1], curve.rest)


def _fixed(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return tuple(map(fixed, arrays))


NO_CODES, NO_PLACE_CODES, NO_WIDTHS = _fixed(np.zeros(1, np.uint16), np.zeros(0, np.uint8), np.zeros(3, np.int64))
NO_WEIGHTS = np.zeros(0, np.float32)  # also an output that takes nothing
NO_SATURATION = fixed(np.zeros(0, np.float64))
NO_REST = _fixed(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))
SAME_WEIGHTS = fixed(np.ones(2))  # ratios, as in `kernel.search_bag`


@dataclass(frozen=True, eq=False)
class Curve:
    """Weights of a model as idf times a function of tf and length, rounded to float32.

    Args:
        idfs: Returns the idf of each of some terms.
        function: The function.
        saturation: float64; the function by code, 0 for the code 0.
        rest: float64; the function of the postings in the `rest` of the lists.
    """

    idfs: Callable[[NDArray[np.integer[Any]]], NDArray[np.float64]]
    function: Saturation
    saturation: NDArray[np.float64]
    rest: NDArray[np.float64]

    @classmethod
    def of(cls, index: Searchable, weighting: Weighting, lists: PackedLists) -> Curve | None:
        """Return the curve of a model; None if its weights have another form."""
        statistics = Statistics.of(index)
        function = saturation_of(weighting, statistics)
        if function is None or function.sums_idf or not lists.pairs.size:
            return None
        _, docs, rest_tf, rest_lengths = lists.rest
        if function.lengths is statistics.lengths:
            pair_lengths, rest_lengths = lists.pairs[1, 1:].astype(np.float64), rest_lengths.astype(np.float64)
        elif function.lengths is statistics.lengths_in_one_byte:
            pair_lengths, rest_lengths = in_one_byte(lists.pairs[1, 1:]), in_one_byte(rest_lengths)
        else:
            exact = index.lengths
            length_of = np.zeros(int(exact.max()) + 1, dtype=np.float64)  # the length that the model uses, by exact length
            length_of[exact] = function.lengths
            if not np.array_equal(length_of[exact], function.lengths):
                return None
            pair_lengths, rest_lengths = length_of[lists.pairs[1, 1:]], function.lengths[docs]
        saturation = np.zeros(lists.pairs.shape[1], dtype=np.float64)
        saturation[1:] = function.saturate(lists.pairs[0, 1:], pair_lengths)
        idfs = Idfs.of(index, weighting, function.idf)
        rest = function.saturate(rest_tf, rest_lengths)
        return cls(lambda terms: idfs(statistics.counts_of(terms)), function, saturation, rest)

    def ratios(self, saturation: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the greatest and the least ratio of the weights to those of another curve; None if it has values of 0."""
        old, new = np.concatenate([saturation[1:], rest]), np.concatenate([self.saturation[1:], self.rest])
        if np.array_equal(old, new):
            return SAME_WEIGHTS
        if not (old.min() > 0 and new.min() > 0):
            return None
        quotients = new / old
        return fixed(np.array([quotients.max() * (1 + 1e-9), quotients.min() * (1 - 1e-9)]))


class Codes:
    """Codes of the most frequent pairs of tf and length.

    Args:
        lengths: Length of each document, with a maximum of at most MAX_CODED_LENGTH.
    """

    def __init__(self, lengths: NDArray[np.integer[Any]]) -> None:
        self._lengths, self._lock = lengths, threading.Lock()
        self._distinct = np.flatnonzero(np.bincount(lengths))
        self._number_of = np.zeros(int(lengths.max()) + 1, dtype=np.int64)
        self._number_of[self._distinct] = np.arange(len(self._distinct))
        width = min(max(1, PAIRS // len(self._distinct)), int(lengths.max()) + 1)  # no tf is above the length
        self._counts = np.zeros(len(self._distinct) * width, dtype=np.int64)
        self._documents = len(lengths)

    def count(self, docs: NDArray[np.int32], tfs: NDArray[np.int32]) -> None:
        """Count the pairs of some postings."""
        counts = np.bincount(self._cells(docs, tfs), minlength=len(self._counts))
        with self._lock:
            self._counts += counts

    def _cells(self, docs: NDArray[np.int32], tfs: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the cell of each posting's pair; 0 for a tf that is too large."""
        width = len(self._distinct)
        cells = tfs * width + self._number_of[self._lengths[docs]]
        return np.where(tfs < len(self._counts) // width, cells, 0)

    @cached_property
    def _ranked(self) -> NDArray[np.int64]:
        """Cells of the counted pairs, the most frequent first."""
        counts = self._counts.copy()
        counts[: len(self._distinct)] = 0  # where tf is 0
        cells = np.flatnonzero(counts)
        return cells[np.argsort(-counts[cells], kind="stable")]

    def _share(self, bits: int) -> float:
        """Return the share of the counted postings with a code above 0, if codes have this number of bits."""
        return float(self._counts[self._ranked[: (1 << bits) - 1]].sum() / max(1, self._counts.sum()))

    @cached_property
    def bits(self) -> int:
        """Bits of a code."""
        return SHORT_BITS if self._share(SHORT_BITS) >= MIN_SHORT * self._share(LONG_BITS) else LONG_BITS

    @property
    def covered(self) -> float:
        """Share of the counted postings with a code above 0."""
        return self._share(self.bits)

    @property
    def widths(self) -> NDArray[np.int64]:
        """As in `PackedLists`."""
        of_docs = min(self.bits, WORD - (self._documents - 1).bit_length())
        return np.array([of_docs, int(self.bits > of_docs), max(1, -(-(self.bits - POSITION_BITS) // 8))])

    @cached_property
    def _coded(self) -> NDArray[np.int64]:
        """Cells of the codes from 1 on."""
        return self._ranked[: (1 << self.bits) - 1]

    @cached_property
    def _code_of(self) -> NDArray[np.uint16]:
        """Code of each cell, 0 for rare pairs."""
        code_of = np.zeros(len(self._counts), dtype=np.uint16)
        code_of[self._coded] = np.arange(1, len(self._coded) + 1)
        return code_of

    @property
    def pairs(self) -> NDArray[np.int32]:
        """As in `PackedLists`."""
        tfs, numbers = np.divmod(self._coded, len(self._distinct))
        pairs = np.zeros((2, len(self._coded) + 1), dtype=np.int32)
        pairs[:, 1:] = tfs, self._distinct[numbers]
        return pairs

    def of(self, docs: NDArray[np.int32], tfs: NDArray[np.int32]) -> NDArray[np.uint16]:
        """Return the codes of some postings."""
        return self._code_of[self._cells(docs, tfs)]


def long_lists(df: NDArray[Any], documents: int) -> NDArray[np.int64]:
    """Return the terms that have a row of block bounds, by document frequency."""
    return np.flatnonzero(df > max(4 * BLOCK, documents // DOCUMENTS_PER_ROW))


def offsets_of(bounds: NDArray[np.int64], row_of: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the start of each term's postings in `docs`, or in `places` if it has a row."""
    sizes, has_row = np.diff(bounds), row_of >= 0
    starts = [np.cumsum(part_sizes) - part_sizes for part_sizes in (np.where(has_row, 0, sizes), np.where(has_row, sizes, 0))]
    return np.where(has_row, starts[1], starts[0])
