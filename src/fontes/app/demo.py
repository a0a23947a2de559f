"""The demonstration: the examples of README, then measures of four tasks on the sample collection."""

from __future__ import annotations

import io
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
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
INDEXES = (INDEX, "python.index", "known-item.index")
TURNS = "When was the Chain Bridge in Quenmouth closed?\nWhat had weakened it?\n"  # input of the conversation
COMMANDS = (  # README has these, and the Python example below
    ("150 news stories that are included", "fontes index sample:harbour -o harbour.index"),
    ("A question", 'fontes search harbour.index "why did the cannery burn down" -k 3'),
    (
        "A claim or a post",
        'fontes search harbour.index "the part that jammed open had been due for renewal" '
        '--pipeline "bm25() % 3 >> rationales(n=1)"',
    ),
    ("An event", 'fontes why harbour.index "Flood at Marram Flats" --weak --leads 1'),
    ("A conversation", "fontes chat harbour.index"),
    ("Many topics", "fontes search harbour.index --topics sample:harbour/claims -o bm25.run"),
    (
        "Another model",
        'fontes search harbour.index --topics sample:harbour/claims --pipeline "bm25() >> rm3() >> bm25()" -o rm3.run',
    ),
    ("Runs to compare", "fontes compare sample:harbour/claims bm25.run rm3.run --html claims.html"),
    ("A paper to reproduce", "fontes recipe list"),
)
PYTHON = """\
import fontes as ft

docs = ft.datasets.python_docs()
index = ft.Index.build(docs, "python.index", analyzer="english")
bm25 = index.bm25(k1=0.9, b=0.4)
print(bm25.search("read a file inside a zip archive", k=3))

docs, topics, qrels = ft.datasets.known_item(docs)  # topics: first sentences, each removed from the document it came from
index = ft.Index.build(docs, "known-item.index")
for model in (index.tfidf(), index.bm25()):
    print(ft.evaluate((model % 100)(topics), qrels, ["RR@10", "R@100"]))
"""


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
            for name in INDEXES:
                with suppress(FontesError):  # other folders are reported by the command itself
                    Index.open(name)
                    shutil.rmtree(name)
            for title, code in (*COMMANDS, ("In Python", PYTHON)):
                if not json:
                    console().print(Text(f"\n{title}", style="bold"))
                    console().print(Text(code.strip(), style="green"))
                    _run(code)
                    continue
                with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
                    _run(code)
                steps.append({"title": title, "code": code.strip(), "output": out.getvalue()})
            tasks = measured_tasks(Index.open(INDEX))
    seconds = time.perf_counter() - start
    if json:
        print_json({"steps": steps, "tasks": tasks, "seconds": seconds})
        return
    _print_tasks(tasks)
    say(f"\nAll of it in {seconds:.1f} s.")
    if directory:
        say(f"The indexes are in {directory}: fontes search {directory / 'python.index'} 'your question'")


def _run(code: str) -> None:
    """Run a command in this process, with turns as input for a conversation; or a Python source."""
    if not code.startswith("fontes "):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
        return
    stdin = io.TextIOWrapper(io.BytesIO(TURNS.encode()), encoding="utf-8")
    with mock.patch.object(sys, "argv", shlex.split(code)), mock.patch.object(sys, "stdin", stdin), suppress(SystemExit):
        cli.main()


def measured_tasks(index: Index) -> list[dict[str, object]]:
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
        console().print(Text(f"\n{number}. {task['title']}", style="bold"))
        console().print(Text(task["command"], style="green"))
        table = Table(f"{task['topics']} topics", box=None)
        for measure in list(task["systems"][0])[1:]:
            table.add_column(measure, justify="right")
        for text, *values in (row.values() for row in task["systems"]):
            table.add_row(Text(text), *(f"{value:.4f}" for value in values))
        console().print(table)
        for extra, addition in task["extras"].items():
            say(f"With fontes[{extra}]: {addition}.")
        for name in task["recipes"]:
            console().print(Text(f"fontes recipe run {name} --sample -o {name}  # {registry[name].cite}", style="green"))
