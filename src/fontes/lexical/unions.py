"""Unions of the documents of several terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import kernel
from .kernel import BIT, DEBRUIJN


@kernel()
def unite(terms: Any, bounds: Any, of_lists: Any, words: Any, docs: Any) -> Any:
    """Find the documents that have one of some terms.

    Args:
        terms: The terms.
        bounds: Start of the postings of each term.
        of_lists: Their documents.
        words: uint64, zeros: a bit for each document.
        docs: Output: the documents, ascending; where there is no room, they are only counted.

    Returns:
        The number of documents.
    """
    for i in range(len(terms)):
        for at in range(bounds[terms[i]], bounds[terms[i] + 1]):
            doc = np.uint64(of_lists[at])
            words[doc >> np.uint64(6)] |= np.uint64(1) << (doc & np.uint64(63))
    size: Any = 0
    if len(docs) == 0:
        for word in words:  # the bits of each two, four and eight, and the sum of the eight bytes
            word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
            word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
            word = word + (word >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
            size += np.int64(word * np.uint64(0x0101010101010101) >> np.uint64(56))
        return size
    for i in range(len(words)):
        word = words[i]
        while word:
            lowest = word & (~word + np.uint64(1))
            docs[size] = 64 * i + BIT[lowest * DEBRUIJN >> np.uint64(58)]
            word ^= lowest
            size += 1
    return size
