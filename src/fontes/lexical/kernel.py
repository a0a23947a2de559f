"""Compiled search: block bounds select the windows of documents that can hold a result, and only these are scored.

Each term with a long list has a row of bounds: the greatest weight in each block of 64 documents, in eight bits. Their weighted
sum bounds every score of a block (as in Ding and Suel, SIGIR 2011; summed for all blocks first, as in Mallia, Suel and
Tonellotto, SIGIR 2024). Windows of 4,096 documents are skipped if no block bound reaches the k-th best score so far; in the
others the postings are summed term by term. The k-th best weight of each term gives the first threshold. Sums that reach it are
collected, and after each window the k best give the next threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..index.packed_kernels import BINS, BLOCK, POSITION_BITS, WINDOW
from ..storage.compiled import inner, kernel
from .keys import key_of, select, write_best

if TYPE_CHECKING:
    from ..core.arrays import Bools, Bytes, Float32s, Float64s, Int, Int32s, Int64s, Ints, UInt16s, UInt32s, UInt64s
    from ..index.packed_kernels import Lists, Rest

    BoundsOf: TypeAlias = tuple[Float32s, UInt16s, Bools, Int32s, Bytes, UInt32s, Float64s]
    Bag: TypeAlias = tuple[Int64s, Float64s, Float64s, Lists, BoundsOf, Int64s]
    Clauses: TypeAlias = tuple[Int64s, Int32s, Float32s, Float64s, Int64s]
    Results: TypeAlias = tuple[Int64s, Int32s, Float32s, UInt64s]

WORD = 64  # documents in a word of a mask
LOOKUP_COST = 12  # postings scanned in the time of one lookup
TINY = 1e-20  # bounds are float32, in which products with smaller query weights may vanish
NOT_SUPPORTED = -1  # result of a loop if the query must be searched in another way
UNKNOWN_IDF = -10  # UNKNOWN_IDF - df is the result of a loop if the idf of df is not computed yet
ONE, FOUR, FIFTEEN = np.uint64(1), np.uint64(POSITION_BITS), np.uint64((1 << POSITION_BITS) - 1)
NO_BLOCK = np.uint64(1 << 63)
MIN_THRESHOLD = np.float32(1e-45)  # least threshold above 0, which no block without a term of the topic reaches
DEBRUIJN = np.uint64(0x022FDD63CC95386D)  # the six highest bits of its product with a power of two identify the power
BIT = np.array([int(DEBRUIJN) << i >> 58 & 63 for i in range(64)]).argsort().astype(np.uint8)  # the power, by these bits


@kernel()
def search_bag(
    bag: Bag, clauses: Clauses | None, allowed: UInt64s, ids: tuple[UInt32s, UInt32s], k: int, depth: int,
    threshold: np.float32, results: Results,
) -> None:  # fmt: skip
    """Find the best documents that have one of some terms, or match one of some clauses.

    A score is the float64 sum over the terms and then the clauses in order, rounded to float32. The sort key consists of the
    score and the rank of the document's id; see `fontes.core.ranking.order_keys`.

    Args:
        bag: (terms, weights, idfs, lists, bounds_of, cursors): the terms, ascending, the float64 query weight and the idf of
            each, 1 if postings have weights; the postings of all terms, see `packed.PackedLists.weighted`; (best, kth,
            positive, row_of, rows, starts, ratios), as from `summarize`, where starts[r, w] is the start of window w in the
            list of row r, and ratios are the greatest and the least of a weight to that with which the bounds were made; the
            first posting of each term, which is advanced.
        clauses: (bounds, docs, weights, query weights, cursors): documents of the clauses end to end, with their float32
            weights; the start of each, which is advanced. None: there are none.
        allowed: uint64; a bit for each document that may be returned, the lowest first; empty: all.
        ids: (rank, order): rank of each document's id, ascending; number of the document of each rank, for the results.
        k: Greatest number of documents.
        depth: Column of `kth` to use, or -1; -1 if not all documents are allowed.
        threshold: A score below which no document is needed, or 0.
        results: Output, (counts, docs, scores, keys), each with one row: unordered keys, the least of k last, if `keys` has
            columns; otherwise documents and scores, for a k of at most SORTED.
    """
    rank, order = ids
    clause_count = 0 if clauses is None else len(clauses[3])
    sums, score = np.empty(WINDOW, dtype=np.float64), np.empty(1, dtype=np.float32)
    candidates, windows = np.empty(k + k // 4 + 8 + WINDOW, dtype=np.uint64), (len(rank) + WINDOW - 1) // WINDOW
    if is_positive(bag) and (clauses is None or _are_positive(clauses)):
        block_bounds = np.zeros(windows * (WINDOW // BLOCK), dtype=np.float32)
        threshold = max(np.float32(threshold), bound_blocks(bag, len(bag[0]) + clause_count, depth, block_bounds))
        if clauses is not None:
            _bound_clauses(clauses, len(bag[0]) + clause_count, block_bounds)
        size = _pruned(bag, clauses, allowed, rank, k, block_bounds, threshold, sums, score, candidates)
    else:
        size = _exhaustive(bag, clauses, allowed, rank, k, windows, sums, score, candidates)
    write_best(candidates, size, k, order, results)


@inner()
def _are_positive(clauses: Clauses) -> bool:
    """Whether all weights of the clauses are above 0."""
    for query_weight in clauses[3]:
        if not query_weight > TINY:
            return False
    for weight in clauses[2]:
        if not weight > 0:
            return False
    return True


@inner()
def _bound_clauses(clauses: Clauses, clauses_of_query: int, block_bounds: Float32s) -> None:
    """Add the greatest weight of each clause in each block to the bounds of the block."""
    bounds, docs, weights, query_weights, _ = clauses
    margin = 1 + 3e-7 * (clauses_of_query + 4)  # as in `bound_blocks`
    for i in range(len(query_weights)):
        scale, posting, end = np.float32(query_weights[i] * margin), bounds[i], bounds[i + 1]
        while posting < end:
            block, greatest = docs[posting] // BLOCK, weights[posting]
            while posting < end and docs[posting] // BLOCK == block:
                greatest = max(greatest, weights[posting])
                posting += 1
            block_bounds[block] += greatest * scale


@inner()
def is_positive(bag: Bag) -> bool:
    """Whether all weights of the terms of a topic are above 0."""
    terms, query_weights, idfs, _, bounds_of, _ = bag
    for i in range(len(terms)):
        if not (query_weights[i] > TINY and idfs[i] > TINY and bounds_of[2][terms[i]]):
            return False
    return True


@inner()
def bound_blocks(bag: Bag, terms_of_query: int, depth: int, block_bounds: Float32s) -> np.float32:
    """Add the bounds of some terms to each block; return a score that at least k documents reach, or 0."""
    terms, query_weights, idfs, lists, bounds_of, _ = bag
    list_bounds, offsets, docs, codes, _, _, widths, weights, saturation, rest = lists
    best, kth, _, row_of, rows, _, ratios = bounds_of
    is_packed = len(saturation) > 0
    bits, mask, chosen = _unsigned(widths)
    margin = 1 + 3e-7 * (terms_of_query + 4)  # tolerance for rounding of float32 sums
    threshold = np.float32(0)
    for i in range(len(terms)):
        term = terms[i]
        greatest_weight = query_weights[i] * idfs[i] * best[term]
        if depth >= 0:
            least = greatest_weight * ratios[1] * (1 - 1e-6)
            threshold = max(threshold, np.float32(least / (BINS - 1) * kth[term, depth]))
        if row_of[term] >= 0:
            _add_row(block_bounds, rows[row_of[term]], np.float32(greatest_weight * ratios[0] / 255 * margin))
            continue
        scale, of_term = np.float32(query_weights[i] * margin), idfs[i]
        block, greatest, shift = NO_BLOCK, 0.0, list_bounds[term] - offsets[term]
        for posting in range(offsets[term], list_bounds[term + 1] - shift):
            word = np.uint64(docs[posting])
            if is_packed:
                value = saturation[word & mask | np.uint64(codes[np.uint64(posting) & chosen]) << bits]
            else:
                value = np.float64(weights[posting + shift])
            block_of = (word >> bits) // np.uint64(BLOCK)
            if block_of != block:
                if block != NO_BLOCK:
                    block_bounds[block] += np.float32(of_term * greatest) * scale
                block, greatest = block_of, value
            else:
                greatest = max(greatest, value)
        if block != NO_BLOCK:
            block_bounds[block] += np.float32(of_term * greatest) * scale
        if is_packed:
            for posting in range(rest[0][term], rest[0][term + 1]):
                block_bounds[rest[1][posting] // BLOCK] += np.float32(of_term * rest[2][posting]) * scale
    return threshold


@inner()
def _unsigned(widths: Int64s) -> tuple[np.uint64, ...]:
    """Return the number of code bits beside documents, their mask, and a mask for indices of `codes`, 0 if that is not used."""
    bits = np.uint64(widths[0])
    return bits, (ONE << bits) - ONE, np.uint64(0) - np.uint64(widths[1])


@inner()
def _add_row(block_bounds: Float32s, row: Bytes, scale: np.float32) -> None:
    for i in range(len(block_bounds)):
        block_bounds[i] += scale * np.float32(row[i])


@inner()
def _pruned(
    bag: Bag, clauses: Clauses | None, allowed: UInt64s, rank: UInt32s, k: int, block_bounds: Float32s, threshold: np.float32,
    sums: Float64s, score: Float32s, candidates: UInt64s,
) -> int:  # fmt: skip
    """Score the windows that can hold a result. All weights are above 0, so a document matches if its sum is above 0.

    Writes the keys of the `k` best documents, and of others, to `candidates`, and returns their number.
    """
    blocks = WINDOW // BLOCK
    bits = score.view(np.uint32)
    size, limit = 0, k - 1
    threshold = max(threshold, MIN_THRESHOLD)
    for window in range(len(block_bounds) // blocks):
        window_bounds = block_bounds[window * blocks : (window + 1) * blocks]
        reaching = np.uint64(0)  # blocks that can hold a result
        for block in range(blocks):
            reaching |= np.uint64(window_bounds[block] >= threshold) << np.uint64(block)
        rest = reaching
        while rest:
            block = lowest_bit(rest)
            if len(allowed) and _allowed_of(allowed, window * WINDOW + BLOCK * block) == 0:
                reaching ^= ONE << np.uint64(block)
            else:  # the sums of other blocks are never read
                sums[BLOCK * block : BLOCK * (block + 1)] = 0
            rest &= rest - ONE
        if reaching == 0:
            continue
        _sum_window(window, bag, sums)
        if clauses is not None:
            _sum_clauses(window, clauses, sums)
        enough = np.float64(threshold) * (1 - 1e-7) if threshold > MIN_THRESHOLD else 1e-300
        while reaching:
            block = lowest_bit(reaching)
            first = BLOCK * block
            reaching &= reaching - ONE
            mask = np.uint64(0)  # documents that reach the threshold
            for i in range(BLOCK):
                mask |= np.uint64(sums[first + i] >= enough) << np.uint64(i)
            if len(allowed):
                mask &= _allowed_of(allowed, window * WINDOW + first)
            while mask:
                position = first + lowest_bit(mask)
                mask &= mask - ONE
                score[0] = np.float32(sums[position])
                ordered = np.uint64(bits[0] | np.uint32(0x80000000))
                candidates[size] = ordered << np.uint64(32) | np.uint64(rank[window * WINDOW + position])
                size += 1
        if size > limit:
            size, limit = select(candidates, size, k), len(candidates) - WINDOW
            bits[0] = np.uint32(candidates[k - 1] >> np.uint64(32)) & np.uint32(0x7FFFFFFF)
            threshold = max(threshold, score[0])
    return size


@inner(inline="always")
def _allowed_of(allowed: UInt64s, doc: int) -> Any:
    """Return the bits of a mask for the block that begins with a document."""
    return allowed[doc // WORD] >> np.uint64(doc % WORD) << np.uint64(WORD - BLOCK) >> np.uint64(WORD - BLOCK)


@inner(inline="always")
def lowest_bit(word: np.uint64) -> Any:
    """Return the number of the lowest bit of a word that is not 0 (Leiserson, Prokop and Randall, 1998)."""
    return np.int64(BIT[(word & (~word + ONE)) * DEBRUIJN >> np.uint64(58)])


@inner(inline="always")  # a call would copy the descriptors of all arrays, for each window
def _sum_window(window: int, bag: Bag, sums: Float64s) -> None:
    """Add the scores of one window to `sums`; `cursors` of terms without a row advance."""
    terms, query_weights, idfs, lists, bounds_of, cursors = bag
    bounds, offsets, docs, codes, places, place_codes, widths, weights, saturation, rest = lists
    _, _, _, row_of, _, starts, _ = bounds_of
    begin, is_packed, has_rest = window * WINDOW, len(saturation) > 0, len(rest[1]) > 0
    bits, mask, chosen = _unsigned(widths)
    first_word, last_word = np.uint64(begin) << bits, np.uint64(begin + WINDOW) << bits
    for i in range(len(terms)):
        term, query_weight, row = terms[i], query_weights[i], row_of[terms[i]]
        of_term = idfs[i]
        if row >= 0:
            first, last = offsets[term] + np.int64(starts[row, window]), offsets[term] + np.int64(starts[row, window + 1])
            term_places, shift = places[first:last], bounds[term] - offsets[term]
            if not is_packed:
                term_weights = weights[first + shift : last + shift]
                for at in range(last - first):  # unsigned indexes need no check for negative values
                    sums[np.uint64(term_places[at] >> POSITION_BITS)] += query_weight * term_weights[at]
            elif widths[2] == 1:
                term_codes = place_codes[first:last]
                for at in range(last - first):
                    word = np.uint64(term_places[at])
                    code = np.uint64(term_codes[at]) << FOUR | word & FIFTEEN
                    sums[word >> FOUR] += query_weight * np.float32(of_term * saturation[code])
            else:
                term_codes = place_codes[2 * first : 2 * last]
                for at in range(np.uint64(last - first)):
                    word = np.uint64(term_places[at])
                    high = np.uint64(term_codes[2 * at]) | np.uint64(term_codes[2 * at + 1]) << np.uint64(8)
                    sums[word >> FOUR] += query_weight * np.float32(of_term * saturation[high << FOUR | word & FIFTEEN])
        else:
            shift = bounds[term] - offsets[term]
            at, end = cursors[i], bounds[term + 1] - shift
            if at < end and docs[at] < first_word:
                at = _skip(docs, at, end, first_word)
            while at < end and docs[at] < last_word:
                word = np.uint64(docs[at])
                position = (word >> bits) - np.uint64(begin)
                if is_packed:
                    code = word & mask | np.uint64(codes[np.uint64(at) & chosen]) << bits
                    sums[position] += query_weight * np.float32(of_term * saturation[code])
                else:
                    sums[position] += query_weight * weights[at + shift]
                at += 1
            cursors[i] = at
        if has_rest and rest[0][term] < rest[0][term + 1]:
            _sum_rest(begin, term, query_weight, of_term, rest, sums)


@inner()
def _sum_rest(begin: int, term: int, query_weight: float, idf: float, rest: Rest, sums: Float64s) -> None:
    """Add the postings of a window that are in `rest` to `sums`."""
    posting, end = rest[0][term], rest[0][term + 1]
    if rest[1][posting] < begin:
        posting = _skip(rest[1], posting, end, begin)
    while posting < end and rest[1][posting] < begin + WINDOW:
        sums[rest[1][posting] - begin] += query_weight * np.float32(idf * rest[2][posting])
        posting += 1


@inner()
def _skip(docs: Ints, at: int, end: int, doc: Int) -> int:
    """Return the first index after `at` with `doc` or a later document, by galloping; docs[at] must be earlier."""
    step = 1
    while at + step < end and docs[at + step] < doc:
        at += step
        step *= 2
    while step > 0:
        if at + step < end and docs[at + step] < doc:
            at += step
        step //= 2
    return at + 1


@inner()
def _sum_clauses(window: int, clauses: Clauses, sums: Float64s) -> None:
    """Add the weights of the clauses in one window to `sums`; `cursors` advance."""
    bounds, docs, weights, query_weights, cursors = clauses
    begin = window * WINDOW
    for i in range(len(query_weights)):
        at, end = cursors[i], bounds[i + 1]
        if at < end and docs[at] < begin:
            at = _skip(docs, at, end, begin)
        while at < end and docs[at] < begin + WINDOW:
            sums[docs[at] - begin] += query_weights[i] * weights[at]
            at += 1
        cursors[i] = at


@inner()
def _exhaustive(
    bag: Bag, clauses: Clauses | None, allowed: UInt64s, rank: UInt32s, k: int, windows: int, sums: Float64s, score: Float32s,
    candidates: UInt64s,
) -> int:  # fmt: skip
    """Score every document that has a term or matches a clause, for weights of any sign; fill `candidates` as `_pruned` does.

    A window is summed term by term. The documents of each term are marked first, and newly marked ones start from 0.
    """
    hit = np.zeros(WINDOW, dtype=np.uint8)
    terms, query_weights, idfs, lists, bounds_of, cursors = bag
    size = 0
    for window in range(windows):
        begin = window * WINDOW
        for i in range(len(terms)):
            term_bag = terms[i : i + 1], query_weights[i : i + 1], idfs[i : i + 1], lists, bounds_of, cursors[i : i + 1]
            _mark_window(begin, term_bag, sums, hit)
            _sum_window(window, term_bag, sums)
        if clauses is not None:
            _mark_clauses(begin, clauses, sums, hit)
            _sum_clauses(window, clauses, sums)
        for doc in range(min(WINDOW, len(rank) - begin)):
            if hit[doc]:
                hit[doc] = 0
                if len(allowed) and not allowed[(begin + doc) // WORD] >> np.uint64((begin + doc) % WORD) & ONE:
                    continue
                score[0] = np.float32(sums[doc])
                candidates[size] = key_of(score, rank[begin + doc])
                size += 1
        if size > len(candidates) - WINDOW:
            size = select(candidates, size, k)
    return size


@inner()
def _mark_clauses(begin: int, clauses: Clauses, sums: Float64s, hit: Bytes) -> None:
    """Mark the documents of the clauses in a window, and set the sums of newly marked ones to 0."""
    bounds, docs, _, query_weights, cursors = clauses
    for i in range(len(query_weights)):
        at = cursors[i]
        while at < bounds[i + 1] and docs[at] < begin + WINDOW:
            if docs[at] >= begin and not hit[docs[at] - begin]:
                sums[docs[at] - begin] = 0.0
                hit[docs[at] - begin] = 1
            at += 1


@inner()
def _mark_window(begin: int, bag: Bag, sums: Float64s, hit: Bytes) -> None:
    """Mark the documents of one term in a window, and set the sums of newly marked ones to 0."""
    terms, _, _, (bounds, offsets, docs, _, places, _, widths, _, _, _), bounds_of, cursors = bag
    term, row, window = terms[0], bounds_of[3][terms[0]], begin // WINDOW
    if row >= 0:
        starts = bounds_of[5]
        for posting in range(offsets[term] + np.int64(starts[row, window]), offsets[term] + np.int64(starts[row, window + 1])):
            position = np.uint64(places[posting] >> POSITION_BITS)
            sums[position] = sums[position] if hit[position] else 0.0
            hit[position] = 1
        return
    posting, end, bits = cursors[0], offsets[term] + bounds[term + 1] - bounds[term], widths[0]
    while posting < end and docs[posting] >> bits < begin + WINDOW:
        doc = np.int64(docs[posting] >> bits) - begin
        sums[doc] = sums[doc] if hit[doc] else 0.0
        hit[doc] = 1
        posting += 1
