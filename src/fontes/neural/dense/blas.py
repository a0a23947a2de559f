"""The number of threads of numpy's matrix products."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[bool]:
    """Limit matrix products to one thread; yield False if threadpoolctl is not installed."""
    controller = _controller()
    if controller is None:
        yield False
        return
    with _BlasLimit.lock:
        _BlasLimit.searches += 1
        if _BlasLimit.searches == 1:
            _BlasLimit.limit = controller.limit(limits=1, user_api="blas")
    try:
        yield True
    finally:
        with _BlasLimit.lock:
            _BlasLimit.searches -= 1
            if not _BlasLimit.searches:
                _BlasLimit.limit.restore_original_limits()


class _BlasLimit:
    """Number of running searches that limit BLAS to one thread, and the limit to lift after the last one."""

    lock = threading.Lock()
    searches = 0
    limit: Any = None


@lru_cache(1)
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
