"""Compiled intersections and unions of lists of documents.

In an intersection the documents of the shortest list are looked up by galloping in the next longer list, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..storage.compiled import inner, kernel
from .kernel import BIT, DEBRUIJN, FOUR

if TYPE_CHECKING:
    from ..core.arrays import Int32s, Int64s, UInt64s
    from ..index.packed_kernels import Packed


@kernel(lambda numbers, bounds, *_: 3 * len(numbers) * int((bounds[numbers + 1] - bounds[numbers]).max()))
def meet(numbers: Int64s, bounds: Int64s, docs: Int32s) -> tuple[Int32s, Int64s]:
    """Intersect lists of documents.

    Args:
        numbers: int64; numbers of the lists.
        bounds: Start of each list, and the end of the last.
        docs: Documents of the lists.

    Returns:
        The common documents; and their indices in each list, a row for each list, with at least one more column.
    """
    order = np.arange(len(numbers))
    for i in range(1, len(order)):  # insertion sort, the shortest list first
        slot = i
        while slot > 0 and _size(numbers[order[slot - 1]], bounds) > _size(numbers[i], bounds):
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = i
    lead = docs[bounds[numbers[order[0]]] : bounds[numbers[order[0]] + 1]]
    size = len(lead)
    shared, places = np.empty(size + 1, dtype=np.int32), np.empty((len(numbers), size + 1), dtype=np.int64)
    met = np.empty(size + 1, dtype=np.int64)
    for match in range(size):
        shared[match], places[order[0], match] = lead[match], match
    for j in range(1, len(order)):
        of_list = docs[bounds[numbers[order[j]]] : bounds[numbers[order[j]] + 1]]
        size = shared_of(shared[:size], of_list, met, places[order[j]])
        for match in range(size):
            shared[match] = shared[met[match]]
            for i in order[:j]:
                places[i, match] = places[i, met[match]]
    return shared[:size], places


@inner()
def _size(number: int, bounds: Int64s) -> Any:
    """Return the length of a list."""
    return bounds[number + 1] - bounds[number]


@kernel(lambda a, b, *_: 24 * len(a))
def intersect(a: Int32s, b: Int32s, of_a: Int64s, of_b: Int64s) -> int:
    """Find the documents that two ascending lists share; return their number.

    Args:
        a: The shorter list.
        b: The longer one.
        of_a: Output: indices of the documents in `a`, with room for one more.
        of_b: Output: indices of the documents in `b`, with room for one more.
    """
    return shared_of(a, b, of_a, of_b)  # type: ignore[no-any-return]


@inner()
def shared_of(a: Int32s, b: Int32s, of_a: Int64s, of_b: Int64s) -> Any:
    """Do what `intersect` does, for compiled loops.

    Each document of `a` is looked up in `b` by galloping over blocks of eight, and within its block without a branch.
    """
    one, block, last = np.uint64(1), np.uint64(8), np.uint64(7)
    size, j, end = np.uint64(0), np.uint64(0), np.uint64(len(b))
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
    return np.int64(size)


@kernel()
def unite(terms: Int64s, packed: Packed, size_of_window: int, words: UInt64s, docs: Int32s) -> Any:
    """Find the documents that have at least one of some terms.

    Args:
        terms: The terms.
        packed: As in `packed_kernels.unpack`.
        size_of_window: Number of documents in a window.
        words: Scratch, uint64, zeros: a bit for each document.
        docs: Output: the documents, ascending; if empty, documents are only counted.

    Returns:
        The number of documents.
    """
    lists, row_of, starts = packed
    bounds, offsets, of_lists, _, places, _, widths, _, _, _ = lists
    one, six, last_six, bits = np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(widths[0])
    for term in terms:
        row, begin = row_of[term], offsets[term]
        if row < 0:
            for posting in range(begin, begin + bounds[term + 1] - bounds[term]):
                doc = np.uint64(of_lists[posting]) >> bits
                words[doc >> six] |= one << (doc & last_six)
            continue
        for window in range(starts.shape[1] - 1):
            first = np.uint64(window * size_of_window)
            for posting in range(begin + np.int64(starts[row, window]), begin + np.int64(starts[row, window + 1])):
                doc = first + (np.uint64(places[posting]) >> FOUR)
                words[doc >> six] |= one << (doc & last_six)
    size: Any = 0
    if len(docs) == 0:
        for word in words:  # count the bits of each two, four and eight, and sum the eight bytes
            word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
            word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
            word = word + (word >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
            size += np.int64(word * np.uint64(0x0101010101010101) >> np.uint64(56))
        return size
    for i in range(len(words)):
        word = words[i]
        while word:
            lowest = word & (~word + np.uint64(1))
            docs[size] = 64 * i + np.int64(BIT[lowest * DEBRUIJN >> np.uint64(58)])
            word ^= lowest
            size += 1
    return size
