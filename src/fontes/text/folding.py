"""Compiled versions of `Analyzer.terms`, for analyzers that need no library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.strings import Strings
from ..storage.arrays import fixed
from ..storage.compiled import inner, kernel
from . import porter, tokenizers

if TYPE_CHECKING:
    from ..core.arrays import Bools, Bytes, Int32s, Int64s

STEMMERS = ("", "porter")


def fold(tokens: Strings, possessive: bool, lowercase: bool, stopwords: Strings, stemmer: str) -> tuple[Strings, Bools]:
    """Return the terms of ASCII tokens.

    Args:
        tokens: Tokens.
        possessive: Whether to strip a final 's.
        lowercase: Whether to lowercase letters.
        stopwords: Words to drop.
        stemmer: One of STEMMERS.

    Returns:
        The term of each token, "" for a dropped one; and a mask of the skipped tokens, which are not ASCII or contain a line
        break, and have the term "".
    """
    skipped, stops = np.zeros(len(tokens), dtype=np.bool_), (fixed(stopwords.blob), fixed(stopwords.offsets))
    units = np.empty(len(tokens.blob) + len(tokens), dtype=np.int32)
    length = _fold(
        fixed(tokens.blob), fixed(tokens.offsets), int(possessive), int(lowercase), *stops, units, skipped
    )  # one line per token, each ended by a line break
    if stemmer == "porter" and length:
        length = porter.stem_lines(units[: length - 1]) + 1
        units[length - 1] = 10
    lines = units[:length].astype(np.uint8)
    ends = np.flatnonzero(lines == 10)
    offsets = np.zeros(len(tokens) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ends))
    return Strings(lines[lines != 10], offsets), skipped


@kernel(steps=lambda blob, bounds, *rest: 4 * len(blob) + 80 * len(bounds))
def _fold(
    blob: Bytes, bounds: Int64s, possessive: bool, lowercase: bool, stops: Bytes, stop_bounds: Int64s, units: Int32s,
    skipped: Bools,
) -> int:  # fmt: skip
    """Write a line for each token to `units`, and mark skipped tokens; return the length of all lines."""
    at = 0
    for i in range(len(bounds) - 1):
        size = fold_token(blob, bounds[i], bounds[i + 1], possessive, lowercase, stops, stop_bounds, units[at:])
        skipped[i] = size < 0
        at += max(0, size)
        units[at] = 10
        at += 1
    return at


@inner()
def fold_token(
    blob: Bytes, start: Any, end: Any, possessive: bool, lowercase: bool, stops: Bytes, stop_bounds: Int64s, units: Int32s
) -> int:
    """Write a token without 's, in lower case; return its length, 0 for a stop word, -1 for a token that `fold` skips."""
    for i in range(start, end):
        if blob[i] >= 128 or blob[i] == 10:
            return -1
    if possessive and end - start > 1 and (blob[end - 1] | 32) == 115 and blob[end - 2] == 39:
        end -= 2
    for i in range(start, end):
        letter = np.int32(blob[i])
        units[i - start] = letter + 32 if lowercase and 65 <= letter <= 90 else letter
    return 0 if is_stop_word(units, end - start, stops, stop_bounds) else end - start


@inner()
def is_stop_word(units: Int32s, size: int, stops: Bytes, stop_bounds: Int64s) -> bool:
    """Whether the first bytes of `units` are one of the stop words."""
    for word in range(len(stop_bounds) - 1):
        if stop_bounds[word + 1] - stop_bounds[word] == size:
            same = True
            for i in range(size):
                if units[i] != stops[stop_bounds[word] + i]:
                    same = False
                    break
            if same:
                return True
    return False


@inner()
def fold_non_ascii(
    blob: Bytes, start: Any, end: Any, possessive: bool, shifts: Int32s, stems: bool,
    rules: tuple[tuple[Int32s, ...], ...], stops: Bytes, stop_bounds: Int64s, codes: Int32s, units: Int32s,
) -> int:  # fmt: skip
    """Write the UTF-8 of the term of a token that is not ASCII, in the order of `Analyzer.terms`.

    Args:
        blob: UTF-8.
        start: First byte of the token.
        end: Byte after its last.
        possessive: Whether to strip a final 's.
        shifts: The result of `tokenizers.lowercase_shifts`; empty to leave letters unchanged.
        stems: Whether to stem by Porter's rules.
        rules: The rules of Porter's steps 2, 3 and 4.
        stops: Stop words.
        stop_bounds: Bounds of the stop words.
        codes: Scratch, int32, with one entry more than the token has bytes.
        units: Output: the bytes of the term, at most twice as many as the token has.

    Returns:
        The number of bytes; 0 for a stop word, -1 for a token with a line break or a code point above 0xFFFF.
    """
    count, at = 0, start
    while at < end:
        code, size = tokenizers.code_point(blob, at)
        if code == 10 or code > 0xFFFF:
            return -1
        codes[count] = code
        count, at = count + 1, at + size
    if possessive and count > 1 and (codes[count - 1] | 32) == 115:
        apostrophe = codes[count - 2]
        if apostrophe == 39 or apostrophe == 0x2019 or apostrophe == 0xFF07:
            count -= 2
    if len(shifts):
        for i in range(count):
            codes[i] += shifts[codes[i]]
            if codes[i] > 0xFFFF:
                return -1
    size = _write_utf8(codes, count, units)
    if is_stop_word(units, size, stops, stop_bounds):
        return 0
    if stems:
        size = _write_utf8(codes, porter.stem_word(codes, count, rules[0], rules[1], rules[2]), units)
    return size


@inner()
def _write_utf8(codes: Int32s, count: int, units: Int32s) -> int:
    """Write code points up to 0xFFFF as UTF-8; return the number of bytes."""
    at = 0
    for i in range(count):
        code = codes[i]
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
