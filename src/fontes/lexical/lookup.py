"""Compiled search among a few given documents, each of which is looked up in the list of each term.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import compiled
from .conjunctions import key_of
from .kernel import SORTED, decode_keys, select, sort_keys
from .packed_kernels import add_weights, meet


@compiled()
def search_few(
    first: int, last: int, topics: Any, lists: Any, bounds_of: Any, given: Any, ids: Any, k: int, depth: int, results: Any
) -> None:
    """Find the best of some documents for the topics from `first` to `last`.

    Args:
        first: The first topic.
        last: The topic after the last.
        topics: As in `kernel.search`.
        lists: As in `kernel.search`.
        bounds_of: As in `kernel.search`.
        given: int32; the documents, ascending.
        ids: As in `kernel.search`.
        k: Greatest number of documents per topic.
        depth: Not used.
        results: As in `kernel.search`.
    """
    rank, order = ids
    counts, docs, scores, keys = results
    topic_bounds, terms, query_weights = topics
    row_of, starts = bounds_of[3], bounds_of[5]
    sums, weights, matched = np.empty(len(given)), np.empty(len(given)), np.empty(len(given), dtype=np.bool_)
    met, postings = np.empty(len(given) + 1, dtype=np.int64), np.empty(len(given) + 1, dtype=np.int64)
    docs_met, candidates = np.empty(len(given), dtype=np.int32), np.empty(len(given), dtype=np.uint64)
    score = np.empty(1, dtype=np.float32)
    for topic in range(first, last):
        sums[:] = 0
        matched[:] = False
        for i in range(topic_bounds[topic], topic_bounds[topic + 1]):
            size, _ = meet(lists, row_of, starts, terms[i], given, 0, met, postings)
            weights[:size] = 0
            for j in range(size):
                docs_met[j] = given[met[j]]
            add_weights(lists, row_of[terms[i]], terms[i], query_weights[i], docs_met[:size], postings, weights)
            for j in range(size):
                sums[met[j]] += weights[j]
                matched[met[j]] = True
        size = 0
        for j in range(len(given)):
            if matched[j]:
                score[0] = sums[j]
                candidates[size] = key_of(score, rank[given[j]])
                size += 1
        counts[topic - first] = size = select(candidates, size, k)
        if k <= SORTED:
            sort_keys(candidates, size)
            decode_keys(candidates, size, order, docs[topic - first], scores[topic - first])
        else:
            keys[topic - first, :size] = candidates[:size]
