"""Phrases and windows over all documents of an index: where all their terms meet, positions are read and matches counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.query import Phrase, Window
from ..storage.compiled import kernel
from ..text.proximity import Spans, count_clause, spans_among
from .impacts import documents_of

GALLOP = 16  # a list so many times as long as the other is searched by galloping


def proximity_counts(
    index: Any, clause: Phrase | Window, numbers: NDArray[np.int64], place: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Count a phrase or window in all documents.

    Args:
        index: The index.
        clause: The clause.
        numbers: Numbers of its terms, -1 for unknown ones.
        place: Position of its field among those that the index keeps apart, -1 for none.

    Returns:
        The documents that match, ascending, and the frequency in each, both int32.

    Raises:
        ParameterError: The index keeps no positions.
    """
    positions: Any = index.positions
    if not len(numbers) or numbers.min() < 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    words = numbers.tolist()
    terms = sorted(set(words))
    docs, places = meeting([documents_of(index, term) for term in terms])
    if not len(docs):
        return docs, docs
    edges = np.arange(0, (len(terms) + 1) * len(docs), len(docs))
    bounds, of_terms = positions.of_terms(np.array(terms), edges, np.concatenate(places))
    limits = np.zeros((0, 2), dtype=np.int32) if place < 0 else positions.field_starts[docs, place : place + 2]
    tf = np.zeros(len(docs), dtype=np.int32)
    slots = [terms.index(word) for word in words]
    count_clause(clause, slots, bounds, of_terms, limits, tf, np.zeros((0, 2), dtype=np.int32))
    own = tf.nonzero()[0]
    return docs[own], tf[own]


def spans_in(index: Any, clause: Phrase | Window, numbers: NDArray[np.int64], place: int, doc: int) -> Spans:
    """Return where a document matches a clause; arguments as of `proximity_counts`."""
    positions: Any = index.positions
    words, of_terms = numbers.tolist(), []
    terms = sorted(set(words))
    for term in terms:
        docs = index.postings(np.array([term]))[0] if term >= 0 else np.zeros(0, np.int32)
        at = np.flatnonzero(docs == doc)
        if not len(at):
            return np.zeros((0, 2), dtype=np.int32)
        of_terms.append(positions.of(term, at)[1])
    limits = None if place < 0 else positions.field_starts[doc, place : place + 2]
    return spans_among(clause, of_terms, [terms.index(word) for word in words], limits)


def meeting(lists: list[NDArray[np.int32]]) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
    """Intersect ascending lists of documents.

    Returns:
        The documents of all lists, and their places in each list.
    """
    first, *rest = sorted(range(len(lists)), key=lambda i: len(lists[i]))
    docs = lists[first]
    places: dict[int, NDArray[np.int64]] = {}
    for i in rest:
        own, other = np.empty(len(docs) + 1, dtype=np.int64), np.empty(len(docs) + 1, dtype=np.int64)
        size = intersect(docs, lists[i], own, other)
        own = own[:size]
        docs = docs[own]
        places = {j: of_list[own] for j, of_list in places.items()} if places else {first: own}
        places[i] = other[:size]
    return docs, [places[i] for i in range(len(lists))] if places else [np.arange(len(docs))]


@kernel(lambda a, b, *_: len(a) + min(len(b), 24 * len(a)))
def intersect(a: Any, b: Any, of_a: Any, of_b: Any) -> int:
    """Fill in the places of the documents that two ascending lists share, and return their number; `b` is the longer list."""
    i, j, size, n, m = 0, 0, 0, len(a), len(b)
    if m > GALLOP * n:
        while i < n and j < m:
            doc = a[i]
            if b[j] < doc:
                step = 1
                while j + step < m and b[j + step] < doc:
                    j += step
                    step *= 2
                while step > 0:
                    if j + step < m and b[j + step] < doc:
                        j += step
                    step //= 2
                j += 1
            if j < m and b[j] == doc:
                of_a[size], of_b[size] = i, j
                size += 1
            i += 1
        return size
    while i < n and j < m:
        x, y = a[i], b[j]
        of_a[size], of_b[size] = i, j
        size += x == y
        i += x <= y
        j += y <= x
    return size
