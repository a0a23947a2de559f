"""The component of columns: merged, and read again from the documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import IndexFormatError
from ...core.progress import Report
from ...storage.arrays import REMEDY
from ..component import Component, components
from ..leaf import Leaf
from ..segment import Segment
from .schema import Schema
from .stored import SegmentColumns
from .values import Values, joined, write_columns
from .writer import ColumnWriter

if TYPE_CHECKING:
    from ..state import State

SOME = 256  # documents that are read together


class Columns(Component[SegmentColumns], name="columns"):
    """Values of the documents' metadata that filters compare and facets count."""

    def open(self, segment: Segment) -> SegmentColumns:
        return SegmentColumns(segment.folder, segment.documents)

    def merge(self, leaves: Sequence[Leaf], folder: Path, progress: Report) -> dict[str, int]:
        """Raises IndexFormatError where segments have columns of the same name and of other types, too."""
        types: dict[str, str] = {}
        for leaf in leaves:
            for name, kind in leaf.segment.columns.types.items():
                if types.setdefault(name, kind) != kind:
                    raise IndexFormatError(f"{leaf.segment.folder.parent} is damaged: '{name}' has two types; {REMEDY}")
        write_columns(folder, {name: _joined(leaves, name, kind) for name, kind in types.items()})
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            leaf.segment.columns.check()

    def facts(self, state: State) -> dict[str, Any]:
        return {"columns": state.columns}


COLUMNS: Columns = components["columns"]  # type: ignore[assignment]


def columns_anew(segment: Segment, folder: Path, schema: Schema) -> SegmentColumns:
    """The columns of a segment's documents, as they are with other types than those that they have.

    Args:
        segment: The segment.
        folder: An empty folder, where their files go.
        schema: The types, which have room for all values.
    """
    writer = ColumnWriter(folder, schema, lenient=True)
    for first in range(0, segment.documents, SOME):
        docs = segment.docs(first, min(first + SOME, segment.documents))
        taken = [{name: value for name, value in doc.metadata.items() if name in schema.types} for doc in docs]
        writer.add([doc.id for doc in docs], taken)
    writer.close()
    return SegmentColumns(folder, segment.documents)


def _joined(leaves: Sequence[Leaf], name: str, kind: str) -> Values:
    parts = [leaf.segment.columns.values(name, kind) for leaf in leaves]
    return joined([part if leaf.dead is None else part.of(leaf.live) for part, leaf in zip(parts, leaves, strict=True)])
