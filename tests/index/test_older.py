"""Indexes of the formats before: searched as they are, and written anew by a merge."""

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.older import rewrite_postings

from fontes import Index
from fontes.core import IndexFormatError, Run
from fontes.core.strings import Strings
from fontes.index import inversion, packed, packing, writer
from fontes.index.postings import PostingLists
from fontes.lexical import impacts
from fontes.storage.compiled import load

DOCS = [(f"d{n}", f"fox {'dog ' * (n % 4)}w{n % 11} é{n}") for n in range(400)]
TOPICS = {"1": "fox w3", "2": "dog w7 é5"}


@pytest.fixture
def older(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of version 2, or of the parameter."""

    def close(lists: inversion.ListsWriter) -> dict[str, int]:
        counts = complete(lists)
        rewrite_postings(lists._folder)
        return counts

    writer_facts = writer.writer_facts
    complete, version = inversion.ListsWriter.close, getattr(request, "param", 2)
    with monkeypatch.context() as patch:
        if version == 2:
            patch.setattr(inversion.ListsWriter, "close", close)
        patch.setattr(packing, "DOCUMENTS_PER_ROW", 0)  # as in headers of version 3
        patch.setattr(writer, "writer_facts", lambda: {**writer_facts(), "version": version})
        Index.build(DOCS, tmp_path / "older.index", positions=True)
    return tmp_path / "older.index"


@pytest.mark.parametrize("older", [2, 3], indirect=True)
def test_a_merge_of_an_older_index_writes_the_present_format_with_the_same_runs(
    older: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def runs(index: Index) -> list[Run]:
        return [model(TOPICS) for model in (index.bm25(), index.tfidf(), index.ql())]

    fresh = Index.build(DOCS, tmp_path / "fresh.index", positions=True)
    expected = runs(fresh)
    index = Index.open(older)
    index.check(deep=True)
    assert index.info()["format"] == request.node.callspec.params["older"]
    assert runs(index) == expected
    index.merge()
    assert index.info()["format"] == fresh.info()["format"] > 2
    assert runs(index) == expected
    assert index.fingerprint == fresh.fingerprint
    for file in fresh.path.glob("segment-*/*.npy"):
        assert (next(older.glob("segment-*")) / file.name).read_bytes() == file.read_bytes()


def test_lists_of_version_3_are_long_from_fewer_documents_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, df = 150_000, np.array([300, 400])
    docs, tfs = np.concatenate([np.arange(size, dtype=np.int32) * 7 for size in df]), np.ones(700, dtype=np.int32)
    lengths, long_lists = np.bincount(docs, minlength=documents), packed.long_lists
    with monkeypatch.context() as patch:
        patch.setattr(packing, "DOCUMENTS_PER_ROW", 0)
        patch.setattr(packed, "long_lists", lambda df, size, _: long_lists(df, size, packing.OLDER_DOCUMENTS_PER_ROW))
        inversion.write_lists(tmp_path, Strings.of(["a", "b"]).ascending(), df, lengths, lambda first, last: (docs, tfs))
    lists = PostingLists(tmp_path, documents)
    assert lists.is_older
    assert lists.packed.row_of.tolist() == [0, 1]
    for found, expected in zip(lists.postings(np.arange(2)), (docs, tfs), strict=True):
        assert np.array_equal(found, expected)


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
