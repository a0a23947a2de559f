"""HTTP connections with a limit on the size of a request's head and on the time that a client may take."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from .guard import HEADERS
from .problems import MEDIA, problem_body

HEAD = 64 << 10  # bytes of a request line with its headers


class Connection(HttpToolsProtocol):
    """A connection that closes when a request's head is too slow or too large, or when the client does not read the answer.

    Uvicorn's httptools protocol has no limits for heads and slow readers. It closes idle connections itself; the limits of
    requests whose head is complete are in `guard`.
    """

    patience = 30.0
    """Seconds that a request's head may take, and a client that does not read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._head = 0  # bytes of an unfinished head, or 0
        self._in_body = False
        self._completed = False  # whether a head or a body ended in the bytes that are being parsed

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect("head")

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in self._timers.values():
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            size = len(data) if self._in_body else HEAD - self._head
            piece, data = data[:size], data[size:]
            if not piece:
                self.send_400_response(f"the head of the request has more than {HEAD:,} bytes")
                return
            before, self._completed = self._head, False
            super().data_received(piece)
            if not self._in_body and not self._completed:
                self._head = before + len(piece)
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
        content = problem_body(400, "the request is not valid HTTP" if msg.startswith("Invalid") else msg)
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
