"""Compiled loops over packed lists (see `packed.PackedLists`), which they write, read, check and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..storage.compiled import inner, kernel

if TYPE_CHECKING:
    from ..core.arrays import Bools, Bytes, Float32s, Float64s, Floats, Int32s, Int64s, Numbers, UInt16s, UInt32s

    Rest: TypeAlias = tuple[Int64s, Int32s, Float64s]
    Lists: TypeAlias = tuple[Int64s, Int64s, UInt32s, UInt16s, UInt16s, Bytes, Int64s, Float32s, Float64s, Rest]
    """The postings of all terms, as `PackedLists.weighted` returns them."""
    Packed: TypeAlias = tuple[Lists, Int32s, UInt32s]
    """The lists, and `row_of` and `starts` of `PackedLists`."""

BLOCK = 64  # documents per bound, at most the bits of a mask
WINDOW = 4096  # documents scored at a time, at most 64 blocks
BINS = 1024  # of the histogram for the k-th best weights
POSITION_BITS = 4  # bits of a code beside the position of a document in its window
DEPTHS = (10, 100, 1000)  # values of k for which the k-th best weights are stored


@kernel(steps=lambda docs, *args: 2 * len(docs))
def count_pairs(docs: Int32s, tfs: Int32s, numbers: Int32s, width: int, counts: Int64s) -> None:
    """Count the pairs of tf and length of some postings.

    Args:
        docs: Documents of the postings.
        tfs: Their tf.
        numbers: Number of each document's length.
        width: Number of lengths.
        counts: Output: cells of pairs, number tf * width + length; postings with a greater tf count in cell 0.
    """
    limit = len(counts) // width
    for posting in range(len(docs)):
        counts[tfs[posting] * width + numbers[docs[posting]] if tfs[posting] < limit else 0] += 1


@kernel(steps=lambda docs, *args: 2 * len(docs))
def encode(docs: Int32s, tfs: Int32s, numbers: Int32s, width: int, code_of: UInt16s, codes: UInt16s) -> None:
    """Write the codes of some postings, from the code of each cell of `count_pairs`."""
    limit = len(code_of) // width
    for posting in range(len(docs)):
        codes[posting] = code_of[tfs[posting] * width + numbers[docs[posting]] if tfs[posting] < limit else 0]


@kernel(steps=lambda bounds, docs, *args: 4 * len(docs))
def pack(
    bounds: Int64s, docs: Int32s, codes: UInt16s, row_of: Int32s, offsets: Int64s, widths: Int64s,
    lists: tuple[UInt32s, UInt16s, UInt16s, Bytes], starts: UInt32s,
) -> None:  # fmt: skip
    """Write the postings of some terms in packed form.

    Args:
        bounds: Start of the postings of each term, and the end of the last.
        docs: Documents of the postings.
        codes: Codes of the postings.
        row_of: Row of each term, -1 for none.
        offsets: Start of each term in the outputs.
        widths: As in `packed.PackedLists`.
        lists: Outputs, (docs, codes, places, place_codes), as in `packed.PackedLists`.
        starts: Output, as in `packed.PackedLists`.
    """
    out_docs, out_codes, out_places, out_place_codes = lists
    bits, has_rest, width = widths[0], widths[1], widths[2]
    for term in range(len(row_of)):
        row, shift, window = row_of[term], offsets[term] - bounds[term], 0
        for posting in range(bounds[term], bounds[term + 1]):
            doc, code = np.int64(docs[posting]), np.int64(codes[posting])
            if row < 0:
                out_docs[posting + shift] = doc << bits | code & (1 << bits) - 1
                if has_rest:
                    out_codes[posting + shift] = code >> bits
                continue
            out_places[posting + shift] = doc % WINDOW << POSITION_BITS | code & (1 << POSITION_BITS) - 1
            for byte in range(width):
                out_place_codes[width * (posting + shift) + byte] = code >> POSITION_BITS + 8 * byte & 255
            while window <= doc // WINDOW:
                starts[row, window] = posting - bounds[term]
                window += 1
        if row >= 0:
            starts[row, window:] = bounds[term + 1] - bounds[term]


@kernel()
def unpack(terms: Int64s, idfs: Float64s, packed: Packed, docs: Int32s, weights: Float32s) -> None:
    """Write the documents of some terms, and their weights by the curve if `weights` is not empty.

    Args:
        terms: The terms.
        idfs: Idf of each of the terms.
        packed: The lists as in `lexical.kernel.search_bag`, the row of each term, -1 for none, and the starts of windows.
        docs: Output: the documents, those of term t from bounds[t] on.
        weights: Output: weights of the postings, or an empty array.
    """
    lists, row_of, starts = packed
    bounds, offsets, of_lists, _, places, _, widths, _, saturation, rest = lists
    for number, term in enumerate(terms):
        row, begin, end, shift = row_of[term], bounds[term], bounds[term + 1], offsets[term] - bounds[term]
        if row < 0:
            for posting in range(begin, end):
                docs[posting] = of_lists[posting + shift] >> widths[0]
        else:
            for window in range(starts.shape[1] - 1):
                for posting in range(begin + np.int64(starts[row, window]), begin + np.int64(starts[row, window + 1])):
                    docs[posting] = window * WINDOW + np.int64(places[posting + shift] >> POSITION_BITS)
        if len(weights):
            for posting in range(begin, end):
                weights[posting] = idfs[number] * saturation[code_at(lists, row, term, posting - begin)]
            posting = begin
            for i in range(rest[0][term], rest[0][term + 1]):
                while docs[posting] < rest[1][i]:
                    posting += 1
                weights[posting] = idfs[number] * rest[2][i]


@inner(inline="always")
def code_at(lists: Lists, row: np.int32, term: int, posting: int) -> Any:
    """Return the code of a posting of a term; postings are counted from the first of the term."""
    _, offsets, docs, codes, places, place_codes, widths, _, _, _ = lists
    at = offsets[term] + posting
    if row < 0:
        code = np.int64(docs[at]) & (1 << widths[0]) - 1
        if widths[1]:
            code |= np.int64(codes[at]) << widths[0]
        return code
    code = np.int64(places[at]) & (1 << POSITION_BITS) - 1
    for byte in range(widths[2]):
        code |= np.int64(place_codes[widths[2] * at + byte]) << POSITION_BITS + 8 * byte
    return code


@kernel(steps=lambda terms, packed, documents, tf_of, rest_tf, docs, tfs, bounds: 4 * int(bounds[-1]) + 20)
def read_lists(
    terms: Int64s, packed: Packed, documents: int, tf_of: Int32s, rest_tf: Int32s, docs: Int32s, tfs: Int32s, bounds: Int64s
) -> bool:
    """Read and check the lists of some terms, which may come from damaged files.

    Args:
        terms: The terms.
        packed: As in `unpack`; the documents of the rest are read, but not its weights.
        documents: Number of documents.
        tf_of: tf of each code, 0 for the code 0.
        rest_tf: tf of each posting in the rest.
        docs: Output: documents of all postings, end to end; if empty, the lists are only checked.
        tfs: Output: tf of the postings.
        bounds: Start of each term in the outputs, and the end of the last.

    Returns:
        Whether the documents of each term ascend below `documents`, and codes and the rest fit them.
    """
    lists, row_of, starts = packed
    list_bounds, offsets, of_lists, codes, places, place_codes, widths, _, _, rest = lists
    bits, has_rest, width = widths[0], widths[1], widths[2]
    writes, windows, mask, coded = len(docs) > 0, starts.shape[1] - 1, (1 << bits) - 1, len(tf_of)
    for number in range(len(terms)):
        term = terms[number]
        row, at, size, out = row_of[term], offsets[term], list_bounds[term + 1] - list_bounds[term], bounds[number]
        previous, next_rest, rest_end, end = np.int64(-1), rest[0][term], rest[0][term + 1], np.int64(0)
        for window in range(windows if row >= 0 else 1):
            begin, end = end, size if row < 0 else np.int64(starts[row, window + 1])
            if begin > end or end > size or (row >= 0 and begin != starts[row, window]):
                return False
            for posting in range(begin, end):
                if row < 0:
                    word = np.int64(of_lists[at + posting])
                    doc, code = word >> bits, word & mask
                    if has_rest:
                        code |= np.int64(codes[at + posting]) << bits
                else:
                    word = np.int64(places[at + posting])
                    doc, code = window * WINDOW + (word >> POSITION_BITS), word & (1 << POSITION_BITS) - 1
                    code |= np.int64(place_codes[width * (at + posting)]) << POSITION_BITS
                    if width == 2:
                        code |= np.int64(place_codes[width * (at + posting) + 1]) << POSITION_BITS + 8
                if doc <= previous or doc >= documents or code >= coded:
                    return False
                previous, tf = doc, tf_of[code]
                if code == 0:
                    if next_rest == rest_end or rest[1][next_rest] != doc:
                        return False
                    tf = rest_tf[next_rest]
                    next_rest += 1
                if tf < 1:
                    return False
                if writes:
                    docs[out + posting], tfs[out + posting] = doc, tf
        if end != size or next_rest != rest_end:
            return False
    return True


@kernel(steps=lambda first, last, packed, *args: 2 * int(packed[0][0][last] - packed[0][0][first]))
def count_marked(
    first: int, last: int, packed: Packed, marked: Bytes, tf_of: Int32s, rest_tf: Int32s, df: Int64s, cf: Int64s
) -> None:
    """Count the postings, and sum their tf, of some documents in the lists of the terms from `first` to `last` (excluded).

    Args:
        first: The first term.
        last: The term after the last.
        packed: As in `unpack`.
        marked: uint8, (documents,): 1 for the documents to count.
        tf_of: tf of each code.
        rest_tf: tf of each posting in the rest.
        df: Output: number of the documents with each term.
        cf: Output: occurrences of each term in them.
    """
    lists, row_of, starts = packed
    bounds, offsets, of_lists, _, places, _, widths, _, _, rest = lists
    windows = starts.shape[1] - 1
    has_marked = np.zeros(windows, dtype=np.bool_)
    for window in range(windows):
        has_marked[window] = np.any(marked[window * WINDOW : (window + 1) * WINDOW])
    for term in range(first, last):
        row, at, size, next_rest = row_of[term], offsets[term], bounds[term + 1] - bounds[term], rest[0][term]
        for window in range(windows if row >= 0 else 1):
            begin, end = np.int64(0), size
            if row >= 0:
                if not has_marked[window]:
                    continue
                begin, end = np.int64(starts[row, window]), np.int64(starts[row, window + 1])
            for posting in range(begin, end):
                if row < 0:
                    doc = np.int64(of_lists[at + posting] >> widths[0])
                else:
                    doc = window * WINDOW + np.int64(places[at + posting] >> POSITION_BITS)
                if marked[doc]:
                    code = code_at(lists, row, term, posting)
                    df[term] += 1
                    cf[term] += tf_of[code]
                    if code == 0:
                        while rest[1][next_rest] < doc:
                            next_rest += 1
                        cf[term] += rest_tf[next_rest]


@kernel(steps=lambda first, last, bounds, docs, *args: 6 * len(docs))
def summarize(
    first: int, last: int, bounds: Int64s, docs: Int32s, weights: Float32s, row_of: Int32s, best: Float32s, kth: UInt16s,
    positive: Bools, rows: Bytes,
) -> None:  # fmt: skip
    """Compute the bounds of the terms from `first` to `last`.

    Args:
        first: The first term.
        last: The term after the last.
        bounds: Start of the postings of each term.
        docs: The documents of the postings.
        weights: float32; weights of the postings.
        row_of: Row of each term with a long list, -1 for other terms.
        best: Output: greatest weight of each term.
        kth: Output: bin of a weight that at least 10, 100, 1000 postings reach, 0 if there are fewer; bin b begins at
            b * best / (BINS - 1).
        positive: Output: whether all weights are above 0.
        rows: Output: block bounds, ceilings of weight / best * 255.
    """
    histogram = np.zeros(BINS, dtype=np.int64)
    for term in range(first, last):
        greatest, least = np.float32(-np.inf), np.float32(np.inf)
        for posting in range(bounds[term], bounds[term + 1]):
            greatest, least = max(greatest, weights[posting]), min(least, weights[posting])
        best[term] = greatest
        positive[term] = least > 0
        if not least > 0:
            continue
        if bounds[term + 1] - bounds[term] >= DEPTHS[0]:
            histogram[:] = 0
            scale = (BINS - 1) / np.float64(greatest)
            for posting in range(bounds[term], bounds[term + 1]):
                histogram[int(weights[posting] * scale)] += 1
            reached, depth = 0, 0
            for number in range(BINS - 1, -1, -1):
                reached += histogram[number]
                while depth < len(DEPTHS) and reached >= DEPTHS[depth]:
                    kth[term, depth] = number
                    depth += 1
        if row_of[term] >= 0:
            row = rows[row_of[term]]
            ceiling = 255 / np.float64(greatest)
            for posting in range(bounds[term], bounds[term + 1]):
                bound = min(255, int(np.ceil(weights[posting] * ceiling)))
                row[docs[posting] // BLOCK] = max(row[docs[posting] // BLOCK], bound)


@kernel(steps=lambda bounds, docs, *args: 2 * len(docs))
def choose_champions(
    bounds: Int64s, docs: Int32s, weights: Floats, row_of: Int32s, values: Numbers, champions: Int32s, champion_values: Numbers,
    cuts: Float64s,
) -> None:  # fmt: skip
    """Choose the champions of terms with long lists.

    Args:
        bounds: Start of the postings of each term, and the end of the last.
        docs: The documents of the postings.
        weights: Weights of the postings.
        row_of: Row of each term with a long list, -1 for other terms.
        values: Value of each posting.
        champions: Output: documents with the greatest weights, as in `packed.Bounds`.
        champion_values: Output: their values, then zeros.
        cuts: Output: weight of the first posting of each list that is not among them.
    """
    histogram, depth = np.zeros(BINS, dtype=np.int64), champions.shape[1]
    for term in range(len(row_of)):
        row, begin, end = row_of[term], bounds[term], bounds[term + 1]
        if row < 0:
            continue
        greatest, least = weights[begin], weights[begin]
        for posting in range(begin, end):
            greatest, least = max(greatest, weights[posting]), min(least, weights[posting])
        histogram[:] = 0
        scale = (BINS - 1) / max(np.float64(greatest) - np.float64(least), 1e-300)  # all may be equal
        for posting in range(begin, end):
            histogram[int((weights[posting] - least) * scale)] += 1
        number, size = BINS - 1, histogram[BINS - 1]
        while size < depth and number:
            number -= 1
            size += histogram[number]
        candidates, filled = np.empty(size, dtype=np.int64), 0
        for posting in range(begin, end):
            if int((weights[posting] - least) * scale) >= number:
                candidates[filled] = posting
                filled += 1
        order = np.argsort(-weights[candidates], kind="mergesort")
        cut = weights[candidates[order[min(depth, size) - 1]]]
        cuts[row], rank = cut, 0
        while rank < size and weights[candidates[order[rank]]] > cut:
            champions[row, rank] = docs[candidates[order[rank]]]
            champion_values[row, rank] = values[candidates[order[rank]]]
            rank += 1
        champions[row, rank:] = -1
        champion_values[row, rank:] = 0
