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
from ..storage.arrays import fixed
from ..storage.caches import Attached, Cached, weakly
from ..storage.compiled import inner, kernel
from .impacts import MAX_MODELS, impacts_of
from .pools import ImpactPool
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
        self.rank: NDArray[np.uint32] = fixed(index.ids.rank[where.docs])
        self._lock = threading.Lock()
        self._numbers = np.zeros(len(index.df), dtype=np.int32)  # 1 + the term's number here, 0 while it has none
        self._pool = ImpactPool(len(where.docs))

    def of(self, terms: NDArray[np.int32]) -> Terms:
        """Return the search input for these terms."""
        with self._lock:
            if not (numbers := self._numbers[terms]).all():
                self._extend(np.unique(terms[numbers == 0]))
            return Terms(self._numbers[terms] - 1, self._pool.postings, self._pool.limits)

    def _extend(self, terms: NDArray[np.int32]) -> None:
        impacts = impacts_of(self._index, self._weighting, terms if len(terms) <= FEW else None)
        bounds, docs, weights = impacts.unpacked(terms)
        most = int(np.minimum(bounds[terms + 1] - bounds[terms], len(self._where.docs)).sum())
        kept_bounds = np.zeros(len(terms) + 1, dtype=np.int64)
        # One extra place: documents that do not pass are written and then overwritten.
        kept_docs, kept_weights = np.empty(most + 1, dtype=np.int32), np.empty(most + 1, dtype=np.float32)
        select(terms, bounds, docs, weights, self._where.numbers, self._where.docs, kept_bounds, kept_docs, kept_weights)
        first = self._pool.add(kept_bounds, kept_docs[: kept_bounds[-1]], kept_weights[: kept_bounds[-1]])
        self._numbers[terms] = np.arange(first + 1, first + 1 + len(terms), dtype=np.int32)


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


def filtered(index: Searchable, weighting: Weighting, where: Filter) -> FilteredImpacts:
    """Return the impacts of a model on the matching documents, from memory or computed."""
    key = where.text, weighting.for_postings()
    return _FILTERED.of(index).get(key, lambda: FilteredImpacts(weakly(index), key[1], where))


_FILTERED: Attached[Any, Cached[tuple[str, Weighting], FilteredImpacts]] = Attached(
    "filtered", lambda index: Cached(MAX_MODELS)
)


@kernel()
def select(
    terms: Any,
    bounds: Any,
    docs: Any,
    weights: Any,
    places: Any,
    passed: Any,
    kept_bounds: Any,
    kept_docs: Any,
    kept_weights: Any,
) -> None:
    """Select the postings of terms whose documents pass a filter.

    Args:
        terms: The terms.
        bounds: Start of the postings of each term.
        docs: The documents of the postings.
        weights: Their weights.
        places: New number of each document, -1 if it does not pass.
        passed: The documents that pass, ascending.
        kept_bounds: Output: start of the postings of each of `terms`, and the end of the last.
        kept_docs: Output: new document numbers.
        kept_weights: Output: weights.
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
                    kept_docs[filled], kept_weights[filled] = place, weights[at]
                    filled += 1
        else:
            for posting in range(at, end):
                place = places[docs[posting]]
                kept_docs[filled], kept_weights[filled] = place, weights[posting]
                filled += place >= 0
        kept_bounds[i + 1] = filled


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
