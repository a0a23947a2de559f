"""Steps that an interrupt (Ctrl-C) does not cut in two, and what they have put in its place so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

complete: list[Path] = []
"""What this process has put in its place, in that order: files, and folders that appear whole."""


@contextmanager
def uninterrupted(place: Path | None = None) -> Iterator[None]:
    """Lets an interrupt that comes while the block runs take effect when it has ended.

    Only the main thread is ever interrupted; in another one the block just runs.

    Args:
        place: What is complete when the block ends well.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        if place is not None:
            complete.append(place)
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
        if place is not None:
            complete.append(place)
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(*waiting[0])
