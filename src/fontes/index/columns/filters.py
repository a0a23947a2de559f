"""Filters: the documents of an index that pass a condition, computed and cached for each segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ...core.arrays import Int32s, UInt64s
from ...core.values import Explanation
from ...core.where import FilterCondition, Mask, condition
from ...storage.arrays import fixed
from ...storage.caches import Cached, LazyAttribute
from ..segment import Leaf, Segment
from .schema import Schema

CACHE_SIZE = 16  # cached filters of a segment, and of an index


class Columned(Protocol):
    """One state of an index, as filters need it."""

    @property
    def leaves(self) -> Sequence[Leaf]:
        """Its segments."""
        ...

    @property
    def schema(self) -> Schema:
        """Its columns."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Filter:
    """The documents that pass a filter.

    Args:
        text: The filter.
        mask: bool, (documents,).
    """

    text: str
    mask: Mask

    @cached_property
    def docs(self) -> Int32s:
        """int32, ordinals of the documents that pass, ascending."""
        return fixed(np.flatnonzero(self.mask).astype(np.int32))

    @cached_property
    def words(self) -> UInt64s:
        """uint64, (documents / 64, rounded up): a bit for each document, the lowest first; 1 for those that pass."""
        words = np.zeros(-(-len(self.mask) // 64), dtype=np.uint64)
        words.view(np.uint8)[: -(-len(self.mask) // 8)] = np.packbits(self.mask, bitorder="little")
        return fixed(words)

    @cached_property
    def count(self) -> int:
        """Number of documents that pass."""
        return int(np.count_nonzero(self.mask))


def filter_of(state: Columned, where: str | None) -> Filter | None:
    """Return the documents of a state that pass a filter; None without a filter.

    Raises:
        ParameterError: The filter is invalid, or its columns are unknown.
        IndexFormatError: A file is damaged.
    """
    if where is None:
        return None
    if not state.leaves and not state.schema.types:  # without documents no column is known
        return Filter(where, np.zeros(0, dtype=np.bool_))
    return _FILTERS.of(state).get(where, lambda: _filtered(state, where))


def explain_exclusion(state: Columned, where: str | None, doc: int) -> Explanation | None:
    """Explain that a filter excludes a document; None for one that passes."""
    passing = filter_of(state, where)
    if passing is None or passing.mask[doc]:
        return None
    return Explanation(0.0, f"excluded by the filter {where}")


def _filtered(state: Columned, where: str) -> Filter:
    parsed, masks = condition(where, state.schema.types), []
    for leaf in state.leaves:
        leaf.segment.columns.require(state.schema.types)
        mask = _MASKS.of(leaf.segment).get(parsed, lambda leaf=leaf: parsed.passed(leaf.segment.columns))  # type: ignore[misc]
        masks.append(mask if leaf.dead is None else mask[leaf.live])
    mask = masks[0] if len(masks) == 1 else np.concatenate([np.zeros(0, bool), *masks])
    mask.flags.writeable = False
    return Filter(where, mask)


_FILTERS: LazyAttribute[Columned, Cached[str, Filter]] = LazyAttribute("filters", lambda state: Cached(CACHE_SIZE))
_MASKS: LazyAttribute[Segment, Cached[FilterCondition, Mask]] = LazyAttribute("masks", lambda segment: Cached(CACHE_SIZE))
