"""The tools: what they answer, how much, and what they say of wrong calls."""

import asyncio
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.ciff import ciff
from support.each import each

import fontes as ft
from fontes.app.agents.budget import as_json, cut, fit, tokens_of, tokens_of_values
from fontes.app.agents.calls import Reply, Tools
from fontes.app.agents.near_duplicates import groups_of
from fontes.app.agents.tools import INSTRUCTIONS, TOOLS, described_tools
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings
from fontes.core.work import Progress, reporter

FERRIES = {"index": "ferries"}


def test_all_tools_are_listed_in_at_most_a_thousand_tokens() -> None:
    tools = described_tools()
    assert [tool["name"] for tool in tools] == list(TOOLS)
    assert all(tool["description"] for tool in tools)
    assert tokens_of_values(tools) + tokens_of(INSTRUCTIONS) <= 1_000


def test_a_token_is_four_bytes_of_utf8_rounded_up() -> None:
    assert [tokens_of(text) for text in ("", "a", "abcd", "abcde", "東京")] == [0, 1, 1, 2, 2]
    assert json.loads(as_json({"a": "half \ud800 of a character"})) == {"a": "half ? of a character"}


@each("tokens", [200, 231, 400, 1_000, 5_000])
@each(
    ("tool", "arguments"),
    [
        ("search", {"query": "storm flood bridge cannery fire", "k": 50}),
        ("search", {"query": "ferry report tide", "k": 50, **FERRIES}),
        ("read", {"id": "long", **FERRIES}),
        ("read", {"id": "ü 5", **FERRIES}),
        ("similar", {"id": "h150", "k": 20}),
        ("facets", {}),
        ("facets", {"query": "bridge"}),
        ("why", {"event": "Flood at Marram Flats", "weak": True}),
        ("explain", {"query": "the cannery fire of march and the main at night pressure", "id": "h150"}),
        ("evidence", {"claim": "the pumps and the tide failed", "k": 20}),
        ("evidence", {"claim": "the pumps and the tide failed", "id": "long", **FERRIES}),
    ],
)
def test_answers_keep_to_the_budget_that_the_caller_names(tools: Tools, tool: str, arguments: Any, tokens: int) -> None:
    answer = asyncio.run(tools.call(tool, {**arguments, "tokens": tokens}))
    assert not answer.is_error
    assert answer.tokens == tokens_of(answer.text) <= tokens
    assert json.loads(answer.text)


def test_a_search_is_that_of_the_index(call: Any, folder: Path) -> None:
    hits = call("search", query="why did the cannery burn down", k=10, tokens=5_000)["hits"]
    ranking = ft.Index.open(folder / "harbour.index").bm25().search("why did the cannery burn down", k=10)
    assert [hit["id"] for hit in hits] == ranking.ids
    assert [hit["rank"] for hit in hits] == list(range(1, 11))
    assert hits[0]["metadata"] == {"date": "2018-12-06", "section": "news"}
    assert hits[0]["why"] == "has why, cannery, burn; lacks did, down"
    assert "cannery" in hits[0]["snippet"].lower()


def test_a_filter_a_syntax_and_another_index_are_taken(call: Any) -> None:
    assert {hit["metadata"]["section"] for hit in call("search", query="bridge", where="section == 'court'")["hits"]} <= {
        "court"
    }
    assert call("search", query='"ferry Aldous" -crew', syntax="query", **FERRIES)["hint"].startswith("nothing matches")
    assert call("search", query="title:ferries", syntax="query", **FERRIES)["understood"]["query"]


@pytest.mark.parametrize("nothing", [None, "", "null", " NULL ", "None", "undefined"])
def test_null_is_no_value_as_models_write_it(call: Any, refused: Any, nothing: str | None) -> None:
    plain = call("search", query="flood", k=3)
    assert call("search", query="flood", k=3, where=nothing, pipeline=nothing, index=nothing, offset=None) == plain
    assert call("facets", where=nothing) == call("facets")
    assert call("search", query="flood", k=nothing, offset=nothing, syntax=nothing, tokens=nothing) == call(
        "search", query="flood"
    )
    assert call("facets", columns=nothing, query=nothing) == call("facets")
    assert call("read", id="h001", start=nothing) == call("read", id="h001")
    assert call("why", event="flood", depth=nothing, weak=nothing) == call("why", event="flood")
    assert call("evidence", claim="the pumps", where=nothing, id=nothing) == call("evidence", claim="the pumps")
    assert refused("search", query=None) == "search needs the argument 'query'"
    assert call("search", query="null", where="section == 'null'")["hits"] == []


def test_pages_follow_one_another_and_leave_nothing_out(call: Any) -> None:
    whole = [hit["id"] for hit in call("search", query="storm harbour", k=50, tokens=50_000)["hits"]]
    ids, offset = [], 0
    while True:
        page = call("search", query="storm harbour", k=4, offset=offset, tokens=300)
        ids += [hit["id"] for hit in page["hits"]]
        if "more" not in page or len(ids) >= len(whole):
            break
        offset = int(page["more"].removeprefix("offset="))
    assert ids[: len(whole)] == whole


def test_near_duplicates_are_joined_to_their_best_hit(call: Any) -> None:
    answer = call("search", query="ferry Aldous passengers crew", **FERRIES)
    hits = {hit["id"]: hit for hit in answer["hits"]}
    assert hits["a"]["also"] == ["b"]
    assert "b" not in hits
    assert "also" not in hits["c"]


def test_groups_of_texts_are_by_shared_words_in_a_row() -> None:
    text = "one two three four five six seven eight nine ten"
    assert groups_of([text, f"{text} eleven", "ten nine eight seven six five four three two one", text.upper(), "", ""]) == [
        *(0, 0, 2, 0, 4, 5)
    ]


def test_the_parts_of_a_document_are_its_text(call: Any, folder: Path) -> None:
    text = ft.Index.open(folder / "ferries.index").doc("long").text
    parts, start = [], 0
    while True:
        answer = call("read", id="long", start=start, tokens=700, **FERRIES)
        parts.append(answer["text"])
        assert answer["characters"] == [start, start + len(answer["text"]), len(text)]
        if "more" not in answer:
            break
        start = int(answer["more"].removeprefix("start="))
        assert answer["text"].endswith(". ")  # whole sentences
    assert "".join(parts) == text
    assert len(parts) > 5


def test_a_text_is_cut_after_sentences_or_words() -> None:
    assert cut("One is here. Two is there.", 5) == "One is here. "
    assert cut("One is a long sentence that goes on", 5) == "One is a long "
    assert cut("unbroken" * 9, 2) == "unbroken"
    assert cut("東京" * 9, 1) == "東"
    assert cut("short", 100) == "short"


def test_an_item_that_is_too_long_is_cut_and_never_left_out() -> None:
    item = {"id": "i" * 40, "title": "t" * 400, "metadata": {"a": "b" * 400}}
    answer = fit({"n": 1}, "hits", [item, item], 100, lambda shown: f"offset={shown}")
    assert tokens_of_values(answer) <= 100
    assert answer["hits"][0]["id"] == item["id"]
    assert answer["more"] == "offset=1"


def test_similar_documents_do_not_list_the_document_itself(call: Any) -> None:
    answer = call("similar", id="a", k=2, **FERRIES)
    assert [hit["id"] for hit in answer["hits"]] == ["b", "c"]
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2]


def test_facets_count_all_documents_or_those_that_match(call: Any) -> None:
    def counts(**arguments: Any) -> Any:
        return {one["column"]: one["values"] for one in call("facets", **arguments, **FERRIES)["columns"]}

    assert counts(columns=["kind", "year"]) == {"kind": {"news": 2, "wiki": 1}, "year": {"2019": 1, "2020": 1, "2021": 2}}
    assert counts(columns=["kind"], where="year == 2021") == {"kind": {"news": 1, "wiki": 1}}
    assert counts(columns=["kind", "year"], query="strait") == {"kind": {"wiki": 1}, "year": {"2021": 1}}


def test_dates_are_counted_in_ranges_of_time(call: Any) -> None:
    column = call("facets", columns=["date"])["columns"][0]
    assert sum(column["values"].values()) == 150
    assert all(" to " in value for value in column["values"])


def test_causes_have_sources_and_say_whether_they_are_stated(call: Any) -> None:
    causes = call("why", event="Flood at Marram Flats", weak=True)["causes"]
    assert {cause["id"] for cause in causes} >= {"h092", "h114"}
    assert all(cause["why"].startswith(("stated (", "a lead")) and cause["of"] for cause in causes)
    assert "weak=true" in call("why", event="zeppelin")["hint"]


def test_an_explanation_adds_up(call: Any, folder: Path) -> None:
    ranking = ft.Index.open(folder / "harbour.index").bm25().search("cannery fire", k=100)
    score = next(hit.score for hit in ranking if hit.id == "h150")
    assert float(call("explain", query="cannery fire", id="h150")["score"].split()[0]) == pytest.approx(score, rel=1e-5)


def test_evidence_is_sentences_of_the_documents(call: Any, folder: Path) -> None:
    index = ft.Index.open(folder / "harbour.index")
    claim = "the part that jammed open had been due for renewal"
    for arguments in ({}, {"id": "h114"}, {"where": "section == 'council'"}):
        sentences = call("evidence", claim=claim, **arguments)["sentences"]
        assert sentences
        assert all(one["text"] in " ".join(index.doc(one["id"]).text.split()) for one in sentences)
        assert [one["score"] for one in sentences] == sorted((one["score"] for one in sentences), reverse=True)
    assert "no sentence" in call("evidence", claim="zeppelin", id="h114")["hint"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("find", {}, "there is no tool 'find'; there are search, read, similar, facets, why, explain, evidence"),
        ("search", {}, "search needs the argument 'query'"),
        ("search", {"query": "a", "top": 3}, "search has no argument 'top'; did you mean 'k'?"),
        ("search", {"query": "a", "k": 51}, "search: k: input should be less than or equal to 50"),
        ("search", {"query": "a", "tokens": 10}, "search: tokens: input should be greater than or equal to 200"),
        ("search", {"query": 3}, "search: query: input should be a valid string"),
        ("search", {"query": " "}, "the query is empty"),
        ("search", {"query": "a" * 3_000}, "the query has 3,000 characters; this server takes 2,000 (--query)"),
        ("search", {"query": "a", "pipeline": "dense"}, "there is no pipeline 'dense'; there are bm25"),
        ("search", {"query": "a", "index": "papers"}, "there is no index 'papers'; there are harbour, ferries"),
        (
            "search",
            {"query": "a", "where": "yeer > 3"},
            "where, character 1: there is no column 'yeer'; there are date, section",
        ),
        (
            "search",
            {"query": "a", "offset": 1_000},
            "offset is 1,000; this server gives the first 1,000 hits: search with other",
        ),
        ("read", {"id": "h999"}, "there is no document 'h999' in harbour now; take ids from a new search"),
        ("read", {"id": "h150", "start": 632}, "start is 632, and document 'h150' has 632 characters"),
        ("similar", {"id": "../x"}, "there is no document '../x' in harbour now; take ids from a new search"),
        ("facets", {"columns": ["colour"]}, "there is no column 'colour'; there are date, section"),
        ("why", {"event": "a", "depth": 9}, "why: depth: input should be less than or equal to 5"),
        ("explain", {"query": "fire", "id": "nope"}, "there is no document 'nope' in harbour now; take ids from a new search"),
        ("evidence", {"claim": "fire", "id": "nope"}, "there is no document 'nope' in harbour now; take ids from a new search"),
    ],
)
def test_a_wrong_call_is_told_what_to_do(refused: Any, tool: str, arguments: Any, sentence: str) -> None:
    assert refused(tool, **arguments).startswith(sentence)


def test_no_error_shows_a_path(refused: Any, folder: Path) -> None:
    assert str(folder) not in refused("search", query="fire", where="nothing")


def test_a_defect_is_logged_and_the_model_hears_of_no_traceback(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    async def broken(arguments: Any) -> Reply:
        raise KeyError("/secret/path")

    monkeypatch.setitem(tools._calls, "read", broken)
    answer = asyncio.run(tools.call("read", {"id": "h150"}))
    assert (answer.is_error, "secret" in answer.text) == (True, False)
    assert "KeyError" in caplog.text


def test_a_call_that_takes_too_long_is_told_so_and_its_thread_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def slow(stage: Any, event: str, *arguments: Any, **more: Any) -> Any:
        try:
            while True:
                time.sleep(0.01)
                reporter()(Progress("reading", 1, None, 0.0))
        finally:
            ended.set()

    monkeypatch.setattr("fontes.app.agents.calls.causes", slow)
    service = Service([folder / "harbour.index"], ServerSettings(seconds=0.1))
    answer = asyncio.run(Tools(service).call("why", {"event": "flood"}))
    assert answer.text == "no answer within 0.1 seconds; ask for less (a smaller k or depth), or again"
    assert ended.wait(10)
    service.close()


def test_a_server_that_is_still_loading_says_so(folder: Path) -> None:
    service = Service([folder / "harbour.index"], ServerSettings(seconds=0.05))
    answer = asyncio.run(Tools(service, wait=True).call("read", {"id": "h150"}))
    assert (answer.is_error, "still loading" in answer.text) == (True, True)
    service.close()


def test_an_index_that_changes_between_calls_answers_from_its_new_state(tmp_path: Path) -> None:
    index = ft.Index.build([("a", "a storm at sea"), ("b", "a storm on land")], tmp_path / "s.index", threads=1)
    service = Service([tmp_path / "s.index"], ServerSettings())
    tools = Tools(service)
    before = json.loads(asyncio.run(tools.call("search", {"query": "storm"})).text)
    index.delete(["a"])
    service.served(None).refresh(now=True)
    after = json.loads(asyncio.run(tools.call("search", {"query": "storm"})).text)
    assert [hit["id"] for hit in before["hits"]] == ["b", "a"]
    assert [hit["id"] for hit in after["hits"]] == ["b"]
    assert (before["state"], after["state"]) == (0, 1)
    assert asyncio.run(tools.call("read", {"id": "a"})).text.startswith("there is no document 'a' in s now")
    service.close()


def test_a_server_of_few_hits_takes_calls_without_k(folder: Path) -> None:
    service = Service([folder / "harbour.index"], ServerSettings(k=3))
    tools = Tools(service)
    for name, arguments in (("search", {"query": "cannery"}), ("similar", {"id": "h150"})):
        assert 2 <= len(json.loads(asyncio.run(tools.call(name, arguments)).text)["hits"]) <= 3
    for name, arguments in (("why", {"event": "Flood at Marram Flats"}), ("evidence", {"claim": "cannery"})):
        assert not asyncio.run(tools.call(name, arguments)).is_error
    service.close()


@pytest.mark.slow
def test_an_index_without_texts_ranks_and_says_what_it_cannot_do(tmp_path: Path) -> None:
    (tmp_path / "x.ciff").write_bytes(ciff([Counter(storm=2, sea=1), Counter(sea=1)], names=["one", "two"]))
    ft.Index.build(tmp_path / "x.ciff", tmp_path / "s.index")
    service = Service([tmp_path / "s.index"], ServerSettings())
    tools = Tools(service)
    answer = asyncio.run(tools.call("search", {"query": "storm"}))
    assert json.loads(answer.text)["hits"][0]["why"].startswith("score ")
    for name, arguments in {"read": {"id": "one"}, "similar": {"id": "one"}, "evidence": {"claim": "storm"}}.items():
        answer = asyncio.run(tools.call(name, arguments))
        assert answer.is_error
        assert "text" in answer.text, answer.text
        assert "failed" not in answer.text
    assert tools.card("s")["examples"] == []
    service.close()


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tools over documents whose titles, texts, values and columns are long or odd."""
    columns = {f"column {number}": f"value {number} " * 9 for number in range(60)}
    docs = [
        ft.Doc("i" * 300, 'storm \x01\x02\x03"\\' * 400, 'title "' * 300, columns),
        ft.Doc("b", "storm " + "東京" * 900, "t", {"tags": [f"tag {number} of many" for number in range(40)]}),
        ft.Doc("c", "storm" + "x" * 9_000 + " sea", "", {"link": "https://example.org/" + "p" * 3_000}),
    ]
    service = Service([ft.Index.build(docs, tmp_path_factory.mktemp("odd") / "odd.index", threads=1).path], ServerSettings())
    yield Tools(service)
    service.close()


@each("tokens", [200, 600])
@each(
    ("tool", "arguments"),
    [
        ("search", {"query": "storm"}),
        ("search", {"query": "storm " * 300, "syntax": "query"}),
        ("search", {"query": "zeppelin " * 200}),
        *(("read", {"id": doc_id}) for doc_id in ("i" * 300, "b", "c")),
        ("read", {"id": "none" * 400}),
        ("similar", {"id": "b"}),
        ("facets", {}),
        ("facets", {"columns": ["link", "tags"]}),
        ("facets", {"columns": ["no such column " * 100]}),
        ("why", {"event": "storm " * 300}),
        ("explain", {"query": "storm sea " * 100, "id": "i" * 300}),
        ("evidence", {"claim": "storm sea " * 100}),
        ("search", {"x" * 3_000: 1}),
        ("z" * 3_000, {}),
    ],
)
def test_answers_about_odd_documents_keep_to_the_budget(odd: Tools, tool: str, arguments: Any, tokens: int) -> None:
    answer = asyncio.run(odd.call(tool, {**arguments, "tokens": tokens}))
    assert answer.tokens <= tokens, answer.text
    assert answer.text
    assert odd.service.names  # paths that answers must not show
    assert not any(path in answer.text for path in odd.service.names)


def test_the_card_of_an_odd_index_is_short(odd: Tools) -> None:
    assert tokens_of_values(odd.card("odd")) < 5_000
