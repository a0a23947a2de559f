"""Impacts under a filter: the postings of matching documents, as a smaller collection.

Matching documents are renumbered in order and keep their weights of the whole collection, so the search visits nothing else,
and its bounds and thresholds are the filter's. The lists of a term are built at its first search and kept.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..index.columns import Filter
from ..storage.caches import Attached, Cached, weakly
from ..storage.compiled import inner, kernel
from .impacts import MAX_MODELS, impacts_of
from .kernel import BLOCK, DEPTHS, WINDOW, summarize
from .weighting import Weighting

if TYPE_CHECKING:
    from ..index.postings import Searchable

FEW = 200  # greatest number of terms weighted individually; beyond, all terms are weighted
PROBE = 12  # postings scanned in the time of one lookup


class FilteredImpacts:
    """Impacts of one model on the documents of a filter.

    Args:
        index: The index, or other lists of its documents.
        weighting: The model.
        where: The filter.

    Attributes:
        rank: Position of each matching document's id in the ascending order of all ids.
    """

    def __init__(self, index: Searchable, weighting: Weighting, where: Filter) -> None:
        self._index, self._weighting, self._where = index, weighting, where
        self.rank: NDArray[np.uint32] = index.ids.rank[where.docs]
        self._windows = -(-len(where) // WINDOW)
        self._lock = threading.Lock()
        self._numbers = np.zeros(len(index.df), dtype=np.int32)  # 1 + the term's number here, 0 while it has none
        self._lists = _Pool([((), np.int64), ((), np.int32), ((), np.uint16), ((), np.float32)])
        self._lists.append([np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint16), np.zeros(0, np.float32)])
        self._terms = _Pool([((), np.float32), ((len(DEPTHS),), np.float32), ((), np.bool_), ((), np.int32)])
        self._rows = _Pool([((self._windows * (WINDOW // BLOCK),), np.uint8), ((self._windows + 1,), np.uint32)])

    def of(self, terms: NDArray[np.int32]) -> Terms:
        """Return the search input for these terms."""
        with self._lock:
            if not (numbers := self._numbers[terms]).all():
                self._extend(np.unique(terms[numbers == 0]))
            best, kth, positive, row_of = self._terms.arrays
            rows, starts = self._rows.arrays
            return Terms(self._numbers[terms] - 1, self._lists.arrays, (best, kth, positive, row_of, rows, starts))

    def _extend(self, terms: NDArray[np.int32]) -> None:
        bounds, docs, _, weights = impacts_of(self._index, self._weighting, terms if len(terms) <= FEW else None).postings
        most = int(np.minimum(bounds[terms + 1] - bounds[terms], len(self._where)).sum())
        own = np.zeros(len(terms) + 1, dtype=np.int64)
        # One extra place: documents that do not pass are written and then overwritten.
        own_docs, own_weights = np.empty(most + 1, dtype=np.int32), np.empty(most + 1, dtype=np.float32)
        select(terms, bounds, docs, weights, self._where.places, self._where.docs, own, own_docs, own_weights)
        own_docs, own_weights = own_docs[: own[-1]], own_weights[: own[-1]]
        long = np.flatnonzero(np.diff(own) > max(4 * BLOCK, len(self._where) // (8 * BLOCK)))
        row_of = np.full(len(terms), -1, dtype=np.int32)
        row_of[long] = np.arange(len(long))
        best, kth = np.zeros(len(terms), dtype=np.float32), np.zeros((len(terms), len(DEPTHS)), dtype=np.float32)
        positive, rows = np.zeros(len(terms), dtype=np.bool_), np.zeros((len(long), self._rows.width(0)), dtype=np.uint8)
        summarize(0, len(terms), own, own_docs, own_weights, row_of, best, kth, positive, rows)
        edges = np.arange(self._windows + 1) * WINDOW
        starts = np.empty((len(long), self._windows + 1), dtype=np.uint32)
        for row, term in enumerate(long.tolist()):
            starts[row] = np.searchsorted(own_docs[own[term] : own[term + 1]], edges)
        before, rows_before = self._lists.sizes[1], self._rows.sizes[0]
        row_of[long] += rows_before
        count = self._terms.sizes[0]
        self._lists.append([own[1:] + before, own_docs, own_docs % WINDOW, own_weights])
        self._terms.append([best, kth, positive, row_of])
        self._rows.append([rows, starts])
        self._numbers[terms] = np.arange(count + 1, count + 1 + len(terms), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms under a filter, as input of the search.

    Args:
        numbers: Their numbers in the filtered lists.
        postings: See `kernel.search`.
        limits: See `kernel.search`.
    """

    numbers: NDArray[np.int32]
    postings: tuple[NDArray[Any], ...]
    limits: tuple[NDArray[Any], ...]


class _Pool:
    """Growing arrays; views handed out earlier stay valid."""

    def __init__(self, kinds: list[tuple[tuple[int, ...], Any]]) -> None:
        self._whole: list[NDArray[Any]] = [np.zeros((0, *shape), dtype) for shape, dtype in kinds]
        self.sizes = [0] * len(kinds)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(whole[:size] for whole, size in zip(self._whole, self.sizes, strict=True))

    def width(self, number: int) -> int:
        return int(self._whole[number].shape[1])

    def append(self, arrays: list[NDArray[Any]]) -> None:
        for i, array in enumerate(arrays):
            size, whole = self.sizes[i], self._whole[i]
            if size + len(array) > len(whole):
                larger = np.empty((2 * (size + len(array)), *whole.shape[1:]), whole.dtype)
                larger[:size] = whole[:size]
                self._whole[i] = whole = larger
            whole[size : size + len(array)] = array
            self.sizes[i] = size + len(array)


def filtered(index: Searchable, weighting: Weighting, where: Filter) -> FilteredImpacts:
    """Return the impacts of a model on the matching documents, from memory or computed."""
    key = where.text, weighting.for_postings()
    return _FILTERED.of(index).get(key, lambda: FilteredImpacts(weakly(index), key[1], where))


_FILTERED: Attached[Any, Cached[tuple[str, Weighting], FilteredImpacts]] = Attached(
    "filtered", lambda index: Cached(MAX_MODELS)
)


@kernel()
def select(
    terms: Any, bounds: Any, docs: Any, weights: Any, places: Any, passed: Any, own: Any, own_docs: Any, own_weights: Any
) -> None:
    """Select the postings of terms whose documents pass a filter.

    Args:
        terms: The terms.
        bounds: Start of the postings of each term.
        docs: The documents of the postings.
        weights: Their weights.
        places: New number of each document, -1 if it does not pass.
        passed: The documents that pass, ascending.
        own: Output: start of the postings of each of `terms`, and the end of the last.
        own_docs: Output: new document numbers.
        own_weights: Output: weights.
    """
    filled = 0
    for i in range(len(terms)):
        at, end = bounds[terms[i]], bounds[terms[i] + 1]
        if len(passed) * PROBE < end - at:
            step = (end - at) // len(passed)
            for place in range(len(passed)):
                at = _reach(docs, at, end, passed[place], step)
                if at == end:
                    break
                if docs[at] == passed[place]:
                    own_docs[filled], own_weights[filled] = place, weights[at]
                    filled += 1
        else:
            for posting in range(at, end):
                place = places[docs[posting]]
                own_docs[filled], own_weights[filled] = place, weights[posting]
                filled += place >= 0
        own[i + 1] = filled


@inner()
def _reach(docs: Any, at: int, end: int, doc: int, step: int) -> int:
    """First position from `at` with `doc` or a later document, by galloping from `step`; `end` for none."""
    if at == end or docs[at] >= doc:
        return at
    while at + step < end and docs[at + step] < doc:
        at += step
        step *= 2
    size = min(step, end - at)
    while size > 1:
        half = size >> 1
        at = at + half if docs[at + half] < doc else at
        size -= half
    return at + 1
