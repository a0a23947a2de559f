"""Which metadata are columns, and of which type: declared, or decided by the values that come first."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.dates import date_of
from ...core.errors import InputError, ParameterError
from ...core.registry import nearest
from ...core.where import REFUSED, TYPES

MOST = 128  # columns that are taken up by themselves
LONGEST = 256  # characters of a string in them
LEAST = -(2**63)  # stands for a missing whole number
WIDENING = (("boolean",), ("integer", "float"), ("date", "keyword", "keywords", "text"))  # the later has room for the earlier
WHOLE = re.compile(r"[+-]?\d{1,19}")
REMEDY = "mend the document, or build the index with columns={…} that names the types"


@dataclass(frozen=True)
class Schema:
    """The types of columns.

    Args:
        declared: Whether a user named the columns: others are then never taken up, and strings such as "2020" are read as what
            their column holds.
        types: By name; besides the columns' own types those of metadata that have proved to be no columns.
    """

    declared: bool = False
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, str] | None) -> Schema:
        """What a user says; None: columns are found in the metadata.

        Raises:
            ParameterError: There is no such type.
        """
        for name, kind in (columns or {}).items():
            if kind not in TYPES:
                raise ParameterError(f"column '{name}': there is no type {kind!r}; {nearest(str(kind), TYPES)}")
        return cls(columns is not None, dict(sorted((columns or {}).items())))

    @classmethod
    def read(cls, stored: Any) -> Schema:
        """What `to_json` gave.

        Raises:
            ValueError: It is something else.
        """
        if not isinstance(stored, dict) or set(stored) != {"declared", "types"} or not isinstance(stored["types"], dict):
            raise ValueError("no columns")
        if not isinstance(stored["declared"], bool) or not all(kind in (*TYPES, *REFUSED) for kind in stored["types"].values()):
            raise ValueError("no types of columns")
        return cls(stored["declared"], dict(sorted(stored["types"].items())))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {"declared": self.declared, "types": dict(sorted(self.types.items()))}

    @property
    def columns(self) -> dict[str, str]:
        """The types of the columns by name, in ascending order."""
        return {name: kind for name, kind in sorted(self.types.items()) if kind in TYPES}

    def with_types(self, types: Mapping[str, str]) -> Schema:
        """The same with more types."""
        return Schema(self.declared, dict(sorted({**self.types, **types}.items())))


def widest(kinds: Collection[str]) -> str:
    """The type that has room for the values of several types; "mixed" where none has."""
    for row in WIDENING:
        if set(kinds) <= set(row):
            return max(kinds, key=row.index)
    return "mixed"


def joined_schema(parts: Iterable[Sequence[tuple[str, str]]]) -> Schema:
    """The columns that are found in the metadata of documents, by those that were found in the parts of the documents.

    Args:
        parts: Of each part, in their order, the names that were taken up with the types of their values; see `ColumnWriter`.
    """
    kinds: dict[str, set[str]] = {}
    for names in parts:
        for name, kind in names:
            if name in kinds or len(kinds) < MOST:
                kinds.setdefault(name, set()).update({kind} - {""})
    return Schema().with_types({name: widest(own) for name, own in kinds.items() if own})


def typed(name: str, kind: str, value: Any, doc_id: str, lenient: bool) -> Any:
    """The value as a column of this type stores it; None for one that counts as missing.

    Args:
        name: The column.
        kind: Its type.
        value: A value of JSON.
        doc_id: The document, for the error.
        lenient: Whether strings stand for what they say: "2020", "true"; and numbers for strings.

    Raises:
        InputError: The value is of another type.
    """
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return None
    if lenient:
        value = _lenient(kind, value)
    if (stored := _STORED[kind](value)) is None:
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
        raise InputError(f"document '{doc_id}': its metadata '{name}' is {shown}, but the column is of type {kind}; {REMEDY}")
    return None if stored == () else stored


def _lenient(kind: str, value: Any) -> Any:
    if kind in ("keyword", "keywords") and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if kind == "integer" and WHOLE.fullmatch(text):
        return int(text)
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "float":
        try:
            return float(text)
        except ValueError:
            return value
    return text if kind == "date" else value


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _float(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def _keywords(value: Any) -> tuple[str, ...] | None:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(item is None or isinstance(item, str) for item in items):
        return None
    return tuple(item for item in items if item)


_STORED: dict[str, Callable[[Any], Any]] = {
    "keyword": lambda value: value if isinstance(value, str) else None,
    "integer": _integer,
    "float": _float,
    "date": lambda value: date_of(value) if isinstance(value, str) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "keywords": _keywords,
}
