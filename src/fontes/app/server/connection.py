"""Connections that end: those on which a request never gets complete, or whose client does not read."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from .guard import HEADERS
from .problems import MEDIA, problem_body

HEAD = 64 << 10  # bytes of a request's first lines


class Connection(HttpToolsProtocol):
    """A connection that is closed when the head of a request takes too long or is too large, or nobody reads the answer.

    Uvicorn itself closes idle connections; the limits of requests that have begun are in `guard`.
    """

    patience = 30.0
    """Seconds that a request's head may take, and a client that does not read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._head = 0  # bytes of the head so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect("head")

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in self._timers.values():
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or not self.cycle.more_body:
            self._head += len(data)
            if self._head > HEAD:
                self.send_400_response(f"the head of the request has more than {HEAD:,} bytes")
                return
        super().data_received(data)
        if self._head:  # is not complete, which most are at once
            self._expect("head")

    def on_headers_complete(self) -> None:
        self._head = 0
        self._forget("head")
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._forget("head")
        content = problem_body(400, "this is no request that HTTP knows" if msg.startswith("Invalid") else msg)
        head = [
            STATUS_LINE[400],
            f"content-type: {MEDIA}\r\ncontent-length: {len(content)}\r\nconnection: close\r\n".encode(),
            *(name + b": " + value + b"\r\n" for name, value in HEADERS),
        ]
        self.transport.write(b"".join([*head, b"\r\n", content]))
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
        """Closes the connection, at once where the client does not read what is left."""
        if not self.transport.is_closing():
            self.transport.close()
            self._expect("reader")

    def _expect(self, what: str) -> None:
        if what not in self._timers:
            self._timers[what] = self.loop.call_later(self.patience, self._abort)

    def _forget(self, what: str) -> None:
        if timer := self._timers.pop(what, None):
            timer.cancel()

    def _abort(self) -> None:
        self.transport.abort()
