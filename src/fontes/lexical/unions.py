"""Unions of the documents of several terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import kernel


@kernel()
def unite(terms: Any, lists: Any, marks: Any, docs: Any) -> int:
    """Find the documents that have one of some terms.

    Args:
        terms: The terms.
        lists: Bounds and documents of the postings, as of `search`.
        marks: uint8, zeros: room for each document, and up to a multiple of 8.
        docs: Output: the documents, ascending; one more place than there are documents.

    Returns:
        The number of documents.
    """
    bounds, of_lists = lists
    for i in range(len(terms)):
        for at in range(bounds[terms[i]], bounds[terms[i] + 1]):
            marks[of_lists[at]] = 1
    words = marks.view(np.uint64)
    size = 0
    for word in range(len(words)):
        if words[word]:
            for doc in range(8 * word, 8 * word + 8):
                docs[size] = doc
                size += marks[doc]
    return size
