"""The arms of a gate: pipelines, commands, functions, engines that answer in JSON, and tools of MCP servers."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.each import each
from support.serving import in_thread

import fontes as ft
from fontes.core import InputError, Topic, Topics
from fontes.gate import CommandArm, FunctionArm, HttpArm, McpArm, PipelineArm

TOPICS = Topics([Topic("1", 'rain & "snow"'), Topic("2", "sun")])
NOTHING: dict[str, str] = {}


class Engine(BaseHTTPRequestHandler):
    """Answers with the values that a test sets; keeps what it was asked."""

    values: Any = NOTHING
    status = 200
    asked: list[tuple[str, str, dict[str, str], Any]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.command, self.path, dict(self.headers), body))
        content = self.values.encode() if isinstance(self.values, str) else json.dumps(self.values).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine() -> Iterator[str]:
    Engine.asked, Engine.status, Engine.values = [], 200, NOTHING
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


# The shapes of answers of engines, as their documentation shows them, and the keys that read each.
SHAPES = {
    "elasticsearch": (
        {
            "timed_out": False,
            "_shards": {"failed": 0},
            "hits": {"hits": [{"_id": "b", "_score": 2.1}, {"_id": "a", "_score": 1}]},
        },
        {"hits": "hits.hits", "id": "_id", "score": "_score", "expect": {"timed_out": False, "_shards.failed": 0}},
    ),
    "typesense": (
        {"hits": [{"document": {"id": "b"}, "text_match": 578730123365711993}, {"document": {"id": "a"}, "text_match": 1}]},
        {"id": "document.id"},
    ),
    "typesense, several searches": (
        {"results": [{"hits": [{"document": {"id": "b"}}, {"document": {"id": "a"}}]}]},
        {"hits": "results.0.hits", "id": "document.id"},
    ),
    "meilisearch": (
        {"hits": [{"id": "b", "_rankingScore": 0.9}, {"id": "a", "_rankingScore": 0.8}]},
        {"score": "_rankingScore"},
    ),
    "qdrant": (
        {
            "result": {
                "points": [
                    {"id": 7, "payload": {"doc": "b"}},
                    {"id": 8, "payload": {"doc": "b"}},
                    {"id": 9, "payload": {"doc": "a"}},
                ]
            }
        },
        {"hits": "result.points", "id": "payload.doc"},
    ),
    "solr": ({"response": {"docs": [{"id": "b"}, {"id": "a"}]}}, {"hits": "response.docs"}),
    "vespa": (
        {"root": {"children": [{"fields": {"doc": "b"}}, {"fields": {"doc": "a"}}]}},
        {"hits": "root.children", "id": "fields.doc"},
    ),
    "algolia": ({"hits": [{"objectID": "b"}, {"objectID": "a"}]}, {"id": "objectID"}),
    "a list of ids": (["b", "a"], {"hits": "", "id": ""}),
    "chroma": ({"ids": [["b", "a"]]}, {"hits": "ids.0", "id": ""}),
}


@pytest.mark.parametrize(("values", "keys"), SHAPES.values(), ids=SHAPES)
def test_answers_of_engines_are_read_in_their_order(engine, values, keys):
    Engine.values = values
    run = HttpArm(url=engine, **keys).run(TOPICS, 10)
    assert not run.provenance["failed"]
    assert [run[topic].ids for topic in TOPICS] == [["b", "a"], ["b", "a"]]


def test_a_request_is_filled_in_and_its_headers_come_from_the_environment(engine, monkeypatch):
    Engine.values = {"hits": []}
    monkeypatch.setenv("SEARCH_KEY", "secret")
    body = {"query": {"match": {"text": "{query}"}}, "size": "{k}", "tag": "{topic}-{k}", "fixed": [1, None]}
    HttpArm(url=f"{engine}/search", body=body, headers={"Authorization": "Bearer ${SEARCH_KEY}"}).run(TOPICS, 5)
    method, path, headers, sent = Engine.asked[0]
    assert (method, path, headers["Authorization"]) == ("POST", "/search", "Bearer secret")
    assert headers["Content-Type"] == "application/json"
    assert sent == {"query": {"match": {"text": 'rain & "snow"'}}, "size": 5, "tag": "1-5", "fixed": [1, None]}
    HttpArm(url=f"{engine}/search", body=json.dumps(body)).run(TOPICS, 5)
    assert Engine.asked[2][3] == sent
    HttpArm(url=f"{engine}/search?q={{query}}&n={{k}}").run(TOPICS, 5)
    method, path, *_ = Engine.asked[4]
    assert (method, parse_qs(urlsplit(path).query)) == ("GET", {"q": ['rain & "snow"'], "n": ["5"]})
    HttpArm(url=f"{engine}/of/{{query}}").run(Topics([Topic("1", "a/b?c#d é")]), 5)
    assert Engine.asked[6][1] == "/of/a%2Fb%3Fc%23d%20%C3%A9"


BAD_ANSWERS = {
    "no JSON": ("<html>", {}, "the answer is not JSON: <html>"),
    "no hits": ({"error": "x"}, {}, "nothing at 'hits': no 'hits'; it has error"),
    "no list": ({"hits": {}}, {}, "'hits' of the answer is no list: {}"),
    "no id": ({"hits": [{"name": "a"}]}, {}, "nothing at 'id': no 'id'; it has name"),
    "an id of null": ({"hits": [{"id": None}]}, {}, "'id' of the answer is no id: null"),
    "a part of the answer": (
        {"hits": [], "timed_out": True},
        {"expect": {"timed_out": False}},
        "'timed_out' of the answer is true, not false",
    ),
}


@pytest.mark.parametrize(("values", "keys", "problem"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_answer_that_cannot_be_read_is_a_failed_topic(engine, values, keys, problem):
    Engine.values = values
    failed = HttpArm(url=engine, **keys).run(TOPICS, 10).provenance["failed"]
    assert list(failed) == ["1", "2"]
    assert problem in failed["1"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_error_or_a_redirect_of_an_address_is_a_failed_topic(engine, status):
    Engine.status = status
    assert f" answered {status} " in HttpArm(url=engine).run(TOPICS, 10).provenance["failed"]["1"]
    assert [path for _, path, *_ in Engine.asked] == ["/", "/"]


def test_an_address_that_does_not_answer_is_left_after_a_few_topics():
    topics = Topics(Topic(str(number), "x") for number in range(50))
    failed = HttpArm(url="http://127.0.0.1:9").run(topics, 10).provenance["failed"]
    assert len(failed) == 5
    assert "http://127.0.0.1:9 cannot be reached" in failed["0"]


def test_generations_and_tokens_of_answers_are_kept(engine):
    Engine.values = {"hits": [{"id": "a", "s": 1}, {"id": "b", "s": 1}], "index": {"version": 7}, "usage": 11}
    provenance = HttpArm(url=engine, generation="index.version", tokens="usage", score="s").run(TOPICS, 10).provenance
    assert (provenance["generations"], provenance["tokens"], provenance["tied"]) == (["7"], 22, True)


def test_a_failed_topic_or_another_generation_is_no_answer_of_the_gate(gate, fontes, engine):
    Engine.values = {"hits": [{"id": "d1"}]}
    path = gate(candidate=f'url = "{engine}"\nid = "doc"')
    code, out, _ = fontes("gate", "run", path)
    assert (code, "the candidate failed on 5 topics, such as '0': the answer has nothing at 'doc'" in out) == (3, True)
    path = gate(candidate=f'url = "{engine}?topic={{topic}}"\ngeneration = "now"')
    values = {"hits": [{"id": "d1"}]}
    Engine.values = property(lambda engine: {**values, "now": engine.path[-1]})
    code, out, _ = fontes("gate", "run", path)
    assert (code, "the candidate answered from 10 generations of the index" in out) == (3, True)


SEARCH = """
import json, sys
for line in sys.stdin:
    topic = json.loads(line)
    print(topic["_id"], "Q0", f"d{topic['_id']}", 1, 2.5, "tag")
    print(topic["_id"], "Q0", "x", 2, 1.5, "tag")
"""


def command(tmp_path, program: str) -> CommandArm:
    (tmp_path / "search.py").write_text(program)
    return CommandArm(command=f"{shlex.quote(sys.executable)} search.py {{k}}").at(tmp_path)


def test_a_command_reads_topics_and_writes_a_run(tmp_path):
    run = command(tmp_path, SEARCH).run(TOPICS, 10)
    assert run["2"].ids == ["d2", "x"]
    assert command(tmp_path, SEARCH).run(TOPICS, 1)["2"].ids == ["d2"]
    assert not command(tmp_path, "").run(TOPICS, 10).rows


async def searched(query: str) -> list[str]:
    return ["b", "a", "b"]


@each(
    "function",
    [
        lambda query: ["b", "a", "b"],
        lambda query: [("a", 0.5), ("b", 0.75), ("b", 0.25)],
        lambda query: {"a": 0.5, "b": 0.75},
        lambda query: iter([("b", 2), ("a", 1)]),
        lambda query: [ft.Run.of({"1": {"a": 1.0, "b": 2.0}})["1"][0], ("a", 1.0)],
        searched,
    ],
)
def test_a_function_returns_ids_or_pairs(function):
    run = FunctionArm(function=function).run(TOPICS, 10)
    assert [run[topic].ids for topic in TOPICS] == [["b", "a"], ["b", "a"]]


@each("value", [None, "abc", [None], [("a",)], [("a", "b")], [{"id": "a"}], 7])
def test_a_function_that_returns_something_else_fails(value):
    failed = FunctionArm(function=lambda query: value).run(TOPICS, 10).provenance["failed"]
    assert list(failed) == ["1", "2"]


def test_a_pipeline_knows_its_index(tmp_path):
    ft.Index.build([("a", "rain and snow"), ("b", "rain rain")], tmp_path / "weather.index")
    arm = PipelineArm(index="weather.index", pipeline="bm25()").at(tmp_path)
    run = arm.run(TOPICS, 1)
    assert run["1"].ids == ["a"]
    facts = {name: run.provenance[name] for name in ("empty", "source", "description")}
    assert facts == {"empty": ["2"], "source": "weather.index", "description": "bm25() over weather.index"}
    assert len(run.provenance["generations"]) == 1
    assert run.provenance["bytes"] > 0
    with arm.asking(1) as ask:
        assert ask(TOPICS["1"]).ids == ("a",)


def test_an_index_that_changes_meanwhile_has_two_generations(tmp_path, monkeypatch):
    index = ft.Index.build([("a", "rain and snow"), ("b", "rain rain")], tmp_path / "weather.index")
    stage_of = PipelineArm._stage

    def changing(arm: PipelineArm, opened: Any) -> Any:
        index.add([("c", "sun")])
        return stage_of(arm, opened)

    monkeypatch.setattr(PipelineArm, "_stage", changing)
    run = PipelineArm(index="weather.index").at(tmp_path).run(TOPICS, 10)
    assert len(run.provenance["generations"]) == 2
    assert run.provenance["empty"] == ["2"]


def test_an_index_that_changed_since_it_was_accepted_is_told(gate, fontes, tmp_path):
    index = ft.Index.build([(f"d{i}", f"number{i}") for i in range(60)], tmp_path / "w.index")
    path = gate(candidate='index = "w.index"', head="allow_missing = 60")
    (tmp_path / "queries.tsv").write_text("".join(f"{topic}\tnumber{topic}\n" for topic in range(60)))
    (tmp_path / "baseline.run").unlink()
    fontes("gate", "run", path)
    assert fontes("gate", "accept", path)[0] == 0
    index.add([("new", "number1 number2")])
    code, out, _ = fontes("gate", "run", path)
    assert (code, "the candidate's index w.index is of another generation than the lock's" in out) == (3, True)
    path.write_text("any_generation = true\nallow_equal = true\n" + path.read_text())
    assert "another generation" not in fontes("gate", "run", path)[1]
    assert fontes("gate", "accept", path, "--because", "the new index")[0] == 0


MCP_SERVER = """
import json, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("search")

@server.tool()
def find(question: str, size: int) -> dict[str, list[dict[str, str]]]:
    if "sun" in question:
        raise ValueError("no sun here")
    return {"found": [{"doc": "b"}, {"doc": "a"}, {"doc": "c"}][:size]}

server.run("stdio")
"""
MCP_KEYS: dict[str, Any] = {"tool": "find", "arguments": {"question": "{query}", "size": "{k}"}, "hits": "found", "id": "doc"}


@pytest.mark.slow
def test_the_tool_of_an_mcp_server_that_a_command_starts_answers(tmp_path):
    pytest.importorskip("mcp")
    (tmp_path / "server.py").write_text(MCP_SERVER)
    run = McpArm(mcp=f"{shlex.quote(sys.executable)} server.py", **MCP_KEYS).at(tmp_path).run(TOPICS, 2)
    assert run["1"].ids == ["b", "a"]
    assert run.provenance["tokens"] > 0
    assert list(run.provenance["failed"]) == ["2"]
    assert "the tool 'find' refused: " in run.provenance["failed"]["2"]


def test_the_search_tool_of_fontes_answers_at_an_address(tmp_path):
    pytest.importorskip("mcp")
    from fontes.app.agents.calls import Tools
    from fontes.app.agents.protocol import PATH, Protocol, http_application
    from fontes.app.server.service import Service
    from fontes.app.server.settings import ServerSettings

    ft.Index.build([("a", "rain and snow"), ("b", "rain rain"), ("c", "sun")], tmp_path / "weather.index", threads=1)
    service = Service([tmp_path / "weather.index"], ServerSettings(port=0, key="a long key for the tests"))
    tools = Tools(service, wait=True)
    with in_thread(service, app=http_application(Protocol(tools), tools)) as (address, _):
        headers = {"Authorization": "Bearer a long key for the tests"}
        run = McpArm(mcp=f"{address}{PATH}", headers=headers).run(TOPICS, 10)
        assert not run.provenance["failed"]
        assert [run[topic].ids for topic in TOPICS] == [["a", "b"], ["c"]]
        assert run.provenance["tokens"] > 0
        failed = McpArm(mcp=f"{address}{PATH}", headers=headers, arguments={"question": "{query}"}).run(TOPICS, 10)
        assert "the tool 'search' refused: " in failed.provenance["failed"]["1"]
        with pytest.raises(InputError, match="cannot be reached"):
            McpArm(mcp=f"{address}{PATH}").run(TOPICS, 10)
