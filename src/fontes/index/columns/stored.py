"""The columns of a segment, by memory map: what filters test and facets count."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dates import date_text
from ...core.errors import IndexFormatError
from ...core.where import TYPES, Mask
from ...storage.arrays import REMEDY, OpenArrays
from ...storage.caches import Cached
from .values import Values, absent, read_values

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class SegmentColumns:
    """The columns of a segment; what no document of it has is a column without values. See `core.where.Columns`.

    Args:
        folder: The folder of the segment.
        documents: How many documents it has.

    Attributes:
        types: The types by name of the columns in which a document has a value.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, documents: int) -> None:
        self._folder, self._documents = folder, documents
        self._arrays = OpenArrays(folder, "column*")  # at once: a commit may remove the folder while it is read
        self.types: Mapping[str, str] = _types(self._arrays)
        self._numbers = {name: number for number, name in enumerate(self.types)}
        self._values: Cached[str, Values] = Cached()

    def require(self, types: Mapping[str, str]) -> None:
        """Raises IndexFormatError unless the columns have these types."""
        for column, kind in self.types.items():
            if types.get(column) != kind:
                raise IndexFormatError(f"{self._folder} has a column '{column}' of type {kind}, its index has not; {REMEDY}")

    def values(self, column: str, kind: str = "boolean") -> Values:
        """The values of all documents of the segment.

        Args:
            column: The name of the column.
            kind: Its type, where the segment does not have it.

        Raises:
            IndexFormatError: A file is missing or damaged.
        """
        own = self.types.get(column)
        if own is None:
            return absent(kind, self._documents)
        return self._values.get(column, lambda: read_values(self._arrays, self._numbers[column], own, self._documents))

    def present(self, column: str) -> Mask:
        """For each document whether it has a value."""
        return self.values(column).present

    def test(self, column: str, sign: str, value: Any) -> Mask:
        """For each document whether its value passes a test; see `core.where.Columns`."""
        if column not in self.types:
            return np.zeros(self._documents, dtype=bool)
        own = self.values(column)
        if own.table is not None:
            return self._textual(own, sign, value)
        if sign == "in":
            passed = np.zeros(self._documents, dtype=bool)
            for each in value:
                passed |= self.test(column, "==", each)
            return passed
        if own.kind == "boolean":
            return np.asarray(own.values == 1 + value)
        if own.kind == "float":
            with np.errstate(invalid="ignore"):
                return np.asarray(SIGNS[sign](own.values, float(value)))
        if (whole := _whole(sign, value)) is None:
            return np.zeros(self._documents, dtype=bool)
        return np.asarray(SIGNS[sign](own.values, whole)) & own.present

    def counts(self, column: str, docs: NDArray[np.integer[Any]]) -> dict[Any, int]:
        """How many of some documents, by their places in the segment, have each value."""
        if column not in self.types:
            return {}
        own = self.values(column).of(docs)
        values = own.values if own.starts is not None else own.values[own.present]
        different, counts = np.unique(values, return_counts=True)
        return dict(zip(self._shown(own, different), counts.tolist(), strict=True))

    def check(self) -> None:
        """Raises IndexFormatError unless all columns can be read."""
        for column in self.types:
            own = self.values(column)
            if own.table is not None:
                texts = own.table.tolist()
                if any(a >= b for a, b in pairwise(texts)):
                    raise IndexFormatError(f"{self._folder} is damaged: the values of '{column}' are not in order; {REMEDY}")

    def _shown(self, own: Values, values: NDArray[Any]) -> list[Any]:
        """Stored values as those of the metadata."""
        if own.table is not None:
            return own.table.reordered(values.astype(np.int64) - 1).tolist()
        if own.kind == "boolean":
            return [value == 2 for value in values.tolist()]
        return [date_text(value) for value in values.tolist()] if own.kind == "date" else values.tolist()

    def _textual(self, own: Values, sign: str, value: Any) -> Mask:
        """A test of keywords: by their places in the table, counted from 1."""
        table = own.table
        assert table is not None
        if sign in ("==", "holds", "in"):
            codes = [table.find(text) + 1 for text in (value if sign == "in" else (value,))]
            if sign == "holds":
                passed = np.zeros(self._documents, dtype=bool)
                if codes[0]:
                    assert own.starts is not None
                    passed[np.searchsorted(own.starts, np.flatnonzero(own.values == codes[0]), side="right") - 1] = True
                return passed
            flags = np.zeros(len(table) + 1, dtype=bool)
            flags[codes] = True
            flags[0] = False
            return np.asarray(flags[own.values])
        place = (bisect_left if sign in ("<", ">=") else bisect_right)(table, value)
        if sign in ("<", "<="):
            return np.asarray((own.values > 0) & (own.values <= place))
        return np.asarray(own.values > place)


def _types(arrays: OpenArrays) -> dict[str, str]:
    """The names of the columns of a segment, ascending, with their types."""
    if "columns.types" not in arrays:  # what the manifest lists was there when the index was opened
        return {}
    names = arrays.strings("columns", ordered=True).tolist()
    types = arrays.numbers("columns.types", len(TYPES), "|u1", len(names))
    if any(a >= b for a, b in pairwise(names)):
        raise arrays.damaged("columns.bytes", "its names are not in order")
    return dict(zip(names, (TYPES[number] for number in types.tolist()), strict=True))


def _whole(sign: str, value: float) -> int | None:
    """The whole number that whole numbers are compared with in place of `value`; None where none is equal."""
    if isinstance(value, int):
        return value
    if sign == "==":
        return int(value) if value.is_integer() else None
    return math.ceil(value) if sign in ("<", ">=") else math.floor(value)
