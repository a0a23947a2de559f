"""Cutting a segment into shards: each byte for byte as a build of its documents writes it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from ...core.progress import Report
from ..deletions import Deletions
from ..leaf import Leaf
from ..merge import merge_segments
from ..segment import Segment


def cut(
    segment: Segment, shards: int, folder: Path, *, memory: int, threads: int, progress: Report
) -> list[tuple[Path, dict[str, int]]]:
    """Writes a segment for each shard: documents in a row, of which each shard has as many as the others, or one less.

    Args:
        segment: The documents.
        shards: How many shards there are to be; some have no document where there are fewer.
        folder: Where a folder for each shard goes.
        memory: Bounds the bytes that postings take.
        threads: How many threads work side by side.
        progress: Is called now and then.

    Returns:
        The folder of each shard, and its counts.
    """
    segments: list[tuple[Path, dict[str, int]]] = []
    edges = [segment.documents * shard // shards for shard in range(shards + 1)]
    for number, (first, last) in enumerate(pairwise(edges)):
        place = folder / f"shard-{number}"
        if first == last:
            segments.append((place, {"documents": 0}))
            continue
        others = np.ones(segment.documents, dtype=np.bool_)
        others[first:last] = False
        place.mkdir()
        leaf = Leaf(segment, 0, Deletions.of(segment.lists, others))
        segments.append((place, merge_segments([leaf], place, memory=memory, threads=threads, progress=progress)))
    return segments
