"""The log of calls, and what is learnt from it: sessions, topics, judgments, reports and replays."""

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.agents import connected

from fontes import Qrels, Topics
from fontes.app.agents.budget import Answer
from fontes.app.agents.log import CallLog, read_log
from fontes.app.agents.protocol import SESSION
from fontes.app.agents.report import _repeats, report_of
from fontes.app.agents.sessions import cited_ids, export, read_answers, shown_run, topics_of_log, weak_qrels
from fontes.core import FontesError, InputError
from fontes.core.errors import InputWarning
from fontes.formats import read_run

FLOOD = ("f", "search", {"query": "flood", "k": 3}, ["d1", "d2", "d3"])
READ = ("f", "read", {"id": "d2"}, ["d2"])
PUMPS = ("f", "search", {"query": "pumps  idle"}, ["d4", "d2"])
AGAIN = ("f", "search", {"query": "flood", "k": 3}, ["d1", "d2", "d3"])
EVIDENCE = ("f", "evidence", {"claim": "the flap jammed", "id": "d4"}, ["d4"])
NONE = ("g", "search", {"query": "zeppelin"}, [])


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    log = CallLog(tmp_path / "log")
    log.write("s", "client 1", "search", {"query": "ü"}, Answer('{"hits":[]}', documents=("a", "b"), index="i", seconds=0.25))
    log.write("s", "client 1", "read", {"id": "x"}, Answer("there is no document", True))
    log.write("t", "", "why", {}, None)
    log.close()
    assert log.path.stat().st_mode & 0o777 == 0o600
    one, two = read_log(tmp_path / "log")
    assert [call.error for call in (*one.calls, *two.calls)] == ["", "there is no document", "cancelled"]
    first = one.calls[0]
    assert (first.arguments, first.documents, first.index, first.tokens, first.ms) == (
        {"query": "ü"},
        ("a", "b"),
        "i",
        3,
        250.0,
    )
    assert read_log(log.path) == [one, two]


def test_a_log_without_calls_leaves_no_file(tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    log.close()
    assert not list(tmp_path.iterdir())


def test_an_unfinished_last_line_is_left_out_and_broken_ones_are_counted(log: Any, fontes: Any) -> None:
    place = log(FLOOD)
    file = place / "calls-1.jsonl"
    file.write_text(file.read_text() + '{"time": "2026')
    assert len(read_log(place)[0].calls) == 1
    file.write_text(file.read_text() + '"}\n')
    problem = r"calls-1.jsonl, line 2: not a logged call \(session: Field required\)"
    with pytest.warns(InputWarning, match=f"{problem}; a line that is left out"):
        assert len(read_log(place)[0].calls) == 1
    log(READ)
    file.write_text(file.read_text() + "\n")
    with pytest.warns(InputWarning, match=f"{problem}; one of 2 lines that are left out"):
        assert len(read_log(place)[0].calls) == 2
    code, out, err = fontes("agent", "report", place, "--json")
    assert (code, json.loads(out)["calls"]) == (0, {"search": 1, "read": 1})
    assert "one of 2 lines that are left out" in err


def test_a_call_that_does_not_fit_on_the_disk_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write, cut = CallLog(tmp_path), os.write, os.ftruncate
    log.write("s", "c", "read", {"id": "a"}, None)
    size = log.path.stat().st_size

    def full(file: int, line: Any) -> int:
        if log.path.stat().st_size >= size + 10:
            raise OSError(28, "No space left on device")
        return write(file, line[:10])

    def broken(file: int, length: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(OSError, match="No space left"):
            log.write("s", "c", "read", {"id": "b"}, None)
        assert log.path.stat().st_size == size
        patch.setattr("os.ftruncate", broken)
        with pytest.raises(OSError, match="No space left"):
            log.write("s", "c", "read", {"id": "c"}, None)
        assert log.path.stat().st_size == size + 10
        patch.setattr("os.write", write)
        with pytest.raises(OSError, match="Input/output"):
            log.write("s", "c", "read", {"id": "d"}, None)
    monkeypatch.setattr("os.ftruncate", cut)
    monkeypatch.setattr("os.write", lambda file, line: write(file, line[:7]))
    log.write("s", "c", "read", {"id": "e"}, None)
    log.close()
    assert [call.arguments["id"] for call in read_log(tmp_path)[0].calls] == ["a", "e"]


def test_a_pause_begins_a_new_session_and_names_become_ids(log: Any) -> None:
    place = log(("10.0.0.1 my client", "search", {"query": "a"}, []))
    log(("10.0.0.1 my client", "search", {"query": "b"}, []), name="calls-2.jsonl", time="2026-01-01T11:00:01+00:00")
    log(("10.0.0.1_my_client", "search", {"query": "c"}, []), name="calls-2.jsonl", time="2026-01-01T11:00:02+00:00")
    assert [session.id for session in read_log(place)] == ["10.0.0.1_my_client", "10.0.0.1_my_client_2", "10.0.0.1_my_client_"]


def test_each_distinct_query_is_a_topic_with_the_turns_before_it(log: Any) -> None:
    topics = [logged.topic for logged in topics_of_log(read_log(log(FLOOD, READ, PUMPS, AGAIN, EVIDENCE, NONE)))]
    assert [(topic.id, topic.text) for topic in topics] == [
        *(("f.1", "flood"), ("f.2", "pumps idle"), ("f.3", "the flap jammed"), ("g.1", "zeppelin"))
    ]
    assert [turn.text for turn in topics[2].turns] == ["flood", "pumps idle", "the flap jammed"]


def test_a_topic_has_the_first_reasoning_of_its_calls(log: Any, tmp_path: Path) -> None:
    refused = log(("f", "search", {"query": "flood", "reasoning": "much too long"}, []), error="the reasoning has")
    log(
        ("f", "search", {"query": "flood"}, ["d1"]),
        ("f", "search", {"query": "flood", "reasoning": "why the\n  tide rose", "seen": "drop"}, ["d2"]),
        ("f", "search", {"query": "flood", "reasoning": "again", "seen": "drop"}, []),
        ("f", "search", {"query": "pumps", "reasoning": 7}, ["d2"]),
    )
    sessions = read_log(refused)
    export(sessions, tmp_path / "out")
    topics = Topics.read(str(tmp_path / "out"))
    assert [topic.metadata for topic in topics.values()] == [{"reasoning": "why the tide rose"}, {}]
    means = {mean.name: mean.mean for mean in report_of(sessions, {"f": {"d2": 1, "d9": 1}}, "judged").means}
    assert means["searches with reasoning, share"] == 0.5
    assert means["hits shown before, share"] == pytest.approx(1 / 3)
    assert means["repeated calls, share"] == 1 / 5  # the query of the refused call again
    evidence = report_of(sessions, {"f": {"d2": 1, "d9": 1}}, "judged").evidence
    assert (evidence[-1].name, evidence[-1].mean) == ("documents per 1,000 tokens", 1000 / 500)


def test_reasoning_in_other_words_is_a_repeated_call_and_the_next_hits_are_none(log: Any) -> None:
    def call(**arguments: Any) -> tuple[str, str, dict[str, Any], list[str]]:
        return "s", "search", {"query": "flood", **arguments}, []

    calls = read_log(log(call(), call(reasoning="a"), call(reasoning="b"), call(seen="demote"), call(seen="demote")))[0].calls
    assert _repeats(calls) == 3
    again = read_log(log(call(seen="drop"), call(seen="drop"), name="calls-2.jsonl"))[0].calls
    assert _repeats(again) == 3


def test_what_was_read_after_it_was_shown_is_relevant_and_what_is_cited_more_so(log: Any) -> None:
    sessions = read_log(log(FLOOD, READ, PUMPS, EVIDENCE, NONE))
    assert weak_qrels(sessions) == {"f.1": {"d2": 1}, "f.2": {"d4": 1}}
    assert weak_qrels(sessions, {"f": "It was the pumps [d2], not (d1)."}) == {
        "f.1": {"d1": 2, "d2": 2},
        "f.2": {"d2": 2, "d4": 1},
    }


@pytest.mark.parametrize(
    ("answer", "cited"), [("see d1.", {"d1"}), ("[d1, d2]", {"d1", "d2"}), ("d11 ad1 d1-b d1.5", set()), ("", set())]
)
def test_an_id_is_cited_as_a_whole(log: Any, answer: str, cited: set[str]) -> None:
    assert cited_ids(read_log(log(FLOOD))[0], answer) == cited


def test_an_export_is_a_test_collection(log: Any, tmp_path: Path) -> None:
    sessions = read_log(log(FLOOD, READ, PUMPS, NONE))
    export(sessions, tmp_path / "out")
    assert list(Topics.read(str(tmp_path / "out"))) == ["f.1", "f.2", "g.1"]
    assert Qrels.of(str(tmp_path / "out")) == {"f.1": {"d2": 1}}
    run = read_run(tmp_path / "out" / "shown.run")
    assert {topic: ranking.ids for topic, ranking in run.items()} == {"f.1": ["d1", "d2", "d3"], "f.2": ["d4", "d2"]}
    assert shown_run(sessions)["g.1"].ids == []


def test_calls_of_two_indexes_are_two_collections(log: Any, tmp_path: Path, fontes: Any) -> None:
    log(FLOOD, NONE)
    place = log(READ, PUMPS, index="papers", name="calls-2.jsonl", time="2026-01-01T10:10:00+00:00")
    assert weak_qrels(read_log(place)) == {}  # the document that was read is another one of the same id
    code, out, err = fontes("agent", "export", place, tmp_path / "out")
    assert (code, out) == (1, "")
    assert err == (
        "fontes: the log has calls of 2 indexes, which are different collections; choose one: --logged-index harbour or "
        "--logged-index papers\n"
    )
    assert fontes("agent", "export", place, tmp_path / "out", "--logged-index", "papers")[0] == 0
    assert [topic.text for topic in Topics.read(str(tmp_path / "out")).values()] == ["pumps idle"]
    assert fontes("agent", "replay", place, "none.index")[2] == err
    assert json.loads(fontes("agent", "report", place, "--json")[1])["calls"] == {"search": 3, "read": 1}
    code, out, _ = fontes("agent", "report", place, "--logged-index", "harbour", "--json")
    assert json.loads(out)["calls"] == {"search": 2}
    assert (
        "the log has no call of the index 'x'; there are harbour, papers"
        in fontes("agent", "export", place, tmp_path / "out", "--logged-index", "x")[2]
    )


def test_answers_are_lines_of_sessions(log: Any, tmp_path: Path) -> None:
    sessions, file = read_log(log(FLOOD)), tmp_path / "answers.jsonl"
    file.write_text('{"session": "f", "text": "d1"}\n\n{"session": "f", "text": "d2"}\n')
    assert read_answers(file, sessions) == {"f": "\nd1\nd2"}


def test_a_report_counts_each_session_once(log: Any) -> None:
    sessions = read_log(log(FLOOD, READ, PUMPS, AGAIN, NONE))
    report = report_of(sessions, weak_qrels(sessions), "read")
    means = {mean.name: mean for mean in report.means}
    assert report.calls == {"search": 4, "read": 1}
    assert (means["calls"].mean, means["calls"].low, means["calls"].high) == (2.5, 1.0, 4.0)
    assert means["tokens of answers"].mean == 250
    assert means["repeated calls, share"].mean == 0.125
    same = [call for session in sessions for call in session.calls if call.tool == "search"]
    other = replace(same[0], arguments={"query": " FLOOD", "k": 3, "tokens": 500})
    assert _repeats([same[0], other, replace(same[0], arguments={"query": "flood", "k": 4})]) == 1
    assert means["searches without hits, share"].mean == 0.5
    assert [(mean.name, mean.mean, mean.sessions) for mean in report.evidence] == [
        *(("by call 1", 1.0, 1), ("by call 2", 1.0, 1), ("by call 3", 1.0, 1), ("documents per 1,000 tokens", 2.5, 1))
    ]
    assert "2 sessions, 5 calls: search 4, read 1" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["sessions"] == 2


def test_evidence_is_counted_by_the_call_that_first_showed_it(log: Any) -> None:
    sessions = read_log(log(READ, FLOOD, PUMPS))
    evidence = report_of(sessions, {"f": {"d2": 1, "d4": 2, "d9": 0}}, "judged").evidence
    assert evidence[-1].mean == pytest.approx(2 / 0.3)
    assert [mean.mean for mean in evidence[:-1]] == [0.0, 0.5, 1.0]  # a document that is read by its id was not shown by that


def test_a_long_session_is_read_in_linear_time(log: Any) -> None:
    pairs = [
        (("s", "search", {"query": f"word {n}"}, [f"d{n}"]), ("s", "read", {"id": f"d{n}"}, [f"d{n}"])) for n in range(3_000)
    ]
    sessions = read_log(log(*(call for pair in pairs for call in pair), time="2026-01-01T10:00:00+00:00"))
    start = time.process_time()
    qrels = weak_qrels(sessions)
    report = report_of(sessions, qrels, "read")
    assert len(shown_run(sessions)) == len(qrels) == 3_000
    assert report.evidence[0].mean == 1 / 3_000
    assert len(topics_of_log(sessions)[-1].topic.turns) == 50
    assert time.process_time() - start < 5  # quadratic: minutes


def test_a_log_without_searches_has_a_report(log: Any) -> None:
    sessions = read_log(log(READ, name="calls-1.jsonl", error="there is no document 'd2'"))
    text = str(report_of(sessions, {}, "read"))
    assert "no session has any" in text
    assert "1 failed: there is no document 'd2'" in text
    (line,) = (line for line in text.splitlines() if line.startswith("searches without hits, share"))
    assert line.split()[-2:] == ["–", "–"]
    with pytest.raises(InputError, match="no call of the log has a query"):
        export(sessions, Path("unused"))


HARBOUR = [
    ("a", "search", {"query": "why did the cannery burn down", "k": 5}, ["h133", "h150"]),
    ("a", "read", {"id": "h150"}, ["h150"]),
    ("b", "search", {"query": "flood at Marram Flats", "where": "section == 'news'"}, ["h092", "h114"]),
    ("b", "read", {"id": "h092"}, ["h092"]),
    ("b", "search", {"query": "nothing judged"}, []),
]


@pytest.mark.slow
def test_pipelines_and_tools_are_compared_on_a_replayed_log(log: Any, folder: Path, fontes: Any) -> None:
    place, index = log(*HARBOUR), folder / "harbour.index"
    code, out, err = fontes("agent", "replay", place, index, "--pipeline", "bm25()", "--pipeline", "b=tfidf()", "-m", "RR@10")
    assert code == 0, err
    assert "2 judged of 3 queries" in out
    code, out, err = fontes("agent", "replay", place, index, "--tool", "search", "--tool", "evidence", "-m", "R@10", "--json")
    assert code == 0, err
    values = json.loads(out)
    assert set(values["tokens"]) == set(values["evidence"]) == {"search", "evidence"}
    assert all(0 < rate["low"] <= rate["mean"] <= rate["high"] for rate in values["evidence"].values())
    assert (values["queries"], values["judged"]) == (3, 2)


def test_a_replay_reads_reasoning_and_shows_all_documents_again(log: Any, folder: Path) -> None:
    from fontes.app.agents.replay import replay

    reasoned = {"query": "what happened", "reasoning": "the cannery burned down", "k": 5}
    place = log(*HARBOUR[:2], ("a", "search", {**reasoned, "seen": "drop"}, ["h150"]), ("a", "read", {"id": "h150"}, ["h150"]))
    sessions = read_log(place)
    pipelines = {"plain": "bm25()", "reasoned": "with_reasoning() >> bm25()"}
    result = replay(sessions, folder / "harbour.index", pipelines, weak_qrels(sessions), ["R@5"])
    assert (result.topics, result.judged) == (2, 2)
    assert result.evidence["reasoned"].mean > result.evidence["plain"].mean > 0
    assert "relevant documents per 1,000 tokens: plain " in str(result)


def test_the_commands_report_and_export_a_log(log: Any, tmp_path: Path, fontes: Any) -> None:
    place, answers = log(*HARBOUR), tmp_path / "answers.jsonl"
    answers.write_text('{"session": "a", "text": "A forklift [h150]."}\n')
    assert "evidence (read) shown" in fontes("agent", "report", place)[1]
    assert "evidence (cited) shown" in fontes("agent", "report", place, "--answers", answers)[1]
    assert json.loads(fontes("agent", "report", place, "--json")[1])["judged"] == "read"
    assert fontes("agent", "export", place, tmp_path / "out", "--answers", answers)[1] == (
        f"3 topics of 2 sessions, 2 weak judgments in {tmp_path / 'out'}\n"
    )
    judged = tmp_path / "out" / "qrels" / "weak.tsv"
    assert "evidence (judged) shown" in fontes("agent", "report", place, "--qrels", judged)[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("report", "none"), "none: there is no log of calls; fontes mcp INDEX --log none writes one"),
        (
            ("report", "LOG", "--answers", "a", "--qrels", "b"),
            "--answers and --qrels both define the evidence; give one of them",
        ),
        (("replay", "LOG", "INDEX"), "name two pipelines or two tools to compare"),
        (("replay", "LOG", "INDEX", "--tool", "read"), "--tool read: only search and evidence have queries to replay"),
        (("replay", "LOG", "none.index", "--pipeline", "bm25()", "--pipeline", "tfidf()"), "none.index"),
        (
            ("replay", "EMPTY", "INDEX", "--pipeline", "bm25()", "--pipeline", "tfidf()"),
            "none of the log's queries has a relevant",
        ),
    ],
)
def test_a_wrong_command_is_one_sentence(
    log: Any, folder: Path, fontes: Any, arguments: tuple[str, ...], sentence: str
) -> None:
    place = log(*HARBOUR) if "EMPTY" not in arguments else log(NONE)
    own = {"LOG": place, "EMPTY": place, "INDEX": folder / "harbour.index"}
    code, out, err = fontes("agent", *(own.get(argument, argument) for argument in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("fontes: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_replay_stops_at_an_argument_that_the_index_refuses(log: Any, folder: Path) -> None:
    from fontes.app.agents.replay import replay

    place = log(("a", "search", {"query": "fire", "where": "year > 3"}, ["h150"]), ("a", "read", {"id": "h150"}, ["h150"]))
    sessions = read_log(place)
    with pytest.raises(FontesError, match=r"topic 'a.1' cannot be replayed: where, character 1: there is no column 'year'"):
        replay(sessions, folder / "harbour.index", {"a": "bm25()", "b": "tfidf()"}, weak_qrels(sessions), ["RR"])


def test_a_run_of_what_was_shown_joins_the_pools_of_judges(log: Any, folder: Path, tmp_path: Path) -> None:
    from fontes.app.judging.judging import pool_run
    from fontes.app.judging.store import JudgmentStore

    sessions = read_log(log(*HARBOUR))
    topics, _ = export(sessions, tmp_path / "out")
    run = read_run(tmp_path / "out" / "shown.run")
    with JudgmentStore(tmp_path / "j.sqlite") as store:
        store.add_topics(topics)
        pool_run(store, run, "shown.run", 1)
        assert store.pool("a.1") == ["h133"]
        pool_run(store, run, "shown.run", 20)
        assert store.pool("b.1") == ["h092", "h114"]
        other = type(run).of({"x": {"h1": 1.0}})
        with pytest.raises(InputError, match=r"shown.run: the run has none of the topics to judge"):
            pool_run(store, other, "shown.run", 20)


def test_every_call_of_a_connection_is_in_its_log(tools: Any, tmp_path: Path) -> None:
    log = CallLog(tmp_path)

    async def calls(client: Client) -> None:
        await client.call_tool("search", {"query": "cannery", "k": 2})
        await client.call_tool("read", {"id": "nope"})
        await client.call_tool("read", {"id": "h150"}, meta={SESSION: "named"})

    connected(tools, calls, log, "mine")
    log.close()
    mine, named = read_log(tmp_path)
    assert [(call.tool, len(call.documents), bool(call.error)) for call in mine.calls] == [
        ("search", 2, False),
        ("read", 0, True),
    ]
    assert (mine.id, named.id, named.calls[0].documents) == ("mine", "named", ("h150",))
    assert mine.calls[0].client.startswith("mcp ")
    assert mine.calls[0].fingerprint == tools.service.served(None).state.index.fingerprint
    assert mine.calls[0].expression == "bm25(k1=0.9, b=0.4)"


def test_a_call_whose_log_cannot_be_written_is_not_answered(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CallLog(tmp_path)

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    async def call(client: Client) -> Any:
        monkeypatch.setattr(log, "write", full)
        return await client.call_tool("read", {"id": "h150"})

    answer = connected(tools, call, log)
    assert (answer.is_error, answer.content[0].text) == (
        *(True,),
        "no answer, since its log cannot be written (No space left on device): tell the owner",
    )


def test_long_arguments_are_cut_in_the_log(tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    log.write("s", "c", "search", {"query": "a" * 100_000, "k": 3}, None)
    log.close()
    assert {name: len(str(value)) for name, value in read_log(tmp_path)[0].calls[0].arguments.items()} == {
        "query": 4_000,
        "k": 1,
    }


def test_a_refused_call_with_many_arguments_is_a_short_line_of_the_log(tools: Any, tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    for tool, arguments in (
        ("search", {f"argument {number}": "a" * 3_000 for number in range(2_000)}),
        ("search", {"query": "a", "index": "x" * 100_000}),
        ("x" * 100_000, {"x" * 100_000: 1}),
    ):
        answer = asyncio.run(tools.call(tool, arguments))
        assert answer.is_error
        log.write("s" * 100_000, "c" * 100_000, tool, arguments, answer)
    log.close()
    assert log.path.stat().st_size < 50_000
    assert [len(call.arguments) for call in read_log(tmp_path)[0].calls] == [10, 2, 1]
