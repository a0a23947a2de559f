"""Compiled versions of `Analyzer.terms`, for pipelines that need no library."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.strings import Strings
from ..storage.compiled import inner, kernel
from . import porter, tokenizers

STEMMERS = ("", "porter")


def folded(tokens: Strings, possessive: bool, lowercase: bool, stopwords: Strings, stemmer: str) -> tuple[Strings, Any]:
    """Return the terms of ASCII tokens.

    Args:
        tokens: Tokens.
        possessive: Whether to strip a final 's.
        lowercase: Whether to lowercase letters.
        stopwords: Words to drop.
        stemmer: One of STEMMERS.

    Returns:
        The term of each token, "" if dropped; and a mask of tokens skipped, with the term "", because they are not ASCII or
        contain a line break.
    """
    others = np.zeros(len(tokens), dtype=np.bool_)
    units = np.empty(len(tokens.blob) + len(tokens), dtype=np.int32)
    length = _fold(
        tokens.blob, tokens.offsets, possessive, lowercase, stopwords.blob, stopwords.offsets, units, others
    )  # one line per token, each ended by a line break
    if stemmer == "porter" and length:
        length = porter.stem_lines(units[: length - 1]) + 1
        units[length - 1] = 10
    lines = units[:length].astype(np.uint8)
    ends = np.flatnonzero(lines == 10)
    offsets = np.zeros(len(tokens) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ends))
    return Strings(lines[lines != 10], offsets), others


@kernel(steps=lambda blob, bounds, *rest: 4 * len(blob) + 80 * len(bounds))
def _fold(
    blob: Any, bounds: Any, possessive: bool, lowercase: bool, stops: Any, stop_bounds: Any, units: Any, others: Any
) -> int:
    """Write the line of each token into `units` and mark skipped tokens; return the length of the lines."""
    at = 0
    for i in range(len(bounds) - 1):
        size = fold_token(blob, bounds[i], bounds[i + 1], possessive, lowercase, stops, stop_bounds, units[at:])
        others[i] = size < 0
        at += max(0, size)
        units[at] = 10
        at += 1
    return at


@inner()
def fold_token(
    blob: Any, start: int, end: int, possessive: bool, lowercase: bool, stops: Any, stop_bounds: Any, units: Any
) -> int:
    """Write a token without 's, in lower case; return its length, 0 for a stop word, -1 for one that `folded` skips."""
    for place in range(start, end):
        if blob[place] >= 128 or blob[place] == 10:
            return -1
    if possessive and end - start > 1 and (blob[end - 1] | 32) == 115 and blob[end - 2] == 39:
        end -= 2
    for place in range(start, end):
        letter = np.int32(blob[place])
        units[place - start] = letter + 32 if lowercase and 65 <= letter <= 90 else letter
    return 0 if is_stop_word(units, end - start, stops, stop_bounds) else end - start


@inner()
def is_stop_word(units: Any, size: int, stops: Any, stop_bounds: Any) -> bool:
    """Whether the first bytes of `units` are one of the stop words."""
    for word in range(len(stop_bounds) - 1):
        if stop_bounds[word + 1] - stop_bounds[word] == size:
            same = True
            for place in range(size):
                if units[place] != stops[stop_bounds[word] + place]:
                    same = False
                    break
            if same:
                return True
    return False


@inner()
def fold_others(
    blob: Any, start: int, end: int, possessive: bool, shifts: Any, stems: bool, rules: Any, stops: Any, stop_bounds: Any,
    codes: Any, units: Any,
) -> int:  # fmt: skip
    """Write the UTF-8 of the term of a token that is not ASCII, in the order of `Analyzer.terms`.

    Args:
        blob: UTF-8.
        start: Place of the token.
        end: Place after it.
        possessive: Whether to strip a final 's.
        shifts: Of `tokenizers.lowercase_shifts`; empty for a token that stays as it is.
        stems: Whether to stem by Porter's rules.
        rules: The rules of Porter's steps 2, 3 and 4.
        stops: Stop words.
        stop_bounds: Their bounds.
        codes: Scratch, of as many numbers as the token has bytes, and one.
        units: Output: the bytes, at most twice as many.

    Returns:
        Number of bytes, 0 for a stop word; -1 for a token with a line break or a code point above 0xFFFF.
    """
    count, at = 0, start
    while at < end:
        code, size = tokenizers.code_point(blob, at)
        if code == 10 or code > 0xFFFF:
            return -1
        codes[count] = code
        count, at = count + 1, at + size
    if possessive and count > 1 and (codes[count - 1] | 32) == 115:
        before = codes[count - 2]
        if before == 39 or before == 0x2019 or before == 0xFF07:
            count -= 2
    if len(shifts):
        for place in range(count):
            codes[place] += shifts[codes[place]]
            if codes[place] > 0xFFFF:
                return -1
    size = _put_utf8(codes, count, units)
    if is_stop_word(units, size, stops, stop_bounds):
        return 0
    if stems:
        size = _put_utf8(codes, porter.stem_word(codes, count, rules[0], rules[1], rules[2]), units)
    return size


@inner()
def _put_utf8(codes: Any, count: int, units: Any) -> int:
    """Write code points up to 0xFFFF as UTF-8; return the number of bytes."""
    at = 0
    for place in range(count):
        code = codes[place]
        if code < 0x80:
            units[at] = code
            at += 1
        elif code < 0x800:
            units[at], units[at + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
            at += 2
        else:
            units[at], units[at + 1], units[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
            at += 3
    return at
