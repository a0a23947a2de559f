"""Running a server: connections, signals and the log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import APIRouter
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ...core.errors import FontesError
from ...storage.system import WINDOWS
from ..flags import flags
from .answers import PROBLEM, problem_bytes
from .application import application
from .guard import HEADERS
from .service import Service, return_large_arrays

if TYPE_CHECKING:
    from socket import socket

HEAD = 64 << 10  # maximum bytes of a request line with its headers
Started = Callable[[str], None]


def serve(
    service: Service, routers: Sequence[APIRouter] = (), started: Started = lambda address: None, app: ASGIApp | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the running requests.

    Args:
        service: The service.
        routers: Additional routers for the application.
        started: Called with the address once connections are accepted.
        app: Application to serve, in place of `application(service, routers)`.

    Raises:
        FontesError: The address cannot be used.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # Windows has none

        _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # each connection is an open file
    return_large_arrays()
    server = server_of(service, routers, started, app)
    for end_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end_signal, lambda number, frame: None)  # uvicorn raises the signal again at its end
    with _logging(), contextlib.suppress(SystemExit):
        server.run()
    if not server.started:
        settings = service.settings
        raise FontesError(
            f"the server cannot listen at {settings.host}, port {settings.port}: is it an address of this machine, and free?"
        )


def server_of(service: Service, routers: Sequence[APIRouter], started: Started, app: ASGIApp | None = None) -> uvicorn.Server:
    """Server with a method `run`, which returns after `should_exit` is set; arguments as for `serve`."""
    settings = service.settings

    class LimitedConnection(Connection):
        seconds = settings.seconds

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            for server in self.servers[:1]:
                host, port, *_ = server.sockets[0].getsockname()
                started(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    return Server(
        uvicorn.Config(
            app or application(service, routers),
            host=settings.host,
            port=settings.port,
            loop="asyncio" if WINDOWS else "uvloop",
            http=LimitedConnection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            timeout_graceful_shutdown=round(settings.drain),
        )
    )


class Connection(HttpToolsProtocol):
    """Uvicorn's fast protocol, with limits for request heads and for clients that do not read the response.

    Uvicorn limits the size of a head only in its slower h11 protocol, and nowhere the time that a head may take. The guard sees
    only requests with a complete head.
    """

    seconds = 30.0
    """Time limit for the head of a request, and for a client that does not read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._head = 0  # bytes of the unfinished head; 0 without one
        self._in_body = False
        self._completed = False  # whether a head or a body ended in the current piece

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect("head")

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in self._timers.values():
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes in pieces, so that a head beyond the limit is refused."""
        while data and not self.transport.is_closing():
            size = len(data) if self._in_body else HEAD - self._head
            piece, data = data[:size], data[size:]
            if not piece:
                self.send_400_response(f"the head of the request has more than {HEAD:,} bytes")
                return
            previous, self._completed = self._head, False
            super().data_received(piece)
            if not self._in_body and not self._completed:
                self._head = previous + len(piece)
        if self._head:
            self._expect("head")

    def on_message_begin(self) -> None:
        self._head = 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head, self._in_body, self._completed = 0, True, True
        self._forget("head")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body, self._completed = False, True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._forget("head")
        content = problem_bytes(400, "the request is not valid HTTP" if msg.startswith("Invalid") else msg)
        headers = (b"content-type", PROBLEM.encode()), (b"content-length", b"%d" % len(content)), (b"connection", b"close")
        head = b"".join(name + b": " + value + b"\r\n" for name, value in (*headers, *HEADERS))
        self.transport.write(STATUS_LINE[400] + head + b"\r\n" + content)
        self._close()

    def pause_writing(self) -> None:
        self._expect("reader")
        super().pause_writing()

    def resume_writing(self) -> None:
        self._forget("reader")
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _close(self) -> None:
        """Close the connection once the response is sent; abort it if the client does not read."""
        if not self.transport.is_closing():
            self.transport.close()
            self._expect("reader")

    def _expect(self, event: str) -> None:
        """Abort the connection unless `_forget` is called in time."""
        if event not in self._timers:
            self._timers[event] = self.loop.call_later(self.seconds, self.transport.abort)

    def _forget(self, event: str) -> None:
        if timer := self._timers.pop(event, None):
            timer.cancel()


class _LogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if message.startswith("{"):
            return message
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "level": record.levelname.lower(), "message": message}
        if record.exc_info and flags.debug:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Log to standard error in JSON lines during the block."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormatter())
    log, uvicorn_log = logging.getLogger("fontes.server"), logging.getLogger("uvicorn")
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.WARNING if flags.quiet else logging.INFO)
    uvicorn_log.addHandler(handler)
    uvicorn_log.setLevel(logging.CRITICAL)  # the guard logs requests
    try:
        yield
    finally:
        for logger in (log, uvicorn_log):
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
        log.propagate = True
