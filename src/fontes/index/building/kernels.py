"""The compiled loops of a build: what is indexed of documents, inverting, and merging runs by terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...storage.compiled import inner, kernel
from .. import kernels, tables

HEAD = 8  # bytes of a term that are compared as one number


@kernel()
def join_fields(text: Any, sizes: Any, title: bool, body: bool, out: Any, bounds: Any) -> None:
    """What is indexed of packed documents: title and text, with a space between them, or one of them."""
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
    terms: Any, term_ends: Any, ends: Any, docs: Any, tfs: Any, at: Any, last: Any, text: Any, counts: Any, out: Any
) -> Any:
    """The terms from at[r] to last[r] of all runs, each once, ascending, with the postings of all, packed, in `out`.

    `text` takes the bytes of the terms, `counts` of each its bytes, df, cf and the bytes of its postings. Returns how many
    terms there are, and how much of `text` and `out` is filled. Moves `at`.
    """
    runs = len(at)
    heads = np.zeros(runs, dtype=np.uint64)
    for run in range(runs):
        heads[run] = _head(terms, term_ends, at[run], last[run])
    same = np.empty(runs, dtype=np.int64)  # the runs that have the term
    place, stop = np.empty(runs, dtype=np.int64), np.empty(runs, dtype=np.int64)
    filled, used, length = 0, 0, 0
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
            place[least] = posting
            if posting == final:
                tied -= 1
                place[least], stop[least] = place[tied], stop[tied]
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
