"""Compiled loops of payloads: packing and unpacking the numbers that each posting carries.

The payload of a posting is a row of variable-length integers as in `kernels`. Each is a number times two, plus one if it is the
last of its row, so that concatenated rows can be separated without their lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..storage.compiled import inner, kernel
from . import kernels

if TYPE_CHECKING:
    from ..core.arrays import Bools, Bytes, Int, Int32s, Int64s, Ints

    TermRows: TypeAlias = tuple[Bytes, Ints, Ints, Ints]
    Spans: TypeAlias = tuple[Int64s, Int64s, Int64s, Int64s]

MAX_BYTES = 6  # of a packed number
MAX_VALUE = 0x7FFFFFFF  # maximum of a position or frequency
ONES, TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@kernel()
def group_by_posting(
    numbers: Int32s, bounds: Int64s, values: Int32s, terms: Int32s, counts: Int32s, term_bounds: Int64s, slots: Int32s,
    out: Int32s,
) -> None:  # fmt: skip
    """Put a value of each token in the order of postings.

    `numbers[bounds[i]:bounds[i+1]]` are the terms of document i; `terms`, `counts` and `term_bounds` are the output of
    `count_terms`. `slots` is scratch, one number per term.
    """
    for i in range(len(bounds) - 1):
        slot = bounds[i]
        for posting in range(term_bounds[i], term_bounds[i + 1]):
            slots[terms[posting]] = slot
            slot += counts[posting]
        for token in range(bounds[i], bounds[i + 1]):
            number = numbers[token]
            out[slots[number]] = values[token]
            slots[number] += 1


@kernel()
def pack_positions(positions: Int32s, counts: Int32s, out: Bytes, sizes: Int32s) -> int:
    """Pack the positions of each posting as a row of distances, the first from 0.

    Fills `sizes` with the bytes of each row; returns their sum.
    """
    at, token = 0, 0
    for posting in range(len(counts)):
        start, previous, end = at, np.int64(0), token + counts[posting]
        while token < end:
            at = kernels.put_number(out, at, np.int64(positions[token] - previous) << 1 | (token + 1 == end))
            previous = np.int64(positions[token])
            token += 1
        sizes[posting] = at - start
    return at


@kernel()
def pack_frequencies(fields: Int32s, counts: Int32s, width: int, bits: int, out: Bytes, sizes: Int32s) -> int:
    """Pack the ascending fields of each posting's tokens as rows for `unpack_frequencies`.

    Fills `sizes` with the bytes of each row; returns their sum.
    """
    at, token = 0, 0
    for posting in range(len(counts)):
        start, end = at, token + counts[posting]
        if fields[token] == fields[end - 1]:
            at = kernels.put_number(out, at, (np.int64(counts[posting] - 1) << bits | fields[token]) << 1 | 1)
            token = end
        else:
            for field in range(width):
                frequency = np.int64(0)
                while token < end and fields[token] == field:
                    frequency += 1
                    token += 1
                at = kernels.put_number(out, at, np.int64(frequency) << 1 | (field == width - 1))
        sizes[posting] = at - start
    return at


@kernel()
def invert_rows(terms: Int32s, data: Bytes, cursor: Int64s, out: Bytes) -> None:
    """Copy rows in the order of documents to rows in the order of terms; the next row of a term goes to `cursor[term]`."""
    at = np.int64(0)
    for posting in range(len(terms)):
        at, cursor[terms[posting]] = _copy_row(data, at, len(data), out, cursor[terms[posting]])


@kernel()
def merge_rows(data: Bytes, cursors: Int64s, runs: Int32s, blocks: Int32s, df: Int64s, out: Bytes, sizes: Int64s) -> np.int64:
    """Merge the rows of several runs by terms.

    The next `blocks[b]` rows are those at `cursors[runs[b]]`; term i has `df[i]` of all rows. Fills `sizes` with the bytes of
    each term; returns their sum.
    """
    length, block, remaining = np.int64(0), -1, 0
    at = np.int64(0)
    for i in range(len(df)):
        start = length
        for _ in range(df[i]):
            if remaining == 0:
                block += 1
                remaining, at = blocks[block], cursors[runs[block]]
            at, length = _copy_row(data, at, len(data), out, length)
            remaining -= 1
            if remaining == 0:
                cursors[runs[block]] = at
        sizes[i] = length - start
    return length


@kernel(steps=lambda data, starts, ends, *rest: 2 * int((ends - starts).sum()))
def append_rows(
    data: Bytes, starts: Int64s, ends: Int64s, df: Int64s, alive: Bools, indices: Int64s, cursor: Int64s, out: Bytes
) -> bool:
    """Append the rows of some terms of a segment to those of earlier segments.

    The rows of term i are the bytes from starts[i] to ends[i], and go to cursor[indices[i]]. `alive` tells for each row whether
    its document is living; it is empty if all are. Returns False if the bytes do not hold `df` rows.
    """
    row = 0
    for i in range(len(df)):
        at, end, target = starts[i], ends[i], cursor[indices[i]]
        if len(alive) == 0:
            for byte in range(at, end):
                out[target] = data[byte]
                target += 1
        else:
            for _ in range(df[i]):
                row_end, copy_end = _copy_row(data, at, end, out, target)
                if row_end < 0:
                    return False
                at = row_end
                if alive[row]:
                    target = copy_end
                row += 1
            if at != end:
                return False
        cursor[indices[i]] = target
    return True


@kernel(steps=lambda data, *rest: 2 * len(data))
def measure_rows(data: Bytes, bounds: Int64s, df: Int64s, block: int, offsets: Int64s) -> int:
    """Fill in the offset, from the term's first byte, of every row of a term whose number is `block`, 2 `block` and so on.

    Returns their number; -1 if the bytes do not hold `df` rows.
    """
    filled = 0
    for i in range(len(df)):
        at, end = bounds[i], bounds[i + 1]
        for row in range(df[i]):
            if row and row % block == 0:
                offsets[filled] = at - bounds[i]
                filled += 1
            at = _skip_row(data, at, end)
            if at < 0:
                return -1
        if at != end:
            return -1
    return filled


@kernel(steps=lambda data, starts, ends, *rest: 3 * int((ends - starts).sum()))
def unpack_frequencies(data: Bytes, starts: Int64s, ends: Int64s, df: Int64s, bits: int, out: Int32s) -> bool:
    """Unpack the frequencies by field of some terms' postings into `out`, which is zeros.

    A row of one number holds the frequency less one, shifted by `bits`, and the only field with the term; a row of several
    holds the frequency in each field. Returns False if the bytes do not hold `df` such rows.
    """
    filled, width = 0, out.shape[1]
    for i in range(len(df)):
        at, end = np.int64(starts[i]), np.int64(ends[i])
        for _ in range(df[i]):
            value, at = _read_number(data, at, end)
            if at < 0:
                return False
            if value & 1:
                field, frequency = value >> 1 & (1 << bits) - 1, (value >> 1 + bits) + 1
                if field >= width or frequency > MAX_VALUE:
                    return False
                out[filled, field] = frequency
            else:
                total = np.int64(0)
                for field in range(width):
                    if field:
                        value, at = _read_number(data, at, end)
                        if at < 0 or (value & 1) != (field == width - 1):
                            return False
                    total += value >> 1
                    if total > MAX_VALUE:
                        return False
                    out[filled, field] = value >> 1
            filled += 1
        if at != end:
            return False
    return True


@kernel(steps=lambda frequencies, df, field_df, field_cf: 2 * frequencies.size)
def count_frequencies(frequencies: Int32s, df: Int64s, field_df: Int64s, field_cf: Int64s) -> None:
    """Add up the postings and frequencies of each term in each field."""
    row = 0
    for i in range(len(df)):
        for _ in range(df[i]):
            for field in range(frequencies.shape[1]):
                field_df[i, field] += frequencies[row, field] > 0
                field_cf[i, field] += frequencies[row, field]
            row += 1


@kernel(
    steps=lambda data, offsets, spans, bounds, indices, all_rows, block: 3 * _rows_visited(spans[2], indices, all_rows, block)
)
def unpack_positions(
    data: Bytes, offsets: Ints, spans: Spans, bounds: Int64s, indices: Int64s, all_rows: bool, block: int
) -> tuple[bool, Int64s, Int32s]:
    """Unpack the positions of some postings of some terms.

    With `starts, ends, df, firsts = spans`, term i has `df[i]` rows in the bytes from starts[i] to ends[i], and its offsets, as
    from `measure_rows`, from firsts[i]. The rows to unpack have the numbers `indices[bounds[i]:bounds[i+1]]`, or are all if
    `all_rows`. Returns whether the bytes hold such rows, the start of each posting's positions, and the positions.
    """
    starts, ends, df, firsts = spans
    row_bounds = np.zeros(bounds[len(df)] + 1, dtype=np.int64)
    out = np.empty(max(64, 2 * len(row_bounds)), dtype=np.int32)
    filled, rows = 0, 0
    for i in range(len(df)):
        row, at, end = np.int64(0), np.int64(starts[i]), np.int64(ends[i])
        for j in range(bounds[i + 1] - bounds[i]):
            target_row = np.int64(j) if all_rows else np.int64(indices[bounds[i] + j])
            if target_row < 0 or target_row >= df[i]:
                return False, row_bounds, out
            if target_row < row or target_row // block > row // block:
                row = target_row // block * block
                at = np.int64(starts[i])
                if row:
                    at += np.int64(offsets[firsts[i] + row // block - 1])
            at, row = _skip_rows(data, np.uint64(at), np.uint64(end), np.uint64(target_row - row)), target_row
            if at < 0:
                return False, row_bounds, out
            position, value, first = np.int64(0), np.int64(0), True
            while not value & 1:
                if 0 <= at < end and data[at] < 128:  # most numbers have one or two bytes: faster than a call
                    value, at = np.int64(data[at]), at + 1
                elif 0 <= at < end - 1 and data[at + 1] < 128:
                    value, at = np.int64(data[at] & 127) | np.int64(data[at + 1]) << 7, at + 2
                else:
                    value, at = _read_number(data, at, end)
                position += value >> 1
                if at < 0 or (value < 2 and not first) or position > MAX_VALUE:
                    return False, row_bounds, out
                if filled == len(out):
                    larger = np.empty(2 * filled, dtype=np.int32)
                    larger[:filled] = out
                    out = larger
                out[filled] = position
                filled += 1
                first = False
            row += 1
            rows += 1
            row_bounds[rows] = filled
        if all_rows and at != end:
            return False, row_bounds, out
    return True, row_bounds, out[:filled]


@kernel(steps=lambda of_terms, terms, rows, words, limits, block, docs, tf: 60 * len(terms) * len(docs))
def count_phrase(
    of_terms: TermRows, terms: Int64s, rows: Int64s, words: Int64s, limits: Int32s, block: int, docs: Int32s, tf: Int32s
) -> int:
    """Count an exact phrase in the documents that have all its terms, and keep the documents that have the phrase.

    Args:
        of_terms: The rows of all terms; offsets in them, from `measure_rows`; the start of each term's rows; and the index of
            its first entry in the offsets.
        terms: int64; the distinct terms of the phrase.
        rows: int64, (terms, documents or more): the term's row of each document, ascending.
        words: int64; the index of each word's term in `terms`, then the offset of each word in the phrase.
        limits: int32, (documents, 2): first position of a field, and the position after its last; empty for all positions.
        block: Rows between two entries of `offsets`, as in `measure_rows`.
        docs: The documents, which are replaced by those that have the phrase.
        tf: Output: frequency in each of these.

    Returns:
        Number of documents with the phrase; -1 if the bytes do not hold such rows.
    """
    data, _, bounds, _ = of_terms
    words = _rarest_first(words.reshape(2, len(words) // 2), bounds, terms)
    starts, ends, codes, fit = _row_starts(of_terms, block, terms, rows, len(docs))
    if not fit:
        return -1
    streams, count = np.empty((3, words.shape[1]), dtype=np.int64), 0
    frequency: Any = 0
    first_offset, last_offset = words[1].min(), words[1].max()
    for i in range(len(docs)):
        low, high = (limits[i, 0], limits[i, 1]) if len(limits) else (0, MAX_VALUE)
        is_single, is_equal, start = np.int64(1), True, (codes[words[0, 0], i] >> 1) - words[1, 0]
        for word in range(words.shape[1]):
            code = codes[words[0, word], i]
            is_single &= code
            is_equal &= (code >> 1) - words[1, word] == start
        if is_single:
            frequency = np.int64(is_equal and low <= start + first_offset and start + last_offset < high)
        else:
            frequency = _phrase_frequency(data, starts, ends, i, words, low, high, streams)
        if frequency < 0:
            return -1
        docs[count], tf[count] = docs[i], frequency
        count += frequency > 0
    return count


@inner()
def _rarest_first(words: Int64s, bounds: Ints, terms: Int64s) -> Int64s:
    """Sort the words of a phrase, (2, words): term indices and offsets, by the bytes of their terms' rows, fewest first."""
    ordered = words.copy()
    for i in range(1, words.shape[1]):
        term, offset, slot = words[0, i], words[1, i], i
        size = bounds[terms[term] + 1] - bounds[terms[term]]
        while slot > 0 and bounds[terms[ordered[0, slot - 1]] + 1] - bounds[terms[ordered[0, slot - 1]]] > size:
            ordered[0, slot], ordered[1, slot] = ordered[0, slot - 1], ordered[1, slot - 1]
            slot -= 1
        ordered[0, slot], ordered[1, slot] = term, offset
    return ordered


@inner()
def _row_starts(of_terms: TermRows, block: int, terms: Int64s, rows: Int64s, size: int) -> tuple[Int64s, Int64s, Int64s, bool]:
    """Find the first `size` of some ascending rows of each term; the other arguments are those of `count_phrase`.

    Returns:
        The offset of each row, (terms, size); the end of each term's rows; the first number of each row, (terms, size), 0 if it
        has more than two bytes; and whether there are such rows.
    """
    data, offsets, bounds, firsts = of_terms
    starts, ends = np.empty((len(terms), size), dtype=np.int64), np.empty(len(terms), dtype=np.int64)
    codes = np.empty((len(terms), size), dtype=np.int64)
    for i in range(len(terms)):
        begin, end, first = np.int64(bounds[terms[i]]), np.int64(bounds[terms[i] + 1]), np.int64(firsts[terms[i]])
        row, at = np.int64(0), begin
        ends[i] = end
        for match in range(size):
            target = np.int64(rows[i, match])
            if target < row:
                return starts, ends, codes, False
            if target // block > row // block:
                row = target // block * block
                at = begin + np.int64(offsets[first + row // block - 1])
            at, row = _skip_rows(data, np.uint64(at), np.uint64(end), np.uint64(target - row)), target
            if at < 0 or at >= end:
                return starts, ends, codes, False
            starts[i, match] = at
            low, high = np.int64(data[at]), np.int64(data[min(at + 1, end - 1)])
            code = low & 127 | high << 7 & -np.int64(low > 127)
            codes[i, match] = code & -np.int64(low < 128 or high < 128)
    return starts, ends, codes, True


@inner()
def _phrase_frequency(
    data: Bytes, starts: Int64s, ends: Int64s, match: int, words: Int64s, low: int, high: int, streams: Int64s
) -> Int:
    """Count an exact phrase in one document.

    The positions of the first word lead; those of another word are read only where all words before it match.

    Args:
        data: As in `count_phrase`.
        starts: Starts of rows from `_row_starts`.
        ends: Ends of the terms' rows.
        match: The document's column in `starts`.
        words: Words from `_rarest_first`.
        low: First position that counts.
        high: Position after the last that counts.
        streams: Scratch of three rows, with a column for each word.

    Returns:
        The frequency; -1 if the bytes do not hold such rows.
    """
    size, opened, count = words.shape[1], 1, np.int64(0)
    at, end = starts[words[0, 0], match], ends[words[0, 0]]
    value, position, target = np.int64(0), np.int64(0), np.int64(-MAX_VALUE)
    while True:
        while True:  # up to the next position of the first word at which a phrase can be
            if value & 1:
                return count
            previous = position
            if 0 <= at < end and data[at] < 128:  # faster than a call
                value, at = np.int64(data[at]), at + 1
            else:
                value, at = _read_number(data, at, end)
            position += value >> 1
            if at < 0 or position > MAX_VALUE or (position == previous and previous > 0):
                return -1
            if position - words[1, 0] >= target:
                break
        target, matches = position - words[1, 0], np.int64(low <= position < high)
        for word in range(1, size):
            term, expected = words[0, word], target + words[1, word]
            if word == opened:
                streams[0, word], streams[1, word], streams[2, word] = starts[term, match], -1, 0
                opened += 1
            cursor, word_position, code, term_end = streams[0, word], streams[1, word], streams[2, word], ends[term]
            while word_position < expected:
                if code & 1:
                    return count
                if 0 <= cursor < term_end and data[cursor] < 128:
                    code, cursor = np.int64(data[cursor]), cursor + 1
                else:
                    code, cursor = _read_number(data, cursor, term_end)
                if cursor < 0 or (word_position >= 0 and code < 2):
                    return -1
                word_position = max(word_position, 0) + (code >> 1)
                if word_position > MAX_VALUE:
                    return -1
            streams[0, word], streams[1, word], streams[2, word] = cursor, word_position, code
            if word_position > expected:
                target, matches = word_position - words[1, word], np.int64(0)
                break
            matches &= np.int64(low <= word_position < high)
        count += matches


def _rows_visited(df: Int64s, indices: Int64s, all_rows: bool, block: int) -> int:
    return int(df.sum()) if all_rows else len(indices) * (block // 2 + 1)


@inner()
def _copy_row(data: Bytes, at: np.int64, end: Int, out: Bytes, target: np.int64) -> tuple[np.int64, np.int64]:
    """Copy the row at `at`; return its ends in `data` and `out`, the former -1 if the bytes end too early."""
    while at < end:
        byte = data[at]
        last = byte & 1
        out[target] = byte
        at += 1
        target += 1
        while byte >= 128:
            if at >= end:
                return np.int64(-1), target
            byte = data[at]
            out[target] = byte
            at += 1
            target += 1
        if last:
            return np.int64(at), target
    return np.int64(-1), target


@inner()
def _skip_row(data: Bytes, at: np.int64, end: np.int64) -> np.int64:
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


@inner(inline="always")
def _skip_rows(data: Bytes, at: Int, end: Int, rows: Int) -> np.int64:
    """Skip rows, eight bytes at a time where possible; return the offset after them, -1 if the bytes end too early.

    All are uint64, as indices below 0, which count from the end, take time.
    """
    one, eight, seven, carry = np.uint64(1), np.uint64(8), np.uint64(7), np.uint64(0)
    while at < end and end - at >= eight and rows > 0:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        continuing = word >> seven & ONES  # bytes that are not the last byte of their number
        row_ends = word & ONES & ~(continuing << eight | carry)
        count = row_ends * ONES >> np.uint64(56)
        if count >= rows:
            reached = ((row_ends * ONES | TOPS) - rows * ONES) & TOPS  # in the bytes up to which there are that many ends
            below = (reached & (~reached + one)) - one
            at += (below & ONES) * ONES >> np.uint64(56)
            rows, carry = np.uint64(0), np.uint64(data[at - one] >> 7)
        else:
            rows -= count
            carry = continuing >> np.uint64(56)
            at += eight
    while (rows > 0 or carry) and at < end:
        rows -= np.uint64(data[at] & 1 and not carry)
        carry = np.uint64(data[at] >> 7)
        at += one
    return np.int64(-1) if rows > 0 or carry else np.int64(at)


@inner()
def _read_number(data: Bytes, at: np.int64, end: np.int64) -> Any:
    """Return the integer at `at`, and the offset after it: -1 if the bytes end too early or the number is too large."""
    value, shift = np.int64(0), 0
    while 0 <= at < end and shift < 7 * MAX_BYTES:
        value |= np.int64(data[at] & 127) << shift
        if data[at] < 128:
            return value, np.int64(at + 1)
        shift += 7
        at += 1
    return value, np.int64(-1)
