"""Tasks of a build on a cluster that go wrong: what processes of the cluster import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fontes.cluster import segments


def part_that_dies_once(part: segments.Part) -> segments.Finished:
    """Kills its process when the first segment is written and not yet finished."""
    return _dying_once(part.folder, "part", lambda: segments.make_part(part))


def merge_that_dies_once(merge: segments.Merge) -> segments.Finished:
    return _dying_once(merge.folder, "merge", lambda: segments.make_merge(merge))


def counted_part(part: segments.Part) -> segments.Finished:
    """Writes down that it was called, and whether there was something to do."""
    finished = segments.make_part(part)
    (part.folder.parent / f"{'before' if finished.before else 'new'}-{part.name}").touch()
    return finished


def slow_part(part: segments.Part) -> segments.Finished:
    """Takes its time, after it has said so."""
    (part.folder.parent / f"begun-{part.name}-{os.getpid()}").touch()
    time.sleep(1.5)
    return counted_part(part)


def _dying_once(folder: Path, name: str, work) -> segments.Finished:  # type: ignore[no-untyped-def]
    mark = folder.parent / f"died-{name}"
    if mark.exists():
        return work()  # type: ignore[no-any-return]
    mark.touch()
    segments.seal = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    return work()  # type: ignore[no-any-return]
