"""A small server of the OpenAI-compatible protocol, which answers by a script, in a thread of this process."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-canary-4f1d0c77e2"


@dataclass
class Answer:
    """How the server answers a request.

    Args:
        text: The text of the answer.
        status: The status; above 299 the text is the message of an error.
        headers: Further headers.
        top: Log-probabilities of first tokens.
        seconds: Waits before it answers.
        cut: Closes the connection in the middle of the body.
        raw: The body itself.
        usage: Tokens of prompt and answer; None says nothing.
        finish: Why the answer ended.
    """

    text: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    top: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False
    raw: bytes | None = None
    usage: tuple[int, int] | None = (10, 2)
    finish: str = "stop"

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status > 299:
            return json.dumps({"error": {"message": self.text}}).encode()
        top = [{"token": token, "logprob": value} for token, value in self.top.items()]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text},
            "finish_reason": self.finish,
            "logprobs": {"content": [{"token": "", "logprob": 0.0, "top_logprobs": top}]},
        }
        usage = {} if self.usage is None else {"prompt_tokens": self.usage[0], "completion_tokens": self.usage[1]}
        return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


Script = Callable[[dict[str, Any], int], "Answer | str"]
"""From a request and the number of times that its prompt came before, to an answer."""


@dataclass
class ModelServer:
    """A server that answers, and what it was asked.

    Args:
        address: Its base URL.
        requests: Bodies of the requests.
        headers: Their headers.
        prompts: How often each prompt came.
        most: The greatest number of requests at a time.
    """

    address: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    prompts: Counter[str] = field(default_factory=Counter)
    most: int = 0
    running: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def prompt_of(request: dict[str, Any]) -> str:
    return json.dumps([request["messages"], request.get("temperature")])


@contextlib.contextmanager
def model_server(script: Script) -> Iterator[ModelServer]:
    server = ModelServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions"
            with server.lock:
                server.running += 1
                server.most = max(server.most, server.running)
                before = server.prompts[prompt_of(request)]
                server.prompts[prompt_of(request)] += 1
                server.requests.append(request)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
            try:
                answer = script(request, before)
                self.answer(answer if isinstance(answer, Answer) else Answer(answer))
            except OSError:
                self.close_connection = True
            finally:
                with server.lock:
                    server.running -= 1

        def answer(self, answer: Answer) -> None:
            time.sleep(answer.seconds)
            body = answer.body()
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if answer.cut else body)
            self.close_connection = answer.cut

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    listening.handle_error = lambda *arguments: None  # type: ignore[method-assign]  # clients that are killed
    server.address = f"http://127.0.0.1:{listening.server_address[1]}/v1"
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(10)
