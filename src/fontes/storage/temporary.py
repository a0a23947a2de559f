"""Temporary folders and files, and leftovers of stopped processes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import FontesError
from .system import is_alive, locked, uninterrupted

PREFIX = "fontes-memory-"
LOCK = "lock"  # not the folder itself, which those who write in it lock
_BUSY = FontesError("the folder is in use")
STAGING_FOLDER = re.compile(r"\.(.+)\.building-[a-z0-9_]{8}", re.DOTALL)  # folders of `artifact.staging`
TEMPORARY_FILE = re.compile(r"\.(.+)\.(\d+)-\d+\.tmp", re.DOTALL)  # files of `files.write`, with the process id


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


@dataclass(frozen=True)
class Leftover:
    """Orphaned folder or file.

    Args:
        path: Its path.
        what: Description.
        in_use: Whether a process uses it, so that it stays.
        guard: Folder to lock during removal.
        is_orphaned: Whether it is still orphaned, checked under that lock.
    """

    path: Path
    what: str
    in_use: bool
    guard: Path = field(repr=False)
    is_orphaned: Callable[[], bool] = field(default=lambda: True, repr=False, compare=False)

    def remove(self) -> bool:
        """Remove it unless in use; whether it is gone."""
        with suppress(OSError, FontesError), locked(self.guard):
            if self.is_orphaned() and not (self.guard != self.path and is_in_use(self.path)):
                if self.path.is_dir():
                    shutil.rmtree(self.path, ignore_errors=True)
                else:
                    self.path.unlink()
        return not self.path.exists()


def hidden(folder: Path, name: str | None = None) -> Iterator[Leftover]:
    """Yield hidden temporary folders and files in a folder, for the final name `name` or any."""
    with suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry.is_symlink():
                continue
            if (match := STAGING_FOLDER.fullmatch(entry.name)) and name in (None, match[1]) and entry.is_dir():
                yield Leftover(entry, f"an unfinished {match[1]}", is_in_use(entry), folder)
            elif (match := TEMPORARY_FILE.fullmatch(entry.name)) and name in (None, match[1]) and entry.is_file():
                yield Leftover(entry, f"an unfinished {match[1]}", is_alive(int(match[2])), folder)


def is_in_use(path: Path) -> bool:
    """Whether another process or thread holds a folder's lock; files are never locked."""
    if path.is_dir():
        with suppress(OSError):
            try:
                with locked(path, _BUSY):
                    return False
            except FontesError:
                return True
    return False


_FOLDERS: weakref.WeakValueDictionary[Path, TemporaryFolder] = weakref.WeakValueDictionary()
