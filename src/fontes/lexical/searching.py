"""Search by weighted bags of terms: compiled, for batches of topics, in threads."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.ranking import order_keys
from ..core.threads import in_threads
from ..core.work import thread_count
from ..index.columns import Filter
from ..storage.compiled import affordable, is_loaded, load
from .filtered import LOOKUP_COST, filtered_impacts
from .impacts import impacts_of, weighted_postings
from .kernel import DEPTHS, SORTED, best_first, search
from .weighting import Weighting

if TYPE_CHECKING:
    from ..index.postings import Searchable

Bags = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]  # bounds, terms, weights
Results = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # counts, documents, scores
ResultBuffers = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], NDArray[np.uint64]]  # as in `kernel.search`
Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents of one topic and their scores, best first

RESULTS = 1 << 21  # results of the topics searched in one batch
POSTINGS_PER_STEP = 10  # postings that numpy sums in the time of one Python step
SUMS_PER_STEP = 400  # sums that numpy scans in the time of one step
CALL_STEPS = 250  # steps in the time of all calls of numpy for one topic
NOT_SUPPORTED = -1  # result of a loop if the query must be searched in another way
UNKNOWN_IDF = -10  # UNKNOWN_IDF - df is the result of a loop if the idf of df is not computed yet
NO_KEYS = np.zeros(0, np.uint64)
NO_WORDS = np.zeros(0, np.uint64)  # all documents are allowed


def search_topic(searched: Searchable, weighting: Weighting, bag: Bags, k: int, where: Filter | None = None) -> Ranked:
    """Return the best `k` documents for one topic and their scores; see `search_topics`."""
    return search_topics(searched, weighting, bag, k, where)[1:]


def scores_of(searched: Searchable, weighting: Weighting, bag: Bags, docs: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """Return the scores of some documents for one topic, as in `search_topic`; 0 for documents that do not match."""
    _, terms, query_weights = bag
    bounds, all_docs, weights = impacts_of(searched, weighting, terms).unpacked(terms)
    docs, sums = docs.astype(np.int32), np.zeros(len(docs), dtype=np.float64)
    for term, query_weight in zip(terms.tolist(), query_weights, strict=True):
        of_term = slice(bounds[term], bounds[term + 1])
        places = np.searchsorted(all_docs[of_term], docs)
        rows = np.flatnonzero(places < of_term.stop - of_term.start)
        rows = rows[all_docs[of_term][places[rows]] == docs[rows]]
        sums[rows] += query_weight * weights[of_term][places[rows]]
    return sums.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0


def _search_uncompiled(
    searched: Searchable,
    weighting: Weighting,
    terms: NDArray[np.int32],
    query_weights: NDArray[np.float64],
    k: int,
    where: Filter | None,
) -> Ranked:
    """Return the best documents for a topic without compiled code, by summing all postings; for a process with few queries."""
    docs, weights = weighted_postings(searched, weighting, terms)
    sums, passed = np.zeros(len(searched), dtype=np.float64), np.zeros(len(searched), dtype=np.bool_)
    edges = np.cumsum([0, *searched.df[terms]]).tolist()
    for query_weight, (a, b) in zip(query_weights, pairwise(edges), strict=True):
        sums[docs[a:b]] += query_weight * weights[a:b]
    passed[docs] = True
    matching = np.flatnonzero(passed if where is None else passed & where.mask).astype(np.int32)
    scores = sums[matching].astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
    keys = order_keys(scores, searched.ids.rank[matching])
    best = np.argsort(keys)[::-1][:k]
    return matching[best], scores[best]


def search_topics(index: Searchable, weighting: Weighting, bags: Bags, k: int, where: Filter | None = None) -> Results:
    """Return the number of results of each topic, and their documents and scores end to end.

    Args:
        index: The lists that are searched.
        weighting: The model.
        bags: Query weights of each topic by term number.
        k: Greatest number of documents per topic.
        where: The documents that may be returned; None: all.
    """
    count, k = len(bags[0]) - 1, min(k, len(index.ids) if where is None else where.count)
    if not k or not len(bags[1]):
        return np.zeros(count, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    if not is_loaded() and affordable(
        int(index.df[bags[1]].sum(dtype=np.int64)) // POSTINGS_PER_STEP + count * (len(index) // SUMS_PER_STEP + CALL_STEPS)
    ):
        topic_rows = itertools.starmap(slice, pairwise(bags[0].tolist()))
        rankings = [_search_uncompiled(index, weighting, bags[1][terms], bags[2][terms], k, where) for terms in topic_rows]
        docs, scores = map(np.concatenate, zip(*rankings, strict=True))
        return np.array([len(ranking[0]) for ranking in rankings], np.int64), docs, scores
    step = max(1, RESULTS // k)
    if count <= step:
        return _search_portion(index, weighting, bags, 0, count, k, where)
    firsts = range(0, count, step)
    portions = [_search_portion(index, weighting, bags, first, min(first + step, count), k, where) for first in firsts]
    counts, docs, scores = map(np.concatenate, zip(*portions, strict=True))
    return counts, docs, scores


def _search_portion(
    index: Searchable, weighting: Weighting, bags: Bags, first: int, last: int, k: int, where: Filter | None
) -> Results:
    """Return the results of `search_topics` for the topics from `first` to `last` (excluded)."""
    rank, order, depth = index.ids.rank, index.ids.order, depth_of(k)
    find: Any = search
    allowed: NDArray[Any] = NO_WORDS
    impacts_of_filter = None if where is None else filtered_impacts(index, weighting, where)
    terms = bags[1][bags[0][first] : bags[0][last]]
    lists = None if impacts_of_filter is None else impacts_of_filter.of(terms, build=last - first > 1)
    if impacts_of_filter is not None and lists is not None:
        postings, limits, rank = lists.postings, lists.limits, impacts_of_filter.rank
        bags = bags[0][first : last + 1] - bags[0][first], lists.numbers, bags[2][bags[0][first] : bags[0][last]]
        first, last, idfs = 0, last - first, np.ones(len(lists.numbers))
    else:
        impacts = impacts_of(index, weighting, bags[1] if len(bags[0]) == 2 else None)
        postings, limits, idfs = impacts.postings, impacts.limits, impacts.idfs(bags[1])
        if where is not None:
            depth, allowed = -1, where.words
            if where.count * len(terms) * LOOKUP_COST < int(index.df[terms].sum(dtype=np.int64)):
                find, allowed = lookup().search_few, where.docs
    count = last - first
    results = counts, docs, scores, keys = _buffers(count, k)
    if count == 1:
        find(first, last, (*bags, idfs), postings, limits, allowed, (rank, order), k, depth, results)
        return _decode(results, order)

    def part(a: int, b: int) -> None:
        portion = counts[a:b], docs[a:b], scores[a:b], keys[a:b]
        search(first + a, first + b, (*bags, idfs), postings, limits, allowed, (rank, order), k, depth, portion)

    in_ranges(part, count)
    return _decode(results, order)


def in_ranges(function: Callable[[int, int], None], count: int) -> None:
    """Call a function with consecutive ranges of `count` topics, in threads."""
    threads = min(thread_count(), count)
    if threads == 1:
        function(0, count)
    else:  # small ranges keep all threads busy until the end
        edges = np.linspace(0, count, min(8 * threads, count) + 1).astype(int).tolist()
        in_threads(function, edges[:-1], edges[1:])


@cache
def lookup() -> Any:
    """Return the module `lookup`, whose loops need others to be compiled first."""
    load()
    from . import lookup

    return lookup


def depth_of(k: int) -> int:
    """Return the column of the k-th best weights to use, or -1."""
    return bisect_left(DEPTHS, k) if k <= DEPTHS[-1] else -1


def search_kernel(
    loop: Callable[..., int | None], arguments: tuple[Any, ...], index: Searchable, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], int | None]:
    """Call a kernel for one topic.

    Args:
        loop: The kernel, such as `search_any`.
        arguments: Its arguments before `ids`.
        index: The index, which has the ids.
        k: Greatest number of documents.

    Returns:
        The best documents, their scores, and the result of the kernel.
    """
    ids = index.ids
    k = min(k, len(ids))
    results, order = _buffers(1, k), ids.order
    total = loop(*arguments, (ids.rank, order), k, results)
    _, docs, scores = _decode(results, order)
    return docs, scores, total


def search_clauses(
    index: Searchable,
    weighting: Weighting,
    bag: Bags,
    required: NDArray[np.int64],
    excluded: NDArray[np.int64],
    allowed: NDArray[np.uint64],
    k: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], int | None]:
    """Search for documents that have some terms.

    Args:
        index: The index.
        weighting: The model.
        bag: Query weights of the terms, as one topic.
        required: Terms of the bag that a document must have.
        excluded: Terms that it must not have.
        allowed: As in `kernel.search`.
        k: Greatest number of documents.

    Returns:
        The best documents, their scores, and the number of matching documents; None without required terms.
    """
    impacts, depth = impacts_of(index, weighting, np.concatenate([bag[1], excluded])), depth_of(min(k, len(index)))

    def find(ids: Any, k: int, results: Any) -> int:
        lists, topic = (impacts.postings, impacts.limits), (*bag, impacts.idfs(bag[1]))
        return int(lookup().search_clauses(required, excluded, topic, *lists, allowed, ids, k, depth, results))

    docs, scores, total = search_kernel(find, (), index, k)
    return docs, scores, total if len(required) else None


def search_matches(
    loop: Callable[..., int], arguments: tuple[Any, ...], index: Searchable, k: int, max_matches: Callable[[], int]
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]:
    """Call a kernel of `conjunctions`, which visits all matching documents.

    Args:
        loop: The kernel, which returns the number of matching documents.
        arguments: Its arguments before `ids`.
        index: The index, which has the ids.
        k: Greatest number of documents.
        max_matches: Returns an upper bound of the number of matching documents.

    Returns:
        The best documents, their scores, and the number of all matching documents.
    """
    ids = index.ids
    k = min(k, len(ids))
    if k <= SORTED:
        docs, scores = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.float32)
        total = loop(*arguments, (ids.rank, ids.order), k, (docs, scores, NO_KEYS))
        return (docs, scores, total) if total >= k else (docs[:total], scores[:total], total)
    keys, order = np.empty(max_matches(), dtype=np.uint64), ids.order
    total = loop(*arguments, (ids.rank, order), k, (np.empty(0, np.int32), np.empty(0, np.float32), keys))
    keys = keys[:total]
    if total > k:
        keys = np.partition(keys, total - k)[total - k :]
    return (*ranked(keys, order), total)


def ranked(keys: NDArray[np.uint64], order: NDArray[np.uint32]) -> Ranked:
    """Return the documents and scores of sort keys, best first; the keys are sorted in place."""
    keys.sort()
    docs, scores = np.empty(len(keys), dtype=np.int32), np.empty(len(keys), dtype=np.float32)
    best_first(keys[None], np.array([len(keys)]), order, docs, scores)
    return docs, scores


def _buffers(count: int, k: int) -> ResultBuffers:
    """Return empty results of a kernel."""
    few, many = (k, 0) if k <= SORTED else (0, k)
    keys = np.zeros((count, many), np.uint64)
    return np.empty(count, np.int64), np.empty((count, few), np.int32), np.empty((count, few), np.float32), keys


def _decode(results: ResultBuffers, order: NDArray[np.uint32]) -> Results:
    """Return the results of a kernel, with keys decoded to documents and scores."""
    counts, docs, scores, keys = results
    count, k = docs.shape
    if k and count == 1:
        size = counts.item()
        return counts, docs[0, :size], scores[0, :size]
    if k:
        filled = np.arange(k) < counts[:, None]
        return counts, docs[filled], scores[filled]
    keys.sort(axis=1)
    total = sum(counts.tolist())
    all_docs, all_scores = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.float32)
    best_first(keys, counts, order, all_docs, all_scores)
    return counts, all_docs, all_scores
