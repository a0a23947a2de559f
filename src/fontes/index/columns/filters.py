"""Filters: the documents of an index that pass a condition, computed and cached for each segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.values import Explanation
from ...core.where import FilterCondition, Mask, condition
from ...storage.caches import Attached, Cached
from ..segment import Leaf, Segment
from .schema import Schema

KEPT = 16  # filters of a segment, and of an index


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
    """The documents that a search may return.

    Args:
        text: What it says.
        mask: One a document: whether it passes.
    """

    text: str
    mask: Mask

    def __len__(self) -> int:
        return len(self.docs)

    @cached_property
    def docs(self) -> NDArray[np.int32]:
        """The ordinals of the documents that pass, ascending."""
        return np.flatnonzero(self.mask).astype(np.int32)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """For each document its number among those that pass, -1 for one that does not."""
        places = np.full(len(self.mask), -1, dtype=np.int32)
        places[self.docs] = np.arange(len(self.docs), dtype=np.int32)
        return places


def filter_of(state: Columned, where: str | None) -> Filter | None:
    """The documents of one state of an index that a filter lets pass; None if there is no filter.

    Raises:
        ParameterError: It is none, or not one of these columns.
        IndexFormatError: A file is damaged.
    """
    if where is None:
        return None
    if not state.leaves and not state.schema.types:  # no documents, whose columns nobody knows
        return Filter(where, np.zeros(0, dtype=np.bool_))
    return _FILTERS.of(state).get(where, lambda: _filtered(state, where))


def left_out(state: Columned, where: str | None, doc: int) -> Explanation | None:
    """Explanation of a document that a filter leaves out; None for one that passes."""
    passed = filter_of(state, where)
    if passed is None or passed.mask[doc]:
        return None
    return Explanation(0.0, f"the document is left out: {where} does not hold of it")


def _filtered(state: Columned, where: str) -> Filter:
    parsed, masks = condition(where, state.schema.types), []
    for leaf in state.leaves:
        leaf.segment.columns.require(state.schema.types)
        mask = _MASKS.of(leaf.segment).get(parsed, lambda leaf=leaf: parsed.masks(leaf.segment.columns)[0])  # type: ignore[misc]
        masks.append(mask if leaf.dead is None else mask[leaf.live])
    mask = masks[0] if len(masks) == 1 else np.concatenate([np.zeros(0, bool), *masks])
    mask.flags.writeable = False
    return Filter(where, mask)


def _none(owner: Any) -> Cached[Any, Any]:
    return Cached(KEPT)


_FILTERS: Attached[Columned, Cached[str, Filter]] = Attached("filters", _none)
_MASKS: Attached[Segment, Cached[FilterCondition, Mask]] = Attached("masks", _none)
