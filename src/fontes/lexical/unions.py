"""Unions of the documents of several terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..storage.compiled import kernel
from .kernel import BIT, DEBRUIJN, FOUR

if TYPE_CHECKING:
    from ..core.arrays import Int32s, Int64s, UInt64s
    from ..index.packed_kernels import Packed


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
