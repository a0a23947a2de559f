"""The columns of a segment: values by memory map, their files, and the tests of filters."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import AnyArray, Bools, Ints
from ...core.dates import FIRST, LAST, date_text
from ...core.errors import IndexFormatError
from ...core.strings import Strings, offsets_of
from ...core.where import TYPES, Mask
from ...storage.arrays import REMEDY, UNSIGNED, Arrays, OpenArrays, smallest, write_array
from ...storage.caches import Cached
from ..tables import union
from .schema import MISSING

Array = AnyArray
TEXTUAL = ("keyword", "keywords")


@dataclass(frozen=True, eq=False)
class Values:
    """The values of documents in one column.

    Args:
        kind: The type of the column.
        values: One per document. A missing whole number or date is the minimum of its type, a missing float NaN. Truth values
            are 0 (missing), 1 (false) and 2 (true); keywords are 0 (missing) or their position in `table` plus one. Lists are
            concatenated positions plus one, ascending within a document.
        table: The distinct keywords, ascending; None for other types.
        starts: Start of each document's list, and the end of the last; None for other types.
    """

    kind: str
    values: Array
    table: Strings | None = None
    starts: Array | None = None

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.values) if self.starts is None else len(self.starts) - 1

    @property
    def present(self) -> Bools:
        """Whether each document has a value."""
        if self.starts is not None:
            return np.diff(self.starts.astype(np.int64)) > 0
        if self.kind == "float":
            return ~np.isnan(self.values)
        return np.asarray(self.values != (np.iinfo(self.values.dtype).min if self.kind in ("integer", "date") else 0))

    def of(self, indices: Ints) -> Values:
        """Return the values of these documents."""
        if self.starts is None:
            return Values(self.kind, self.values[indices], self.table)
        starts = self.starts.astype(np.int64)
        sizes = np.diff(starts)[indices]
        new_starts = offsets_of(sizes)
        rows = np.arange(new_starts[-1]) + np.repeat(starts[:-1][indices] - new_starts[:-1], sizes)
        return Values(self.kind, self.values[rows], self.table, new_starts)

    def write(self, folder: Path, number: int) -> None:
        """Write the files column-NUMBER.…, each in the smallest type that holds its values."""
        values = self.values
        if self.kind == "integer":
            values = _narrow(values, self.present)
        elif self.kind in TEXTUAL:
            values = smallest(values)
        write_array(folder, f"column-{number}.values", values)
        if self.table is not None:
            write_array(folder, f"column-{number}.bytes", self.table.blob)
            write_array(folder, f"column-{number}.bounds", smallest(self.table.offsets))
        if self.starts is not None:
            write_array(folder, f"column-{number}.starts", smallest(self.starts))


def write_columns(folder: Path, columns: dict[str, Values]) -> None:
    """Write the columns in which any document has a value, and the table of their names and types."""
    names = sorted(name for name, column in columns.items() if column.present.any())
    if not names:
        return
    table = Strings.of(names)
    write_array(folder, "columns.bytes", table.blob)
    write_array(folder, "columns.bounds", smallest(table.offsets))
    write_array(folder, "columns.types", np.array([TYPES.index(columns[name].kind) for name in names], dtype=np.uint8))
    for number, name in enumerate(names):
        columns[name].write(folder, number)


def read_values(arrays: Arrays, number: int, kind: str, documents: int) -> Values:
    """Read the files that `Values.write` wrote; raises IndexFormatError if one is missing or damaged."""
    name = f"column-{number}"
    if kind in TEXTUAL:
        table = arrays.strings(name, ordered=True).ascending()
        rows = None if kind == "keywords" else documents
        values = arrays.numbers(f"{name}.values", len(table) + 1, UNSIGNED, rows)
        if kind == "keyword":
            return Values(kind, values, table)
        if not values.all():
            raise arrays.damaged(f"{name}.values", "a list has a value that is none")
        return Values(kind, values, table, arrays.bounds(f"{name}.starts", len(values), documents))
    if kind == "boolean":
        return Values(kind, arrays.numbers(f"{name}.values", 3, "|u1", documents))
    values = arrays.array(f"{name}.values", "<f8" if kind == "float" else ("|i1", "<i2", "<i4", "<i8"), documents)
    if kind == "date" and not np.all((values == np.iinfo(values.dtype).min) | ((values >= FIRST) & (values <= LAST))):
        raise arrays.damaged(f"{name}.values", "it has values that are no dates")
    return Values(kind, values)


def join_values(parts: Sequence[Values]) -> Values:
    """Concatenate columns of one type; drop keywords that no document has."""
    kind = parts[0].kind
    if kind not in TEXTUAL:
        return Values(kind, np.concatenate([_wide(part) for part in parts]))
    table, indices = union([part.table for part in parts if part.table is not None])
    codes = [
        np.concatenate([[0], part_numbers.astype(np.int64) + 1])[part.values]
        for part, part_numbers in zip(parts, indices, strict=True)
    ]
    values = np.concatenate(codes)
    used = np.flatnonzero(np.bincount(values, minlength=len(table) + 1)[1:])
    if len(used) < len(table):
        renumbered = np.zeros(len(table) + 1, dtype=np.int64)
        renumbered[used + 1] = np.arange(1, len(used) + 1)
        values, table = renumbered[values], table.reordered(used).ascending()
    starts = None
    if kind == "keywords":
        sizes = [np.diff(part.starts.astype(np.int64)) for part in parts if part.starts is not None]
        starts = offsets_of(np.concatenate(sizes))
    return Values(kind, values, table, starts)


def absent(kind: str, documents: int) -> Values:
    """Return a column without any value."""
    if kind == "keywords":
        return Values(kind, np.zeros(0, np.uint8), Strings.of([]), np.zeros(documents + 1, np.int64))
    empty: dict[str, object] = {"float": np.nan, "integer": MISSING, "date": MISSING}
    dtype = {"float": np.float64, "integer": np.int64, "date": np.int64}.get(kind, np.uint8)
    return Values(kind, np.full(documents, empty.get(kind, 0), dtype), Strings.of([]) if kind == "keyword" else None)


def _narrow(values: Array, present: Bools) -> Array:
    """Convert whole numbers to the smallest type that holds them; its minimum stands for missing ones."""
    low, high = int(values[present].min(initial=0)), int(values[present].max(initial=0))
    dtype = next(d for d in (np.int8, np.int16, np.int32, np.int64) if np.iinfo(d).min < low and high <= np.iinfo(d).max)
    return np.where(present, values, np.iinfo(dtype).min).astype(dtype)


def _wide(part: Values) -> Array:
    if part.kind != "integer":
        return part.values
    return np.where(part.present, part.values.astype(np.int64), MISSING)


SIGNS: dict[str, Callable[[Any, Any], object]] = {"==": operator.eq, "<": operator.lt, "<=": operator.le}
SIGNS |= {">": operator.gt, ">=": operator.ge}


class SegmentColumns:
    """The columns of a segment, as a `core.where.ColumnSource`; a column that no document has is without values.

    Attributes:
        types: Types by name of the columns in which any document has a value.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, documents: int) -> None:
        self._folder, self._documents = folder, documents
        self._arrays = OpenArrays(folder, "column*")  # opened now, as a commit may remove the folder later
        self.types: Mapping[str, str] = _types(self._arrays)
        self._numbers = {name: number for number, name in enumerate(self.types)}
        self._values: Cached[str, Values] = Cached()

    def require(self, types: Mapping[str, str]) -> None:
        """Raise IndexFormatError unless the columns have these types."""
        for column, kind in self.types.items():
            if types.get(column) != kind:
                raise IndexFormatError(f"{self._folder} has a column '{column}' of type {kind}, its index has not; {REMEDY}")

    def values(self, column: str, kind: str = "boolean") -> Values:
        """Return the values of all documents of the segment.

        `kind` is the type of a column that the segment lacks. Raises IndexFormatError if a file is missing or damaged.
        """
        column_type = self.types.get(column)
        if column_type is None:
            return absent(kind, self._documents)
        return self._values.get(column, lambda: read_values(self._arrays, self._numbers[column], column_type, self._documents))

    def present(self, column: str) -> Mask:
        """Whether each document has a value."""
        return self.values(column).present

    def test(self, column: str, sign: str, value: Any) -> Mask:
        """Whether each document's value passes a test; see `core.where.ColumnSource`."""
        if column not in self.types:
            return np.zeros(self._documents, dtype=bool)
        stored = self.values(column)
        if stored.table is not None:
            return self._textual(stored, sign, value)
        if sign == "in":
            passing = np.zeros(self._documents, dtype=bool)
            for item in value:
                passing |= self.test(column, "==", item)
            return passing
        if stored.kind == "boolean":
            return np.asarray(stored.values == 1 + value)
        if stored.kind == "float":
            with np.errstate(invalid="ignore"):
                return np.asarray(SIGNS[sign](stored.values, float(value)))
        if (bound := _whole_bound(sign, value)) is None:
            return np.zeros(self._documents, dtype=bool)
        passing = np.asarray(SIGNS[sign](stored.values, bound))
        return passing & stored.present if SIGNS[sign](np.iinfo(stored.values.dtype).min, bound) else passing

    def counts(self, column: str, docs: Ints) -> dict[Any, int]:
        """Count the documents with each value among `docs`, ordinals in the segment."""
        if column not in self.types:
            return {}
        stored = self.values(column).of(docs)
        values = stored.values if stored.starts is not None else stored.values[stored.present]
        different, counts = np.unique(values, return_counts=True)
        return dict(zip(self._shown(stored, different), counts.tolist(), strict=True))

    def check(self) -> None:
        """Raise IndexFormatError unless all columns can be read."""
        for column in self.types:
            stored = self.values(column)
            if stored.table is not None:
                texts = stored.table.tolist()
                if any(a >= b for a, b in pairwise(texts)):
                    raise IndexFormatError(f"{self._folder} is damaged: the values of '{column}' are not in order; {REMEDY}")

    def _shown(self, stored: Values, values: AnyArray) -> list[Any]:
        if stored.table is not None:
            return stored.table.reordered(values.astype(np.int64) - 1).tolist()
        if stored.kind == "boolean":
            return [value == 2 for value in values.tolist()]
        return [date_text(value) for value in values.tolist()] if stored.kind == "date" else values.tolist()

    def _textual(self, stored: Values, sign: str, value: Any) -> Mask:
        """Test of keywords, by their indices in the table, counted from 1."""
        table = stored.table
        assert table is not None
        if sign in ("==", "holds", "in"):
            codes = [table.find(text) + 1 for text in (value if sign == "in" else (value,))]
            if sign == "holds":
                passing = np.zeros(self._documents, dtype=bool)
                if codes[0]:
                    assert stored.starts is not None
                    passing[np.searchsorted(stored.starts, np.flatnonzero(stored.values == codes[0]), side="right") - 1] = True
                return passing
            flags = np.zeros(len(table) + 1, dtype=bool)
            flags[codes] = True
            flags[0] = False
            return np.asarray(flags[stored.values])
        smaller = (bisect_left if sign in ("<", ">=") else bisect_right)(table, value)
        if sign in ("<", "<="):
            return np.asarray((stored.values > 0) & (stored.values <= smaller))
        return np.asarray(stored.values > smaller)


def _types(arrays: OpenArrays) -> dict[str, str]:
    if "columns.types" not in arrays:  # files that the manifest lists were checked when the index was opened
        return {}
    names = arrays.strings("columns", ordered=True).tolist()
    types = arrays.numbers("columns.types", len(TYPES), "|u1", len(names))
    if any(a >= b for a, b in pairwise(names)):
        raise arrays.damaged("columns.bytes", "its names are not in order")
    return dict(zip(names, (TYPES[number] for number in types.tolist()), strict=True))


def _whole_bound(sign: str, value: float) -> int | None:
    """Return the whole number to compare with in place of `value`; None if no whole number equals it."""
    if isinstance(value, int):
        return value
    if sign == "==":
        return int(value) if value.is_integer() else None
    return math.ceil(value) if sign in ("<", ">=") else math.floor(value)
