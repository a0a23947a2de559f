"""Compiled search of some of the documents: few are looked up in the list of each term, many are a mask of the search.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..storage.compiled import compiled
from ..storage.pinned import read_only
from .kernel import LOOKUP_COST, ONE, WORD, search_bag
from .keys import key_of, write_best
from .lists import shared_of
from .packed_kernels import add_weights, meet, read

if TYPE_CHECKING:
    from ..core.arrays import Int32s, Int64s, UInt32s, UInt64s
    from ..index.packed_kernels import Lists
    from .kernel import Bag, BoundsOf, Clauses, Results

UNKNOWN = -2  # number of documents that were not all visited
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled()
def search_clauses(
    required: Int64s, excluded: Int64s, bag: Bag, clauses: Clauses | None, required_clauses: Int64s, allowed: UInt64s,
    ids: tuple[UInt32s, UInt32s], k: int, depth: int, results: Results,
) -> int:  # fmt: skip
    """Find the best documents for one topic that have some terms and match some clauses, and lack other terms.

    Args:
        required: int64; terms that a document must have.
        excluded: int64; terms that it must not have.
        bag: As in `kernel.search_bag`; the terms that score.
        clauses: As in `kernel.search_bag`; the clauses that score.
        required_clauses: int64; which of the clauses a document must match.
        allowed: As in `kernel.search_bag`.
        ids: As in `kernel.search_bag`.
        k: Greatest number of documents.
        depth: As in `kernel.search_bag`, if all documents are allowed and none is excluded.
        results: As in `kernel.search_bag`.

    Returns:
        The number of all matching documents; UNKNOWN if no term or clause is required.
    """
    lists, bounds_of = bag[3], bag[4]
    words, size_of_mask = allowed, (len(ids[0]) + WORD - 1) // WORD
    if len(required) == 0 and len(required_clauses) == 0:
        if len(excluded):
            words = allowed.copy() if len(allowed) else np.full(size_of_mask, ALL)
            for term in excluded:
                for doc in _documents(term, lists, bounds_of):
                    words[doc // WORD] &= ~(ONE << np.uint64(doc % WORD))
        search_bag(bag, clauses, read_only(words), ids, k, np.int64(-1) if len(words) else depth, np.float32(0), results)
        return UNKNOWN
    docs = _matching(required, excluded, lists, bounds_of, clauses, required_clauses, allowed)
    postings: Any = 0
    for term in bag[0]:
        postings += lists[0][term + 1] - lists[0][term]
    if clauses is not None or len(docs) * len(bag[0]) * LOOKUP_COST < postings:
        search_few(bag, clauses, docs, np.bool_(True), ids, k, results)
    else:
        words = np.zeros(size_of_mask, dtype=np.uint64)
        for doc in docs:
            words[doc // WORD] |= ONE << np.uint64(doc % WORD)
        search_bag(bag, None, read_only(words), ids, k, np.int64(-1), np.float32(0), results)
    return len(docs)


@compiled()
def _documents(term: int, lists: Lists, bounds_of: BoundsOf) -> Int32s:
    """Return the documents of a term."""
    size = lists[0][term + 1] - lists[0][term]
    docs = np.empty(size, dtype=np.int32)
    read(lists, bounds_of[3], bounds_of[5], term, 0, size, docs)
    return docs


@compiled()
def _matching(
    required: Int64s, excluded: Int64s, lists: Lists, bounds_of: BoundsOf, clauses: Clauses | None, required_clauses: Int64s,
    allowed: UInt64s,
) -> Any:  # fmt: skip
    """Return the allowed documents that have what `search_clauses` requires and no excluded term, ascending."""
    row_of, starts = bounds_of[3], bounds_of[5]
    lead, shortest, first_clause = -1, np.int64(1) << 62, -1
    for term in required:
        if lists[0][term + 1] - lists[0][term] < shortest:
            lead, shortest = term, lists[0][term + 1] - lists[0][term]
    if clauses is not None:
        for clause in required_clauses:
            if clauses[0][clause + 1] - clauses[0][clause] < shortest:
                first_clause, shortest = clause, clauses[0][clause + 1] - clauses[0][clause]
    if clauses is not None and first_clause >= 0:
        docs = clauses[1][clauses[0][first_clause] : clauses[0][first_clause + 1]].copy()
        lead = -1
    else:
        docs = _documents(lead, lists, bounds_of)
    size = len(docs)
    met, postings = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    if len(allowed):
        kept: Any = 0
        for doc in docs:
            docs[kept] = doc
            kept += np.int64(allowed[doc // WORD] >> np.uint64(doc % WORD) & ONE)
        size = kept
    if clauses is not None:
        for clause in required_clauses:
            if clause != first_clause:
                of_clause = clauses[1][clauses[0][clause] : clauses[0][clause + 1]]
                size = shared_of(read_only(docs[:size]), of_clause, met, postings)
                for i in range(size):
                    docs[i] = docs[met[i]]
    for term in required:
        if term != lead:
            size, _ = meet(lists, row_of, starts, term, read_only(docs[:size]), 0, met, postings)
            for i in range(size):
                docs[i] = docs[met[i]]
    for term in excluded:
        count, _ = meet(lists, row_of, starts, term, read_only(docs[:size]), 0, met, postings)
        next_met = 0
        kept = 0
        for i in range(size):
            if next_met < count and met[next_met] == i:
                next_met += 1
            else:
                docs[kept] = docs[i]
                kept += 1
        size = kept
    return read_only(docs[:size])


@compiled()
def search_few(
    bag: Bag, clauses: Clauses | None, candidates: Int32s, all_match: bool, ids: tuple[UInt32s, UInt32s], k: int,
    results: Results,
) -> None:  # fmt: skip
    """Find the best of some documents by the sums of terms and clauses.

    Args:
        bag: As in `kernel.search_bag`.
        clauses: As in `kernel.search_bag`.
        candidates: int32; the documents, ascending.
        all_match: Whether documents without any of the terms and clauses are among them.
        ids: As in `kernel.search_bag`.
        k: Greatest number of documents.
        results: As in `kernel.search_bag`.
    """
    terms, query_weights, idfs, lists, bounds_of, _ = bag
    row_of, starts = bounds_of[3], bounds_of[5]
    sums, weights, matched = np.zeros(len(candidates)), np.empty(len(candidates)), np.empty(len(candidates), dtype=np.bool_)
    met, postings = np.empty(len(candidates) + 1, dtype=np.int64), np.empty(len(candidates) + 1, dtype=np.int64)
    docs_met, best = np.empty(len(candidates), dtype=np.int32), np.empty(len(candidates), dtype=np.uint64)
    score = np.empty(1, dtype=np.float32)
    matched[:] = all_match
    for i in range(len(terms)):
        size, _ = meet(lists, row_of, starts, terms[i], candidates, 0, met, postings)
        weights[:size] = 0
        for j in range(size):
            docs_met[j] = candidates[met[j]]
        add_weights(lists, row_of[terms[i]], terms[i], query_weights[i], idfs[i], docs_met[:size], postings, weights)
        for j in range(size):
            sums[met[j]] += weights[j]
            matched[met[j]] = True
    if clauses is not None:
        bounds, docs, clause_weights, clause_query_weights, _ = clauses
        for i in range(len(clause_query_weights)):
            size = shared_of(candidates, docs[bounds[i] : bounds[i + 1]], met, postings)
            for j in range(size):
                sums[met[j]] += clause_query_weights[i] * clause_weights[bounds[i] + postings[j]]
                matched[met[j]] = True
    size = 0
    for j in range(len(candidates)):
        if matched[j]:
            score[0] = sums[j]
            best[size] = key_of(score, ids[0][candidates[j]])
            size += 1
    write_best(best, size, k, ids[1], results)
