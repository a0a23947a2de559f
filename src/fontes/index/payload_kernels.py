"""Compiled loops of payloads: packing and unpacking the numbers that each posting carries.

The payload of a posting is a row of variable-length integers as in `kernels`, each a number times two, plus one for the last of
the row, so that concatenated rows can be separated without their lengths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import inner, kernel
from . import kernels

MAX_BYTES = 6  # of a number
LARGEST = 0x7FFFFFFF  # of a position or frequency
ONES, TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@kernel()
def group_by_posting(
    numbers: Any, bounds: Any, values: Any, terms: Any, counts: Any, term_bounds: Any, slots: Any, out: Any
) -> None:
    """Put a value of each token in the order of postings.

    `numbers[bounds[i]:bounds[i+1]]` are the terms of document i; `terms`, `counts` and `term_bounds` are the output of
    `count_terms`. `slots` is scratch, one number per term.
    """
    for i in range(len(bounds) - 1):
        at = bounds[i]
        for posting in range(term_bounds[i], term_bounds[i + 1]):
            slots[terms[posting]] = at
            at += counts[posting]
        for token in range(bounds[i], bounds[i + 1]):
            number = numbers[token]
            out[slots[number]] = values[token]
            slots[number] += 1


@kernel()
def pack_positions(positions: Any, counts: Any, out: Any, sizes: Any) -> int:
    """Pack the positions of each posting as a row of distances, the first from 0. Fills the bytes of each row; returns their
    sum.
    """
    at, token = 0, 0
    for posting in range(len(counts)):
        begun, before, final = at, np.int64(0), token + counts[posting]
        while token < final:
            at = kernels.put_number(out, at, np.int64(positions[token] - before) << 1 | (token + 1 == final))
            before = np.int64(positions[token])
            token += 1
        sizes[posting] = at - begun
    return at


@kernel()
def pack_frequencies(fields: Any, counts: Any, width: int, bits: int, out: Any, sizes: Any) -> int:
    """Pack the ascending fields of each posting's tokens as rows for `unpack_frequencies`; fills and returns as
    `pack_positions`.
    """
    at, token = 0, 0
    for posting in range(len(counts)):
        begun, final = at, token + counts[posting]
        if fields[token] == fields[final - 1]:
            at = kernels.put_number(out, at, (np.int64(counts[posting] - 1) << bits | fields[token]) << 1 | 1)
            token = final
        else:
            for field in range(width):
                frequency = np.int64(0)
                while token < final and fields[token] == field:
                    frequency += 1
                    token += 1
                at = kernels.put_number(out, at, np.int64(frequency) << 1 | (field == width - 1))
        sizes[posting] = at - begun
    return at


@kernel()
def invert_rows(terms: Any, data: Any, cursor: Any, out: Any) -> None:
    """Copy the rows of each document's terms to the rows of each term's documents; the next row of a term goes to
    `cursor[term]`.
    """
    at = np.int64(0)
    for posting in range(len(terms)):
        at, cursor[terms[posting]] = _copied(data, at, len(data), out, cursor[terms[posting]])


@kernel()
def merge_rows(data: Any, cursors: Any, runs: Any, blocks: Any, df: Any, out: Any, sizes: Any) -> Any:
    """Merge the rows of several runs by terms.

    The next `blocks[b]` rows are those at `cursors[runs[b]]`; term i has `df[i]` of all. Fills the bytes of each term; returns
    their sum.
    """
    length, block, left = np.int64(0), -1, 0
    at = np.int64(0)
    for i in range(len(df)):
        begun = length
        for _ in range(df[i]):
            if left == 0:
                block += 1
                left, at = blocks[block], cursors[runs[block]]
            at, length = _copied(data, at, len(data), out, length)
            left -= 1
            if left == 0:
                cursors[runs[block]] = at
        sizes[i] = length - begun
    return length


@kernel(steps=lambda data, starts, ends, *rest: 2 * int((ends - starts).sum()))
def append_rows(data: Any, starts: Any, ends: Any, df: Any, alive: Any, indices: Any, cursor: Any, out: Any) -> bool:
    """Append the rows of some terms of a segment to those of earlier segments.

    Rows of term i are the bytes from starts[i] to ends[i], and go to cursor[indices[i]]. `alive` says for each row whether its
    document is living; empty if all are. Returns False if the bytes do not hold `df` rows.
    """
    row = 0
    for i in range(len(df)):
        at, end, to = starts[i], ends[i], cursor[indices[i]]
        if len(alive) == 0:
            for byte in range(at, end):
                out[to] = data[byte]
                to += 1
        else:
            for _ in range(df[i]):
                after, further = _copied(data, at, end, out, to)
                if after < 0:
                    return False
                at = after
                if alive[row]:
                    to = further
                row += 1
            if at != end:
                return False
        cursor[indices[i]] = to
    return True


@kernel(steps=lambda data, *rest: 2 * len(data))
def measure_rows(data: Any, bounds: Any, df: Any, block: int, offsets: Any) -> int:
    """Fill in the offsets, from the term's first byte, of its rows number `block`, 2 `block` and so on.

    Returns their number; -1 if the bytes do not hold `df` rows.
    """
    filled = 0
    for i in range(len(df)):
        at, end = bounds[i], bounds[i + 1]
        for row in range(df[i]):
            if row and row % block == 0:
                offsets[filled] = at - bounds[i]
                filled += 1
            at = _skipped(data, at, end)
            if at < 0:
                return -1
        if at != end:
            return -1
    return filled


@kernel(steps=lambda data, starts, ends, *rest: 3 * int((ends - starts).sum()))
def unpack_frequencies(data: Any, starts: Any, ends: Any, df: Any, bits: int, out: Any) -> bool:
    """Unpack the frequencies by field of some terms' postings into `out`, which is zeros.

    A row of one number holds the frequency less one, shifted by `bits`, and the only field with the term; a row of several
    holds the frequency in each field. Returns False if the bytes do not hold `df` such rows.
    """
    filled, width = 0, out.shape[1]
    for i in range(len(df)):
        at, end = np.int64(starts[i]), np.int64(ends[i])
        for _ in range(df[i]):
            value, at = _number(data, at, end)
            if at < 0:
                return False
            if value & 1:
                field, frequency = value >> 1 & (1 << bits) - 1, (value >> 1 + bits) + 1
                if field >= width or frequency > LARGEST:
                    return False
                out[filled, field] = frequency
            else:
                total = np.int64(0)
                for field in range(width):
                    if field:
                        value, at = _number(data, at, end)
                        if at < 0 or (value & 1) != (field == width - 1):
                            return False
                    total += value >> 1
                    if total > LARGEST:
                        return False
                    out[filled, field] = value >> 1
            filled += 1
        if at != end:
            return False
    return True


@kernel(steps=lambda frequencies, df, of_df, of_cf: 2 * frequencies.size)
def count_frequencies(frequencies: Any, df: Any, of_df: Any, of_cf: Any) -> None:
    """Add up the postings and frequencies of each term in each field."""
    row = 0
    for i in range(len(df)):
        for _ in range(df[i]):
            for field in range(frequencies.shape[1]):
                of_df[i, field] += frequencies[row, field] > 0
                of_cf[i, field] += frequencies[row, field]
            row += 1


@kernel(
    steps=lambda data, offsets, starts, ends, df, firsts, bounds, indices, whole, block: 3 * _rows(df, indices, whole, block)
)
def unpack_positions(
    data: Any,
    offsets: Any,
    starts: Any,
    ends: Any,
    df: Any,
    firsts: Any,
    bounds: Any,
    indices: Any,
    whole: bool,
    block: int,
) -> Any:
    """Unpack the positions of some postings of some terms.

    Term i has `df[i]` rows in the bytes from starts[i] to ends[i], and its offsets, as from `measure_rows`, from firsts[i].
    `indices[bounds[i]:bounds[i+1]]` are the numbers of the rows to unpack; all if `whole`. Returns whether the bytes hold such
    rows, the start of each posting's positions, and the positions.
    """
    row_bounds = np.zeros(bounds[len(df)] + 1, dtype=np.int64)
    out = np.empty(max(64, 2 * len(row_bounds)), dtype=np.int32)
    filled, rows = 0, 0
    for i in range(len(df)):
        row, at, end = np.int64(0), np.int64(starts[i]), np.int64(ends[i])
        for j in range(bounds[i + 1] - bounds[i]):
            place = np.int64(j) if whole else np.int64(indices[bounds[i] + j])
            if place < 0 or place >= df[i]:
                return False, row_bounds, out
            if place < row or place // block > row // block:
                row = place // block * block
                at = np.int64(starts[i])
                if row:
                    at += np.int64(offsets[firsts[i] + row // block - 1])
            at, row = _after(data, at, end, place - row), place
            if at < 0:
                return False, row_bounds, out
            position, value, first = np.int64(0), np.int64(0), True
            while not value & 1:
                if 0 <= at < end and data[at] < 128:  # most are of one byte or two: faster than a call
                    value, at = np.int64(data[at]), at + 1
                elif 0 <= at < end - 1 and data[at + 1] < 128:
                    value, at = np.int64(data[at] & 127) | np.int64(data[at + 1]) << 7, at + 2
                else:
                    value, at = _number(data, at, end)
                position += value >> 1
                if at < 0 or (value < 2 and not first) or position > LARGEST:
                    return False, row_bounds, out
                if filled == len(out):
                    more = np.empty(2 * filled, dtype=np.int32)
                    more[:filled] = out
                    out = more
                out[filled] = position
                filled += 1
                first = False
            row += 1
            rows += 1
            row_bounds[rows] = filled
        if whole and at != end:
            return False, row_bounds, out
    return True, row_bounds, out[:filled]


@kernel(steps=lambda data, offsets, bounds, firsts, terms, places, words, limits, block, docs, tf: 60 * len(terms) * len(docs))
def count_phrase(
    data: Any,
    offsets: Any,
    bounds: Any,
    firsts: Any,
    terms: Any,
    places: Any,
    words: Any,
    limits: Any,
    block: int,
    docs: Any,
    tf: Any,
) -> int:
    """Count an exact phrase in the documents that have all its terms, and keep those that have it.

    Args:
        data: The rows of all terms.
        offsets: The offsets of all terms, as `measure_rows` makes them.
        bounds: Where the rows of each term begin.
        firsts: The first offset of each term.
        terms: int64; the distinct terms of the phrase.
        places: int64, (terms, documents or more): the term's row of each document, ascending.
        words: int64; for each word of the phrase the index of its term, then for each its offset.
        limits: int32, (documents, 2): first position of a field and the one after its last; none: everywhere.
        block: As in `unpack_positions`.
        docs: The documents, which are replaced by those that have the phrase.
        tf: Output: frequency in each of these.

    Returns:
        Number of documents with the phrase; -1 if the bytes are no such rows.
    """
    words = words.reshape(2, len(words) // 2)
    readers, streams = row_readers(bounds, firsts, terms), np.empty((3, words.shape[1]), dtype=np.int64)
    words, kept = rarest_first(words, readers), 0
    for i in range(len(docs)):
        low, high = (limits[i, 0], limits[i, 1]) if len(limits) else (0, LARGEST)
        frequency = phrase_frequency(data, offsets, block, readers, places, i, words, low, high, streams)
        if frequency < 0:
            return -1
        docs[kept], tf[kept] = docs[i], frequency
        kept += frequency > 0
    return kept


@inner()
def row_readers(bounds: Any, firsts: Any, terms: Any) -> Any:
    """Readers of the rows of terms: number and place of the row where each stands, the rows' bounds, their first offset."""
    readers = np.empty((len(terms), 5), dtype=np.int64)
    for i in range(len(terms)):
        begin, end = np.int64(bounds[terms[i]]), np.int64(bounds[terms[i] + 1])
        readers[i, 0], readers[i, 1], readers[i, 2], readers[i, 3], readers[i, 4] = 0, begin, begin, end, firsts[terms[i]]
    return readers


@inner()
def rarest_first(words: Any, readers: Any) -> Any:
    """The words of a phrase, as in `count_phrase` in two rows, those with the fewest bytes of rows first."""
    ordered = words.copy()
    for i in range(1, words.shape[1]):
        term, offset, at = words[0, i], words[1, i], i
        size = readers[term, 3] - readers[term, 2]
        while at > 0 and readers[ordered[0, at - 1], 3] - readers[ordered[0, at - 1], 2] > size:
            ordered[0, at], ordered[1, at] = ordered[0, at - 1], ordered[1, at - 1]
            at -= 1
        ordered[0, at], ordered[1, at] = term, offset
    return ordered


@inner()
def phrase_frequency(
    data: Any, offsets: Any, block: int, readers: Any, places: Any, match: int, words: Any, low: int, high: int, streams: Any
) -> Any:
    """Count an exact phrase in one document.

    The positions of the first word lead, and those of another word are read only once all words before it stand in place.

    Args:
        data: As in `count_phrase`.
        offsets: As in `count_phrase`.
        block: As in `count_phrase`.
        readers: As `row_readers` makes them; they advance.
        places: As in `count_phrase`.
        match: The document's column in `places`, after those of earlier calls.
        words: As `rarest_first` returns them.
        low: Least position.
        high: The position after the greatest.
        streams: Scratch of three rows, a column for each word.

    Returns:
        The frequency; -1 if the bytes are no such rows.
    """
    size, opened, count = words.shape[1], 1, np.int64(0)
    at = _seek(data, offsets, block, readers, words[0, 0], places[words[0, 0], match])
    end, value, position, target = readers[words[0, 0], 3], np.int64(0), np.int64(0), np.int64(-LARGEST)
    while True:
        while True:  # the next position of the first word that can be that of a phrase
            if value & 1:
                return count
            before = position
            if 0 <= at < end and data[at] < 128:  # faster than a call
                value, at = np.int64(data[at]), at + 1
            else:
                value, at = _number(data, at, end)
            position += value >> 1
            if at < 0 or position > LARGEST or (position == before and before > 0):
                return -1
            if position - words[1, 0] >= target:
                break
        target, matches = position - words[1, 0], np.int64(low <= position < high)
        for word in range(1, size):
            term, sought = words[0, word], target + words[1, word]
            if word == opened:
                streams[0, word] = _seek(data, offsets, block, readers, term, places[term, match])
                streams[1, word], streams[2, word] = -1, 0
                opened += 1
            place, other, code, last = streams[0, word], streams[1, word], streams[2, word], readers[term, 3]
            while other < sought:
                if code & 1:
                    return count
                if 0 <= place < last and data[place] < 128:
                    code, place = np.int64(data[place]), place + 1
                else:
                    code, place = _number(data, place, last)
                if place < 0 or (other >= 0 and code < 2):
                    return -1
                other = max(other, 0) + (code >> 1)
                if other > LARGEST:
                    return -1
            streams[0, word], streams[1, word], streams[2, word] = place, other, code
            if other > sought:
                target, matches = other - words[1, word], np.int64(0)
                break
            matches &= np.int64(low <= other < high)
        count += matches


@inner()
def _seek(data: Any, offsets: Any, block: int, readers: Any, term: int, place: int) -> Any:
    """Move the reader of a term to a row, not before the one where it stands; return where that begins, -1 if nowhere."""
    row, at = readers[term, 0], readers[term, 1]
    if place < row:
        return np.int64(-1)
    if place // block > row // block:
        row = place // block * block
        at = readers[term, 2] + np.int64(offsets[readers[term, 4] + row // block - 1])
    at = _after(data, at, readers[term, 3], place - row)
    readers[term, 0], readers[term, 1] = place, at
    return at


def _rows(df: Any, indices: Any, whole: bool, block: int) -> int:
    return int(df.sum()) if whole else len(indices) * (block // 2 + 1)


@inner()
def _copied(data: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Copy the row at `at`; return its ends in `data` and `out`, -1 for the first if the bytes end too early."""
    while at < end:
        byte = data[at]
        last = byte & 1
        out[to] = byte
        at += 1
        to += 1
        while byte >= 128:
            if at >= end:
                return np.int64(-1), to
            byte = data[at]
            out[to] = byte
            at += 1
            to += 1
        if last:
            return np.int64(at), to
    return np.int64(-1), to


@inner()
def _skipped(data: Any, at: Any, end: Any) -> Any:
    """Return the end of the row at `at`; -1 if the bytes end too early."""
    while 0 <= at < end:
        byte = data[at]
        last = byte & 1
        at += 1
        while byte >= 128:
            if at >= end:
                return np.int64(-1)
            byte = data[at]
            at += 1
        if last:
            return np.int64(at)
    return np.int64(-1)


@inner()
def _after(data: Any, at: Any, end: Any, rows: Any) -> Any:
    """Return the start of the row after so many rows, eight bytes at a time where possible; -1 if the bytes end too early."""
    while rows > 0:
        if 0 <= at <= end - 8:
            word = np.uint64(0)
            for i in range(8):
                word |= np.uint64(data[np.uint64(at) + np.uint64(i)]) << np.uint64(8 * i)
            more = word >> np.uint64(7) & ONES  # bytes that are not the last of their number
            lasts, size = word & ONES & ~(more << np.uint64(8)), 8
            seen = lasts * ONES  # in each byte the rows that have ended before the next
            if np.int64(seen >> np.uint64(56)) >= rows:
                before = ~((seen | TOPS) - np.uint64(rows) * ONES) >> np.uint64(7) & ONES
                at += np.int64(before * ONES >> np.uint64(56)) + 1
                while data[at - 1] >= 128:
                    if at == end:
                        return np.int64(-1)
                    at += 1
                return at
            if more >> np.uint64(56):
                lasts &= np.uint64(0x00FFFFFFFFFFFFFF)
                size = 7 if more >> np.uint64(48) == np.uint64(256) else 0
            if size:
                rows -= np.int64(lasts * ONES >> np.uint64(56))
                at += size
                continue
        at = _skipped(data, at, end)
        if at < 0:
            return at
        rows -= 1
    return at


@inner()
def _number(data: Any, at: Any, end: Any) -> Any:
    """Return the integer at `at` and its end; -1 if the bytes end too early or the number is too large."""
    value, shift = np.int64(0), 0
    while 0 <= at < end and shift < 7 * MAX_BYTES:
        value |= np.int64(data[at] & 127) << shift
        if data[at] < 128:
            return value, np.int64(at + 1)
        shift += 7
        at += 1
    return value, np.int64(-1)
