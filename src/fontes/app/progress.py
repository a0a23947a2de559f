"""Progress on standard error: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.work import Progress, ProgressCallback, lines, silent, work
from .flags import flags

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


@contextlib.contextmanager
def reporting(quiet: bool = False, *, steps: bool = False, compiling: bool = False) -> Iterator[ProgressCallback]:
    """Show progress while the block runs.

    Args:
        quiet: Show nothing, as `--quiet` does.
        steps: Print a line for each piece of work, for commands with several.
        compiling: Announce the compilation of kernels, if they are not cached.

    Yields:
        The report.
    """
    with _report(quiet, steps, compiling) as report, work(progress=report):
        yield report


@contextlib.contextmanager
def _report(quiet: bool, steps: bool, compiling: bool) -> Iterator[ProgressCallback]:
    if quiet or flags.quiet:
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as RichProgress, TextColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if compiling and not _kernels_are_cached():
        console.print("Compiling the kernels, once: this takes up to a minute.")
    if not console.is_terminal:
        yield lines(lambda line: print(line, file=sys.stderr, flush=True), steps=steps)
        return
    with RichProgress(BarColumn(), TextColumn("{task.description}", markup=False), console=console, transient=True) as bar:
        yield Bar(bar, steps)


def note(line: str) -> None:
    """Print a line to standard error, unless `--quiet` is given."""
    if not flags.quiet:
        print(line, file=sys.stderr, flush=True)


class Bar:
    """A progress report as a bar; finished pieces of work leave a line above it."""

    def __init__(self, progress: RichProgress, steps: bool) -> None:
        self.progress = progress
        self._steps = steps
        self._task = progress.add_task("", total=None, visible=False)

    def __call__(self, progress: Progress) -> None:
        if progress.finished:
            self.progress.update(self._task, visible=False)
            if self._steps:
                self.progress.console.print(str(progress), markup=False)
            return
        fraction = progress.fraction
        total = None if fraction is None else 1.0
        self.progress.update(self._task, visible=True, total=total, completed=fraction or 0.0, description=str(progress))


def _kernels_are_cached() -> bool:
    """Whether an earlier process has compiled the kernels."""
    from ..storage.compiled import load
    from ..text import tokenizers

    load()
    try:
        path: str = tokenizers._scan.stats.cache_path
    except AttributeError:
        return True
    return any(Path(path).glob("tokenizers._scan*.nbc"))
