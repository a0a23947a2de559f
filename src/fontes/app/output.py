"""Output of commands: text for terminals, JSON for programs, and progress on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.values import Explanation
from ..core.work import Progress, ProgressCallback, lines, silent, work
from ..formats.json_text import json_text
from .flags import flags

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.tree import Tree

    from ..experiments.provenance import Check
    from ..index import Change
    from ..measures import Evaluation
    from ..plots.tables import TableReport

FORCING = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS"}  # variables that rich reads


@cache
def console() -> Console:
    """Return the console of standard output, for what has colours or columns on a terminal."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # handled by `running.run`; rich would end the process with 1

    return Pipe(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1000)


def say(text: str) -> None:
    """Print a line."""
    say_parts((text, ""))


def say_parts(*parts: tuple[str, str]) -> None:
    """Print a line of texts, each with its style on a terminal."""
    line = "".join(text for text, _ in parts)
    if is_plain() and line.replace("\n", "").isprintable():  # as rich does, which takes as long to import as a search
        try:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise BrokenPipeError from None  # without the number at which Typer would exit with 1; see `console`
        return
    from rich.text import Text

    console().print(Text.assemble(*parts))


def is_plain() -> bool:
    """Whether standard output is neither a terminal nor, by an environment variable, treated as one."""
    return not (sys.stdout.isatty() or FORCING & os.environ.keys())


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Format bytes as kB or MB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.1f} kB"


def payload_sizes(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and size of each payload component of an index."""
    sizes = []
    for name, noun in (("separate", "posting"), ("positions", "token")):
        if name in facts:
            sizes.append((name, f"{size(facts[name]['bytes'])} ({facts[name][f'bytes_per_{noun}']:.1f} bytes a {noun})"))
    return sizes


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with null for NaN and infinities."""
    escaped = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    sys.stdout.write(json_text(value, ensure_ascii=escaped) + "\n")


def tell(json: bool, facts: object, *lines: str) -> None:
    """Print facts as JSON; or else lines."""
    if json:
        print_json(facts)
    for line in () if json else lines:
        say(line)


def end_check(checks: Mapping[Path, Check], values: object = None) -> None:
    """Print how experiments differ from their locks, and whether they are reproduced; if not, exit with code 1.

    Args:
        checks: Result of the check by lock.
        values: JSON values from `check_values` to print instead.
    """
    if values is not None:
        print_json(values)
    else:
        for lock, check in checks.items():
            for note in check.notes:
                say(f"note: {note}")
            for difference in check.differences:
                say(str(difference))
            outcome = "is reproduced" if check else f"is not reproduced: {counted(len(check.differences), 'difference')}"
            say(f"{lock} {outcome}; {counted(check.numbers, 'number')} compared")
    if not all(checks.values()):
        from typer import Exit

        raise Exit(1)


def check_values(check: Check) -> dict[str, object]:
    """Return the result of checking an experiment as JSON values."""
    entries = {"differences": check.differences, "notes": check.notes}
    return {
        "reproduced": bool(check),
        "numbers": check.numbers,
        **{kind: [vars(entry) for entry in listed] for kind, listed in entries.items()},
    }


def print_report(report: TableReport, files: Iterable[Path] | None = None, json: bool = False) -> None:
    """Write a report to files, and print it as text or JSON."""
    for path in files or ():
        report.save(path)
    if json:
        sys.stdout.write(report.to_json())
    elif sys.stdout.isatty():
        console().print(report)
    else:
        sys.stdout.write(f"{report}\n")


def print_evaluation(result: Evaluation, per_topic: bool) -> None:
    """Print the means, and the values of each topic if `per_topic`."""
    if per_topic:
        from rich.table import Table

        table = Table("topic", box=None)
        for measure in result:
            table.add_column(str(measure), justify="right")
        columns = [result.per_topic(measure) for measure in result]
        for topic in columns[0] if columns else []:
            table.add_row(topic, *(f"{column[topic]:.4f}" for column in columns))
        console().print(table)
    say(str(result))


def print_explanation(explanation: Explanation) -> None:
    """Print the tree."""
    console().print(_branch(explanation, None))


def print_change(path: Path, change: Change, action: str, seconds: float, json: bool) -> None:
    """Print a change of an index.

    Args:
        path: The index.
        change: The change.
        action: Description of the change.
        seconds: Duration.
        json: Print JSON instead.
    """
    if json:
        print_json({"path": str(path), **asdict(change), "seconds": round(seconds, 3)})
        return
    contents = f"{counted(change.documents, 'document')} in {counted(change.segments, 'segment')}"
    say(f"{path}: {action} in {seconds:.1f} s; {contents}")


def print_info(facts: dict[str, Any]) -> None:
    """Print a description of an index."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None)
    sizes = dict(payload_sizes(facts))
    for name, value in facts.items():
        if name in sizes:
            table.add_row(name, Text(sizes[name]))
            continue
        if line := {"vectors": _vectors, "weights": _weights, "token_vectors": _token_vectors}.get(name):
            for entry in value:
                table.add_row(name.replace("_", " "), Text(line(entry)))
            continue
        text = f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else _one_line(value)
        table.add_row(name.replace("_", " "), Text(text))
    console().print(table)


def _branch(explanation: Explanation, parent: Tree | None) -> Tree:
    """The tree of an explanation, as a branch of `parent` if there is one."""
    from rich.text import Text
    from rich.tree import Tree

    label = Text.assemble((f"{explanation.value:.6g}", "bold"), f"  {explanation.label}")
    tree = Tree(label) if parent is None else parent.add(label)
    for part in explanation.parts:
        _branch(part, tree)
    return tree


def _named(facts: dict[str, object], model: str = "encoder") -> str:
    """The name of stored vectors, if they have one, and their model."""
    return f"{facts['name']} = {facts[model]}" if "name" in facts else str(facts[model])


def _vectors(facts: dict[str, Any]) -> str:
    line = f"{_named(facts)}: {facts['vectors']:,} of {facts['dim']} dimensions, {facts['dtype']}, {size(facts['bytes'])}"
    for searcher in facts["approximate"]:
        recall = ", ".join(f"{name} {value:.3f}" for name, value in searcher["recall"].items())
        line += f"; {searcher['algorithm']} ({recall} of exact search)"
    return line


def _weights(facts: dict[str, Any]) -> str:
    return f"{_named(facts)}: {facts['postings']:,} of {counted(facts['terms'], 'term')}, {size(facts['bytes'])}"


def _token_vectors(facts: dict[str, Any]) -> str:
    storage = f"{facts['nbits']} bits, {size(facts['bytes'])}"
    return f"{_named(facts, 'colbert')}: {facts['tokens']:,} of {facts['dim']} dimensions, {storage}"


def _one_line(value: object) -> str:
    """A value of a description on one line."""
    if isinstance(value, dict):
        parts = {k: f"{len(v)} words" if k == "stopwords" else v for k, v in value.items() if v not in ([], {}, "", None)}
        return ", ".join(f"{k}={v}" for k, v in parts.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
