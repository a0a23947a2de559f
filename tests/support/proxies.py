"""A reverse proxy that serves another server under a path, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from support.serving import Running

PREFIX = "/search-app"


@contextmanager
def proxy(running: Running, strips: bool) -> Iterator[str]:
    """The address of a reverse proxy in front of a server; everything outside its prefix is 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not f"{self.path}/".startswith((f"{PREFIX}/", f"{PREFIX}?")):
                self.send_error(404, "outside of the prefix")
                return
            headers = {**self.headers, "Host": running.address.removeprefix("http://")}
            if "Origin" in headers:
                headers["Origin"] = running.address
            inside = self.path.removeprefix(PREFIX) if strips else self.path
            answer = httpx.request(self.command, running.address + inside, headers=headers, content=body)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in ("content-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
