"""Compiled conjunctions: the intersection of lists of documents, and its best documents.

The documents of the shortest list are looked up by galloping in the next longer list, and so on. Each remaining document is
weighed, and the best are kept in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import inner, kernel
from .kernel import SORTED


@kernel()
def search_all(
    numbers: Any, query_weights: Any, required: Any, excluded: Any, lists: Any, other: Any, allowed: Any, ids: Any, k: int,
    results: Any,
) -> Any:  # fmt: skip
    """Find the best documents that have all of some clauses.

    Args:
        numbers: int64; the list of each clause that scores: its number in `lists`, or the complement of its number in `other`.
        query_weights: float64; query weights of the clauses.
        required: int64; indices of the clauses that a document must have.
        excluded: int64; lists that must not contain the document, numbered as in `numbers`.
        lists: (bounds, docs, weights), as in `kernel.search`.
        other: (bounds, docs, weights) of other lists.
        allowed: Whether each document may be returned; empty: all.
        ids: As in `kernel.search`.
        k: Greatest number of documents.
        results: Output, (docs, scores, keys): the best documents and their scores if k is at most SORTED; otherwise the key of
            each matching document.

    Returns:
        The number of all matching documents.
    """
    docs, places = _meet(numbers, required, lists, other)
    size, firsts = len(docs), np.empty(len(numbers), dtype=np.int64)
    met, of_list = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    if len(allowed) or len(excluded):
        size = _exclude(docs, excluded, lists, other, allowed, required, places, met, of_list)
    for i in range(len(numbers)):
        firsts[i] = lists[0][numbers[i]] if numbers[i] >= 0 else other[0][~numbers[i]]
    if len(required) < len(numbers):
        is_required = np.zeros(len(numbers), dtype=np.bool_)
        is_required[required] = True
        for i in range(len(numbers)):
            if not is_required[i]:
                places[i, :size] = -1
                for match in range(intersect_from(docs[:size], _docs(numbers[i], lists, other), 0, met, of_list)[0]):
                    places[i, met[match]] = of_list[match]
    best, score = np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, dtype=np.float32)
    for match in range(size):
        total = 0.0
        for i in range(len(numbers)):
            if places[i, match] >= 0:
                posting = firsts[i] + places[i, match]
                total += query_weights[i] * (lists[2][posting] if numbers[i] >= 0 else other[2][posting])
        score[0] = total
        collect(key_of(score, ids[0][docs[match]]), match, k, best, results[2])
    if k <= SORTED:
        decode(best, min(size, k), ids[1], results)
    return size


@kernel()
def search_weighed(docs: Any, tf: Any, lengths: Any, parameters: Any, query_weight: Any, ids: Any, k: int, results: Any) -> Any:
    """Find the best documents for a clause; see `weighting.Saturation`.

    Args:
        docs: The documents that match the clause.
        tf: Frequency of the clause in each document.
        lengths: float64; dl of each document of the index.
        parameters: (idf, factor, k1, delta, 1 - b, b, avgdl).
        query_weight: The query weight of the clause.
        ids: As in `search_all`.
        k: As in `search_all`.
        results: As in `search_all`.

    Returns:
        The number of documents; 0 if a weight is not finite.
    """
    idf, factor, k1, delta, constant, b, mean = parameters
    best, score, are_finite = np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, dtype=np.float32), True
    for match in range(len(docs)):
        length = constant + b * lengths[docs[match]] / mean
        weight = np.float32(idf * (factor * tf[match] / (tf[match] + k1 * length) + delta))
        are_finite &= np.isfinite(weight)
        score[0] = query_weight * weight
        collect(key_of(score, ids[0][docs[match]]), match, k, best, results[2])
    if k <= SORTED:
        decode(best, min(len(docs), k), ids[1], results)
    return len(docs) if are_finite else 0


@kernel(lambda numbers, bounds, *_: 3 * len(numbers) * int((bounds[numbers + 1] - bounds[numbers]).max()))
def meet(numbers: Any, bounds: Any, docs: Any) -> Any:
    """Intersect lists of documents.

    Args:
        numbers: int64; numbers of the lists.
        bounds: Start of each list, and the end of the last.
        docs: Documents of the lists.

    Returns:
        The common documents; and their indices in each list, a row for each list, with at least one more column.
    """
    lists = bounds, docs
    return _meet(numbers, np.arange(len(numbers)), lists, lists)


@inner()
def _docs(number: int, lists: Any, other: Any) -> Any:
    """Return the documents of a list."""
    if number >= 0:
        return lists[1][lists[0][number] : lists[0][number + 1]]
    return other[1][other[0][~number] : other[0][~number + 1]]


@inner()
def _meet(numbers: Any, required: Any, lists: Any, other: Any) -> Any:
    """Intersect lists of documents.

    Args:
        numbers: As in `search_all`.
        required: Indices in `numbers` of the lists to intersect.
        lists: As in `search_all`.
        other: As in `search_all`.

    Returns:
        The common documents; and their indices in each list, a row for each of `numbers`; other rows are not filled.
    """
    order = required.copy()
    for i in range(1, len(order)):  # insertion sort, the shortest list first
        clause, slot = order[i], i
        while slot > 0 and len(_docs(numbers[order[slot - 1]], lists, other)) > len(_docs(numbers[clause], lists, other)):
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = clause
    lead = _docs(numbers[order[0]], lists, other)
    size = len(lead)
    docs, places = np.empty(size + 1, dtype=np.int32), np.empty((len(numbers), size + 1), dtype=np.int64)
    first = places[order[0]]
    if len(order) == 1:
        for match in range(size):
            docs[match], first[match] = lead[match], match
        return docs[:size], places
    size, _ = intersect_from(lead, _docs(numbers[order[1]], lists, other), 0, first, places[order[1]])
    for match in range(size):
        docs[match] = lead[first[match]]
    if len(order) > 2:
        met = np.empty(size + 1, dtype=np.int64)
        for j in range(2, len(order)):
            size, _ = intersect_from(docs[:size], _docs(numbers[order[j]], lists, other), 0, met, places[order[j]])
            for match in range(size):
                docs[match] = docs[met[match]]
                for i in order[:j]:
                    places[i, match] = places[i, met[match]]
    return docs[:size], places


@inner()
def _exclude(
    docs: Any, excluded: Any, lists: Any, other: Any, allowed: Any, required: Any, places: Any, met: Any, of_list: Any
) -> int:
    """Keep the allowed documents that are in no excluded list, and their indices in the lists; return their number."""
    passed = np.ones(len(docs), dtype=np.bool_)
    for number in excluded:
        for match in range(intersect_from(docs, _docs(number, lists, other), 0, met, of_list)[0]):
            passed[met[match]] = False
    size = 0
    for match in range(len(docs)):
        if passed[match] and (len(allowed) == 0 or allowed[docs[match]]):
            docs[size] = docs[match]
            for i in required:
                places[i, size] = places[i, match]
            size += 1
    return size


@kernel(lambda a, b, *_: 24 * len(a))
def intersect(a: Any, b: Any, of_a: Any, of_b: Any) -> int:
    """Find the documents that two ascending lists share; return their number.

    Args:
        a: The shorter list.
        b: The longer one.
        of_a: Output: indices of the documents in `a`, with room for one more.
        of_b: Output: indices of the documents in `b`, with room for one more.
    """
    return intersect_from(a, b, 0, of_a, of_b)[0]  # type: ignore[no-any-return]


@inner()
def intersect_from(a: Any, b: Any, start: int, of_a: Any, of_b: Any) -> Any:
    """Intersect `a` with `b` from the index `start` on; return the number of documents, and the index reached in `b`.

    Each document of `a` is looked up in `b` by galloping over blocks of eight, and within its block without a branch. The other
    arguments are those of `intersect`.
    """
    one, block, last = np.uint64(1), np.uint64(8), np.uint64(7)
    size, j, end = np.uint64(0), np.uint64(start), np.uint64(len(b))
    full = end - last if end >= block else np.uint64(0)  # full blocks begin before this index
    for i in range(len(a)):
        doc = a[i]
        if j < full and b[j + last] < doc:
            step = block
            while j + step < full and b[j + step + last] < doc:
                j += step
                step += step
            while step >= block:
                if j + step < full and b[j + step + last] < doc:
                    j += step
                step >>= one
            j += block
        if j < full:
            smaller = np.uint64(0)
            for k in range(block):
                smaller += np.uint64(b[j + k] < doc)
            j += smaller
        else:
            while j < end and b[j] < doc:
                j += one
            if j == end:
                break
        of_a[size], of_b[size] = i, j
        size += np.uint64(b[j] == doc)
    return np.int64(size), np.int64(j)


@inner()
def key_of(score: Any, rank: Any) -> Any:
    """Return the sort key of a score and the rank of a document's id, as `core.ranking.order_keys` does."""
    score[0] += np.float32(0)  # -0.0 becomes 0.0
    bits = score.view(np.uint32)[0]
    ordered = ~bits if bits >> 31 else bits | np.uint32(0x80000000)
    return np.uint64(np.uint32(ordered)) << np.uint64(32) | np.uint64(rank)


@inner()
def reaches(score: Any, best: Any) -> bool:
    """Whether a score is at least that of the last of the `best` keys; only then must the rank of the id be read."""
    return key_of(score, 0) >> np.uint64(32) >= best[-1] >> np.uint64(32)  # type: ignore[no-any-return]


@inner()
def collect(key: Any, match: int, k: int, best: Any, keys: Any) -> None:
    """Insert the key of a match into `best`, in descending order, if k is at most SORTED; otherwise write it to `keys`."""
    if k > SORTED:
        keys[match] = key
    elif match < k or key > best[k - 1]:
        slot = min(match, k - 1)
        while slot > 0 and best[slot - 1] < key:
            best[slot] = best[slot - 1]
            slot -= 1
        best[slot] = key


@inner()
def decode(best: Any, size: int, order: Any, results: Any) -> None:
    """Decode keys to documents and scores."""
    bits = results[1].view(np.uint32)
    for i in range(size):
        results[0][i] = order[best[i] & np.uint64(0xFFFFFFFF)]
        half = np.uint32(best[i] >> np.uint64(32))
        bits[i] = half & np.uint32(0x7FFFFFFF) if half >> np.uint32(31) else ~half
