"""Parts: the segments of an index, which a model searches one after the other, or the index as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.depth import at_most
from ..index.columns import Filter
from ..index.segment import Part
from ..storage.arrays import fixed
from ..storage.caches import Attached, weakly
from .impacts import count_of_any, documents_of_any
from .weighting import Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.postings import Searchable

NO_WORDS, NO_DOCS = fixed(np.zeros(0, np.uint64)), fixed(np.zeros(0, np.int32))
Parts = tuple["Searchable", ...]
Masks = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]


def parts_for(searched: Searchable, weighting: Weighting) -> Parts:
    """Return the parts that a model searches one after the other: the segments, the largest first, or the index as one.

    Segments are searched by models whose weights are idf times a function of tf and length, since their lists and bounds then
    outlive a change of the index.
    """
    parts: tuple[Part, ...] = getattr(searched, "parts", ())
    return parts if parts and saturation_of(weighting, Statistics.of(parts[0])) is not None else (searched,)


def dead_of(part: Searchable) -> NDArray[np.bool_] | None:
    """Return whether each document of a part is deleted; None if none is."""
    return part.leaf.dead if isinstance(part, Part) else None


def ordinals_of(part: Searchable, docs: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the ordinals in the index of some living documents of a part."""
    return part.ordinals(docs) if isinstance(part, Part) else docs


def documents_in(part: Searchable, ordinals: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return which of some documents, given as ordinals in the index, a part has, and their numbers in the part."""
    if not isinstance(part, Part):
        return np.arange(len(ordinals)), ordinals.astype(np.int32)
    leaf = part.leaf
    rows = np.flatnonzero((ordinals >= leaf.first) & (ordinals < leaf.first + leaf.documents))
    docs = ordinals[rows].astype(np.int32) - np.int32(leaf.first)
    return rows, docs if leaf.dead is None else leaf.live[docs].astype(np.int32)


def numbers_in(parts: Parts, terms: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each term in each part, (parts, terms); -1 for a term that it lacks."""
    numbers = [[part.term_number(term) for term in terms] for part in parts]
    return np.array(numbers, dtype=np.int64).reshape(len(parts), len(terms))


def living_df(parts: Parts, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of living documents of the whole index that have each term, given by its number in each part."""
    df = np.zeros(numbers.shape[1], dtype=np.int64)
    for part, of_part in zip(parts, numbers, strict=True):
        if isinstance(part, Part):
            df += part.living_df(of_part)
        else:
            present = of_part >= 0
            df[present] += Statistics.of(part).counts_of(of_part[present])
    return df


@dataclass(frozen=True, eq=False)
class PartFilter:
    """The living documents of each part that pass a filter.

    Args:
        filters: The filter of each part.
    """

    filters: Sequence[Filter]

    @cached_property
    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The masks in words of 64 documents end to end, and the start of each part."""
        return _joined([passing.words for passing in self.filters], NO_WORDS)

    @cached_property
    def docs(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The documents that pass end to end, ascending in each part, and the start of each part."""
        return _joined([passing.docs for passing in self.filters], NO_DOCS)


def part_filter(parts: Parts, where: Filter) -> PartFilter:
    """Return the documents of each part that live and pass a filter of the whole index."""
    filters = _PART_FILTERS.of(where)
    key = isinstance(parts[0], Part)
    if key not in filters:
        filters[key] = PartFilter([_passing(part, where) for part in parts])
    return filters[key]


def masks_of(parts: Parts, where: Filter | None, few: int) -> Masks:
    """Return the arguments of `direct_kernels.find_text` for a filter.

    Args:
        parts: The parts.
        where: The filter.
        few: Documents for one that passes, from which on the passing documents are looked up.
    """
    nowhere = np.zeros(len(parts) + 1, np.int64)
    if where is None:
        return NO_WORDS, nowhere, NO_DOCS, nowhere
    passing = part_filter(parts, where)
    return *passing.words, *(passing.docs if where.count * few < len(where.mask) else (NO_DOCS, nowhere))


def documents_of_terms(parts: Parts, numbers: NDArray[np.int64], where: Filter | None) -> NDArray[np.int32]:
    """Return the ordinals in the index of the documents with at least one of some terms that pass a filter, ascending.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    ordinals = []
    for part, of_part in zip(parts, numbers, strict=True):
        docs, dead = documents_of_any(part, of_part[of_part >= 0]), dead_of(part)
        ordinals.append(ordinals_of(part, docs if dead is None else docs[~dead[docs]]))
    joined = np.concatenate(ordinals) if len(parts) == 1 else np.sort(np.concatenate(ordinals))
    return joined if where is None else joined[where.mask[joined]]


def count_of_terms(parts: Parts, numbers: NDArray[np.int64], where: Filter | None, up_to: int | None) -> int:
    """Return the number of documents with at least one of some terms that pass a filter; see `Stage.count`.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    filters, count = None if where is None else part_filter(parts, where).filters, 0
    for i, part in enumerate(parts):
        dead = dead_of(part)
        passed = filters[i].mask if filters is not None else None if dead is None else ~dead
        count += count_of_any(part, numbers[i][numbers[i] >= 0], passed, up_to)
        if up_to is not None and count > up_to:
            break
    return at_most(count, up_to)


def _passing(part: Searchable, where: Filter) -> Filter:
    leaf = part.leaf if isinstance(part, Part) else None
    if leaf is None or (leaf.dead is None and leaf.documents == len(where.mask)):
        return weakly(where)  # to which the result is attached
    passed = where.mask[leaf.first : leaf.first + leaf.documents]
    if leaf.dead is None:
        return Filter("", passed)
    mask = np.zeros(len(part), dtype=np.bool_)
    mask[leaf.live] = passed
    return Filter("", mask)


def _joined(arrays: Sequence[NDArray[Any]], none: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if len(arrays) == 1:
        return fixed(arrays[0]), np.array((0, len(arrays[0])))
    return fixed(np.concatenate([none, *arrays])), np.array([0, *np.cumsum([len(array) for array in arrays])], dtype=np.int64)


_PART_FILTERS: Attached[Filter, dict[bool, PartFilter]] = Attached("part_filters", lambda where: {})
