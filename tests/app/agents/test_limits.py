"""Limits of the tools and of their log, to the last token, minute and call."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.agents import connected

import fontes as ft
from fontes.app.agents.budget import MORE_TOKENS, Answer, cut, fit, shortened, tokens_of, tokens_of_values
from fontes.app.agents.calls import Tools
from fontes.app.agents.log import CallLog, read_log
from fontes.app.agents.near_duplicates import groups_of
from fontes.app.agents.protocol import SESSION
from fontes.app.agents.replay import replay
from fontes.app.agents.report import report_of
from fontes.app.agents.sessions import weak_qrels
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings


def search(session: str, query: str, *documents: str, **arguments: Any) -> tuple[str, str, dict[str, Any], list[str]]:
    return session, "search", {"query": query, **arguments}, list(documents)


def read(session: str, document: str) -> tuple[str, str, dict[str, Any], list[str]]:
    return session, "read", {"id": document}, [document]


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        (["10:00:00", "10:30:00"], [2]),
        (["10:00:00", "10:30:01"], [1, 1]),
        (["10:00:00", "10:20:00", "10:40:00", "11:00:00"], [4]),
        (["10:00:00", "10:20:00", "10:51:00", "11:00:00", "12:00:00"], [2, 2, 1]),
    ],
)
def test_a_pause_of_more_than_half_an_hour_begins_a_session(log: Any, times: list[str], sizes: list[int]) -> None:
    for time in times:
        place = log(search("s", "flood"), time=f"2026-01-01T{time}+00:00")
    assert [len(session.calls) for session in read_log(place)] == sizes


def test_the_last_token_of_a_budget_is_used() -> None:
    item = {"id": "abc", "title": "x" * 30}
    cost, empty = tokens_of(json.dumps(item, separators=(",", ":")) + ","), tokens_of_values({"n": 1, "hits": []})
    whole = empty + MORE_TOKENS + 3 * cost
    for tokens, count in ((whole, 3), (whole - 1, 2), (whole + cost - 1, 3), (whole + cost, 4)):
        answer = fit({"n": 1}, "hits", [item] * 5, tokens, lambda shown: f"offset={shown}")
        assert (answer["hits"], answer["more"]) == ([item] * count, f"offset={count}")


def test_a_text_that_fills_its_budget_is_whole() -> None:
    assert cut("ab cd ef", 2) == "ab cd ef"
    assert cut("ab cd efg", 2) == "ab cd "


def test_a_text_ends_after_a_sentence_that_fills_half_of_the_budget() -> None:
    assert cut("Seven a b. four five six seven", 5) == "Seven a b. "
    assert cut("Six a b. three four five six seven", 5) == "Six a b. three four "


def test_the_id_of_an_item_is_never_shortened() -> None:
    item = {"id": "i" * 300, "title": "t" * 20, "score": 2.5}
    assert shortened(item, 80) == {"id": "i" * 300, "score": 2.5}
    assert item["title"] == "t" * 20


def words(*numbers: int) -> str:
    return " ".join(f"w{number}" for number in numbers)


def test_texts_that_share_seven_tenths_of_their_words_in_a_row_are_duplicates() -> None:
    first = words(*range(19))  # 17 shingles
    near, far = (words(*range(shared + 2), *range(90, 90 + 17 - shared)) for shared in (14, 13))  # 14 of 20, 13 of 21
    assert groups_of([first, near]) == [0, 0]
    assert groups_of([first, far]) == [0, 1]
    chain = words(*range(8, 17), *range(90, 93), *range(70, 77))
    assert groups_of([first, near, chain]) == [0, 0, 2]


def test_a_text_is_compared_with_the_first_of_each_group_alone() -> None:
    texts = [words(*range(start, start + 42)) for start in (0, 6, 12)]  # 40 shingles; 34 of 46 shared with the next
    assert groups_of(texts[:2]) == groups_of(texts[1:]) == [0, 0]
    assert groups_of([texts[0], texts[2]]) == [0, 1]
    assert groups_of(texts) == [0, 0, 2]


def test_what_is_read_again_after_a_search_is_relevant_to_it(log: Any) -> None:
    again = read_log(log(read("f", "d2"), search("f", "flood", "d1", "d2"), read("f", "d2")))
    assert weak_qrels(again) == {"f.1": {"d2": 1}}


def test_what_is_read_before_a_search_alone_is_not_relevant_to_it(log: Any) -> None:
    assert not weak_qrels(read_log(log(read("f", "d2"), search("f", "flood", "d1", "d2"))))


def test_a_claim_checked_in_a_named_document_judges_no_document(log: Any) -> None:
    sessions = read_log(log(("f", "evidence", {"claim": "the flap jammed", "id": "d4"}, ["d4"]), read("f", "d4")))
    assert not weak_qrels(sessions, {"f": "It jammed [d4]."})


def test_a_failed_search_is_none_without_hits(log: Any) -> None:
    log(search("s", "flood", "d1"), search("s", "pumps"))
    sessions = read_log(log(search("s", "x", where="no"), error="there is no column", time="2026-01-01T10:05:00+00:00"))
    means = {mean.name: mean.mean for mean in report_of(sessions, {}, "read").means}
    assert (means["searches"], means["searches without hits, share"]) == (2, 0.5)
    assert means["failed calls, share"] == pytest.approx(1 / 3)


def test_a_cancelled_call_costs_no_tokens(tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    log.write("s", "c", "search", {"query": "x"}, None)
    log.close()
    ((call,),) = (session.calls for session in read_log(tmp_path))
    assert (call.error, call.tokens, call.documents) == ("cancelled", 0, ())


def test_a_call_that_its_client_leaves_is_logged_once_as_cancelled(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CallLog(tmp_path)

    async def leave(client: Client) -> None:
        begun = asyncio.Event()

        async def slow(name: str, arguments: Any, session: str | None) -> Answer:
            begun.set()
            await asyncio.sleep(60)
            return Answer("late")

        monkeypatch.setattr(tools, "call", slow)
        call = asyncio.create_task(client.call_tool("search", {"query": "cannery"}))
        await begun.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    connected(tools, leave, log, "mine")
    log.close()
    ((call,),) = (session.calls for session in read_log(tmp_path))
    assert (call.session, call.tool, call.arguments, call.error) == ("mine", "search", {"query": "cannery"}, "cancelled")


def test_the_name_of_a_session_is_short_and_not_blank(tools: Tools, tmp_path: Path) -> None:
    log = CallLog(tmp_path)

    async def calls(client: Client) -> None:
        for name in ("  ", " own ", "n" * 300):
            await client.call_tool("read", {"id": "nope"}, meta={SESSION: name})

    connected(tools, calls, log, "mine")
    log.close()
    assert [session.id for session in read_log(tmp_path)] == ["mine", "own", "n" * 100]


@pytest.fixture
def replayed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replays sessions of a log; gives the calls, and the replay."""
    calls: list[tuple[str, Any]] = []

    async def answered(self: Tools, name: str, arguments: Any) -> Answer:
        calls.append((name, arguments))
        return Answer('{"hits": []}', documents=("h150", "h133"))

    monkeypatch.setattr(Tools, "call", answered)

    def run(sessions: Any, qrels: Any, **options: Any) -> Any:
        pipelines = {"a": "bm25()", "b": "tfidf()"}
        return calls, replay(sessions, folder / "harbour.index", pipelines, ft.Qrels.of(qrels), ["RR"], **options)

    return run


def test_a_replay_asks_again_with_the_logged_filter_depth_syntax_and_budget(log: Any, replayed: Any) -> None:
    arguments = {"k": 3, "tokens": 500, "where": "section == 'news'", "syntax": "query", "offset": 4, "pipeline": "old"}
    sessions = read_log(log(search("s", "+fire", "h150", **arguments), search("s", "flood", "h092")))
    calls, outcome = replayed(sessions, {"s.1": {"h150": 1}, "s.2": {"h092": 0}})
    kept = {name: arguments[name] for name in ("k", "tokens", "where", "syntax")}
    assert calls == [("search", {"query": "+fire", "pipeline": name, **kept}) for name in ("a", "b")]
    assert (outcome.topics, outcome.judged) == (2, 1)  # a document of grade 0 makes no judged query
    assert outcome.tokens == {"a": 3.0, "b": 3.0}
    calls.clear()
    replayed(sessions, {"s.1": {"h150": 1}}, tokens=300, tools=("search", "evidence"))
    assert {name: made["tokens"] for name, made in calls} == {"search": 300, "evidence": 300}
    assert [sorted(made) for name, made in calls if name == "evidence"] == [["claim", "k", "pipeline", "tokens", "where"]] * 2


def test_evidence_is_of_the_best_k_documents(call: Any) -> None:
    claim = "the pumps and the tide failed in the flood"
    for k in (1, 2):
        sentences = call("evidence", claim=claim, k=k, tokens=50_000)["sentences"]
        assert len({one["id"] for one in sentences}) == k


def test_the_others_of_a_column_are_its_values_that_are_not_shown(tmp_path: Path) -> None:
    docs = [ft.Doc(f"d{n}", "storm", metadata={"kind": f"k{n % 15:02}"}) for n in range(30)]
    service = Service([ft.Index.build(docs, tmp_path / "s.index", threads=1).path], ServerSettings())
    (column,) = json.loads(asyncio.run(Tools(service).call("facets", {"columns": ["kind"]})).text)["columns"]
    assert (len(column["values"]), column["others"]) == (12, 3)
    service.close()


def test_a_card_states_the_limits_of_its_server(tools: Tools) -> None:
    settings = tools.service.settings
    assert settings.query != settings.k
    assert tools.card("harbour")["limits"] == {"query": settings.query, "k": settings.k}


def test_a_cause_lists_its_first_source_once(call: Any) -> None:
    causes = call("why", event="Flood at Marram Flats", weak=True, tokens=5_000)["causes"]
    assert causes
    assert all(cause["id"] not in cause.get("also", ()) for cause in causes)


def test_causes_of_causes_are_told_to_the_depth_that_is_asked_for(call: Any) -> None:
    event = "Flood at Marram Flats"
    whole = [call("why", event=event, weak=True, depth=depth, tokens=50_000)["causes"] for depth in (1, 2)]
    assert {cause["of"] for cause in whole[0]} == {event}
    assert {cause["of"] for cause in whole[1]} > {event}
    assert len(call("why", event=event, tokens=50_000).get("causes", [])) < len(whole[1])


def test_a_value_that_is_long_is_not_shown_with_a_hit(tmp_path: Path) -> None:
    metadata = {"kind": "k" * 80, "link": "l" * 81, "none": ""}
    index = ft.Index.build([ft.Doc("d", "storm", "t", metadata)], tmp_path / "s.index", threads=1)
    service = Service([index.path], ServerSettings())
    (hit,) = json.loads(asyncio.run(Tools(service).call("search", {"query": "storm"})).text)["hits"]
    assert hit["metadata"] == {"kind": "k" * 80}
    service.close()


def test_intervals_have_the_confidence_that_is_asked_for(log: Any) -> None:
    for n in range(12):
        place = log(*[search(f"s{n:02}", f"flood {i}", "d1") for i in range(1 + n % 5)])
    sessions, widths = read_log(place), []
    for confidence in (0.5, 0.95):
        report = report_of(sessions, {}, "read", confidence)
        assert f"{confidence:.0%} interval" in str(report)
        calls = next(mean for mean in report.means if mean.name == "calls")
        widths.append(calls.high - calls.low)
    assert 0 < widths[0] < widths[1]
