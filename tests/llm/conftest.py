"""A model server that tests script, in whose environment they run, with stored answers of their own."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.model_server import KEY, ModelServer, Script, model_server

Serve = Callable[[Script], ModelServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    with contextlib.ExitStack() as stack:
        monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("fontes.llm.service.FIRST_WAIT", 0.001)

        def started(script: Script) -> ModelServer:
            server = stack.enter_context(model_server(script))
            monkeypatch.setenv("OPENAI_BASE_URL", server.address)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            return server

        yield started
