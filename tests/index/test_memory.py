"""Indexes without a path: a temporary folder that goes with them."""

import gc
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fontes as ft
from fontes.storage.temporary import TemporaryFolder

TEXTS = ["a cat sat", "a dog ran", "the cat ran"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of temporary files."""
    gc.freeze()  # for good: what earlier tests left would be looked through by each collection
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(folder: Path) -> list[str]:
    gc.collect()
    return [path.name for path in folder.iterdir()]


def test_an_index_without_a_path_is_changed_and_searched_like_any_other(folder):
    index = ft.Index.build(TEXTS, positions=True)
    assert index.bm25().search("cat").ids == ["2", "0"]
    index.add([("x", "cat cat")])
    assert index.delete("0").deleted == 1
    index.merge()
    assert index.ids.tolist() == ["1", "2", "x"]
    assert (index.name, len(left(folder))) == ("memory", 1)
    assert index.check() is None
    shutil.copytree(index.path, folder / "kept.index")
    assert ft.Index.open(folder / "kept.index").fingerprint == index.fingerprint


KEPT = {
    "index": lambda index: index,
    "state": lambda index: index.state,
    "stage": lambda index: index.bm25(),
    "run": lambda index: index.bm25()(["cat"]),
    "hit": lambda index: index.bm25().search("cat")[0],
    "pickled": lambda index: pickle.loads(pickle.dumps(index)),
    "opened": lambda index: ft.Index.open(index.path),
    "refreshed": lambda index: (index.add([("x", "y")]), index.state)[1],
}


@pytest.mark.parametrize("what", KEPT)
def test_the_folder_goes_with_the_last_value_that_uses_it(folder, what):
    index = ft.Index.build(TEXTS)
    kept = KEPT[what](index)
    del index
    assert len(left(folder)) == 1
    if what == "hit":
        assert "cat" in kept.doc.text
    del kept
    assert left(folder) == []


def test_two_of_them_are_two_in_a_pipeline():
    first, second = ft.Index.build(TEXTS), ft.Index.build(["a cat"])
    assert 'index="memory_2"' in repr(ft.fuse(first.bm25(), second.bm25()))


def test_a_build_that_fails_leaves_no_folder(folder):
    with pytest.raises(ft.FontesError, match="occurs twice") as caught:
        ft.Index.build([("a", "x"), ("a", "y")])
    assert left(folder) == []
    assert caught
    assert left(folder) == []


def test_a_process_removes_its_folder_and_that_of_a_killed_process(folder):
    environment = {**os.environ, "TMPDIR": str(folder)}

    def run(then: str) -> int:
        code = f"import os\nfrom fontes.storage.temporary import TemporaryFolder\nfolder = TemporaryFolder()\n{then}"
        return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode

    assert run("") == 0
    assert left(folder) == []
    assert run("os.kill(os.getpid(), 9)") != 0
    assert len(left(folder)) == 1
    mine = TemporaryFolder()
    assert left(folder) == [mine.path.name]
    assert run("raise SystemExit(3)") == 3
    assert left(folder) == [mine.path.name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_fork_of_the_process_leaves_the_folder_to_it(folder):
    mine = TemporaryFolder()
    if (child := os.fork()) == 0:
        mine.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert mine.path.is_dir()
