"""Sort keys: a score and the rank of a document's id in one number; the best of many, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..storage.compiled import inner, kernel

if TYPE_CHECKING:
    from ..core.arrays import Float32s, Int32s, Int64s, UInt32s, UInt64s
    from .kernel import Results

SORTED = 32  # greatest k sorted by the search itself; for more, numpy's sort is faster
UNSORTED = -1  # end of a row of keys that are in no order


@inner()
def key_of(score: Float32s, rank: int) -> np.uint64:
    """Return the sort key of a score and the rank of a document's id, as `core.ranking.order_keys` does."""
    score[0] += np.float32(0)  # -0.0 becomes 0.0
    bits = score.view(np.uint32)[0]
    ordered = ~bits if bits >> 31 else bits | np.uint32(0x80000000)
    return np.uint64(np.uint32(ordered)) << np.uint64(32) | np.uint64(rank)


@inner()
def select(keys: UInt64s, size: int, k: int) -> int:
    """Move the `k` greatest of the first `size` distinct keys to the front, the least of them last; return their number.

    C. A. R. Hoare, "Algorithm 65: Find", Communications of the ACM 4(7), 1961, with N. Lomuto's partition, whose loop has no
    branch that depends on a key.
    """
    low, high = np.uint64(0), np.uint64(size if size >= k else 0)
    one, target = np.uint64(1), np.uint64(k - 1)
    while low + one < high:
        last, middle = high - one, (low + high) >> one
        pivot, keys[middle] = keys[middle], keys[last]
        front = low
        for i in range(low, last):
            key = keys[i]
            keys[i] = keys[front]
            keys[front] = key
            front += np.uint64(key > pivot)
        keys[last], keys[front] = keys[front], pivot
        if front < target:
            low = front + one
        elif front > target:
            high = front
        else:
            break
    return min(size, k)


@inner()
def sort_keys(keys: UInt64s, size: int) -> None:
    """Insertion sort of the first `size` keys, descending."""
    for i in range(1, size):
        key, slot = keys[i], i
        while slot > 0 and keys[slot - 1] < key:
            keys[slot] = keys[slot - 1]
            slot -= 1
        keys[slot] = key


@inner()
def decode_keys(keys: UInt64s, size: int, order: UInt32s, docs: Int32s, scores: Float32s) -> None:
    """Decode sort keys to documents and scores."""
    bits = scores.view(np.uint32)
    for i in range(size):
        docs[i] = order[keys[i] & np.uint64(0xFFFFFFFF)]
        half = np.uint32(keys[i] >> np.uint64(32))
        bits[i] = half & np.uint32(0x7FFFFFFF) if half >> np.uint32(31) else ~half


@kernel()
def best_first(keys: UInt64s, counts: Int64s, order: UInt32s, docs: Int32s, scores: Float32s) -> None:
    """Decode sorted keys to documents and scores.

    Args:
        keys: A row of keys for each topic, zeros followed by keys in ascending order.
        counts: Number of keys of each topic.
        order: The documents in ascending order of their ids.
        docs: Output: documents of all topics end to end, best first in each.
        scores: Output: scores of the documents.
    """
    start = 0
    for topic in range(len(counts)):
        decode_keys(keys[topic, ::-1], counts[topic], order, docs[start:], scores[start:])
        start += counts[topic]


@inner()
def write_best(candidates: UInt64s, size: int, k: int, order: UInt32s, results: Results) -> None:
    """Write the best candidates as the results of one topic."""
    counts, docs, scores, keys = results
    counts[0] = size = select(candidates, size, k)
    if keys.shape[1]:
        keys[0, :size] = candidates[:size]
    else:
        sort_keys(candidates, size)
        decode_keys(candidates, size, order, docs[0], scores[0])


@inner()
def reaches(score: Float32s, best: UInt64s) -> bool:
    """Whether a score is at least that of the last of the `best` keys; only then must the rank of the id be read."""
    return key_of(score, 0) >> np.uint64(32) >= best[-1] >> np.uint64(32)  # type: ignore[no-any-return]


@inner()
def collect(key: np.uint64, match: int, k: int, best: UInt64s, keys: UInt64s) -> None:
    """Insert the key of a match into `best`, in descending order, if k is at most SORTED; otherwise write it to `keys`."""
    if k > SORTED:
        keys[match] = key
    elif match < k or key > best[k - 1]:
        slot = min(match, k - 1)
        while slot > 0 and best[slot - 1] < key:
            best[slot] = best[slot - 1]
            slot -= 1
        best[slot] = key
