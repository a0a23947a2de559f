"""The parts of an index that a search goes through: terms, documents and filters in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Int32s, Int64s, Scalar, UInt64s
from ..core.searches import at_most
from ..index.columns import Filter
from ..index.parts import Part
from ..storage.arrays import fixed
from ..storage.caches import LazyAttribute, weak_proxy
from .impacts import count_of_any, documents_of_any

NO_WORDS, NO_DOCS = fixed(np.zeros(0, np.uint64)), fixed(np.zeros(0, np.int32))
Parts = tuple[Part, ...]
Masks = tuple[UInt64s, Int64s, Int32s, Int64s]


def numbers_in(parts: Parts, terms: Sequence[str]) -> Int64s:
    """Return the number of each term in each part, (parts, terms); -1 for a term that it lacks."""
    numbers = [[part.term_number(term) for term in terms] for part in parts]
    return np.array(numbers, dtype=np.int64).reshape(len(parts), len(terms))


def living_df(parts: Parts, terms: Sequence[str], numbers: Int64s) -> Int64s:
    """Return the number of living documents of the whole index that have each term.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    if parts and len(parts[0].whole.parts) != len(parts):
        parts = parts[0].whole.parts
        numbers = numbers_in(parts, terms)
    df = np.zeros(len(terms), dtype=np.int64)
    for part, of_part in zip(parts, numbers, strict=True):
        df += part.living(of_part)
    return df


def located_in(parts: Parts, ordinal: int) -> tuple[Part, int, int]:
    """Return the part with a document, given as ordinal in the index, the number of the part, and the document in it."""
    for number, part in enumerate(parts):
        if len(docs := part.located(np.array([ordinal]))[1]):
            return part, number, int(docs[0])
    raise IndexError(f"no document {ordinal}")


@dataclass(frozen=True, eq=False)
class PartFilter:
    """The living documents of each part that pass a filter.

    Args:
        filters: The filter of each part.
    """

    filters: Sequence[Filter]

    @cached_property
    def words(self) -> tuple[UInt64s, Int64s]:
        """The masks in words of 64 documents end to end, and the start of each part."""
        return _joined([passing.words for passing in self.filters], NO_WORDS)

    @cached_property
    def docs(self) -> tuple[Int32s, Int64s]:
        """The documents that pass end to end, ascending in each part, and the start of each part."""
        return _joined([passing.docs for passing in self.filters], NO_DOCS)


def part_filter(parts: Parts, where: Filter) -> PartFilter:
    """Return the documents of each part that live and pass a filter of the whole index."""
    filters = _PART_FILTERS.of(where)
    if not filters:
        filters.append(PartFilter([_passing(part, where) for part in parts]))
    return filters[0]


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


def documents_of_terms(parts: Parts, numbers: Int64s, where: Filter | None) -> Int32s:
    """Return the ordinals in the index of the documents with at least one of some terms that pass a filter, ascending.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    ordinals = []
    for part, of_part in zip(parts, numbers, strict=True):
        docs, dead = documents_of_any(part, of_part[of_part >= 0]), part.dead
        ordinals.append(part.ordinals(docs if dead is None else docs[~dead[docs]]))
    joined = ordinals[0] if len(parts) == 1 else np.sort(np.concatenate([NO_DOCS, *ordinals]))
    return joined if where is None else joined[where.mask[joined]]


def count_of_terms(parts: Parts, numbers: Int64s, where: Filter | None, up_to: int | None) -> int:
    """Return the number of documents with at least one of some terms that pass a filter; see `Stage.count`.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    filters, count = None if where is None else part_filter(parts, where).filters, 0
    for i, part in enumerate(parts):
        dead = part.dead
        passed = filters[i].mask if filters is not None else None if dead is None else ~dead
        count += count_of_any(part, numbers[i][numbers[i] >= 0], passed, up_to)
        if up_to is not None and count > up_to:
            break
    return at_most(count, up_to)


def _passing(part: Part, where: Filter) -> Filter:
    leaf = part.leaf
    if leaf.dead is None and leaf.documents == len(where.mask):
        return weak_proxy(where)  # to which the result is attached
    passed = where.mask[leaf.first : leaf.first + leaf.documents]
    if leaf.dead is None:
        return Filter("", passed)
    mask = np.zeros(len(part), dtype=np.bool_)
    mask[leaf.live] = passed
    return Filter("", mask)


def _joined(arrays: Sequence[NDArray[Scalar]], none: NDArray[Scalar]) -> tuple[NDArray[Scalar], Int64s]:
    if len(arrays) == 1:
        return fixed(arrays[0]), np.array((0, len(arrays[0])))
    return fixed(np.concatenate([none, *arrays])), np.array([0, *np.cumsum([len(array) for array in arrays])], dtype=np.int64)


_PART_FILTERS: LazyAttribute[Filter, list[PartFilter]] = LazyAttribute("part_filters", lambda where: [])
