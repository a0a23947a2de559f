"""Examples and labelled pairs: what can be learned from, files of them, and sides."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each

from fontes.core import InputError
from fontes.index import Index
from fontes.neural.rerank import Reranker
from fontes.train import Example, Examples, LabelledPair, LabelledPairs, Passage

LINE = {
    "topic": "q1",
    "query": "why is the sea salty",
    "positive": {"id": "d1", "text": "Rivers carry salt."},
    "negatives": [{"id": "d2", "text": "The sea is deep.", "score": 3.25, "rank": 2}, {"id": "d3", "text": "Salt is sold."}],
}


def example(topic: str = "q1", query: str = "a question", *negatives: str) -> Example:
    return Example(topic, query, Passage("d1", "an answer"), tuple(Passage(name, f"text {name}") for name in negatives))


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_a_file_is_read_as_it_is_described_and_written_back_to_the_same_bytes(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "e.jsonl", LINE, {**LINE, "topic": 7, "negatives": []})
    examples = Examples.read(file)
    assert examples[0] == Example(
        "q1",
        "why is the sea salty",
        Passage("d1", "Rivers carry salt."),
        (Passage("d2", "The sea is deep.", 3.25, 2), Passage("d3", "Salt is sold.")),
    )
    assert (examples[1].topic, examples[1].negatives, examples.topics) == ("7", (), ["q1", "7"])
    assert [one.source for one in examples] == [f"{file}, line 1", f"{file}, line 2"]
    examples.write(tmp_path / "again.jsonl")
    assert json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0]) == LINE
    assert Examples.of(tmp_path / "again.jsonl") == examples == Examples(list(examples))
    examples.write(tmp_path / "packed.jsonl.gz")
    assert Examples.of(str(tmp_path / "packed.jsonl.gz")) == examples


def test_the_hash_is_that_of_the_written_file_and_changes_with_each_part(tmp_path: Path) -> None:
    examples = Examples([example("q1", "a question", "d2")])
    examples.write(tmp_path / "e.jsonl")
    assert examples.hash == hashlib.sha256((tmp_path / "e.jsonl").read_bytes()).hexdigest()
    assert Examples.read(tmp_path / "e.jsonl").hash == examples.hash
    one = examples[0]
    others = [
        replace(one, topic="q2"),
        replace(one, query="another"),
        replace(one, positive=replace(one.positive, score=1.0)),
        replace(one, negatives=(replace(one.negatives[0], text="else"),)),
        replace(one, negatives=()),
    ]
    assert len({Examples([other]).hash for other in (one, *others)}) == 6


@each(
    ("change", "problem"),
    [
        ({"positive": None}, "no positive"),
        ({"positive": {"text": "a"}}, "the positive has no 'id'"),
        ({"positive": {"id": "d1"}}, "the text of the positive 'd1' is missing"),
        ({"positive": {"id": "d1", "text": "  "}}, "the text of the positive 'd1' is empty"),
        ({"negatives": [{"id": "d2", "text": ""}]}, "the text of the negative 'd2' is empty"),
        ({"negatives": [{"id": "d2", "text": "a"}, {"id": "d3"}]}, "the text of the negative 2 'd3' is missing"),
        ({"negatives": [{"id": "d1", "text": "a"}]}, "the negative 'd1' is the positive"),
        ({"negatives": [{"id": "d2", "text": "a"}, {"id": "d2", "text": "a"}]}, "'d2' is the positive, or is listed twice"),
        ({"negatives": None}, "no list of objects under 'negatives'"),
        ({"negatives": [{"id": "d2", "text": "a", "score": "3"}]}, "the score of the negative 1 is '3'"),
        ({"negatives": [{"id": "d2", "text": "a", "score": float("nan")}]}, "the score of the negative 1 is 'nan'"),
        ({"negatives": [{"id": "d2", "text": "a", "rank": 0}]}, "the rank of the negative 1 is 0"),
        ({"query": "\t"}, "the query of topic 'q1' is empty"),
        ({"query": 5}, "the query is a int, where a text belongs"),
        ({"topic": None}, "no id under 'topic'"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_file_and_line(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    file = write_lines(tmp_path / "e.jsonl", LINE, {**LINE, **change})
    with pytest.raises(InputError) as error:
        Examples.read(file)
    assert str(error.value).startswith(f"{file}, line 2: ")
    assert problem in str(error.value)


def test_all_examples_of_a_query_are_held_out_together_whatever_their_order() -> None:
    many = [example(f"t{n}", f"query {n % 20}", f"n{n}") for n in range(60)]
    learned, out = Examples(many).held_out(0.1, seed=3)
    assert (len(learned), len(out)) == (54, 6)
    assert {one.query for one in learned}.isdisjoint(one.query for one in out)
    turned = Examples(many[::-1]).held_out(0.1, seed=3)[1]
    assert [one.topic for one in turned] == [one.topic for one in out][::-1]
    assert len({tuple(sorted({one.query for one in Examples(many).held_out(0.1, seed)[1]})) for seed in range(8)}) > 4
    assert len(Examples(many).held_out(0.001)[1]) == 3


@dataclass(frozen=True)
class Lengths(Reranker):
    """Scores a document by its length; counts what it reads."""

    def scores(self, pairs) -> NDArray[np.float32]:  # type: ignore[no-untyped-def]
        READ.extend(pairs)
        return np.array([len(document) / 10 for _, document in pairs], dtype=np.float32)

    @property
    def fingerprint(self) -> str:
        return "lengths"


READ: list[tuple[str, str]] = []


def test_a_teachers_scores_take_the_place_of_those_of_the_run(tmp_path: Path) -> None:
    examples = Examples([Examples.read(write_lines(tmp_path / "e.jsonl", LINE))[0], example("q2", "another", "d9")])
    READ.clear()
    scored = examples.scored(Lengths(cache=tmp_path / "scores.sqlite"))
    assert scored[0].positive == Passage("d1", "Rivers carry salt.", 1.8)
    assert [(p.id, p.score, p.rank) for p in scored[0].negatives] == [("d2", 1.6, 2), ("d3", 1.3, None)]
    assert len(READ) == 5
    assert examples.scored(Lengths(cache=tmp_path / "scores.sqlite")) == scored
    assert len(READ) == 5
    scored.write(tmp_path / "scored.jsonl")
    assert Examples.read(tmp_path / "scored.jsonl") == scored


def test_a_pipeline_teaches_its_scores_of_the_documents_by_their_ids(tmp_path: Path) -> None:
    index = Index.build({"d1": "salt river", "d2": "river", "d3": "desert", "d4": "river delta mud"}, tmp_path / "i", threads=1)
    one = Example("q1", "salt river", Passage("d1", "x"), (Passage("d2", "y", 7.0, 2), Passage("d3", "z")))
    two = Example("q2", "desert", Passage("d3", "z"), (Passage("d1", "x"),))
    scored = Examples([one, two]).scored(index.bm25())
    first, second = index.bm25().search("salt river"), index.bm25().search("desert")
    of = dict(zip(first.ids, first.scores.tolist(), strict=True))
    assert set(of) == {"d1", "d2", "d4"}
    assert [p.score for p in (scored[0].positive, *scored[0].negatives)] == [
        pytest.approx(score, abs=1e-6) for score in (of["d1"], of["d2"], min(of.values()))
    ]
    assert scored[0].negatives[0].rank == 2
    assert scored[1].positive.score == scored[1].negatives[0].score == pytest.approx(second.scores[0], abs=1e-6)
    missed = Example("q1", "salt river", Passage("d3", "z"), (Passage("d1", "x"),))
    assert Examples([missed, one, two]).scored(index.bm25()) == scored


def test_a_reranker_scores_each_text_that_stands_under_an_id() -> None:
    one = Example("q", "salt", Passage("d1", "aa"), (Passage("d2", "b"),))
    two = Example("q", "salt", Passage("d3", "ccc"), (Passage("d1", "dddd"),))
    scored = Examples([one, two]).scored(Lengths())
    assert scored[0].positive.score != scored[1].negatives[0].score
    alone = [Examples([example]).scored(Lengths())[0] for example in (one, two)]
    assert list(scored) == alone


def test_pairs_are_read_checked_and_written(tmp_path: Path) -> None:
    rows = [{"first": "a", "second": "b", "label": 1}, {"first": "a", "second": "c", "label": 0.25}]
    file = write_lines(tmp_path / "p.jsonl", *rows)
    pairs = LabelledPairs.of(file)
    assert pairs == LabelledPairs([LabelledPair("a", "b", 1), LabelledPair("a", "c", 0.25)])
    assert pairs == LabelledPairs.of([("a", "b", 1), ("a", "c", 0.25)])
    pairs.write(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()
    assert pairs.hash == hashlib.sha256(file.read_bytes()).hexdigest()


@each(
    ("row", "problem"),
    [
        ({"first": "a", "second": "b"}, "a label from 0 to 1"),
        ({"first": "a", "second": "b", "label": "1"}, "a label from 0 to 1"),
        ({"first": "a", "second": "b", "label": True}, "a label from 0 to 1"),
        ({"first": "a", "second": "b", "label": 1.5}, "the label must be 0, 1 or a share between them, not 1.5"),
        ({"first": "a", "second": "b", "label": float("nan")}, "not nan"),
        ({"first": " ", "second": "b", "label": 1}, "the first text is empty"),
        ({"first": "a", "second": None, "label": 1}, "the second is missing"),
    ],
)
def test_pairs_that_cannot_be_learned_from_are_refused_with_file_and_line(
    tmp_path: Path, row: dict[str, object], problem: str
) -> None:
    file = write_lines(tmp_path / "p.jsonl", {"first": "a", "second": "b", "label": 1}, row)
    with pytest.raises(InputError) as error:
        LabelledPairs.read(file)
    assert str(error.value).startswith(f"{file}, line 2: ")
    assert problem in str(error.value)


def test_examples_are_pairs_with_the_labels_1_and_0(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "e.jsonl", LINE)
    pairs = LabelledPairs.of(Examples.read(file))
    assert [(pair.second, pair.label) for pair in pairs] == [
        ("Rivers carry salt.", 1),
        ("The sea is deep.", 0),
        ("Salt is sold.", 0),
    ]
    assert {pair.first for pair in pairs} == {"why is the sea salty"}
    assert LabelledPairs.of(file) == pairs
    pairs.check_labels()


def test_a_score_that_is_a_whole_number_is_read_as_a_float(tmp_path: Path) -> None:
    row = {"topic": "q", "query": "a query", "positive": {"id": "d", "text": "a text", "score": 10**30 - 1}, "negatives": []}
    path, again = tmp_path / "examples.jsonl", tmp_path / "again.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    examples = Examples.read(path)
    examples.write(again)
    assert examples[0].positive.score == 1e30
    assert (Examples.read(again), Examples.read(again).hash) == (examples, examples.hash)
