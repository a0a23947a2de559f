"""The compiled loops of CIFF: messages of Protobuf to arrays and back.

A message comes after its length. Its fields are a tag, eight times the field's number plus the kind of its value, and the
value: a varint (kind 0), eight bytes (1), a length and as many bytes (2), or four bytes (5). A field that is 0 is left out.

    PostingsList  1 term, 2 df, 3 cf, 4 postings
    Posting       1 docid, from the one before (the first from 0), 2 tf
    DocRecord     1 docid, 2 collection_docid, 3 doclength
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...storage.compiled import inner, kernel

# What is wrong with a message.
NOTHING, NO_MESSAGE, NO_TERM, NO_POSTINGS, DF, CF, NOT_ASCENDING, BEYOND, TF, DOCID, NO_ID, LENGTH = range(12)

MAX_INT32 = 0x7FFFFFFF  # of a document's number, a frequency, a length, and the bytes of a message
LIST = 11  # bytes that a message of a postings list has at least
POSTING = 4  # and of a posting
RECORD = 2  # and of a document


@inner()
def _varint(data: Any, at: Any, end: Any) -> Any:
    """The number at a place, with its sign, and the place after it, which is -1 where the bytes end too early."""
    value, shift = np.int64(0), 0
    while at < end and shift < 70:
        value |= np.int64(data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        shift += 7
        at += 1
    return value, np.int64(-1)


@inner()
def _skipped(data: Any, kind: Any, at: Any, end: Any) -> Any:
    """The place after a value of this kind; -1 where there is none."""
    size = np.int64(-1)
    if kind == 0:
        return _varint(data, at, end)[1]
    if kind == 1:
        size = np.int64(8)
    elif kind == 5:
        size = np.int64(4)
    elif kind == 2:
        size, at = _varint(data, at, end)
    return at + size if at >= 0 and 0 <= size <= end - at else np.int64(-1)


@inner()
def _copied(source: Any, start: Any, end: Any, target: Any, at: Any) -> Any:
    """Copies source[start:end] to target[at:]; returns where it ends."""
    for i in range(end - start):
        target[at + i] = source[start + i]
    return at + end - start


@kernel()
def message_end(data: Any, at: Any, end: Any) -> Any:
    """Where the content of the message at a place begins and ends; -1 for a length that is not there, or cannot be."""
    size, start = _varint(data, at, end)
    if start < 0:
        return np.int64(-1), np.int64(0 if end - at < 10 else -1)
    return start, start + size if 0 <= size <= MAX_INT32 else np.int64(-1)


@inner()
def _bytes(data: Any, at: Any, end: Any) -> Any:
    """Where a value of bytes begins and ends; the end is -1 where it is cut off."""
    size, start = _varint(data, at, end)
    return start, start + size if start >= 0 and 0 <= size <= end - start else np.int64(-1)


@inner()
def _posting(data: Any, at: Any, end: Any) -> Any:
    """The gap and the frequency of the posting whose length is at a place, and the place after it; -1 where there is none."""
    at, end = _bytes(data, at, end)
    gap, tf = np.int64(0), np.int64(0)
    while 0 <= at < end:
        tag, at = _varint(data, at, end)
        if at < 0:
            break
        if tag == 8:
            gap, at = _varint(data, at, end)
        elif tag == 16:
            tf, at = _varint(data, at, end)
        else:
            at = _skipped(data, tag & 7, at, end) if tag >> 3 > 2 else np.int64(-1)
    return gap, tf, at if at == end else np.int64(-1)


@inner()
def _is_short(data: Any, at: Any, end: Any) -> Any:
    """Whether there is a posting of six bytes, as most are; read by their places they take two thirds of the time."""
    fits = end - at >= 6 and data[at] == 34 and data[at + 1] == 4 and data[at + 2] == 8 and data[at + 4] == 16
    return fits and data[at + 3] < 128 and data[at + 5] < 128


@inner()
def _parse_list(data: Any, at: Any, end: Any, present: Any, docs: Any, tfs: Any, filled: Any) -> Any:
    """One postings list: where its term begins and ends, df, cf, where its postings end; what is wrong, and two numbers."""
    term_at, term_end, df, cf = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    first, doc, total = filled, np.int64(-1), np.int64(0)
    while 0 <= at < end:
        if _is_short(data, at, end):
            tag, gap, tf, at = np.int64(34), np.int64(data[at + 3]), np.int64(data[at + 5]), at + 6
        else:
            tag, at = _varint(data, at, end)
            gap, tf = np.int64(0), np.int64(0)
            if at >= 0 and tag == 34:
                gap, tf, at = _posting(data, at, end)
        if at < 0:
            break
        if tag == 34:
            if gap < (doc >= 0) or gap > MAX_INT32:
                return term_at, term_end, df, cf, filled, NOT_ASCENDING, doc, gap
            doc = gap if doc < 0 else doc + gap
            if doc >= len(present):
                return term_at, term_end, df, cf, filled, BEYOND, doc, gap
            if tf < 1 or tf > MAX_INT32:
                return term_at, term_end, df, cf, filled, TF, doc, tf
            docs[filled], tfs[filled], present[doc] = doc, tf, True
            total += tf
            filled += 1
        elif tag == 10:
            term_at, term_end = _bytes(data, at, end)
            at = term_end
        elif tag == 16:
            df, at = _varint(data, at, end)
        elif tag == 24:
            cf, at = _varint(data, at, end)
        else:
            at = _skipped(data, tag & 7, at, end) if tag >> 3 > 4 else np.int64(-1)
    if at != end:
        return np.int64(0), np.int64(0), df, cf, filled, NO_MESSAGE, df, cf
    if term_end == term_at:
        return term_at, term_end, df, cf, filled, NO_TERM, df, cf
    if filled == first:
        return term_at, term_end, df, cf, filled, NO_POSTINGS, df, cf
    if df != filled - first:
        return term_at, term_end, df, cf, filled, DF, df, filled - first
    return term_at, term_end, df, cf, filled, NOTHING if cf == total else CF, cf, total


@kernel()
def parse_lists(data: Any, most: Any, present: Any) -> Any:
    """The postings lists whose messages are whole, up to `most`.

    Marks in `present`, which is as long as there are documents, those that have any. Returns how many bytes they take; the
    terms' bytes and where each ends; df and cf of each; the docids and frequencies of all, end to end; and of the list after
    these what is wrong, its term, and two numbers.
    """
    size = np.int64(len(data))
    room = min(most, size // LIST + 1)
    blob, term_ends = np.empty(size, np.uint8), np.zeros(room + 1, np.int64)
    dfs, cfs = np.empty(room, np.int64), np.empty(room, np.int64)
    docs, tfs = np.empty(size // POSTING + 1, np.int32), np.empty(size // POSTING + 1, np.int32)
    used, count, filled, problem, one, other = np.int64(0), 0, np.int64(0), NOTHING, np.int64(0), np.int64(0)
    term_at, term_end = np.int64(0), np.int64(0)
    while count < room and problem == NOTHING:
        at, end = message_end(data, used, size)
        if end < 0:
            problem = NO_MESSAGE
            break
        if at < 0 or end > size:
            break
        parsed = _parse_list(data, at, end, present, docs, tfs, filled)
        term_at, term_end, dfs[count], cfs[count], ends, problem, one, other = parsed
        if problem == NOTHING:
            term_ends[count + 1] = _copied(data, term_at, term_end, blob, term_ends[count])
            count, used, filled, term_at, term_end = count + 1, end, ends, np.int64(0), np.int64(0)
    terms, bounds = blob[: term_ends[count]].copy(), term_ends[: count + 1].copy()
    wrong = problem, data[term_at:term_end], one, other
    return used, terms, bounds, dfs[:count], cfs[:count], docs[:filled], tfs[:filled], wrong


@inner()
def _parse_record(data: Any, at: Any, end: Any, expected: Any) -> Any:
    """One document: where its id begins and ends, its length; what is wrong, and a number."""
    id_at, id_end, doc, length = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while 0 <= at < end:
        tag, at = _varint(data, at, end)
        if at < 0:
            break
        if tag == 8:
            doc, at = _varint(data, at, end)
        elif tag == 18:
            id_at, id_end = _bytes(data, at, end)
            at = id_end
        elif tag == 24:
            length, at = _varint(data, at, end)
        else:
            at = _skipped(data, tag & 7, at, end) if tag >> 3 > 3 else np.int64(-1)
    if at != end:
        return id_at, id_at, length, NO_MESSAGE, doc
    if doc != expected:
        return id_at, id_end, length, DOCID, doc
    if id_end == id_at:
        return id_at, id_end, length, NO_ID, doc
    return id_at, id_end, length, NOTHING if 0 <= length <= MAX_INT32 else LENGTH, length


@kernel()
def parse_records(data: Any, most: Any, first: Any) -> Any:
    """The documents whose messages are whole, up to `most`, the first of which must have the docid `first`.

    Returns how many bytes they take; the ids' bytes and where each ends; the lengths; and, for the document after these, what
    is wrong and a number.
    """
    size = np.int64(len(data))
    room = min(most, size // RECORD + 1)
    blob, ends, lengths = np.empty(size, np.uint8), np.zeros(room + 1, np.int64), np.empty(room, np.int64)
    used, count, problem, one = np.int64(0), 0, NOTHING, np.int64(0)
    while count < room:
        at, end = message_end(data, used, size)
        if end < 0:
            problem = NO_MESSAGE
            break
        if at < 0 or end > size:
            break
        id_at, id_end, lengths[count], problem, one = _parse_record(data, at, end, first + count)
        if problem != NOTHING:
            break
        ends[count + 1] = _copied(data, id_at, id_end, blob, ends[count])
        count, used = count + 1, end
    return used, blob[: ends[count]].copy(), ends[: count + 1].copy(), lengths[:count], problem, one


@kernel()
def out_of_order(blob: Any, bounds: Any, utf16: Any) -> Any:
    """The number of the first string that is not after the one before it, by bytes or by units of UTF-16; -1 for none.

    The two differ in what is beyond U+FFFF: four bytes that begin with F0 or more, and in UTF-16 two units below E000.
    """
    for i in range(1, len(bounds) - 1):
        a, b = np.int64(bounds[i - 1]), np.int64(bounds[i])
        common, at = min(b - a, np.int64(bounds[i + 1]) - b), 0
        while at < common and blob[a + at] == blob[b + at]:
            at += 1
        if at == common:
            if b - a >= np.int64(bounds[i + 1]) - b:
                return i
            continue
        one, other = np.int64(blob[a + at]), np.int64(blob[b + at])
        if utf16 and one >= 0xEE and other >= 0xEE and (one >= 0xF0) != (other >= 0xF0):
            one, other = other, one
        if one > other:
            return i
    return -1


@inner()
def _size(value: Any) -> Any:
    """How many bytes a varint takes."""
    size = 1
    while value >= 128:
        value >>= 7
        size += 1
    return size


@inner()
def _put(out: Any, at: Any, value: Any) -> Any:
    """Writes a varint; returns the place after it."""
    while value >= 128:
        out[at] = value & 127 | 128
        at += 1
        value >>= 7
    out[at] = value
    return at + 1


@inner()
def _put_bytes(out: Any, at: Any, tag: Any, blob: Any, start: Any, end: Any) -> Any:
    """Writes a field of bytes; returns the place after it."""
    out[at] = tag
    return _copied(blob, start, end, out, _put(out, at + 1, end - start))


@kernel()
def write_lists(blob: Any, terms: Any, df: Any, cf: Any, docs: Any, tfs: Any) -> Any:
    """The messages of postings lists: `terms` is where the term of each begins in `blob`, one entry more."""
    out = np.empty(14 * len(docs) + (terms[-1] - terms[0]) + 40 * len(df), np.uint8)
    at, first = np.int64(0), np.int64(0)
    for i in range(len(df)):
        last, before = first + df[i], np.int64(0)
        length = terms[i + 1] - terms[i]
        size = 1 + _size(length) + length + 1 + _size(df[i]) + 1 + _size(cf[i])
        for j in range(first, last):
            gap = docs[j] - before
            size += 2 + (1 + _size(gap) if gap else 0) + 1 + _size(np.int64(tfs[j]))
            before = np.int64(docs[j])
        at = _put(out, at, size)
        at = _put_bytes(out, at, 10, blob, terms[i], terms[i + 1])
        out[at] = 16
        at = _put(out, at + 1, df[i])
        out[at] = 24
        at = _put(out, at + 1, cf[i])
        before = np.int64(0)
        for j in range(first, last):
            gap, tf = docs[j] - before, np.int64(tfs[j])
            before = np.int64(docs[j])
            out[at] = 34
            out[at + 1] = (1 + _size(gap) if gap else 0) + 1 + _size(tf)
            at += 2
            if gap:
                out[at] = 8
                at = _put(out, at + 1, gap)
            out[at] = 16
            at = _put(out, at + 1, tf)
        first = last
    return out[:at]


@kernel()
def write_records(blob: Any, ids: Any, first: Any, lengths: Any) -> Any:
    """The messages of documents, the first of which has the docid `first`: `ids` is where the id of each begins in `blob`."""
    out = np.empty((ids[-1] - ids[0]) + 40 * len(lengths), np.uint8)
    at = np.int64(0)
    for i in range(len(lengths)):
        doc, length, part = np.int64(first + i), np.int64(lengths[i]), ids[i + 1] - ids[i]
        size = (1 + _size(doc) if doc else 0) + 1 + _size(part) + part + (1 + _size(length) if length else 0)
        at = _put(out, at, size)
        if doc:
            out[at] = 8
            at = _put(out, at + 1, doc)
        at = _put_bytes(out, at, 18, blob, ids[i], ids[i + 1])
        if length:
            out[at] = 24
            at = _put(out, at + 1, length)
    return out[:at]


@kernel()
def gather(bounds: Any, docs: Any, tfs: Any, places: Any, cursor: Any, all_docs: Any, all_tfs: Any) -> None:
    """Postings in another order: those of the list places[i] to cursor[i], which is moved past them."""
    for i in range(len(places)):
        for at in range(bounds[places[i]], bounds[places[i] + 1]):
            all_docs[cursor[i]] = docs[at]
            all_tfs[cursor[i]] = tfs[at]
            cursor[i] += 1
