"""Loops in plain Python that Numba compiles: loading it takes a second, so it waits until there is work that is worth that.

A process that answers one question goes through some ten thousand steps, which Python itself takes in milliseconds. So a loop
that says how many steps it takes is run as it stands until all of them together have taken half as long as Numba takes to load;
from then on everything is compiled. Both give the same numbers.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import numpy as np

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

STEPS = 400_000  # of Python, of about a microsecond each, before Numba is loaded

_lock = threading.RLock()
_waiting: list[tuple[Function, dict[str, Any]]] = []  # what is compiled when Numba is loaded
_left = STEPS  # -1 when it is


def kernel(steps: Callable[..., int] | None = None) -> Callable[[Function], Any]:
    """A decorator for a loop that is called from Python. Compiled, it releases Python's lock, and is kept on disk.

    Args:
        steps: From a call's arguments to about how many steps of a microsecond Python takes for it, if the loop may run as it
            stands; None for one that is always compiled.
    """
    return lambda function: _compiled(function) if is_loaded() else Kernel(_waits(function), steps)


def inner(**options: Any) -> Callable[[F], F]:
    """A decorator for a part of loops, which only loops of the same module call.

    Args:
        options: More for `numba.njit`.
    """
    return lambda function: _compiled(function, **options) if is_loaded() else _waits(function, **options)


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

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            if self._steps is not None and affordable(self._steps(*args)):
                with np.errstate(over="ignore"):  # as in compiled code
                    return self.py_func(*args)
            load()
            self._compiled = self.py_func.__globals__[self.py_func.__name__]
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
        while _waiting:
            function, options = _waiting.pop()
            # In the place of the function in its module, so that the loops that call it see it compiled.
            function.__globals__[function.__name__] = _compiled(function, **options)


def _compiled(function: Function, **options: Any) -> Any:
    from numba import njit

    return njit(cache=True, nogil=True, **options)(function)


def _waits(function: F, **options: Any) -> F:
    _waiting.append((function, options))
    return function
