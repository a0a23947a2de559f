"""Impacts under a filter: the postings of matching documents, as a smaller collection.

Matching documents are renumbered in order and keep the weights that they have in the whole collection. The search visits no
other documents, and its bounds and thresholds are those of the matching ones. The list of a term is built at its second search
with the filter, and cached; before, the filter is a mask of the search in the whole lists.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..index.columns import Filter
from ..storage.arrays import fixed
from ..storage.caches import Attached, Cached, weakly
from ..storage.compiled import inner, kernel
from .impacts import MAX_MODELS, impacts_of
from .pools import ImpactPool, PooledLists
from .weighting import Weighting

if TYPE_CHECKING:
    from ..index.postings import Searchable

MAX_SINGLE_TERMS = 200  # terms weighted individually; for more, all terms of the index are weighted
LOOKUP_COST = 12  # postings scanned in the time of one lookup


class FilteredImpacts:
    """Impacts of one model on the documents of a filter.

    Args:
        index: The index, or other lists of its documents.
        weighting: The model.
        where: The filter.
    """

    def __init__(self, index: Searchable, weighting: Weighting, where: Filter) -> None:
        self._index, self._weighting, self._where = index, weighting, where
        self._lock = threading.Lock()
        self._numbers = np.zeros(len(index.df), dtype=np.int32)  # 1 + number of the term in the pool, 0 if it is not there yet
        self._searched: set[int] = set()  # terms that were searched without a list

    @cached_property
    def rank(self) -> NDArray[np.uint32]:
        """Position of each matching document's id in the ascending order of all ids."""
        return fixed(self._index.ids.rank[self._where.docs])

    @cached_property
    def _pool(self) -> ImpactPool:
        return ImpactPool(len(self._where.docs))

    def of(self, terms: NDArray[np.integer[Any]], build: bool) -> PooledLists | None:
        """Return the search input for these terms; None if they have no lists yet.

        Args:
            terms: The terms.
            build: Whether the lists of terms that are searched for the first time are built, too.
        """
        with self._lock:
            if not (numbers := self._numbers[terms]).all():
                missing = np.unique(terms[numbers == 0])
                if not (build or self._searched.issuperset(missing.tolist())):
                    self._searched.update(missing.tolist())
                    return None
                self._extend(missing)
            return self._pool.lists(self._numbers[terms] - 1)

    def _extend(self, terms: NDArray[np.integer[Any]]) -> None:
        impacts = impacts_of(self._index, self._weighting, terms if len(terms) <= MAX_SINGLE_TERMS else None)
        bounds, docs, weights = impacts.unpacked(terms)
        capacity = int(np.minimum(bounds[terms + 1] - bounds[terms], len(self._where.docs)).sum())
        kept_bounds = np.zeros(len(terms) + 1, dtype=np.int64)
        # One entry more: documents that do not pass are written, and then overwritten.
        kept_docs, kept_weights = np.empty(capacity + 1, dtype=np.int32), np.empty(capacity + 1, dtype=np.float32)
        select(terms, bounds, docs, weights, self._where.numbers, self._where.docs, kept_bounds, kept_docs, kept_weights)
        first = self._pool.add(kept_bounds, kept_docs[: kept_bounds[-1]], kept_weights[: kept_bounds[-1]])
        self._numbers[terms] = np.arange(first + 1, first + 1 + len(terms), dtype=np.int32)


def filtered_impacts(index: Searchable, weighting: Weighting, where: Filter) -> FilteredImpacts:
    """Return the impacts of a model on the matching documents, cached or computed."""
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
    numbers: Any,
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
        weights: Weights of the postings.
        numbers: New number of each document, -1 if it does not pass.
        passed: The documents that pass, ascending.
        kept_bounds: Output: start of the postings of each of `terms`, and the end of the last.
        kept_docs: Output: new numbers of the documents.
        kept_weights: Output: weights of the postings.
    """
    filled = 0
    for i in range(len(terms)):
        cursor, end = bounds[terms[i]], bounds[terms[i] + 1]
        if len(passed) * LOOKUP_COST < end - cursor:
            step = (end - cursor) // len(passed)
            for number in range(len(passed)):
                cursor = _reach(docs, cursor, end, passed[number], step)
                if cursor == end:
                    break
                if docs[cursor] == passed[number]:
                    kept_docs[filled], kept_weights[filled] = number, weights[cursor]
                    filled += 1
        else:
            for posting in range(cursor, end):
                number = numbers[docs[posting]]
                kept_docs[filled], kept_weights[filled] = number, weights[posting]
                filled += number >= 0
        kept_bounds[i + 1] = filled


@inner()
def _reach(docs: Any, at: int, end: int, doc: int, step: int) -> int:
    """Return the first index from `at` on with `doc` or a later document, by galloping from `step`; `end` if none."""
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
