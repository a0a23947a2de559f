"""Asks a server for its targets over several connections, each one request after the other, and reports as JSON.

    python load.py PORT CONNECTIONS SECONDS < TARGETS

TARGETS has one target (path and query) a line; they are asked in turn, again from the first after the last. Reports requests
a second, milliseconds of latency ("p50", "p99", "most"), and how many requests failed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from itertools import cycle

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Load:
    """What all connections share: the requests that they send, and what they have measured."""

    def __init__(self, port: int, targets: list[str]) -> None:
        heads = [f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() for target in targets]
        self.requests = cycle(heads)
        self.latencies: list[float] = []
        self.errors = 0
        self.ends = False


class Connection(asyncio.Protocol):
    """Sends a request, and the next one when its answer is complete."""

    def __init__(self, load: Load) -> None:
        self.load = load

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.answer = b""
        self.start = time.perf_counter()
        self.transport.write(next(self.load.requests))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.answer += data
        head, blank, body = self.answer.partition(b"\r\n\r\n")
        if not blank:
            return
        length = LENGTH.search(head)
        if length is None:
            raise SystemExit(f"an answer without Content-Length: {head!r}")
        if len(body) >= int(length[1]) and not self.load.ends:
            self.load.latencies.append(time.perf_counter() - self.start)
            self.load.errors += head.split(b" ", 2)[1] != b"200"
            self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self.load.errors += not self.load.ends


async def measured(port: int, connections: int, seconds: float, targets: list[str]) -> dict[str, float]:
    load, loop = Load(port, targets), asyncio.get_running_loop()
    start = time.perf_counter()
    opened = [await loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(connections)]
    await asyncio.sleep(seconds)
    load.ends, lasted = True, time.perf_counter() - start
    for transport, _ in opened:
        transport.close()
    if not load.latencies:
        raise SystemExit(f"no answer in {seconds:g} s")
    ordered = sorted(1e3 * latency for latency in load.latencies)
    last = len(ordered) - 1
    quantiles = {"p50": ordered[last // 2], "p99": ordered[99 * last // 100], "most": ordered[last]}
    return {"rate": len(ordered) / lasted, **quantiles, "errors": load.errors}


if __name__ == "__main__":
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    print(json.dumps(run(measured(port, connections, seconds, sys.stdin.read().splitlines()))))
