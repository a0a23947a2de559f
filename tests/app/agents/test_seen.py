"""Reasoning of searches, and documents that a session has shown: left out, or last and short."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.agents import connected

import fontes as ft
from fontes.app.agents.budget import tokens_of
from fontes.app.agents.calls import ALL_SHOWN, Tools
from fontes.app.agents.log import MAX_DOCUMENTS, MAX_SESSIONS, CallLog, ShownDocuments, read_log
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings

QUERY = "cannery fire at night"


@pytest.fixture
def fresh(folder: Path) -> Iterator[Tools]:
    """Tools that have shown nothing, with a pipeline that reads reasoning."""
    service = Service(
        [folder / "harbour.index", folder / "ferries.index"],
        ServerSettings(seconds=300),
        {"bm25": "bm25()", "reasoned": "with_reasoning('{query} {reasoning}') >> bm25()"},
    )
    yield Tools(service)
    service.close()


async def search(client: Client, query: str = QUERY, session: str = "", **arguments: Any) -> Any:
    meta: Any = {"fontes/session": session} if session else None
    answer = await client.call_tool("search", {"query": query, **arguments}, meta=meta)
    text = answer.content[0].text
    return text if answer.is_error else json.loads(text)


def ids(answer: Any) -> list[str]:
    return [doc_id for hit in answer["hits"] for doc_id in (hit["id"], *hit.get("also", ()))]


def ranking(folder: Path, k: int = 100, query: str = QUERY) -> list[str]:
    return ft.Index.open(folder / "harbour.index").bm25().search(query, k=k).ids


def test_what_a_session_has_shown_is_left_out_and_the_list_filled_to_k(fresh: Tools, folder: Path) -> None:
    async def use(client: Client) -> Any:
        answers = [await search(client, k=4)]
        return answers + [await search(client, k=4, seen="drop") for _ in range(3)]

    first, *others = connected(fresh, use)
    ranked = ranking(folder)
    assert ids(first) == ranked[:4]
    assert [ids(answer) for answer in others] == [ranked[4:8], ranked[8:12], ranked[12:16]]
    assert [hit["rank"] for hit in others[0]["hits"]] == [5, 6, 7, 8]
    assert [answer.get("left_out") for answer in (first, *others)] == [None, 4, 8, 12]
    assert {answer["more"] for answer in others} == {"the same call again"}


def test_what_does_not_fit_the_budget_is_not_shown_and_comes_next(fresh: Tools, folder: Path) -> None:
    async def use(client: Client) -> list[str]:
        shown: list[str] = []
        while len(shown) < 12:
            answer = await search(client, k=10, tokens=300, seen="drop")
            assert 0 < len(answer["hits"]) < 10
            shown += ids(answer)
        return shown

    shown = connected(fresh, use)
    assert shown == ranking(folder)[: len(shown)]


def test_after_all_that_match_nothing_is_left(fresh: Tools, folder: Path) -> None:
    matching = ranking(folder, 1000, "cannery")

    async def use(client: Client) -> Any:
        shown: list[str] = []
        while (answer := await search(client, "cannery", k=7, tokens=50_000, seen="drop"))["hits"]:
            shown += ids(answer)
        return shown, answer

    shown, answer = connected(fresh, use)
    assert shown == matching
    assert (answer["hint"], answer["left_out"]) == (ALL_SHOWN.format(len(matching)), len(matching))
    assert "more" not in answer


def test_a_filter_holds_for_what_fills_the_list(fresh: Tools) -> None:
    async def use(client: Client) -> Any:
        where = "section == 'news'"
        return [await search(client, k=3, where=where, seen="drop") for _ in range(2)]

    first, second = connected(fresh, use)
    assert {hit["metadata"]["section"] for answer in (first, second) for hit in answer["hits"]} == {"news"}
    assert len(ids(second)) == 3
    assert not set(ids(first)) & set(ids(second))


def test_demoted_documents_come_last_without_snippets_and_the_page_stays(fresh: Tools, folder: Path) -> None:
    ranked = ranking(folder)

    async def use(client: Client) -> Any:
        await client.call_tool("read", {"id": ranked[1]})
        return await search(client, k=3), await search(client, k=5, seen="demote"), await search(client, k=5, seen="demote")

    plain, demoted, again = connected(fresh, use)
    assert ids(plain) == ranked[:3]  # keep is the default
    assert ids(demoted) == [*ranked[3:5], *ranked[:3]]
    assert [hit["rank"] for hit in demoted["hits"]] == [4, 5, 1, 2, 3]
    assert [hit.get("seen", False) for hit in demoted["hits"]] == [False, False, True, True, True]
    assert all("snippet" not in hit for hit in demoted["hits"][2:])
    assert tokens_of(json.dumps(again)) < tokens_of(json.dumps(demoted)) / 2
    assert demoted["more"] == again["more"] == "offset=5"


def test_answers_of_all_tools_count_and_those_of_other_sessions_and_indexes_do_not(fresh: Tools, folder: Path) -> None:
    ranked = ranking(folder)

    async def use(client: Client) -> Any:
        meta: Any = {"fontes/session": "a"}
        await client.call_tool("read", {"id": ranked[0]}, meta=meta)
        await client.call_tool("explain", {"query": QUERY, "id": ranked[1]}, meta=meta)
        await client.call_tool("read", {"id": "none"}, meta=meta)
        await client.call_tool("read", {"id": "long", "index": "ferries"}, meta=meta)
        return [ids(await search(client, session=session, k=2, seen="drop")) for session in ("a", "b", "")]

    assert connected(fresh, use) == [ranked[2:4], ranked[:2], ranked[:2]]


def test_sessions_at_once_have_their_own_documents(fresh: Tools, folder: Path) -> None:
    async def use(client: Client) -> Any:
        async def one(session: str) -> list[str]:
            return [doc_id for _ in range(3) for doc_id in ids(await search(client, session=session, k=3, seen="drop"))]

        return await asyncio.gather(*(one(f"s{number}") for number in range(8)))

    assert connected(fresh, use) == [ranking(folder)[:9]] * 8


def test_a_restart_forgets(folder: Path) -> None:
    async def use(client: Client) -> Any:
        return ids(await search(client, session="a", k=3, seen="drop"))

    for _ in range(2):
        service = Service([folder / "harbour.index"], ServerSettings(seconds=300))
        assert connected(Tools(service), use) == ranking(folder)[:3]
        service.close()


@pytest.mark.parametrize("seen", ["drop", "demote"])
def test_without_a_session_of_its_own_a_caller_is_refused(fresh: Tools, seen: str) -> None:
    answer = asyncio.run(fresh.call("search", {"query": QUERY, "seen": seen}))
    assert answer.is_error
    assert answer.text.startswith(f"seen='{seen}' needs a session, and this connection has none: leave seen out;")
    assert not asyncio.run(fresh.call("search", {"query": QUERY, "seen": "keep"})).is_error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seen": "drop", "offset": 3}, "seen='drop' goes without offset: the same call again gives the next hits"),
        ({"seen": "hide"}, "search: seen: input should be 'keep', 'demote' or 'drop'"),
        ({"reasoning": ["a"]}, "search: reasoning: input should be a valid string"),
        ({"reasoning": 3}, "search: reasoning: input should be a valid string"),
        ({"reasoning": "a" * 2_001}, "the reasoning has 2,001 characters; this server takes 2,000 (--query)"),
        ({"reasoning": "a \ud800"}, "the reasoning has half of a character"),
        ({"reason": "a"}, "search has no argument 'reason'; did you mean 'reasoning'?"),
    ],
)
def test_a_wrong_call_is_one_sentence(fresh: Tools, arguments: dict[str, Any], sentence: str) -> None:
    answer = asyncio.run(fresh.call("search", {"query": QUERY, **arguments}, "s"))
    assert answer.is_error
    assert answer.text.startswith(sentence)


def test_reasoning_is_read_by_a_pipeline_that_asks_for_it(fresh: Tools) -> None:
    async def use(client: Client) -> Any:
        reasoned = {"reasoning": "ferries\nand the strait", "index": "ferries"}
        return [
            ids(await search(client, "passengers", **arguments))
            for arguments in (
                {"index": "ferries"},
                {"pipeline": "reasoned", "index": "ferries"},
                reasoned,
                {"pipeline": "reasoned", **reasoned},
                {"pipeline": "reasoned", "index": "ferries", "reasoning": " \n"},
            )
        ]

    plain, without, unread, read, blank = connected(fresh, use)
    assert plain == without == unread == blank
    assert set(plain) < set(read)  # "ferries" is found too
    explained = [
        asyncio.run(
            fresh.call("explain", {"query": "passengers", "id": "c", "index": "ferries", "pipeline": "reasoned", **more})
        )
        for more in ({}, {"reasoning": "the strait"})
    ]
    assert ["strait" in answer.text for answer in explained] == [False, True]


def test_the_log_keeps_reasoning_and_seen(fresh: Tools, tmp_path: Path) -> None:
    log = CallLog(tmp_path)

    async def use(client: Client) -> Any:
        await search(client, reasoning="why\ndid it burn?", seen="drop", k=2)

    connected(fresh, use, log)
    log.close()
    (call,) = read_log(tmp_path)[0].calls
    assert call.arguments == {"query": QUERY, "reasoning": "why\ndid it burn?", "seen": "drop", "k": 2}
    assert len(call.documents) == 2


def test_an_answer_that_cannot_be_logged_is_not_shown(fresh: Tools, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CallLog(folder / "full")

    async def use(client: Client) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(log, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            assert "its log cannot be written" in await search(client, k=2)
        return ids(await search(client, k=2, seen="drop"))

    assert connected(fresh, use, log) == ranking(folder)[:2]
    log.close()


def test_shown_documents_are_forgotten_after_a_pause_and_beyond_the_limits() -> None:
    now = [10_000.0]
    shown = ShownDocuments(lambda: now[0])
    shown.add("a", "i", ["1"])
    now[0] += 1_800
    assert shown.of("a", "i") == {"1"}
    shown.add("a", "i", ["2"])
    now[0] += 1_800
    assert shown.of("a", "i") == {"1", "2"}
    assert shown.of("a", "j") == shown.of("b", "i") == set()
    now[0] += 1
    assert shown.of("a", "i") == set()
    shown.add("a", "i", ["3"])
    assert shown.of("a", "i") == {"3"}
    shown.add("a", "i", [str(number) for number in range(4, MAX_DOCUMENTS + 4)])
    assert len(shown.of("a", "i")) == MAX_DOCUMENTS
    assert "3" not in shown.of("a", "i")
    for number in range(MAX_SESSIONS):
        shown.add(f"s{number}", "i", ["1"])
    assert shown.of("a", "i") == set()
    assert shown.of("s0", "i") == {"1"}
