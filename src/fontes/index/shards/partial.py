"""An index of which some shards cannot be read: what is left of it, and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import IndexFormatError
from ..files import check_contents, check_sizes, complete, shard_of


def readable(path: Path, manifest: dict[str, Any], verify: bool, opens: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The manifest of the shards that can be read, which is the index's own where all can.

    Args:
        path: The index.
        manifest: Its manifest.
        verify: Whether every file is read.
        opens: Opens a segment, and raises where that is not possible.

    Returns:
        The manifest; where shards are missing, with "missing", what there is to say of each of them, and under "committed" the
        fingerprint of the whole.

    Raises:
        IndexFormatError: None can be read.
    """
    facts = {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
    problems: dict[int, str] = {}
    for entry in manifest["segments"]:
        alone = {**facts, "segments": [entry]}
        try:
            check_sizes(path, alone)
            if verify:
                check_contents(path, alone)
            opens(entry)
        except (IndexFormatError, OSError) as error:
            problems.setdefault(shard_of(entry), str(error))
    if not problems:
        return manifest
    left = [entry for entry in manifest["segments"] if shard_of(entry) not in problems]
    if not left:
        raise IndexFormatError(next(iter(problems.values())))
    sizes = dict.fromkeys(sorted(problems), 0)
    for entry in manifest["segments"]:
        if shard_of(entry) in sizes:
            sizes[shard_of(entry)] += entry["documents"] - (entry["deleted"]["documents"] if entry["deleted"] else 0)
    missing = [{"shard": shard, "documents": size, "problem": problems[shard]} for shard, size in sizes.items()]
    whole = complete({**facts, "missing": list(sizes), "committed": manifest["fingerprint"]}, left)
    return {**whole, "missing": missing}  # what there is to say of them is not of the fingerprint
