"""Compiled loops over packed lists: their intersection with documents, and the weights of single postings.

`lists` is that of `kernel.search_bag`; `row_of` and `starts` are those of `packed.PackedLists`. Import this module only
when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..index.packed_kernels import POSITION_BITS, WINDOW, code_at
from ..storage.compiled import compiled
from .kernel import FIFTEEN, FOUR

if TYPE_CHECKING:
    from ..core.arrays import Float64s, Int32s, Int64s, Ints, UInt32s
    from ..index.packed_kernels import Lists

CHUNK_DOCUMENTS = 512  # documents of the shortest list looked up at a time
GROUP_SIZE = np.uint64(8)  # postings compared at a time
TABLE_POSTINGS = np.uint64(8)  # postings of a window for each document sought in it, up to which a table of positions is made
POSITION_MASK = np.uint16(0x10000 - (1 << POSITION_BITS))  # bits of the position in a window
WINDOW_SIZE = np.uint64(WINDOW)


@compiled()
def read(lists: Lists, row_of: Int32s, starts: UInt32s, term: int, first: Any, last: Any, docs: Int32s) -> None:
    """Write the documents of the postings from `first` to `last` (excluded) of a list."""
    _, offsets, words, _, places, _, widths, _, _, _ = lists
    row, shift = row_of[term], offsets[term] + first
    if row < 0:
        for i in range(last - first):
            docs[i] = words[shift + i] >> widths[0]
        return
    window, i = np.searchsorted(starts[row], first, side="right") - 1, 0
    while i < last - first:
        end = min(last, np.int64(starts[row, window + 1])) - first
        while i < end:
            docs[i] = window * WINDOW + np.int64(places[shift + i] >> POSITION_BITS)
            i += 1
        window += 1


@compiled()
def meet(
    lists: Lists, row_of: Int32s, starts: UInt32s, term: int, docs: Int32s, cursor: int, of_docs: Int64s, of_list: Int64s
) -> tuple[np.int64, np.int64]:
    """Find which of some documents a list has.

    Args:
        lists: The lists.
        row_of: Row of each term.
        starts: Starts of windows.
        term: The term of the list.
        docs: The documents, ascending.
        cursor: First posting of the list to look at; earlier postings have earlier documents.
        of_docs: Output: indices in `docs` of the documents in the list, with room for one more.
        of_list: Output: their postings, counted from the first of the list, with room for one more.

    Returns:
        The number of documents in the list, and the posting reached.
    """
    bounds, offsets, words, _, places, _, widths, _, _, _ = lists
    row, begin, size = row_of[term], np.uint64(offsets[term]), np.uint64(0)
    j, bits = begin + np.uint64(cursor), np.uint32(widths[0])
    if row < 0:
        end = begin + np.uint64(bounds[term + 1] - bounds[term])
        for i in range(len(docs)):
            word = np.uint32(docs[i]) << bits
            j = _reach(words, j, end, word)
            if j == end:
                break
            of_docs[size], of_list[size] = i, j - begin
            size += np.uint64(words[j] >> bits == word >> bits)
        return np.int64(size), np.int64(j - begin)
    one, first, count = np.uint64(1), np.uint64(0), np.uint64(len(docs))
    index_of = np.empty(WINDOW, dtype=np.uint16)  # of the posting at each position of a window, where one is
    while first < count:
        window = np.uint64(docs[first]) // WINDOW_SIZE
        base, after = window * WINDOW_SIZE, first + one
        while after < count and np.uint64(docs[after]) < base + WINDOW_SIZE:
            after += one
        j, end = max(j, begin + np.uint64(starts[row, window])), begin + np.uint64(starts[row, window + one])
        postings = end - j if end > j else np.uint64(0)
        if postings > TABLE_POSTINGS * (after - first):
            for doc in range(first, after):
                target = np.uint16((np.uint64(docs[doc]) - base) << FOUR)
                j = _reach(places, j, end, target)
                if j < end:
                    of_docs[size], of_list[size] = doc, j - begin
                    size += np.uint64(places[j] & POSITION_MASK == target)
        elif postings:
            for posting in range(postings):
                index_of[places[j + posting] >> FOUR] = posting
            for doc in range(first, after):
                position = np.uint64(docs[doc]) - base
                nearest = min(np.uint64(index_of[position]), postings - one)  # without a posting, any number
                of_docs[size], of_list[size] = doc, j + nearest - begin
                size += np.uint64(np.uint64(places[j + nearest] >> FOUR) == position)
            j = end if after < count else _reach(places, j, end, np.uint16(position << FOUR))
        first = after
    return np.int64(size), np.int64(j - begin)


@compiled(inline="always")
def _reach(words: Ints, at: np.uint64, end: np.uint64, word: np.unsignedinteger) -> np.uint64:
    """Return the first index from `at` on with a word of at least `word`, or `end`; see `conjunctions.shared_of`."""
    one, block, last = np.uint64(1), GROUP_SIZE, GROUP_SIZE - np.uint64(1)
    full = end - last if end >= at + block else np.uint64(0)  # full blocks begin before this index
    if at < full and words[at + last] < word:
        step = block
        while at + step < full and words[at + step + last] < word:
            at += step
            step += step
        while step >= block:
            if at + step < full and words[at + step + last] < word:
                at += step
            step >>= one
        at += block
    if at < full:
        smaller = np.uint64(0)
        for k in range(block):
            smaller += np.uint64(words[at + k] < word)
        return at + smaller
    while at < end and words[at] < word:
        at += one
    return at


@compiled()
def add_weights(
    lists: Lists, row: np.int32, term: int, query_weight: float, idf: float, docs: Int32s, postings: Int64s, sums: Float64s
) -> None:
    """Add the weights of postings of a term to the sums of their documents.

    Args:
        lists: The lists.
        row: Row of the term.
        term: The term.
        query_weight: Query weight of the term.
        idf: Idf of the term; 1 if postings have weights.
        docs: The documents.
        postings: Posting of each document, counted from the first of the list.
        sums: float64; sum of each document, to which weights are added.
    """
    bounds, _, _, _, _, _, _, weights, saturation, rest = lists
    if len(saturation) == 0:
        for i in range(len(docs)):
            sums[i] += query_weight * weights[bounds[term] + postings[i]]
        return
    offset, is_narrow = lists[1][term], row >= 0 and lists[6][2] == 1
    for i in range(len(docs)):
        if is_narrow:
            code = (
                np.int64(lists[4][offset + postings[i]] & FIFTEEN) | np.int64(lists[5][offset + postings[i]]) << POSITION_BITS
            )
        else:
            code = code_at(lists, row, term, postings[i])
        value = saturation[code]
        if code == 0:
            of_rest = rest[1][rest[0][term] : rest[0][term + 1]]
            value = rest[2][rest[0][term] + np.searchsorted(of_rest, docs[i])]
        sums[i] += query_weight * np.float32(idf * value)


@compiled()
def order_by_length(terms: Int64s, bounds: Int64s) -> Int64s:
    """Return the indices of terms, the shortest list first."""
    order = np.empty(len(terms), dtype=np.int64)
    for i in range(len(terms)):
        size, slot = bounds[terms[i] + 1] - bounds[terms[i]], i
        while slot > 0 and bounds[terms[order[slot - 1]] + 1] - bounds[terms[order[slot - 1]]] > size:
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = i
    return order


@compiled()
def meet_chunk(
    terms: Int64s, order: Int64s, packed: tuple[Lists, Int32s, UInt32s], first: int, cursors: Int64s, docs: Int32s,
    places: Int64s, met: Int64s,
) -> Any:  # fmt: skip
    """Find the documents that are in all lists, in one chunk of the shortest list; return their number.

    Args:
        terms: The terms.
        order: The result of `order_by_length`.
        packed: The result of `direct_tables.packed_lists`.
        first: First posting of the chunk in the shortest list.
        cursors: First posting of the chunk in each list; advanced to the next chunk.
        docs: Output: the documents, with room for one more than the chunk has.
        places: Output: postings of the documents in each list, a row for each list.
        met: Scratch of the length of a row.
    """
    lists, row_of, starts = packed
    lead = terms[order[0]]
    size = min(len(docs) - 1, lists[0][lead + 1] - lists[0][lead] - first)
    read(lists, row_of, starts, lead, first, first + size, docs)
    for match in range(size):
        places[order[0], match] = first + match
    for j in range(1, len(order)):
        i = order[j]
        size, cursors[i] = meet(lists, row_of, starts, terms[i], docs[:size], cursors[i], met, places[i])
        for match in range(size):
            docs[match] = docs[met[match]]
            for earlier in order[:j]:
                places[earlier, match] = places[earlier, met[match]]
    return size
