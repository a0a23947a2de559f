"""Compiled loops of the index: counting, inverting, and packing postings.

A posting is two variable-length integers of seven bits a byte, low bits first, the high bit set on all bytes but the last:
the distance from the previous document (for the first from -1) times two, plus one if the term occurs once; otherwise the
term frequency follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.strings import offsets_of
from ..storage.compiled import inner, kernel
from . import kernels, tables

Bytes = NDArray[np.uint8]

MAX_BYTES = 10  # of a posting


@kernel()
def count_terms(numbers: Any, bounds: Any, frequencies: Any, terms: Any, counts: Any) -> Any:
    """Count the distinct terms of each document.

    `numbers[bounds[i]:bounds[i+1]]` are the terms of document i. `frequencies` is scratch, one zero per term. Fills `terms` and
    `counts` (as long as `numbers`) and returns the start of each document's terms, and the end of the last, int64.
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
    """Pack postings; term i has those from bounds[i] to bounds[i+1]. Fills `byte_bounds` and `cf`; returns the length."""
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
    """Write a posting after one of the document `before`; return its end."""
    at = put_number(out, at, np.int64(doc - before) << 1 | (tf == 1))
    return put_number(out, at, np.int64(tf)) if tf > 1 else at


@inner(inline="always")
def put_number(out: Any, at: Any, value: Any) -> Any:
    """Write an integer of variable length; return its end."""
    while value >= 128:
        out[at] = value & 127 | 128
        at += 1
        value >>= 7
    out[at] = value
    return at + 1


@kernel()
def unpack_postings(postings: Any, starts: Any, ends: Any, df: Any, documents: int, docs: Any, tfs: Any) -> bool:
    """Unpack the postings of some terms into `docs` and `tfs`; those of term i are the bytes from starts[i] to ends[i].

    Returns False unless the bytes hold `df` postings, ascending, of an index with so many documents.
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
    """`unpack_postings` in numpy: a few times slower, for a process that has not compiled the loop."""
    buffer = np.concatenate([postings[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    edges = offsets_of(df)
    last = np.flatnonzero(buffer < 128)  # byte of each integer
    sizes = np.diff(last, prepend=-1)
    if not len(last) or last[-1] != len(buffer) - 1 or sizes.max() > MAX_BYTES // 2 + 1:
        return False
    values = np.zeros(len(last), dtype=np.int64)
    for byte in range(sizes.max()):
        longer = np.flatnonzero(sizes > byte)
        values[longer] |= (buffer[last[longer] - sizes[longer] + 1 + byte] & 127).astype(np.int64) << 7 * byte
    # A document follows an odd integer; then documents and frequencies alternate up to the next odd one.
    place = np.arange(len(values))
    odd = np.maximum.accumulate(np.where(values & 1, place, -1))
    since = place - np.concatenate([[-1], odd[:-1]])
    of_doc = np.flatnonzero(since & 1)
    if len(of_doc) != len(docs):
        return False
    several = np.flatnonzero(values[of_doc] & 1 == 0)
    frequencies = np.append(values, 0)[of_doc[several] + 1]
    gaps = values[of_doc] >> 1
    totals = offsets_of(gaps)
    ordinals = totals[1:] - np.repeat(totals[edges[:-1]], df) - 1
    byte_of = np.concatenate([last[of_doc] - sizes[of_doc] + 1, [len(buffer)]])  # start of each posting
    fits = np.array_equal(byte_of[edges[1:]], np.cumsum(ends - starts)) and gaps.min() > 0 and ordinals.max() < documents
    if not fits or np.any((frequencies < 1) | (frequencies > 0x7FFFFFFF)):
        return False
    docs[:], tfs[:] = ordinals, 1
    tfs[several] = frequencies
    return True


@inner()
def _varint(postings: Any, at: Any, end: Any) -> Any:
    """Return the integer at `at` and its end; -1 if the bytes end too early or the number is too large."""
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
    """Append the postings of one segment, without deleted documents, to those of earlier segments.

    `numbers[i]` is the segment's number of term i (-1: none), `df` is the segment's; `docs` and `tfs` are the concatenated
    postings of its terms; `ordinals` the new number of each of its documents, -1 for a deleted one. The next posting of term i
    goes to `cursor[i]`. Returns False if the space is exhausted.
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
    """Copy the indexed text of packed documents: title and text, joined by a space, or one of them."""
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
def take_fields(text: Any, sizes: Any, wanted_fields: Any, out: Any, bounds: Any) -> None:
    """Copy the fields of packed documents (title, text, metadata) that are `taken`, each by itself."""
    at, filled, count = np.int64(0), np.int64(0), 0
    for i in range(len(sizes)):
        for field in range(sizes.shape[1]):
            size = np.int64(sizes[i, field])
            if wanted_fields[field]:
                for place in range(size):
                    out[filled + place] = text[at + place]
                filled += size
                count += 1
                bounds[count] = filled
            at += size


@kernel()
def invert(first: int, terms: Any, counts: Any, bounds: Any, cursor: Any, docs: Any, tfs: Any) -> None:
    """Turn the terms of each document into the documents of each term.

    Document i has the number first + i. The next posting of term t goes to `cursor[t]`, which is advanced. Postings are in
    ascending order of documents.
    """
    for i in range(len(bounds) - 1):
        for at in range(bounds[i], bounds[i + 1]):
            place = cursor[terms[at]]
            docs[place] = first + i
            tfs[place] = counts[at]
            cursor[terms[at]] = place + 1


@kernel()
def lower_bound(terms: Any, term_ends: Any, counts: Any, split: Any, edges: Any) -> None:
    """Find, for each run, whose terms are those from counts[r] to counts[r+1], the first that is not before `split`."""
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
    """Merge the terms from at[r] to last[r] of all runs, ascending, with all their postings, packed, in `out`.

    Fills `text` with the bytes of the terms, and `counts` with each term's bytes, df, cf and bytes of postings. Fills `blocks`,
    if it has space, with the run and size of each block of postings that come from one run. Returns the number of terms, and
    the filled lengths of `text` and `out`. Advances `at`.
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
            least, limit = 0, np.int64(1) << 40  # the run with the first next document, and the next document of the others
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
    """Return the first bytes of a term as a number that sorts as the term."""
    head = np.uint64(0)
    if at < last:
        start = _start(term_ends, at)
        for i in range(HEAD):
            byte = terms[start + i] if start + i < term_ends[at] else np.uint8(0)
            head = head << np.uint64(8) | np.uint64(byte)
    return head
