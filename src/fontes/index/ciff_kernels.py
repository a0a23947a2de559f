"""Compiled loops of CIFF: parsing and writing Protobuf messages.

A message is preceded by its length. A field is a tag, eight times the field's number plus the kind of its value, and the value:
a varint (kind 0), eight bytes (1), a length and as many bytes (2), or four bytes (5). A field that is 0 is omitted.

    PostingsList  1 term, 2 df, 3 cf, 4 postings
    Posting       1 docid, as the distance from the previous one (the first from 0), 2 tf
    DocRecord     1 docid, 2 collection_docid, 3 doclength
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import inner, kernel
from . import kernels, tables

# Tags of a message's text, of its two numbers and of its postings (-1: it has none), and the first unknown tag.
LISTS, RECORDS = (10, 16, 24, 34, 40), (18, 8, 24, -1, 32)
SOUND, NO_MESSAGE, NOT_ASCENDING, BEYOND, TF = range(5)  # problems of a message

MAX_INT32 = 0x7FFFFFFF  # maximum of a docid, a frequency, a length, and the bytes of a message
MIN_MESSAGE, MIN_POSTING = 2, 4  # minimum bytes
MAX_POSTING, MAX_NUMBERS = 14, 40  # maximum bytes of a posting, and of a message and its length without text and postings


@inner()
def _varint(data: Any, at: Any, end: Any) -> Any:
    """Return the signed number at an offset, and the offset after it; -1 if the bytes end too early."""
    value, shift = np.int64(0), 0
    while at < end and shift < 70:
        value |= np.int64(data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        shift += 7
        at += 1
    return value, np.int64(-1)


@kernel()
def message_bounds(data: Any, at: Any, end: Any) -> Any:
    """Return start and end of a message's content; start is -1 if the length is cut off, end is -1 if the length is wrong."""
    size, start = _varint(data, at, end)
    if start < 0:
        return np.int64(-1), np.int64(0 if end - at < 10 else -1)
    return start, start + size if 0 <= size <= MAX_INT32 else np.int64(-1)


@inner(inline="always")
def field(data: Any, at: Any, end: Any) -> Any:
    """Parse the field at an offset: tag, number or start of its bytes, their end, the next offset (-1 if damaged)."""
    tag, at = _varint(data, at, end)
    size, kind = np.int64(-1), tag & 7
    if at >= 0 and kind == 0:
        value, at = _varint(data, at, end)
        return tag, value, at, at
    if kind == 1:
        size = np.int64(8)
    elif kind == 5:
        size = np.int64(4)
    elif at >= 0 and kind == 2:
        size, at = _varint(data, at, end)
    field_end = at + size if at >= 0 and 0 <= size <= end - at else np.int64(-1)
    return tag, at, field_end, field_end


@inner()
def _posting(data: Any, at: Any, end: Any) -> Any:
    """Return gap and frequency of a posting, and its end; -1 if it is damaged."""
    gap, tf = np.int64(0), np.int64(0)
    while 0 <= at < end:
        if data[at] == 8:
            gap, at = _varint(data, at + 1, end)
        elif data[at] == 16:
            tf, at = _varint(data, at + 1, end)
        else:
            tag, _, _, at = field(data, at, end)
            at = at if tag >= 24 else np.int64(-1)
    return gap, tf, at if at == end else np.int64(-1)


@inner()
def _is_short(data: Any, at: Any, end: Any) -> Any:
    """Whether the next field is a posting of six bytes, as most are; reading those by offset takes two thirds of the time."""
    fits = end - at >= 6 and data[at] == 34 and data[at + 1] == 4 and data[at + 2] == 8 and data[at + 4] == 16
    return fits and data[at + 3] < 128 and data[at + 5] < 128


@kernel()
def parse_messages(data: Any, limit: Any, tags: Any, present: Any) -> Any:
    """Parse the complete messages of `data`, up to `limit` and up to the first with a problem.

    Args:
        data: uint8.
        limit: Maximum number of messages.
        tags: `LISTS` or `RECORDS`.
        present: bool, (documents,): marks the documents that have a posting.

    Returns:
        The number of bytes parsed; the bytes of the texts and their bounds; int64, (4, messages): the two numbers of each, the
        end of its postings and the sum of its tfs; docs and tfs of all; and the problem, with the bytes of the message's text
        and two numbers.
    """
    size = np.int64(len(data))
    capacity = min(limit, size // MIN_MESSAGE + 1)
    blob, bounds, numbers = np.empty(size, np.uint8), np.zeros(capacity + 1, np.int64), np.empty((4, capacity), np.int64)
    docs, tfs = np.empty(size // MIN_POSTING + 1, np.int32), np.empty(size // MIN_POSTING + 1, np.int32)
    used, count, filled, problem, first, second = np.int64(0), 0, np.int64(0), SOUND, np.int64(0), np.int64(0)
    text, text_end = np.int64(0), np.int64(0)
    while count < capacity and problem == SOUND:
        at, end = message_bounds(data, used, size)
        if end >= 0 and (at < 0 or end > size):
            break
        problem = SOUND if end >= 0 else NO_MESSAGE
        text, text_end, first, second = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        doc, total = np.int64(-1), np.int64(0)
        while problem == SOUND and at < end:
            tag, value, value_end, gap, tf = np.int64(tags[3]), at, at, np.int64(0), np.int64(0)
            if tag == 34 and _is_short(data, at, end):
                gap, tf, at = np.int64(data[at + 3]), np.int64(data[at + 5]), at + 6
            else:
                tag, value, value_end, at = field(data, at, end)
                if tag == tags[3]:
                    gap, tf, at = _posting(data, value, value_end)
            if at < 0:
                problem = NO_MESSAGE
            elif tag == tags[3]:
                if gap < (doc >= 0) or gap > MAX_INT32:
                    problem, first, second = NOT_ASCENDING, doc, gap
                    break
                doc = gap if doc < 0 else doc + gap
                if doc >= len(present):
                    problem, first = BEYOND, doc
                    break
                if tf < 1 or tf > MAX_INT32:
                    problem, first, second = TF, doc, tf
                    break
                docs[filled], tfs[filled], present[doc] = doc, tf, True
                total += tf
                filled += 1
            elif tag == tags[0]:
                text, text_end = value, value_end
            elif tag == tags[1]:
                first = value
            elif tag == tags[2]:
                second = value
            elif tag < tags[4]:  # a known field of another kind
                problem = NO_MESSAGE
        if problem == SOUND:
            bounds[count + 1] = tables.copy_bytes(data, text, text_end, blob, bounds[count])
            numbers[0, count], numbers[1, count], numbers[2, count], numbers[3, count] = first, second, filled, total
            count, used = count + 1, end
    texts = blob[: bounds[count]].copy(), bounds[: count + 1].copy()
    return used, texts, numbers[:, :count], docs[:filled], tfs[:filled], (problem, data[text:text_end], first, second)


@kernel()
def first_unordered(blob: Any, bounds: Any) -> Any:
    """Number of the first string that is not above its predecessor, by bytes; -1 for none."""
    for i in range(1, len(bounds) - 1):
        a, b, end = np.int64(bounds[i - 1]), np.int64(bounds[i]), np.int64(bounds[i + 1])
        shorter, stop = b - a < end - b, min(b, a + end - b)
        while a < stop and blob[a] == blob[b]:
            a, b = a + 1, b + 1
        if blob[a] > blob[b] if a < stop else not shorter:
            return i
    return -1


@inner()
def _put_number(out: Any, at: Any, tag: Any, value: Any) -> Any:
    if value:
        out[at] = tag
        at = kernels.put_number(out, at + 1, value)
    return at


@inner()
def _put_bytes(out: Any, at: Any, tag: Any, blob: Any, start: Any, end: Any) -> Any:
    out[at] = tag
    return tables.copy_bytes(blob, start, end, out, kernels.put_number(out, at + 1, end - start))


@inner()
def _reserved(max_size: Any) -> Any:
    """Number of bytes to reserve for the length of a message of at most `max_size` bytes."""
    size = 1
    while max_size >= 128:
        size, max_size = size + 1, max_size >> 7
    return size


@inner()
def _put_length(out: Any, at: Any, start: Any, end: Any) -> Any:
    """Write the length of the message out[start:end] at `at`, and move the message right after it."""
    moved_start = kernels.put_number(out, at, end - start)
    return end if moved_start == start else tables.copy_bytes(out, start, end, out, moved_start)


@kernel()
def write_lists(blob: Any, bounds: Any, df: Any, cf: Any, docs: Any, tfs: Any) -> Any:
    """Return the messages of postings lists of the terms blob[bounds[i]:bounds[i + 1]]."""
    out = np.empty(MAX_POSTING * len(docs) + (bounds[-1] - bounds[0]) + MAX_NUMBERS * len(df), np.uint8)
    at, first = np.int64(0), np.int64(0)
    for i in range(len(df)):
        start = at + _reserved(MAX_POSTING * df[i] + bounds[i + 1] - bounds[i] + MAX_NUMBERS)
        end = _put_bytes(out, start, 10, blob, bounds[i], bounds[i + 1])
        end = _put_number(out, _put_number(out, end, 16, df[i]), 24, cf[i])
        previous, last = np.int64(0), first + df[i]
        for j in range(first, last):
            posting, gap, tf = end, docs[j] - previous, np.int64(tfs[j])
            previous = np.int64(docs[j])
            if gap and gap < 128 and tf < 128:
                out[posting + 2], out[posting + 3], out[posting + 4], out[posting + 5] = 8, gap, 16, tf
                end = posting + 6
            else:
                end = _put_number(out, _put_number(out, posting + 2, 8, gap), 16, tf)
            out[posting], out[posting + 1] = 34, end - posting - 2
        at, first = _put_length(out, at, start, end), last
    return out[:at]


@kernel()
def write_records(blob: Any, bounds: Any, first: Any, lengths: Any) -> Any:
    """Return the messages of documents, with docids from `first`, of the ids blob[bounds[i]:bounds[i + 1]]."""
    out = np.empty((bounds[-1] - bounds[0]) + MAX_NUMBERS * len(lengths), np.uint8)
    at = np.int64(0)
    for i in range(len(lengths)):
        start = at + _reserved(bounds[i + 1] - bounds[i] + MAX_NUMBERS)
        end = _put_number(out, start, 8, np.int64(first + i))
        end = _put_bytes(out, end, 18, blob, bounds[i], bounds[i + 1])
        at = _put_length(out, at, start, _put_number(out, end, 24, np.int64(lengths[i])))
    return out[:at]
