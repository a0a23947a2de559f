"""Arms that answer in JSON: any engine at an HTTP address, and the tool of an MCP server."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import Field

from ..core import InputError, Topic
from ..core.errors import needs_extra
from ..experiments.experiment import Text
from .arms import MAX_ERROR, Arm, Reply, words_of

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
VARIABLE = re.compile(r"\$\{(\w+)\}")
DEFAULT_HEADERS = {"User-Agent": "fontes-gate", "Content-Type": "application/json"}
MAX_BYTES = 64 << 20  # of an answer
LOADING = "still loading"  # said by `fontes mcp` while its first start compiles
START = 180  # seconds that a server may be loading
BYTES_PER_TOKEN = 4  # of an answer that a language model reads


class JsonArm(Arm):
    """Base of arms whose answers are JSON.

    Paths are keys and positions with dots between them: "hits.hits", "results.0.hits". "" is the value itself.
    """

    costs = ("tokens",)
    headers: dict[str, str] = Field(default={})
    hits: str = "hits"
    id: str = "id"
    score: str | None = Text
    generation: str | None = Text
    tokens: str | None = Text
    expect: dict[str, object] = Field(default={})
    timeout: float = Field(default=30, gt=0)

    def reply(self, value: object, k: int) -> Reply:
        """Return the answer in a JSON value. Documents keep their order; of one that occurs twice the first counts.

        Raises:
            InputError: The value lacks what a path names, or differs from what the file expects.
        """
        for path, expected in self.expect.items():
            if (actual := value_at(value, path)) != expected:
                raise InputError(f"'{path}' of the answer is {_shown(actual)}, not {_shown(expected)}")
        hits = value_at(value, self.hits)
        if not isinstance(hits, list):
            raise InputError(f"'{self.hits}' of the answer is no list: {_shown(hits)}")
        ids = tuple(dict.fromkeys(_text(value_at(hit, self.id), self.id) for hit in hits))[:k]
        scores = [] if self.score is None else [value_at(hit, self.score) for hit in hits]
        tied = len(scores) > 1 and all(score == scores[0] for score in scores)
        generation = None if self.generation is None else _text(value_at(value, self.generation), self.generation)
        tokens = None if self.tokens is None else value_at(value, self.tokens)
        if tokens is not None and not isinstance(tokens, int):
            raise InputError(f"'{self.tokens}' of the answer is no number of tokens: {_shown(tokens)}")
        return Reply(ids, None, generation, tokens, tied)

    def filled_headers(self) -> dict[str, str]:
        """Return the headers with the values of environment variables, ${NAME}."""

        def value_of(match: re.Match[str]) -> str:
            if match[1] not in os.environ:
                raise InputError(f"the environment variable {match[1]}, which the headers name, is not set")
            return os.environ[match[1]].strip()

        return {name: VARIABLE.sub(value_of, value) for name, value in self.headers.items()}


class HttpArm(JsonArm):
    """An HTTP address that answers a query in JSON."""

    kind = "url"
    url: str = Field(pattern=ADDRESS)
    method: str | None = Text
    body: str | dict[str, object] | None = None

    @contextmanager
    def asking(self, k: int) -> Iterator[Callable[[Topic], Reply]]:
        opener, headers = build_opener(_NoRedirects), self.filled_headers()
        try:
            body = json.loads(self.body) if isinstance(self.body, str) else self.body
        except ValueError as error:
            raise InputError(f"'body' is not JSON ({error}); write a table, or JSON in a string") from None

        def ask(topic: Topic) -> Reply:
            data = None if self.body is None else json.dumps(filled(body, topic, k)).encode()
            address = filled(self.url, topic, k, partial(quote, safe=""))
            request = Request(address, data, {**DEFAULT_HEADERS, **headers}, method=self.method)
            try:
                with opener.open(request, timeout=self.timeout) as response:
                    content = response.read(MAX_BYTES + 1)
            except HTTPError as error:
                detail = " ".join(error.read(MAX_ERROR).decode(errors="replace").split())
                raise InputError(f"{self.url} answered {error.code} {error.reason} {detail}".rstrip()) from None
            except (OSError, HTTPException) as error:  # a URLError is an OSError
                raise InputError(f"{self.url} cannot be reached ({getattr(error, 'reason', error)})") from None
            if len(content) > MAX_BYTES:
                raise InputError(f"{self.url} answered more than {MAX_BYTES:,} bytes")
            return self.reply(parsed(content), k)

        yield ask


class McpArm(JsonArm):
    """A tool of an MCP server: at an address (streamable HTTP), or started by a command (standard input and output)."""

    kind = "mcp"
    mcp: str = Field(min_length=1)
    tool: str = Field(default="search", min_length=1)
    arguments: dict[str, object] = Field(default={"query": "{query}", "k": "{k}"})

    @contextmanager
    def asking(self, k: int) -> Iterator[Callable[[Topic], Reply]]:
        with needs_extra("mcp", "the key 'mcp'", "mcp"):
            import httpx2
            from anyio.from_thread import start_blocking_portal
            from mcp.client.client import Client
            from mcp.client.stdio import StdioServerParameters
            from mcp.client.streamable_http import streamable_http_client

        if ADDRESS.match(self.mcp):
            http = httpx2.AsyncClient(headers=self.filled_headers(), timeout=self.timeout)
            transport: Any = streamable_http_client(self.mcp, http_client=http)
        else:
            command, *words = words_of(self.mcp)
            transport = StdioServerParameters(command=command, args=words, cwd=self._folder, env=dict(os.environ))
        with start_blocking_portal() as portal:
            client = Client(transport, read_timeout_seconds=self.timeout)
            try:
                context = portal.wrap_async_context_manager(client)
                context.__enter__()
            except Exception as error:
                raise InputError(f"{self.mcp} cannot be reached ({_reason(error)})") from None

            def ask(topic: Topic) -> Reply:
                limit = time.monotonic() + START
                while True:
                    try:
                        result = portal.call(client.call_tool, self.tool, filled(self.arguments, topic, k))
                    except Exception as error:
                        raise InputError(f"the tool '{self.tool}' of {self.mcp} did not answer ({_reason(error)})") from None
                    text = "".join(getattr(part, "text", "") for part in result.content)
                    if not (result.is_error and LOADING in text and time.monotonic() < limit):
                        break
                if result.is_error:
                    raise InputError(f"the tool '{self.tool}' refused: {text[:MAX_ERROR]}")
                answer = self.reply(result.structured_content or parsed(text), k)
                return replace(answer, tokens=-(-len(text.encode()) // BYTES_PER_TOKEN)) if answer.tokens is None else answer

            try:
                yield ask
            finally:
                context.__exit__(None, None, None)


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would carry the headers to another address."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def filled(template: object, topic: Topic, k: int, quoted: Callable[[str], str] = str) -> Any:
    """Return a template with {query}, {topic} (its id) and {k} filled in; "{k}" alone becomes a number."""
    if isinstance(template, dict):
        return {name: filled(value, topic, k) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, topic, k) for value in template]
    if not isinstance(template, str):
        return template
    if template == "{k}":
        return k
    values = {"query": topic.text, "topic": topic.id, "k": str(k)}
    return re.sub(r"\{(query|topic|k)\}", lambda match: quoted(values[match[1]]), template)


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of keys and positions; InputError if there is none."""
    for part in path.split(".") if path else ():
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            keys = f"; it has {', '.join(list(value)[:10])}" if isinstance(value, dict) and value else ""
            raise InputError(f"the answer has nothing at '{path}': no '{part}'{keys}") from None
    return value


def parsed(content: str | bytes) -> object:
    """Return JSON as a value; InputError if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        text = content if isinstance(content, str) else content.decode(errors="replace")
        raise InputError(f"the answer is not JSON: {' '.join(text[:80].split()) or 'nothing'}") from None


def _text(value: object, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(f"'{path}' of the answer is no id: {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]


def _reason(error: BaseException) -> str:
    """Return the first cause in a group of errors, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split())[:MAX_ERROR] or type(error).__name__
