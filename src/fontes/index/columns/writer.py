"""The component of columns: gathered from documents, merged, and converted to other types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Int64s, Numbers
from ...core.dates import date_of
from ...core.errors import IndexFormatError
from ...core.strings import Strings, concatenated, encodable, offsets_of, utf8
from ...core.table import Cell
from ...core.where import REFUSED, TYPES
from ...storage.arrays import REMEDY
from ..batches import Batch
from ..component import Component, Described, Writer, components
from ..segment import Leaf, Segment
from .schema import MAX_COLUMNS, MAX_KEYWORD_LENGTH, MISSING, Schema, is_stored, kind_of_cells, stored_kind, typed, widest
from .values import SegmentColumns, Values, join_values, write_columns

KINDS: dict[type, str] = {bool: "boolean", int: "integer", float: "float", str: "keyword", list: "keywords", tuple: "keywords"}


class ColumnWriter(Writer):
    """Gathers the columns of documents and writes them.

    Args:
        folder: Folder of the files.
        schema: The existing columns; new values must fit their types.
        lenient: Convert strings to numbers and dates, as for a declared schema.

    Attributes:
        schema: The columns, including new ones after `close`.
        names: After `close`, the names of the columns in order, each with the type of its values: "" without values, one of
            `schema.CELLS` for cells of tables.
    """

    def __init__(self, folder: Path, schema: Schema, lenient: bool = False) -> None:
        self._folder, self.schema, self._count = folder, schema, 0
        self._columns = {
            name: _ColumnBuffer(name, kind, fixed=True, lenient=schema.declared or lenient, form=schema.forms.get(name, ""))
            for name, kind in schema.types.items()
            if kind not in REFUSED
        }
        self.names: list[tuple[str, str]] = []
        self._refused = {name for name, kind in schema.types.items() if kind in REFUSED}

    def add(self, ids: Sequence[str], metadata: Sequence[Mapping[str, object]]) -> None:
        """Append documents by their ids and metadata; raises InputError for a value that does not fit its column."""
        gathered: dict[str, tuple[list[int], list[object]]] = {}
        for number, values in enumerate(metadata):
            for name, value in values.items():
                if name in gathered or self._takes(name):
                    docs, column_values = gathered.setdefault(name, ([], []))
                    docs.append(number)
                    column_values.append(value)
        for name, (docs, column_values) in gathered.items():
            self._columns[name].extend(self._count, docs, column_values, ids)
        self._count += len(ids)

    def _takes(self, name: object) -> bool:
        """Whether there is a column of this name; a new one is added if allowed."""
        if name in self._columns:
            return self._columns[name].kind != "mixed"
        if self.schema.declared or name in self._refused or len(self._columns) + len(self._refused) >= MAX_COLUMNS:
            return False
        if not isinstance(name, str) or not name or encodable(name) != name:
            return False
        self._columns[name] = _ColumnBuffer(name)
        return True

    def write(self, batch: Batch, first: int) -> None:
        self.add(batch.docs.ids.tolist() if batch.docs.values else batch.docs.ids, batch.docs.values)

    def close(self) -> dict[str, int]:
        finished = {name: column.values(self._count) for name, column in self._columns.items() if column.kind in TYPES}
        write_columns(self._folder, finished)
        self.names = [(name, column.detected) for name, column in self._columns.items()]
        new = {name: column.kind for name, column in self._columns.items() if column.kind in REFUSED}
        self.schema = self.schema.with_types({**new, **{name: values.kind for name, values in finished.items()}})
        return {}


class _ColumnBuffer:
    """The values of one column, in pieces: the documents that have a value, and their values."""

    def __init__(self, name: str, kind: str = "", *, fixed: bool = False, lenient: bool = False, form: str = "") -> None:
        self.name, self.kind, self._fixed, self._lenient, self._form = name, kind, fixed, lenient, form
        self._cell_kind = ""
        self._docs: list[Int64s] = []
        self._pieces: list[NDArray[np.generic]] = []
        self._sizes: list[Int64s] = []  # sizes of lists
        self._table: dict[str, int] = {}
        self._cells = True  # whether all values are cells of tables

    @property
    def detected(self) -> str:
        """Type of the values; one of `schema.CELLS` for cells of tables."""
        return self._cell_kind or self.kind

    def extend(self, first: int, docs: list[int], values: list[Any], ids: Sequence[str]) -> None:
        """Append the values of some documents of a batch, by their positions in it; `first` is the batch's first document."""
        if not self._fixed:
            self._widen(values)
            if self.kind in REFUSED or not self.kind:
                return
        kind = self.kind
        lenient, form = self._lenient, self._form
        stored = values
        if not is_stored(kind, values):
            stored = [typed(self.name, kind, value, ids[doc], lenient, form) for doc, value in zip(docs, values, strict=True)]
            docs = [doc for doc, value in zip(docs, stored, strict=True) if value is not None]
            stored = [value for value in stored if value is not None]
        self._docs.append(first + np.array(docs, dtype=np.int64))
        if kind in ("keyword", "keywords"):
            lists = [(value,) if isinstance(value, str) else value for value in stored]
            table = self._table
            self._sizes.append(np.fromiter(map(len, lists), np.int64, len(lists)))
            self._pieces.append(
                np.array(
                    [table.setdefault(item, len(table)) for document_values in lists for item in document_values],
                    dtype=np.int64,
                )
            )
        else:
            self._pieces.append(np.array(stored, dtype=np.float64 if kind == "float" else np.int64))

    def values(self, documents: int) -> Values:
        """Return the column of all documents; strings that are all dates, or all cells of a type, are converted."""
        docs = np.concatenate([np.zeros(0, np.int64), *self._docs])
        pieces = np.concatenate([np.zeros(0, np.float64 if self.kind == "float" else np.int64), *self._pieces])
        if self.kind == "boolean":
            return Values("boolean", _filled(documents, 0, docs, (pieces + 1).astype(np.uint8)))
        if self.kind == "float":
            return Values("float", _filled(documents, np.nan, docs, pieces))
        if self.kind in ("integer", "date"):
            return Values(self.kind, _filled(documents, MISSING, docs, pieces))
        if self.kind == "keyword" and not self._fixed and self._cells:
            self._cell_kind = kind_of_cells(self._table)
            self.kind = stored_kind(self._cell_kind)
            if self.kind == "keyword":
                return self._keywords(documents, docs, pieces)
            numbers = [typed(self.name, self.kind, cell, "", True) for cell in self._table]
            present = np.array([number is not None for number in numbers], dtype=bool)[pieces]
            stored = np.array([number or 0 for number in numbers], dtype=np.float64 if self.kind == "float" else np.int64)
            self._docs, self._pieces, self._table = [docs[present]], [stored[pieces[present]]], {}
            return self.values(documents)
        if self.kind == "keyword" and not self._fixed:
            dates = [date_of(text) for text in self._table]
            if dates and None not in dates:
                self.kind = "date"
                return Values("date", _filled(documents, MISSING, docs, np.array(dates, dtype=np.int64)[pieces]))
        return self._keywords(documents, docs, pieces)

    def _keywords(self, documents: int, docs: Int64s, pieces: Int64s) -> Values:
        table, rank = _sorted(self._table)
        codes = rank[pieces] + 1
        if self.kind == "keyword":
            return Values("keyword", _filled(documents, 0, docs, codes), table)
        return _lists(documents, docs, np.concatenate([np.zeros(0, np.int64), *self._sizes]), codes, table)

    def _widen(self, values: list[object]) -> None:
        """Widen the type to hold more values; drop the values of a type that is no column."""
        values = [value for value in values if value is not None and value != "" and value == value]
        classes = set(map(type, values))
        kinds = {KINDS.get(cls) or _kind(cls) for cls in classes}
        kinds |= {self.kind} if self.kind else set()
        self._cells = self._cells and all(issubclass(cls, Cell) for cls in classes)
        if not kinds:
            return
        kind = widest(kinds)
        if kind in ("integer", "float") and max([abs(value) for value in values if isinstance(value, int)], default=0) >= 2**63:
            kind = "mixed"
        if kind in ("keyword", "keywords", "text"):
            flat = [item for value in values if isinstance(value, list | tuple) for item in value]
            strings = [item for item in (*values, *flat) if isinstance(item, str)]
            if not all(item is None or isinstance(item, str) for item in flat):
                kind = "mixed"
            elif max(map(len, strings), default=0) > MAX_KEYWORD_LENGTH:
                kind = "text"
        self.kind = kind
        if kind in REFUSED:
            self._docs, self._pieces, self._sizes, self._table = [], [], [], {}


def _kind(cls: type) -> str:
    """Return the type of a column for values of a class derived from one in `KINDS`."""
    return next((kind for base, kind in KINDS.items() if issubclass(cls, base)), "mixed")


def _filled(documents: int, missing: float, docs: Int64s, values: Numbers) -> Numbers:
    filled = np.full(documents, missing, dtype=values.dtype)
    filled[docs] = values
    return filled


def _sorted(table: dict[str, int]) -> tuple[Strings, Int64s]:
    """Return the distinct strings in ascending order, and the position among them of each string of `table`."""
    encoded = list(map(utf8, table))  # two may be equal, as lone surrogates are replaced
    rank = {text: number for number, text in enumerate(sorted(set(encoded)))}
    strings = Strings(*concatenated(list(rank))).ascending()
    return strings, np.fromiter((rank[text] for text in encoded), np.int64, len(encoded))


def _lists(documents: int, docs: Int64s, sizes: Int64s, codes: Int64s, table: Strings) -> Values:
    width = len(table) + 1
    pairs = np.unique(np.repeat(docs, sizes) * width + codes)
    starts = offsets_of(np.bincount(pairs // width, minlength=documents))
    return Values("keywords", pairs % width, table, starts)


BATCH_SIZE = 256  # documents read at a time


class ColumnsComponent(Component[SegmentColumns], name="columns"):
    """Values of the documents' metadata that filters compare and facets count."""

    def open(self, segment: Segment) -> SegmentColumns:
        return SegmentColumns(segment.folder, segment.documents)

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        """Raise IndexFormatError if segments have columns of the same name and different types."""
        types: dict[str, str] = {}
        for leaf in leaves:
            for name, kind in leaf.segment.columns.types.items():
                if types.setdefault(name, kind) != kind:
                    raise IndexFormatError(f"{leaf.segment.folder.parent} is damaged: '{name}' has two types; {REMEDY}")
        columns = {}
        for name, kind in types.items():
            parts = [(leaf, leaf.segment.columns.values(name, kind)) for leaf in leaves]
            columns[name] = join_values([part if leaf.dead is None else part.of(leaf.live) for leaf, part in parts])
        write_columns(folder, columns)
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            leaf.segment.columns.check()

    def facts(self, state: Described) -> dict[str, object]:
        return {"columns": state.columns}


COLUMNS: ColumnsComponent = components["columns"]


def converted_columns(segment: Segment, folder: Path, schema: Schema) -> SegmentColumns:
    """Convert the columns of a segment's documents to the types of `schema`, in the empty `folder`."""
    writer = ColumnWriter(folder, schema, lenient=True)
    for first in range(0, segment.documents, BATCH_SIZE):
        docs = segment.docs(first, min(first + BATCH_SIZE, segment.documents))
        metadata = [{name: value for name, value in doc.metadata.items() if name in schema.types} for doc in docs]
        writer.add([doc.id for doc in docs], metadata)
    writer.close()
    return SegmentColumns(folder, segment.documents)
