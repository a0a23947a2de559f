"""Compiled loops of whole searches: from the bytes of a query's terms to the best documents.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..index.packed import CHAMPIONS as WIDTH
from ..index.payload_kernels import count_phrase
from ..index.positions import ROWS_PER_OFFSET as ROWS_BLOCK
from ..storage.compiled import compiled
from ..storage.pinned import view
from .direct_tables import (
    BOUNDS,
    CHAMPION_WEIGHTS,
    CHAMPIONS,
    CURVE,
    CUTS,
    DEAD,
    FIRSTS,
    LENGTHS,
    LIVING,
    ORDER,
    POSITION_BOUNDS,
    POSITION_OFFSETS,
    POSITIONS,
    RANK,
    RATIOS,
    REST_DOCS,
    ROW_OF,
    bounds_of_part,
    depth_of,
    find_numbers,
    keep_living,
    packed_lists,
    present_terms,
    rows_of_part,
    sort_terms,
    weigh_text,
    write_idf,
    write_idfs,
)
from .kernel import LOOKUP_COST, NOT_SUPPORTED, ONE, WORD, search_bag
from .keys import SORTED, collect, decode_keys, key_of, reaches, select, write_best
from .lookup import UNKNOWN, search_clauses, search_few
from .merging_kernels import merge_parts
from .packed_kernels import CHUNK_DOCUMENTS, add_weights, meet_chunk, order_by_length

if TYPE_CHECKING:
    from ..core.arrays import Float32s, Float64s, Int32s, Int64s, UInt32s, UInt64s
    from .direct_tables import Rows
    from .kernel import Results
    from .parts import Masks

FEW_KEYS = 4  # a part with less than k / FEW_KEYS results changes no threshold


@compiled()
def find_all(tables: Int64s, text: bytes, words: int, query_weight: float, k: int, results: Results) -> int:
    """Find the documents that have all of some distinct terms with equal query weights.

    Args:
        tables: The result of `pinned` for the arrays of each part of an index.
        text: The terms in UTF-8, separated by zero bytes.
        words: Number of terms.
        query_weight: Query weight of each term.
        k: Greatest number of documents of a part; 0 only counts.
        results: Outputs: the number of documents written of each part, or in the first place of all if they are merged; the
            best documents, of the only part or merged as ordinals in the index, empty for more than SORTED; their scores;
            unordered keys of the best documents of each part, which begin at multiples of k, empty if the only part has `docs`.

    Returns:
        The number of all matching documents; NOT_SUPPORTED; or UNKNOWN_IDF - df.
    """
    numbers, idfs = np.empty((len(tables), words), dtype=np.int64), np.empty(words, dtype=np.float64)
    if find_numbers(tables, np.frombuffer(text, np.uint8), np.empty(words, np.int64), numbers) == NOT_SUPPORTED:
        return NOT_SUPPORTED
    unknown: int = write_idfs(tables, numbers, idfs) if k else 0
    if unknown:
        return unknown
    weights, total, part_counts = np.full(words, query_weight, dtype=np.float64), 0, results[0]
    for part in range(len(tables)):
        part_counts[part] = 0
        terms, part_weights, part_idfs = present_terms(tables[part], numbers[part], weights, idfs)
        if len(terms) < words:
            continue
        sort_terms(terms, part_idfs)
        if words == 1 and len(view(tables[part], LIVING, np.uint64)) == 0:
            bounds = view(tables[part], BOUNDS, np.int64)
            if k:
                of_part = rows_of_part(part, len(tables), results)
                threshold = np.float32(0)
                part_counts[part] = _search_any(
                    tables[part], terms, part_weights, part_idfs, *_all(tables[part]), k, threshold, of_part
                )
            total += bounds[terms[0] + 1] - bounds[terms[0]]
            continue
        of_part = rows_of_part(part, len(tables), results)
        matches = _find_all(tables[part], terms, query_weight, part_idfs, k, of_part)
        part_counts[part], total = min(matches, k), total + matches
    merge_parts(tables, k, results)
    return total


@compiled()
def _find_all(table: Int64s, terms: Int64s, query_weight: float, idfs: Float64s, k: int, rows: Rows) -> int:
    """Find the documents of a part that have all of some terms, ascending; return their number."""
    words, bounds, packed = len(terms), view(table, BOUNDS, np.int64), packed_lists(table)
    rank, best, score = view(table, RANK, np.uint32), np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, np.float32)
    order, total = order_by_length(terms, bounds), 0
    length = bounds[terms[order[0]] + 1] - bounds[terms[order[0]]]
    width = min(length, CHUNK_DOCUMENTS) + 1
    places, chunk = np.empty((words + 1, width), dtype=np.int64), np.empty(width, np.int32)
    all_keys = np.empty(length if k > SORTED else 0, dtype=np.uint64)
    cursors, sums = np.zeros(words, dtype=np.int64), np.empty(len(chunk), dtype=np.float64)
    for first in range(0, length, CHUNK_DOCUMENTS):
        size = meet_chunk(terms, order, packed, first, cursors, chunk, places, places[words])
        size = keep_living(table, chunk, size, places)
        if k:
            sums[:size] = 0
            for i in range(words):
                row = packed[1][terms[i]]
                add_weights(packed[0], row, terms[i], query_weight, idfs[i], chunk[:size], places[i, :size], sums)
            for match in range(size):
                score[0] = sums[match]
                if k > SORTED or total + match < k or reaches(score, best):
                    collect(key_of(score, rank[chunk[match]]), total + match, k, best, all_keys)
        total += size
    _write_matches(best, all_keys, total, k, view(table, ORDER, np.uint32), rows)
    return total


@compiled()
def _write_matches(best: UInt64s, all_keys: UInt64s, total: int, k: int, order: UInt32s, rows: Rows) -> None:
    """Write the best of the documents that `keys.collect` took, or their keys if there is room for these."""
    docs, scores, keys = rows
    if k > SORTED:
        size = select(all_keys, total, k)
        keys[:size] = all_keys[:size]
    elif len(keys):
        keys[: min(total, k)] = best[: min(total, k)]
    else:
        decode_keys(best, min(total, k), order, docs, scores)


@compiled()
def find_phrase(tables: Int64s, text: bytes, words: int, query_weight: float, k: int, results: Results) -> int:
    """Find the documents that have an exact phrase.

    Args:
        tables: As in `find_all`.
        text: As in `find_all`; n zero bytes between two terms mean that their offsets differ by n.
        words: Number of terms.
        query_weight: Query weight of the phrase.
        k: As in `find_all`.
        results: As in `find_all`.

    Returns:
        As `find_all`; NOT_SUPPORTED also if bytes or weights are damaged.
    """
    parts, total = len(tables), 0
    numbers, offsets = np.empty((parts, words), dtype=np.int64), np.empty(words, dtype=np.int64)
    if find_numbers(tables, np.frombuffer(text, np.uint8), offsets, numbers) == NOT_SUPPORTED:
        return NOT_SUPPORTED
    matched, tf, ends = np.empty(64, dtype=np.int32), np.empty(64, dtype=np.int32), np.zeros(parts + 1, dtype=np.int64)
    for part in range(parts):
        matched, tf, total = _match_phrase(tables[part], numbers[part], offsets, matched, tf, total)
        if total < 0:
            return NOT_SUPPORTED
        ends[part + 1] = total
    idfs = np.empty(1, dtype=np.float64)
    unknown: int = write_idf(tables[0], total, idfs, 0) if k else 0
    if unknown:
        return unknown
    part_counts = results[0]
    for part in range(parts if k else 0):
        rows = slice(ends[part], ends[part + 1])
        is_finite = _weigh_matches(
            tables[part], matched[rows], tf[rows], idfs[0], query_weight, k, rows_of_part(part, parts, results)
        )
        if not is_finite:
            return NOT_SUPPORTED
        part_counts[part] = min(k, ends[part + 1] - ends[part])
    merge_parts(tables, k, results)
    return total


@compiled()
def _match_phrase(
    table: Int64s, numbers: Int64s, offsets: Int64s, matched: Int32s, tf: Int32s, total: int
) -> tuple[Int32s, Int32s, int]:
    """Append the documents of a part that have a phrase, and its frequencies.

    Returns the arrays, perhaps replaced by larger ones, and the number of documents in them, -1 if bytes are damaged.
    """
    if numbers.min() < 0:
        return matched, tf, total
    words = len(numbers)
    of_words, terms = np.empty(2 * words, dtype=np.int64), np.empty(words, dtype=np.int64)
    of_words[words:] = offsets
    count = 0
    for word in range(words):
        slot = 0
        while slot < count and terms[slot] != numbers[word]:
            slot += 1
        terms[slot], of_words[word] = numbers[word], slot
        count = max(count, slot + 1)
    terms = terms[:count]
    bounds, packed = view(table, BOUNDS, np.int64), packed_lists(table)
    rows, row_offsets = view(table, POSITIONS, np.uint8), view(table, POSITION_OFFSETS, np.uint32)
    of_terms = rows, row_offsets, view(table, POSITION_BOUNDS, np.uint32), view(table, FIRSTS, np.uint32)
    order = order_by_length(terms, bounds)
    length = bounds[terms[order[0]] + 1] - bounds[terms[order[0]]]
    width = min(length, CHUNK_DOCUMENTS) + 1
    places, chunk = np.empty((count + 1, width), dtype=np.int64), np.empty(width, np.int32)
    cursors, no_limits = np.zeros(words, dtype=np.int64), np.empty((0, 2), dtype=np.int32)
    for first in range(0, length, CHUNK_DOCUMENTS):
        size = meet_chunk(terms, order, packed, first, cursors, chunk, places, places[count])
        size = keep_living(table, chunk, size, places)
        if total + size > len(matched):
            larger, larger_tf = np.empty(2 * (total + size), dtype=np.int32), np.empty(2 * (total + size), dtype=np.int32)
            larger[:total], larger_tf[:total] = matched[:total], tf[:total]
            matched, tf = larger, larger_tf
        end = total + size
        matched[total:end] = chunk[:size]
        size = count_phrase(of_terms, terms, places, of_words, no_limits, ROWS_BLOCK, matched[total:end], tf[total:end])
        if size < 0:
            return matched, tf, -1
        total += size
    return matched, tf, total


@compiled()
def _weigh_matches(table: Int64s, matched: Int32s, tf: Int32s, idf: float, query_weight: float, k: int, rows: Rows) -> bool:
    """Write the best documents of a part for a clause with these frequencies; return whether all weights are finite."""
    rank, lengths, curve = view(table, RANK, np.uint32), view(table, LENGTHS, np.float64), view(table, CURVE, np.float64)
    factor, k1, delta, constant, b, mean = curve[0], curve[1], curve[2], curve[3], curve[4], curve[5]
    is_finite = True
    best, score = np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, dtype=np.float32)
    all_keys = np.empty(len(matched) if k > SORTED else 0, dtype=np.uint64)
    for i in range(len(matched)):
        length = constant + b * lengths[matched[i]] / mean
        weight = np.float32(idf * (factor * tf[i] / (tf[i] + k1 * length) + delta))
        is_finite &= np.isfinite(weight)
        score[0] = query_weight * weight
        if k > SORTED or i < k or reaches(score, best):
            collect(key_of(score, rank[matched[i]]), i, k, best, all_keys)
    _write_matches(best, all_keys, len(matched), k, view(table, ORDER, np.uint32), rows)
    return is_finite


@compiled()
def _search_parts(
    tables: Int64s, numbers: Int64s, first: int, query_weights: Float64s, idfs: Float64s, unsorted: bool, masks: Masks, k: int,
    results: Results,
) -> None:  # fmt: skip
    """Find the best documents of each part that have at least one of some terms, whose numbers begin with the column `first`.

    The other arguments are those of `find_text`.
    """
    allowed, allowed_bounds, candidates, candidate_bounds = masks
    columns, part_counts = slice(first, first + len(query_weights)), results[0]
    threshold, bits = np.float32(0), np.empty(1, dtype=np.float32)
    best, size = np.empty(2 * k if len(tables) > 2 else 0, dtype=np.uint64), 0  # the best keys so far
    for part in range(len(tables)):
        of_part = rows_of_part(part, len(tables), results)
        terms, weights, part_idfs = present_terms(tables[part], numbers[part][columns], query_weights, idfs)
        if unsorted:  # only if all weights are equal
            sort_terms(terms, part_idfs)
        words = allowed[allowed_bounds[part] : allowed_bounds[part + 1]]
        few = candidates[candidate_bounds[part] : candidate_bounds[part + 1]]
        part_counts[part] = _search_any(tables[part], terms, weights, part_idfs, words, few, k, threshold, of_part)
        if part + 1 == len(tables) or part_counts[part] * FEW_KEYS < max(k, 1):
            continue
        count, least = part_counts[part], of_part[2][k - 1]  # the least of k keys is the last
        if len(best):
            best[size : size + count] = of_part[2][:count]
            size = select(best, size + count, k)
            count, least = size, best[k - 1]
        if count == k and least >> np.uint64(63):  # the score is not below 0
            bits.view(np.uint32)[0] = np.uint32(least >> np.uint64(32)) & np.uint32(0x7FFFFFFF)
            threshold = max(threshold, bits[0])
    merge_parts(tables, k, results)


@compiled()
def find_clauses(
    tables: Int64s, text: bytes, sizes: tuple[int, ...], query_weight: float, masks: Masks, k: int, results: Results
) -> int:
    """Find the best documents that have required terms, lack others, and may have optional ones; all are distinct.

    Args:
        tables: As in `find_all`.
        text: The required, the optional, then the excluded terms, as in `find_all`.
        sizes: Numbers of required, optional and excluded terms.
        query_weight: Query weight of each required and optional term.
        masks: As in `find_text`.
        k: Greatest number of documents of a part, at least 1.
        results: As in `find_all`.

    Returns:
        The number of all matching documents, `lookup.UNKNOWN` without required terms; NOT_SUPPORTED; or UNKNOWN_IDF - df.
    """
    required, scoring, words = sizes[0], sizes[0] + sizes[1], sizes[0] + sizes[1] + sizes[2]
    numbers, idfs = np.empty((len(tables), words), dtype=np.int64), np.empty(scoring, dtype=np.float64)
    if find_numbers(tables, np.frombuffer(text, np.uint8), np.empty(words, np.int64), numbers) == NOT_SUPPORTED:
        return NOT_SUPPORTED
    unknown: int = write_idfs(tables, numbers, idfs)
    if unknown:
        return unknown
    weights, total, no_clauses = np.full(scoring, query_weight, dtype=np.float64), 0, np.empty(0, dtype=np.int64)
    if words == sizes[1]:
        _search_parts(tables, numbers, np.int64(0), weights, idfs, np.bool_(True), masks, k, results)
        return UNKNOWN
    part_counts, allowed, allowed_bounds = results[0], masks[0], masks[1]
    for part in range(len(tables)):
        part_counts[part] = 0
        terms, part_weights, part_idfs = present_terms(tables[part], numbers[part][:scoring], weights, idfs)
        if np.any(numbers[part, :required] < 0) or len(terms) == 0:
            continue
        sort_terms(terms, part_idfs)
        excluded = numbers[part, scoring:]
        excluded = excluded[excluded >= 0]
        lists, bounds_of = packed_lists(tables[part])[0], bounds_of_part(tables[part])
        bag = terms, part_weights, part_idfs, lists, bounds_of, lists[1][terms]
        ids, mask = (
            (view(tables[part], RANK, np.uint32), view(tables[part], ORDER, np.uint32)),
            view(tables[part], LIVING, np.uint64),
        )
        if allowed_bounds[part] < allowed_bounds[part + 1]:
            mask = allowed[allowed_bounds[part] : allowed_bounds[part + 1]]
        depth, (part_docs, part_scores, part_keys) = depth_of(k), rows_of_part(part, len(tables), results)
        total += search_clauses(
            numbers[part, :required], excluded, bag, None, no_clauses, mask, ids, k, depth if len(mask) == 0 else np.int64(-1),
            (part_counts[part:], part_docs[None], part_scores[None], part_keys[None]),
        )  # fmt: skip
    merge_parts(tables, k, results)
    matches: int = total if required else UNKNOWN
    return matches


@compiled()
def find_text_in_all(tables: Int64s, text: bytes, k: int, docs: Int32s, scores: Float32s, keys: UInt64s) -> int:
    """Find the same as `find_text` without a filter, and return the number of documents written, or as `find_text`.

    In an index of one part without deletions, k may be above SORTED, with `keys`; in any other it is at most SORTED.
    """
    parts = len(tables)
    numbers, weights, idfs = np.empty((parts, len(text) + 1), dtype=np.int64), np.empty(len(text)), np.empty(len(text))
    size: int = weigh_text(tables, text, numbers, weights, idfs)
    if size <= 0:
        return size
    allowed, candidates = _all(tables[0])
    if parts == 1 and len(view(tables[0], LIVING, np.uint64)) == 0:
        terms = numbers[0][:size]
        return _search_any(  # type: ignore[no-any-return]
            tables[0], terms, weights[:size], idfs[:size], allowed, candidates, k, np.float32(0), (docs, scores, keys)
        )
    part_counts, none = np.empty(parts, np.int64), np.zeros(parts + 1, np.int64)
    masks, results = (allowed, none, candidates, none), (part_counts, docs, scores, np.empty(parts * k, np.uint64))
    _search_parts(tables, numbers, np.int64(0), weights[:size], idfs[:size], np.bool_(False), masks, k, results)
    written: int = part_counts[0]
    return written


@compiled()
def find_text(tables: Int64s, text: bytes, masks: Masks, k: int, results: Results) -> int:
    """Analyse a text in UTF-8, and find the best documents of each part of an index that have one of its terms.

    Args:
        tables: As in `find_all`.
        text: The text.
        masks: `allowed` as in `kernel.search_bag`, of all parts end to end, none: all that live; the start of each part in it,
            and the end of the last; the allowed documents of each part, ascending, if they are few, else none; their bounds.
        k: As in `find_clauses`.
        results: As in `find_clauses`.

    Returns:
        As `find_clauses`.
    """
    numbers, weights = np.empty((len(tables), len(text) + 1), dtype=np.int64), np.empty(len(text))
    idfs = np.empty(len(text))
    status: int = weigh_text(tables, text, numbers, weights, idfs)
    if status < 0:
        return status
    _search_parts(tables, numbers, np.int64(0), weights[:status], idfs[:status], np.bool_(False), masks, k, results)
    return 0


@compiled()
def find_bags(
    tables: Int64s, first: int, last: int, bags: tuple[Int64s, Int64s, Float64s, Float64s], masks: Masks, k: int,
    part_counts: Int64s, keys: UInt64s,
) -> None:  # fmt: skip
    """Find the best documents of each part for the topics from `first` to `last`, as weighted bags of terms.

    Args:
        tables: As in `find_all`.
        first: The first topic.
        last: The topic after the last.
        bags: The start of the terms of each topic, and the end of the last; a row for each part with the numbers of the terms,
            -1 for none, ascending in each topic; their query weights; and their idfs.
        masks: As in `find_text`.
        k: As in `find_clauses`.
        part_counts: Output: number of keys of each topic in each part, (topics, parts).
        keys: Output: unordered keys, (topics, parts * k).
    """
    (bounds, numbers, weights, idfs), docs, scores = bags, np.empty(0, np.int32), np.empty(0, np.float32)
    for topic in range(first, last):
        rows, results = slice(bounds[topic], bounds[topic + 1]), (part_counts[topic], docs, scores, keys[topic])
        _search_parts(tables, numbers, bounds[topic], weights[rows], idfs[rows], np.bool_(False), masks, k, results)


@compiled()
def find_lists(
    table: Int64s, of_terms: tuple[Int64s, Float64s, Float64s], of_clauses: tuple[Int64s, Int32s, Float32s, Float64s],
    required: tuple[Int64s, Int64s], allowed: UInt64s, candidates: tuple[Int32s, bool], k: int, counts: Int64s, keys: UInt64s,
) -> int:  # fmt: skip
    """Find the best documents of a part by the sums of terms and clauses.

    Args:
        table: The arrays of the part.
        of_terms: The numbers of the terms, -1 for none, ascending; their query weights; and their idfs.
        of_clauses: The start of each clause, and the end of the last; documents and weights of the clauses; and query weights.
        required: Which of the terms, and which of the clauses, a document must have.
        allowed: As in `kernel.search_bag`; empty: all that live.
        candidates: Documents, ascending; and whether these are returned, and not what the terms and clauses tell.
        k: Greatest number of documents.
        counts: Output, (1,): number of keys.
        keys: Output: unordered keys of the best documents.

    Returns:
        The number of all matching documents; `lookup.UNKNOWN` if none of the terms and clauses is required.
    """
    (required_terms, required_clauses), (docs, all_match) = required, candidates
    counts[0] = 0
    required_numbers = of_terms[0][required_terms]
    if np.any(required_numbers < 0):
        return 0
    terms, weights, part_idfs = present_terms(table, *of_terms)
    lists, bounds_of, living = packed_lists(table)[0], bounds_of_part(table), view(table, LIVING, np.uint64)
    bag = terms, weights, part_idfs, lists, bounds_of, lists[1][terms]
    bounds, clause_docs, clause_weights, query_weights = of_clauses
    clauses = bounds, clause_docs, clause_weights, query_weights, bounds[:-1].copy()
    ids = view(table, RANK, np.uint32), view(table, ORDER, np.uint32)
    results = counts, np.empty((1, 0), dtype=np.int32), np.empty((1, 0), dtype=np.float32), keys[None]
    if all_match:
        search_few(bag, clauses, docs, np.bool_(True), ids, k, results)
        return len(docs)
    depth = -1 if len(allowed) else depth_of(k + view(table, DEAD, np.int64)[0])
    words, excluded = allowed if len(allowed) else living, required_terms[:0]
    matches: int = search_clauses(required_numbers, excluded, bag, clauses, required_clauses, words, ids, k, depth, results)
    return matches


@compiled()
def _search_champions(table: Int64s, term: int, idf: float, k: int, rows: Rows) -> int:
    """Find the best documents for a term of query weight 1 in its champion list; NOT_SUPPORTED if that is too short."""
    row = np.int64(view(table, ROW_OF, np.int32)[term])
    champions = view(table, CHAMPIONS, np.int32)[row * WIDTH : (row + 1) * WIDTH]
    if row < 0 or k < 1 or k > WIDTH or champions[k - 1] < 0 or not idf > 0 or view(table, RATIOS, np.float64)[0] != 1:
        return NOT_SUPPORTED  # or the order of the list is that of other weights
    weights = view(table, CHAMPION_WEIGHTS, np.float64)[row * WIDTH : (row + 1) * WIDTH]
    least = np.float32(idf * weights[k - 1])
    if least <= np.float32(idf * view(table, CUTS, np.float64)[row]):  # a document outside the list may tie
        return NOT_SUPPORTED
    rank, candidates, score = view(table, RANK, np.uint32), np.empty(WIDTH, dtype=np.uint64), np.empty(1, dtype=np.float32)
    size = 0
    while size < WIDTH and champions[size] >= 0 and np.float32(idf * weights[size]) >= least:
        score[0] = idf * weights[size]
        candidates[size] = key_of(score, rank[champions[size]])
        size += 1
    counts, (docs, scores, keys) = np.empty(1, dtype=np.int64), rows
    write_best(candidates, size, k, view(table, ORDER, np.uint32), (counts, docs[None], scores[None], keys[None]))
    return counts[0]  # type: ignore[no-any-return]


@compiled()
def _all(table: Int64s) -> tuple[UInt64s, Int32s]:
    """Return `allowed` and `candidates` without a filter."""
    return view(table, LIVING, np.uint64)[:0], view(table, REST_DOCS, np.int32)[:0]


@compiled()
def _search_any(
    table: Int64s, terms: Int64s, query_weights: Float64s, idfs: Float64s, allowed: UInt64s, candidates: Int32s, k: int,
    threshold: np.float32, rows: Rows,
) -> int:  # fmt: skip
    """Find the best documents of a part that have at least one of some terms; see `find_text`.

    Args:
        table: The arrays of the part.
        terms: Numbers of the terms.
        query_weights: Query weights of the terms.
        idfs: Idf of each term.
        allowed: As in `kernel.search_bag`.
        candidates: int32; the allowed documents, if they are few.
        k: Greatest number of documents.
        threshold: A score below which no document is needed.
        rows: Outputs, `docs`, `scores` and `keys` of the part.
    """
    if len(terms) == 0:
        return 0
    living, has_filter = view(table, LIVING, np.uint64), len(allowed) > 0
    is_plain_term = len(terms) == 1 and query_weights[0] == 1.0 and not (has_filter or len(living))
    if is_plain_term and _search_champions(table, terms[0], idfs[0], k, rows) == k:
        return k
    rank, lists, bounds_of = view(table, RANK, np.uint32), packed_lists(table)[0], bounds_of_part(table)
    bag = terms, query_weights, idfs, lists, bounds_of, lists[1][terms]
    depth = -1 if has_filter else depth_of(k + view(table, DEAD, np.int64)[0])
    (docs, scores, keys), counts, ids = rows, np.empty(1, dtype=np.int64), (rank, view(table, ORDER, np.uint32))
    results = counts, docs[None], scores[None], keys[None]
    postings: Any = 0
    for term in terms if len(candidates) else terms[:0]:
        postings += lists[0][term + 1] - lists[0][term]
    if len(candidates) * len(terms) * LOOKUP_COST < postings:
        search_few(bag, None, candidates, np.bool_(False), ids, k, results)
    else:
        if has_filter:
            threshold = max(threshold, _champion_threshold(table, terms, query_weights, idfs, allowed, k))
        search_bag(bag, None, allowed if has_filter else living, ids, k, depth, threshold, results)
    returned: int = counts[0]
    return returned


@compiled()
def _champion_threshold(
    table: Int64s, terms: Int64s, query_weights: Float64s, idfs: Float64s, allowed: UInt64s, k: int
) -> np.float32:
    """Return a score that at least k allowed documents reach, as they are champions of one of the terms; or 0."""
    row_of, weights = view(table, ROW_OF, np.int32), view(table, CHAMPION_WEIGHTS, np.float64)
    champions, threshold = view(table, CHAMPIONS, np.int32), np.float32(0)
    lowered = view(table, RATIOS, np.float64)[1] * (1 - 1e-6)
    for i in range(len(terms)):
        row: Any = np.int64(row_of[terms[i]])
        passed: Any = 0
        for slot in range(row * WIDTH, (row + 1) * WIDTH if row >= 0 else row * WIDTH):
            doc = champions[slot]
            if doc < 0:
                break
            passed += np.int64(allowed[doc // WORD] >> np.uint64(doc % WORD) & ONE)
            if passed == k:
                threshold = max(threshold, np.float32(query_weights[i] * idfs[i] * weights[slot] * lowered))
                break
    return threshold
