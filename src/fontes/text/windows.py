"""Compiled loops that find the best window of each of many texts, for `snippets`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.compiled import inner, kernel

SPACE = 0x20


def windows(
    text: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    tokens: tuple[NDArray[Any], NDArray[Any], NDArray[np.int32]],
    matches: NDArray[np.int64],
    max_terms: NDArray[np.int64],
    length: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the window of each text with the most distinct terms, and the earliest among equals.

    Args:
        text: UTF-8 of all texts end to end.
        bounds: Text i is text[bounds[i]:bounds[i+1]].
        tokens: Matching tokens: start bytes in `text`, end bytes, and term numbers.
        matches: Tokens of text i are matches[i] to matches[i+1].
        max_terms: Greatest number of distinct terms in a window, per text.
        length: Approximate length of a window in characters.

    Returns:
        int64, (texts, 4): first character and end of the window, index of its first match and of the one after its last;
        int64, (matches, 2): first character and end of each match, relative to the window.
    """
    cuts = np.empty((len(bounds) - 1, 4), dtype=np.int64)
    spans = np.empty((len(tokens[0]), 2), dtype=np.int64)
    _windows(text, bounds, *tokens, matches, max_terms, length, cuts, spans)
    return cuts, spans


@kernel(steps=lambda text, bounds, starts, *rest: 2 * len(text) + 20 * len(starts))
def _windows(
    text: Any,
    bounds: Any,
    starts: Any,
    ends: Any,
    numbers: Any,
    matches: Any,
    max_terms: Any,
    length: int,
    cuts: Any,
    spans: Any,
) -> None:
    for i in range(len(bounds) - 1):
        first, last = matches[i], matches[i + 1]
        size = _write_spans(text, bounds[i], bounds[i + 1], starts, ends, first, last, spans)
        best = _best_start(numbers, spans, first, last, length, max_terms[i])
        start, end = _window_around(text, bounds[i], bounds[i + 1], size, best, length)
        while first < last and spans[first, 0] < start:
            first += 1
        while last > first and spans[last - 1, 1] > end:
            last -= 1
        for m in range(first, last):
            spans[m, 0] -= start
            spans[m, 1] -= start
        cuts[i, 0], cuts[i, 1], cuts[i, 2], cuts[i, 3] = start, end, first, last


@inner()
def _write_spans(text: Any, begin: int, stop: int, starts: Any, ends: Any, first: int, last: int, spans: Any) -> int:
    """Write the span of each match in characters; return the length of the text in characters."""
    at, count = begin, 0
    for m in range(first, last):
        while at < starts[m]:
            count += (text[at] & 0xC0) != 0x80
            at += 1
        characters = count
        for byte in range(at, ends[m]):
            characters += (text[byte] & 0xC0) != 0x80
        spans[m, 0], spans[m, 1] = count, characters
    while at < stop:
        count += (text[at] & 0xC0) != 0x80
        at += 1
    return count


@inner()
def _best_start(numbers: Any, spans: Any, first: int, last: int, length: int, max_terms: int) -> int:
    """Return the first character of the first match in the best window."""
    best, count, distinct, left = 0, 0, 0, first
    for m in range(first, last):
        distinct += not _contains(numbers, numbers[m], left, m)
        while left <= m and spans[m, 1] > spans[left, 0] + length * 5 // 6:
            left += 1
            distinct -= not _contains(numbers, numbers[left - 1], left, m + 1)
        if distinct > count:
            best, count = spans[left, 0], distinct
            if count >= max_terms:
                break
    return best


@inner()
def _contains(numbers: Any, number: int, first: int, last: int) -> bool:
    """Whether numbers[first:last] has a number."""
    for m in range(first, last):
        if numbers[m] == number:
            return True
    return False


@inner()
def _window_around(text: Any, begin: int, stop: int, size: int, best: int, length: int) -> tuple[int, int]:
    """Return the start and end of the window shortly before a position, between words if possible."""
    start = 0 if size <= length else min(max(0, best - length // 6), size - length)
    at, count = begin, 0
    while count < start:
        at += 1
        count += (text[at] & 0xC0) != 0x80
    if start:
        byte, character = at, start
        while byte < stop and text[byte] != SPACE:
            byte += 1
            character += byte == stop or (text[byte] & 0xC0) != 0x80
        if byte < stop:
            at, start = byte + 1, character + 1
    end = min(size, start + length)
    if end < size:
        space, character = start + 1, start
        while character < end:
            if text[at] == SPACE:
                space = max(character, start + 1)
            at += 1
            character += at == stop or (text[at] & 0xC0) != 0x80
        end = space
    return start, end
