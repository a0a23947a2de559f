"""Compiled loops of whole searches: from the bytes of a query's terms to the best documents.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..index.payload_kernels import MAX_VALUE, phrase_frequency, rarest_first, row_readers
from ..index.positions import ROWS_PER_OFFSET as ROWS_BLOCK
from ..index.tables import position
from ..storage.compiled import compiled
from ..storage.pinned import view
from ..text.folding import fold_non_ascii, fold_token
from ..text.porter import STEP2, STEP3, STEP4, stem_word
from ..text.tokenizers import scan_text
from .conjunctions import collect, decode, key_of, reaches
from .filtered import LOOKUP_COST
from .impacts import CHAMPIONS as WIDTH
from .kernel import BLOCK, DEPTHS, ONE, SORTED, WINDOW, WORD, bound_blocks, is_positive, pruned, select, write_best
from .lookup import search_clauses, search_few
from .packed_kernels import add_weights, meet, read

CHUNK_DOCUMENTS = 512  # documents of the shortest list looked up at a time
NOT_SUPPORTED = -1  # returned if the query must be searched in another way
TYPES = (
    ("heads", np.uint64), ("blob", np.uint8), ("offsets", np.uint32),  # of the terms
    ("bounds", np.int64), ("list_offsets", np.int64), ("docs", np.uint32), ("codes", np.uint16), ("places", np.uint16),
    ("place_codes", np.uint8), ("widths", np.int64), ("weights", np.float32), ("idfs", np.float64),
    ("saturation", np.float64), ("rest_bounds", np.int64), ("rest_docs", np.int32),
    ("rest_weights", np.float32),  # of the postings
    ("best", np.float32), ("kth", np.uint16), ("positive", np.bool_), ("row_of", np.int32), ("rows", np.uint8),
    ("starts", np.uint32),  # their limits
    ("rank", np.uint32), ("order", np.uint32),  # of the documents' ids
    ("positions", np.uint8), ("position_offsets", np.uint32), ("position_bounds", np.uint32), ("firsts", np.uint32),
    ("lengths", np.float64), ("idf", np.float64), ("curve", np.float64),  # of phrases
    ("properties", np.int16), ("stops", np.uint8), ("stop_bounds", np.int64), ("pipeline", np.int64),  # of the analyzer
    ("shifts", np.int32),
    ("counts", np.float64),
    ("champions", np.int32), ("champion_weights", np.float32),  # of terms with rows
)  # fmt: skip
"""The arrays of an index, in the order in which they are pinned."""
(
    HEADS, BLOB, OFFSETS, BOUNDS, LIST_OFFSETS, DOCS, CODES, PLACES, PLACE_CODES, WIDTHS, WEIGHTS, IDFS, SATURATION,
    REST_BOUNDS, REST_DOCS, REST_WEIGHTS, BEST, KTH, POSITIVE, ROW_OF, ROWS, STARTS, RANK,
    ORDER, POSITIONS, POSITION_OFFSETS, POSITION_BOUNDS, FIRSTS, LENGTHS, IDF, CURVE, PROPERTIES, STOPS, STOP_BOUNDS,
    PIPELINE, SHIFTS, COUNTS, CHAMPIONS, CHAMPION_WEIGHTS,
) = range(len(TYPES))  # fmt: skip


@compiled()
def _find_numbers(table: Any, text: Any, offsets: Any, numbers: Any) -> Any:
    """Write the number and the offset of each term of a text; a zero byte ends a word, and the next has the next offset.

    Returns:
        The number of terms, NOT_SUPPORTED if it is not the length of `numbers`; and whether the index has all of them.
    """
    heads, blob, bounds = view(table, HEADS, np.uint64), view(table, BLOB, np.uint8), view(table, OFFSETS, np.uint32)
    count, start, offset, all_known = 0, 0, 0, True
    for end in range(len(text) + 1):
        if end == len(text) or text[end] == 0:
            if end > start:
                if count == len(numbers):
                    return NOT_SUPPORTED, all_known
                numbers[count], offsets[count] = position(heads, blob, bounds, text, start, end), offset
                all_known &= numbers[count] >= 0
                count += 1
            start, offset = end + 1, offset + 1
    return (count if count == len(numbers) else NOT_SUPPORTED), all_known


@compiled()
def _sort(numbers: Any) -> None:
    """Sort a few numbers in ascending order by insertion, with less code than numpy's sort."""
    for i in range(1, len(numbers)):
        number, slot = numbers[i], i
        while slot > 0 and numbers[slot - 1] > number:
            numbers[slot] = numbers[slot - 1]
            slot -= 1
        numbers[slot] = number


@compiled()
def _packed_lists(table: Any) -> Any:
    """Return the `lists` argument of `kernel.search`, and `row_of` and `starts` of `packed.PackedLists`."""
    curve = view(table, IDFS, np.float64), view(table, SATURATION, np.float64)
    rest = view(table, REST_BOUNDS, np.int64), view(table, REST_DOCS, np.int32), view(table, REST_WEIGHTS, np.float32)
    lists = (
        view(table, BOUNDS, np.int64), view(table, LIST_OFFSETS, np.int64), view(table, DOCS, np.uint32),
        view(table, CODES, np.uint16), view(table, PLACES, np.uint16), view(table, PLACE_CODES, np.uint8),
        view(table, WIDTHS, np.int64), view(table, WEIGHTS, np.float32), curve, rest,
    )  # fmt: skip
    windows, starts = (len(view(table, RANK, np.uint32)) + WINDOW - 1) // WINDOW, view(table, STARTS, np.uint32)
    return lists, view(table, ROW_OF, np.int32), starts.reshape(len(starts) // (windows + 1), windows + 1)


@compiled()
def _order_by_length(terms: Any, bounds: Any) -> Any:
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
def _meet_chunk(terms: Any, order: Any, packed: Any, first: Any, cursors: Any, docs: Any, places: Any, met: Any) -> Any:
    """Find the documents that are in all lists, in one chunk of the shortest list; return their number.

    Args:
        terms: The terms.
        order: The result of `_order_by_length`.
        packed: The result of `_packed_lists`.
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


@compiled()
def find_all(table: Any, text: bytes, words: int, query_weight: float, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Find the documents that have all of some distinct terms with equal query weights.

    Args:
        table: The result of `pinned` for the arrays of an index.
        text: The terms in UTF-8, separated by zero bytes.
        words: Number of terms.
        query_weight: Query weight of each term.
        k: Greatest number of documents; 0 only counts.
        docs: Output: the best documents, if k is at most SORTED.
        scores: Output: scores of the best documents, if k is at most SORTED.
        keys: Output: unordered keys of the best documents, if k is greater.

    Returns:
        The number of all matching documents, or NOT_SUPPORTED.
    """
    terms, offsets = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    count, all_known = _find_numbers(table, np.frombuffer(text, np.uint8), offsets, terms)
    if count == NOT_SUPPORTED:
        return NOT_SUPPORTED
    if not all_known:
        return 0
    _sort(terms)
    bounds = view(table, BOUNDS, np.int64)
    if words == 1:
        matches: int = bounds[terms[0] + 1] - bounds[terms[0]]
        weights = np.full(1, query_weight, dtype=np.float64)
        if k == 0 or _search_any(table, terms, weights, *_all(), k, docs, scores, keys) >= 0:
            return matches
    packed = _packed_lists(table)
    rank, best, score = view(table, RANK, np.uint32), np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, np.float32)
    order, total = _order_by_length(terms, bounds), 0
    length = bounds[terms[order[0]] + 1] - bounds[terms[order[0]]]
    places, chunk = (
        np.empty((words + 1, min(length, CHUNK_DOCUMENTS) + 1), dtype=np.int64),
        np.empty(min(length, CHUNK_DOCUMENTS) + 1, np.int32),
    )
    all_keys = np.empty(length if k > SORTED else 0, dtype=np.uint64)
    cursors, sums = np.zeros(words, dtype=np.int64), np.empty(len(chunk), dtype=np.float64)
    for first in range(0, length, CHUNK_DOCUMENTS):
        size = _meet_chunk(terms, order, packed, first, cursors, chunk, places, places[words])
        if k:
            sums[:size] = 0
            for i in range(words):
                row = packed[1][terms[i]]
                add_weights(packed[0], row, terms[i], query_weight, chunk[:size], places[i, :size], sums)
            for match in range(size):
                score[0] = sums[match]
                if k > SORTED or total + match < k or reaches(score, best):
                    collect(key_of(score, rank[chunk[match]]), total + match, k, best, all_keys)
        total += size
    _write_matches(best, all_keys, total, k, view(table, ORDER, np.uint32), docs, scores, keys)
    return total


@compiled()
def _write_matches(best: Any, all_keys: Any, total: int, k: int, order: Any, docs: Any, scores: Any, keys: Any) -> None:
    """Write the best documents for `conjunctions.collect`, or their keys if k is greater than SORTED."""
    if k > SORTED:
        size = select(all_keys, total, k)
        keys[:size] = all_keys[:size]
    else:
        decode(best, min(total, k), order, (docs, scores))


@compiled()
def find_phrase(table: Any, text: bytes, words: int, query_weight: float, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Find the documents that have an exact phrase.

    Args:
        table: As in `find_all`.
        text: As in `find_all`; n zero bytes between two terms mean that their offsets differ by n.
        words: Number of terms.
        query_weight: Query weight of the phrase.
        k: As in `find_all`.
        docs: As in `find_all`.
        scores: As in `find_all`.
        keys: As in `find_all`.

    Returns:
        The number of all matching documents, or NOT_SUPPORTED, also if bytes or weights are damaged.
    """
    of_words, terms = np.empty((2, words), dtype=np.int64), np.empty(words, dtype=np.int64)
    count, all_known = _find_numbers(table, np.frombuffer(text, np.uint8), of_words[1], of_words[0])
    if count == NOT_SUPPORTED:
        return NOT_SUPPORTED
    if not all_known:
        return 0
    count = 0
    for word in range(words):
        slot = 0
        while slot < count and terms[slot] != of_words[0, word]:
            slot += 1
        terms[slot], of_words[0, word] = of_words[0, word], slot
        count = max(count, slot + 1)
    terms = terms[:count]
    bounds, packed = view(table, BOUNDS, np.int64), _packed_lists(table)
    rows, row_offsets = view(table, POSITIONS, np.uint8), view(table, POSITION_OFFSETS, np.uint32)
    row_bounds, firsts = view(table, POSITION_BOUNDS, np.uint32), view(table, FIRSTS, np.uint32)
    order = _order_by_length(terms, bounds)
    length = bounds[terms[order[0]] + 1] - bounds[terms[order[0]]]
    places, chunk = (
        np.empty((count + 1, min(length, CHUNK_DOCUMENTS) + 1), dtype=np.int64),
        np.empty(min(length, CHUNK_DOCUMENTS) + 1, np.int32),
    )
    cursors, streams = np.zeros(words, dtype=np.int64), np.empty((3, words), dtype=np.int64)
    readers = row_readers(row_bounds, firsts, terms)
    of_words = rarest_first(of_words, readers)
    matched, tf, total = np.empty(64, dtype=np.int32), np.empty(64, dtype=np.int32), 0
    for first in range(0, length, CHUNK_DOCUMENTS):
        size = _meet_chunk(terms, order, packed, first, cursors, chunk, places, places[count])
        if total + size > len(matched):
            larger, larger_tf = np.empty(2 * (total + size), dtype=np.int32), np.empty(2 * (total + size), dtype=np.int32)
            larger[:total], larger_tf[:total] = matched[:total], tf[:total]
            matched, tf = larger, larger_tf
        for match in range(size):
            frequency = phrase_frequency(rows, row_offsets, ROWS_BLOCK, readers, places, match, of_words, 0, MAX_VALUE, streams)
            if frequency < 0:
                return NOT_SUPPORTED
            matched[total], tf[total] = chunk[match], frequency
            total += frequency > 0
    if k == 0:
        return total
    matches: int = _weigh_matches(table, matched[:total], tf[:total], query_weight, k, docs, scores, keys)
    return matches


@compiled()
def _weigh_matches(table: Any, matched: Any, tf: Any, query_weight: float, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Write the best documents for a clause with these frequencies; see `conjunctions.search_weighed`."""
    idfs, rank, lengths = view(table, IDF, np.float64), view(table, RANK, np.uint32), view(table, LENGTHS, np.float64)
    curve = view(table, CURVE, np.float64)
    factor, k1, delta, constant, b, mean = curve[0], curve[1], curve[2], curve[3], curve[4], curve[5]
    if len(matched) >= len(idfs):
        return NOT_SUPPORTED
    idf, is_finite = idfs[len(matched)], True
    best, score = np.zeros(min(k, SORTED), dtype=np.uint64), np.empty(1, dtype=np.float32)
    all_keys = np.empty(len(matched) if k > SORTED else 0, dtype=np.uint64)
    for i in range(len(matched)):
        length = constant + b * lengths[matched[i]] / mean
        weight = np.float32(idf * (factor * tf[i] / (tf[i] + k1 * length) + delta))
        is_finite &= np.isfinite(weight)
        score[0] = query_weight * weight
        if k > SORTED or i < k or reaches(score, best):
            collect(key_of(score, rank[matched[i]]), i, k, best, all_keys)
    _write_matches(best, all_keys, len(matched), k, view(table, ORDER, np.uint32), docs, scores, keys)
    return len(matched) if is_finite else NOT_SUPPORTED


@compiled()
def find_any(table: Any, text: bytes, words: int, query_weight: float, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Find the best documents that have at least one of some distinct terms with equal query weights.

    Args:
        table: As in `find_all`.
        text: As in `find_all`.
        words: As in `find_all`.
        query_weight: As in `find_all`.
        k: Greatest number of documents, at least 1.
        docs: Output: the best documents, if k is at most SORTED.
        scores: Output: scores of the best documents, if k is at most SORTED.
        keys: Output: unordered keys of the best documents, if k is greater.

    Returns:
        The number of documents written, or NOT_SUPPORTED.
    """
    terms, offsets = np.empty(words, dtype=np.int64), np.empty(words, dtype=np.int64)
    count, _ = _find_numbers(table, np.frombuffer(text, np.uint8), offsets, terms)
    if count == NOT_SUPPORTED:
        return NOT_SUPPORTED
    _sort(terms)
    unknown = 0
    while unknown < count and terms[unknown] < 0:
        unknown += 1
    weights = np.empty(count - unknown, dtype=np.float64)
    weights[:] = query_weight
    size: int = _search_any(table, terms[unknown:], weights, *_all(), k, docs, scores, keys)
    return size


@compiled()
def find_clauses(
    table: Any, text: bytes, sizes: Any, query_weight: float, k: int, counts: Any, docs: Any, scores: Any, keys: Any
) -> int:
    """Find the best documents that have required terms, lack others, and may have optional ones; all are distinct.

    Args:
        table: As in `find_all`.
        text: The required, the optional, then the excluded terms, as in `find_all`.
        sizes: Numbers of required, optional and excluded terms.
        query_weight: Query weight of each required and optional term.
        k: As in `find_any`.
        counts: Output: number of documents written.
        docs: As in `find_any`.
        scores: As in `find_any`.
        keys: As in `find_any`.

    Returns:
        The number of all matching documents, `lookup.UNKNOWN` without required terms; or NOT_SUPPORTED.
    """
    required, scoring, total = sizes[0], sizes[0] + sizes[1], sizes[0] + sizes[1] + sizes[2]
    numbers, offsets = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    count, _ = _find_numbers(table, np.frombuffer(text, np.uint8), offsets, numbers)
    if count == NOT_SUPPORTED:
        return NOT_SUPPORTED
    counts[0] = 0
    if np.any(numbers[:required] < 0):
        return 0
    terms, excluded = numbers[:scoring].copy(), numbers[scoring:]
    _sort(terms)
    terms, excluded = terms[terms >= 0], excluded[excluded >= 0]
    if len(terms) == 0:
        return 0
    lists, bounds_of = _packed_lists(table), _bounds_of(table)
    weights, topics = np.full(len(terms), query_weight, dtype=np.float64), np.array([0, len(terms)])
    ids, allowed = (view(table, RANK, np.uint32), view(table, ORDER, np.uint32)), np.empty(0, dtype=np.uint64)
    matches: int = search_clauses(
        numbers[:required], excluded, (topics, terms, weights), lists[0], bounds_of, allowed, ids, k, _depth_of(k),
        (counts, docs[None], scores[None], keys[None]),
    )  # fmt: skip
    return matches


@compiled()
def _bounds_of(table: Any) -> Any:
    """Return the `bounds_of` argument of `kernel.search`."""
    _, row_of, starts = _packed_lists(table)
    best, of_blocks = view(table, BEST, np.float32), (starts.shape[1] - 1) * (WINDOW // BLOCK)
    kth, rows = view(table, KTH, np.uint16), view(table, ROWS, np.uint8)
    return (
        best, kth.reshape(len(best), len(DEPTHS)), view(table, POSITIVE, np.bool_), row_of,
        rows.reshape(len(starts), of_blocks), starts,
    )  # fmt: skip


@compiled()
def _depth_of(k: int) -> int:
    """Return the column of `kth` to use, or -1."""
    depth = -1
    for i in range(len(DEPTHS) - 1, -1, -1):
        if k <= DEPTHS[i]:
            depth = i
    return depth


@compiled()
def find_text(table: Any, text: bytes, allowed: Any, candidates: Any, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Analyse a text in UTF-8, and find the best documents that have one of its terms; arguments as in `find_any`.

    Args:
        table: As in `find_all`.
        text: The text.
        allowed: As in `kernel.search`.
        candidates: int32; the allowed documents, if they are few, ascending; else empty.
        k: As in `find_any`.
        docs: As in `find_any`.
        scores: As in `find_any`.
        keys: As in `find_any`.

    Returns:
        As `find_any`.
    """
    terms, counts = np.empty(len(text) + 1, dtype=np.int64), np.empty(len(text) + 1, dtype=np.int64)
    size = find_terms(table, text, terms, counts)
    of_counts, weights = view(table, COUNTS, np.float64), np.empty(max(size, 0), dtype=np.float64)
    for i in range(size):
        if counts[i] >= len(of_counts):
            return NOT_SUPPORTED
        weights[i] = of_counts[counts[i]]
    if size < 0:
        return NOT_SUPPORTED
    best: int = _search_any(table, terms[:size], weights, allowed, candidates, k, docs, scores, keys)
    return best


@compiled()
def find_terms(table: Any, text: bytes, terms: Any, counts: Any) -> int:
    """Analyse a text in UTF-8, and write the numbers of its terms, ascending, and the count of each.

    Args:
        table: As in `find_all`.
        text: The text.
        terms: Output: numbers of the terms, with one entry more than the text has bytes.
        counts: Output: count of each term, of the same length.

    Returns:
        The number of terms, or NOT_SUPPORTED.
    """
    letters, pipeline = np.frombuffer(text, np.uint8), view(table, PIPELINE, np.int64)
    starts, ends = np.empty(len(letters) + 1, dtype=np.int32), np.empty(len(letters) + 1, dtype=np.int32)
    tokens = scan_text(pipeline[0], letters, 0, len(letters), view(table, PROPERTIES, np.int16), starts, ends, 0)
    heads, blob, bounds = view(table, HEADS, np.uint64), view(table, BLOB, np.uint8), view(table, OFFSETS, np.uint32)
    stops, stop_bounds, shifts = view(table, STOPS, np.uint8), view(table, STOP_BOUNDS, np.int64), view(table, SHIFTS, np.int32)
    codes, units, size = np.empty(len(letters) + 1, dtype=np.int32), np.empty(2 * len(letters) + 1, dtype=np.int32), 0
    for token in range(tokens):
        start, end = starts[token], ends[token]
        length = fold_token(letters, start, end, pipeline[1], pipeline[2], stops, stop_bounds, units)
        if length > 0 and pipeline[3]:
            length = stem_word(units, length, STEP2, STEP3, STEP4)
        elif length < 0 and pipeline[4]:
            length = fold_non_ascii(
                letters, start, end, pipeline[1], shifts, pipeline[3], (STEP2, STEP3, STEP4), stops, stop_bounds, codes, units
            )
        if length < 0:
            return NOT_SUPPORTED
        term = position(heads, blob, bounds, units, 0, length) if length else -1
        if term < 0:
            continue
        slot = 0
        while slot < size and terms[slot] < term:
            slot += 1
        if slot < size and terms[slot] == term:
            counts[slot] += 1
            continue
        for j in range(size, slot, -1):
            terms[j], counts[j] = terms[j - 1], counts[j - 1]
        terms[slot], counts[slot] = term, 1
        size += 1
    return size


@compiled()
def _search_champions(table: Any, term: int, k: int, docs: Any, scores: Any, keys: Any) -> int:
    """Find the best documents for a term of query weight 1 in its champion list; NOT_SUPPORTED if that is too short."""
    row = np.int64(view(table, ROW_OF, np.int32)[term])
    champions = view(table, CHAMPIONS, np.int32)[row * WIDTH : (row + 1) * WIDTH]
    if row < 0 or k < 1 or k > WIDTH or champions[k - 1] < 0:
        return NOT_SUPPORTED
    weights = view(table, CHAMPION_WEIGHTS, np.float32)[row * WIDTH : (row + 1) * WIDTH]
    rank, candidates, score = view(table, RANK, np.uint32), np.empty(WIDTH, dtype=np.uint64), np.empty(1, dtype=np.float32)
    size = 0
    while size < WIDTH and champions[size] >= 0 and weights[size] >= weights[k - 1]:
        score[0] = weights[size]
        candidates[size] = key_of(score, rank[champions[size]])
        size += 1
    counts = np.empty(1, dtype=np.int64)
    write_best(candidates, size, k, view(table, ORDER, np.uint32), (counts, docs[None], scores[None], keys[None]))
    best: int = counts[0]
    return best


@compiled()
def _all() -> Any:
    """Return the arguments `allowed` and `candidates` without a filter."""
    return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int32)


@compiled()
def _search_any(
    table: Any, terms: Any, query_weights: Any, allowed: Any, candidates: Any, k: int, docs: Any, scores: Any, keys: Any
) -> int:
    """Find the best documents that have at least one of some terms; see `find_text`."""
    if len(terms) == 0:
        return 0
    rank, lists, bounds_of = view(table, RANK, np.uint32), _packed_lists(table)[0], _bounds_of(table)
    bag = terms, query_weights, lists, bounds_of, lists[1][terms]
    if not is_positive(bag):
        return NOT_SUPPORTED
    counts, order = np.empty(1, dtype=np.int64), view(table, ORDER, np.uint32)
    results = counts, docs[None], scores[None], keys[None]
    postings: Any = 0
    for term in terms if len(candidates) else terms[:0]:
        postings += lists[0][term + 1] - lists[0][term]
    if len(candidates) * len(terms) * LOOKUP_COST < postings:
        topics = np.array([0, len(terms)]), terms, query_weights
        search_few(0, 1, topics, lists, bounds_of, candidates, (rank, order), k, -1, results)
        few: int = counts[0]
        return few
    has_filter = len(allowed) > 0
    is_plain_term = not has_filter and len(terms) == 1 and query_weights[0] == 1.0
    if is_plain_term and _search_champions(table, terms[0], k, docs, scores, keys) == k:
        return k
    sums, score, block_bounds = np.empty(WINDOW), np.empty(1, dtype=np.float32), np.zeros(bounds_of[4].shape[1], np.float32)
    keys_found = np.empty(k + k // 4 + 8 + WINDOW, dtype=np.uint64)
    threshold = bound_blocks(bag, len(terms), -1 if has_filter else _depth_of(k), block_bounds)
    if has_filter:
        threshold = max(threshold, _champion_threshold(table, terms, query_weights, allowed, k))
    size = pruned(bag, None, allowed, rank, k, block_bounds, threshold, sums, score, keys_found)
    write_best(keys_found, size, k, order, results)
    returned: int = counts[0]
    return returned


@compiled()
def _champion_threshold(table: Any, terms: Any, query_weights: Any, allowed: Any, k: int) -> Any:
    """Return a score that at least k allowed documents reach, as they are champions of one of the terms; or 0."""
    row_of, weights = view(table, ROW_OF, np.int32), view(table, CHAMPION_WEIGHTS, np.float32)
    champions, threshold = view(table, CHAMPIONS, np.int32), np.float32(0)
    for i in range(len(terms)):
        row: Any = np.int64(row_of[terms[i]])
        passed: Any = 0
        for slot in range(row * WIDTH, (row + 1) * WIDTH if row >= 0 else row * WIDTH):
            doc = champions[slot]
            if doc < 0:
                break
            passed += np.int64(allowed[doc // WORD] >> np.uint64(doc % WORD) & ONE)
            if passed == k:
                threshold = max(threshold, np.float32(query_weights[i] * weights[slot] * (1 - 1e-6)))
                break
    return threshold
