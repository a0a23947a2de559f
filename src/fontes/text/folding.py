"""Compiled version of `Analyzer.terms` for ASCII tokens, for pipelines that need no library."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.strings import Strings
from ..storage.compiled import inner, kernel
from . import porter

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
    for word in range(len(stop_bounds) - 1):
        if stop_bounds[word + 1] - stop_bounds[word] == end - start:
            same = True
            for place in range(end - start):
                if units[place] != stops[stop_bounds[word] + place]:
                    same = False
                    break
            if same:
                return 0
    return end - start
