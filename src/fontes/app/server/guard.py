"""Checks of every request (host, origin, key, limits), and the headers and log line of its response."""

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
from collections.abc import Mapping
from functools import partial

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..flags import flags
from .answers import RefusedError, busy, problem_response, unauthorized
from .health import Metrics
from .settings import ServerSettings

log = logging.getLogger("fontes.server")
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
PORT = re.compile(r":[0-9]+$")
UNLIMITED = ("/health", "/ready", "/metrics")  # paths that are answered under any load
# Paths that need no key, since they show no documents.
OPEN = re.compile(r"/|/page/[^/]*|/judge|/docs|/openapi\.json|/health|/ready")
CLIENT_GONE = 499  # status in the log if the client disconnected before the response
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guard:
    """Wraps an application with the limits of a server; `names` replace paths in messages.

    Starlette's `CORSMiddleware` handles other origins. `TrustedHostMiddleware` and uvicorn's `limit_concurrency` answer in
    plain text, count idle connections, and cannot exempt /health.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics, names: Mapping[str, str]) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._names = names
        self._hosts = {"localhost", "127.0.0.1", "[::1]", _as_host(settings.host), *map(str.lower, settings.hosts)}
        self._cors = CORSMiddleware(
            app,
            allow_origins=settings.origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("Authorization", "If-Match", "If-None-Match", "Prefer", "X-Request-Id"),
            expose_headers=("ETag", "Location", "Preference-Applied", "Retry-After", "X-Request-Id"),
        )
        self._working = 0
        metrics.watch("working", lambda: self._working)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._settings.origins:
            send = partial(self._cors.send, send=send, request_headers=Headers(scope=scope))
        context = RequestContext(self._with_root_path(scope), receive, send, self._settings.body)
        start = time.perf_counter()
        self._working += 1
        try:
            app = self._check(context)
            async with asyncio.timeout(self._settings.seconds):
                await app(context.scope, context.receive, context.send)
        except Exception as error:
            await self._respond_to_error(error, context)
        finally:
            self._working -= 1
            self._record(context, time.perf_counter() - start)

    def _with_root_path(self, scope: Scope) -> Scope:
        """Scope whose path includes the root path, whether a proxy strips it or not."""
        root, path = self._settings.root_path, scope["path"]
        return {**scope, "path": path if f"{path}/".startswith(f"{root}/") else root + path, "root_path": root}

    def _check(self, context: RequestContext) -> ASGIApp:
        """Check a request; return the application that answers it. Raises RefusedError if the request is refused."""
        settings, headers, path = self._settings, context.headers, context.path
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if PORT.sub("", host) not in self._hosts:
            raise self._count_refusal("host", RefusedError(421, f"this server is not called '{host[:100]}' (--name)"))
        if (origin := headers.get(b"origin")) is not None:
            site = origin.decode("latin-1").lower()
            allowed = self._cors.is_allowed_origin(site)
            if not allowed and site not in (f"http://{host}", f"https://{host}"):
                raise self._count_refusal(
                    "origin", RefusedError(403, "the request comes from a page of another site (--origin)")
                )
            if allowed and context.method == "OPTIONS" and b"access-control-request-method" in headers:
                return self._preflight(context)
        if path not in UNLIMITED:
            length = headers.get(b"content-length", b"0")
            if length.isdigit() and int(length[:20]) > settings.body:
                raise self._count_refusal("body", context.too_large())
            if self._working > settings.max_concurrency:
                raise self._count_refusal(
                    "max_concurrency",
                    busy(f"{settings.max_concurrency:,} requests are being worked on (--max-concurrency); come again"),
                )
        if settings.key and not OPEN.fullmatch(path) and not has_secret(headers, settings.key, settings.token):
            raise self._count_refusal("key", unauthorized("this needs the server's key: Authorization: Bearer KEY"))
        return RedirectResponse(f"{settings.root_path}/", 308) if path == "" else self._app

    def _preflight(self, context: RequestContext) -> ASGIApp:
        """Response to a preflight request of CORS."""
        answer = self._cors.preflight_response(Headers(scope=context.scope))
        if answer.status_code != 200:
            raise RefusedError(
                403, "pages of other sites may send GET, HEAD, POST, PUT, PATCH and DELETE, with only the headers of /docs"
            )
        return answer

    def _count_refusal(self, limit: str, error: RefusedError) -> RefusedError:
        """The refusal, counted in the metrics under the name of the limit."""
        self._metrics.refused.labels(limit).inc()
        return error

    async def _respond_to_error(self, error: Exception, context: RequestContext) -> None:
        """Send a problem for an exception, unless the response has begun or the client is gone."""
        if isinstance(error, TimeoutError):
            limit = f"{self._settings.seconds:g} seconds (--seconds)"
            if context.complete:
                error = busy(f"the answer took more than {limit}; ask for less, or later")
            else:
                error = RefusedError(408, f"the request was not complete after {limit}", {"Connection": "close"})
        elif not isinstance(error, RefusedError):
            context.error = error
        if context.status == 0 and not context.gone:
            await problem_response(error, self._names)(context.scope, context.receive, context.send)

    def _record(self, context: RequestContext, seconds: float) -> None:
        """Count a request in the metrics and log it."""
        scope, status = context.scope, context.status or CLIENT_GONE
        path = scope.get("path_template") or getattr(scope.get("route"), "path", "other")
        method = context.method if context.method in METHODS else "other"
        self._metrics.requests.labels(path, method, status).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        error = context.error or scope.get("failure")
        if error is None and not log.isEnabledFor(logging.INFO):
            return
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request": context.id,
            "client": (scope.get("client") or ("",))[0],
            "method": context.method,
            "path": scope["path"],
            "status": status,
            "bytes": context.sent,
            "ms": round(1000 * seconds, 2),
        }
        if self._settings.log_queries:
            line["query"] = scope["query_string"].decode("latin-1")
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            location = [f" ({frame.filename}:{frame.lineno})" for frame in last]
            line["error"] = f"{type(error).__name__}: {error}{''.join(location)}"
            if flags.debug:
                line["traceback"] = traceback.format_exception(error)
        log.log(logging.INFO if error is None else logging.ERROR, json.dumps(line))


def has_secret(headers: Mapping[bytes, bytes], *secrets_: str) -> bool:
    """Whether a request has one of these secrets, compared in constant time; an empty secret never matches."""
    header = headers.get(b"authorization", b"")
    equal = [hmac.compare_digest(header, f"Bearer {secret}".encode()) for secret in secrets_ if secret]
    return any(equal)


class RequestContext:
    """State of a request and its response.

    Attributes:
        path: Path without the root path.
        method: Method of the request. HEAD is answered as GET, but `send` drops the body.
        id: Id of the request: its X-Request-Id, or a random one.
        status: Status of the response; 0 until it starts.
        sent: Bytes of the response's body that were sent.
        complete: Whether the whole request has arrived.
        gone: Whether the client has disconnected.
        error: Exception of a failed request.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_body: int) -> None:
        self.path: str = scope["path"].removeprefix(scope["root_path"])
        self.method: str = scope["method"]
        self.scope = {**scope, "method": "GET"} if self.method == "HEAD" else scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self._receive, self._send, self._max_body = receive, send, max_body
        request_id = self.headers.get(b"x-request-id", b"")
        self.id = request_id.decode() if REQUEST_ID.fullmatch(request_id) else secrets.token_hex(8)
        self.status = self.sent = self._received = 0
        has_body = b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0") != b"0"
        self.complete = self.method in ("GET", "HEAD") or not has_body
        self.gone = False
        self.error: Exception | None = None

    def too_large(self) -> RefusedError:
        """Refusal of a body that is too large."""
        limit = f"{self._max_body:,} bytes (--body)"
        return RefusedError(413, f"the request's body has more than {limit}", {"Connection": "close"})

    async def receive(self) -> Message:
        """Receive a piece of the request; raises RefusedError if the body is too large."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = True
        else:
            self._received += len(message.get("body", b""))
            self.complete = self.complete or not message.get("more_body", False)
            if self._received > self._max_body:
                raise self.too_large()
        return message

    async def send(self, message: Message) -> None:
        """Send a piece of the response, with the common headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            common = [header for header in HEADERS if header[0] not in present]
            message["headers"] = [*message["headers"], *common, (b"x-request-id", self.id.encode())]
        else:
            if self.method == "HEAD":
                message = {**message, "body": b""}
            self.sent += len(message.get("body", b""))
        await self._send(message)


def _as_host(host: str) -> str:
    """The host as in the header Host: IPv6 addresses in brackets, names in lower case."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host.lower()
