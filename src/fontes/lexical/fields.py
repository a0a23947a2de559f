"""Separate fields of an index: their weights, and some of the fields as an index of these alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Int32s, Int64s, Ints
from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.part import FrozenDict
from ..index.field_statistics import FIELDS, FieldLists
from ..index.inversion import chunks
from ..index.packing import pack_in_memory
from ..index.parts import Part, Searchable
from ..index.segment import Deletions, Leaf
from ..storage.caches import Cached, LazyAttribute, weak_proxy
from ..storage.threads import in_threads

if TYPE_CHECKING:
    from ..core.strings import Strings
    from ..index.packed import Bounds, PackedLists
    from ..index.state import State

CHUNK_POSTINGS = 1 << 20  # postings counted at a time
MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6  # weights of fields, which keep scores within float32
EXAMPLE = "fields={'title': 3, 'text': 1}"


class ChosenLists:
    """The postings of a segment's documents in some of its fields; see `index.parts.SegmentLists`.

    Documents and term numbers are those of the segment. A term that is in none of the fields has df 0.

    Args:
        fields: The frequencies by field.
        columns: The fields, by their position among all.
    """

    limits: Bounds | None = None

    def __init__(self, fields: FieldLists, columns: tuple[int, ...]) -> None:
        self._fields, self._columns = fields, list(columns)
        self.terms, self.term_number = fields.lists.terms, fields.lists.term_number
        self.lengths: Ints = fields.lengths[:, self._columns].sum(axis=1, dtype=np.int64)
        self.cf: Ints = fields.cf[:, self._columns].sum(axis=1, dtype=np.int64)
        self.df: Ints = self._count_documents()

    @cached_property
    def packed(self) -> PackedLists:
        """The postings as they are searched."""
        return pack_in_memory(self)

    def postings(self, terms: Ints) -> tuple[Int32s, Int32s]:
        """Return the postings of terms in the fields, end to end: documents, frequencies."""
        docs, frequencies = self._rows(terms)
        return docs, frequencies.sum(axis=1, dtype=np.int32)

    def frequencies(self, terms: Ints) -> Int32s:
        """Return the frequency in each of the fields of the postings of terms."""
        return self._rows(terms)[1]

    def deletions(self, leaf: Leaf) -> Deletions | None:
        """Return the deletions of a leaf, counted in the fields."""
        if leaf.deletions is None:
            return None
        terms, dead = leaf.deletions.terms.astype(np.int64), leaf.deletions.dead
        df, cf = (np.zeros(len(terms), dtype=np.int64) for _ in range(2))
        for first, last in chunks(self._fields.lists.df[terms], CHUNK_POSTINGS):
            docs, tf = self.postings(terms[first:last])
            term_of = np.repeat(np.arange(last - first), self.df[terms[first:last]])
            deleted = dead[docs]
            df[first:last] = np.bincount(term_of[deleted], minlength=last - first)
            cf[first:last] = np.bincount(term_of[deleted], tf[deleted], last - first)
        return Deletions(dead, terms, df, cf)

    def _rows(self, terms: Ints) -> tuple[Int32s, Int32s]:
        frequencies = self._fields.frequencies(terms)[:, self._columns]
        rows = frequencies.any(axis=1)
        return self._fields.lists.postings(terms)[0][rows], frequencies[rows]

    def _count_documents(self) -> Int64s:
        """Return the number of documents with each term in one of the fields."""
        if len(self._columns) == 1:
            return self._fields.df[:, self._columns[0]].astype(np.int64)
        df, df_of_lists = np.zeros(len(self.terms), dtype=np.int64), self._fields.lists.df

        def count(edges: tuple[int, int]) -> None:
            first, last = edges
            present = self._fields.frequencies(np.arange(first, last))[:, self._columns].any(axis=1)
            terms = np.repeat(np.arange(last - first), df_of_lists[first:last])
            df[first:last] = np.bincount(terms[present], minlength=last - first)

        in_threads(count, list(chunks(df_of_lists, CHUNK_POSTINGS)))
        return df


class ChosenFields(Searchable):
    """Some of the separate fields of an index, with the statistics of an index of these alone.

    Args:
        index: The index.
        names: Names of the fields.
    """

    def __init__(self, index: State, names: tuple[str, ...]) -> None:
        self.index, self.leaves, self._names = weak_proxy(index), index.leaves, names
        self._columns = tuple(map(index.separate.index, names))

    def __repr__(self) -> str:
        return repr(self.index)

    @cached_property
    def ids(self) -> Strings:
        """Document ids, in document order."""
        return self.index.ids

    @property
    def separate(self) -> tuple[str, ...]:
        return self._names

    @property
    def whole(self) -> Searchable:
        return chosen_fields(self.index.whole, self._names)

    def lists_of(self, leaf: Leaf) -> ChosenLists:
        fields = FIELDS.of(leaf.segment)
        return _LISTS.of(fields).get(self._columns, lambda: ChosenLists(weak_proxy(fields), self._columns))

    def frequencies(self, part: Part, terms: Ints) -> Int32s:
        assert isinstance(part.lists, ChosenLists)
        return part.lists.frequencies(terms)

    def require_positions(self) -> None:
        raise ParameterError("positions are those of all fields; take them of the index")


_LISTS: LazyAttribute[FieldLists, Cached[tuple[int, ...], ChosenLists]] = LazyAttribute("chosen_lists", lambda fields: Cached())
_CHOSEN: LazyAttribute[Searchable, Cached[tuple[str, ...], ChosenFields]] = LazyAttribute(
    "chosen_fields", lambda index: Cached()
)


def chosen_fields(searched: Searchable, names: Collection[str]) -> Searchable:
    """Return some fields of an index as an index of these alone; the index itself for all of its fields."""
    searched.require_fields()
    chosen = tuple(name for name in searched.separate if name in names)
    if chosen == searched.separate:
        return searched
    index: State = searched.index if isinstance(searched, ChosenFields) else searched  # type: ignore[assignment]
    return _CHOSEN.of(index).get(chosen, lambda: ChosenFields(index, chosen))


def part_of(searched: Searchable, part: Part) -> Part:
    """Return the part of other lists of an index that has the same segment."""
    return next(other for other in searched.parts if other.segment is part.segment)


def field_weights(index: State, weights: Mapping[str, float] | None) -> FrozenDict[float] | None:
    """Return the weights of fields as floats, without weights of 0; None for None.

    Raises:
        ParameterError: A weight is no number in its range, none is above 0, or a name is unknown.
    """
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or not weights:
        raise ParameterError(f"fields must give names of fields their weights, as {EXAMPLE}, not {weights!r}")
    for name, weight in weights.items():
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not (weight == 0 or MIN_WEIGHT <= weight <= MAX_WEIGHT):
            raise ParameterError(
                f"the weight of the field '{name}' must be 0 or from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, not {weight!r}"
            )
    positive = {name: float(weight) for name, weight in weights.items() if weight != 0}
    if not positive:
        raise ParameterError(f"all fields have the weight 0; give one at least a weight above 0, as {EXAMPLE}")
    index.require_fields()
    names = index.separate or weights  # the fields of an index that is only planned may be unknown
    check_names(weights, names, f"{index.path} has no field")
    return FrozenDict(positive)


def check_names(names: Collection[str], valid: Collection[str], problem: str) -> None:
    """Raise ParameterError for a name that is not valid, with the nearest valid name.

    Args:
        names: The names.
        valid: The valid names.
        problem: Beginning of the message, which the name follows.
    """
    for name in names:
        if name not in valid:
            raise ParameterError(f"{problem} '{name}'; {nearest(name, valid)}")
