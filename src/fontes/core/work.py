"""Where a block works and reports: processors, progress, and the resources that `work` sets."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, wraps
from html import escape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar, cast

from .answers import TokenBudget
from .checks import check_whole
from .errors import ParameterError
from .registry import provided

GROUPS = Path("/proc/self/cgroup")  # control groups of this process
CGROUPS = Path("/sys/fs/cgroup")
BAR_INTERVAL = 0.1  # minimum seconds between two changes of a bar


def cpuinfo(field: str) -> str:
    """Return the first value of a field of Linux's /proc/cpuinfo; empty elsewhere."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip().lower() == field:
                return value.strip()
    return ""


def processor_features() -> set[str]:
    """Return the names of its instruction sets, as Linux gives them."""
    return {*cpuinfo("flags").split(), *cpuinfo("features").split()}


def processors() -> int:
    """Return how many processors this process may use at once: those of its affinity, or fewer by the quota of its container.

    The quota is that of Linux's control groups, rounded up. Other work on the machine does not count.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(-(-quota // period) for quota, period in _quotas())]))


def _quotas() -> list[tuple[int, int]]:
    """Microseconds of processor time in each period, and the period, by all control groups of this process."""
    groups = []
    with suppress(OSError, ValueError):
        for line in GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                mount = CGROUPS / controllers if controllers else CGROUPS
                groups += [(mount, Path(*parts)) for parts in _ancestors(path)]
    quotas = []
    for mount, group in groups:
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # version 2, version 1
            with suppress(OSError, ValueError):
                words = " ".join((mount / group / name).read_text(encoding="utf-8") for name in names).split()
                quota, period = map(int, words)  # "max" or -1: no quota
                quotas += [(quota, period)] if min(quota, period) > 0 else []
    return quotas


def _ancestors(path: str) -> list[list[str]]:
    """Parts of the path of a control group and of all groups that hold it, the root's first."""
    parts = [part for part in path.split("/") if part]
    return [parts[:end] for end in range(len(parts) + 1)]


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a piece of work.

    Args:
        task: The task: "indexing", "encoding".
        done: Number of finished units.
        total: Total number of units, if known.
        seconds: Elapsed time.
        unit: Name of the units, in the plural.
        part: Fraction done, from 0 to 1, if known from something other than the count, such as bytes read.
        before: Units done by an earlier, interrupted run.
        note: Further information, such as the loss of a training.
    """

    task: str
    done: int
    total: int | None
    seconds: float
    unit: str = "documents"
    part: float | None = None
    before: int = 0
    note: str = ""

    @property
    def fraction(self) -> float | None:
        """Fraction done, from 0 to 1; None if the total is unknown."""
        if self.part is not None:
            return self.part
        return self.done / self.total if self.total else None

    @property
    def rate(self) -> float:
        """Units per second."""
        return (self.done - self.before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining time at the same rate; None if unknown."""
        fraction = self.fraction
        if not fraction or self.done <= self.before:
            return None
        return self.seconds * (1 / fraction - 1) * self.done / (self.done - self.before)

    @property
    def finished(self) -> bool:
        """Whether this is the last report of the work."""
        return self.done >= self.total if self.total is not None else self.part is not None and self.part >= 1

    def __str__(self) -> str:
        """Return a line, such as "encoding: 5,000 of 20,000 documents, 250 a second, 60 s left"."""
        unit = self.unit.removesuffix("s") if (self.total if self.total is not None else self.done) == 1 else self.unit
        of = "" if self.total is None or self.finished else f" of {self.total:,}"
        parts = [f"{self.task}: {self.done:,}{of} {unit}"]
        if self.finished:
            parts += [f"{self.seconds:.2f} s"] if self.seconds else []
        elif self.done > self.before:
            slow = f"{1 / self.rate:,.1f} s a {self.unit.removesuffix('s')}"
            parts.append(slow if self.rate < 1 else f"{self.rate:,.0f} a second")
            left = self.seconds_left
            parts += [] if left is None else [f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left"]
        return ", ".join([*parts, *filter(None, [self.note])])


ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Called repeatedly with the progress of a piece of work."""


def silent(progress: Progress) -> None:
    """Ignore progress."""


def lines(write: Callable[[str], None], *, steps: bool = True, every: float = 10.0) -> ProgressCallback:
    """Return a report that writes lines: for a log, or with `print` for a script.

    Args:
        write: Called with each line.
        steps: Whether to write a line at the start and end of each piece of work too.
        every: Seconds between two lines about one piece of work.
    """
    task, last = "", 0.0

    def report(progress: Progress) -> None:
        nonlocal task, last
        if progress.task != task or progress.seconds < last:
            task, last = progress.task, 0.0
        if progress.finished or not progress.done:
            if steps:
                write(str(progress))
        elif progress.seconds - last >= every:
            last = progress.seconds
            write(str(progress))

    return report


def show(progress: Progress) -> None:
    """Show progress: `index.bm25()(topics, progress=ft.core.show)`.

    A Jupyter notebook shows a bar for each piece of work; elsewhere lines go to standard error, as `lines` writes them.
    """
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    (_bar if hasattr(shell, "kernel") else _to_standard_error())(progress)


@cache
def _to_standard_error() -> ProgressCallback:
    return lines(lambda line: print(line, file=sys.stderr, flush=True))


_bars: dict[str, tuple[Any, float, float]] = {}  # by task: the displayed bar, when it changed, and the seconds it shows


def _bar(progress: Progress) -> None:
    handle, changed, seconds = _bars.get(progress.task, (None, 0.0, 0.0))
    if progress.seconds < seconds:  # of work that was interrupted
        handle, changed = None, 0.0
    if not progress.finished and time.monotonic() - changed < BAR_INTERVAL:
        return
    display = import_module("IPython.display")
    value = "" if progress.fraction is None else f' value="{progress.fraction:.4f}"'
    shown = "" if progress.finished else f"<progress{value}></progress> "
    html = display.HTML(f"{shown}<code>{escape(str(progress))}</code>")
    if handle is None:
        handle = display.display(html, display_id=True)
    else:
        handle.update(html)
    if progress.finished:
        _bars.pop(progress.task, None)
    else:
        _bars[progress.task] = handle, time.monotonic(), progress.seconds


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
    def silently(*arguments: object, **named: object) -> object:
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
