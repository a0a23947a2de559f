"""The columns of several segments as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core.errors import IndexFormatError
from ...storage.arrays import REMEDY
from ..leaf import Leaf
from .stored import SegmentColumns, columns_of
from .values import Values, joined, write_columns


def merge_columns(leaves: Sequence[Leaf], folder: Path) -> None:
    """Writes the columns of the living documents of some leaves, byte for byte as a build of these documents would.

    Args:
        leaves: The leaves, in their order.
        folder: The folder of the new segment.

    Raises:
        IndexFormatError: A file is damaged, or the segments have columns of the same name and of other types.
    """
    columns = [columns_of(leaf.segment) for leaf in leaves]
    types: dict[str, str] = {}
    for own in columns:
        for name, kind in own.types.items():
            if types.setdefault(name, kind) != kind:
                raise IndexFormatError(f"{leaves[0].segment.folder.parent} is damaged: '{name}' has two types; {REMEDY}")
    write_columns(folder, {name: _joined(leaves, columns, name, kind) for name, kind in types.items()})


def _joined(leaves: Sequence[Leaf], columns: Sequence[SegmentColumns], name: str, kind: str) -> Values:
    parts = [own.values(name, kind) for own in columns]
    return joined([part if leaf.dead is None else part.of(leaf.live) for part, leaf in zip(parts, leaves, strict=True)])
