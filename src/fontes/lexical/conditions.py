"""Comparisons of columns in the query language, `year:[2020 TO 2024]`, as filters."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from datetime import date

from ..core.errors import ParameterError
from ..core.where import condition
from .clauses import TypedFilter, escaped, quoted

INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
PERIOD = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)
PLAIN = re.compile(r"[\w.,:@-][\w.,:/@-]*")


def compared(name: str, sign: str, value: str | None, types: Mapping[str, str]) -> TypedFilter:
    """Return the comparison of a column with a value.

    Args:
        name: The column.
        sign: >, >=, <, <=, or "" for equality.
        value: The value as typed; for a column of dates also a year, a month or a day. None: any value.
        types: The type of each column by name.

    Raises:
        ParameterError: The value is of another type than the column.
    """
    if value is None:
        return TypedFilter(f"{escaped(name)}:*", f"{_column(name)} is not None")
    where = _bound(name, types[name], sign, value) if sign else _equal(name, types[name], value)
    condition(where, types)
    return TypedFilter(f"{escaped(name)}:{sign}{_value(value)}", where)


def between(name: str, low: str | None, high: str | None, closed: tuple[bool, bool], types: Mapping[str, str]) -> TypedFilter:
    """Return the range of a column.

    Args:
        name: The column.
        low: The least value as typed; None: no lower bound.
        high: The greatest value as typed; None: no upper bound.
        closed: Whether the range includes its least and its greatest value.
        types: The type of each column by name.

    Raises:
        ParameterError: A value is of another type than the column.
    """
    signs = ">=" if closed[0] else ">", "<=" if closed[1] else "<"
    if low is None or high is None:
        return compared(name, signs[1] if low is None else signs[0], high if low is None else low, types)
    where = " and ".join(_bound(name, types[name], sign, value) for sign, value in zip(signs, (low, high), strict=True))
    condition(where, types)
    brackets = "[" if closed[0] else "{", "]" if closed[1] else "}"
    return TypedFilter(f"{escaped(name)}:{brackets[0]}{_value(low)} TO {_value(high)}{brackets[1]}", where)


def _equal(name: str, kind: str, value: str) -> str:
    column = _column(name)
    if kind == "keywords":
        return f"{value!r} in {column}"
    if kind == "date" and (days := _period(value)) is not None:
        return f"{column} >= {days[0]!r}" + (f" and {column} < {days[1]!r}" if days[1] else "")
    return f"{column} == {_literal(kind, value)}"


def _bound(name: str, kind: str, sign: str, value: str) -> str:
    column = _column(name)
    if kind == "date" and (days := _period(value)) is not None:
        after = sign in (">", "<=")  # beyond the last moment of the period
        if after and not days[1]:
            raise ParameterError(f"there is no date after {value}")
        return f"{column} {'<' if sign in ('<', '<=') else '>='} {days[after]!r}"
    return f"{column} {sign} {_literal(kind, value)}"


def _column(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "metadata"
    return name if plain else f"metadata[{name!r}]"


def _literal(kind: str, value: str) -> str:
    """Return the literal of a value in a filter; a string if it has another type, for which `condition` raises an error."""
    if kind == "boolean" and value.lower() in ("true", "false"):
        return value.capitalize()
    if kind in ("integer", "float") and len(value) < 400:
        if INTEGER.fullmatch(value):
            return str(int(value))
        if REAL.fullmatch(value) and math.isfinite(float(value)):
            return repr(float(value))
    return repr(value)


def _period(value: str) -> tuple[str, str] | None:
    """Return the first day of a year, month or day, and the first day after it, "" if none exists; None for another text."""
    match = PERIOD.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part) if part else 0 for part in match.groups())
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    try:
        if day:
            after = date.fromordinal(first.toordinal() + 1)
        else:
            after = date(year + 1, 1, 1) if month in (0, 12) else date(year, month + 1, 1)
    except ValueError:
        return first.isoformat(), ""
    return first.isoformat(), after.isoformat()


def _value(text: str) -> str:
    return text if PLAIN.fullmatch(text) and text not in ("AND", "OR", "NOT", "TO") else quoted(text)
