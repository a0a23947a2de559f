"""Merging: one segment of the documents that live in several, byte for byte as a build of these documents writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.progress import Report
from ..core.threads import Workers
from ..core.work import thread_count, work
from ..storage.arrays import smallest, write_array
from .component import components
from .leaf import Leaf, leaves_of
from .segment import KERNEL
from .tables import joined


def merge_segments(leaves: Sequence[Leaf], folder: Path, progress: Report) -> dict[str, int]:
    """Writes the files of one segment: the documents that live in the leaves, in their order.

    A component that not all segments have is left out; see `Component.conflict`.

    Args:
        leaves: The segments, adjacent ones of a state.
        folder: Where the files go.
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
    threads = thread_count()
    with work(threads=max(1, threads - 1)), Workers(min(2, threads)) as workers:  # the others do not need the postings
        counts = workers.begin(components[first].merge, leaves, folder, progress)
        more = [components[name].merge(leaves, folder, progress) for name in others]
        return {"documents": len(ids), **counts(), **{key: value for each in more for key, value in each.items()}}
