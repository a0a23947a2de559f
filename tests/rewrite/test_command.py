"""`fontes rewrite`, and rewriters in files of experiments."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import fontes as ft
from fontes.app.cli import app


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewrite") / "harbour.index"
    ft.Index.build(ft.datasets.samples.harbour.corpus, path)
    return path


def run(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, ["rewrite", *map(str, arguments)], input=input)


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


HARBOUR = "sample:harbour/conversations"
EXPERIMENT = """
[collection]
corpus = "corpus.jsonl"
topics = "topics.jsonl"
qrels = "qrels.txt"

[systems]
by-hand = "manual() >> bm25()"
history = "last_turns(k=1) >> bm25()"
keywords = "hqe(eta=5.0, tagger='none') >> bm25()"

[report]
measures = ["nDCG@10"]
forms = ["json"]
"""


def test_rewritten_turns_are_json_lines_with_their_turns() -> None:
    found = rows(run(HARBOUR, "--with", "manual()"))
    topics = ft.datasets.samples.harbour.conversations.topics()
    assert [row["_id"] for row in found] == list(topics)
    assert [row["text"] for row in found] == [topic.turns[-1].manual for topic in topics.values()]
    assert [len(row["turns"]) for row in found] == [len(topic.turns) for topic in topics.values()]


def test_rewritten_turns_pipe_into_search_and_into_another_rewriter(tmp_path: Path, index: Path) -> None:
    rewritten = run(HARBOUR, "--with", "last_turns(k=1, first=True)").stdout
    result = CliRunner().invoke(app, ["search", str(index), "--topics", "-", "-o", str(tmp_path / "run")], input=rewritten)
    assert result.exit_code == 0, result.output
    topics = ft.datasets.samples.harbour.conversations.topics()
    expected = (ft.rewrite.LastTurns(1, first=True) >> ft.Index.open(index).bm25())(topics)
    assert ft.read_run(tmp_path / "run") == ft.Run.of({topic_id: dict(_pairs(expected[topic_id])) for topic_id in expected})
    back = rows(run("-", "--with", "raw()", input=rewritten))
    assert [row["text"] for row in back] == [topic.text for topic in topics.values()]


def _pairs(ranking: ft.Ranking) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in ranking]


def test_each_rewriter_is_the_stage_with_its_options(index: Path, tmp_path: Path) -> None:
    topics = ft.datasets.samples.harbour.conversations.topics()
    opened = ft.Index.open(index)
    for stage, text in (
        (ft.rewrite.Raw(), "raw()"),
        (ft.rewrite.Automatic("raw"), "automatic(missing='raw')"),
        (ft.rewrite.LastTurns(), "last_turns()"),
        (ft.rewrite.WeightedTurns(opened, k=2), "weighted_turns(k=2)"),
        (ft.HQE(opened, tagger="none"), "hqe(tagger='none')"),
        (ft.rewrite.Manual() >> ft.rewrite.LastTurns(1), "manual() >> last_turns(k=1)"),
    ):
        output = tmp_path / "topics.jsonl"
        result = run(HARBOUR, "--with", text, "--index", index, "-o", output)
        assert result.exit_code == 0, result.output
        found = {topic.id: topic.text for topic in ft.read_topics(output).values()}
        assert found == {topic.id: topic.text for topic in stage(topics).values()}


def test_canard_is_run_with_the_model_of_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_t5 import save_t5

    folder = save_t5(tmp_path / "t5")
    lines = '{"_id": "1_1", "text": "water?", "turns": [{"text": "water?"}]}\n'
    (row,) = rows(run("-", "--with", f'canard_t5("{folder}")', input=lines))
    assert row["text"] == ft.CanardT5(str(folder))(ft.Topic("1_1", "water?", turns=(ft.Turn("water?"),)))["1_1"].text


def test_what_is_no_rewriter_is_an_error_that_says_why() -> None:
    for text, message in [
        ("magic()", "there is no stage 'magic'"),
        ("hqe", "'hqe' is a stage; write hqe()"),
        ("hqe()", "hqe needs an index; none is given"),
        ("quretec()", "quretec needs the parameter 'name_or_path'"),
        ("raw(k=3)", "raw has no parameter 'k'"),
        ("last_turns(k=-1)", "k, the number of earlier turns, must be a whole number from 0 up, not -1"),
        ("cut(10)", "needs a stage from Topics to Topics"),
    ]:
        result = run(HARBOUR, "--with", text)
        assert isinstance(result.exception, ft.FontesError)
        assert message in str(result.exception)


def test_topics_that_carry_no_rewrite_are_an_error_that_says_so(tmp_path: Path) -> None:
    topics = ft.datasets.samples.harbour.conversations.topics()
    bare = [replace(topic, turns=tuple(replace(turn, automatic="") for turn in topic.turns)) for topic in topics.values()]
    ft.write_topics(ft.Topics(bare), tmp_path / "bare.jsonl")
    result = run(str(tmp_path / "bare.jsonl"), "--with", "automatic()")
    assert isinstance(result.exception, ft.FontesError)
    assert "topic '1_1': its last turn has no automatic rewrite" in str(result.exception)


def test_rewriters_are_steps_of_an_experiment(tmp_path: Path, index: Path) -> None:
    harbour = ft.datasets.samples.harbour.conversations
    ft.write_corpus(harbour.corpus, tmp_path / "corpus.jsonl")
    ft.write_topics(harbour.topics(), tmp_path / "topics.jsonl")
    ft.write_qrels(harbour.qrels(), tmp_path / "qrels.txt")
    (tmp_path / "turns.toml").write_text(EXPERIMENT)
    report = ft.Experiment(tmp_path / "turns.toml").run()
    opened, topics = ft.Index.open(index), harbour.topics()
    stages = {
        "by-hand": ft.rewrite.Manual(),
        "history": ft.rewrite.LastTurns(k=1),
        "keywords": ft.HQE(opened, eta=5.0, tagger="none"),
    }
    for name, stage in stages.items():
        expected = ft.evaluate((stage >> opened.bm25())(topics), harbour.qrels(), "nDCG@10")
        assert report.mean(name, "nDCG@10") == pytest.approx(expected["nDCG@10"])
