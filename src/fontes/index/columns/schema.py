"""Schema of metadata columns: names and types, declared or detected from the values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.checks import real
from ...core.dates import check_form, date_in_form, date_of, date_of_cell, date_text
from ...core.errors import InputError, ParameterError
from ...core.hints import nearest
from ...core.table import Cell
from ...core.where import REFUSED, TYPES

MAX_COLUMNS = 128  # maximum number of detected columns
MAX_KEYWORD_LENGTH = 256  # maximum characters of a string in a detected column
MISSING = -(2**63)  # stands for a missing whole number
CELLS = {"absent cells": "keyword", "boolean cells": "boolean", "date cells": "date"}
CELLS |= {"integer cells": "integer", "float cells": "float"}
"""Kinds of table cells, with the types of their columns; mixed with values of other kinds, cells are keywords."""
WIDENING = (
    ("boolean",),
    ("integer", "float"),
    ("absent cells", "integer cells", "float cells"),
    ("absent cells", "boolean cells"),
    ("absent cells", "date cells"),
    ("date", "date cells"),
    ("date", "keyword", "keywords", "text"),
)
"""Rows of types; each type can hold the values of the types before it in its row."""
INTEGER_CELL = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)  # not 007, which is a name
FLOAT_CELL = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
MISSING_CELLS = ("na", "n/a", "nan", "null", "none")  # cells without a number, as programs write them
PLAIN_TYPES = {"keyword": str, "integer": int, "float": float, "boolean": bool}
INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
REMEDY = "correct the document, or build the index with columns={…} that names the types"


@dataclass(frozen=True)
class Schema:
    """The types of columns.

    Args:
        declared: Whether a user declared the columns. If so, no others are detected, and strings such as "2020" are converted
            to the type of their column.
        types: Types by name, including metadata that are no columns.
        forms: The form of the dates of declared columns, unless it is ISO's: "%d/%m/%Y".
    """

    declared: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, str] | None) -> Schema:
        """Return the schema of declared types; None detects columns. Raises ParameterError for an unknown type or form."""
        types, forms = {}, {}
        for name, declared in sorted((columns or {}).items()):
            kind, named, form = str(declared).partition(":")
            if kind not in TYPES or (named and kind != "date"):
                raise ParameterError(f"column '{name}': there is no type {declared!r}; {nearest(str(declared), TYPES)}")
            types[name] = kind
            if named:
                check_form(name, form)
                forms[name] = form
        return cls(columns is not None, types, forms)

    @classmethod
    def read(cls, stored: object) -> Schema:
        """Return the schema from the output of `to_json`; raises ValueError for anything else."""
        if (
            not isinstance(stored, dict)
            or set(stored) - {"forms"} != {"declared", "types"}
            or not isinstance(stored["types"], dict)
        ):
            raise ValueError("no columns")
        if not isinstance(stored["declared"], bool) or not all(kind in (*TYPES, *REFUSED) for kind in stored["types"].values()):
            raise ValueError("no types of columns")
        forms = stored.get("forms", {})
        if not isinstance(forms, dict) or not all(
            stored["types"].get(name) == "date" and isinstance(form, str) for name, form in forms.items()
        ):
            raise ValueError("no forms of dates")
        return cls(stored["declared"], dict(sorted(stored["types"].items())), dict(sorted(forms.items())))

    def to_json(self) -> dict[str, object]:
        """Return JSON values for the manifest."""
        forms = {"forms": dict(sorted(self.forms.items()))} if self.forms else {}
        return {"declared": self.declared, "types": dict(sorted(self.types.items())), **forms}

    @property
    def columns(self) -> dict[str, str]:
        """The types of the columns by name, in ascending order."""
        return {name: kind for name, kind in sorted(self.types.items()) if kind in TYPES}

    def with_types(self, types: Mapping[str, str]) -> Schema:
        """Return the schema with more types."""
        return Schema(self.declared, dict(sorted({**self.types, **types}.items())), self.forms)


def widest(kinds: Collection[str]) -> str:
    """Return the narrowest type that holds the values of all given types; "mixed" if there is none."""
    for row in WIDENING:
        if set(kinds) <= set(row):
            return max(kinds, key=row.index)
    if not CELLS.keys().isdisjoint(kinds):
        return widest({"keyword" if kind in CELLS else kind for kind in kinds})
    return "mixed"


def stored_kind(kind: str) -> str:
    """Return the column type for a result of `widest`."""
    return CELLS.get(kind, kind)


def kind_of_cells(cells: Iterable[str]) -> str:
    """Return the type of the distinct cells of a column: one of `CELLS`, or "keyword"."""
    return widest({_kind_of_cell(cell.strip()) for cell in cells} or {"keyword"})


def _kind_of_cell(cell: str) -> str:
    if INTEGER_CELL.fullmatch(cell):
        return "integer cells"
    if FLOAT_CELL.fullmatch(cell) and math.isfinite(float(cell)):
        return "float cells"
    low = cell.lower()
    if not cell or low in MISSING_CELLS:
        return "absent cells"
    return "boolean cells" if low in ("true", "false") else "keyword" if date_of_cell(cell) is None else "date cells"


def joined_schema(parts: Iterable[Sequence[tuple[str, str]]]) -> Schema:
    """Return the detected schema of documents from the columns of consecutive parts; see `ColumnWriter.names`."""
    kinds: dict[str, set[str]] = {}
    for names in parts:
        for name, kind in names:
            if name in kinds or len(kinds) < MAX_COLUMNS:
                kinds.setdefault(name, set()).update({kind} - {""})
    return Schema().with_types(
        {name: stored_kind(widest(column_kinds)) for name, column_kinds in kinds.items() if column_kinds}
    )


def typed(name: str, kind: str, value: object, doc_id: str, lenient: bool, form: str = "") -> Any:
    """Return a value as a column of this type stores it; None for a missing value.

    Args:
        name: The column.
        kind: Its type.
        value: A JSON value.
        doc_id: The document, for the error.
        lenient: Whether to convert strings such as "2020" and "true", and numbers to strings.
        form: Form of its dates besides ISO's; "" for those that `date_of_cell` parses.

    Raises:
        InputError: The value is of another type.
    """
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return None
    if lenient or isinstance(value, Cell):
        value = _lenient(kind, value, form)
        if value is None:
            return None
    if (stored := _STORED[kind](value)) is None:
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
        described = f"{kind}:{form}" if form else kind
        raise InputError(
            f"document '{doc_id}': its metadata '{name}' is {shown}, but the column is of type {described}; {REMEDY}"
        )
    return None if stored == () else stored


def is_stored(kind: str, values: Sequence[Any]) -> bool:
    """Whether a column of this type stores all values as they are, so that `typed` need not look at each."""
    if set(map(type, values)) != {PLAIN_TYPES.get(kind)}:
        return False
    if kind == "float":
        return not any(map(math.isnan, values))
    return "" not in values if kind == "keyword" else kind == "boolean" or max(map(abs, values)) < 2**63


def _lenient(kind: str, value: object, form: str) -> object:
    if kind in ("keyword", "keywords") and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "keywords" and isinstance(value, list | tuple):
        return [_lenient("keyword", item, "") for item in value]
    if form and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if kind in ("integer", "float", "boolean", "date") and (not text or text.lower() in MISSING_CELLS):
        return None
    if kind == "integer" and INTEGER.fullmatch(text):
        return int(text)
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "float":
        try:
            return real(text)
        except ValueError:
            return value
    if kind == "date":
        moment = date_in_form(text, form) if form else date_of_cell(text)
        moment = date_of(text) if moment is None else moment
        return value if moment is None else date_text(moment)
    return value


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def _keywords(value: object) -> tuple[str, ...] | None:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(item is None or isinstance(item, str) for item in items):
        return None
    return tuple(item for item in items if item)


_STORED: dict[str, Callable[[Any], object]] = {
    "keyword": lambda value: value if isinstance(value, str) else None,
    "integer": _integer,
    "float": _float,
    "date": lambda value: date_of(value) if isinstance(value, str) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "keywords": _keywords,
}
