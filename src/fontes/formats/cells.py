"""Values of table cells, and of Python's objects, as JSON values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any

import numpy as np

from ..core.checks import is_missing
from ..core.errors import InputError

PLAIN = frozenset((str, int, bool, NoneType))  # types of values that are stored unchanged
LISTS = ("as_py", "to_pylist", "to_list", "tolist")  # methods of other libraries that give Python's values
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")  # in the text of an object without a text of its own


def cell_value(cell: object) -> Any:
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


def cell_values(cells: list[Any]) -> list[Any]:
    """Return the cells of a column as JSON values; raises as `cell_value`, with the attribute `row` for the cell's number."""
    kinds = set(map(type, cells))
    if kinds <= PLAIN:
        return cells
    if kinds <= {float, NoneType}:
        return [None if cell != cell else cell for cell in cells]
    values: list[Any] = []
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


def _of_numpy(cell: Any) -> Any:
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
