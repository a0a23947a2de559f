"""Python loops compiled by Numba once enough work justifies loading it (about a second).

A loop with a step count runs uncompiled until all such loops together have taken half of Numba's load time. Then a thread
compiles all loops; until it has done so, loops run uncompiled where they take at most PAUSE steps. Both give the same numbers.
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
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakMethod

import numpy as np

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

STEPS = 400_000  # Python steps, of about a microsecond each, that run before Numba is loaded
PAUSE = 100_000  # steps of a loop that need not wait while Numba is loaded

MAX_CALLBACKS = 4  # the latest ones are called

logger = logging.getLogger("fontes.storage")

_lock = threading.RLock()
_waiting: list[tuple[Function, dict[str, object], Kernel | None]] = []  # loops to compile when Numba is loaded
_steps_left = STEPS  # -1 from the beginning of `load`: what is decorated from then on is compiled at once
_loaded = False  # at its end: whoever imports a loop before may get the function that is not compiled
_loader: threading.Thread | None = None  # while it loads, or calls what waits for it
_callbacks: list[Callable[[], object]] = []  # what the thread calls at its end
_next_code: WeakMethod[Callable[[], object]] | None = None  # what loads the code that a changed index needs
_preparer: threading.Thread | None = None  # the last thread that did so
_loops: list[Kernel] = []  # compiled loops that are not in their modules yet


def kernel(steps: Callable[..., int] | None = None) -> Callable[[Function], Any]:
    """Decorate a loop called from Python. Compiled, it releases the GIL and is cached on disk.

    Args:
        steps: Estimates a call's steps (about a microsecond of Python each) from its arguments; None always compiles.
    """
    return lambda function: _compiled(function) if _steps_left < 0 else Kernel(function, steps)


def inner(**options: object) -> Callable[[F], F]:
    """Decorate a function called only by compiled loops; the options are those of `numba.njit`."""

    def decorate(function: F) -> F:
        if _steps_left < 0:
            return _compiled(function, **options)  # type: ignore[no-any-return]
        _waiting.append((function, options, None))
        return function

    return decorate


def compiled(**options: object) -> Callable[[Function], Any]:
    """Decorate a loop of a module that loads Numba anyway; it is compiled at its first call, with options of `numba.njit`."""
    return lambda function: _compiled(function, **options)


class Kernel:
    """Loop compiled when worthwhile; see `kernel`.

    Attributes:
        py_func: The function.
        uncompiled: The function, which calls only functions that are not compiled either.
    """

    def __init__(self, function: Function, steps: Callable[..., int] | None) -> None:
        self.py_func = self.uncompiled = function
        self._steps = steps
        self._compiled: Any = None
        update_wrapper(self, function)
        _waiting.append((function, {}, self))

    @property
    def _numba_type_(self) -> object:
        """Its type for compiled loops that call it."""
        if self._compiled is None:
            raise AttributeError("_numba_type_")
        return self._compiled._numba_type_

    def __call__(self, *args: object) -> object:
        if self._compiled is None or not is_loaded():
            if self._steps is not None and affordable(self._steps(*args)):
                with np.errstate(over="ignore"):  # as in compiled code
                    return self.uncompiled(*args)
            load()
            assert self._compiled is not None
        return self._compiled(*args)


def is_loaded() -> bool:
    """Whether all loops are compiled, and modules that use them can be imported."""
    return _loaded and (_loader is None or _loader is threading.current_thread())


def affordable(steps: int) -> bool:
    """Whether these steps in Python cost less than loading Numba, or waiting for it; if so, they are counted."""
    global _steps_left, _loader
    if _loader is not None:
        return steps <= PAUSE and _loader is not threading.current_thread()
    if "numba" in sys.modules or _loaded:
        return False
    if steps <= _steps_left:
        _steps_left -= steps
        return True
    if steps > PAUSE:
        return False
    with _lock, suppress(RuntimeError):  # where no thread can be started, as at the end of a process
        if _loader is None and not _loaded:
            loader = threading.Thread(target=_load_in_thread, name="fontes-loader")
            loader.start()
            _loader = loader  # it waits for the lock
    return True


def when_loaded(callback: Callable[[], object]) -> None:
    """Let the thread that loads Numba call a function before compiled loops are used, such as one that prepares a search."""
    if not _loaded and callback not in _callbacks:
        _callbacks[:] = [*_callbacks[1 - MAX_CALLBACKS :], callback]


def when_changed(method: Callable[[], object]) -> None:
    """Let a thread call a method when an index begins to change, which loads the compiled code that its new state needs.

    Args:
        method: A method of an object, which is not kept alive. The last one is called.
    """
    global _next_code
    _next_code = WeakMethod(method)


def prepare_for_change() -> None:
    """Call the method that `when_changed` got in a thread, once."""
    global _next_code, _preparer
    with _lock, suppress(RuntimeError):  # as above
        method, _next_code = _next_code and _next_code(), None
        if method is not None:
            preparer = threading.Thread(target=_quietly, args=(method,), name="fontes-preparer")
            preparer.start()
            _preparer = preparer


def _quietly(function: Callable[[], object]) -> None:
    try:
        function()
    except Exception:  # a search meets the problem, and reports it
        logger.debug("compiled loops could not be prepared", exc_info=True)


def _load_in_thread() -> None:
    global _loader
    try:
        load()
        while _callbacks and threading.main_thread().is_alive():
            _callbacks.pop()()
    except Exception:  # a search that needs the loops meets the problem, and reports it
        logger.debug("compiled loops could not be prepared", exc_info=True)
    finally:
        with _lock:
            _loader = None
            _callbacks.clear()
            _replace_loops()


def load() -> None:
    """Compile all loops from now on, as a server does before it answers."""
    global _loaded, _steps_left
    with _lock:
        _steps_left = -1
        # Functions called by loops come before the loops.
        waiting = sorted(_waiting, key=lambda entry: entry[2] is not None)
        _keep_uncompiled(waiting)
        modules = list({id(function.__globals__): function.__globals__ for function, _, _ in waiting}.values())
        for function, options, loop in waiting:
            dispatcher = _compiled(function, **options)
            if loop is None:  # it replaces the function in its module and where it is imported, for the loops that call it
                for module in modules:
                    if module.get(function.__name__) is function:
                        module[function.__name__] = dispatcher
            else:
                loop._compiled = dispatcher
                _loops.append(loop)
        del _waiting[: len(waiting)]  # at the end: what was interrupted can be repeated
        _loaded = True
        if _loader is None:
            _callbacks.clear()
        if _loader is not threading.current_thread():
            _replace_loops()


def _wait_for_loader() -> None:
    """Wait until no thread loads compiled code: a fork of the process would have its locks, but not the thread."""
    for thread in (_loader, _preparer):
        if thread is not None and thread is not threading.current_thread():
            thread.join()


if hasattr(os, "register_at_fork"):  # Windows has none
    os.register_at_fork(before=_wait_for_loader)


def _replace_loops() -> None:
    """Replace loops by what is compiled, which is called faster."""
    while _loops:
        loop = _loops.pop()
        loop.py_func.__globals__[loop.py_func.__name__] = loop._compiled


def _keep_uncompiled(waiting: list[tuple[Function, dict[str, object], Kernel | None]]) -> None:
    """Give loops copies of the functions that they call, for threads that run them while these are replaced."""
    names = {id(function.__globals__): {**function.__globals__} for function, _, _ in waiting}
    copies: dict[Function, Function] = {}
    for function, _, loop in waiting:
        of_module = names[id(function.__globals__)]
        copies[function] = FunctionType(
            function.__code__, of_module, function.__name__, function.__defaults__, function.__closure__
        )
        if loop is not None:
            loop.uncompiled = copies[function]
    for of_module in names.values():
        functions = [(name, value) for name, value in of_module.items() if isinstance(value, FunctionType)]
        of_module |= {name: copies[value] for name, value in functions if value in copies}


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
    from numba.core import types

    unliteral: Any = types.unliteral
    try:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # Numba can write neither beside the package nor in the user's home
        dispatcher = njit(cache=_cache_in_private_folder(), nogil=True, **options)(function)
    template_of = dispatcher.get_call_template
    # A call with a constant shares the code of other calls; Numba would compile all that it calls once more.
    dispatcher.get_call_template = lambda args, names: template_of([unliteral(arg) for arg in args], names)
    if sources := sorted(_sources(function) - {function.__code__.co_filename}):
        with suppress(AttributeError):  # where loops are not cached
            stats = [Path(source).stat() for source in sources]
            file = dispatcher._cache._cache_file
            file._source_stamp = (file._source_stamp, *((status.st_mtime, status.st_size) for status in stats))
    return dispatcher


def _sources(function: Function) -> set[str]:
    """Source files of a loop and of those that it may call: its module, and modules from which that imports compiled loops.

    A change of any invalidates its cache; Numba checks only the first. Loops further down in a module do not exist yet.
    """
    return {function.__code__.co_filename} | _sources_of_module(function.__module__)


@cache
def _sources_of_module(module: str) -> frozenset[str]:
    waiting = {function for function, _, _ in _waiting}
    named = [(value, getattr(value, "py_func", None)) for value in vars(sys.modules[module]).values()]
    loops = [loop or value for value, loop in named if loop or (isinstance(value, FunctionType) and value in waiting)]
    return frozenset().union(*(_sources(loop) for loop in loops if loop.__module__ != module))


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
