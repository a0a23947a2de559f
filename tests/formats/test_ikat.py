"""Submissions to TREC iKAT: what is written is what the track's program checks, and both forms are read as runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app
from fontes.formats import read_run, write_run
from fontes.formats.ikat import whole_sentences

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ikat"
YEAR_2024 = {
    "run_name": "r",
    "run_type": "automatic",
    "turns": [
        {
            "turn_id": "0_1",
            "responses": [
                {
                    "rank": 1,
                    "text": "Winter.",
                    "ptkb_provenance": [12],
                    "passage_provenance": [
                        {"id": "clueweb22-en0000-00-00000:1", "score": 3.5, "used": True},
                        {"id": "clueweb22-en0000-00-00001:0", "score": -2, "used": False},
                    ],
                },
                {"rank": 2, "text": "Spring.", "passage_provenance": [{"id": "clueweb22-en0000-00-00002:0", "score": 1}]},
            ],
        },
        {"turn_id": "0_2", "responses": []},
    ],
}


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of the command line to the example's eleven turns."""
    folder = tmp_path_factory.mktemp("ikat")
    ft.Index.build(ft.dataset("harbour").corpus, folder / "index", analyzer="english")
    pipeline = "manual() >> statements() >> bm25() % 20"
    typed = ["search", str(folder / "index"), "--topics", str(EXAMPLE / "topics.json"), "--pipeline", pipeline]
    made = CliRunner().invoke(app, [*typed, "--to", "ikat", "--tag", "quay/terms", "-o", str(folder / "run.jsonl")])
    assert made.exit_code == 0, made.output
    return folder / "run.jsonl"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_turn_has_references_and_a_response_as_the_tracks_program_wants(submission: Path) -> None:
    """The rules of validate_trec_ikat25.py, except for the form of ClueWeb's ids, which the harbour has not."""
    turns = rows(submission)
    assert [row["turn_id"] for row in turns] == list(ft.read_topics(EXAMPLE / "topics.json"))
    for row in turns:
        assert row["metadata"] == {"team_id": "quay", "run_id": "terms", "run_type": "manual"}
        references = row["references"]
        assert 0 < len(references) <= 20
        assert list(references.values()) == sorted(references.values(), reverse=True)
        (response,) = row["responses"]
        assert response.keys() == {"rank", "text", "citations", "ptkb_provenance"}
        assert 0 < len(response["text"].split()) <= 250
        assert response["citations"].items() <= references.items()
        assert all(isinstance(statement, str) for statement in response["ptkb_provenance"])
    assert turns[3]["responses"][0]["ptkb_provenance"] == []  # "where are the children taught" shares no word with a statement
    assert turns[0]["responses"][0]["ptkb_provenance"] == ["I take the harbour launch to work."]


def test_a_submission_is_read_as_the_run_that_it_was(submission: Path, tmp_path: Path) -> None:
    index = ft.Index.open(submission.parent / "index")
    topics = ft.Topics.read(EXAMPLE / "topics.json")
    run = (ft.pipeline("manual() >> statements() >> bm25() % 20", index))(topics)
    assert read_run(submission).to_dict() == run.to_dict()
    write_run(ft.pipeline("raw() >> bm25() % 2", index)(topics), tmp_path / "raw.jsonl", "alone", "ikat")
    assert rows(tmp_path / "raw.jsonl")[0]["metadata"] == {"team_id": "alone", "run_id": "alone", "run_type": "automatic"}
    assert [len(ranking) for ranking in read_run(tmp_path / "raw.jsonl").values()] == [2] * 11


def test_an_answer_with_citations_is_the_response(tmp_path: Path) -> None:
    answer = {
        "text": "It is closed.",
        "sentences": [{"text": "It is closed.", "citations": [{"document": "b", "quote": "closed until spring"}]}],
    }
    topics = ft.Topics([ft.Topic("1_1", "x", metadata={"answer": answer, "statements": ["I sail."]}), ft.Topic("1_2", "y")])
    run = ft.Run.of([("1_1", "a", 2.0), ("1_1", "b", 1.5)], topics)
    write_run(run, tmp_path / "run.jsonl", "t", "ikat")
    first, second = rows(tmp_path / "run.jsonl")
    assert first["responses"] == [{"rank": 1, "text": "It is closed.", "citations": {"b": 1.5}, "ptkb_provenance": ["I sail."]}]
    assert (second["references"], second["responses"][0]["text"]) == ({}, "")


def test_an_answer_ends_with_a_whole_sentence_where_it_can() -> None:
    assert whole_sentences("One two.  Three") == "One two. Three"
    assert whole_sentences("word " * 240 + "end. " + "more " * 50) == "word " * 240 + "end."
    assert len(whole_sentences("word " * 300).split()) == 250


def test_runs_of_2023_and_2024_are_read_by_their_first_response(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(YEAR_2024))
    assert read_run(tmp_path / "run.json").to_dict() == {
        "0_1": {"clueweb22-en0000-00-00000:1": 3.5, "clueweb22-en0000-00-00001:0": -2.0}
    }


def test_the_format_goes_with_topics(tmp_path: Path, submission: Path) -> None:
    index = str(submission.parent / "index")
    refused = CliRunner().invoke(app, ["search", index, "geyser", "--to", "ikat"])
    assert refused.exit_code != 0
    assert "--to goes with --topics" in refused.output
