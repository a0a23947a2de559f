"""Operating systems: locks and entries of folders, renames, whether a process lives, and blocks that Ctrl-C does not split."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from ..core.errors import FontesError

WINDOWS = os.name == "nt"

ATTEMPTS = 50  # to rename on Windows, which fails while another process reads the target
RETRY_PAUSE = 0.02  # seconds between two attempts
POLL = 0.01  # seconds between two attempts to get a lock
complete: list[Path] = []
"""Files and folders that this process has completed, in order."""
QUERY, RUNNING = 0x1000, 259  # PROCESS_QUERY_LIMITED_INFORMATION and STILL_ACTIVE of Windows


def lock_handle(path: Path) -> int:
    """Open a folder or file to lock it; OSError if that is not possible.

    Windows opens no folders; a file in the user's temporary folder, named after the path, is locked instead.
    """
    if not WINDOWS:
        return os.open(path, os.O_RDONLY)
    path.stat()
    folder = Path(tempfile.gettempdir(), "fontes-locks")
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(os.path.normcase(os.path.realpath(path)).encode(errors="surrogatepass")).hexdigest()
    return os.open(folder / name, os.O_RDWR | os.O_CREAT)


def is_at(handle: int, path: Path) -> bool:
    """Whether a folder opened by `lock_handle` is at a path, without following links; FileNotFoundError if nothing is there.

    On Windows, where the lock belongs to the path, this only checks that something is there.
    """
    status = path.lstat()
    return WINDOWS or os.path.samestat(os.fstat(handle), status)


def sync_file(path: Path) -> None:
    """Flush a file to disk; several at the same time take hardly longer than one."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk; Windows does so by itself."""
    if WINDOWS:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(source: Path, target: Path) -> None:
    """Rename a file, replacing the target."""
    for _ in range(ATTEMPTS if WINDOWS else 0):
        with suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(RETRY_PAUSE)
    source.replace(target)


def exchange(first: Path, second: Path) -> bool:
    """Swap two folders atomically; False where the system cannot (all but Linux)."""
    with suppress(AttributeError, OSError, TypeError):
        current_folder, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
        return bool(
            ctypes.CDLL(None).renameat2(current_folder, os.fsencode(first), current_folder, os.fsencode(second), swap) == 0
        )
    return False


def is_alive(process: int) -> bool:
    """Whether a process with this id exists."""
    if WINDOWS:  # where os.kill(process, 0) would end it
        kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009
        handle = kernel.OpenProcess(QUERY, False, process)
        code = ctypes.c_ulong(RUNNING)
        if handle:
            kernel.GetExitCodeProcess(handle, ctypes.byref(code))
            kernel.CloseHandle(handle)
        return bool(handle) and code.value == RUNNING
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # it belongs to another user
    return True


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
