"""The peak memory of a new process that searches."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from ..core.expression import part

TOPICS = 10


def peak_memory(path: Path, pipeline: str, texts: Iterable[str], k: int = 10) -> float:
    """Return the peak resident memory in bytes of a process that opens an index and searches for a few texts.

    The memory includes the pages of the index that the searches read, Python, and the libraries that the pipeline imports.

    Args:
        path: Folder of the index.
        pipeline: The text of a pipeline.
        texts: Queries.
        k: Documents per query.

    Returns:
        NaN, with a warning, if the process fails, for instance because the index has an analyzer without a stored name.
    """
    task = json.dumps([str(path), pipeline, list(texts), k])
    child = subprocess.run([sys.executable, "-m", __name__], input=task, capture_output=True, text=True)
    if child.returncode:
        reason = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        warnings.warn(f"the memory of {pipeline} cannot be measured: {reason}", stacklevel=2)
        return float("nan")
    return float(child.stdout.splitlines()[-1])


def _peak() -> int:
    """Return the peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the memory of the parent before exec
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _search() -> None:
    from ..index import Index

    path, pipeline, texts, k = json.load(sys.stdin)
    stage = part(pipeline, Index.open(path))
    for text in texts:
        stage.search(text, k)
    print(_peak())


if __name__ == "__main__":
    _search()
