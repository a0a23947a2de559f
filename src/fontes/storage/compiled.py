"""Python loops compiled by Numba once enough work justifies loading it (about a second).

A loop with a step count runs uncompiled until all such loops together have taken half of Numba's load time; then all loops
are compiled. Both give the same numbers.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

STEPS = 400_000  # Python steps, of about a microsecond each, that run before Numba is loaded

logger = logging.getLogger("fontes.storage")

_lock = threading.RLock()
_waiting: list[tuple[Function, dict[str, Any], Kernel | None]] = []  # loops to compile when Numba is loaded
_steps_left = STEPS  # -1 from the beginning of `load`: what is decorated from then on is compiled at once
_loaded = False  # at its end: whoever imports a loop before may get the function that is not compiled


def kernel(steps: Callable[..., int] | None = None) -> Callable[[Function], Any]:
    """Decorate a loop called from Python. Compiled, it releases the GIL and is cached on disk.

    Args:
        steps: Estimates a call's steps (about a microsecond of Python each) from its arguments; None always compiles.
    """
    return lambda function: _compiled(function) if _steps_left < 0 else Kernel(function, steps)


def inner(**options: Any) -> Callable[[F], F]:
    """Decorate a function called only by compiled loops; the options are those of `numba.njit`."""

    def decorate(function: F) -> F:
        if _steps_left < 0:
            return _compiled(function, **options)  # type: ignore[no-any-return]
        _waiting.append((function, options, None))
        return function

    return decorate


def compiled(**options: Any) -> Callable[[Function], Any]:
    """Decorate a loop of a module that loads Numba anyway; it is compiled at its first call, with options of `numba.njit`."""
    return lambda function: _compiled(function, **options)


class Kernel:
    """Loop compiled when worthwhile; see `kernel`.

    Attributes:
        py_func: The uncompiled function.
    """

    def __init__(self, function: Function, steps: Callable[..., int] | None) -> None:
        self.py_func = function
        self._steps = steps
        self._compiled: Function | None = None
        update_wrapper(self, function)
        _waiting.append((function, {}, self))

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            if self._steps is not None and affordable(self._steps(*args)):
                with np.errstate(over="ignore"):  # as in compiled code
                    return self.py_func(*args)
            load()
            assert self._compiled is not None
        return self._compiled(*args)


def is_loaded() -> bool:
    """Whether all loops are compiled, and modules that use them can be imported."""
    return _loaded


def affordable(steps: int) -> bool:
    """Whether these steps in Python cost less than loading Numba; if so, they are counted."""
    global _steps_left
    if steps > _steps_left or "numba" in sys.modules:
        return False
    _steps_left -= steps
    return True


def load() -> None:
    """Compile all loops from now on, as a server does before it answers."""
    global _loaded, _steps_left
    with _lock:
        _steps_left = -1
        # Functions called by loops come before the loops.
        waiting, _waiting[:] = sorted(_waiting, key=lambda entry: entry[2] is not None), []
        for function, options, loop in waiting:
            dispatcher = _compiled(function, **options)
            # The dispatcher replaces the function in its module, for the loops that call it.
            function.__globals__[function.__name__] = dispatcher
            if loop is not None:
                loop._compiled = dispatcher
        _loaded = True


def private_folder() -> Path | None:
    """Return the folder for compiled code where package and home are read-only; None if there is none.

    It is `fontes-compiled` in CACHE_DIRECTORY, RUNTIME_DIRECTORY or XDG_RUNTIME_DIR, or a folder named after the user in the
    temporary folder. Code is loaded from it, so it must belong to this user, and nobody else may write or replace it.
    """
    services = [os.environ.get(name, "") for name in ("CACHE_DIRECTORY", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR")]
    folders = [Path(paths.partition(":")[0], "fontes-compiled") for paths in services if paths.startswith("/")]
    with suppress(FileNotFoundError, AttributeError):  # Windows has no user ids
        folders.append(Path(tempfile.gettempdir(), f"fontes-compiled-{os.geteuid()}"))
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_private(folder):
                tempfile.TemporaryFile(dir=folder).close()
                return folder
    return None


def compiled_bytes() -> dict[str, int]:
    """Return the size of compiled code in each folder that has some, by path."""
    package = Path(__file__).parents[1]
    folders = {package, private_folder() or package, Path(os.environ.get("NUMBA_CACHE_DIR") or package)}
    sizes = {str(folder): sum(file.stat().st_size for file in folder.rglob("*.nb[ic]")) for folder in sorted(folders)}
    return {folder: size for folder, size in sizes.items() if size}


def _is_private(folder: Path) -> bool:
    """Whether only this user can write to a folder or replace it."""
    status, parent = folder.lstat(), folder.parent.stat()
    replaceable = parent.st_uid not in (0, os.geteuid()) or (parent.st_mode & 0o022 and not parent.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022 and not replaceable


def _compiled(function: Function, **options: Any) -> Any:
    from numba import njit

    try:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # Numba can write neither beside the package nor in the user's home
        dispatcher = njit(cache=_cache_in_private_folder(), nogil=True, **options)(function)
    if sources := sorted(_sources(function) - {function.__code__.co_filename}):
        with suppress(AttributeError):  # where loops are not cached
            stats = [Path(source).stat() for source in sources]
            file = dispatcher._cache._cache_file
            file._source_stamp = (file._source_stamp, *((status.st_mtime, status.st_size) for status in stats))
    return dispatcher


def _sources(function: Function) -> set[str]:
    """Source files of a loop and of those that it calls. A change of any invalidates its cache; Numba checks only the first."""
    files = {function.__code__.co_filename}
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None and called is not function:
            files |= _sources(called)
    return files


@cache
def _cache_in_private_folder() -> bool:
    """Point Numba's cache to the private folder, and log this once. Return whether there is such a folder."""
    from numba import config

    if (folder := private_folder()) is None:
        logger.warning("compiled code is not cached, as there is no folder to write it to; NUMBA_CACHE_DIR names one")
        return False
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    logger.warning("compiled code is cached in %s; NUMBA_CACHE_DIR names another folder", folder)
    return True
