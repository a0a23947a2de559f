"""The demonstration: the examples of README, then measures of four tasks on the sample collection."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any
from unittest import mock

from rich.table import Table
from rich.text import Text

from ..core import FontesError
from ..core.expression import pipeline
from ..datasets.samples import harbour
from ..index import Index
from ..measures import evaluate
from ..recipes import registry
from . import cli
from .output import console, print_json, say

INDEX = "harbour.index"
SECTION = re.compile(r"^## What do you have\?\n(.*?)^## In Python\n", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?P<first>fontes [^#\n]+)|^\* \*\*(?P<title>[^*]+)\*\*.*?`(?P<command>fontes [^`]+)`", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TURNS = "When was the Chain Bridge in Quenmouth closed?\nWhat had weakened it?\n"  # input of the conversation


@dataclass(frozen=True)
class Step:
    """A command of README, or its Python example.

    Args:
        title: The text before it in README.
        code: The command, or the Python source.
        run: Function that executes the step in the current folder.
    """

    title: str
    code: str
    run: Callable[[], None]


@dataclass(frozen=True)
class Task:
    """A task of the sample collection.

    Args:
        title: Input and goal of the task.
        measures: Names of the measures.
        pipelines: Pipelines to measure, as texts.
        extras: What each extra of the installation adds, by name of the extra.
    """

    title: str
    measures: tuple[str, ...]
    pipelines: tuple[str, ...]
    extras: Mapping[str, str]


TASKS = {
    "posts": Task(
        "A claim or a post: which story is it about?",
        ("RR(rel=2)@10", "R(rel=2)@10"),
        ("bm25()", "tfidf()"),
        {
            "neural": "dense and learned sparse retrieval, and rerankers",
            "train": "rerankers and encoders that learn from your own pairs",
        },
    ),
    "causal": Task(
        "An event: why did it happen?",
        ("AP", "P@5"),
        ("bm25()", "bm25() >> rm3() >> bm25()", 'bm25() + (causal_keywords(topicrank("stopwords")) >> bm25())'),
        {
            "neural": "the semantic index of the published system, and a classifier of causal sentences",
            "spacy": "its lemmas, and keyphrases by parts of speech",
            "annoy": "its approximate search",
        },
    ),
    "conversations": Task(
        "A conversation: what does the last turn ask for?",
        ("nDCG@10", "R@10"),
        ("bm25()", "weighted_turns() >> bm25()"),
        {
            "neural": "rewriters that are models, such as T5, and a T5 that reranks",
            "spacy": "the nouns and adjectives of HQE, and sentences for passages",
            "train": "term classifiers that learn what a turn leaves out",
        },
    ),
    "claims": Task(
        "A claim: what is the evidence?",
        ("Complete(rel=2)@5", "RR(rel=2)@10"),
        ("bm25()", "bm25() >> rm3() >> bm25()"),
        {
            "neural": "encoders of whole documents, ColBERT, and rerankers of documents and of their sentences",
            "simplemma": "lemmas of Czech and other languages",
        },
    ),
}


def run_demo(directory: Path | None, json: bool) -> None:
    """Run the examples of README, and measure the four tasks of the sample collection.

    Args:
        directory: Folder that keeps indexes and runs; None: a temporary one.
        json: Print one JSON object in place of text.
    """
    start = time.perf_counter()
    steps = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = directory or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with chdir(folder):
            text = readme()
            for name in set(re.findall(r"[\w-]+\.index", text)):
                with suppress(FontesError):  # other folders are reported by the command itself
                    Index.open(name)
                    shutil.rmtree(name)
            for step in readme_steps(text):
                if not json:
                    console.print(Text(f"\n{step.title}", style="bold"))
                    console.print(Text(step.code, style="green"))
                    step.run()
                    continue
                with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
                    step.run()
                steps.append({"title": step.title, "code": step.code, "output": out.getvalue()})
            tasks = measured_tasks(Index.open(INDEX))
    seconds = time.perf_counter() - start
    if json:
        print_json({"steps": steps, "tasks": tasks, "seconds": seconds})
        return
    _print_tasks(tasks)
    say(f"\nAll of it in {seconds:.1f} s.")
    if directory:
        say(f"The indexes are in {directory}: fontes search {directory / 'python.index'} 'your question'")


def readme() -> str:
    """Text of README: the file of a clone, or the long description of the installed package."""
    path = Path(__file__).parents[3] / "README.md"
    if path.is_file() and (text := path.read_text(encoding="utf-8")).startswith("# Fontes\n"):
        return text
    return str(metadata("fontes").get_payload())  # type: ignore[attr-defined]


def readme_steps(text: str) -> Iterator[Step]:
    """Yield the commands of README below "What do you have?", then its Python example."""
    section = SECTION.search(text)
    block = PYTHON.search(text)
    if section is None or block is None:
        raise FontesError("the README of this installation is not that of Fontes")
    for match in COMMAND.finditer(section[1]):
        command = (match["first"] or match["command"]).strip()
        yield Step(match["title"] or "150 news stories that come along", command, lambda command=command: _command(command))  # type: ignore[misc]
    code = compile(block[1], "README.md", "exec")
    yield Step("In Python.", block[1].strip(), lambda: exec(code, {"__name__": "__main__"}))  # our own text


def _command(command: str) -> None:
    """Run a command in this process, with turns as input for a conversation."""
    stdin = io.TextIOWrapper(io.BytesIO(TURNS.encode()), encoding="utf-8")
    with mock.patch.object(sys, "argv", shlex.split(command)), mock.patch.object(sys, "stdin", stdin), suppress(SystemExit):
        cli.main()


def measured_tasks(index: Index) -> list[dict[str, Any]]:
    """Measure the pipelines of each task; return JSON values, with extras and recipes."""
    results = []
    for name, task in TASKS.items():
        collection = getattr(harbour, name)
        topics, qrels = collection.topics(), collection.qrels()
        rows = []
        for text in task.pipelines:
            measured = evaluate(pipeline(text, index)(topics), qrels, task.measures)
            rows.append({"pipeline": text, **{measure: measured[measure] for measure in task.measures}})
        command = ["fontes", "search", INDEX, "--topics", f"sample:harbour/{name}", "--pipeline", text, "-o", f"{name}.run"]
        results.append(
            {
                "task": name,
                "title": task.title,
                "topics": len(topics),
                "command": shlex.join(command),
                "systems": rows,
                "extras": dict(task.extras),
                "recipes": [recipe for recipe in registry if registry[recipe].sample == f"harbour/{name}"],
            }
        )
    return results


def _print_tasks(tasks: list[dict[str, Any]]) -> None:
    say("\nFour tasks on these stories, measured over all their topics:")
    for number, task in enumerate(tasks, 1):
        console.print(Text(f"\n{number}. {task['title']}", style="bold"))
        console.print(Text(task["command"], style="green"))
        table = Table(f"{task['topics']} topics", box=None)
        for measure in list(task["systems"][0])[1:]:
            table.add_column(measure, justify="right")
        for text, *values in (row.values() for row in task["systems"]):
            table.add_row(Text(text), *(f"{value:.4f}" for value in values))
        console.print(table)
        for extra, addition in task["extras"].items():
            say(f"With fontes[{extra}]: {addition}.")
        for name in task["recipes"]:
            console.print(Text(f"fontes recipe run {name} --sample -o {name}  # {registry[name].cite}", style="green"))
