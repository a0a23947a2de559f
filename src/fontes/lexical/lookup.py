"""Compiled search of some of the documents: few are looked up in the list of each term, many are a mask of the search.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import compiled
from .conjunctions import key_of
from .filtered import LOOKUP_COST
from .kernel import ONE, WORD, decode_keys, search, select, sort_keys
from .packed_kernels import add_weights, meet, read

UNKNOWN = -2  # number of documents that were not all visited
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled()
def search_clauses(
    required: Any, excluded: Any, topics: Any, lists: Any, bounds_of: Any, allowed: Any, ids: Any, k: int, depth: int,
    results: Any,
) -> Any:  # fmt: skip
    """Find the best documents for one topic that have some terms, and lack others.

    Args:
        required: int64; terms that a document must have.
        excluded: int64; terms that it must not have.
        topics: As in `kernel.search`; the terms that score.
        lists: As in `kernel.search`.
        bounds_of: As in `kernel.search`.
        allowed: As in `kernel.search`.
        ids: As in `kernel.search`.
        k: Greatest number of documents.
        depth: As in `kernel.search`, if all documents are allowed and none is excluded.
        results: As in `kernel.search`.

    Returns:
        The number of all matching documents; UNKNOWN without required terms.
    """
    words, size_of_mask = allowed, (len(ids[0]) + WORD - 1) // WORD
    if len(required) == 0:
        if len(excluded):
            words = allowed.copy() if len(allowed) else np.full(size_of_mask, ALL)
            for term in excluded:
                for doc in _documents(term, lists, bounds_of):
                    words[doc // WORD] &= ~(ONE << np.uint64(doc % WORD))
        search(0, 1, topics, lists, bounds_of, words, ids, k, -1 if len(words) else depth, results)
        return UNKNOWN
    docs = _matching(required, excluded, lists, bounds_of, allowed)
    postings: Any = 0
    for term in topics[1]:
        postings += lists[0][term + 1] - lists[0][term]
    if len(docs) * len(topics[1]) * LOOKUP_COST < postings:
        search_few(0, 1, topics, lists, bounds_of, docs, ids, k, -1, results)
    else:
        words = np.zeros(size_of_mask, dtype=np.uint64)
        for doc in docs:
            words[doc // WORD] |= ONE << np.uint64(doc % WORD)
        search(0, 1, topics, lists, bounds_of, words, ids, k, -1, results)
    return len(docs)


@compiled()
def _documents(term: Any, lists: Any, bounds_of: Any) -> Any:
    """Return the documents of a term."""
    size = lists[0][term + 1] - lists[0][term]
    docs = np.empty(size, dtype=np.int32)
    read(lists, bounds_of[3], bounds_of[5], term, 0, size, docs)
    return docs


@compiled()
def _matching(required: Any, excluded: Any, lists: Any, bounds_of: Any, allowed: Any) -> Any:
    """Return the allowed documents that have all required terms and no excluded one, ascending."""
    row_of, starts = bounds_of[3], bounds_of[5]
    lead = required[0]
    for term in required:
        if lists[0][term + 1] - lists[0][term] < lists[0][lead + 1] - lists[0][lead]:
            lead = term
    docs = _documents(lead, lists, bounds_of)
    size = len(docs)
    met, postings = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    if len(allowed):
        kept: Any = 0
        for doc in docs:
            docs[kept] = doc
            kept += np.int64(allowed[doc // WORD] >> np.uint64(doc % WORD) & ONE)
        size = kept
    for term in required:
        if term != lead:
            size, _ = meet(lists, row_of, starts, term, docs[:size], 0, met, postings)
            for i in range(size):
                docs[i] = docs[met[i]]
    for term in excluded:
        count, _ = meet(lists, row_of, starts, term, docs[:size], 0, met, postings)
        next_met = 0
        kept = 0
        for i in range(size):
            if next_met < count and met[next_met] == i:
                next_met += 1
            else:
                docs[kept] = docs[i]
                kept += 1
        size = kept
    return docs[:size]


@compiled()
def search_few(
    first: int, last: int, topics: Any, lists: Any, bounds_of: Any, candidates: Any, ids: Any, k: int, depth: int, results: Any
) -> None:
    """Find the best of some documents for the topics from `first` to `last`.

    Args:
        first: The first topic.
        last: The topic after the last.
        topics: As in `kernel.search`.
        lists: As in `kernel.search`.
        bounds_of: As in `kernel.search`.
        candidates: int32; the documents, ascending.
        ids: As in `kernel.search`.
        k: Greatest number of documents per topic.
        depth: Not used.
        results: As in `kernel.search`.
    """
    rank, order = ids
    counts, docs, scores, keys = results
    topic_bounds, terms, query_weights, idfs = topics
    row_of, starts = bounds_of[3], bounds_of[5]
    sums, weights, matched = np.empty(len(candidates)), np.empty(len(candidates)), np.empty(len(candidates), dtype=np.bool_)
    met, postings = np.empty(len(candidates) + 1, dtype=np.int64), np.empty(len(candidates) + 1, dtype=np.int64)
    docs_met, best = np.empty(len(candidates), dtype=np.int32), np.empty(len(candidates), dtype=np.uint64)
    score = np.empty(1, dtype=np.float32)
    for topic in range(first, last):
        sums[:] = 0
        matched[:] = False
        for i in range(topic_bounds[topic], topic_bounds[topic + 1]):
            size, _ = meet(lists, row_of, starts, terms[i], candidates, 0, met, postings)
            weights[:size] = 0
            for j in range(size):
                docs_met[j] = candidates[met[j]]
            add_weights(lists, row_of[terms[i]], terms[i], query_weights[i], idfs[i], docs_met[:size], postings, weights)
            for j in range(size):
                sums[met[j]] += weights[j]
                matched[met[j]] = True
        size = 0
        for j in range(len(candidates)):
            if matched[j]:
                score[0] = sums[j]
                best[size] = key_of(score, rank[candidates[j]])
                size += 1
        counts[topic - first] = size = select(best, size, k)
        if keys.shape[1]:
            keys[topic - first, :size] = best[:size]
        else:
            sort_keys(best, size)
            decode_keys(best, size, order, docs[topic - first], scores[topic - first])
