"""Merging: the best documents of the parts of an index as one ranking, equal to that of an index of one segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..index.columns import Filter
from ..index.segment import Part
from ..storage.arrays import fixed
from ..storage.caches import Attached
from .kernel import SORTED
from .weighting import Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.postings import Searchable
    from ..index.segment import SegmentIndex
    from ..index.state import State

NO_WORDS, NO_DOCS, NO_ENDS = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64)
Masks = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]
Buffers = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], NDArray[np.uint64]]
Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]
Results = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def parts_for(index: Searchable, weighting: Weighting) -> tuple[Part, ...]:
    """Return the parts of an index that a model searches one after the other; () if it searches the index as one.

    These are models whose weights are idf times a function of tf and length, since a segment's lists and bounds then outlive
    a change of the index.
    """
    parts: tuple[Part, ...] = getattr(index, "parts", ())
    return parts if parts and saturation_of(weighting, Statistics.of(parts[0])) is not None else ()


@dataclass(frozen=True, eq=False)
class PartFilter:
    """The living documents of each part that pass a filter.

    Args:
        masks: bool; for each part, whether each of its documents passes.
    """

    masks: Sequence[NDArray[np.bool_]]

    @cached_property
    def of_parts(self) -> list[Filter]:
        """The filter of each part."""
        return [Filter("", mask) for mask in self.masks]

    @cached_property
    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The masks in words of 64 documents end to end, and the start of each part."""
        return _joined([passing.words for passing in self.of_parts], NO_WORDS)

    @cached_property
    def docs(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The documents that pass end to end, ascending in each part, and the start of each part."""
        return _joined([passing.docs for passing in self.of_parts], NO_DOCS)


class Merge:
    """Merges the best documents of the parts of an index.

    Args:
        index: The index.
    """

    def __init__(self, index: State) -> None:
        from ..storage.pinned import pinned
        from . import merging_kernels

        self._loops, self._parts, self._documents = merging_kernels, index.parts, len(index)
        self._no_docs = NO_DOCS, np.zeros(len(self._parts) + 1, np.int64)
        self._arrays = [self._arrays_of(part) for part in self._parts]  # keeps alive what the tables point to
        self._tables = np.stack([pinned(list(zip(arrays, merging_kernels.TYPES, strict=True))) for arrays in self._arrays])

    @classmethod
    def of(cls, index: State) -> Merge:
        """Return the merge of an index's parts."""
        return _MERGES.of(index)

    @staticmethod
    def _arrays_of(part: Part) -> list[NDArray[Any]]:
        ordinals = NO_DOCS if part.leaf.dead is None else fixed(part.leaf.ordinals)
        ids = part.ids
        return [ids.order, fixed(ids.blob), _ID_OFFSETS.of(part.base), ordinals, np.array([part.leaf.first])]

    def masks(self, where: Filter | None, few: int) -> Masks:
        """Return the arguments of `find_text` for a filter.

        Args:
            where: The filter.
            few: Documents for one that passes, from which on the passing documents are looked up.
        """
        if where is None:
            return NO_WORDS, self._no_docs[1], *self._no_docs
        passing = part_filter(self._parts, where)
        docs = passing.docs if where.count * few < self._documents else self._no_docs
        return *passing.words, *docs

    def buffers(self, k: int, topics: int) -> Buffers:
        """Return empty results of all parts for some topics: counts, no documents and scores, keys."""
        rows = len(self._parts) * topics
        empty = np.empty((rows, 0), np.int32), np.empty((rows, 0), np.float32)
        return np.empty(rows, np.int64), *empty, np.zeros((rows, k), np.uint64)

    def best(self, part_counts: NDArray[np.int64], keys: NDArray[np.uint64], k: int) -> Ranked:
        """Return the best documents of one topic, as ordinals in the index, and their scores; see `best_of_topics`."""
        if k > SORTED:
            for row, size in zip(keys, part_counts.tolist(), strict=True):
                row[:size].sort()
            ends = part_counts
        else:
            ends = NO_ENDS
        docs, scores = np.empty(k, np.int32), np.empty(k, np.float32)
        size = self._loops.merge_topic(self._tables, part_counts, keys, ends, k, docs, scores)
        return (docs, scores) if size == k else (docs[:size], scores[:size])

    def best_of_topics(self, part_counts: NDArray[np.int64], keys: NDArray[np.uint64], k: int) -> Results:
        """Return the number of results of each topic, and their documents and scores end to end.

        Args:
            part_counts: Number of keys of each topic in the first part, then in the next.
            keys: Rows of keys in the same order, unordered; the rest of a row is 0.
            k: Greatest number of documents of a topic.
        """
        parts, width = len(self._parts), keys.shape[1]
        topics = len(part_counts) // parts
        if width > SORTED:
            keys.sort(axis=1)
        ends = np.full(len(part_counts), width) if width > SORTED else NO_ENDS
        counts = np.minimum(part_counts.reshape(parts, topics).sum(axis=0), k)
        total = int(counts.sum())
        docs, scores = np.empty(total, np.int32), np.empty(total, np.float32)
        self._loops.merge(self._tables, part_counts, keys, ends, counts, docs, scores)
        return counts, docs, scores


def part_filter(parts: Sequence[Part], where: Filter) -> PartFilter:
    """Return the documents of each part that live and pass a filter of the whole index."""
    filters = _PART_FILTERS.of(where)
    if not filters:
        filters.append(PartFilter([_passing(part, where) for part in parts]))
    return filters[0]


def _passing(part: Part, where: Filter) -> NDArray[np.bool_]:
    leaf = part.leaf
    passed = where.mask[leaf.first : leaf.first + leaf.documents]
    if leaf.dead is None:
        return passed
    mask = np.zeros(len(part), dtype=np.bool_)
    mask[leaf.live] = passed
    return mask


def _joined(arrays: Sequence[NDArray[Any]], none: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    return np.concatenate([none, *arrays]), np.cumsum([0, *map(len, arrays)])


def _id_offsets(base: SegmentIndex) -> NDArray[np.int64]:
    return fixed(base.ids.offsets.astype(np.int64))


_MERGES: Attached[State, Merge] = Attached("merge", Merge)
_ID_OFFSETS: Attached[SegmentIndex, NDArray[np.int64]] = Attached("id_offsets", _id_offsets)
_PART_FILTERS: Attached[Filter, list[PartFilter]] = Attached("part_filter", lambda where: [])
