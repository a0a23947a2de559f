"""Checks before every request (host, origin, key, limits), and the headers and the log line of its answer."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import secrets
import time
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..flags import flags
from .metrics import Metrics
from .problems import RefusedError, busy, problem_of, unauthorized
from .settings import Settings

log = logging.getLogger("fontes.server")
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
PORT = re.compile(r":[0-9]+$")
ALWAYS = ("/health", "/ready", "/metrics")  # answered under any load
OPEN = re.compile(
    r"/|/page/[^/]*|/judge|/docs|/openapi\.json|/health|/ready"
)  # answered without the key: they show no documents
GONE = 499  # the status of requests whose client has gone
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
CLIENTS = 10_000  # whose rates are remembered
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
    }.items()
)


class Guard:
    """An application with the limits of a server around it.

    Args:
        app: The application.
        settings: The limits.
        metrics: Where requests are counted.
        names: What stands in place of paths in messages.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, names: Mapping[str, str]) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._names = names
        self._hosts = {"localhost", "127.0.0.1", "[::1]", _in_brackets(settings.host), *map(str.lower, settings.hosts)}
        self._cors = None
        if settings.origins:
            self._cors = CORSMiddleware(
                app,
                allow_origins=settings.origins,
                allow_methods=("GET", "HEAD", "POST", "DELETE"),
                allow_headers=("Authorization", "X-Request-Id"),
                expose_headers=("Retry-After", "X-Request-Id"),
            )
        self._working = 0
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()
        metrics.watch("working", lambda: self._working)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._cors is not None:
            send = partial(self._cors.send, send=send, request_headers=Headers(scope=scope))
        exchange = Exchange(self._prefixed(scope), receive, send, self._settings.body)
        start = time.perf_counter()
        self._working += 1
        try:
            preflight = self._check(exchange)
            async with asyncio.timeout(self._settings.seconds):
                if preflight:
                    await self._allow(exchange)
                elif exchange.path == "":
                    answer = RedirectResponse(f"{self._settings.root_path}/", 308)
                    await answer(exchange.scope, exchange.receive, exchange.send)
                else:
                    await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:
            await self._failed(error, exchange)
        finally:
            self._working -= 1
            self._note(exchange, time.perf_counter() - start)

    def _prefixed(self, scope: Scope) -> Scope:
        """The scope with the prefix in its path, as ASGI has it, whether a proxy has stripped the prefix or not."""
        root, path = self._settings.root_path, scope["path"]
        return {**scope, "path": path if f"{path}/".startswith(f"{root}/") else root + path, "root_path": root}

    async def _allow(self, exchange: Exchange) -> None:
        """Answers a preflight request of an allowed origin."""
        assert self._cors is not None
        answer = self._cors.preflight_response(Headers(scope=exchange.scope))
        if answer.status_code != 200:
            raise RefusedError(
                403, "pages of other sites may send GET, HEAD, POST and DELETE, with a key and a content type alone"
            )
        await answer(exchange.scope, exchange.receive, exchange.send)

    async def _failed(self, error: Exception, exchange: Exchange) -> None:
        """Answers in place of the application, where it has not."""
        if isinstance(error, TimeoutError):
            limit = f"{self._settings.seconds:g} seconds (--seconds)"
            if exchange.complete:
                error = busy(f"the answer took more than {limit}; ask for less, or later")
            else:
                error = RefusedError(408, f"the request was not complete after {limit}", {"Connection": "close"})
        elif not isinstance(error, RefusedError):
            exchange.error = error
        if exchange.status == 0 and not exchange.gone:
            await problem_of(error, self._names)(exchange.scope, exchange.receive, exchange.send)

    def _check(self, exchange: Exchange) -> bool:
        """Whether the request is a preflight; raises RefusedError for a request that is not carried out."""
        settings, headers, path = self._settings, exchange.headers, exchange.path
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if PORT.sub("", host) not in self._hosts:
            raise self._refused("host", RefusedError(421, f"this server is not called '{host[:100]}' (--name)"))
        if (origin := headers.get(b"origin")) is not None:
            site = origin.decode("latin-1").lower()
            allowed = self._cors is not None and self._cors.is_allowed_origin(site)
            if not allowed and site not in (f"http://{host}", f"https://{host}"):
                raise self._refused("origin", RefusedError(403, "the request comes from a page of another site (--origin)"))
            if allowed and exchange.method == "OPTIONS" and b"access-control-request-method" in headers:
                return True
        if path not in ALWAYS:
            length = headers.get(b"content-length", b"0")
            if length.isdigit() and int(length[:20]) > settings.body:
                raise self._refused("body", exchange.too_large())
            if self._working > settings.at_once:
                raise self._refused(
                    "at_once", busy(f"{settings.at_once:,} requests are being worked on (--at-once); come again")
                )
            if settings.rate and not self._within_rate(str((exchange.scope.get("client") or ("",))[0])):
                limit = f"a client has {settings.rate:g} requests a second (--rate)"
                raise self._refused("rate", RefusedError(429, limit, {"Retry-After": "1"}))
        if settings.key and not OPEN.fullmatch(path) and not shows(headers, settings.key, settings.token):
            raise self._refused("key", unauthorized("this needs the server's key: Authorization: Bearer KEY"))
        return False

    def _refused(self, limit: str, error: RefusedError) -> RefusedError:
        self._metrics.refused.labels(limit).inc()
        return error

    def _within_rate(self, client: str) -> bool:
        """Whether a client may ask once more: it has so many requests in hand as a second gives, and gets them back in time."""
        now, rate = time.monotonic(), self._settings.rate
        most = max(1.0, rate)
        left, last = self._rates.pop(client, (most, now))
        left = min(most, left + (now - last) * rate)
        self._rates[client] = (left - 1 if left >= 1 else left), now
        if len(self._rates) > CLIENTS:
            self._rates.popitem(last=False)
        return left >= 1

    def _note(self, exchange: Exchange, seconds: float) -> None:
        """Counts the request, and writes its line."""
        scope = exchange.scope
        path = scope.get("path_template") or getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(
            path, exchange.method if exchange.method in METHODS else "other", exchange.status or GONE
        ).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        error = exchange.error
        if error is None and not log.isEnabledFor(logging.INFO):
            return
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request": exchange.id,
            "client": (scope.get("client") or ("",))[0],
            "method": exchange.method,
            "path": scope["path"],
            "status": exchange.status or GONE,
            "bytes": exchange.sent,
            "ms": round(1000 * seconds, 2),
        }
        if self._settings.log_queries:
            line["query"] = scope["query_string"].decode("latin-1")
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            line["error"] = f"{type(error).__name__}: {error}" + "".join(
                f" ({place.filename}:{place.lineno})" for place in last
            )
            if flags.debug:
                line["traceback"] = traceback.format_exception(error)
        log.log(logging.INFO if error is None else logging.ERROR, json.dumps(line))


def shows(headers: Mapping[bytes, bytes], *secrets_: str) -> bool:
    """Whether a request shows one of these secrets; compared in constant time, an empty one never counts."""
    shown = headers.get(b"authorization", b"")
    equal = [hmac.compare_digest(shown, f"Bearer {secret}".encode()) for secret in secrets_ if secret]
    return any(equal)


class Exchange:
    """A request and its answer, as far as they have come.

    Attributes:
        path: The path inside this server, without the prefix of a proxy.
        method: The request's method. The application answers HEAD as GET, and `send` leaves the body out.
        id: The request's id, its own where it has one.
        status: The answer's status; 0 before it.
        sent: Bytes of the answer's body.
        complete: Whether all of the request has come.
        gone: Whether the client has.
        error: What was raised.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        self.path: str = scope["path"].removeprefix(scope["root_path"])
        self.method: str = scope["method"]
        self.scope = {**scope, "method": "GET"} if self.method == "HEAD" else scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self._receive, self._send, self._most = receive, send, most
        own = self.headers.get(b"x-request-id", b"")
        self.id = own.decode() if REQUEST_ID.fullmatch(own) else secrets.token_hex(8)
        self.status = self.sent = self._bytes = 0
        self.complete = self.method in ("GET", "HEAD")
        self.gone = False
        self.error: Exception | None = None

    def too_large(self) -> RefusedError:
        """The refusal of a body that is too large."""
        return RefusedError(413, f"the request's body has more than {self._most:,} bytes (--body)", {"Connection": "close"})

    async def receive(self) -> Message:
        """A piece of the request.

        Raises:
            RefusedError: Its body is too large.
        """
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = True
        else:
            self._bytes += len(message.get("body", b""))
            self.complete = self.complete or not message.get("more_body", False)
            if self._bytes > self._most:
                raise self.too_large()
        return message

    async def send(self, message: Message) -> None:
        """Sends a piece of the answer, with the headers that each has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", self.id.encode())]
        else:
            if self.method == "HEAD":
                message = {**message, "body": b""}
            self.sent += len(message.get("body", b""))
        await self._send(message)


def _in_brackets(host: str) -> str:
    """An address as it stands in the header Host."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host.lower()
