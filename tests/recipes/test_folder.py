"""The folder that a recipe writes: complete or not at all, whatever was there and whatever kills it."""

import fcntl
import json
import os
import re
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import in_a_child
from support.tiny_recipe import DOCS, PAGES, QRELS, TOPICS, Noted, Tiny, files

import fontes as ft
from fontes.core.work import lines
from fontes.experiments import runner


def test_results_of_another_run_go_with_all_their_files(tmp_path: Path) -> None:
    Tiny(prefix="deep/").run(DOCS, TOPICS, QRELS, tmp_path)
    assert "runs/deep/second.run" in files(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    Tiny().run(DOCS[:2], TOPICS, None, tmp_path)
    runs = ["runs/first.run", "runs/second.run", "runs/sum.run"]
    assert files(tmp_path) == sorted(["experiment.lock", "notes.txt", *PAGES, *runs])
    assert not (tmp_path / "runs" / "deep").exists()


def test_one_process_at_a_time_uses_a_folder(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ft.core.InputError, match="another process writes results into this folder"):
        Tiny().run(DOCS, TOPICS, None, tmp_path)
    os.close(handle)
    Tiny().run(DOCS, TOPICS, None, tmp_path)


def test_a_full_disk_is_an_error_and_the_next_run_goes_on(tmp_path: Path) -> None:
    Tiny().build(DOCS, tmp_path / "indexes")

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        Tiny().run(DOCS, TOPICS, QRELS, tmp_path)

    assert in_a_child(fill) == 3
    assert "experiment.lock" not in files(tmp_path)
    result = Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    assert result.runs["first"] == ft.read_run(tmp_path / "runs/first.run")


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    assert in_a_child(lambda: Tiny(note=Noted(kills=True)).run(DOCS, TOPICS, QRELS, tmp_path)) == -signal.SIGKILL
    assert files(tmp_path) == []
    said: list[str] = []
    result = Tiny().run(DOCS, TOPICS, QRELS, tmp_path, progress=lines(said.append))
    assert said[0] == "indexing: 3 documents, an existing index is used"
    assert any(re.fullmatch("first: 4 documents, .* s, 3 topics, from the cache", line) for line in said)
    assert result.runs == Tiny().run(DOCS, TOPICS, QRELS, tmp_path / "other").runs


@pytest.mark.parametrize("written", ["write_run", "write"])
def test_a_kill_while_results_are_written_leaves_no_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    Tiny(prefix="old-").run(DOCS, TOPICS, QRELS, tmp_path)

    def killed() -> None:
        kept: Callable[..., None] = getattr(runner, written)

        def write_and_die(*given: Any, **named: Any) -> None:
            kept(*given, **named)
            if not (tmp_path / "experiment.lock").exists():  # while results are written
                os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(runner, written, write_and_die)
        Tiny(prefix="a-").run(DOCS, TOPICS, QRELS, tmp_path)

    assert in_a_child(killed) == -signal.SIGKILL
    assert "experiment.lock" not in files(tmp_path)
    Tiny(prefix="b-").run(DOCS, TOPICS, None, tmp_path)
    assert files(tmp_path) == sorted(["experiment.lock", *PAGES, "runs/b-second.run", "runs/first.run", "runs/sum.run"])


def test_what_was_damaged_is_made_again(tmp_path: Path) -> None:
    Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    for path in (*tmp_path.glob("indexes/*/*/*.npy"), *tmp_path.glob("cache/*/*"), tmp_path / "experiment.lock"):
        path.write_bytes(b"{")
    said: list[str] = []
    again = Tiny().run(DOCS, TOPICS, None, tmp_path, progress=lines(said.append)).runs
    assert again == Tiny().run(DOCS, TOPICS, None, tmp_path / "other").runs
    assert said[0] == "indexing: 0 documents, the index is damaged, so it is built again"
    assert said[1].startswith("indexing: 3 documents, ")
    assert not any("found before" in line for line in said)
    assert not (tmp_path / "report.md").exists()


def test_a_list_of_files_that_leads_out_of_the_folder_deletes_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    folder = tmp_path / "out"
    Tiny().run(DOCS, TOPICS, None, folder)
    names = ["../mine.txt", "runs/../../mine.txt", str(tmp_path / "mine.txt"), 3]
    (folder / "experiment.lock").write_text(json.dumps({"files": names}))
    Tiny().run(DOCS, TOPICS, None, folder)
    assert (tmp_path / "mine.txt").read_text() == "mine"
