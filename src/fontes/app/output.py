"""What commands print: for people on a terminal, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ..core import Explanation, Ranking
from ..text import Snippet, snippet

if TYPE_CHECKING:
    from ..experiments.indexes import Tell
    from ..index import Index
    from ..measures import Evaluation


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # which `cli.main` takes for what it is; rich would end the process with 1


console = _Console(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1000)


def say(text: str) -> None:
    """Prints a line."""
    console.print(text, markup=False)


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it belongs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Bytes in kB or MB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.1f} kB"


def print_json(value: Any) -> None:
    """Prints a value as one line of JSON."""
    escaped = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=escaped) + "\n")


def run_as_json(ranking: Ranking, text: bool) -> dict[str, Any]:
    """A ranking as JSON values, with the documents' text where wanted."""
    hits: list[dict[str, Any]] = [{"rank": h.rank, "id": h.id, "score": h.score} for h in ranking]
    if text:
        for hit, doc in zip(hits, ranking.docs(), strict=True):
            hit.update(title=doc.title, text=doc.text)
    return {"topic": ranking.topic.id, "query": ranking.topic.text, "hits": hits}


def print_hits(ranking: Ranking, index: Index) -> None:
    """Prints each document with its title and the best piece of its text, the words of the query marked."""
    if not len(ranking):
        say("No document holds any of these words.")
    terms = set(index.analyzer(ranking.topic.text))
    for hit, doc in zip(ranking, ranking.docs(), strict=True):
        console.print(Text.assemble(f"{hit.rank:>3}  {hit.score:8.4f}  ", (hit.id, "bold cyan")))
        for text in (doc.title, doc.text):
            if text:
                console.print(Text("     ") + _styled(snippet(index.analyzer, text, terms)))


def print_evaluation(result: Evaluation, per_topic: bool) -> None:
    """Prints the means, and each topic where wanted."""
    if per_topic:
        table = Table("topic", box=None)
        for measure in result:
            table.add_column(str(measure), justify="right")
        columns = [result.per_topic(measure) for measure in result]
        for topic in columns[0] if columns else []:
            table.add_row(topic, *(f"{column[topic]:.4f}" for column in columns))
        console.print(table)
    say(str(result))


def print_explanation(explanation: Explanation) -> None:
    """Prints the tree."""
    console.print(_branch(explanation, None))


def print_info(facts: dict[str, Any]) -> None:
    """Prints what an index holds."""
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        if name == "vectors":
            for of_encoder in value:
                table.add_row(name, Text(_vectors(of_encoder)))
            continue
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else _short(value)
        table.add_row(name.replace("_", " "), Text(shown))
    console.print(table)


class Building:
    """The progress of a build, or of other work that is counted in `noun`s."""

    def __init__(self, bar: Bar | None, noun: str = "document") -> None:
        self._bar = bar
        self._noun = noun
        self._task = bar.add_task("", total=None) if bar else None
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the build started."""
        return time.perf_counter() - self._start

    def update(self, progress: Any) -> None:
        """Shows how far it is: documents, documents a second, time left."""
        if self._bar is None or self._task is None:
            return
        left = progress.seconds_left
        text = f"{counted(getattr(progress, 'done', None) or progress.documents, self._noun)}, {progress.rate:,.0f} a second"
        text += f", {left:.0f} s left" if left is not None else ""
        total = 1.0 if progress.fraction is not None else None
        self._bar.update(self._task, total=total, completed=progress.fraction or 0.0, description=text)


@contextlib.contextmanager
def building(quiet: bool, noun: str = "document") -> Iterator[Building]:
    """Shows a bar while building, on a terminal; says so when kernels must be compiled first."""
    errors = Console(stderr=True, highlight=False)
    if not quiet and not _compiled_before():
        errors.print("Compiling the kernels, once: this takes some fifteen seconds.")
    if quiet or not errors.is_terminal:
        yield Building(None)
        return
    with Bar(BarColumn(), TextColumn("{task.description}"), console=errors, transient=True) as bar:
        yield Building(bar, noun)


@contextlib.contextmanager
def told(quiet: bool) -> Iterator[tuple[Tell, Tell | None]]:
    """What prints a line about a step to standard error; and, on a terminal, what shows in one line how far the step is."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if quiet or not errors.is_terminal:
        yield (lambda line: None) if quiet else (lambda line: print(line, file=sys.stderr, flush=True)), None
        return
    with errors.status("") as status:

        def tell(line: str) -> None:
            status.update(" ")  # an empty one would leave what is shown
            errors.print(line, markup=False)

        yield tell, lambda line: status.update(Text(line))


def _compiled_before() -> bool:
    """Whether Numba has kernels of ours in its cache."""
    from ..text import tokenizers

    try:
        path = tokenizers._scan._cache.cache_path  # type: ignore[attr-defined]
    except AttributeError:
        return True
    from pathlib import Path

    return any(Path(path).glob("tokenizers._scan*.nbc"))


def _styled(found: Snippet) -> Text:
    if not console.is_terminal:
        return Text(found.marked())
    text = Text(found.text)
    for start, end in found.matches:
        text.stylize("bold yellow", start, end)
    return text


def _branch(explanation: Explanation, above: Tree | None) -> Tree:
    label = Text.assemble((f"{explanation.value:.6g}", "bold"), f"  {explanation.label}")
    tree = Tree(label) if above is None else above.add(label)
    for part in explanation.parts:
        _branch(part, tree)
    return tree


def _vectors(facts: dict[str, Any]) -> str:
    """The vectors of one encoder, in a line."""
    found = f"{facts['encoder']}: {facts['vectors']:,} of {facts['dim']} dimensions, {facts['dtype']}, {size(facts['bytes'])}"
    for kept in facts["approximate"]:
        recall = ", ".join(f"{name} {value:.3f}" for name, value in kept["recall"].items())
        found += f"; {kept['search']} ({recall} of exact search)"
    return found


def _short(value: Any) -> str:
    if isinstance(value, dict):
        parts = {k: f"{len(v)} words" if k == "stopwords" else v for k, v in value.items() if v not in ([], {}, "", None)}
        return ", ".join(f"{k}={v}" for k, v in parts.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
