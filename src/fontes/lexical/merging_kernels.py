"""Compiled merge of the best documents of the parts of an index.

Import this module only when loops are compiled; see `storage.compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..index.tables import compare_bytes
from ..storage.compiled import compiled
from ..storage.pinned import view
from .direct_tables import FIRST, ID_BLOB, ID_OFFSETS, ORDER, ORDINALS
from .keys import UNSORTED, sort_keys

if TYPE_CHECKING:
    from ..core.arrays import Float32s, Int32s, Int64s, UInt64s
    from .kernel import Results


@compiled()
def merge_parts(tables: Int64s, k: int, results: Results) -> None:
    """Write the best `k` documents of all parts, at most SORTED; nothing if the only part has written them, or without `docs`.

    Args:
        tables: As in `merge`.
        k: As in `merge_topic`.
        results: As in `direct_kernels.find_all`: numbers of keys, documents, scores, keys.
    """
    part_counts, docs, scores, keys = results
    if len(keys) and len(docs):
        ends = np.full(len(tables), UNSORTED)
        part_counts[0] = merge_topic(tables, part_counts, keys.reshape(len(tables), k), ends, k, docs, scores)


@compiled()
def merge(
    tables: Int64s, part_counts: Int64s, keys: UInt64s, ends: Int64s, counts: Int64s, docs: Int32s, scores: Float32s
) -> None:
    """Merge the best documents of the parts for each topic, by score and then by id, both descending.

    Args:
        tables: The result of `pinned` for the arrays of each part.
        part_counts: Number of keys of each topic in each part, (topics, parts).
        keys: The keys, (topics, parts, columns); see `kernel.search_bag`.
        ends: (topics, parts); end of the keys of each row if these are ascending; below 0: they are sorted here.
        counts: Number of results of each topic.
        docs: Output: ordinals of the documents of all topics end to end.
        scores: Output: scores of the documents.
    """
    start = 0
    for topic in range(len(counts)):
        start += merge_topic(tables, part_counts[topic], keys[topic], ends[topic], counts[topic], docs[start:], scores[start:])


@compiled()
def merge_topic(
    tables: Int64s, part_counts: Int64s, keys: UInt64s, ends: Int64s, k: int, docs: Int32s, scores: Float32s
) -> int:
    """Merge the best `k` documents of the parts for one topic; return their number. Arguments as in `merge`."""
    parts, bits, written = len(tables), scores.view(np.uint32), 0
    heads = np.zeros(parts, dtype=np.int64)
    for part in range(parts):
        if ends[part] < 0:
            sort_keys(keys[part], part_counts[part])
    while written < k:
        best, best_key = -1, np.uint64(0)
        for part in range(parts):
            if heads[part] == part_counts[part]:
                continue
            key = keys[part, ends[part] - 1 - heads[part] if ends[part] >= 0 else heads[part]]
            if best >= 0 and key >> np.uint64(32) == best_key >> np.uint64(32):
                is_better = _compare_ids(tables[part], key, tables[best], best_key) > 0
            else:
                is_better = best < 0 or key > best_key
            if is_better:
                best, best_key = part, key
        if best < 0:
            break
        heads[best] += 1
        doc = np.int64(view(tables[best], ORDER, np.uint32)[best_key & np.uint64(0xFFFFFFFF)])
        ordinals = view(tables[best], ORDINALS, np.int32)
        docs[written] = ordinals[doc] if len(ordinals) else view(tables[best], FIRST, np.int64)[0] + doc
        half = np.uint32(best_key >> np.uint64(32))
        bits[written] = half & np.uint32(0x7FFFFFFF) if half >> np.uint32(31) else ~half
        written += 1
    return written


@compiled()
def _compare_ids(table: Int64s, key: np.uint64, other_table: Int64s, other_key: np.uint64) -> int:
    """Compare the ids of two documents, given as keys in two parts, as `compare_bytes` does."""
    doc = np.int64(view(table, ORDER, np.uint32)[key & np.uint64(0xFFFFFFFF)])
    other = np.int64(view(other_table, ORDER, np.uint32)[other_key & np.uint64(0xFFFFFFFF)])
    bounds, other_bounds = view(table, ID_OFFSETS, np.int64), view(other_table, ID_OFFSETS, np.int64)
    return compare_bytes(
        view(table, ID_BLOB, np.uint8), bounds[doc], bounds[doc + 1],
        view(other_table, ID_BLOB, np.uint8), other_bounds[other], other_bounds[other + 1],
    )  # fmt: skip
