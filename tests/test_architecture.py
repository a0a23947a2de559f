"""ARCHITECTURE.md: each of its five journeys is run, and passes through the files that the page names."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import fontes as ft

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "fontes"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCS = [{"id": f"d{i}", "text": f"hot spring {i} of a limestone karst", "metadata": {"year": 2000 + i}} for i in range(20)]
VARIADIC = (0x04, 0x08)  # CO_VARARGS, CO_VARKEYWORDS
PARTS = 50  # of a list or a mapping that are looked at


class Journey:
    """The functions of fontes that are called with a value: an argument is the value, or holds it.

    Without a value, all functions that are called.
    """

    def __init__(self, value: object = None, depth: int = 2) -> None:
        self.value, self.depth = value, depth
        self.text = str(value)
        self.functions: dict[tuple[str, str], None] = {}
        self.recording = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if (
            event != "call"
            or not self.recording
            or code.co_name.startswith("<")
            or not code.co_filename.startswith(str(SOURCE))
        ):
            return
        function = Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_qualname
        count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in VARIADIC)
        if function in self.functions:
            return
        if self.value is None or any(self.holds(frame.f_locals.get(name), self.depth) for name in code.co_varnames[:count]):
            self.functions[function] = None

    def holds(self, value: Any, depth: int) -> bool:
        match value:
            case int() | float():
                return bool(value == self.value)
            case str():
                return self.text in value
            case bytes() | bytearray() | memoryview():
                return self.text.encode() in bytes(value)
            case np.ndarray():
                return value.dtype == np.uint8 and self.text.encode() in value.tobytes()
            case list() | tuple():
                parts = list(value)[:PARTS]
            case dict():
                parts = list(value.values())[:PARTS]
            case _ if type(value).__module__.startswith(("fontes", "pydantic", "starlette")):
                slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if name[:2] != "__"]
                parts = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]
            case _:
                return False
        return depth > 0 and any(self.holds(part, depth - 1) for part in parts)

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Records what runs inside, in threads too that are begun inside or while `in_threads` is."""
        with self.in_threads():
            self.recording = True
            sys.setprofile(self)
            try:
                yield
            finally:
                sys.setprofile(None)
                self.recording = False

    @contextmanager
    def in_threads(self) -> Iterator[None]:
        threading.setprofile(self)
        try:
            yield
        finally:
            threading.setprofile(None)


def check(title: str, journey: Journey) -> None:
    """The files that a journey passes through are those of its section, and the functions named there are called."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    [text] = [part for part in section if part.startswith(title)]
    named = set(re.findall(r"`([a-z0-9_/]+\.py)`", text))
    missing, extra = sorted(journey.files - named), sorted(named - journey.files)
    assert not missing, f"ARCHITECTURE.md, {title}: passes through {missing} as well"
    assert not extra, f"ARCHITECTURE.md, {title}: does not pass through {extra}"
    rows = re.findall(r"^\| `([a-z0-9_/]+\.py)` \| ([^|]*) \|", text, flags=re.MULTILINE)
    for file, functions in rows:
        names = [function for own, function in journey.functions if own == file]
        for name in re.findall(r"`([A-Za-z_.]+)`", functions):
            called = any(one.endswith(name) or one.startswith(f"{name}.") for one in names)
            assert called, f"ARCHITECTURE.md, {title}: {name} of {file} is not called"


def run_twice(action: Callable[[int], object], journey: Journey) -> Journey:
    """Records an action the second time, when all is loaded and compiled."""
    with ft.work(threads=1):
        action(1)
        with journey.recorded():
            action(2)
    return journey


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("journeys") / "springs.index", threads=1)


def test_the_page_is_short_and_names_what_exists() -> None:
    assert len(PAGE.splitlines()) <= 200
    for name in re.findall(r"`([a-z0-9_/]+(?:\.py|/))`", PAGE):
        assert (SOURCE / name).exists() or (ROOT / name).exists(), name
    drawing = PAGE.split("```")[1]
    for room in (path.parent.name for path in SOURCE.glob("*/__init__.py")):
        assert re.search(rf"\b{room}\b", drawing), f"the drawing lacks {room}"


def test_a_query_to_its_hit(index: ft.Index) -> None:
    bm25 = index.bm25()
    journey = run_twice(lambda _: bm25.search("limestone karst", k=5), Journey())
    check("A query to its hit", journey)
    assert len(journey.functions) <= 40


def test_a_document_to_its_bytes(tmp_path: Path) -> None:
    docs = [{"id": "d1", "text": "a hydrothermal geyser"}]
    check("A document to its bytes", run_twice(lambda n: ft.Index.build(docs, tmp_path / str(n)), Journey("hydrothermal")))


def test_an_option_to_the_kernel(index: ft.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    from fontes.app import cli

    def search(number: int) -> None:
        monkeypatch.setattr(sys, "argv", ["fontes", "search", str(index.path), "limestone karst", "--k1", f"{number}.2345"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code

    check("`--k1` to the kernel", run_twice(search, Journey(2.2345)))


def test_a_served_filter(index: ft.Index) -> None:
    pytest.importorskip("fastapi")
    from support.serving import serving

    journey = Journey("year >= 2012")
    with journey.in_threads(), serving(index.path) as server:
        server.get("/search", params={"q": "limestone", "where": "year >= 2010"})
        journey.recording = True
        server.get("/search", params={"q": "limestone", "where": "year >= 2012"})
        journey.recording = False
    check("A served filter", journey)
    assert len(journey.functions) <= 50


def test_a_training_pair_to_its_loss(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    from support.tiny_cross_encoder import save_cross_encoder
    from support.tiny_training import SETTINGS, examples

    from fontes.train import train_cross_encoder

    base, pairs = save_cross_encoder(tmp_path / "base"), examples(4, 1)
    settings = SETTINGS.with_(loss="margin", epochs=1, held_out=0.0)
    query = next(iter(pairs)).query
    journey = run_twice(lambda n: train_cross_encoder(pairs, tmp_path / str(n), base, settings), Journey(query, depth=4))
    check("A training pair to its loss", journey)
