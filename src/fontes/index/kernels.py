"""Compiled loops of the index: counting and inverting postings, and reading those of older indexes.

A posting of an older index is one or two variable-length integers of seven bits per byte, low bits first, with the high bit set
on all bytes but the last. The first integer is the distance from the previous document (from -1 for the first) times two, plus
one if the term occurs once; otherwise the term frequency follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.strings import offsets_of
from ..storage.compiled import inner, kernel
from . import tables

if TYPE_CHECKING:
    from ..core.arrays import Bools, Bytes, Int, Int32s, Int64s, UInt32s

MAX_BYTES = 10  # of a posting of an older index


@kernel()
def count_terms(numbers: Int32s, bounds: Int64s, frequencies: Int32s, terms: Int32s, counts: Int32s) -> Int64s:
    """Count the distinct terms of each document.

    `numbers[bounds[i]:bounds[i+1]]` are the terms of document i. `frequencies` is scratch, one zero per term. Fills `terms` and
    `counts` (as long as `numbers`) and returns the start of each document's terms, and the end of the last, int64.
    """
    term_bounds = np.zeros(len(bounds), dtype=np.int64)
    filled = 0
    for i in range(len(bounds) - 1):
        first = filled
        for token in range(bounds[i], bounds[i + 1]):
            number = numbers[token]
            if frequencies[number] == 0:
                terms[filled] = number
                filled += 1
            frequencies[number] += 1
        for posting in range(first, filled):
            counts[posting] = frequencies[terms[posting]]
            frequencies[terms[posting]] = 0
        term_bounds[i + 1] = filled
    return term_bounds


@inner(inline="always")
def put_number(out: Bytes, at: Int, value: np.int64) -> Any:
    """Write a variable-length integer; return the offset after it."""
    while value >= 128:
        out[at] = value & 127 | 128
        at += 1
        value >>= 7
    out[at] = value
    return at + 1


@kernel()
def unpack_postings(
    postings: Bytes, starts: Int64s, ends: Int64s, df: Int64s, documents: int, docs: Int32s, tfs: Int32s
) -> bool:
    """Unpack the postings of some terms into `docs` and `tfs`; term i has the bytes from starts[i] to ends[i].

    Returns False unless the bytes hold `df` ascending postings of each term, with ordinals below `documents`.
    """
    filled = 0
    for i in range(len(df)):
        at, end, doc = starts[i], ends[i], np.int64(-1)
        for _ in range(df[i]):
            if 0 <= at < end and postings[at] < 128:  # most integers have one byte: twice as fast as a call
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


def unpack_in_numpy(
    postings: Bytes, starts: Int64s, ends: Int64s, df: Int64s, documents: int, docs: Int32s, tfs: Int32s
) -> bool:
    """`unpack_postings` in numpy: a few times slower, for a process that has not compiled the loop."""
    buffer = np.concatenate([postings[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    term_edges = offsets_of(df)
    last_bytes = np.flatnonzero(buffer < 128)  # of the integers
    sizes = np.diff(last_bytes, prepend=-1)
    if not len(last_bytes) or last_bytes[-1] != len(buffer) - 1 or sizes.max() > MAX_BYTES // 2 + 1:
        return False
    values = np.zeros(len(last_bytes), dtype=np.int64)
    for byte in range(sizes.max()):
        longer = np.flatnonzero(sizes > byte)
        values[longer] |= (buffer[last_bytes[longer] - sizes[longer] + 1 + byte] & 127).astype(np.int64) << 7 * byte
    # After an odd integer, which has no frequency, documents and frequencies alternate up to the next odd one.
    position = np.arange(len(values))
    last_odd = np.maximum.accumulate(np.where(values & 1, position, -1))
    distance = position - np.concatenate([[-1], last_odd[:-1]])
    doc_values = np.flatnonzero(distance & 1)
    if len(doc_values) != len(docs):
        return False
    frequent = np.flatnonzero(values[doc_values] & 1 == 0)
    frequencies = np.append(values, 0)[doc_values[frequent] + 1]
    gaps = values[doc_values] >> 1
    totals = offsets_of(gaps)
    ordinals = totals[1:] - np.repeat(totals[term_edges[:-1]], df) - 1
    posting_starts = np.concatenate([last_bytes[doc_values] - sizes[doc_values] + 1, [len(buffer)]])
    fits = (
        np.array_equal(posting_starts[term_edges[1:]], np.cumsum(ends - starts))
        and gaps.min() > 0
        and ordinals.max() < documents
    )
    if not fits or np.any((frequencies < 1) | (frequencies > 0x7FFFFFFF)):
        return False
    docs[:], tfs[:] = ordinals, 1
    tfs[frequent] = frequencies
    return True


@inner()
def _varint(postings: Bytes, at: np.int64, end: np.int64) -> Any:
    """Return the integer at `at`, and the offset after it: -1 if the bytes end too early or the number is too large."""
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
    numbers: Int32s, df: Int64s, docs: Int32s, tfs: Int32s, ordinals: Int32s, cursor: Int64s, all_docs: Int32s, all_tfs: Int32s
) -> bool:
    """Append the postings of one segment, without deleted documents, to those of earlier segments.

    `numbers[i]` is the segment's number of term i (-1: none), and `df` the segment's document frequencies. `docs` and `tfs` are
    the concatenated postings of its terms, `ordinals` is the new number of each of its documents, -1 for a deleted one. The
    next posting of term i goes to `cursor[i]`. Returns False if the space is exhausted.
    """
    posting = 0
    for i in range(len(numbers)):
        if numbers[i] < 0:
            continue
        at = cursor[i]
        for _ in range(df[numbers[i]]):
            ordinal = ordinals[docs[posting]]
            if ordinal >= 0:
                if at >= len(all_docs):
                    return False
                all_docs[at], all_tfs[at] = ordinal, tfs[posting]
                at += 1
            posting += 1
        cursor[i] = at
    return True


HEAD = 8  # leading bytes of a term that are compared as one number


@kernel()
def join_fields(text: Bytes, sizes: UInt32s, title: bool, body: bool, out: Bytes, bounds: Int64s) -> None:
    """Copy the indexed text of packed documents: title and text joined by a space, or one of the two."""
    at, filled = 0, 0
    for i in range(len(sizes)):
        middle = at + sizes[i, 0]
        end = middle + sizes[i, 1]
        if title:
            for j in range(middle - at):
                out[filled + j] = text[at + j]
            filled += middle - at
            if body and middle > at:
                out[filled] = 32
                filled += 1
        if body:
            for j in range(end - middle):
                out[filled + j] = text[middle + j]
            filled += end - middle
        at = end + sizes[i, 2]
        bounds[i + 1] = filled


@kernel()
def take_fields(text: Bytes, sizes: UInt32s, included: Bools, out: Bytes, bounds: Int64s) -> None:
    """Copy the `included` fields (bool, for title, text and metadata) of packed documents, each by itself."""
    at, filled, count = np.int64(0), np.int64(0), 0
    for i in range(len(sizes)):
        for field in range(sizes.shape[1]):
            size = np.int64(sizes[i, field])
            if included[field]:
                for j in range(size):
                    out[filled + j] = text[at + j]
                filled += size
                count += 1
                bounds[count] = filled
            at += size


@kernel()
def invert(first: int, terms: Int32s, counts: Int32s, bounds: Int64s, cursor: Int64s, docs: Int32s, tfs: Int32s) -> None:
    """Turn the terms of each document into the documents of each term.

    Document i has the number first + i. The next posting of term t goes to `cursor[t]`, which is advanced. Postings are in
    ascending order of documents.
    """
    for i in range(len(bounds) - 1):
        for posting in range(bounds[i], bounds[i + 1]):
            slot = cursor[terms[posting]]
            docs[slot] = first + i
            tfs[slot] = counts[posting]
            cursor[terms[posting]] = slot + 1


@kernel()
def lower_bound(terms: Bytes, term_ends: Int64s, counts: Int64s, split: Bytes, firsts: Int64s) -> None:
    """Find the first term of each run that is not before `split`; run r has the terms from counts[r] to counts[r+1]."""
    for run in range(len(firsts)):
        low, high = counts[run], counts[run + 1]
        while low < high:
            middle = (low + high) // 2
            start = term_ends[middle - 1] if middle else 0
            if tables.compare_bytes(terms, start, term_ends[middle], split, 0, len(split)) < 0:
                low = middle + 1
            else:
                high = middle
        firsts[run] = low


@kernel()
def merge_runs(
    terms: Bytes, term_ends: Int64s, ends: Int64s, docs: Int32s, tfs: Int32s, first: Int64s, last: Int64s, text: Bytes,
    counts: Int64s, all_docs: Int32s, all_tfs: Int32s, blocks: Int32s,
) -> Any:  # fmt: skip
    """Merge the terms from first[r] to last[r] of all runs, in ascending order, and their postings.

    Fills `text` with the bytes of the terms, `counts` with each term's bytes, df and cf, and `all_docs` and `all_tfs`. Fills
    `blocks`, if it has space, with the run and size of each block of postings that come from one run. Returns the number of
    terms, and the filled length of `text`. Advances `first`.
    """
    runs = len(first)
    heads = np.zeros(runs, dtype=np.uint64)
    for run in range(runs):
        heads[run] = _head(terms, term_ends, first[run], last[run])
    tied_runs = np.empty(runs, dtype=np.int64)  # those that have the next term
    cursor, stop = np.empty(runs, dtype=np.int64), np.empty(runs, dtype=np.int64)
    filled, used, at, block = 0, 0, 0, 0
    while True:
        tied = 0
        for run in range(runs):
            if first[run] >= last[run]:
                continue
            side = -1
            if tied:
                best = tied_runs[0]
                if heads[run] != heads[best]:
                    side = -1 if heads[run] < heads[best] else 1
                else:
                    start, best_start = _start(term_ends, first[run]), _start(term_ends, first[best])
                    side = tables.compare_bytes(terms, start, term_ends[first[run]], terms, best_start, term_ends[first[best]])
            if side < 0:
                tied = 0
            if side <= 0:
                tied_runs[tied] = run
                tied += 1
        if tied == 0:
            return filled, used
        start, end = _start(term_ends, first[tied_runs[0]]), term_ends[first[tied_runs[0]]]
        for i in range(end - start):
            text[used + i] = terms[start + i]
        used += end - start
        df, cf = 0, 0
        for i in range(tied):
            run = tied_runs[i]
            cursor[i], stop[i] = _start(ends, first[run]), ends[first[run]]
            df += stop[i] - cursor[i]
            first[run] += 1
            heads[run] = _head(terms, term_ends, first[run], last[run])
        while tied:
            leader, limit = 0, np.int64(1) << 40  # the run with the first next document, and the next document of the others
            for i in range(1, tied):
                if docs[cursor[i]] < docs[cursor[leader]]:
                    limit = np.int64(docs[cursor[leader]])
                    leader = i
                elif docs[cursor[i]] < limit:
                    limit = np.int64(docs[cursor[i]])
            posting, end_of_run = cursor[leader], stop[leader]
            while posting < end_of_run and docs[posting] < limit:
                all_docs[at], all_tfs[at] = docs[posting], tfs[posting]
                cf += tfs[posting]
                posting += 1
                at += 1
            if blocks.shape[1]:
                blocks[0, block], blocks[1, block] = tied_runs[leader], posting - cursor[leader]
                block += 1
            cursor[leader] = posting
            if posting == end_of_run:
                tied -= 1
                cursor[leader], stop[leader], tied_runs[leader] = cursor[tied], stop[tied], tied_runs[tied]
        counts[0, filled], counts[1, filled], counts[2, filled] = end - start, df, cf
        filled += 1


@inner(inline="always")
def _start(ends: Int64s, i: Int) -> Any:
    return ends[i - 1] if i > 0 else np.int64(0)


@inner()
def _head(terms: Bytes, term_ends: Int64s, term: int, last: int) -> np.uint64:
    """Return the first bytes of a run's next term as a number that sorts like the term; 0 at the end of the run."""
    head = np.uint64(0)
    if term < last:
        start = _start(term_ends, term)
        for i in range(HEAD):
            byte = terms[start + i] if start + i < term_ends[term] else np.uint8(0)
            head = head << np.uint64(8) | np.uint64(byte)
    return head
