"""Memory and processor of a server that goes on for weeks: what its states had goes back, and getting one ready gives way."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading

LARGE = 1 << 20  # bytes of an array that has pages of its own
MMAP_THRESHOLD = -3  # as malloc.h of glibc has it
NICENESS = 5


def give_large_back() -> None:
    """Has arrays of a megabyte and more give their memory back when they go; without glibc nothing changes.

    By itself glibc soon keeps pieces of up to 32 MB, between which what is smaller settles: a server whose index changes would
    grow with each state.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)


def trim() -> None:
    """Gives back what is free of the memory that glibc keeps."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def give_way() -> None:
    """Has this thread, and those that it starts, run when no other needs the processor; on Linux, where threads can."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
