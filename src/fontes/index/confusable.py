"""Which words of an index may have a far more frequent neighbour, for all words at once.

Two words within n edits have a common form after at most n deletions in each (Mor and Fraenkel, JACM 29(1), 1982). Hashes of
these forms are looked up in those of frequent words. A word without a common hash has no neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.arrays import Bools, Indices, Int64s, UInt64s

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse
INVERSE = np.uint64(pow(int(BASE), -1, 1 << 64))
BITS = 24  # of a hash that are looked up
MAX_LENGTH = 32  # characters of a word that is looked up; longer ones may have neighbours
STEP = 4  # by which the frequencies of words that are looked up together differ


def may_be_confused(words: list[str], df: Int64s, counts: Int64s, ratios: tuple[int, int], shortest: tuple[int, int]) -> Bools:
    """Return whether words may have a far more frequent neighbour.

    Args:
        words: The words.
        df: Number of documents with each.
        counts: Number of occurrences of each, as a neighbour of others.
        ratios: Least ratio of the occurrences of a neighbour by one edit, and by two edits, to the df of a word.
        shortest: Least length of a word that has neighbours by one edit, and by two edits.
    """
    lengths = np.array(list(map(len, words)), dtype=np.int64)
    possible = (lengths > MAX_LENGTH) & (lengths >= shortest[0])
    largest, low = int(counts.max(initial=0)), 1
    while low * min(ratios) <= largest:
        is_rare = (df >= low) & (df < STEP * low)
        for edits in (1, 2):
            is_frequent = (
                (counts >= ratios[edits - 1] * low) & (lengths >= shortest[edits - 1] - edits) & (lengths <= MAX_LENGTH)
            )
            table = np.zeros(1 << BITS, dtype=np.bool_)
            for _, hashes in _hashes(words, lengths, np.flatnonzero(is_frequent), edits):
                table[hashes] = True
            looked_up = np.flatnonzero(is_rare & (lengths >= shortest[edits - 1]) & (lengths <= MAX_LENGTH) & ~possible)
            for rows, hashes in _hashes(words, lengths, looked_up, edits):
                possible[rows[table[hashes]]] = True
        low *= STEP
    return possible


def _hashes(words: list[str], lengths: Int64s, rows: Indices, edits: int) -> Iterator[tuple[Indices, UInt64s]]:
    """Yield rows of words, and a hash of each word after up to so many deletions, until all have been yielded."""
    for length in np.unique(lengths[rows]).tolist():
        of_length = rows[lengths[rows] == length]
        text = "".join([words[row] for row in of_length.tolist()]).encode("utf-32-le", "surrogatepass")
        letters = np.frombuffer(text, dtype=np.uint32).reshape(len(of_length), length).astype(np.uint64) + np.uint64(1)
        powers = np.cumprod(np.concatenate([[np.uint64(1)], np.full(length - 1, BASE)]), dtype=np.uint64)
        weighted = letters * powers
        after = np.cumsum(weighted, axis=1, dtype=np.uint64)
        before, total = after - weighted, after[:, -1]
        shift = np.uint64(64 - BITS)
        yield of_length, total * BASE >> shift
        for i in range(length):
            yield of_length, (before[:, i] + (total - after[:, i]) * INVERSE) * BASE >> shift
            for j in range(i + 1, length if edits > 1 else 0):
                middle, rest = before[:, j] - after[:, i], total - after[:, j]
                yield of_length, (before[:, i] + (middle + rest * INVERSE) * INVERSE) * BASE >> shift


def most_frequent_completion(words: list[str], df: Int64s) -> Int64s:
    """Return for each of some ascending words the greatest df of those that begin with it; 0 for none."""
    greatest, frequencies = [0] * len(words), df.tolist()
    stack: list[int] = []

    def close() -> None:
        last = stack.pop()
        if stack:
            greatest[stack[-1]] = max(greatest[stack[-1]], greatest[last], frequencies[last])

    for i, word in enumerate(words):
        while stack and not word.startswith(words[stack[-1]]):
            close()
        stack.append(i)
    while stack:
        close()
    return np.array(greatest, dtype=np.int64)
