"""Merges of large segments beside the writes to a served index."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.serving import springs, writable
from support.small import small_merges

from fontes import Index
from fontes.app.server import writing
from fontes.core.errors import IndexFormatError
from fontes.core.work import reporter
from fontes.index import draft


def always_piled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first segment be one to merge."""
    monkeypatch.setattr(writing, "piled", lambda *args: (0, 1))
    monkeypatch.setattr(draft.Draft, "large_pile", lambda self: (0, 1))


def test_large_segments_are_merged_beside_the_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_merges(monkeypatch)
    started, goes_on = threading.Event(), threading.Event()
    merge = draft.Draft.merge

    def slow_merge(*args: Any) -> None:
        started.set()
        assert goes_on.wait(60)
        merge(*args)

    path = springs(tmp_path)
    with writable(path) as running:
        monkeypatch.setattr(draft.Draft, "merge", slow_merge)
        for batch in range(3):
            lines = "\n".join(f'{{"_id": "b{batch}-{n}", "text": "a deep well"}}' for n in range(3))
            answer = running.client.post("/documents", content=lines)
            assert answer.status_code == 200, answer.text
        assert answer.json()["segments"] == 4
        assert started.wait(60)
        assert running.client.put("/documents/one", json={"text": "a deep well"}).status_code == 201
        assert running.client.delete("/documents/b0-0").status_code == 200
        goes_on.set()
        limit = time.monotonic() + 60
        while len(Index.open(path).state.leaves) > 3:
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert len(running.get("/search?q=well&k=20")["hits"]) == 9
        assert running.client.delete("/documents/b1-0").status_code == 200
    with writable(path) as running:
        assert len(running.get("/search?q=well&k=20")["hits"]) == 8


def test_a_server_that_ends_gives_up_its_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()

    def endless(self: Any, first: int, last: int) -> None:
        report = reporter()
        started.set()
        while True:
            report(None)
            time.sleep(0.01)

    always_piled(monkeypatch)
    path = springs(tmp_path)
    with writable(path) as running:
        monkeypatch.setattr(draft.Draft, "merge", endless)
        assert running.client.put("/documents/one", json={"text": "a deep well"}).status_code == 201
        assert started.wait(60)
    assert len(Index.open(path)) == 6
    assert list(path.glob(".merged*")) == []


def test_a_merge_that_fails_is_told_once_and_writes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any) -> None:
        raise IndexFormatError("a file has changed")

    always_piled(monkeypatch)
    with writable(springs(tmp_path)) as running:
        monkeypatch.setattr(draft.Draft, "merge", fails)
        assert running.client.put("/documents/one", json={"text": "a deep well"}).status_code == 201
        limit = time.monotonic() + 60
        while "segments are not merged before the server starts again: a file has changed" not in caplog.text:
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert running.client.put("/documents/two", json={"text": "a deep well"}).status_code == 201
    assert caplog.text.count("a file has changed") == 1
