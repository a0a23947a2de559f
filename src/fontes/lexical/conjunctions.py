"""Compiled conjunctions: the documents that all of some lists have, and the best of them.

The shortest list leads, and its documents are looked for in the next longer one by galloping. The documents that are left are
weighed one after the other, and the best are kept in order.
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
        numbers: int64; the list of each clause that scores: its number in `lists`, or the complement of that in `other`.
        query_weights: float64; their query weights.
        required: int64; which of them a document must have.
        excluded: int64; lists that a document must not be in, numbered alike.
        lists: (bounds, docs, weights) of lists, as in `kernel.search`.
        other: Likewise.
        allowed: Whether each document may be returned; none: all.
        ids: As in `kernel.search`.
        k: Greatest number of documents.
        results: Output, (docs, scores, keys): the best documents and their scores where k is at most SORTED; else a key of each
            document that matches.

    Returns:
        The number of all documents that match.
    """
    docs, places = _meet(numbers, required, lists, other)
    size, firsts = len(docs), np.empty(len(numbers), dtype=np.int64)
    met, of_list = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    if len(allowed) or len(excluded):
        size = _without(docs, excluded, lists, other, allowed, required, places, met, of_list)
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
                at = firsts[i] + places[i, match]
                total += query_weights[i] * (lists[2][at] if numbers[i] >= 0 else other[2][at])
        score[0] = total
        collect(key_of(score, ids[0][docs[match]]), match, k, best, results[2])
    if k <= SORTED:
        decode(best, min(size, k), ids[1], results)
    return size


@kernel()
def search_weighed(docs: Any, tf: Any, lengths: Any, parameters: Any, query_weight: Any, ids: Any, k: int, results: Any) -> Any:
    """Find the best documents that have a clause; see `weighting.Saturation`.

    Args:
        docs: The documents.
        tf: Frequency of the clause in each.
        lengths: float64; dl of every document.
        parameters: (idf, factor, k1, delta, 1 - b, b, avgdl).
        query_weight: The query weight of the clause.
        ids: As in `search_all`.
        k: As in `search_all`.
        results: As in `search_all`.

    Returns:
        The number of documents, 0 where a weight is not finite.
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
    """Find the documents that all of some lists have.

    Args:
        numbers: int64; the lists.
        bounds: Start of each list, and the end of the last.
        docs: Their documents.

    Returns:
        The documents, and their places in each list, a row each, with room for one more at least.
    """
    lists = bounds, docs
    return _meet(numbers, np.arange(len(numbers)), lists, lists)


@inner()
def _docs(number: int, lists: Any, other: Any) -> Any:
    """Documents of a list."""
    if number >= 0:
        return lists[1][lists[0][number] : lists[0][number + 1]]
    return other[1][other[0][~number] : other[0][~number + 1]]


@inner()
def _meet(numbers: Any, required: Any, lists: Any, other: Any) -> Any:
    """Find the documents that all of some lists have.

    Args:
        numbers: As in `search_all`.
        required: The lists that meet.
        lists: As in `search_all`.
        other: As in `search_all`.

    Returns:
        The documents, and their places in each of `numbers`, a row each; rows that are not required have none.
    """
    order = required.copy()
    for i in range(1, len(order)):  # the shortest first
        this, at = order[i], i
        while at > 0 and len(_docs(numbers[order[at - 1]], lists, other)) > len(_docs(numbers[this], lists, other)):
            order[at] = order[at - 1]
            at -= 1
        order[at] = this
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
def _without(
    docs: Any, excluded: Any, lists: Any, other: Any, allowed: Any, required: Any, places: Any, met: Any, of_list: Any
) -> int:
    """Keep the allowed documents that are in no excluded list, and their places; return their number."""
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
        of_a: Output: places of the documents in `a`; there is room for one more.
        of_b: Output: their places in `b`.
    """
    return intersect_from(a, b, 0, of_a, of_b)[0]  # type: ignore[no-any-return]


@inner()
def intersect_from(a: Any, b: Any, start: int, of_a: Any, of_b: Any) -> Any:
    """Intersect a list with another one from a place on; return the number of documents, and the place that was reached.

    Each document of `a` is looked for in `b` by galloping over blocks of eight, and in its block without a branch. The other
    arguments are those of `intersect`.
    """
    one, block, last = np.uint64(1), np.uint64(8), np.uint64(7)
    size, j, end = np.uint64(0), np.uint64(start), np.uint64(len(b))
    full = end - last if end >= block else np.uint64(0)  # blocks begin before it
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
            before = np.uint64(0)
            for k in range(block):
                before += np.uint64(b[j + k] < doc)
            j += before
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
    """Sort key of a score and the position of a document's id, as `core.ranking.order_keys` makes it."""
    score[0] += np.float32(0)  # -0.0 becomes 0.0
    bits = score.view(np.uint32)[0]
    ordered = ~bits if bits >> 31 else bits | np.uint32(0x80000000)
    return np.uint64(np.uint32(ordered)) << np.uint64(32) | np.uint64(rank)


@inner()
def reaches(score: Any, best: Any) -> bool:
    """Whether a score is at least the last of the `best` keys; that of a document's id is read for these alone."""
    return key_of(score, 0) >> np.uint64(32) >= best[-1] >> np.uint64(32)  # type: ignore[no-any-return]


@inner()
def collect(key: Any, match: int, k: int, best: Any, keys: Any) -> None:
    """Insert the key of a match among the `best`, which descend, if k is at most SORTED; else write it to `keys`."""
    if k > SORTED:
        keys[match] = key
    elif match < k or key > best[k - 1]:
        at = min(match, k - 1)
        while at > 0 and best[at - 1] < key:
            best[at] = best[at - 1]
            at -= 1
        best[at] = key


@inner()
def decode(best: Any, size: int, order: Any, results: Any) -> None:
    """Write keys as documents and scores."""
    bits = results[1].view(np.uint32)
    for i in range(size):
        results[0][i] = order[best[i] & np.uint64(0xFFFFFFFF)]
        half = np.uint32(best[i] >> np.uint64(32))
        bits[i] = half & np.uint32(0x7FFFFFFF) if half >> np.uint32(31) else ~half
