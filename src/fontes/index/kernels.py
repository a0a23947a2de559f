"""The compiled loops of the index: counting, inverting, and postings to bytes and back.

A posting is two variable-length integers of seven bits a byte, low bits first, the high bit set on all bytes but the last:
the distance from the document before it (the first one's from -1) times two, plus one if the term occurs once; otherwise the
term frequency follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.compiled import inner, kernel
from . import kernels, tables

Bytes = NDArray[np.uint8]

MOST_BYTES = 10  # of a posting


@kernel()
def count_terms(numbers: Any, bounds: Any, frequencies: Any, terms: Any, counts: Any) -> Any:
    """The distinct terms of each document and how often they occur.

    `numbers[bounds[i]:bounds[i+1]]` are the terms of document i. `frequencies` is scratch, one zero a term. Fills `terms`
    and `counts` (as long as `numbers`) and returns where those of each document start, int64, one entry more.
    """
    term_bounds = np.zeros(len(bounds), dtype=np.int64)
    filled = 0
    for i in range(len(bounds) - 1):
        first = filled
        for at in range(bounds[i], bounds[i + 1]):
            number = numbers[at]
            if frequencies[number] == 0:
                terms[filled] = number
                filled += 1
            frequencies[number] += 1
        for at in range(first, filled):
            counts[at] = frequencies[terms[at]]
            frequencies[terms[at]] = 0
        term_bounds[i + 1] = filled
    return term_bounds


@kernel()
def pack_postings(bounds: Any, docs: Any, tfs: Any, out: Any, byte_bounds: Any, cf: Any) -> int:
    """Postings to bytes: term i has those from bounds[i] to bounds[i+1]. Fills `byte_bounds` and `cf`; returns the length."""
    at = 0
    for i in range(len(bounds) - 1):
        before = -1
        total = 0
        for posting in range(bounds[i], bounds[i + 1]):
            at = put_posting(out, at, before, docs[posting], tfs[posting])
            before = docs[posting]
            total += tfs[posting]
        byte_bounds[i + 1] = at
        cf[i] = total
    return at


@inner(inline="always")
def put_posting(out: Any, at: Any, before: Any, doc: Any, tf: Any) -> Any:
    """Write a posting that follows one of the document `before`; return where it ends."""
    value = np.int64(doc - before) << 1 | (tf == 1)
    while value >= 128:
        out[at] = value & 127 | 128
        at += 1
        value >>= 7
    out[at] = value
    at += 1
    if tf > 1:
        value = np.int64(tf)
        while value >= 128:
            out[at] = value & 127 | 128
            at += 1
            value >>= 7
        out[at] = value
        at += 1
    return at


@kernel()
def unpack_postings(postings: Any, starts: Any, ends: Any, df: Any, documents: int, docs: Any, tfs: Any) -> bool:
    """The postings of some terms, end to end, into `docs` and `tfs`: those of term i are the bytes from starts[i] to ends[i].

    False if the bytes do not hold as many as `df` says, in ascending order, of an index of so many documents.
    """
    filled = 0
    for i in range(len(df)):
        at, end, doc = starts[i], ends[i], np.int64(-1)
        for _ in range(df[i]):
            if 0 <= at < end and postings[at] < 128:  # most are of one byte: twice as fast as a call
                value, at = np.int64(postings[at]), at + 1
            else:
                value, at = _varint(postings, at, end)
            doc += value >> 1
            tf = np.int64(1)
            if not value & 1:
                if 0 <= at < end and postings[at] < 128:
                    tf, at = np.int64(postings[at]), at + 1
                else:
                    tf, at = _varint(postings, at, end)
            if at < 0 or value < 2 or doc >= documents or not 1 <= tf <= 0x7FFFFFFF:
                return False
            docs[filled], tfs[filled] = doc, tf
            filled += 1
        if at != end:
            return False
    return True


def unpack_plainly(postings: Bytes, starts: Any, ends: Any, df: Any, documents: int, docs: Any, tfs: Any) -> bool:
    """`unpack_postings` in numpy: a few times slower, for a process that has not compiled it."""
    buffer = np.concatenate([postings[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    edges = np.concatenate([[0], np.cumsum(df)])
    last = np.flatnonzero(buffer < 128)  # byte of each integer
    sizes = np.diff(last, prepend=-1)
    if not len(last) or last[-1] != len(buffer) - 1 or sizes.max() > MOST_BYTES // 2 + 1:
        return False
    values = np.zeros(len(last), dtype=np.int64)
    for byte in range(sizes.max()):
        longer = np.flatnonzero(sizes > byte)
        values[longer] |= (buffer[last[longer] - sizes[longer] + 1 + byte] & 127).astype(np.int64) << 7 * byte
    # After an odd integer comes a document; from there on documents and frequencies take turns up to the next odd one.
    place = np.arange(len(values))
    odd = np.maximum.accumulate(np.where(values & 1, place, -1))
    since = place - np.concatenate([[-1], odd[:-1]])
    of_doc = np.flatnonzero(since & 1)
    if len(of_doc) != len(docs):
        return False
    several = np.flatnonzero(values[of_doc] & 1 == 0)
    frequencies = np.append(values, 0)[of_doc[several] + 1]
    gaps = values[of_doc] >> 1
    totals = np.concatenate([[0], np.cumsum(gaps)])
    ordinals = totals[1:] - np.repeat(totals[edges[:-1]], df) - 1
    byte_of = np.concatenate([last[of_doc] - sizes[of_doc] + 1, [len(buffer)]])  # where each posting begins
    fits = np.array_equal(byte_of[edges[1:]], np.cumsum(ends - starts)) and gaps.min() > 0 and ordinals.max() < documents
    if not fits or np.any((frequencies < 1) | (frequencies > 0x7FFFFFFF)):
        return False
    docs[:], tfs[:] = ordinals, 1
    tfs[several] = frequencies
    return True


@inner()
def _varint(postings: Any, at: Any, end: Any) -> Any:
    """The integer at `at` and the place after it, which is -1 where the bytes end too early or make too large a number."""
    value, shift = np.int64(0), 0
    while 0 <= at < end and shift <= 35:
        value |= np.int64(postings[at] & 127) << shift
        if postings[at] < 128:
            return value, at + 1
        shift += 7
        at += 1
    return value, -1


@kernel(steps=lambda *args: 2 * len(args[-1]))
def append_postings(
    numbers: Any, df: Any, docs: Any, tfs: Any, ordinals: Any, cursor: Any, all_docs: Any, all_tfs: Any
) -> bool:
    """Append the postings of one segment to those of the segments before it, without those of deleted documents.

    `numbers[i]` is the segment's number of term i (-1: none), `df` are the segment's; `docs` and `tfs` the postings of the
    terms that it has, end to end; `ordinals` the new number of each of its documents, -1 for a deleted one. `cursor[i]` is
    where the next posting of term i goes. False if there is no room left for one.
    """
    at = 0
    for i in range(len(numbers)):
        if numbers[i] < 0:
            continue
        for _ in range(df[numbers[i]]):
            ordinal = ordinals[docs[at]]
            if ordinal >= 0:
                if cursor[i] >= len(all_docs):
                    return False
                all_docs[cursor[i]] = ordinal
                all_tfs[cursor[i]] = tfs[at]
                cursor[i] += 1
            at += 1
    return True


HEAD = 8  # bytes of a term that are compared as one number


@kernel()
def join_fields(text: Any, sizes: Any, title: bool, body: bool, out: Any, bounds: Any) -> None:
    """Indexed text of packed documents: title and text, joined by a space, or one of them."""
    at, filled = 0, 0
    for i in range(len(sizes)):
        middle = at + sizes[i, 0]
        end = middle + sizes[i, 1]
        if title:
            for place in range(middle - at):
                out[filled + place] = text[at + place]
            filled += middle - at
            if body and middle > at:
                out[filled] = 32
                filled += 1
        if body:
            for place in range(end - middle):
                out[filled + place] = text[middle + place]
            filled += end - middle
        at = end + sizes[i, 2]
        bounds[i + 1] = filled


@kernel()
def take_fields(text: Any, sizes: Any, taken: Any, out: Any, bounds: Any) -> None:
    """Fields of packed documents, each by itself: of title, text and metadata those that are `taken`."""
    at, filled, count = np.int64(0), np.int64(0), 0
    for i in range(len(sizes)):
        for field in range(sizes.shape[1]):
            size = np.int64(sizes[i, field])
            if taken[field]:
                for place in range(size):
                    out[filled + place] = text[at + place]
                filled += size
                count += 1
                bounds[count] = filled
            at += size


@kernel()
def invert(first: int, terms: Any, counts: Any, bounds: Any, cursor: Any, docs: Any, tfs: Any) -> None:
    """From the terms of each document to the documents of each term.

    Document i has the number first + i. `cursor[t]` is where the next posting of term t goes; it is moved past it.
    Postings come out in ascending order of documents.
    """
    for i in range(len(bounds) - 1):
        for at in range(bounds[i], bounds[i + 1]):
            place = cursor[terms[at]]
            docs[place] = first + i
            tfs[place] = counts[at]
            cursor[terms[at]] = place + 1


@kernel()
def lower_bound(terms: Any, term_ends: Any, counts: Any, split: Any, edges: Any) -> None:
    """For each run, whose terms are those from counts[r] to counts[r+1], the first that is not before `split`."""
    for run in range(len(edges)):
        low, high = counts[run], counts[run + 1]
        while low < high:
            middle = (low + high) // 2
            start = term_ends[middle - 1] if middle else 0
            if tables.compared(terms, start, term_ends[middle], split, 0, len(split)) < 0:
                low = middle + 1
            else:
                high = middle
        edges[run] = low


@kernel()
def merge_runs(
    terms: Any,
    term_ends: Any,
    ends: Any,
    docs: Any,
    tfs: Any,
    at: Any,
    last: Any,
    text: Any,
    counts: Any,
    out: Any,
    blocks: Any,
) -> Any:
    """The terms from at[r] to last[r] of all runs, each once, ascending, with the postings of all, packed, in `out`.

    `text` takes the bytes of the terms, `counts` of each its bytes, df, cf and the bytes of its postings. Of each block of
    postings that come from one run after another, `blocks` takes the run and their number, unless it has no room. Returns how
    many terms there are, and how much of `text` and `out` is filled. Moves `at`.
    """
    runs = len(at)
    heads = np.zeros(runs, dtype=np.uint64)
    for run in range(runs):
        heads[run] = _head(terms, term_ends, at[run], last[run])
    same = np.empty(runs, dtype=np.int64)  # the runs that have the term
    place, stop = np.empty(runs, dtype=np.int64), np.empty(runs, dtype=np.int64)
    filled, used, length, block = 0, 0, 0, 0
    while True:
        tied = 0
        for run in range(runs):
            if at[run] >= last[run]:
                continue
            side = -1
            if tied:
                best = same[0]
                if heads[run] != heads[best]:
                    side = -1 if heads[run] < heads[best] else 1
                else:
                    start, other = _start(term_ends, at[run]), _start(term_ends, at[best])
                    side = tables.compared(terms, start, term_ends[at[run]], terms, other, term_ends[at[best]])
            if side < 0:
                tied = 0
            if side <= 0:
                same[tied] = run
                tied += 1
        if tied == 0:
            return filled, used, length
        start, end = _start(term_ends, at[same[0]]), term_ends[at[same[0]]]
        for i in range(end - start):
            text[used + i] = terms[start + i]
        used += end - start
        df, cf, before, begun = 0, 0, np.int64(-1), length
        for i in range(tied):
            run = same[i]
            place[i], stop[i] = _start(ends, at[run]), ends[at[run]]
            df += stop[i] - place[i]
            at[run] += 1
            heads[run] = _head(terms, term_ends, at[run], last[run])
        while tied:
            least, limit = 0, np.int64(1) << 40  # the run whose next document comes first, and that of the next run
            for i in range(1, tied):
                if docs[place[i]] < docs[place[least]]:
                    limit = np.int64(docs[place[least]])
                    least = i
                elif docs[place[i]] < limit:
                    limit = np.int64(docs[place[i]])
            posting, final = place[least], stop[least]
            while posting < final and docs[posting] < limit:
                length = kernels.put_posting(out, length, before, docs[posting], tfs[posting])
                before = np.int64(docs[posting])
                cf += tfs[posting]
                posting += 1
            if blocks.shape[1]:
                blocks[0, block], blocks[1, block] = same[least], posting - place[least]
                block += 1
            place[least] = posting
            if posting == final:
                tied -= 1
                place[least], stop[least], same[least] = place[tied], stop[tied], same[tied]
        counts[0, filled], counts[1, filled], counts[2, filled], counts[3, filled] = end - start, df, cf, length - begun
        filled += 1


@inner(inline="always")
def _start(ends: Any, at: Any) -> Any:
    return ends[at - 1] if at > 0 else np.int64(0)


@inner()
def _head(terms: Any, term_ends: Any, at: int, last: int) -> Any:
    """The first bytes of a term as a number, so that terms are in order where these are."""
    head = np.uint64(0)
    if at < last:
        start = _start(term_ends, at)
        for i in range(HEAD):
            byte = terms[start + i] if start + i < term_ends[at] else np.uint8(0)
            head = head << np.uint64(8) | np.uint64(byte)
    return head
