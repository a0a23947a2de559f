"""Running a server until it is told to end: connections, signals, the log."""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from fastapi import APIRouter

from ...core.errors import FontesError
from ..flags import flags
from .application import application
from .connection import Connection
from .memory import give_large_back
from .service import Service


def serve(service: Service, routers: Sequence[APIRouter] = (), started: Callable[[str], None] = lambda address: None) -> None:
    """Serves until SIGTERM or SIGINT comes, and then finishes what runs.

    Args:
        service: The service.
        routers: More addresses.
        started: Is called with the address when requests may come.

    Raises:
        FontesError: The address cannot be used.
    """
    _allow_connections()
    give_large_back()
    server = server_of(service, routers, started)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda number, frame: None)  # uvicorn raises what it has caught once more when it is done
    with _logging(), contextlib.suppress(SystemExit):
        server.run()
    if not server.started:
        settings = service.settings
        raise FontesError(f"the server cannot listen at {settings.host}, port {settings.port}: is another one there?")


def server_of(
    service: Service, routers: Sequence[APIRouter] = (), started: Callable[[str], None] = lambda address: None
) -> uvicorn.Server:
    """The server, which `run` starts and `should_exit` ends; the arguments are those of `serve`."""
    settings = service.settings

    class Limited(Connection):
        patience = settings.seconds

    config = uvicorn.Config(
        application(service, routers),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=Limited,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(settings.drain),
    )
    return _Server(config, started)


class _Server(uvicorn.Server):
    """Uvicorn's server, which says where it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[str], None]) -> None:
        super().__init__(config)
        self._said = started

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers[:1]:
            host, port, *_ = server.sockets[0].getsockname()
            self._said(f"http://{f'[{host}]' if ':' in host else host}:{port}")


class _Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if message.startswith("{"):
            return message
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "level": record.levelname.lower(),
            "message": message,
        }
        if record.exc_info and flags.debug:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """One line of JSON a request on standard error, and one for whatever else there is to say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    log, uvicorns = logging.getLogger("fontes.server"), logging.getLogger("uvicorn")
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.WARNING if flags.quiet else logging.INFO)
    uvicorns.addHandler(handler)
    uvicorns.setLevel(logging.CRITICAL)  # what happens to requests is said by `guard`
    try:
        yield
    finally:
        for logger in (log, uvicorns):
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
        log.propagate = True


def _allow_connections() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
