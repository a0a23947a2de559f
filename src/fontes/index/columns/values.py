"""The values of one column over some documents, as arrays, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dates import FIRST, LAST
from ...core.strings import Strings
from ...core.where import TYPES
from ...storage.arrays import UNSIGNED, Arrays, smallest, write_array
from ..tables import union
from .schema import MISSING

Array = NDArray[Any]
TEXTUAL = ("keyword", "keywords")


@dataclass(frozen=True, eq=False)
class Values:
    """The values of documents in one column.

    Args:
        kind: The type of the column.
        values: One a document: whole numbers and dates with the least of their type where there is none; floats with NaN there;
            truth values as 0 (none), 1 (false), 2 (true); keywords as 0 (none) or one more than their place in `table`. Of
            lists the places plus one, end to end, ascending within a document.
        table: Of keywords, the different ones in ascending order; else None.
        starts: Of lists, where those of each document start, and where the last ones end; else None.
    """

    kind: str
    values: Array
    table: Strings | None = None
    starts: Array | None = None

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.values) if self.starts is None else len(self.starts) - 1

    @property
    def present(self) -> NDArray[np.bool_]:
        """For each document whether it has a value."""
        if self.starts is not None:
            return np.diff(self.starts.astype(np.int64)) > 0
        if self.kind == "float":
            return ~np.isnan(self.values)
        return np.asarray(self.values != (np.iinfo(self.values.dtype).min if self.kind in ("integer", "date") else 0))

    def of(self, places: NDArray[np.integer[Any]]) -> Values:
        """The values of these documents."""
        if self.starts is None:
            return Values(self.kind, self.values[places], self.table)
        starts = self.starts.astype(np.int64)
        sizes = np.diff(starts)[places]
        new = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(sizes, out=new[1:])
        rows = np.arange(new[-1]) + np.repeat(starts[:-1][places] - new[:-1], sizes)
        return Values(self.kind, self.values[rows], self.table, new)

    def write(self, folder: Path, number: int) -> None:
        """Writes the files column-NUMBER.…; each type is the smallest that holds its values."""
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
    """Writes the columns in which a document has a value, and the table of their names and types."""
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
    """What `write` wrote.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """
    name = f"column-{number}"
    if kind in TEXTUAL:
        table = ascending(arrays.strings(name, ordered=True))
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


def joined(parts: Sequence[Values]) -> Values:
    """Columns of one type end to end; keywords that no document has are left out of the table."""
    kind = parts[0].kind
    if kind not in TEXTUAL:
        return Values(kind, np.concatenate([_wide(part) for part in parts]))
    table, places = union([part.table for part in parts if part.table is not None])
    codes = [
        np.concatenate([[0], of_part.astype(np.int64) + 1])[part.values] for part, of_part in zip(parts, places, strict=True)
    ]
    values = np.concatenate(codes)
    used = np.flatnonzero(np.bincount(values, minlength=len(table) + 1)[1:])
    if len(used) < len(table):
        renumbered = np.zeros(len(table) + 1, dtype=np.int64)
        renumbered[used + 1] = np.arange(1, len(used) + 1)
        values, table = renumbered[values], ascending(table.reordered(used))
    starts = None
    if kind == "keywords":
        sizes = [np.diff(part.starts.astype(np.int64)) for part in parts if part.starts is not None]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Values(kind, values, table, starts)


def absent(kind: str, documents: int) -> Values:
    """A column without any value."""
    if kind == "keywords":
        return Values(kind, np.zeros(0, np.uint8), Strings.of([]), np.zeros(documents + 1, np.int64))
    empty: dict[str, Any] = {"float": np.nan, "integer": MISSING, "date": MISSING}
    dtype = {"float": np.float64, "integer": np.int64, "date": np.int64}.get(kind, np.uint8)
    return Values(kind, np.full(documents, empty.get(kind, 0), dtype), Strings.of([]) if kind == "keyword" else None)


def ascending(table: Strings) -> Strings:
    """A table whose strings are known to be in ascending order."""
    return Strings(table.blob, table.offsets, np.arange(len(table), dtype=np.uint32))


def _narrow(values: Array, present: NDArray[np.bool_]) -> Array:
    """Whole numbers in the smallest type that holds them and whose least number none of them is."""
    low, high = int(values[present].min(initial=0)), int(values[present].max(initial=0))
    dtype = next(d for d in (np.int8, np.int16, np.int32, np.int64) if np.iinfo(d).min < low and high <= np.iinfo(d).max)
    return np.where(present, values, np.iinfo(dtype).min).astype(dtype)


def _wide(part: Values) -> Array:
    if part.kind != "integer":
        return part.values
    return np.where(part.present, part.values.astype(np.int64), MISSING)
