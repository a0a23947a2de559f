"""Building the segments of an index again from its stored documents, with other components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.progress import ProgressCallback
from ..core.values import Doc
from .build import READ_SIZE, IndexSettings, build_segment
from .columns import COLUMNS

if TYPE_CHECKING:
    from .draft import Draft
    from .segment import Leaf


class StoredDocuments:
    """The living documents of some segments, in order."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves

    def __len__(self) -> int:
        return sum(leaf.documents for leaf in self._leaves)

    def __iter__(self) -> Iterator[Doc]:
        for leaf in self._leaves:
            ids, texts = leaf.segment.ids, leaf.segment.texts
            for first in range(0, leaf.documents, READ_SIZE):
                positions = leaf.live[first : first + READ_SIZE].tolist()
                yield from texts.read([ids[position] for position in positions], positions)


def rebuild_all(draft: Draft, settings: IndexSettings, progress: ProgressCallback) -> None:
    """Build one segment of each shard again, as a new index of its documents has it; columns and vectors are copied."""

    def write(leaves: Sequence[Leaf], folder: Path, progress: ProgressCallback) -> dict[str, int]:
        counts = build_segment(StoredDocuments(leaves), folder, settings, progress=progress)
        return counts | COLUMNS.merge(leaves, folder, progress)

    for first, last in draft.sort_by_shard():
        draft.merge(first, last, progress, write)
