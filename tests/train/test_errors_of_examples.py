"""What errors of examples say, and of what makes and divides them: the file and line, parameter or topic at fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.each import each
from support.errors import check_error
from support.term_classifier import base as base

import fontes as ft
from fontes import Doc, Index, Qrels, Run, Topics
from fontes.core import FontesError, InputError, ParameterError, PipelineError
from fontes.core.stage import Cut
from fontes.neural import Reranker
from fontes.train import Example, Examples, LabelledPairs, Mining, Passage, document_examples, mine_negatives

NAN = float("nan")

LINE = {
    "topic": "q1",
    "query": "why is the sea salty",
    "positive": {"id": "d1", "text": "Rivers carry salt."},
    "negatives": [{"id": "d2", "text": "The sea is deep."}],
}
MANY = [Example(f"t{n}", f"query {n}", Passage("d1", "an answer"), (Passage("d2", "another"),)) for n in range(3)]
MISSED = Example("q1", "salt river", Passage("d3", "z"), (Passage("d1", "x"),))


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@dataclass(frozen=True)
class Numbers(Reranker):
    """Gives each document one score."""

    score: float = 1.0
    fingerprint = "numbers"

    def scores(self, pairs: Any) -> NDArray[np.float32]:
        return np.full(len(pairs), self.score, np.float32)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda p: Examples.read(lines(p / "e.jsonl", LINE, '{"topic": ')), InputError, "e.jsonl, line 2", "JSON"),
        (lambda p: Examples.read(lines(p / "none.jsonl")), InputError, "none.jsonl", "no examples"),
        (lambda p: Examples.of(p / "missing.jsonl"), InputError, "missing.jsonl", "no such file"),
        (lambda p: Examples([]), InputError, "no examples", ""),
        (lambda p: Examples.of([MANY[0], 3]), InputError, "a int", ""),
        (
            lambda p: Examples.read(lines(p / "e.jsonl", *[{**LINE, "negatives": []}] * 2)).check_labels(),
            InputError,
            "line 1 to … line 2",
            "no example has negatives",
        ),
        (lambda p: Examples(MANY[:1]).held_out(0.5), InputError, "all examples have one query", ""),
        (lambda p: Examples(MANY).held_out(1.5), ParameterError, "1.5", "between 0 and 1"),
        (lambda p: Examples(MANY).scored("MODEL"), ParameterError, "teacher … 'MODEL'", "a reranker"),
        (lambda p: Examples(MANY).scored(Numbers(NAN)), InputError, "positive 'd1' is nan", ""),
        (lambda p: LabelledPairs.of([("a", "b", 1)] * 2).check_labels(), InputError, "all pairs have the label 1", ""),
        (lambda p: LabelledPairs.of([("a", "b", 1), ("a", "b")]), InputError, "pair 2", "two texts"),
        (
            lambda p: Examples([MISSED]).scored(Index.build({"d1": "salt river", "d3": "desert"}, p / "i", threads=1).bm25()),
            InputError,
            "no relevant document of the examples",
            "give it their collection",
        ),
        (
            lambda p: Examples([MISSED]).scored(Index.build({"d1": "salt river"}, p / "i", threads=1).rm3()),
            ParameterError,
            "teacher … rm3",
            "a reranker",
        ),
    ],
)
def test_examples_and_their_teachers(
    tmp_path: Path, call: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tmp_path), error, names, remedy)


class Shelf:
    """Documents by id."""

    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        for doc_id in ids:
            if doc_id not in self.ids:
                raise InputError(f"no document '{doc_id}'")
        return [Doc(doc_id, f"the document {doc_id} about {doc_id * 3}", "A title") for doc_id in ids]


TWO = {"q1": "one", "q2": "two"}
NEAR = ["d01", "d02", "d03"]
SEA = Doc("sea", "The sea is deep and salty. Rivers carry the salt there. Rain falls upon the hills.", "Why the sea is salty")


def near(*ids: str, documents: object = None) -> Run:
    topics = Topics.of({"q1": "what about q1"})
    run = Run.of({"q1": {doc_id: 100.0 - n for n, doc_id in enumerate(ids)}}, topics)
    return run.with_(documents=documents or Shelf(*ids))


def mined(**settings: Any) -> object:
    run = near(*NEAR)
    return mine_negatives(run, run.topics, {"q1": {"d01": 1}}, **settings)


def topics_of(count: int = 60) -> tuple[Topics, Qrels]:
    """Topics of words of their own, three to a document and four to a conversation."""
    draw = np.random.default_rng(7)
    letters = [chr(97 + n) for n in range(26)]
    texts = {f"c{i // 4:02}_{i % 4}": " ".join("".join(draw.choice(letters, 7)) for _ in range(8)) for i in range(count)}
    return Topics.of(texts), Qrels.of({t: {f"d{i // 3}": 1} for i, t in enumerate(texts)})


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda s=settings: mined(**s), ParameterError, names, remedy)
            for settings, names, remedy in (
                ({"per_positive": 0}, "per_positive … 0", "from 1 up"),
                ({"ranks": (0, 5)}, "the first of the ranks … 0", "from 1 up"),
                ({"ranks": (5, 4)}, "the last of the ranks … 4", "from 5 up"),
                ({"ranks": 5}, "ranks", "two numbers"),
                ({"margin": -1}, "margin … -1", "from 0 up"),
                ({"margin": NAN}, "margin … nan", "from 0 up"),
                ({"relative_margin": 0}, "relative_margin … 0", "above 0, at most 1"),
                ({"relative_margin": 1.5}, "relative_margin … 1.5", "above 0, at most 1"),
                ({"relative_margin": 0.95}, "relative margin", "needs a teacher"),
                ({"relative_margin": 0.95, "teacher": Cut(3)}, "teacher … cut(3)", "a reranker"),
                ({"sampling": "best"}, "sampling … 'best'", "top or random"),
                ({"seed": -1}, "seed … -1", "from 0 up"),
                ({"preset": "air2026"}, "'air2026'", "there is air2025"),
                ({"preset": "air2025", "per_positive": 9, "margin": 1.0}, "per_positive and margin", "leave"),
            )
        ),
        (lambda: mine_negatives(Cut(3), TWO, {"q1": {"d01": 1}}), PipelineError, "cut", "from Topics to Run"),
        (lambda: mine_negatives(near(*NEAR), TWO, {"x": {"d01": 1}}), InputError, "none of the topics has judgments", ""),
        (lambda: mine_negatives(near(*NEAR), TWO, {"q1": {"d01": 0}}), InputError, "no topic", "grade 1 or more"),
        (
            lambda: mine_negatives(near(*NEAR), TWO, {"q1": {"lost": 1}}),
            InputError,
            "2 topics: 1 topic without … 1 missing relevant document",
            "",
        ),
        (lambda: mine_negatives(Run.of({"q1": {"d01": 1.0}}), TWO, {"q1": {"d01": 1}}), InputError, "documents' text", ""),
        (
            lambda: mine_negatives(near("d01", "strange", documents=Shelf("d01")), TWO, {"q1": {"d01": 1}}),
            InputError,
            "no document 'strange'",
            "",
        ),
        # examples of documents
        *(
            (lambda s=settings: document_examples([SEA], **s), ParameterError, names, remedy)
            for settings, names, remedy in (
                ({"form": "abstract"}, "'abstract'", ""),
                ({"form": 3}, "queries", "title, first, cloze, section, or llm_questions"),
                ({"sentences": "commas"}, "'commas'", ""),
                ({"round_trip_rank": 0}, "round_trip_rank … 0", "from 1"),
                ({"keep": 1.5}, "keep … 1.5", "a probability"),
                ({"per_document": 0}, "per_document … 0", "from 1"),
                ({"limit": 0}, "limit … 0", "from 1"),
                ({"seed": -1}, "seed … -1", "from 0"),
                ({"mining": Mining(sampling="best")}, "sampling … 'best'", "top or random"),
            )
        ),
        (lambda: document_examples([SEA], "section"), InputError, "1 document: 1 document", "too short"),
        (lambda: document_examples([SEA], "title", round_trip=Cut(3)), PipelineError, "round trip … cut", "from Topics to Run"),
        # splits
        *(
            (lambda h=how: ft.split(*topics_of(12), **h), error, names, remedy)
            for how, error, names, remedy in (
                ({"near": 0}, ParameterError, "near, a Jaccard similarity … 0", "above 0"),
                ({"near": 1.5}, ParameterError, "near, a Jaccard similarity … 1.5", ""),
                ({"test": 0}, ParameterError, "test … 0", "a share between 0 and 1"),
                ({"test": 1.0}, ParameterError, "test … 1.0", "a share between 0 and 1"),
                ({"test": 12}, InputError, "12 topics are too few to keep 12", ""),
                ({"groups": "author"}, ParameterError, "groups … 'author'", ""),
                ({"groups": lambda topic: 0}, InputError, "no group of topics is small enough", ""),
            )
        ),
        (lambda: ft.split([]), InputError, "no topics", ""),
        (lambda: ft.split({"1": "moss"}, {"3": {"d": 1}}), InputError, "none of the topics has judgments", ""),
        (lambda: ft.split([Topics.of({"c0": "a"}), Topics.of({"c0": "b"})]), InputError, "topic 'c0' has two texts", ""),
    ],
)
def test_negatives_questions_and_splits(call: Callable[[], object], error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)
