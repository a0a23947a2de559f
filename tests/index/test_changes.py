"""What additions and deletions do to ids that come twice, and when segments are merged for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

from fontes.core import IndexFormatError
from fontes.index import Change, Index
from fontes.index.segment import Leaf

TWICE = [("a", "first fox"), ("b", "dog"), ("a", "second fox"), ("c", "dog"), ("a", "last fox"), ("b", "last dog")]


def texts(index: Index) -> list[tuple[str, str]]:
    return [(doc.id, doc.text) for doc in index.docs(index.ids)]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build([("z", "fox"), ("a", "an older fox"), ("y", "dog")], tmp_path / "x", threads=1)


def test_of_an_id_that_comes_twice_the_last_document_replaces_all_others(index: Index, fontes: Any) -> None:
    assert index.add(TWICE, duplicates="replace", threads=1) == Change(3, 1, 0, 0, 5, 2)
    expected = [("z", "fox"), ("y", "dog"), ("c", "dog"), ("a", "last fox"), ("b", "last dog")]
    for state in (index, Index.open(index.path)):
        assert texts(state) == expected
        assert [hit.id for hit in state.bm25(threads=1).search("fox")] == ["z", "a"]
        state.check(deep=True)
    assert fontes("check", index.path, "--deep")[0] == 0
    index.delete("b")
    index.check(deep=True)
    index.merge(threads=1)
    index.check(deep=True)
    assert texts(index) == expected[:-1]


def test_of_an_id_that_comes_twice_the_first_document_stays_where_others_are_skipped(index: Index) -> None:
    assert index.add(TWICE, duplicates="skip", threads=1) == Change(2, 0, 4, 0, 5, 2)
    assert texts(index) == [("z", "fox"), ("a", "an older fox"), ("y", "dog"), ("b", "dog"), ("c", "dog")]
    index.check(deep=True)


def test_a_deep_check_finds_an_id_that_two_documents_have(index: Index) -> None:
    """Only deleted ones may share it."""
    index.add(TWICE, duplicates="replace", threads=1)
    leaf = index.state.leaves[1]
    assert leaf.dead is not None
    leaf.check()
    with pytest.raises(IndexFormatError, match="a document id occurs twice"):
        leaf.segment.check_ids(np.array([True, False, False, False, False, False]))
    with pytest.raises(IndexFormatError, match="a document id occurs twice"):
        Leaf(leaf.segment).check()


@each(("documents", "deleted", "stored"), [(8, 4, 8), (8, 5, 3), (9, 4, 9), (9, 5, 4)])
def test_a_segment_is_written_anew_when_more_than_half_of_it_is_deleted(
    tmp_path: Path, documents: int, deleted: int, stored: int
) -> None:
    index = Index.build([(f"d{n}", "fox") for n in range(documents)], tmp_path / "x", threads=1)
    index.delete([f"d{n}" for n in range(deleted)])
    (segment,) = index.state.manifest["segments"]
    assert segment["documents"] == stored
    assert (segment["deleted"] is None) == (stored < documents)
    assert index.ids.tolist() == [f"d{n}" for n in range(deleted, documents)]


def test_a_large_segment_is_not_written_again_for_a_few_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.index.draft.MIN_TIER_DOCUMENTS", 10)
    index = Index.build([(f"d{n}", "fox") for n in range(200)], tmp_path / "x", threads=1)
    (large,) = index.state.manifest["segments"]
    sizes = []
    for n in range(20):
        index.add([(f"e{n}", "dog")], threads=1)
        sizes.append([leaf.documents for leaf in index.state.leaves])
        assert index.state.manifest["segments"][0] == large
    assert max(map(len, sizes[:12])) <= 4
    assert sizes[2:4] == [[200, 1, 1, 1], [200, 4]]
    assert max(map(len, sizes)) <= 7
    assert sum(sizes[-1]) == 220
    index.check(deep=True)
