"""The arrays of a part of an index, as compiled loops read them by address, and the terms of queries in them.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..index.packed_kernels import BLOCK, DEPTHS, WINDOW
from ..index.tables import position
from ..storage.compiled import compiled
from ..storage.pinned import view
from ..text.folding import fold_non_ascii, fold_token
from ..text.porter import STEP2, STEP3, STEP4, stem_word
from ..text.tokenizers import scan_text
from .kernel import NOT_SUPPORTED, ONE, UNKNOWN_IDF, WORD

if TYPE_CHECKING:
    from ..core.arrays import Bytes, Float32s, Float64s, Int32s, Int64s, UInt64s
    from ..index.packed_kernels import Packed
    from .kernel import BoundsOf, Results

    Rows: TypeAlias = tuple[Int32s, Float32s, UInt64s]  # documents, scores and keys of a part, whose ends meet in `Results`

TYPES = (
    ("heads", np.uint64), ("blob", np.uint8), ("offsets", np.uint32),  # of the terms
    ("bounds", np.int64), ("list_offsets", np.int64), ("docs", np.uint32), ("codes", np.uint16), ("places", np.uint16),
    ("place_codes", np.uint8), ("widths", np.int64), ("weights", np.float32), ("saturation", np.float64),
    ("rest_bounds", np.int64), ("rest_docs", np.int32), ("rest_values", np.float64),  # of the postings
    ("best", np.float32), ("kth", np.uint16), ("positive", np.bool_), ("row_of", np.int32), ("rows", np.uint8),
    ("starts", np.uint32), ("ratios", np.float64),  # their limits
    ("rank", np.uint32), ("order", np.uint32), ("id_blob", np.uint8), ("id_offsets", np.int64),  # of the documents' ids
    ("ordinals", np.int32), ("first", np.int64),  # of the documents in the index: of each, or of the first
    ("idfs", np.float64), ("whole_df", np.int64), ("dead_terms", np.int64), ("dead_df", np.int64),  # of document frequencies
    ("living", np.uint64), ("dead", np.int64),  # of deletions
    ("positions", np.uint8), ("position_offsets", np.uint32), ("position_bounds", np.uint32), ("firsts", np.uint32),
    ("lengths", np.float64), ("curve", np.float64),  # of phrases
    ("properties", np.int16), ("stops", np.uint8), ("stop_bounds", np.int64), ("pipeline", np.int64),  # of the analyzer
    ("shifts", np.int32),
    ("counts", np.float64),
    ("champions", np.int32), ("champion_weights", np.float64), ("cuts", np.float64),  # of terms with rows
)  # fmt: skip
"""The arrays of an index, in the order in which they are pinned."""
(
    HEADS, BLOB, OFFSETS, BOUNDS, LIST_OFFSETS, DOCS, CODES, PLACES, PLACE_CODES, WIDTHS, WEIGHTS, SATURATION, REST_BOUNDS,
    REST_DOCS, REST_VALUES, BEST, KTH, POSITIVE, ROW_OF, ROWS, STARTS, RATIOS, RANK, ORDER, ID_BLOB, ID_OFFSETS, ORDINALS,
    FIRST, IDFS, WHOLE_DF, DEAD_TERMS, DEAD_DF, LIVING, DEAD, POSITIONS, POSITION_OFFSETS, POSITION_BOUNDS, FIRSTS, LENGTHS,
    CURVE, PROPERTIES, STOPS, STOP_BOUNDS, PIPELINE, SHIFTS, COUNTS, CHAMPIONS, CHAMPION_WEIGHTS, CUTS,
) = range(len(TYPES))  # fmt: skip


@compiled()
def find_numbers(tables: Int64s, text: Bytes, offsets: Int64s, numbers: Int64s) -> int:
    """Write the number of each term of a text in each part, and its offset; a zero byte ends a word, and adds 1 to the offset.

    Args:
        tables: The result of `pinned` for the arrays of each part.
        text: The terms in UTF-8.
        offsets: Output: offset of each term.
        numbers: Output: a row for each part with numbers of the terms, -1 for none.

    Returns:
        The number of terms, or NOT_SUPPORTED if it is not the length of `offsets`.
    """
    count, start, offset = 0, 0, 0
    for end in range(len(text) + 1):
        if end == len(text) or text[end] == 0:
            if end > start:
                if count == len(offsets):
                    return NOT_SUPPORTED
                offsets[count] = offset
                for part in range(len(tables)):
                    heads, blob = view(tables[part], HEADS, np.uint64), view(tables[part], BLOB, np.uint8)
                    numbers[part, count] = position(heads, blob, view(tables[part], OFFSETS, np.uint32), text, start, end)
                count += 1
            start, offset = end + 1, offset + 1
    return count if count == len(offsets) else NOT_SUPPORTED


@compiled()
def sort_terms(numbers: Int64s, idfs: Float64s) -> None:
    """Sort a few numbers in ascending order by insertion, and their idfs with them, with less code than numpy's sort."""
    for i in range(1, len(numbers)):
        number, idf, slot = numbers[i], idfs[i], i
        while slot > 0 and numbers[slot - 1] > number:
            numbers[slot], idfs[slot] = numbers[slot - 1], idfs[slot - 1]
            slot -= 1
        numbers[slot], idfs[slot] = number, idf


@compiled()
def packed_lists(table: Int64s) -> Packed:
    """Return the `lists` argument of `kernel.search_bag`, and `row_of` and `starts` of `packed.PackedLists`."""
    saturation = view(table, SATURATION, np.float64)
    rest = view(table, REST_BOUNDS, np.int64), view(table, REST_DOCS, np.int32), view(table, REST_VALUES, np.float64)
    lists = (
        view(table, BOUNDS, np.int64), view(table, LIST_OFFSETS, np.int64), view(table, DOCS, np.uint32),
        view(table, CODES, np.uint16), view(table, PLACES, np.uint16), view(table, PLACE_CODES, np.uint8),
        view(table, WIDTHS, np.int64), view(table, WEIGHTS, np.float32), saturation, rest,
    )  # fmt: skip
    windows, starts = (len(view(table, RANK, np.uint32)) + WINDOW - 1) // WINDOW, view(table, STARTS, np.uint32)
    return lists, view(table, ROW_OF, np.int32), starts.reshape(len(starts) // (windows + 1), windows + 1)


@compiled()
def df_of(table: Int64s, term: int) -> Any:
    """Return the number of living documents that have a term: in this part, or in the whole index if `whole_df` is set."""
    whole, dead_terms = view(table, WHOLE_DF, np.int64), view(table, DEAD_TERMS, np.int64)
    if len(whole):
        return whole[term]
    bounds = view(table, BOUNDS, np.int64)
    df = bounds[term + 1] - bounds[term]
    if len(dead_terms):
        at = np.searchsorted(dead_terms, term)
        if at < len(dead_terms) and dead_terms[at] == term:
            df -= view(table, DEAD_DF, np.int64)[at]
    return df


@compiled()
def write_idf(table: Int64s, df: int, idfs: Float64s, number: int) -> int:
    """Write the idf of a df; return 0, or UNKNOWN_IDF - df if it is not computed yet."""
    df, values = max(df, 1), view(table, IDFS, np.float64)
    idfs[number] = values[df] if len(values) else 1.0
    return UNKNOWN_IDF - df if idfs[number] == 0 else 0


@compiled()
def write_idfs(tables: Int64s, numbers: Int64s, idfs: Float64s) -> Any:
    """Write the idf of each term, given by its number in each part; return as `_write_idf`."""
    for i in range(len(idfs)):
        df: Any = 0
        for part in range(len(tables)):
            if numbers[part, i] >= 0:
                df = df_of(tables[part], numbers[part, i]) + (df if len(view(tables[part], WHOLE_DF, np.int64)) == 0 else 0)
        unknown = write_idf(tables[0], df, idfs, i)
        if unknown:
            return unknown
    return 0


@compiled()
def present_terms(table: Int64s, numbers: Int64s, query_weights: Float64s, idfs: Float64s) -> tuple[Int64s, Float64s, Float64s]:
    """Return the numbers, query weights and idfs of the terms that a part has; idfs are 1 if its postings have weights."""
    terms, weights, part_idfs, size = np.empty_like(numbers), np.empty_like(query_weights), np.empty_like(idfs), 0
    has_curve = len(view(table, SATURATION, np.float64)) > 0
    for i in range(len(numbers)):
        if numbers[i] >= 0:
            terms[size], weights[size], part_idfs[size] = numbers[i], query_weights[i], idfs[i] if has_curve else 1.0
            size += 1
    return terms[:size], weights[:size], part_idfs[:size]


@compiled()
def keep_living(table: Int64s, docs: Int32s, size: int, places: Int64s) -> int:
    """Move the living documents to the front, and their postings in each list; return their number."""
    living = view(table, LIVING, np.uint64)
    if len(living) == 0:
        return size
    kept = 0
    for i in range(size):
        if living[docs[i] // WORD] >> np.uint64(docs[i] % WORD) & ONE:
            docs[kept] = docs[i]
            for row in range(len(places)):
                places[row, kept] = places[row, i]
            kept += 1
    return kept


@compiled()
def bounds_of_part(table: Int64s) -> BoundsOf:
    """Return the `bounds_of` argument of `kernel.search_bag`."""
    _, row_of, starts = packed_lists(table)
    best, of_blocks = view(table, BEST, np.float32), (starts.shape[1] - 1) * (WINDOW // BLOCK)
    kth, rows = view(table, KTH, np.uint16), view(table, ROWS, np.uint8)
    return (
        best, kth.reshape(len(best), len(DEPTHS)), view(table, POSITIVE, np.bool_), row_of,
        rows.reshape(len(starts), of_blocks), starts, view(table, RATIOS, np.float64),
    )  # fmt: skip


@compiled()
def depth_of(k: int) -> int:
    """Return the column of `kth` to use, or -1."""
    depth = -1
    for i in range(len(DEPTHS) - 1, -1, -1):
        if k <= DEPTHS[i]:
            depth = i
    return depth


@compiled()
def find_terms(tables: Int64s, text: bytes, numbers: Int64s, counts: Int64s) -> int:
    """Analyse a text in UTF-8, and write the number of each of its terms in each part, ascending by term, and its count.

    Args:
        tables: As in `find_text`.
        text: The text.
        numbers: Output: a row for each part with numbers of the terms, -1 for none; one entry more than the text has bytes.
        counts: Output: count of each term, of the same length.

    Returns:
        The number of terms that a part has, or NOT_SUPPORTED.
    """
    parts, table, last = len(tables), tables[0], len(text)
    letters, pipeline = np.frombuffer(text, np.uint8), view(table, PIPELINE, np.int64)
    width, size = len(letters) + 1, 0
    scratch = np.empty((11 if parts > 1 else 5) * width, dtype=np.int32)  # one allocation takes less time than several
    starts, ends, codes, units = (
        scratch[:width],
        scratch[width : 2 * width],
        scratch[2 * width : 3 * width],
        scratch[3 * width :],
    )
    kept, edges, written = units[2 * width :], units[6 * width :], 0  # bytes of the terms, and where each begins and ends
    tokens = scan_text(pipeline[0], letters, 0, len(letters), view(table, PROPERTIES, np.int16), starts, ends, 0)
    stops, stop_bounds, shifts = view(table, STOPS, np.uint8), view(table, STOP_BOUNDS, np.int64), view(table, SHIFTS, np.int32)
    for token in range(tokens):
        start, end = np.int64(starts[token]), np.int64(ends[token])  # as in a build
        length = fold_token(letters, start, end, pipeline[1], pipeline[2], stops, stop_bounds, units)
        if length > 0 and pipeline[3]:
            length = stem_word(units, length, STEP2, STEP3, STEP4)
        elif length < 0 and pipeline[4]:
            length = fold_non_ascii(
                letters, start, end, pipeline[1], shifts, pipeline[3], (STEP2, STEP3, STEP4), stops, stop_bounds, codes, units
            )
        if length < 0:
            return NOT_SUPPORTED
        is_known = False
        for part in range(parts if length else 0):
            heads, blob = view(tables[part], HEADS, np.uint64), view(tables[part], BLOB, np.uint8)
            bounds = view(tables[part], OFFSETS, np.uint32)
            numbers[part, last] = position(heads, blob, bounds, units, 0, length)
            is_known |= numbers[part, last] >= 0
        if not is_known:
            continue
        slot, is_new = 0, True
        if parts == 1:
            while slot < size and numbers[0, slot] < numbers[0, last]:
                slot += 1
            is_new = slot == size or numbers[0, slot] != numbers[0, last]
        else:
            while slot < size:
                side = _compare(kept, edges[2 * slot], edges[2 * slot + 1], units, length)
                if side >= 0:
                    is_new = side > 0
                    break
                slot += 1
        if not is_new:
            counts[slot] += 1
            continue
        for j in range(size, slot, -1):
            counts[j] = counts[j - 1]
            for part in range(parts):
                numbers[part, j] = numbers[part, j - 1]
            if parts > 1:
                edges[2 * j], edges[2 * j + 1] = edges[2 * j - 2], edges[2 * j - 1]
        counts[slot] = 1
        for part in range(parts):
            numbers[part, slot] = numbers[part, last]
        if parts > 1:
            edges[2 * slot], edges[2 * slot + 1] = written, written + length
            kept[written : written + length] = units[:length]
            written += length
        size += 1
    return size


@compiled()
def _compare(kept: Int32s, start: int, end: int, units: Int32s, length: int) -> int:
    """Return -1, 0 or 1 as the bytes of a term come before those of another, equal them, or come after them."""
    for i in range(min(end - start, length)):
        if kept[start + i] != units[i]:
            return -1 if kept[start + i] < units[i] else 1
    return (end - start > length) - (end - start < length)


@compiled()
def weigh_text(tables: Int64s, text: bytes, numbers: Int64s, weights: Float64s, idfs: Float64s) -> int:
    """Write the number of each term of a text in each part, its query weight and its idf.

    Returns the number of terms; NOT_SUPPORTED; or UNKNOWN_IDF - df.
    """
    counts, of_counts = np.empty(len(text) + 1, dtype=np.int64), view(tables[0], COUNTS, np.float64)
    size: int = find_terms(tables, text, numbers, counts)
    for i in range(size):
        if counts[i] >= len(of_counts):
            return NOT_SUPPORTED
        weights[i] = of_counts[counts[i]]
    unknown: int = write_idfs(tables, numbers, idfs[:size]) if size > 0 else 0
    return unknown if unknown else size


@compiled()
def rows_of_part(part: int, parts: int, results: Results) -> Rows:
    """Return the rows of a part in the outputs."""
    _, docs, scores, keys = results
    size, width = len(docs) // parts, len(keys) // parts
    rows = slice(part * size, (part + 1) * size)
    return docs[rows], scores[rows], keys[part * width : (part + 1) * width]
