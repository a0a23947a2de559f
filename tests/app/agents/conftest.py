"""What the tests of the tools share: a service over two small collections, and logs that are written for them."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes import Doc
from fontes.app.agents.calls import Tools
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings

LONG = " ".join(f"Sentence {number} of the long report tells of pump {number % 7} and of the tide." for number in range(400))
COPY = "The ferry Aldous left the quay at noon with forty passengers and a crew of six in calm weather and light fog"
DOCS = [
    Doc("long", LONG, "Report", {"year": 2019}),
    Doc("a", f"{COPY}.", "Ferry", {"year": 2020, "kind": "news"}),
    Doc("b", f"{COPY}, it was said.", "Ferry", {"year": 2021, "kind": "news"}),
    Doc("c", "A ferry is a ship that carries passengers over a river or a strait.", "Ferries", {"year": 2021, "kind": "wiki"}),
    Doc("ü 5", 'Přívaly vody: 東京 a ferry of the café; "quoted"\n\\ text.', "Déjà vu", {}),
]

Call = Callable[..., Any]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    ft.Index.build(ft.datasets.samples.harbour.corpus, folder / "harbour.index", analyzer="english", threads=1)
    ft.Index.build(DOCS, folder / "ferries.index", analyzer="english", threads=1)
    return folder


@pytest.fixture(scope="session")
def tools(folder: Path) -> Iterator[Tools]:
    service = Service(
        [folder / "harbour.index", folder / "ferries.index"], ServerSettings(seconds=300)
    )  # loops may compile first
    yield Tools(service)
    service.close()


@pytest.fixture
def call(tools: Tools) -> Call:
    """Calls a tool, which must succeed; gives the values of the answer."""

    def called(name: str, **arguments: Any) -> Any:
        answer = asyncio.run(tools.call(name, arguments))
        assert not answer.is_error, answer.text
        return json.loads(answer.text)

    return called


@pytest.fixture
def refused(tools: Tools) -> Call:
    """Calls a tool, which must fail; gives the sentence."""

    def called(name: str, **arguments: Any) -> str:
        answer = asyncio.run(tools.call(name, arguments))
        assert answer.is_error
        assert answer.documents == ()
        return answer.text

    return called


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Writes a log of calls: (session, tool, arguments, documents), a minute apart; further values by name."""

    def written(*calls: tuple[str, str, dict[str, Any], list[str]], name: str = "calls-1.jsonl", **more: Any) -> Path:
        place = tmp_path / "log"
        place.mkdir(exist_ok=True)
        with (place / name).open("a", encoding="utf-8") as file:
            for minute, (session, tool, arguments, documents) in enumerate(calls):
                values = {"time": f"2026-01-01T10:{minute:02}:00+00:00", "session": session, "client": "c 1", "tool": tool}
                values |= {"arguments": arguments, "documents": documents, "index": "harbour", "pipeline": "bm25"}
                values |= {"fingerprint": "f", "expression": "bm25()"}
                values |= {"tokens": 100, "ms": 2.0, "error": "", **more}
                file.write(json.dumps(values) + "\n")
        return place

    return written
