"""The protocol, by the SDK's own client: in this process, and once with a real one."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from support.agents import connected
from support.each import each
from typer.main import get_command

from fontes.app import cli
from fontes.app.agents.protocol import Protocol, check_key, id_in
from fontes.app.agents.tools import FILES, TOOLS
from fontes.app.server.settings import ServerSettings


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_listed_and_called(tools: Any, mode: str) -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools, await client.call_tool("search", {"query": "cannery", "k": 2})

    listed, answer = connected(tools, use, mode=mode)
    assert [tool.name for tool in listed] == list(TOOLS)
    assert all(tool.annotations.read_only_hint for tool in listed)
    assert not answer.is_error
    assert answer.structured_content is None  # it would take the budget twice
    assert len(json.loads(answer.content[0].text)["hits"]) == 2


def test_the_schema_of_a_tool_has_the_arguments_that_it_takes(tools: Any) -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools

    for tool in connected(tools, use):
        assert set(tool.input_schema["properties"]) == set(TOOLS[tool.name].model_fields)
        required = [name for name, field in TOOLS[tool.name].model_fields.items() if field.is_required()]
        assert tool.input_schema["required"] == required


def test_a_wrong_call_is_a_result_that_the_model_reads(tools: Any) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("read", {"id": "nope"})

    answer = connected(tools, use)
    assert answer.is_error
    assert answer.content[0].text == "there is no document 'nope' in harbour now; take ids from a new search"


def test_the_card_of_an_index_is_a_resource_and_nothing_else_is(tools: Any) -> None:
    async def use(client: Client) -> Any:
        cards = [resource.uri for resource in (await client.list_resources()).resources]
        return cards, (await client.read_resource(cards[0])).contents[0].text

    cards, text = connected(tools, use)
    assert cards == ["fontes://harbour/card", "fontes://ferries/card"]
    card = json.loads(text)
    assert (card["documents"], card["columns"]["date"]["type"], card["pipelines"][0]["name"]) == (150, "date", "bm25")
    for uri in ("file:///etc/passwd", "fontes://harbour/../card", "fontes://nope/card", "fontes://harbour/text"):

        async def read(client: Client, uri: str = uri) -> Any:
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(uri)

        connected(tools, read)


def test_the_prompt_says_how_to_search_an_index(tools: Any) -> None:
    async def use(client: Client) -> Any:
        with pytest.raises(MCPError, match="needs the argument 'question'"):
            await client.get_prompt("search", {})
        with pytest.raises(MCPError, match="there is no index 'x'"):
            await client.get_prompt("search", {"question": "a", "index": "x"})
        return (await client.get_prompt("search", {"question": "why {0}?", "index": "ferries"})).messages[0].content.text

    text = connected(tools, use)
    assert text.startswith("Search ferries (5 documents) for: why {0}?")
    assert "year (integer)" in text


@each("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_this_machine_alone_needs_no_key(host: str) -> None:
    check_key(ServerSettings(host=host))


@each("host", ["0.0.0.0", "::", "192.168.1.2", "search.example.org"])
def test_other_machines_are_served_with_a_key(host: str) -> None:
    check_key(ServerSettings(host=host, key="k" * 16))


@each(
    ("arguments", "sentence"),
    [
        (("none.index",), "none.index"),
        (("INDEX", "--pipeline", "dens()"), "there is no stage 'dens'; did you mean 'dense'?"),
        (("INDEX", "--port", "1"), "--port applies to a server over HTTP: add --http"),
        (("INDEX", "--max-concurrency", "2"), "--max-concurrency applies to a server over HTTP: add --http"),
        (("INDEX", "--key-file", "key"), "--key-file applies to a server over HTTP: add --http"),
        (("INDEX", "--http", "--session", "a"), "--session names the session of standard input and output; over HTTP each"),
        (("INDEX", "--http", "--host", "0.0.0.0"), "--host 0.0.0.0: other machines need a key"),
        (("INDEX", "--http", "--key-file", "none"), "none: the key cannot be read (No such file or directory)"),
        (("INDEX", "INDEX"), "another index is called 'harbour' too"),
        (("INDEX", "--log", "INDEX/manifest.json"), "the log cannot be made there"),
    ],
)
def test_a_wrong_command_is_one_sentence(fontes: Any, folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    code, out, err = fontes("mcp", *(argument.replace("INDEX", str(folder / "harbour.index")) for argument in arguments))
    assert (code, out) == (1, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_without_the_library_the_error_names_the_extra(fontes: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fontes.app.agents.protocol", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert fontes("mcp", folder / "harbour.index") == (
        *(1, ""),
        "fontes: fontes mcp needs mcp, which is not installed: pip install 'fontes[mcp]'\n",
    )


@pytest.mark.slow
def test_a_client_of_a_process_searches_and_reads(folder: Path, tmp_path: Path) -> None:
    async def use() -> Any:
        command = [
            sys.executable,
            "-m",
            "fontes",
            "mcp",
            str(folder / "harbour.index"),
            "--log",
            str(tmp_path),
            "--session",
            "one",
            "--seconds",
            "300",  # loops may compile first
        ]
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            answer = json.loads((await client.call_tool("search", {"query": "cannery", "k": 1})).content[0].text)
            return (await client.call_tool("read", {"id": answer["hits"][0]["id"]})).content[0].text

    assert "cannery" in json.loads(asyncio.run(use()))["title"].lower()
    (file,) = tmp_path.glob("calls-*.jsonl")
    assert [json.loads(line)["session"] for line in file.read_text().splitlines()] == ["one", "one"]


def test_a_line_that_is_no_message_is_answered_with_an_error(folder: Path, tmp_path: Path) -> None:
    call = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "read", "arguments": {"id": %s}}}'
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call % (1, '"\\ud83d"'),
        call % (2, "9" * 5_000),
        call % (3, "[" * 5_000 + "]" * 5_000),
        call % ('"\\u00e9 4"', '"\\ud83d"'),
        '{"method": "tools/call", "params": {"name": "read", "arguments": {"id": "\\ud83d"}}, "jsonrpc": "2.0", "id": 5}',
        '{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": ["read"]}',
        (call % (7, '"h150"'))[:-2],
        "",
        "hello",
        call % (8, '"h150"'),
    ]
    command = [sys.executable, "-m", "fontes", "mcp", str(folder / "harbour.index"), "--seconds", "300"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{line}\n" for line in lines).encode())
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(10)]
        server.stdin.close()
    by_id = {answer["id"]: answer for answer in answers}
    assert "cannery" in by_id[8]["result"]["content"][0]["text"].lower()
    assert {name for name, answer in by_id.items() if "error" in answer} == {1, 2, 3, "é 4", 5, 6, 7, None}
    assert by_id[1]["error"]["code"] == -32700
    assert by_id[6]["error"]["code"] == -32600
    assert by_id[1]["error"]["message"].startswith("not a message of the protocol (Invalid JSON: unexpected end of hex escape")


@each(
    ("line", "id_"),
    [
        ('{"id": 12, "a": [', 12),
        ('{"a": {"id": 1}, "b": ["id", 2], "c": "id", "id" : "x\\"y"', 'x"y'),
        ('{"a": "\\"id\\": 3", "id": 4', 4),
        ('{"id": 1.5}', None),
        ('{"id": true}', None),
        ('[{"id": 1}]', None),
        ('{"id": "\\ud83d"}', "\ufffd"),
        ('{"id', None),
        ('{"id": ' + "9" * 5_000, None),
        ('"\\' * 100_000, None),
    ],
)
def test_the_id_of_a_broken_message_is_found(line: str, id_: int | str | None) -> None:
    assert id_in(line) == id_


def test_pipelines_by_name_stand_beside_bm25(folder: Path, monkeypatch: pytest.MonkeyPatch, fontes: Any) -> None:
    served: list[dict[str, str]] = []

    async def stop(protocol: Protocol, tools: Any) -> None:
        served.append({name: repr(stage) for name, stage in tools.service.served(None).state.pipelines.items()})

    monkeypatch.setattr("fontes.app.agents.protocol.serve_stdio", stop)
    for options in ([], ["--pipeline", "vector=tfidf()"], ["--pipeline", "bm25=ql()"]):
        assert fontes("mcp", folder / "harbour.index", *options)[0] == 0
    assert [list(pipelines) for pipelines in served] == [["bm25"], ["vector", "bm25"], ["bm25"]]
    assert served[2]["bm25"].startswith("ql(")


def lines_of_the_skill() -> list[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FILES.glob("*.md")))
    return [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]


def test_the_skill_is_written_beside_nothing_else(fontes: Any, tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "fontes"
    assert fontes("skill", folder)[1] == f"{folder}: SKILL.md, compare.md\n"
    assert json.loads(fontes("skill", folder, "--json")[1]) == {"folder": str(folder), "files": ["SKILL.md", "compare.md"]}
    text = (folder / "SKILL.md").read_text()
    assert text.startswith("---\nname: fontes\ndescription: ")
    assert all((folder / name).exists() for name in re.findall(r"\]\(([\w.]+)\)", text))
    (folder / "SKILL.md").write_text("---\nname: other\n---\n")
    code, _, err = fontes("skill", folder)
    assert (code, "this is the skill of something else" in err) == (1, True)


def test_the_commands_and_options_of_the_skill_exist() -> None:
    group: Any = get_command(cli.app)
    for line in lines_of_the_skill():
        words = shlex.split(line)
        command = group.commands[words[1]]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words[2:] if re.match(r"--?[a-z]", word)} <= options, line


@pytest.mark.slow
def test_the_lines_of_the_skill_run(fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in lines_of_the_skill():
        code, _, err = fontes(*shlex.split(line)[1:])
        assert code == 0, f"{line}: {err}"
    for block in re.findall(r"^```python\n(.*?)^```$", (FILES / "SKILL.md").read_text(), re.M | re.S):
        exec(compile(block, "SKILL.md", "exec"), {})
