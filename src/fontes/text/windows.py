"""Compiled batch version of `snippets`."""

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
    most: NDArray[np.int64],
    length: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find each text's window with the most distinct terms, the earliest of equals.

    Args:
        text: UTF-8 of all texts end to end.
        bounds: Text i is text[bounds[i]:bounds[i+1]].
        tokens: Matching tokens: start bytes in `text`, end bytes, and term numbers.
        matches: Tokens of text i are matches[i] to matches[i+1].
        most: Per text, the most distinct terms that a window can have.
        length: Approximate length of a window in characters.

    Returns:
        Per text, the window's first character and end, and the first and end of its matches; per match, its first character
        and end, relative to the window.
    """
    cuts = np.empty((len(bounds) - 1, 4), dtype=np.int64)
    spans = np.empty((len(tokens[0]), 2), dtype=np.int64)
    _windows(text, bounds, *tokens, matches, most, length, cuts, spans)
    return cuts, spans


@kernel(steps=lambda text, bounds, starts, *rest: 2 * len(text) + 20 * len(starts))
def _windows(
    text: Any,
    bounds: Any,
    starts: Any,
    ends: Any,
    numbers: Any,
    matches: Any,
    most: Any,
    length: int,
    cuts: Any,
    spans: Any,
) -> None:
    for i in range(len(bounds) - 1):
        first, last = matches[i], matches[i + 1]
        size = _located(text, bounds[i], bounds[i + 1], starts, ends, first, last, spans)
        best = _best(numbers, spans, first, last, length, most[i])
        start, end = _around(text, bounds[i], bounds[i + 1], size, best, length)
        while first < last and spans[first, 0] < start:
            first += 1
        while last > first and spans[last - 1, 1] > end:
            last -= 1
        for m in range(first, last):
            spans[m, 0] -= start
            spans[m, 1] -= start
        cuts[i, 0], cuts[i, 1], cuts[i, 2], cuts[i, 3] = start, end, first, last


@inner()
def _located(text: Any, begin: int, stop: int, starts: Any, ends: Any, first: int, last: int, spans: Any) -> int:
    """Write the matches' positions in characters; return the text's length in characters."""
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
def _best(numbers: Any, spans: Any, first: int, last: int, length: int, most: int) -> int:
    best, count, different, left = 0, 0, 0, first
    for m in range(first, last):
        different += not _among(numbers, numbers[m], left, m)
        while left <= m and spans[m, 1] > spans[left, 0] + length * 5 // 6:
            left += 1
            different -= not _among(numbers, numbers[left - 1], left, m + 1)
        if different > count:
            best, count = spans[left, 0], different
            if count >= most:
                break
    return best


@inner()
def _among(numbers: Any, number: int, first: int, last: int) -> bool:
    for m in range(first, last):
        if numbers[m] == number:
            return True
    return False


@inner()
def _around(text: Any, begin: int, stop: int, size: int, best: int, length: int) -> tuple[int, int]:
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
