"""What doors say when a pipeline abstains: nothing answers this, and the nearest documents all the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Fontes
from support.serving import Running, serving

import fontes as ft
from fontes.app.agents.calls import Tools
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings
from fontes.train import CalibrationSettings, train_calibration

WORDS = [
    f"{a}{b}" for a in ("bren", "carl", "dov", "elm", "fal", "gorm") for b in ("ak", "eth", "ins", "old", "ury", "wick", "yar")
]
ANSWERED = "brenak carlak dovak"
UNANSWERED = "the tide in the harbour"
SENTENCE = "Nothing in this collection answers this (p = "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of documents that share few words, and a calibration from a topic for each."""
    folder = tmp_path_factory.mktemp("abstention")
    numbers = range(len(WORDS))
    names = [[WORDS[number], WORDS[(number + 7) % len(WORDS)], WORDS[(number + 14) % len(WORDS)]] for number in numbers]
    docs = [
        ft.Doc(f"d{number}", f"{' '.join(words)} lie by the harbour; {words[0]} {words[1]} is old.", words[0].title())
        for number, words in enumerate(names)
    ]
    index = ft.Index.build(docs, folder / "x.index", threads=1)
    topics = [ft.Topic(f"q{number}", " ".join(words)) for number, words in enumerate(names)]
    topics += [ft.Topic(f"n{number}", f"{words[0][::-1]} {words[1][::-1]} harbour") for number, words in enumerate(names)]
    qrels = {f"q{number}": {f"d{number}": 1} for number in numbers} | {f"n{number}": {"d0": 0} for number in numbers}
    run = (index.bm25() % 20)(ft.Topics(topics))
    train_calibration(run, qrels, folder / "calibration", CalibrationSettings(map="logistic", group=None))
    return folder


@pytest.fixture(scope="module")
def pipeline(folder: Path) -> str:
    return f'bm25() % 20 >> calibrated("{folder / "calibration"}") >> abstain(false_alarm=0.1)'


def test_a_search_says_that_nothing_answers_and_prints_the_nearest(folder: Path, pipeline: str, fontes: Fontes) -> None:
    code, out, _ = fontes("search", folder / "x.index", UNANSWERED, "--pipeline", pipeline)
    assert code == 0
    first, second, *hits = out.splitlines()
    assert first.startswith(SENTENCE)
    assert first.endswith(", refused up to 0.1).")
    assert second == "Nearest documents:"
    assert hits[0].split()[0] == "1"
    values = json.loads(fontes("search", folder / "x.index", UNANSWERED, "--pipeline", pipeline, "--json")[1])
    assert (values["hits"], values["no_hits"]["cause"]) == ([], "refused")
    assert len(values["no_hits"]["nearest"]) == 5
    assert "Nothing" not in fontes("search", folder / "x.index", ANSWERED, "--pipeline", pipeline)[1]


def test_a_topic_without_any_document_is_told_as_before(folder: Path, pipeline: str, fontes: Fontes) -> None:
    out = fontes("search", folder / "x.index", "xyzzy", "--pipeline", f"{pipeline} >> cut(recall=0.5)")[1]
    assert out.startswith(SENTENCE)
    assert "1  " not in out


@pytest.mark.parametrize("later", [" % 1", " >> mmr()", " >> cut(recall=0.5) % 1"])
def test_the_nearest_and_the_p_value_are_those_of_the_refusal_whatever_comes_later(
    folder: Path, pipeline: str, fontes: Fontes, later: str
) -> None:
    options = ("search", folder / "x.index", UNANSWERED, "--json", "--pipeline")
    expected, found = (json.loads(fontes(*options, pipeline + end)[1])["no_hits"] for end in ("", later))
    assert found == expected
    assert len(found["nearest"]) == 5


def test_parts_that_all_abstain_leave_nothing(folder: Path, pipeline: str, fontes: Fontes) -> None:
    code, out, err = fontes("search", folder / "x.index", UNANSWERED, "--pipeline", f"fuse({pipeline}, {pipeline})")
    assert (code, out.strip()) == (0, "No document was found."), err


def test_a_list_that_a_promise_ends_is_printed_whole(folder: Path, pipeline: str, fontes: Fontes) -> None:
    cut = f"{pipeline.partition(' >> abstain')[0]} >> cut(recall=0.01)"
    whole = json.loads(fontes("search", folder / "x.index", UNANSWERED, "--pipeline", cut.partition(" >> cut")[0], "--json")[1])
    assert len(whole["hits"]) == 10
    for options, hits in ((), 1), (("-k", "1"), 1):
        values = json.loads(fontes("search", folder / "x.index", ANSWERED, "--pipeline", cut, *options, "--json")[1])
        assert len(values["hits"]) == hits


def test_a_chat_says_it_too_without_a_rewriter_new_to_the_calibration(folder: Path, pipeline: str, fontes: Fontes) -> None:
    options = ("--pipeline", pipeline)
    out = fontes("chat", folder / "x.index", *options, stdin=f"{UNANSWERED}\n")[1]
    assert f"{SENTENCE}" in out
    assert "Nearest documents:\n  1  " in out
    values = json.loads(fontes("chat", folder / "x.index", *options, "--json", stdin=f"{UNANSWERED}\n")[1])
    assert (values["hits"], values["no_hits"]["cause"]) == ([], "refused")
    assert "answer" not in values


def test_ask_shows_the_nearest_and_asks_no_model(folder: Path, pipeline: str, fontes: Fontes) -> None:
    options = ("--llm", "no-such-model", "--pipeline", pipeline)
    code, out, _ = fontes("ask", folder / "x.index", UNANSWERED, *options)
    assert code == 0
    assert out.startswith(SENTENCE)
    assert "Nearest documents:\n  1  " in out
    values = json.loads(fontes("ask", folder / "x.index", UNANSWERED, *options, "--json")[1])
    assert (values["sentences"], values["no_hits"]["cause"]) == ([], "refused")


@pytest.fixture(scope="module")
def running(folder: Path, pipeline: str) -> Iterator[Running]:
    with serving(folder / "x.index", pipelines={"sure": pipeline}) as server:
        yield server


def test_the_server_gives_the_nearest_without_their_texts(running: Running) -> None:
    answer = running.get("/search", params={"q": UNANSWERED})
    assert answer["no_hits"]["sentence"].startswith(SENTENCE)
    nearest = answer["no_hits"]["nearest"]
    assert [hit["rank"] for hit in nearest] == [1, 2, 3, 4, 5]
    assert "snippet" in nearest[0]
    assert "text" not in nearest[0]
    turn = running.post("/conversations", {"text": UNANSWERED})
    assert turn["no_hits"]["nearest"] == nearest
    assert "no_hits" not in running.get("/search", params={"q": ANSWERED})


def test_agents_get_the_sentence_as_a_hint_and_the_nearest(folder: Path, pipeline: str) -> None:
    service = Service([folder / "x.index"], ServerSettings(seconds=300), {"sure": pipeline})
    tools = Tools(service)

    def called(name: str, **arguments: Any) -> Any:
        answer = asyncio.run(tools.call(name, arguments))
        assert not answer.is_error, answer.text
        return json.loads(answer.text)

    try:
        answer = called("search", query=UNANSWERED)
        assert answer["hint"].startswith(SENTENCE)
        assert "hits" not in answer
        assert answer["nearest"][0]["id"].startswith("d")
        few = called("search", query=UNANSWERED, k=5)
        assert (len(few["nearest"]), few.get("more")) == (5, None)
        evidence = called("evidence", claim=UNANSWERED)
        assert evidence["hint"].startswith(SENTENCE)
        assert evidence["sentences"]
        assert "nearest" not in called("search", query=ANSWERED)
    finally:
        service.close()


def test_the_cut_that_training_advises_can_be_promised(folder: Path, fontes: Fontes, tmp_path: Path) -> None:
    topics = ft.Topics(ft.Topic(f"q{n}", f"{WORDS[n]} {WORDS[n + 7]} {WORDS[n + 14]}") for n in range(16))
    ft.formats.write_topics(topics, tmp_path / "topics.jsonl")
    ft.formats.write_qrels(ft.Qrels((f"q{n}", "0", f"d{n}", 1) for n in range(16)), tmp_path / "x.qrels")
    options = ("--topics", tmp_path / "topics.jsonl", "--qrels", tmp_path / "x.qrels", "-o", tmp_path / "calibration")
    code, out, err = fontes("train", "calibration", folder / "x.index", *options)
    assert code == 0, err
    advice = next(line for line in out.splitlines() if line.startswith("use it as "))
    assert advice.endswith(">> cut(recall=0.888)")  # 8 held-out topics
    code, _, err = fontes("search", folder / "x.index", ANSWERED, "--pipeline", advice.removeprefix("use it as "))
    assert code == 0, err
