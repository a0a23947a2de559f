"""Progress reports of builds, encoding, reranking, training and recipes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

BAR_INTERVAL = 0.1  # minimum seconds between two changes of a bar


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
