"""The compiled search: the sum of weighted postings, and the best k of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search(
    first: int,
    last: int,
    topics: tuple[Any, Any, Any],
    postings: tuple[Any, Any, Any],
    ids: tuple[Any, Any],
    k: int,
    found: tuple[Any, Any, Any],
) -> None:
    """The best k documents of the topics from `first` to `last`.

    topics     (bounds, terms, weights): topic i has terms[bounds[i]:bounds[i+1]], in ascending order, with float64 weights
    postings   (bounds, docs, weights) of all terms, float64 weights
    ids        (rank, order) of the document ids
    found      (docs, scores, counts) to be filled; topic i gets row i - first

    A score is the float64 sum over the terms in their order, rounded to float32. Documents with equal scores are in
    descending order of their ids.
    """
    topic_bounds, terms, query_weights = topics
    bounds, docs, weights = postings
    rank, order = ids
    found_docs, found_scores, found_counts = found
    sums = np.zeros(len(rank), dtype=np.float64)
    seen_in = np.full(len(rank), -1, dtype=np.int32)
    touched = np.empty(len(rank), dtype=np.int32)
    heap = np.empty(k, dtype=np.uint64)
    score = np.empty(1, dtype=np.float32)
    bits = score.view(np.uint32)
    for topic in range(first, last):
        count = 0
        for at in range(topic_bounds[topic], topic_bounds[topic + 1]):
            term, query_weight = terms[at], query_weights[at]
            for posting in range(bounds[term], bounds[term + 1]):
                doc = docs[posting]
                if seen_in[doc] != topic:
                    seen_in[doc] = topic
                    sums[doc] = 0.0
                    touched[count] = doc
                    count += 1
                sums[doc] += query_weight * weights[posting]
        size = 0
        for at in range(count):
            doc = touched[at]
            score[0] = np.float32(sums[doc]) + np.float32(0)  # -0.0 becomes 0.0
            ordered = ~bits[0] if bits[0] >> 31 else bits[0] | np.uint32(0x80000000)
            key = np.uint64(ordered) << np.uint64(32) | np.uint64(rank[doc])
            if size < k:
                _push(heap, size, key)
                size += 1
            elif key > heap[0]:
                _replace(heap, size, key)
        row = topic - first
        found_counts[row] = size
        while size > 0:
            size -= 1
            key = heap[0]
            _replace(heap, size, heap[size])
            doc = order[key & np.uint64(0xFFFFFFFF)]
            found_docs[row, size] = doc
            found_scores[row, size] = np.float32(sums[doc]) + np.float32(0)


@njit(cache=True, nogil=True)
def _push(heap: Any, size: int, key: Any) -> None:
    """Adds `key` to the smallest-first heap of `size` keys."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] <= key:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = key


@njit(cache=True, nogil=True)
def _replace(heap: Any, size: int, key: Any) -> None:
    """Puts `key` in the place of the smallest of `size` keys."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = key
