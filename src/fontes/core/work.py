"""Where work runs: with how many threads, in how much memory, and on which cluster. Said around it by `work`."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from types import ModuleType
from typing import cast

from .checks import check_whole
from .errors import FontesError, ParameterError

MEMORY = 2 << 30  # bytes, unless `work` says otherwise
MAX_MEMORY = 1 << 50


@dataclass(frozen=True)
class Resources:
    """The settings of one `work` block.

    Args:
        threads: Number of threads; None is one for each processor, or on a cluster one for each task.
        memory: Bytes that postings may take.
        ray: True or the address of a cluster; None or False: this process.
    """

    threads: int | None = None
    memory: int = MEMORY
    ray: bool | str | None = None


_current: ContextVar[Resources | None] = ContextVar("work", default=None)
_of_main_thread: list[Resources] = []


@contextmanager
def work(*, threads: int | None = None, memory: str | int | None = None, ray: bool | str | None = None) -> Iterator[Resources]:
    """Says with which resources the block works. Results are the same bytes whatever it says.

        with ft.work(threads=4, memory="8G"):
            index = ft.Index.build("corpus.jsonl", "papers.index")

    A block inside another inherits what it does not say itself; arguments of the same names (`Index.build(…, threads=2)`) are
    such a block around the call. Threads and processes of a cluster that Fontes starts inside a block belong to it. Any other
    thread that opens no block of its own belongs to the innermost block of the main thread.

    Args:
        threads: Number of threads that build, merge and search; on a cluster those of each task. Default: one for each
            processor, and one for each task.
        memory: Bytes that postings, their terms and ids may take before they go to the disk, such as "500M" or "2G" (the
            default); on a cluster those of each task.
        ray: Build, encode, tune and run experiments on a Ray cluster: True for a Ray on this machine, or the one that
            RAY_ADDRESS names; or an address, such as "auto" or "host:6379". False: in this process.

    Raises:
        ParameterError: `threads` is not a whole number of at least 1, `memory` is no size, or `ray` no address.
    """
    changes: dict[str, object] = {}
    if threads is not None:
        changes["threads"] = check_threads(threads)
    if memory is not None:
        changes["memory"] = memory_size(memory)
    if ray is not None:
        changes["ray"] = _check_ray(ray)
    settings = replace(resources(), **changes)  # type: ignore[arg-type]
    token = _current.set(settings)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:
        _of_main_thread.append(settings)
    try:
        yield settings
    finally:
        if in_main_thread:
            del _of_main_thread[next(i for i, one in enumerate(_of_main_thread) if one is settings)]
        _current.reset(token)


def resources() -> Resources:
    """The settings that apply here."""
    return _current.get() or (_of_main_thread[-1] if _of_main_thread else Resources())


def thread_count() -> int:
    """Number of threads that work here."""
    return resources().threads or os.cpu_count() or 1


def keep(settings: Resources) -> None:
    """Applies settings to all that this thread does: the start of one that works for another."""
    _current.set(settings)


def cluster() -> ModuleType | None:
    """The package that works on a cluster (`fontes.cluster`), where the context names one; None: this process works.

    It is loaded by its entry point, so that rooms that may use a cluster need not know it.
    """
    if not resources().ray:
        return None
    for point in entry_points(group="fontes.clusters"):
        return cast("ModuleType", point.load())
    raise FontesError("no package is installed that works on a cluster; install Fontes again")


def check_threads(threads: int) -> int:
    """A number of threads; raises ParameterError for anything but a whole number of at least 1."""
    if isinstance(threads, int) and threads < 1:
        raise ParameterError(f"threads must be at least 1, not {threads}")
    return check_whole("threads", threads)


def memory_size(size: str | int) -> int:
    """Bytes from a number or from text such as "500M" or "2G".

    Raises:
        ParameterError: For anything else.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?", str(size).strip(), re.IGNORECASE)
    memory = float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if not 1 <= memory <= MAX_MEMORY:
        raise ParameterError(f"memory must be a size such as 500M or 2G, 1024T at the most, not '{size}'")
    return int(memory)


def _check_ray(ray: bool | str) -> bool | str:
    if not isinstance(ray, bool) and not (isinstance(ray, str) and ray):
        raise ParameterError(f"ray must be True, False or the address of a cluster, not {ray!r}")
    return ray
