"""Documents in the rows of a DataFrame or another table, and values of cells as JSON values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from types import NoneType
from typing import Any

import numpy as np

from ..core import Doc, InputError
from ..core.checks import is_missing
from ..core.tabular import Frame
from .bad_records import BadRecords
from .packed import Packed, Packing, metadata_column, packed_columns
from .records import Fields, doc_from

PLAIN = frozenset((str, int, bool, NoneType))  # types of values that are stored unchanged
LISTS = ("as_py", "to_pylist", "to_list", "tolist")  # methods of other libraries that give Python's values
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")  # in the text of an object without a text of its own


@dataclass(frozen=True)
class FrameChunk:
    """Some rows of a table of documents, whose cells are JSON values.

    Args:
        names: The names of the columns.
        columns: The columns.
        first: Number of the first row, from 1.
        fields: Names of the documents' parts.
        numbering: How to give the rows ids, for messages.
    """

    names: list[str]
    columns: list[list[Any]]
    first: int
    fields: Fields
    numbering: str

    def docs(self, bad: BadRecords) -> Iterator[Doc]:
        """Yield the documents, without bad ones that may be left out; InputError names a row."""
        rows = (dict(zip(self.names, row, strict=True)) for row in zip(*self.columns, strict=True))
        for number, row in enumerate(rows, self.first):
            try:
                doc = doc_from(row, self.fields, "documents", number, "row")
            except InputError as error:
                if self.numbering and not self._keys["id"]:
                    raise InputError(f"{error}; or give the rows ids: {self.numbering}") from None
                bad.skip(error)
            else:
                yield doc

    def packing(self) -> Packing | None:
        """Return the work of packing the documents; None if their parts are not plain columns of texts."""
        keys = self._keys
        if not (len(keys["id"]) == len(keys["text"]) == 1 and len(keys["title"]) <= 1) or "metadata" in self.names:
            return None
        parts = {part: self._texts(name, part) for part, names in keys.items() for name in names}
        if any(texts is None for texts in parts.values()):
            return None
        ids, texts, titles = parts["id"], parts["text"], parts.get("title", ())
        assert ids is not None
        assert texts is not None
        assert titles is not None
        used = {name for names in keys.values() for name in names}
        rest = {name: column for name, column in zip(self.names, self.columns, strict=True) if name not in used}
        return Packing(partial(_packed, ids, titles, texts, rest), sum(map(len, texts)), len(texts))

    @cached_property
    def _keys(self) -> dict[str, tuple[str, ...]]:
        return self.fields.keys(tuple(self.names))

    def _texts(self, name: str, part: str) -> list[str] | None:
        """Return a column of texts, or of ids; None if it has other values."""
        column = self.columns[self.names.index(name)]
        kinds = set(map(type, column))
        if part == "id":
            ids = list(map(str, column)) if kinds == {int} else column if kinds == {str} else [""]
            return None if not all(ids) or any(map(str.isspace, ids)) else ids
        if kinds <= {str}:
            return column
        return ["" if text is None else text for text in column] if kinds <= {str, type(None)} else None


def chunks_of(frame: object, fields: Fields) -> Iterator[FrameChunk]:
    """Yield the rows of a table, some at a time; InputError names the column and row of a cell that has no JSON value."""
    table = Frame.of(frame, () if "id" in fields.chosen else fields.id, fields.text)
    first = 1
    for cells in table.chunks:
        columns = []
        for name, column in zip(table.names, cells, strict=True):
            try:
                columns.append(cell_values(column))
            except InputError as error:
                row = first + getattr(error, "row", 0)
                raise InputError(f"documents, row {row}, column '{name}': {error}") from None
        yield FrameChunk(table.names, columns, first, fields, table.numbering)
        first += len(cells[0]) if cells else 0


def _packed(ids: Sequence[str], titles: Sequence[str], texts: Sequence[str], rest: dict[str, list[object]]) -> Packed:
    if not rest:
        return packed_columns(ids, titles, texts)
    names = list(rest)
    values = [dict(zip(names, row, strict=True)) for row in zip(*rest.values(), strict=True)]
    return packed_columns(ids, titles, texts, metadata_column(ids, values), values)


def cell_value(cell: object) -> object:
    """Return a cell as a JSON value.

    Dates are texts in ISO's form, at most to the microsecond; durations are seconds; whole decimals are whole numbers; arrays
    and sets are lists. What is missing (None, NaN, NaT, NA) is None. Other objects are their text.

    Raises:
        InputError: It holds bytes that are no text, or is an object without a text of its own; the message lacks the place.
    """
    if type(cell) in PLAIN:
        return cell
    if isinstance(cell, np.generic | np.ndarray):
        return cell_value(_of_numpy(cell))
    if is_missing(cell):
        return None
    match cell:
        case datetime():
            return _date_text(cell)
        case date() | time():
            return cell.isoformat()
        case timedelta():
            return cell.total_seconds()
        case Decimal():
            return int(cell) if cell.is_finite() and not cell % 1 else cell_value(float(cell))
        case float():
            return None if math.isnan(cell) else float(cell)
        case bytes() | bytearray() | memoryview():
            try:
                return bytes(cell).decode()
            except UnicodeDecodeError:
                raise InputError("the value holds bytes that are no text; leave it out") from None
        case str() | int():
            return cell
        case Enum():
            return cell_value(cell.value)
        case Mapping():
            return {str(key): cell_value(value) for key, value in cell.items()}
        case tuple() if type(cell).__name__ == "MonthDayNano" and not cell[0]:  # an interval of Arrow and DuckDB
            return timedelta(days=cell[1], microseconds=cell[2] / 1000).total_seconds()
        case list() | tuple():
            return [cell_value(value) for value in cell]
        case set() | frozenset():
            return sorted(map(cell_value, cell), key=lambda value: (str(type(value)), str(value)))
    for name in LISTS:
        if hasattr(cell, name):
            return cell_value(getattr(cell, name)())
    text = str(cell)
    if ADDRESS.search(text):
        raise InputError(f"the value, a Python {type(cell).__name__}, is no JSON value; leave it out")
    return text


def cell_values(cells: list[object]) -> list[object]:
    """Return the cells of a column as JSON values; raises as `cell_value`, with the attribute `row` for the cell's number."""
    kinds = set(map(type, cells))
    if kinds <= PLAIN:
        return cells
    if kinds <= {float, NoneType}:
        return [None if cell != cell else cell for cell in cells]
    values: list[object] = []
    try:
        for cell in cells:
            values.append(cell_value(cell))
    except InputError as error:
        error.row = len(values)  # type: ignore[attr-defined]
        raise
    return values


def is_json(value: Any) -> bool:
    """Whether a value is a JSON value already, lists and objects included; NaN is none."""
    kind = type(value)
    if kind is list:
        return all(map(is_json, value))
    if kind is dict:
        return all(map(is_json, value.values()))
    return kind in PLAIN or (kind is float and value == value)


def _of_numpy(cell: Any) -> object:
    if isinstance(cell, np.ndarray):
        return cell[()] if cell.ndim == 0 else list(cell)
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return cell.astype("M8[us]" if isinstance(cell, np.datetime64) else "m8[us]").item()
    return float(cell) if isinstance(cell, np.floating) else cell.item()


def _date_text(cell: datetime) -> str:
    if hasattr(cell, "to_pydatetime"):  # of pandas, which has nanoseconds
        cell = cell.to_pydatetime(warn=False)
    offset = cell.utcoffset()
    if offset is not None and offset % timedelta(minutes=1):  # of local times before time zones
        cell = cell.astimezone(UTC)
    return cell.date().isoformat() if offset is None and cell.time() == time() else cell.isoformat()
