"""Merging: the best documents of the parts of an index as one ranking, equal to that of an index of one segment."""

from __future__ import annotations

import numpy as np

from ..core.arrays import AnyArray, Float32s, Int32s, Int64s, UInt64s
from ..index.parts import Part
from ..index.segment import Segment
from ..storage.arrays import fixed
from ..storage.caches import LazyAttribute
from .keys import SORTED, UNSORTED

Ranked = tuple[Int32s, Float32s]  # documents of one topic and their scores, best first
Results = tuple[Int64s, Int32s, Float32s]  # counts, documents, scores


def best(tables: Int64s, part_counts: Int64s, keys: UInt64s, k: int) -> Ranked:
    """Return the best documents of one topic, as ordinals in the index, and their scores; see `best_of_topics`."""
    from . import merging_kernels

    docs, scores = np.empty(k, np.int32), np.empty(k, np.float32)
    size = merging_kernels.merge_topic(tables, part_counts, keys, _sorted(part_counts, keys), k, docs, scores)
    return (docs, scores) if size == k else (docs[:size], scores[:size])


def best_of_topics(tables: Int64s, part_counts: Int64s, keys: UInt64s, k: int) -> Results:
    """Return the number of results of each topic, and their documents and scores end to end.

    Args:
        tables: The parts of the index, as `direct_tables` has them.
        part_counts: Number of keys of each topic in each part, (topics, parts).
        keys: The keys, unordered, (topics, parts, k or more).
        k: Greatest number of documents of a topic.
    """
    from . import merging_kernels

    ends = _sorted(part_counts, keys)
    counts = np.minimum(part_counts.sum(axis=1), k)
    total = int(counts.sum())
    docs, scores = np.empty(total, np.int32), np.empty(total, np.float32)
    merging_kernels.merge(tables, part_counts, keys, ends, counts, docs, scores)
    return counts, docs, scores


def _sorted(part_counts: Int64s, keys: UInt64s) -> Int64s:
    """Sort long rows of keys in ascending order, by numpy; return the end of each such row, or UNSORTED.

    In batches the rest of a row is 0.
    """
    ends = np.full(part_counts.shape, UNSORTED, dtype=np.int64)
    if keys.shape[-1] <= SORTED:
        return ends
    rest = part_counts
    if part_counts.ndim > 1:  # the first part has most of the results
        keys[:, 0].sort(axis=1)
        ends[:, 0], rest = keys.shape[-1], part_counts.copy()
        rest[:, 0] = 0
    for row in zip(*np.nonzero(rest > SORTED), strict=True):
        size = part_counts[row]
        keys[row][:size].sort()
        ends[row] = size
    return ends


def merged_arrays(part: Part, compared: bool) -> dict[str, AnyArray]:
    """Return the arrays of a part that a merge reads beside those of a search; `compared`: there are other parts."""
    arrays: dict[str, AnyArray] = {"first": np.array([part.leaf.first])}
    if part.dead is not None:
        arrays["ordinals"] = fixed(part.leaf.ordinals)
    if compared:
        arrays |= {"id_blob": fixed(part.ids.blob), "id_offsets": _ID_OFFSETS.of(part.segment)}
    return arrays


_ID_OFFSETS: LazyAttribute[Segment, Int64s] = LazyAttribute(
    "id_offsets", lambda segment: fixed(segment.ids.offsets.astype(np.int64))
)
