"""Indexes of the format before: searched as they are, and written anew by a merge."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fontes import Index
from fontes.core import IndexFormatError
from fontes.index import inversion, writer
from fontes.lexical import impacts
from fontes.storage.compiled import load

DOCS = [(f"d{n}", f"fox {'dog ' * (n % 4)}w{n % 11} é{n}") for n in range(400)]
TOPICS = {"1": "fox w3", "2": "dog w7 é5"}


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def close(lists: inversion.ListsWriter) -> dict[str, int]:
        for file in lists._files():
            file.close()
        for name in ("", ".bounds"):
            (lists._folder / f"varints{name}.npy").rename(lists._folder / f"postings{name}.npy")
        return lists._counts

    with monkeypatch.context() as patch:
        patch.setattr(inversion.ListsWriter, "close", close)
        patch.setattr(writer, "VERSION", 2)
        Index.build(DOCS, tmp_path / "older.index", positions=True)
    return tmp_path / "older.index"


@pytest.mark.parametrize("model", ["bm25", "tfidf", "ql"])
def test_an_older_index_gives_the_same_runs_before_and_after_a_merge_which_writes_the_present_format(
    older: Path, tmp_path: Path, model: str
) -> None:
    fresh = Index.build(DOCS, tmp_path / "fresh.index", positions=True)
    expected = getattr(fresh, model)()(TOPICS)
    index = Index.open(older)
    index.check(deep=True)
    assert index.info()["format"] == 2
    assert getattr(index, model)()(TOPICS) == expected
    index.merge()
    assert index.info()["format"] == fresh.info()["format"] > 2
    assert getattr(index, model)()(TOPICS) == expected
    assert index.fingerprint == fresh.fingerprint
    for file in fresh.path.glob("segment-*/*.npy"):
        assert (next(older.glob("segment-*")) / file.name).read_bytes() == file.read_bytes()


def test_an_older_index_takes_additions_and_deletions(older: Path, tmp_path: Path) -> None:
    shutil.copytree(older, tmp_path / "copy.index")
    index = Index.open(tmp_path / "copy.index")
    index.add([("new", "fox w3 w3")])
    index.delete(["d3"])
    expected = Index.build([*DOCS[:3], *DOCS[4:], ("new", "fox w3 w3")], tmp_path / "fresh.index")
    assert index.bm25()(TOPICS) == expected.bm25()(TOPICS)
    assert index.info()["format"] == expected.info()["format"]


def test_a_search_of_a_large_older_index_does_not_wait_until_its_postings_are_packed(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load()
    expected = Index.open(older).bm25().search("fox w3", 5).ids
    monkeypatch.setattr(impacts, "MANY_POSTINGS", 1)
    packing, go_on, complete = threading.Event(), threading.Event(), impacts._complete

    def wait(*arguments: Any) -> None:
        packing.set()
        go_on.wait(60)
        complete(*arguments)

    monkeypatch.setattr(impacts, "_complete", wait)
    try:
        assert Index.open(older).bm25().search("fox w3", 5).ids == expected
        assert packing.is_set()
    finally:
        go_on.set()


def test_damaged_postings_of_an_older_index_are_an_error(older: Path) -> None:
    (file,) = older.glob("segment-*/postings.npy")
    postings = np.load(file)
    postings[-3:] = 0xFF
    np.save(file, postings)
    with pytest.raises(IndexFormatError, match=r"older\.index.*damaged"):
        Index.open(older).bm25()({"1": " ".join(Index.open(older).terms)})
