"""Exclusive lock on a folder or file.

It is an operating-system lock on the folder or file itself: it needs no lock file, ends with its process, and holds across
users. On Windows a file in the user's temporary folder is locked instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import FontesError
from .system import lock_handle

POLL = 0.01  # seconds between two attempts to get a lock


@contextmanager
def locked(folder: Path, busy: FontesError | None = None) -> Iterator[int]:
    """Hold the lock of a folder or file during the block, and yield its descriptor, valid even after a rename.

    Raises `busy` if another process or thread holds the lock (None waits), and OSError if the folder cannot be opened.
    """
    from filelock import lock_descriptor

    handle = lock_handle(folder)
    try:
        if not lock_descriptor(handle, blocking=busy is None, poll_interval=POLL):
            assert busy is not None
            raise busy
        yield handle
    finally:
        os.close(handle)
