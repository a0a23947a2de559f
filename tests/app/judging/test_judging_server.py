"""Judging over HTTP: who may, what is sent, and what is on disk when it is answered; and the command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.each import each
from support.judging import as_judge, judged
from support.serving import Running, springs

from fontes.app.judging.store import JudgmentStore
from fontes.formats import read_qrels

TOPICS = {"1": "hot spring water", "2": "oasis desert"}
Session = tuple[Running, httpx.Client, httpx.Client]


@contextlib.contextmanager
def two_judges(folder: Path) -> Iterator[Session]:
    """A server, and two judges."""
    with judged(springs(folder), folder / "j.sqlite", TOPICS) as running:
        tokens = [running.service.add_judge(name) for name in ("anna", "ben")]
        with as_judge(running.address, tokens[0]) as anna, as_judge(running.address, tokens[1]) as ben:
            yield running, anna, ben


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with two_judges(tmp_path) as session:
        yield session


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A server of which all is refused that would change it."""
    with two_judges(tmp_path_factory.mktemp("unjudged")) as session:
        yield session


def finish(judge: httpx.Client, topic: str, grades: dict[str, int]) -> list[str]:
    """Judges all documents of a topic; the order in which they came."""
    answer, order = judge.get("/judging/next", params={"topic": topic}).json(), []
    while (document := answer["document"]) is not None:
        order.append(document["id"])
        body = {"topic": topic, "document": document["id"], "grade": grades.get(document["id"], 0), "seconds": 2}
        answer = judge.post("/judging/grades", json=body).json()
    return order


@each("shown", [None, "Bearer wrong", "Bearer", "Basic x", "Bearer ü"])
def test_without_a_judges_token_there_is_nothing(unjudged: Session, shown: str | None) -> None:
    running, _, _ = unjudged
    headers = {} if shown is None else {"authorization": shown.encode()}
    for path in (
        "me",
        "topics",
        "next?topic=1",
        "document?topic=1&id=s1",
        "judged?topic=1",
        "agreement",
        "export/settled.qrels",
    ):
        assert running.problem("GET", f"/judging/{path}", headers=headers) == (
            401,
            "this needs a judge's token: Authorization: Bearer TOKEN",
        )
    for path in ("grades", "undo", "notes", "evidence", "settled", "topics"):
        assert running.problem("POST", f"/judging/{path}", headers=headers, json={})[0] == 401
    assert running.service.judgments() == []
    assert running.get("/indexes")["judging"] is True


def test_a_judge_sees_a_document_and_nothing_of_whence_it_came(session: Session) -> None:
    running, anna, ben = session
    answer = anna.get("/judging/next", params={"topic": "1"}).json()
    assert set(answer["document"]) == {"id", "title", "text", "metadata", "matches", "title_matches", "grade", "note"}
    assert set(answer["topic"]) == {
        *("id", "text", "description", "narrative", "pool", "judged", "left", "missing", "relevant", "seconds", "others")
    }
    for judge in (anna, ben):
        for path in ("next?topic=1", "topics", "me", "agreement", "judged?topic=1"):
            text = judge.get(f"/judging/{path}").text
            assert not any(word in text for word in ("bm25", "ql(", "score", "rank", "pipeline", '"one"', '"two"')), path
    orders = [finish(judge, "1", {}) for judge in (anna, ben)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(running.service.pool("1"))
    assert orders[0] != orders[1]


def test_each_grade_is_kept_before_the_next_document_comes(session: Session) -> None:
    running, anna, ben = session
    document = anna.get("/judging/next", params={"topic": "1"}).json()["document"]["id"]
    body = {"topic": "1", "document": document, "grade": 3, "seconds": 1.5}
    answer = anna.post("/judging/grades", json=body).json()
    assert [(one.document, one.grade, one.seconds) for one in running.service.judgments()] == [(document, 3, 1.5)]
    topic = answer["topic"]
    assert (topic["judged"], topic["relevant"], topic["seconds"], topic["left"]) == (1, 1, 1.5, topic["pool"] - 1)
    assert answer["document"]["id"] != document
    assert anna.get("/judging/topics").json()["topics"][0]["others"] == {}
    assert ben.get("/judging/topics").json()["topics"][0]["others"] == {"anna": 1}
    undone = anna.post("/judging/undo").json()
    assert undone["document"]["id"] == document
    assert undone["topic"]["judged"] == 0


@each(
    ("path", "body", "status", "detail"),
    [
        ("grades", {"topic": "1", "document": "s1", "grade": 4}, 422, "less than or equal to 3"),
        ("grades", {"topic": "1", "document": "s1", "grade": -1}, 422, "greater than or equal to 0"),
        ("grades", {"topic": "9", "document": "s1", "grade": 1}, 422, "not in the pool of topic '9'"),
        ("grades", {"topic": "1", "document": "s1", "grade": 1, "judge": "ben"}, 422, "there is no parameter 'judge'"),
        ("notes", {"topic": "1", "document": "no", "note": "x"}, 422, "not in the pool"),
        ("evidence", {"topic": "1", "groups": [["s1"]]}, 422, "can be evidence once"),
        ("evidence", {"topic": "9", "groups": []}, 404, "there is no topic '9'"),
        ("settled", {"topic": "1", "document": "s1", "grade": 1}, 409, "nothing to settle"),
        ("undo", {}, 409, "no judgment to undo"),
        ("topics", {"text": " "}, 422, "the query is empty"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(unjudged: Session, path: str, body: Any, status: int, detail: str) -> None:
    _, anna, _ = unjudged
    response = anna.post(f"/judging/{path}", json=body)
    assert response.status_code == status
    assert detail in response.json()["detail"]


def test_differences_are_shown_to_those_who_have_finished_and_settled_once(session: Session) -> None:
    running, anna, ben = session
    finish(anna, "1", {"s1": 3, "s2": 2})
    ben.post("/judging/grades", json={"topic": "1", "document": "s1", "grade": 1})
    assert [one["document"] for one in anna.get("/judging/agreement").json()["disagreements"]] == ["s1"]
    assert ben.get("/judging/agreement").json()["disagreements"] == []
    settlement = {"topic": "1", "document": "s1", "grade": 2}
    assert ben.post("/judging/settled", json=settlement).status_code == 409
    assert anna.post("/judging/settled", json=settlement).status_code == 204
    (one,) = anna.get("/judging/agreement").json()["disagreements"]
    assert (one["settled"], one["by"]) == (2, "anna")
    again = ben.post("/judging/grades", json={"topic": "1", "document": "s1", "grade": 3})
    assert again.status_code == 409
    assert "is settled" in again.json()["detail"]
    assert anna.get("/judging/export/ben.tsv").status_code == 404
    assert "1\ts1\t3" in anna.get("/judging/export/anna.tsv").text
    assert "1\ts1\t2" in anna.get("/judging/export/settled.tsv").text
    assert running.service.settled() == {("1", "s1"): (2, "anna")}


def test_evidence_is_compared_between_those_who_have_finished(session: Session) -> None:
    _, anna, ben = session
    finish(anna, "1", {"s1": 3, "s2": 2})
    anna.post("/judging/evidence", json={"topic": "1", "groups": [["s1", "s2"]]})
    ben.post("/judging/grades", json={"topic": "1", "document": "s1", "grade": 1})
    assert anna.get("/judging/agreement").json()["evidence"] == []
    finish(ben, "1", {"s1": 1, "s2": 2})
    ben.post("/judging/evidence", json={"topic": "1", "groups": [["s1"]]})
    values = anna.get("/judging/agreement").json()
    (one,) = values["evidence"]
    assert [(of["judge"], [group["documents"] for group in of["groups"]]) for of in one["judges"]] == [
        ("anna", [["s1", "s2"]]),
        ("ben", [["s1"]]),
    ]
    assert values["titles"] == {"s1": "Geysers", "s2": "Hot springs"}
    ben.post("/judging/evidence", json={"topic": "1", "groups": [["s2", "s1"]]})
    assert anna.get("/judging/agreement").json()["evidence"] == []


def test_a_typed_topic_is_pooled_at_once(session: Session) -> None:
    running, anna, _ = session
    answer = anna.post("/judging/topics", json={"text": "caves in limestone", "narrative": "any cave"})
    assert answer.status_code == 201
    assert answer.json()["id"] == "3"
    assert answer.json()["pool"] == 1
    assert running.service.pool("3") == ["s3"]


def test_documents_that_the_index_has_no_more_stay_in_the_pool(session: Session) -> None:
    running, anna, _ = session
    running.service.add_pools({"1": ["gone"]}, "another index", "bm25()", 20)
    assert "gone" not in finish(anna, "1", {})
    (topic, _) = anna.get("/judging/topics").json()["topics"]
    assert (topic["left"], topic["missing"], topic["pool"] - topic["judged"]) == (0, 1, 1)
    answer = anna.get("/judging/document", params={"topic": "1", "id": "gone"})
    assert answer.status_code == 404
    assert "not in the index that is served now" in answer.json()["detail"]


@contextlib.contextmanager
def command(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """`fontes judge` in a process; its address, and the lines before it."""
    whole = [sys.executable, "-m", "fontes", "judge", *map(str, arguments), "--port", "0", "--quiet"]
    running = subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert running.stdout
    try:
        lines = [running.stdout.readline()]
        while lines[-1] and " at http://" not in lines[-1]:
            lines.append(running.stdout.readline())
        assert lines[-1], lines
        yield running, lines[-1].split(" at ")[1].split("/judge")[0], lines[:-1]
    finally:
        running.kill()
        running.communicate()


@pytest.mark.slow
def test_without_topics_the_page_is_served_to_write_them(tmp_path: Path) -> None:
    with command(springs(tmp_path), "--judgments", tmp_path / "j.sqlite", "--judge", "anna") as (_, address, lines):
        token = lines[0].rpartition(" ")[2].strip()
        with as_judge(address, token) as anna:
            assert anna.post("/judging/topics", json={"text": "limestone", "narrative": ""}).json()["pool"] > 0


@pytest.mark.slow
def test_a_server_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    index, judgments, tokens, topics = springs(tmp_path), tmp_path / "j.sqlite", tmp_path / "tokens", tmp_path / "topics.jsonl"
    topics.write_text("".join(json.dumps({"_id": topic, "text": text}) + "\n" for topic, text in TOPICS.items()))
    options = (index, "--judgments", judgments, "--pipeline", "a=bm25()", "--pipeline", "ql()", "--depth", "10")
    with command(*options, "--topics", topics, "--judge", "anna", "--judge", "ben", "--token-file", tokens) as (
        running,
        address,
        lines,
    ):
        assert lines == []
        assert tokens.stat().st_mode & 0o777 == 0o600
        of = dict(line.split("\t") for line in tokens.read_text().splitlines())
        assert list(of) == ["anna", "ben"]
        with as_judge(address, of["anna"]) as anna:
            document = anna.get("/judging/next", params={"topic": "1"}).json()["document"]["id"]
            following = anna.post("/judging/grades", json={"topic": "1", "document": document, "grade": 2}).json()
        running.send_signal(signal.SIGKILL)
        running.wait()
    with command(*options) as (running, address, lines), as_judge(address, of["anna"]) as anna:
        assert lines == []
        answer = anna.get("/judging/next", params={"topic": "1"}).json()
        assert answer["topic"]["judged"] == 1
        assert answer["document"]["id"] == following["document"]["id"]
        finish(anna, "2", {"a/b?c=1": 3})
        exported = subprocess.run(
            [sys.executable, "-m", "fontes", "judge", "--judgments", judgments, "--export", tmp_path / "out"],
            capture_output=True,
            text=True,
        )
        assert exported.returncode == 0, exported.stderr
    assert read_qrels(tmp_path / "out", split="anna")["2"] == {"a/b?c=1": 3}
    with JudgmentStore(judgments) as store:
        assert [(one.topic, one.grade) for one in store.judgments()] == [("1", 2), ("2", 3)]


@each(
    ("arguments", "sentence"),
    [
        ([], "name the index"),
        (["--export", "out"], "there is no such file"),
        (["springs.index", "--renew", "eva", "--port", "0"], "there is no judge of this name"),
        (["springs.index", "--judge", "a/b", "--port", "0"], "cannot be called 'a/b'"),
        (["springs.index", "--judgments", "springs.index", "--port", "0"], "cannot be opened"),
    ],
)
def test_the_command_says_in_a_sentence_what_is_missing(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    from typer.testing import CliRunner

    from fontes.app.cli import app

    springs(tmp_path)
    with contextlib.chdir(tmp_path):
        result = CliRunner().invoke(app, ["judge", *arguments])
    assert result.exit_code != 0
    assert sentence in str(result.exception)
