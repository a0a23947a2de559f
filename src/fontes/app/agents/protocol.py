"""The Model Context Protocol over stdio and streamable HTTP: tools, index cards as resources, and a prompt."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from io import TextIOWrapper
from typing import Any, NoReturn, cast
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.routing import Route
from starlette.types import ASGIApp

from ...core.errors import ParameterError
from ...core.strings import encodable
from ...formats.json_text import json_text
from ..server import health
from ..server.answers import RefusedError
from ..server.application import plain_application
from ..server.guard import Guard
from ..server.settings import KEY, ServerSettings
from .budget import Answer
from .calls import Tools
from .log import CallLog
from .tools import INSTRUCTIONS, PROMPT, described_tools

PATH = "/mcp"
SCHEME = "fontes://"
GRACE = 5  # additional seconds to answer a call that timed out
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
SESSION = "fontes/session"  # key in _meta of a request: name of the session in the log
READ_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)

Context = ServerRequestContext[Any, Any]


class Protocol:
    """Handlers of the protocol; `session` is the name of a session for which neither request nor connection has a name."""

    def __init__(self, tools: Tools, log: CallLog | None = None, session: str = "") -> None:
        self._tools = tools
        self._log = log
        self._session = session

    def server(self) -> Server[object]:
        """Return the server with these handlers, for any transport."""
        return Server(
            "fontes",
            version=version("fontes"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    def end(self, code: int) -> NoReturn:
        """Exit the process at once: the thread that reads standard input cannot be stopped."""
        if self._log is not None:
            self._log.close()
        os._exit(code)

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool["name"], description=tool["description"], input_schema=tool["inputSchema"], annotations=READ_ONLY
            )
            for tool in described_tools()
        ]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        session, is_own = self._session_of(context)
        try:
            answer = await self._tools.call(params.name, arguments, session if is_own else None)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                self._log_call(context, params.name, arguments, None)
            raise
        try:
            self._log_call(context, params.name, arguments, answer)
        except OSError as error:
            answer = Answer(f"no answer, since its log cannot be written ({error.strerror or error}): tell the owner", True)
        if is_own and not answer.is_error:
            self._tools.shown.add(session, answer.index, answer.documents)
        return types.CallToolResult(content=[types.TextContent(type="text", text=answer.text)], is_error=answer.is_error)

    def _log_call(self, context: Context, tool: str, arguments: Mapping[str, object], answer: Answer | None) -> None:
        if self._log is not None:
            self._log.write(self._session_of(context)[0], _client(context), tool, arguments, answer)

    def _session_of(self, context: Context) -> tuple[str, bool]:
        """Name of a call's session, and whether no other client has it.

        The name is that in the request, in the connection, or else, shared, the client's address and program.
        """
        session = (context.meta or {}).get(SESSION)
        if isinstance(session, str) and session.strip():
            return session.strip()[:100], True
        if context.request is None:
            return self._session, True
        if session_id := context.request.headers.get("mcp-session-id"):
            return str(session_id), True
        return f"{getattr(context.request.client, 'host', '')} {_client(context)}".strip(), False

    async def _list_resources(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cards = [
            types.Resource(
                uri=f"{SCHEME}{quote(name)}/card",
                name=f"{name} card",
                description=f"What {name} holds: documents, columns, pipelines, size",
                mime_type="application/json",
            )
            for name in self._tools.service.indexes
        ]
        return types.ListResourcesResult(resources=cards)

    async def _list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        name, _, kind = unquote(uri.removeprefix(SCHEME)).rpartition("/")
        if not uri.startswith(SCHEME) or kind != "card" or name not in self._tools.service.indexes:
            cards = ", ".join(f"{SCHEME}{quote(index)}/card" for index in self._tools.service.indexes)
            raise MCPError(types.INVALID_PARAMS, f"there is no resource '{uri[:200]}'; there are {cards}")
        card = await self._tools.service.work(self._tools.card, name)
        text = json_text(card, ensure_ascii=False, default=str)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)])

    async def _list_prompts(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        arguments = [
            types.PromptArgument(name="question", description="what to find out", required=True),
            types.PromptArgument(name="index", description="the first if omitted", required=False),
        ]
        prompt = types.Prompt(name="search", description="How to search an index for an answer", arguments=arguments)
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = params.arguments or {}
        if params.name != "search" or not arguments.get("question"):
            raise MCPError(types.INVALID_PARAMS, "there is one prompt, 'search', which needs the argument 'question'")
        try:
            served = self._tools.service.served(arguments.get("index"))
        except RefusedError as error:
            raise MCPError(types.INVALID_PARAMS, str(error.detail)) from None
        columns = ", ".join(f"{name} ({kind})" for name, kind in served.state.index.columns.items()) or "there are none"
        text = PROMPT.format(
            index=served.name, documents=len(served.state.index), question=arguments["question"], columns=columns
        )
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])


def _client(context: Context) -> str:
    """Name and version of the client's program."""
    params = context.session.client_params
    return "" if params is None else f"{params.client_info.name} {params.client_info.version}".strip()[:100]


async def serve_stdio(protocol: Protocol, tools: Tools) -> None:
    """Serve one client over standard input and output, until the input ends, SIGINT or SIGTERM."""
    server, loop = protocol.server(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, protocol.end, 128 + number)
    loading = asyncio.create_task(tools.service.run())
    try:
        messages = Messages()
        async with stdio_server(stdin=cast(Any, messages)) as (read, write):
            messages.answers.set_result(write)
            await server.run(read, write, server.create_initialization_options())
    finally:
        loading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loading
        tools.service.close()


class Messages:
    """Lines of standard input that are messages; another line is answered with an error, which the SDK leaves out."""

    def __init__(self) -> None:
        self.answers: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Stream of answers."""

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")):
            try:
                types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except (ValueError, RecursionError) as error:
                if line.strip():
                    answers = await self.answers
                    await answers.send(SessionMessage(refusal(line, error)))
            else:
                yield line


def refusal(line: str, error: Exception) -> types.JSONRPCError:
    """Return the answer to a line that is not a message, with the id that stands in it, if any."""
    first = error.errors()[0] if isinstance(error, ValidationError) else {"msg": str(error), "type": ""}
    code = types.PARSE_ERROR if first["type"] == "json_invalid" else types.INVALID_REQUEST
    problem = f"not a message of the protocol ({first['msg'][:200]}); send valid JSON, without lone surrogates"
    return types.JSONRPCError(jsonrpc="2.0", id=id_in(line), error=types.ErrorData(code=code, message=problem))


def id_in(line: str) -> int | str | None:
    """Return the id of a request, whose JSON may be invalid elsewhere; None without an id."""
    depth, before = 0, ("", "")
    for token in JSON_TOKEN.finditer(line):
        text = token[0]
        if depth == 1 and before == ('"id"', ":"):
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(text)
                return value if type(value) is int else encodable(value) if isinstance(value, str) else None
        depth += (text in "{[") - (text in "}]")
        before = before[1], text
    return None


def http_application(protocol: Protocol, tools: Tools) -> ASGIApp:
    """ASGI application behind the guard of `fontes serve`: the protocol at /mcp, and /health, /ready and /metrics."""
    service = tools.service
    manager = StreamableHTTPSessionManager(protocol.server(), max_request_body_size=service.settings.body)
    app = plain_application(service, (health.router,), _running(manager), None)
    app.router.routes.append(
        Route(f"{service.settings.root_path}{PATH}", StreamableHTTPASGIApp(manager), methods=["POST", "DELETE"])
    )
    settings = replace(service.settings, seconds=service.settings.seconds + GRACE)
    return Guard(app, settings, service.metrics, service.names)


@contextlib.asynccontextmanager
async def _running(manager: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    async with manager.run():
        yield


def check_key(settings: ServerSettings) -> None:
    """Raise ParameterError unless the server has a key, or only this machine can reach it."""
    if settings.key:
        return
    try:
        is_local = ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        is_local = settings.host.lower() == "localhost"
    if not is_local:
        raise ParameterError(f"--host {settings.host}: other machines need a key: --key-file FILE, or {KEY} in the environment")
