"""Blocks that an interrupt (Ctrl-C) does not split, and the paths that they completed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

complete: list[Path] = []
"""Files and folders that this process has completed, in order."""


@contextmanager
def uninterrupted(path: Path | None = None) -> Iterator[None]:
    """Delay an interrupt until the end of the block, which completes `path`. Has no effect outside the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        if path is not None:
            complete.append(path)
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
        if path is not None:
            complete.append(path)
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(*waiting[0])
