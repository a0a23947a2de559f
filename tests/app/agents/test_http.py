"""The tools over HTTP: keys, hosts and limits of the server; and real processes with the SDK's own client."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from support.serving import in_thread, process

import fontes as ft
from fontes.app.agents.calls import Tools
from fontes.app.agents.log import CallLog, read_log
from fontes.app.agents.protocol import PATH, Protocol, http_application
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings

KEY = "a key of the tests"
MODES = ("auto", "legacy")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@contextlib.asynccontextmanager
async def client(address: str, key: str = "", mode: str = "auto", seconds: float = 60) -> AsyncIterator[Client]:
    """A connected client of an address."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=seconds) as http,
        Client(streamable_http_client(f"{address}{PATH}", http_client=http), mode=mode) as connected,
    ):
        yield connected


async def searched(connected: Client, query: str, **arguments: Any) -> list[str]:
    while (answer := await connected.call_tool("search", {"query": query, **arguments})).is_error:
        if "still loading" not in answer.content[0].text:
            break
    assert not answer.is_error, answer.content[0].text
    return [hit["id"] for hit in json.loads(answer.content[0].text)["hits"]]


@pytest.fixture(scope="module")
def served(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server with a key in a thread, and its log."""
    service = Service([folder / "harbour.index"], ServerSettings(port=0, key=KEY, body=20_000))
    tools, log = Tools(service, wait=True), CallLog(tmp_path_factory.mktemp("log"))
    with in_thread(service, app=http_application(Protocol(tools, log), tools)) as (address, _):
        yield address, log.path
    log.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_client_with_the_key_searches_over_http(served: tuple[str, Path], mode: str) -> None:
    address, log = served

    async def use() -> list[str]:
        async with client(address, KEY, mode) as connected:
            return await searched(connected, "why did the cannery burn down", k=1)

    assert asyncio.run(use()) == ["h150"]
    assert read_log(log)[-1].calls[-1].documents == ("h150",)


def post(address: str, path: str = PATH, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{address}{path}", json=LIST, headers={**HEADERS, "Authorization": f"Bearer {KEY}", **headers})


def test_the_guard_of_the_server_stands_before_the_tools(served: tuple[str, Path]) -> None:
    address, _ = served
    assert post(address, Authorization="Bearer wrong").status_code == 401
    assert post(address, Authorization="").json()["detail"] == "this needs the server's key: Authorization: Bearer KEY"
    assert post(address, Host="evil.example.org").status_code == 421
    assert post(address, Origin="https://evil.example.org").status_code == 403
    large = httpx2.post(f"{address}{PATH}", content=b" " * 30_000, headers={**HEADERS, "Authorization": f"Bearer {KEY}"})
    assert large.status_code == 413


@pytest.mark.parametrize("value", ['"\\ud83d"', "9" * 5_000, "[" * 5_000 + "]" * 5_000])
def test_a_message_that_the_protocol_cannot_read_is_answered(served: tuple[str, Path], value: str) -> None:
    body = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"id": VALUE}}}'
    headers = {**HEADERS, "Authorization": f"Bearer {KEY}"}
    answer = httpx2.post(f"{served[0]}{PATH}", content=body.replace("VALUE", value).encode(), headers=headers, timeout=10)
    assert answer.status_code in (200, 400), answer.text


def test_there_is_nothing_but_the_tools_and_the_health(served: tuple[str, Path]) -> None:
    address, _ = served
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {KEY}"}) as http:
        assert http.get("/ready").status_code == 200
        assert http.get("/metrics").status_code == 200
        assert http.get(PATH).status_code == 405  # no stream without a request
        for path in ("/", "/search?q=a", "/documents/h150", "/indexes", "/docs", "/openapi.json", "/page/page.js", "/mcp/x"):
            assert http.get(path).status_code == 404, path
        for path in ("/documents", "/rewrite", "/conversations"):
            assert http.post(path, json={}).status_code == 404, path


@pytest.mark.parametrize(("mode", "sessions"), [("auto", 1), ("legacy", 2)])
def test_a_connection_with_an_id_is_a_session_of_the_log(served: tuple[str, Path], mode: str, sessions: int) -> None:
    address, log = served

    async def use(query: str) -> None:
        async with client(address, KEY, mode) as connected:
            await searched(connected, query, k=1)

    queries = {f"cannery {mode} {number}" for number in range(2)}
    for query in queries:
        asyncio.run(use(query))
    asked = {session.id: {call.arguments.get("query") for call in session.calls} & queries for session in read_log(log)}
    assert len([session for session, own in asked.items() if own]) == sessions
    assert set.union(*asked.values()) == queries


@pytest.mark.parametrize("mode", MODES)
def test_what_was_shown_belongs_to_the_connection_or_the_named_session(served: tuple[str, Path], mode: str) -> None:
    async def use(session: str = "") -> Any:
        async with client(served[0], KEY, mode) as connected:
            found = []
            for _ in range(2):
                answer = await connected.call_tool(
                    "search",
                    {"query": "cannery", "k": 2, "seen": "drop"},
                    meta={"fontes/session": session} if session else None,
                )
                text = answer.content[0].text
                found.append(text if answer.is_error else [hit["id"] for hit in json.loads(text)["hits"]])
            return found

    first, second = asyncio.run(use(f"named {mode}"))
    assert len(first) == len(second) == 2
    assert not set(first) & set(second)
    assert asyncio.run(use(f"named {mode}"))[0] != first  # another connection, the same session
    if mode == "legacy":  # the connection has an id
        assert asyncio.run(use()) == asyncio.run(use()) == [first, second]
    else:
        assert asyncio.run(use())[0].startswith("seen='drop' needs a session, and this connection has none")


# With real processes.


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_twenty_clients_at_once_get_their_own_answers(folder: Path, tmp_path: Path, mode: str) -> None:
    index = ft.Index.open(folder / "harbour.index")
    words = [term for term in index.terms if term.isalpha() and len(term) > 4][:200:10]
    expected = {word: index.bm25().search(word, k=5).ids for word in words}
    (tmp_path / "key").write_text(KEY)
    with process(index.path, "--http", "--key-file", tmp_path / "key", "--log", tmp_path / "log", command="mcp") as (
        _,
        running,
    ):

        async def one(word: str) -> list[list[str]]:
            async with client(running.address, KEY, mode) as connected:
                return [await searched(connected, word, k=5) for _ in range(5)]

        async def all_of_them() -> list[list[list[str]]]:
            return await asyncio.gather(*map(one, words))

        answers = asyncio.run(all_of_them())
    assert len(words) == 20
    assert answers == [[expected[word]] * 5 for word in words]
    calls = [call for session in read_log(tmp_path / "log") for call in session.calls]
    assert len(calls) == 100
    if mode == "legacy":  # each connection has a session of its own
        assert len(read_log(tmp_path / "log")) == 20


SLOW = """
import sys, time
from fontes.app.agents import calls
from fontes.core.work import Progress
from fontes.core.work import reporter
quick = calls.causes
def slow(stage, event, *arguments, **more):
    if event.startswith("slow"):
        for step in range(600):
            time.sleep(0.05)
            reporter()(Progress("reading", step, None, 0.0))
    return quick(stage, event, *arguments, **more)
calls.causes = slow
from fontes.app.cli import main
main()
"""


def slowly(folder: Path, log: Path, *more: str) -> StdioServerParameters:
    """`fontes mcp` in a process, whose tool `why` takes half a minute for events that begin with "slow"."""
    arguments = ["-c", SLOW, "mcp", str(folder / "harbour.index"), "--log", str(log), *more]
    return StdioServerParameters(command=sys.executable, args=arguments)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_ends_and_others_go_on(folder: Path, tmp_path: Path, mode: str) -> None:
    async def use() -> float:
        async with Client(slowly(folder, tmp_path), mode=mode) as connected:
            await searched(connected, "cannery")
            start = time.monotonic()
            for _ in range(12):  # more than there are threads
                with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                    async with asyncio.timeout(0.3):
                        await connected.call_tool("why", {"event": "slow flood"})
            await connected.call_tool("why", {"event": "Flood at Marram Flats"})
            assert await searched(connected, "cannery")
            return time.monotonic() - start

    assert asyncio.run(use()) < 20  # twelve calls of half a minute would fill all threads
    tools = [(call.tool, call.error) for call in read_log(tmp_path)[0].calls]
    assert tools.count(("why", "cancelled")) == 12
    assert tools[-1] == ("search", "")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_call_over_http_ends_when_its_client_cancels_it(folder: Path, tmp_path: Path, mode: str) -> None:
    index, log = folder / "harbour.index", tmp_path
    with process(index, "--http", "--log", log, command="mcp", program=("-c", SLOW)) as (_, running):

        async def use() -> None:
            async with client(running.address, mode=mode) as connected:
                for _ in range(12):
                    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                        async with asyncio.timeout(0.5):
                            await connected.call_tool("why", {"event": "slow flood"})
                start = time.monotonic()
                await connected.call_tool("why", {"event": "Flood at Marram Flats"})
                assert time.monotonic() - start < 20

        asyncio.run(use())
    calls = [(call.tool, call.error) for session in read_log(log) for call in session.calls]
    assert calls.count(("why", "cancelled")) == 12
    assert calls[-1] == ("why", "")


@pytest.mark.slow
def test_a_call_beyond_the_time_limit_is_answered_and_the_connection_lives(folder: Path, tmp_path: Path) -> None:
    async def use() -> str:
        async with Client(slowly(folder, tmp_path, "--seconds", "2")) as connected:
            await searched(connected, "cannery")
            answer = await connected.call_tool("why", {"event": "slow flood"})
            assert answer.is_error
            assert await searched(connected, "cannery")
            return str(answer.content[0].text)

    assert asyncio.run(use()).startswith("no answer within 2 seconds; ask for less")


@pytest.mark.slow
def test_an_index_that_changes_is_searched_in_its_new_state(tmp_path: Path) -> None:
    index = ft.Index.build([("a", "a storm at sea"), ("b", "a storm on land")], tmp_path / "s.index", threads=1)

    async def use() -> None:
        command = ["-m", "fontes", "mcp", str(index.path), "--refresh", "0.1"]
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as connected:
            assert await searched(connected, "storm") == ["b", "a"]
            index.delete(["a"])
            index.add([("c", "a storm")])
            ends = time.monotonic() + 60
            while await searched(connected, "storm") != ["c", "b"]:
                assert time.monotonic() < ends
                await asyncio.sleep(0.1)
            gone = await connected.call_tool("read", {"id": "a"})
            assert gone.is_error
            assert "take ids from a new search" in gone.content[0].text

    asyncio.run(use())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_whose_input_stays_open_ends_on_a_signal(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "fontes", "mcp", str(folder / "harbour.index"), "--log", str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"nope"}\n')
        server.stdin.flush()
        assert b'"id":1' in server.stdout.readline()
        server.send_signal(number)
        assert server.wait(30) == 128 + number
    assert not list(tmp_path.iterdir())  # a log without calls is removed


@pytest.mark.slow
def test_a_killed_server_leaves_the_log_of_its_calls(folder: Path, tmp_path: Path) -> None:
    with process(folder / "harbour.index", "--http", "--log", tmp_path, command="mcp") as (server, running):

        async def use() -> None:
            async with client(running.address) as connected:
                await searched(connected, "cannery")

        asyncio.run(use())
        server.send_signal(signal.SIGKILL)
        server.wait()
    assert [call.tool for session in read_log(tmp_path) for call in session.calls] == ["search"]


@pytest.mark.slow
def test_a_port_in_use_is_one_sentence_and_a_server_ends_on_a_signal(folder: Path, fontes: Any) -> None:
    index = folder / "harbour.index"
    with process(index, "--http", command="mcp") as (server, running):
        port = running.place[1]
        with contextlib.ExitStack() as stack:
            handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
            for number, handler in handlers.items():
                stack.callback(signal.signal, number, handler)
            code, _, err = fontes("mcp", index, "--http", "--port", port)
        assert (code, err) == (
            *(1,),
            f"fontes: the server cannot listen at 127.0.0.1, port {port}: is it an address of this machine, and free?\n",
        )
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (0, -signal.SIGTERM)
