"""Loops in plain Python that Numba compiles: loading it takes a second, so it waits until there is work that is worth that.

A process that answers one question goes through some ten thousand steps, which Python itself takes in milliseconds. So a loop
that says how many steps it takes is run as it stands until all of them together have taken half as long as Numba takes to load;
from then on everything is compiled. Both give the same numbers.
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

STEPS = 400_000  # of Python, of about a microsecond each, before Numba is loaded

logger = logging.getLogger("fontes.storage")

_lock = threading.RLock()
_waiting: list[tuple[Function, dict[str, Any], Kernel | None]] = []  # what is compiled when Numba is loaded
_left = STEPS  # -1 when it is


def kernel(steps: Callable[..., int] | None = None) -> Callable[[Function], Any]:
    """A decorator for a loop that is called from Python. Compiled, it releases Python's lock, and is kept on disk.

    Args:
        steps: From a call's arguments to about how many steps of a microsecond Python takes for it, if the loop may run as it
            stands; None for one that is always compiled.
    """
    return lambda function: _compiled(function) if is_loaded() else Kernel(function, steps)


def inner(**options: Any) -> Callable[[F], F]:
    """A decorator for a part of loops, which only loops of the same module call.

    Args:
        options: More for `numba.njit`.
    """

    def decorate(function: F) -> F:
        if is_loaded():
            return _compiled(function, **options)  # type: ignore[no-any-return]
        _waiting.append((function, options, None))
        return function

    return decorate


def compiled(**options: Any) -> Callable[[Function], Any]:
    """A decorator for a loop that is compiled at its first call, in a module that loads Numba in any case.

    Args:
        options: More for `numba.njit`.
    """
    return lambda function: _compiled(function, **options)


class Kernel:
    """A loop that is compiled when that is worth it; see `kernel`.

    Attributes:
        py_func: The function as it was written.
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
    """Whether loops are compiled from now on."""
    return _left < 0


def affordable(steps: int) -> bool:
    """Whether so many more steps of Python cost less than to load Numba; they are counted if so."""
    global _left
    if steps > _left or "numba" in sys.modules:
        return False
    _left -= steps
    return True


def load() -> None:
    """Has all loops compiled from now on, as a server does before it answers."""
    global _left
    with _lock:
        _left = -1
        waiting, _waiting[:] = sorted(_waiting, key=lambda one: one[2] is not None), []  # parts before the loops that call them
        for function, options, loop in waiting:
            dispatcher = _compiled(function, **options)
            # In the place of the function in its module, so that the loops that call it see it compiled.
            function.__globals__[function.__name__] = dispatcher
            if loop is not None:
                loop._compiled = dispatcher


def private_folder() -> Path | None:
    """A folder for compiled code where neither the package nor the user's home can be written; None where there is none.

    It is `fontes-compiled` in the folder that systemd gives a service (CACHE_DIRECTORY, RUNTIME_DIRECTORY) or a session
    (XDG_RUNTIME_DIR), or one named after the user in the folder for temporary files. Code is loaded from it, so no other user
    may be able to put any there: it belongs to this user, who alone can write it, and nobody else can replace it.
    """
    services = [os.environ.get(name, "") for name in ("CACHE_DIRECTORY", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR")]
    folders = [Path(paths.partition(":")[0], "fontes-compiled") for paths in services if paths.startswith("/")]
    with suppress(FileNotFoundError):
        folders.append(Path(tempfile.gettempdir(), f"fontes-compiled-{os.geteuid()}"))
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _safe(folder):
                tempfile.TemporaryFile(dir=folder).close()
                return folder
    return None


def _safe(folder: Path) -> bool:
    """Whether nobody but this user can write to a folder or replace it."""
    own, above = folder.lstat(), folder.parent.stat()
    replaceable = above.st_uid not in (0, os.geteuid()) or (above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(own.st_mode) and own.st_uid == os.geteuid() and not own.st_mode & 0o022 and not replaceable


def _compiled(function: Function, **options: Any) -> Any:
    from numba import njit

    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # Numba can write neither beside the package nor in the user's home
        return njit(cache=_other_cache(), nogil=True, **options)(function)


@cache
def _other_cache() -> bool:
    """Has Numba keep compiled code in the private folder; whether there is one. It says so, once."""
    from numba import config

    if (folder := private_folder()) is None:
        logger.warning("compiled code is not kept, as there is no folder to write it to; NUMBA_CACHE_DIR names one")
        return False
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    logger.warning("compiled code is kept in %s; NUMBA_CACHE_DIR names another folder", folder)
    return True
