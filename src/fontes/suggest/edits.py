"""Search of an ascending table of terms by prefix and by edit distance, walking it as a trie."""

from __future__ import annotations

import numpy as np

from ..core.arrays import Bytes, Int, Int32s, Int64s, Ints
from ..core.strings import Strings, utf8
from ..index.tables import arrays_of
from ..storage.compiled import inner, kernel

MAX_LETTERS = 255  # of a word whose neighbours are searched: the table of distances takes the square of its length


def prefixed(terms: Strings, prefix: str) -> tuple[int, int]:
    """Return the first position of the ascending `terms` that begin with `prefix`, and the position after the last."""
    prefix_bytes = utf8(prefix)
    return _lower_bound(terms, prefix_bytes), _lower_bound(terms, prefix_bytes + b"\xff")


def near(terms: Strings, word: str, edits: int, *, prefix: int = 0, complete: bool = False) -> tuple[Int32s, Bytes]:
    """Find the terms within an edit distance of a word.

    An edit inserts, deletes or replaces a character, or swaps two neighbours (optimal string alignment, as Lucene counts).

    Args:
        terms: Terms, ascending.
        word: The word; one of more than MAX_LETTERS letters has no neighbours.
        edits: Maximum distance.
        prefix: Number of leading characters that must be equal.
        complete: Also find terms with a prefix within this distance; the distance is that of the nearest prefix.

    Returns:
        Positions of the terms, ascending, int32; and the distance of each, uint8.
    """
    if len(word) > MAX_LETTERS:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    first, last = prefixed(terms, word[:prefix]) if prefix else (0, len(terms))
    letters = np.frombuffer(utf8(word).decode().encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    indices, distances = np.empty(last - first, dtype=np.int32), np.empty(last - first, dtype=np.uint8)
    count = _walk(*arrays_of(terms), first, last, letters, edits, complete, indices, distances)
    return indices[:count].copy(), distances[:count].copy()


def _lower_bound(terms: Strings, prefix_bytes: bytes) -> int:
    """Position of the first term that is not below these bytes."""
    blob, offsets = terms.blob, terms.offsets
    low, high = 0, len(terms)
    while low < high:
        middle = (low + high) // 2
        if blob[int(offsets[middle]) : int(offsets[middle + 1])].tobytes() < prefix_bytes:
            low = middle + 1
        else:
            high = middle
    return low


@inner()
def _code_point(text: Bytes, at: Int) -> tuple[Int, int]:
    """Code point at a byte of valid UTF-8, and its number of bytes."""
    lead = np.int64(text[at])
    if lead < 0x80:
        return lead, 1
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    letter = lead & (0x7F >> size)
    for i in range(1, size):
        letter = letter << 6 | np.int64(text[at + i]) & 0x3F
    return letter, size


@inner()
def _begins_with(text: Bytes, prefix: Int, start: Int, end: Int, size: Int) -> bool:
    """Whether the string from `start` to `end` begins with the `size` bytes at `prefix`."""
    if end - start < size:
        return False
    for i in range(size):
        if text[prefix + i] != text[start + i]:
            return False
    return True


@kernel(steps=lambda text, bounds, first, last, letters, *rest: 8 * len(letters) * min(last - first, 10_000))
def _walk(
    text: Bytes,
    bounds: Ints,
    first: int,
    last: int,
    letters: Int64s,
    edits: int,
    complete: bool,
    indices: Int32s,
    distances: Bytes,
) -> int:
    """Walk the terms, keeping the rows of the distance table for the prefix that a term shares with the previous one.

    Terms under a prefix beyond the maximum distance are skipped together.
    """
    length = len(letters)
    max_depth = length + edits + 1  # where every row is above `edits`
    rows = np.full((max_depth + 1, length + 1), edits + 1, dtype=np.int64)  # [d, j]: distance of the first d and j characters
    prefix = np.zeros(max_depth + 1, dtype=np.int64)  # characters of the prefix, from index 1
    ends = np.zeros(max_depth + 1, dtype=np.int64)  # bytes of the prefix up to each character
    lowest = np.zeros(max_depth + 1, dtype=np.int64)  # minimum of each row
    nearest = np.zeros(max_depth + 1, dtype=np.int64)  # minimum distance of the word from the prefixes up to each depth
    for j in range(min(length, edits) + 1):
        rows[0, j] = j
    nearest[0] = rows[0, length]
    depth, previous, count, term = 0, first, 0, first
    while term < last:
        start, end = bounds[term], bounds[term + 1]
        shared = 0
        while shared < ends[depth] and start + shared < end and text[start + shared] == text[bounds[previous] + shared]:
            shared += 1
        while ends[depth] > shared:
            depth -= 1
        previous = term
        while start + ends[depth] < end and lowest[depth] <= edits:
            letter, size = _code_point(text, start + ends[depth])
            depth += 1
            prefix[depth], ends[depth] = letter, ends[depth - 1] + size
            rows[depth, 0] = min(depth, edits + 1)
            low = rows[depth, 0]
            for j in range(max(1, depth - edits), min(length, depth + edits) + 1):  # other columns are above `edits`
                best = rows[depth - 1, j - 1] + (letter != letters[j - 1])
                best = min(best, rows[depth - 1, j] + 1, rows[depth, j - 1] + 1)
                if depth > 1 and j > 1 and letter == letters[j - 2] and prefix[depth - 1] == letters[j - 1]:
                    best = min(best, rows[depth - 2, j - 2] + 1)
                rows[depth, j] = min(best, edits + 1)
                low = min(low, rows[depth, j])
            lowest[depth] = low
            nearest[depth] = min(nearest[depth - 1], rows[depth, length])
        distance = nearest[depth] if complete else rows[depth, length]
        if start + ends[depth] < end and (lowest[depth] > edits) and not (complete and nearest[depth] <= edits):
            step, term = 1, term + 1
            while term < last and _begins_with(text, start, bounds[term], bounds[term + 1], ends[depth]):
                beyond = term + step
                if beyond < last and _begins_with(text, start, bounds[beyond], bounds[beyond + 1], ends[depth]):
                    term, step = beyond, 2 * step
                elif step > 1:
                    step = 1
                else:
                    term += 1
            continue
        if distance <= edits and (complete or start + ends[depth] == end):
            indices[count], distances[count] = term, distance
            count += 1
        term += 1
    return count
