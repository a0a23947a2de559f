"""Phrases and windows over all documents of an index: positions are read only in documents that have all terms."""

from __future__ import annotations

import numpy as np

from ..core.arrays import Int32s, Int64s
from ..core.query import Phrase, Window
from ..index.parts import Part
from ..text.proximity import Spans, count_clause, spans_among
from .impacts import decoded_lists
from .lists import intersect, meet

NO_MATCHES = np.zeros(0, np.int32), np.zeros(0, np.int32)


def proximity_counts(part: Part, clause: Phrase | Window, numbers: list[int], column: int) -> tuple[Int32s, Int32s]:
    """Count a phrase or window in all documents.

    Args:
        part: The part of an index.
        clause: The clause.
        numbers: Numbers of the clause's terms, -1 for unknown terms.
        column: Position of the clause's field among the separate fields of the index, -1 for none.

    Returns:
        The matching documents, ascending, and the frequency in each; both int32.

    Raises:
        ParameterError: The index keeps no positions.
    """
    positions = part.positions
    if not numbers or min(numbers) < 0:
        return NO_MATCHES
    terms = sorted(set(numbers))
    slots = [terms.index(number) for number in numbers]
    is_exact = isinstance(clause, Phrase) and not clause.slop
    flat = np.array([*terms, *slots, *getattr(clause, "offsets", ())])
    term_numbers = flat[: len(terms)]
    docs, places = meet(*decoded_lists(part, term_numbers))
    if not (size := len(docs)):
        return NO_MATCHES
    if is_exact:
        return positions.count_phrase(term_numbers, flat[len(terms) :], docs, places, column)
    bounds, term_positions = positions.of_terms(
        term_numbers, np.arange(0, (len(terms) + 1) * size, size), places[:, :size].ravel()
    )
    limits = np.zeros((0, 2), dtype=np.int32) if column < 0 else positions.field_starts[docs, column : column + 2]
    tf = np.zeros(size, dtype=np.int32)
    count_clause(clause, slots, bounds, term_positions, limits, tf, np.zeros((0, 2), dtype=np.int32))
    rows = tf.nonzero()[0]
    return docs[rows], tf[rows]


def spans_in(part: Part, clause: Phrase | Window, numbers: list[int], column: int, doc: int) -> Spans:
    """Return the spans of a clause in a document; arguments as in `proximity_counts`."""
    positions, term_positions = part.positions, list[Int32s]()
    terms = sorted(set(numbers))
    for term in terms:
        docs = part.postings(np.array([term]))[0] if term >= 0 else np.zeros(0, np.int32)
        posting = np.flatnonzero(docs == doc)
        if not len(posting):
            return np.zeros((0, 2), dtype=np.int32)
        term_positions.append(positions.of(term, posting)[1])
    limits = None if column < 0 else positions.field_starts[doc, column : column + 2]
    return spans_among(clause, term_positions, [terms.index(number) for number in numbers], limits)


def meeting(lists: list[Int32s]) -> tuple[Int32s, list[Int64s]]:
    """Intersect ascending lists of documents.

    Returns:
        The documents that all lists have, and their indices in each list.
    """
    first, *longer = sorted(range(len(lists)), key=lambda i: len(lists[i]))
    docs = lists[first]
    places: dict[int, Int64s] = {}
    for i in longer:
        rows, other = np.empty(len(docs) + 1, dtype=np.int64), np.empty(len(docs) + 1, dtype=np.int64)
        size = intersect(docs, lists[i], rows, other)
        rows = rows[:size]
        docs = docs[rows]
        places = {j: of_list[rows] for j, of_list in places.items()} if places else {first: rows}
        places[i] = other[:size]
    return docs, [places[i] for i in range(len(lists))] if places else [np.arange(len(docs))]
