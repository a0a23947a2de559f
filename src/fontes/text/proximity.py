"""Matches of phrases and windows in texts: their number and their positions.

An exact phrase matches where its terms stand at its offsets. With slop, terms may move: the adjusted position of a term is its
position minus its offset in the phrase, and a match has one position for each term, with adjusted positions that differ by at
most `slop`. (Lucene weighs such a match by its distance; here it counts as one.) If a match contains another match, only the
inner match counts. A window is counted as Indri counts #uwN: once for each position of its terms from which all terms follow
within the width. Equal terms of a clause must stand at different positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..core.arrays import Int32s, Int64s
from ..core.query import Phrase, Window
from ..storage.compiled import inner, kernel

INFINITY = 1 << 30  # greater than any position
Spans = Int32s
"""First and last position of each match of a clause in a text, int32 (matches, 2)."""


def spans_among(
    clause: Phrase | Window,
    positions: list[Int32s],
    slots: Sequence[int],
    limits: Int32s | None = None,
) -> Spans:
    """Return the matches of a clause in one text.

    Args:
        clause: The clause.
        positions: Positions of each distinct term, ascending.
        slots: Index in `positions` of each term of the clause.
        limits: First position of the field and the one after its last; None: the whole text.
    """
    bounds = np.array([0, *accumulate(map(len, positions))], dtype=np.int64)
    flat = np.concatenate(positions).astype(np.int32)
    spans, tf = np.zeros((len(flat), 2), dtype=np.int32), np.zeros(1, dtype=np.int32)
    of_field = np.zeros((0, 2), dtype=np.int32) if limits is None else limits[None]
    count_clause(clause, slots, bounds, flat, of_field, tf, spans)
    return spans[: tf[0]][np.argsort(spans[: tf[0], 0], kind="stable")]


def count_clause(
    clause: Phrase | Window, slots: Sequence[int], bounds: Int64s, positions: Int32s, limits: Int32s, tf: Int32s, spans: Int32s
) -> None:
    """Write the frequency of a clause in each document to `tf`, and the matches in the last document to `spans`.

    The other arguments are those of `count_phrases`; matches beyond the length of `spans` are not written.
    """
    if isinstance(clause, Window):
        needs = np.bincount(slots)
        count_windows(needs, clause.width, bounds, positions, limits, tf, spans)
        return
    slots, offsets = np.array(sorted(zip(slots, clause.offsets, strict=True)), dtype=np.int64).T.copy()
    if clause.slop:
        count_sloppy(slots, offsets, clause.slop, bounds, positions, limits, tf, spans)
    else:
        count_phrases(slots, offsets, bounds, positions, limits, tf, spans)


def _steps(*arguments: object) -> int:
    return 4 * next(len(array) for array in arguments if isinstance(array, np.ndarray) and array.dtype == np.int32)


@kernel(_steps)
def count_phrases(
    slots: Int64s, offsets: Int64s, bounds: Int64s, positions: Int32s, limits: Int32s, tf: Int32s, spans: Int32s
) -> None:
    """Count exact phrases.

    Args:
        slots: Term of each word of the phrase.
        offsets: Offset of each word; words are ordered by term, equal terms by offset.
        bounds: int64, (terms x documents + 1,): start of the positions of the first term in each document, then of the next
            term, and so on; and the end of the last.
        positions: int32, ascending in each document.
        limits: int32, (documents, 2): first position of a field and the one after its last; empty: the whole text.
        tf: Output: frequency in each document.
        spans: Output: first and last position of each match in the last document.
    """
    words = len(slots)
    low, high = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    first, last = np.min(offsets), np.max(offsets)
    for doc in range(len(tf)):
        rarest = _set_bounds(slots, bounds, positions, limits, doc, len(tf), low, high)
        count = 0
        for i in range(low[rarest], high[rarest]):
            start = positions[i] - offsets[rarest]
            matches = True
            for word in range(words):
                if word == rarest:
                    continue
                cursor, end, target = low[word], high[word], start + offsets[word]
                while cursor < end and positions[cursor] < target:
                    cursor += 1
                low[word] = cursor
                if cursor == end or positions[cursor] != target:
                    matches = False
                    break
            if matches:
                if count < len(spans):
                    spans[count, 0], spans[count, 1] = start + first, start + last
                count += 1
        tf[doc] = count


@kernel(_steps)
def count_sloppy(
    slots: Int64s, offsets: Int64s, slop: int, bounds: Int64s, positions: Int32s, limits: Int32s, tf: Int32s, spans: Int32s
) -> None:
    """Count phrases with slop; arguments as in `count_phrases`.

    Each adjusted position is tried as the least of a match, in descending order. The match with the smallest greatest position
    takes for each word the first position from there on. Of matches with the same end, the first found is the inner one.
    """
    words = len(slots)
    low, high = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    for doc in range(len(tf)):
        _set_bounds(slots, bounds, positions, limits, doc, len(tf), low, high)
        size = 0
        for word in range(words):
            size += high[word] - low[word]
        starts = np.empty(size, dtype=np.int64)
        size = 0
        for word in range(words):
            for cursor in range(low[word], high[word]):
                starts[size] = positions[cursor] - offsets[word]
                size += 1
        starts.sort()
        count, inner_end, previous = 0, INFINITY, INFINITY
        for i in range(size - 1, -1, -1):
            start = starts[i]
            if start == previous:
                continue
            previous = start
            end, first, last, cursor = -INFINITY, INFINITY, -INFINITY, 0
            for word in range(words):
                fresh = word == 0 or slots[word] != slots[word - 1]
                cursor = _first_at_least(positions, low[word] if fresh else cursor + 1, high[word], start + offsets[word])
                if cursor == high[word]:
                    end = INFINITY
                    break
                end = max(end, positions[cursor] - offsets[word])
                first, last = min(first, positions[cursor]), max(last, positions[cursor])
            if end < inner_end and end - start <= slop:
                if count < len(spans):
                    spans[count, 0], spans[count, 1] = first, last
                count += 1
            inner_end = end
        tf[doc] = count


@kernel(_steps)
def count_windows(
    needs: Int64s, width: int, bounds: Int64s, positions: Int32s, limits: Int32s, tf: Int32s, spans: Int32s
) -> None:
    """Count unordered windows.

    Args:
        needs: How often each term occurs in the clause.
        width: Greatest number of positions from the first to the last, both included.
        bounds: As in `count_phrases`.
        positions: As in `count_phrases`.
        limits: As in `count_phrases`.
        tf: As in `count_phrases`.
        spans: As in `count_phrases`.
    """
    terms = len(needs)
    slots = np.arange(terms)
    low, high = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.int64)
    for doc in range(len(tf)):
        _set_bounds(slots, bounds, positions, limits, doc, len(tf), low, high)
        count, complete = 0, True
        while complete:
            start, last = INFINITY, -1
            for term in range(terms):
                cursor = low[term] + needs[term] - 1
                if cursor >= high[term]:
                    complete = False
                    break
                start, last = min(start, positions[low[term]]), max(last, positions[cursor])
            if complete:
                if last - start < width:
                    if count < len(spans):
                        spans[count, 0], spans[count, 1] = start, last
                    count += 1
                for term in range(terms):
                    low[term] += positions[low[term]] == start
        tf[doc] = count


@inner()
def _set_bounds(
    slots: Int64s, bounds: Int64s, positions: Int32s, limits: Int32s, doc: int, docs: int, low: Int64s, high: Int64s
) -> int:
    """Write the bounds of the positions of each word to `low` and `high`; return the word with the fewest positions."""
    rarest = 0
    for word in range(len(slots)):
        row = slots[word] * docs + doc
        low[word], high[word] = bounds[row], bounds[row + 1]
        if len(limits):
            end = high[word]
            low[word] = _first_at_least(positions, low[word], end, limits[doc, 0])
            high[word] = _first_at_least(positions, low[word], end, limits[doc, 1])
        if high[word] - low[word] < high[rarest] - low[rarest]:
            rarest = word
    return rarest


@inner()
def _first_at_least(positions: Int32s, low: int, high: int, target: int) -> int:
    """Return the first index from `low` on with a position of at least `target`; `high` if there is none."""
    if low > high:
        return high
    while low < high:
        middle = (low + high) >> 1
        if positions[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low
