"""Merging: the best documents of the parts of an index as one ranking, equal to that of an index of one segment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..index.parts import Part, Searchable
from ..index.segment import Segment
from ..storage.arrays import fixed
from ..storage.caches import LazyAttribute
from .keys import SORTED
from .parts import NO_DOCS, Parts

Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents of one topic and their scores, best first
Results = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # counts, documents, scores
UNSORTED = -1  # end of a row of keys that are in no order


class Merge:
    """Merges the best documents of the parts of an index.

    Args:
        parts: The parts.
    """

    def __init__(self, parts: Parts) -> None:
        from ..storage.pinned import pinned
        from . import merging_kernels

        self._loops = merging_kernels
        self._unsorted = np.full(len(parts), UNSORTED)
        self._arrays = [_arrays_of(part, len(parts) > 1) for part in parts]  # keeps alive what the tables point to
        self._tables = np.stack([pinned(list(zip(arrays, merging_kernels.TYPES, strict=True))) for arrays in self._arrays])

    @classmethod
    def of(cls, searched: Searchable) -> Merge:
        """Return the merge of an index's parts."""
        return _MERGES.of(searched)

    def best(self, part_counts: NDArray[np.int64], keys: NDArray[np.uint64], k: int) -> Ranked:
        """Return the best documents of one topic, as ordinals in the index, and their scores; see `best_of_topics`."""
        ends = self._unsorted if k <= SORTED else self._sorted(part_counts, keys)
        docs, scores = np.empty(k, np.int32), np.empty(k, np.float32)
        size = self._loops.merge_topic(self._tables, part_counts, keys, ends, k, docs, scores)
        return (docs, scores) if size == k else (docs[:size], scores[:size])

    def best_of_topics(self, part_counts: NDArray[np.int64], keys: NDArray[np.uint64], k: int) -> Results:
        """Return the number of results of each topic, and their documents and scores end to end.

        Args:
            part_counts: Number of keys of each topic in each part, (topics, parts).
            keys: The keys, unordered, (topics, parts, k or more).
            k: Greatest number of documents of a topic.
        """
        ends = self._sorted(part_counts, keys)
        counts = np.minimum(part_counts.sum(axis=1), k)
        total = int(counts.sum())
        docs, scores = np.empty(total, np.int32), np.empty(total, np.float32)
        self._loops.merge(self._tables, part_counts, keys, ends, counts, docs, scores)
        return counts, docs, scores

    def _sorted(self, part_counts: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
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


def _arrays_of(part: Part, compared: bool) -> list[NDArray[Any]]:
    leaf, ids = part.leaf, part.ids
    ordinals = NO_DOCS if leaf.dead is None else fixed(leaf.ordinals)
    names = (fixed(ids.blob), _ID_OFFSETS.of(part.segment)) if compared else (np.zeros(0, np.uint8), np.zeros(0, np.int64))
    return [ids.order, *names, ordinals, np.array([leaf.first])]


_MERGES: LazyAttribute[Searchable, Merge] = LazyAttribute("merge", lambda searched: Merge(searched.parts))
_ID_OFFSETS: LazyAttribute[Segment, NDArray[np.int64]] = LazyAttribute(
    "id_offsets", lambda segment: fixed(segment.ids.offsets.astype(np.int64))
)
