"""Resources of work: threads, memory, cluster, use of language models, and progress, set by `work`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar, cast

from .answers import TokenBudget
from .builtin import provided
from .checks import check_whole
from .errors import ParameterError
from .processor import processors
from .progress import Progress, ProgressCallback, silent

MEMORY = max(2, processors()) << 26  # default, in bytes: 64 MB for each processor
MAX_MEMORY = 1 << 50

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Resources:
    """Settings of one `work` block.

    Args:
        threads: Number of threads; None: one per processor that the process may use, or on a cluster one per task.
        memory: Memory for postings, in bytes.
        ray: True or the address of a cluster; None or False: this process.
        replay: Whether language models answer only from stored answers.
        budget: Tokens that language models may use; None: no limit.
        answers: Where language models read and write stored answers, as `AnswerFile`; None: this user's file.
        progress: Called with the progress of long work.
    """

    threads: int | None = None
    memory: int = MEMORY
    ray: bool | str | None = None
    replay: bool = False
    budget: TokenBudget | None = None
    answers: Any = None
    progress: ProgressCallback = silent

    def for_worker(self) -> Resources:
        """Return the settings for a process of a cluster."""
        return replace(self, ray=None, budget=None, answers=None, progress=silent)


_current: ContextVar[Resources | None] = ContextVar("work", default=None)
_of_main_thread: list[Resources] = []


@contextmanager
def work(
    *,
    threads: int | None = None,
    memory: str | int | None = None,
    ray: bool | str | None = None,
    replay: bool | None = None,
    tokens: int | None = None,
    progress: ProgressCallback | None = None,
) -> Iterator[Resources]:
    """Set the resources of the work in the block, which do not change its results.

        with ft.work(threads=4, memory="8G", progress=ft.core.show):
            index = ft.Index.build("corpus.jsonl", "papers.index")

    Inner blocks inherit unset values; arguments of the same names (`Index.build(…, threads=2)`) act as such a block. Threads
    and cluster processes that Fontes starts inherit the block. Any other thread uses the innermost block of the main thread
    unless it opens its own; but `progress` is inherited only by threads that Fontes starts.

    Args:
        threads: Number of threads that build, merge and search; on a cluster those of each task. Default: one for each
            processor, and one for each task.
        memory: Memory for postings, terms and ids before they are written to disk, such as "500M" or "2G"; on a cluster that of
            each task. Default: 64M for each processor, at least 128M.
        ray: Build, encode, tune and run experiments on a Ray cluster: True for a local Ray, or the one that RAY_ADDRESS names;
            or an address, such as "auto" or "host:6379". False: in this process.
        replay: Whether language models answer only from stored answers; a missing answer is an error.
        tokens: Number of tokens that language models may use in the block. A call that might pass it is not made, and is an
            error.
        progress: Called with the progress of long work, such as `ft.core.show`. An exception that it raises ends the work.

    Raises:
        ParameterError: `threads` or `tokens` is not a whole number of at least 1, `memory` is no size, `ray` no address, or
            `progress` no function.
    """
    changes: dict[str, object] = {}
    if threads is not None:
        changes["threads"] = check_threads(threads)
    if memory is not None:
        changes["memory"] = memory_size(memory)
    if ray is not None:
        if not isinstance(ray, bool) and not (isinstance(ray, str) and ray):
            raise ParameterError(f"ray must be True, False or the address of a cluster, not {ray!r}")
        changes["ray"] = ray
    if replay is not None:
        changes["replay"] = replay
    if tokens is not None:
        changes["budget"] = TokenBudget(check_whole("tokens", tokens))
    if progress is not None:
        if not callable(progress):
            raise ParameterError(f"progress must be a function, such as ft.core.show, not {progress!r}")
        changes["progress"] = progress if progress is silent else unreported(progress)
    settings = replace(resources(), **changes)  # type: ignore[arg-type]
    token = _current.set(settings)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:
        # Reports of several threads at once would be mixed up.
        of_others = settings if settings.progress is silent else replace(settings, progress=silent)
        _of_main_thread.append(of_others)
    try:
        yield settings
    finally:
        if in_main_thread:
            del _of_main_thread[next(i for i, entry in enumerate(_of_main_thread) if entry is of_others)]
        _current.reset(token)


def resources() -> Resources:
    """Return the current settings."""
    return _current.get() or (_of_main_thread[-1] if _of_main_thread else Resources())


def thread_count() -> int:
    """Return the current number of threads."""
    return resources().threads or processors()


def reporter() -> ProgressCallback:
    """Return the current report of progress: `reporter()(Progress("reading", 2, 10, seconds))`; take it before a loop."""
    return resources().progress


def unreported(function: F) -> F:
    """Return a function that works as `function` does, and reports no progress."""

    @wraps(function)
    def silently(*arguments: object, **named: object) -> Any:
        if reporter() is silent:
            return function(*arguments, **named)
        with work(progress=silent):
            return function(*arguments, **named)

    return cast("F", silently)


def reported_as(convert: Callable[[Progress], Progress]) -> AbstractContextManager[Any]:
    """Return a block whose reports of progress are converted before they reach the report of the block around it."""
    report = reporter()
    return nullcontext() if report is silent else work(progress=lambda progress: report(convert(progress)))


def keep(settings: Resources) -> None:
    """Apply settings to the current thread, such as a worker thread."""
    _current.set(settings)


def cluster() -> ModuleType | None:
    """Return the cluster package (`fontes.cluster`), if `work` names a cluster, else None."""
    if not resources().ray:
        return None
    return cast("ModuleType", provided("cluster"))


def check_threads(threads: int) -> int:
    """Return a number of threads; raise ParameterError unless it is a whole number of at least 1."""
    if isinstance(threads, int) and threads < 1:
        raise ParameterError(f"threads must be at least 1, not {threads}")
    return check_whole("threads", threads)


def memory_size(size: str | int) -> int:
    """Convert a number or a text such as "500M" or "2G" to bytes.

    Raises:
        ParameterError: The size is invalid.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTkmgt]?)[Ii]?[Bb]?", str(size).strip())
    memory = float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if not 1 <= memory <= MAX_MEMORY:
        raise ParameterError(f"memory must be a size such as 500M or 2G, 1024T at the most, not '{size}'")
    return int(memory)
