"""The columns of several segments as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core.errors import IndexFormatError
from ...storage.arrays import REMEDY
from ..leaf import Leaf
from ..segment import Segment
from .schema import Schema
from .stored import SegmentColumns, columns_of
from .values import Values, joined, write_columns
from .writer import ColumnWriter

SOME = 256  # documents that are read together


def merge_columns(leaves: Sequence[Leaf], folder: Path, columns: Sequence[SegmentColumns] | None = None) -> None:
    """Writes the columns of the living documents of some leaves, byte for byte as a build of these documents would.

    Args:
        leaves: The leaves, in their order.
        folder: The folder of the new segment.
        columns: Those of each leaf, where they are not what its segment has.

    Raises:
        IndexFormatError: A file is damaged, or the segments have columns of the same name and of other types.
    """
    columns = columns or [columns_of(leaf.segment) for leaf in leaves]
    types: dict[str, str] = {}
    for own in columns:
        for name, kind in own.types.items():
            if types.setdefault(name, kind) != kind:
                raise IndexFormatError(f"{leaves[0].segment.folder.parent} is damaged: '{name}' has two types; {REMEDY}")
    write_columns(folder, {name: _joined(leaves, columns, name, kind) for name, kind in types.items()})


def columns_anew(segment: Segment, folder: Path, schema: Schema) -> SegmentColumns:
    """The columns of a segment's documents, as they are with other types than those that they have.

    Args:
        segment: The segment.
        folder: An empty folder, where their files go.
        schema: The types, which have room for all values.
    """
    assert segment.store is not None
    writer = ColumnWriter(folder, schema, lenient=True)
    for first in range(0, segment.documents, SOME):
        docs = segment.docs(first, min(first + SOME, segment.documents))
        taken = [{name: value for name, value in doc.metadata.items() if name in schema.types} for doc in docs]
        writer.add([doc.id for doc in docs], taken)
    writer.close()
    return SegmentColumns(folder, segment.documents)


def _joined(leaves: Sequence[Leaf], columns: Sequence[SegmentColumns], name: str, kind: str) -> Values:
    parts = [own.values(name, kind) for own in columns]
    return joined([part if leaf.dead is None else part.of(leaf.live) for part, leaf in zip(parts, leaves, strict=True)])
