"""Phrases and windows in texts: how often their terms stand where a clause wants them, and where.

An exact phrase is counted by its places. A phrase with slop moves terms: the adjusted position of a term is its
position less its offset in the phrase, and a match is a choice of one position for each term whose adjusted positions differ by
at most `slop` (as in Lucene, which weighs a match by its distance; here it counts as one). Of matches that hold another one,
the inner is counted alone. A window is counted as Indri counts #uwN: once for each position of its terms from which on all
terms follow within the width. Equal terms of a clause stand at different positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.query import Phrase, Window
from ..storage.compiled import inner, kernel

ENDLESS = 1 << 30  # beyond all positions
Spans = NDArray[np.int32]
"""First and last position of each match of a clause in a text, int32 (matches, 2)."""


def spans_among(
    clause: Phrase | Window,
    positions: list[NDArray[np.int32]],
    slots: Sequence[int],
    limits: NDArray[np.int32] | None = None,
) -> Spans:
    """Return the matches of a clause in one text.

    Args:
        clause: The clause.
        positions: Positions of each distinct term, ascending.
        slots: For each term of the clause its place in `positions`.
        limits: First position of the field and the one after its last; None: everywhere.
    """
    bounds = np.array([0, *accumulate(map(len, positions))], dtype=np.int64)
    flat = np.concatenate(positions).astype(np.int32)
    spans, tf = np.zeros((len(flat), 2), dtype=np.int32), np.zeros(1, dtype=np.int32)
    of_field = np.zeros((0, 2), dtype=np.int32) if limits is None else limits[None]
    count_clause(clause, slots, bounds, flat, of_field, tf, spans)
    return spans[: tf[0]][np.argsort(spans[: tf[0], 0], kind="stable")]


def count_clause(
    clause: Phrase | Window, slots: Sequence[int], bounds: Any, positions: Any, limits: Any, tf: Any, spans: Any
) -> None:
    """Fill in the frequency of a clause in each document, and the matches in the last one as far as `spans` has room."""
    if isinstance(clause, Window):
        needs = np.bincount(slots)
        count_windows(needs, clause.width, bounds, positions, limits, tf, spans)
        return
    slots, offsets = np.array(sorted(zip(slots, clause.offsets, strict=True)), dtype=np.int64).T.copy()
    if clause.slop:
        count_sloppy(slots, offsets, clause.slop, bounds, positions, limits, tf, spans)
    else:
        count_phrases(slots, offsets, bounds, positions, limits, tf, spans)


def _steps(*arguments: Any) -> int:
    return 4 * next(len(array) for array in arguments if isinstance(array, np.ndarray) and array.dtype == np.int32)


@kernel(_steps)
def count_phrases(slots: Any, offsets: Any, bounds: Any, positions: Any, limits: Any, tf: Any, spans: Any) -> None:
    """Count exact phrases.

    Args:
        slots: Term of each word of the phrase.
        offsets: Its offset; words are ordered by terms, equal terms by offsets.
        bounds: int64, (terms x documents + 1,): where the positions of the first term in each document start, then those of
            the next term; and the end of the last.
        positions: int32, ascending in a document.
        limits: int32, (documents, 2): first position of a field and the one after its last; none: everywhere.
        tf: Output: frequency in each document.
        spans: Output: first and last position of the matches in the last document.
    """
    words = len(slots)
    low, high = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    first, last = np.min(offsets), np.max(offsets)
    for doc in range(len(tf)):
        rarest = _narrowed(slots, bounds, positions, limits, doc, len(tf), low, high)
        count = 0
        for at in range(low[rarest], high[rarest]):
            start = positions[at] - offsets[rarest]
            matches = True
            for word in range(words):
                if word == rarest:
                    continue
                place, end, target = low[word], high[word], start + offsets[word]
                while place < end and positions[place] < target:
                    place += 1
                low[word] = place
                if place == end or positions[place] != target:
                    matches = False
                    break
            if matches:
                if count < len(spans):
                    spans[count, 0], spans[count, 1] = start + first, start + last
                count += 1
        tf[doc] = count


@kernel(_steps)
def count_sloppy(slots: Any, offsets: Any, slop: int, bounds: Any, positions: Any, limits: Any, tf: Any, spans: Any) -> None:
    """Count phrases with slop; arguments as in `count_phrases`.

    For each adjusted position as the least of a match, descending, the least greatest one is found by taking for each word the
    first position that is left; of equal ones the first met is the inner match.
    """
    words = len(slots)
    low, high = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    for doc in range(len(tf)):
        _narrowed(slots, bounds, positions, limits, doc, len(tf), low, high)
        size = 0
        for word in range(words):
            size += high[word] - low[word]
        starts = np.empty(size, dtype=np.int64)
        size = 0
        for word in range(words):
            for at in range(low[word], high[word]):
                starts[size] = positions[at] - offsets[word]
                size += 1
        starts.sort()
        count, inner_end, before = 0, ENDLESS, ENDLESS
        for i in range(size - 1, -1, -1):
            start = starts[i]
            if start == before:
                continue
            before = start
            end, least, greatest, at = -ENDLESS, ENDLESS, -ENDLESS, 0
            for word in range(words):
                fresh = word == 0 or slots[word] != slots[word - 1]
                at = _first_from(positions, low[word] if fresh else at + 1, high[word], start + offsets[word])
                if at == high[word]:
                    end = ENDLESS
                    break
                end = max(end, positions[at] - offsets[word])
                least, greatest = min(least, positions[at]), max(greatest, positions[at])
            if end < inner_end and end - start <= slop:
                if count < len(spans):
                    spans[count, 0], spans[count, 1] = least, greatest
                count += 1
            inner_end = end
        tf[doc] = count


@kernel(_steps)
def count_windows(needs: Any, width: int, bounds: Any, positions: Any, limits: Any, tf: Any, spans: Any) -> None:
    """Count unordered windows.

    Args:
        needs: How often each term occurs in the clause.
        width: Greatest number of positions from first to last, both counted.
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
        _narrowed(slots, bounds, positions, limits, doc, len(tf), low, high)
        count, complete = 0, True
        while complete:
            start, last = ENDLESS, -1
            for term in range(terms):
                at = low[term] + needs[term] - 1
                if at >= high[term]:
                    complete = False
                    break
                start, last = min(start, positions[low[term]]), max(last, positions[at])
            if complete:
                if last - start < width:
                    if count < len(spans):
                        spans[count, 0], spans[count, 1] = start, last
                    count += 1
                for term in range(terms):
                    low[term] += positions[low[term]] == start
        tf[doc] = count


@inner()
def _narrowed(slots: Any, bounds: Any, positions: Any, limits: Any, doc: int, docs: int, low: Any, high: Any) -> int:
    """Fill in where the positions of each word begin and end, and return the word with the fewest."""
    rarest = 0
    for word in range(len(slots)):
        place = slots[word] * docs + doc
        low[word], high[word] = bounds[place], bounds[place + 1]
        if len(limits):
            end = high[word]
            low[word] = _first_from(positions, low[word], end, limits[doc, 0])
            high[word] = _first_from(positions, low[word], end, limits[doc, 1])
        if high[word] - low[word] < high[rarest] - low[rarest]:
            rarest = word
    return rarest


@inner()
def _first_from(positions: Any, low: int, high: int, least: int) -> int:
    """First place from `low` on whose position is at least `least`; `high` for none."""
    if low > high:
        return high
    while low < high:
        middle = (low + high) >> 1
        if positions[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
