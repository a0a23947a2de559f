"""Merging: one segment of the documents that live in several, byte for byte as a build of these documents writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.progress import Report
from ..core.threads import Workers
from ..storage.arrays import smallest, write_array
from .component import Resources, components
from .leaf import Leaf, leaves_of
from .segment import KERNEL
from .tables import joined


def merge_segments(leaves: Sequence[Leaf], folder: Path, *, memory: int, threads: int, progress: Report) -> dict[str, int]:
    """Writes the files of one segment: the documents that live in the leaves, in their order.

    A component that not all segments have is left out; see `Component.conflict`.

    Args:
        leaves: The segments, adjacent ones of a state.
        folder: Where the files go.
        memory: Bounds the bytes that postings take; the terms, the ids and some blocks of text come on top.
        threads: Threads that work side by side.
        progress: Is called now and then.

    Returns:
        The counts of documents, terms, postings and tokens.

    Raises:
        IndexFormatError: A segment is damaged.
    """
    leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in leaves)
    ids = joined([leaf.segment.ids for leaf in leaves], [None if leaf.dead is None else leaf.live for leaf in leaves])
    write_array(folder, "doc_ids.bytes", ids.blob)
    write_array(folder, "doc_ids.bounds", smallest(ids.offsets))
    write_array(folder, "doc_ids.order", ids.order)
    names: Iterable[str] = leaves[0].segment.opened if leaves else KERNEL
    first, *others = [name for name in names if all(name in leaf.segment.opened for leaf in leaves)]
    resources = Resources(memory, max(1, threads - 1), progress)
    with Workers(min(2, threads)) as workers:  # the other components do not need the postings
        counts = workers.begin(components[first].merge, leaves, folder, resources)
        more = [components[name].merge(leaves, folder, resources) for name in others]
        return {"documents": len(ids), **counts(), **{key: value for each in more for key, value in each.items()}}
