"""The four tasks of the demonstration: a post, an event, a conversation and a claim, over the stories that come along."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ..causal import causes
from ..core import Run, Topic
from ..core.expression import pipeline
from ..datasets.samples import harbour
from ..index import Index
from ..measures import evaluate
from ..passages import RationaleDocuments
from ..recipes import registry
from .output import console, say

INDEX = "harbour.index"
SHOWN = 3  # hits of an example


@dataclass(frozen=True)
class Task:
    """A task, and what a light install does about it.

    Args:
        name: Its name in the harbour.
        title: What one has, and what is looked for.
        example: The topic whose hits are shown.
        measures: By what the systems are measured.
        systems: The pipelines that are measured, each with a name; the last one's command and hits are shown.
        extras: The extras that add something, and what.
        closer: Looks closer at the example: from its topic and the index to the words of a command after the index, and the
            documents that it names with what they say.
    """

    name: str
    title: str
    example: str
    measures: tuple[str, ...]
    systems: Mapping[str, str]
    extras: Mapping[str, str]
    closer: Callable[[Topic, Index], tuple[list[str], list[tuple[str, str]]]] | None = None


def _causes(event: Topic, index: Index) -> tuple[list[str], list[tuple[str, str]]]:
    """What stories state as the causes of an event."""
    chain = causes(index.bm25(), event.text, depth=1, weak=True)
    stated = [(cause.sources[0].doc_id, f"because {cause.text}") for cause in chain.causes]
    return ["why", event.text, "--depth", "1", "--weak"], stated


def _sentences(claim: Topic, index: Index) -> tuple[list[str], list[tuple[str, str]]]:
    """The sentence of each of the best stories that bears most on a claim."""
    text = "bm25() % 2 >> rationales(n=1)"
    ranking = pipeline(text, index).search(claim.text)
    documents = ranking.documents
    assert isinstance(documents, RationaleDocuments)
    sentences = [(hit.id, s.text) for hit in ranking for s in documents.rationales(ranking.topic.id, hit.id)]
    return ["search", claim.text, "--pipeline", text], sentences


TASKS = (
    Task(
        "posts",
        "A claim or a post: which story is it about?",
        "15",
        ("RR(rel=2)@10", "R(rel=2)@10"),
        {"BM25": "bm25()", "TF-IDF": "tfidf()"},
        {
            "neural": "dense and learned sparse retrieval, and rerankers",
            "train": "rerankers and encoders that learn from your own pairs",
        },
    ),
    Task(
        "causal",
        "An event: why did it happen?",
        "1",
        ("AP", "P@5"),
        {
            "title": "bm25()",
            "title, RM3": "bm25() >> rm3() >> bm25()",
            "title + keyphrases of the narrative": 'bm25() + (causal_keywords(topicrank("stopwords")) >> bm25())',
        },
        {
            "neural": "the semantic index of the published system, and a classifier of causal sentences",
            "spacy": "its lemmas, and keyphrases by parts of speech",
            "annoy": "its approximate search",
        },
        _causes,
    ),
    Task(
        "conversations",
        "A conversation: what does the last turn ask for?",
        "1_3",
        ("nDCG@10", "R@10"),
        {
            "as typed": "bm25()",
            "with earlier turns": "weighted_turns() >> bm25()",
        },
        {
            "neural": "rewriters that are models, such as T5, and a T5 that reranks",
            "spacy": "the nouns and adjectives of HQE, and sentences for passages",
            "train": "term classifiers that learn what a turn leaves out",
        },
    ),
    Task(
        "claims",
        "A claim: what is the evidence?",
        "1",
        ("Complete(rel=2)@5", "RR(rel=2)@10"),
        {"BM25": "bm25()", "BM25, RM3": "bm25() >> rm3() >> bm25()"},
        {
            "neural": "encoders of whole documents, ColBERT, and rerankers of documents and of their sentences",
            "simplemma": "lemmas of Czech and other languages",
        },
        _sentences,
    ),
)


def run_tasks(folder: Path, kept: bool, json: bool) -> dict[str, Any]:
    """Goes through the tasks and prints them; gives the same as JSON values.

    Args:
        folder: Where the index is built.
        kept: Whether it stays there, and commands name it so.
        json: Whether nothing is printed.
    """
    index = Index.build(harbour.corpus, folder / INDEX, overwrite=True)
    where = str(folder / INDEX) if kept else INDEX
    build = f"fontes index sample:harbour -o {shlex.quote(where)}"
    if not json:
        say(f"\nFour tasks on {len(index)} stories of a newspaper, which come along:")
        _print_command(build)
    results = []
    for number, task in enumerate(TASKS, 1):
        result = _result(task, index, where)
        results.append(result)
        if not json:
            _print(number, task, result)
    return {"command": build, "documents": len(index), "tasks": results}


def _result(task: Task, index: Index, where: str) -> dict[str, Any]:
    """What the systems of a task find and are worth."""
    collection = getattr(harbour, task.name)
    topics, qrels = collection.topics(), collection.qrels()
    rows, run = [], Run.of({})
    for name, text in task.systems.items():
        run = pipeline(text, index)(topics)
        measured = evaluate(run, qrels, task.measures)
        rows.append({"system": name, "pipeline": text, **{m: measured[m] for m in task.measures}})
    titles = {doc.id: doc.title for doc in run[task.example].docs()}
    hits = [
        {"rank": hit.rank, "id": hit.id, "title": titles[hit.id], "grade": qrels[task.example].get(hit.id, 0)}
        for hit in list(run[task.example])[:SHOWN]
    ]
    words = ["fontes", "search", where, "--topics", f"sample:harbour/{task.name}", "--pipeline", text, "-o", f"{task.name}.run"]
    result = {
        "task": task.name,
        "topics": len(topics),
        "command": shlex.join(words),
        "topic": {"id": task.example, "text": topics[task.example].text, "hits": hits},
        "systems": rows,
        "extras": dict(task.extras),
        "recipes": [name for name in registry if registry[name].sample == f"harbour/{task.name}"],
    }
    if task.closer is not None:
        (command, *rest), lines = task.closer(topics[task.example], index)
        documents = [{"id": doc_id, "text": said} for doc_id, said in lines]
        result["closer"] = {"command": shlex.join(["fontes", command, where, *rest]), "documents": documents}
    return result


def _print(number: int, task: Task, result: dict[str, Any]) -> None:
    say("")
    console.print(Text(f"{number}. {task.title}", style="bold"))
    _print_command(result["command"])
    say(f"> {result['topic']['text']}")
    for hit in result["topic"]["hits"]:
        console.print(
            Text.assemble(f"{hit['rank']:>3}  ", (hit["id"], "bold cyan"), f"  {hit['title']}", _judged(hit["grade"]))
        )
    table = Table(box=None)
    table.add_column(f"{result['topics']} topics")
    for measure in task.measures:
        table.add_column(measure, justify="right")
    for row in result["systems"]:
        table.add_row(row["system"], *(f"{row[measure]:.4f}" for measure in task.measures))
    console.print(table)
    if "closer" in result:
        _print_command(result["closer"]["command"])
        for doc in result["closer"]["documents"]:
            console.print(Text.assemble("     ", (doc["id"], "bold cyan"), f"  {doc['text']}"))
    for extra, what in task.extras.items():
        say(f"With fontes[{extra}]: {what}.")
    for name in result["recipes"]:
        _print_command(f"fontes recipe run {name} --sample -o {name}  # {registry[name].cite}")


def _print_command(command: str) -> None:
    console.print(Text(command, style="green"))


def _judged(grade: int) -> str:
    return {2: "  ✓", 1: "  (in part)"}.get(grade, "")
