"""The one lock of Fontes: a folder, or a file, that one process or thread uses at a time.

The lock is one of the operating system on the folder or file itself. No file is written for it, it goes with the process that
holds it, and it holds for all users of the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import FontesError

POLL = 0.01  # seconds between two attempts to get a lock


@contextmanager
def locked(folder: Path, busy: FontesError | None = None) -> Iterator[int]:
    """Holds the lock of a folder, or of a file, while the block runs.

    Args:
        folder: The folder or file, which must exist.
        busy: What is raised where another process or thread holds the lock; it says who is in the way. None waits until the
            lock is free.

    Yields:
        The descriptor of the folder, which stays that of the locked folder when it is renamed.

    Raises:
        OSError: The folder cannot be opened.
    """
    from filelock import lock_descriptor

    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock_descriptor(handle, blocking=busy is None, poll_interval=POLL):
            assert busy is not None
            raise busy
        yield handle
    finally:
        os.close(handle)
