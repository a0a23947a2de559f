"""Shards: splitting a segment into shards, and reading an index without its damaged shards."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import IndexFormatError
from .build import merge_segments
from .files import check_contents, check_sizes, shard_of, with_segments
from .segment import Deletions, Leaf, Segment


def split_segment(segment: Segment, shards: int, folder: Path) -> list[tuple[Path, dict[str, int]]]:
    """Write a segment for each shard, of consecutive documents; the numbers of documents differ by one at most.

    Returns:
        The folder of each shard in `folder`, and its counts; shards without documents have no folder.
    """
    segments: list[tuple[Path, dict[str, int]]] = []
    edges = [segment.documents * shard // shards for shard in range(shards + 1)]
    for number, (first, last) in enumerate(pairwise(edges)):
        shard_folder = folder / f"shard-{number}"
        if first == last:
            segments.append((shard_folder, {"documents": 0}))
            continue
        dead = np.ones(segment.documents, dtype=np.bool_)
        dead[first:last] = False
        shard_folder.mkdir()
        leaf = Leaf(segment, 0, Deletions.of(segment.lists, dead))
        segments.append((shard_folder, merge_segments([leaf], shard_folder)))
    return segments


def readable_manifest(
    path: Path, manifest: dict[str, Any], verify: bool, open_segment: Callable[[dict[str, Any]], object]
) -> dict[str, object]:
    """Return the manifest of the shards that can be read, which is the index's own manifest if all can.

    Args:
        path: The index.
        manifest: Its manifest.
        verify: Whether to read every file.
        open_segment: Opens the segment of an entry; raises IndexFormatError or OSError if it cannot be read.

    Returns:
        The manifest. If shards are missing, "missing" describes each of them, and "committed" is the fingerprint of the
        complete index.

    Raises:
        IndexFormatError: No shard can be read.
    """
    facts = {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
    problems: dict[int, str] = {}
    for entry in manifest["segments"]:
        single = {**facts, "segments": [entry]}
        try:
            check_sizes(path, single)
            if verify:
                check_contents(path, single)
            open_segment(entry)
        except (IndexFormatError, OSError) as error:
            problems.setdefault(shard_of(entry), str(error))
    if not problems:
        return manifest
    remaining = [entry for entry in manifest["segments"] if shard_of(entry) not in problems]
    if not remaining:
        raise IndexFormatError(next(iter(problems.values())))
    sizes = dict.fromkeys(sorted(problems), 0)
    for entry in manifest["segments"]:
        if shard_of(entry) in sizes:
            sizes[shard_of(entry)] += entry["documents"] - (entry["deleted"]["documents"] if entry["deleted"] else 0)
    missing = [{"shard": shard, "documents": size, "problem": problems[shard]} for shard, size in sizes.items()]
    remaining_manifest = with_segments({**facts, "missing": list(sizes), "committed": manifest["fingerprint"]}, remaining)
    return {**remaining_manifest, "missing": missing}  # the fingerprint covers the numbers of the missing shards alone
