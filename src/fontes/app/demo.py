"""The demonstration: the main job on text that every machine with Python has, and four tasks on stories that come along."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from ..datasets import known_item, python_docs
from ..index import Index
from ..measures import evaluate
from .demo_tasks import run_tasks
from .output import console, print_hits, print_json, say
from .progress import reporting

QUESTIONS = (
    "read a file inside a zip archive",
    "how many seconds since the epoch",
    "find words that are close to a misspelled word",
)
MEASURES = ("RR@10", "R@10", "R@100")


def run_demo(directory: Path | None, json: bool) -> None:
    """Indexes the documentation of the standard library, asks questions, and measures TF-IDF and BM25 on a known-item test.

    In the test each docstring's first sentence is taken out of the indexed text and becomes a topic; its object is the one
    relevant document. After it come the tasks on the harbour.
    """
    began = start = time.perf_counter()
    docs = python_docs()
    reading = time.perf_counter() - start
    if not json:
        say(f"Documentation of Python's standard library: {len(docs):,} documents, read in {reading:.1f} s.")
    with tempfile.TemporaryDirectory() as place:
        folder = directory or Path(place)
        whole, _ = _build(docs, folder / "python-docs.index", json)
        answers = [whole.bm25().search(question, 3) for question in QUESTIONS]
        if not json:
            for question, ranking in zip(QUESTIONS, answers, strict=True):
                console.print(f"\n[bold]> {question}[/bold]")
                print_hits(ranking, whole, whole.bm25())
        docs, topics, qrels = known_item(docs)
        if not json:
            say(f"\nKnown-item test: {len(topics):,} first sentences, taken out of the text; which document are they from?")
        index, seconds = _build(docs, folder / "known-item.index", json)
        rows = []
        for name, stage in {"TF-IDF": index.tfidf(), "BM25": index.bm25()}.items():
            start = time.perf_counter()
            run = (stage % 100)(topics)
            searching = time.perf_counter() - start
            measured = evaluate(run, qrels, MEASURES)
            rows.append({"model": name, **{m: measured[m] for m in MEASURES}, "ms_a_topic": 1000 * searching / len(topics)})
        if not json:
            _print_table(rows)
        tasks = run_tasks(folder, directory is not None, json)
        whole_seconds = time.perf_counter() - began
        if json:
            hits = {q: [h.id for h in ranking] for q, ranking in zip(QUESTIONS, answers, strict=True)}
            known = {"documents": len(docs), "index_seconds": seconds, "hits": hits, "known_item": rows}
            print_json({**known, "harbour": tasks, "seconds": whole_seconds})
        else:
            say(f"\nAll of it in {whole_seconds:.1f} s.")
            if directory:
                say(f"The indexes are in {folder}: fontes search {folder / 'python-docs.index'} 'your question'")


def _build(docs: Any, path: Path, json: bool) -> tuple[Index, float]:
    start = time.perf_counter()
    with reporting(json, compiling=True) as report:
        index = Index.build(docs, path, overwrite=True, progress=report)
    seconds = time.perf_counter() - start
    if not json:
        say(f"Indexed in {seconds:.2f} s: {len(index.terms):,} terms, {index.tokens:,} tokens.")
    return index, seconds


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name == "model" else "right")
    for row in rows:
        table.add_row(*(f"{v:.4f}" if isinstance(v, float) else v for v in row.values()))
    console.print(table)
