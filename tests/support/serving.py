"""A real server on a port of this machine, in a thread or in a process of its own, for tests."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from fontes import Doc, Index

TOKEN = "a token of many letters"
DOCS = [
    Doc("s1", "A geyser is a hot spring that erupts from time to time.", "Geysers", {"year": 2019, "kind": "hot"}),
    Doc("s2", "A hot spring is fed by water that the earth has heated.", "Hot springs", {"year": 2020, "kind": "hot"}),
    Doc(
        "s3", "Karst springs lose their water because the limestone is full of caves.", "Karst", {"year": 2020, "kind": "cold"}
    ),
    Doc("a/b?c=1", "An oasis in the desert, with a spring of <b>cold</b> water.", "<i>Oasis</i>", {"kind": "cold"}),
    Doc("ü 5", "Přívaly vody: 東京 the water of a café.", "Déjà vu", {}),
]


@dataclass
class Running:
    """A server that answers.

    Args:
        address: Where.
        client: Asks it.
        service: What it serves; None of one in another process.
    """

    address: str
    client: httpx.Client
    service: Any = None

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.address.removeprefix("http://").rpartition(":")
        return host, int(port)

    def get(self, path: str, **options: Any) -> Any:
        """The JSON of an answer that must be a good one."""
        response = self.client.get(path, **options)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, value: Any, status: int = 200) -> Any:
        response = self.client.post(path, json=value)
        assert response.status_code == status, response.text
        return response.json()

    def problem(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """The status and the sentence of an answer that must be a problem."""
        response = self.client.request(method, path, **options)
        assert response.headers["content-type"] == "application/problem+json", response.text
        values = response.json()
        assert set(values) == {"type", "title", "status", "detail"}
        assert values["status"] == response.status_code
        assert "Traceback" not in response.text
        return response.status_code, values["detail"]


FOLDER = tempfile.TemporaryDirectory()


def springs(folder: Path) -> Path:
    """An index of a few documents: a copy of one that is built once."""
    return Path(shutil.copytree(_built(), folder / "springs.index"))


@cache
def _built() -> Path:
    return Index.build(DOCS, Path(FOLDER.name) / "springs.index", threads=1).path


@contextlib.contextmanager
def serving(
    *paths: Path, pipelines: Mapping[str, str] | None = None, rewriters: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Running]:
    """A server in a thread of this process."""
    from fontes.app.server.service import Service
    from fontes.app.server.settings import ServerSettings

    service = Service(paths, ServerSettings(port=0, **settings), pipelines, rewriters)
    with in_thread(service) as (address, client):
        yield Running(address, client, service)


@contextlib.contextmanager
def writable(path: Path, **settings: Any) -> Iterator[Running]:
    """A server whose index may be written to, with a client that sends the token."""
    with serving(path, writable=True, token=TOKEN, **settings) as running:
        running.client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield running


@contextlib.contextmanager
def in_thread(service: Any, routers: Sequence[Any] = (), app: Any = None) -> Iterator[tuple[str, httpx.Client]]:
    """The address of a service that is ready, in a thread of this process, and a client of it."""
    from fontes.app.server.running import server_of

    addresses: queue.Queue[str] = queue.Queue()
    server = server_of(service, routers, addresses.put, app)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        address = addresses.get(timeout=30)
        with httpx.Client(base_url=address, timeout=30) as client:
            ready(client)
            yield address, client
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def ready(client: httpx.Client) -> None:
    """Waits until a server is ready."""
    limit = time.monotonic() + 120
    while client.get("/ready").status_code != 200:
        assert time.monotonic() < limit
        time.sleep(0.05)


@contextlib.contextmanager
def process(
    *arguments: str | Path, command: str = "serve", program: Sequence[str] = ("-m", "fontes"), **variables: str
) -> Iterator[tuple[subprocess.Popen[str], Running]]:
    """`fontes serve`, or another server's command, in a process of its own; `program` are Python's arguments."""
    words = [sys.executable, *program, command, *map(str, arguments), "--port", "0"]
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert running.stdout
        line = running.stdout.readline()
        assert " at http://" in line, f"{line}{running.stderr.read() if running.stderr and running.poll() is not None else ''}"
        address = line.split(" at ")[1].split()[0].removesuffix("/mcp")
        with httpx.Client(base_url=address, timeout=30) as client:
            ready(client)
            yield running, Running(address, client)
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()
