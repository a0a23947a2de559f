"""Temporary folders that are removed with the last value that uses them, or with the process."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path

from ..core.errors import FontesError
from .interrupts import uninterrupted
from .locks import locked

PREFIX = "fontes-memory-"
LOCK = "lock"  # not the folder itself, which those who write in it lock
_BUSY = FontesError("the folder is in use")


class TemporaryFolder:
    """A temporary folder that is removed with this object, or when the process ends.

    That of a process that was killed is removed when the next one is made.

    Attributes:
        path: Its path.
        remove: Removes it at once.

    Raises:
        OSError: It cannot be created.
    """

    def __init__(self) -> None:
        parent = Path(tempfile.gettempdir())
        with locked(parent), uninterrupted():
            for leftover in parent.glob(f"{PREFIX}*"):
                with suppress(OSError, FontesError), locked(leftover / LOCK, _BUSY):
                    shutil.rmtree(leftover, ignore_errors=True)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            (self.path / LOCK).touch()
            lock = ExitStack()
            lock.enter_context(locked(self.path / LOCK, _BUSY))
        self.remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())
        _FOLDERS[self.path] = self

    @classmethod
    def around(cls, path: Path) -> TemporaryFolder | None:
        """Return the temporary folder of this process that holds a path, to keep it; None for any other path."""
        return _FOLDERS.get(path.parent)


def _remove(path: Path, lock: ExitStack, process: int) -> None:
    if process == os.getpid():  # not in a fork of the process, which has the object, too
        shutil.rmtree(path, ignore_errors=True)
    lock.close()


_FOLDERS: weakref.WeakValueDictionary[Path, TemporaryFolder] = weakref.WeakValueDictionary()
