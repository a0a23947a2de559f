"""Documents in the rows of a DataFrame or another table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..core import Doc, InputError
from ..core.tabular import Frame
from .bad_records import BadRecords
from .cells import cell_values
from .packed import Packed, Packing, metadata_column, packed_columns
from .records import Fields, doc_from


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


def _packed(ids: Sequence[str], titles: Sequence[str], texts: Sequence[str], rest: dict[str, list[Any]]) -> Packed:
    if not rest:
        return packed_columns(ids, titles, texts)
    names = list(rest)
    values = [dict(zip(names, row, strict=True)) for row in zip(*rest.values(), strict=True)]
    return packed_columns(ids, titles, texts, metadata_column(ids, values), values)
