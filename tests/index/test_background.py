"""Merges of large segments beside the writes of a server."""

from pathlib import Path
from typing import Any

import pytest
from support.hashed_encoder import Hashed
from support.small import small_merges

from fontes import Doc, Index
from fontes.core import IndexFormatError
from fontes.core.work import work
from fontes.index import draft
from fontes.index.writer import BusyError, merged_aside, rewrite, writing

WORDS = ("well", "pump", "water", "stone")


@pytest.fixture(autouse=True)
def _small_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    small_merges(monkeypatch)


def docs(first: int, last: int) -> list[Doc]:
    return [Doc(f"d{n}", f"the {WORDS[n % 4]} {WORDS[n % 3]} number{n}") for n in range(first, last)]


def write(index: Index, new: list[Doc], deleted: tuple[str, ...] = ()) -> None:
    rewrite(index.state, lambda state: (new, deleted), 5)
    index.refresh()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Three segments of three documents, which a write of a server leaves."""
    index = Index.build(docs(0, 3), tmp_path / "x", positions=True)
    for first in (3, 6):
        write(index, docs(first, first + 3))
    assert [leaf.documents for leaf in index.state.leaves] == [3, 3, 3]
    return index


def same_as_a_build(index: Index, kept: list[Doc], path: Path) -> None:
    expected = Index.build(kept, path, positions=True)
    for query in WORDS:
        assert list(index.bm25().search(query, k=20)) == list(expected.bm25().search(query, k=20))
    index.check()


def test_large_segments_become_one_beside_the_writes(index: Index, tmp_path: Path) -> None:
    with merged_aside(index.state) as install:
        write(index, docs(9, 10))
        write(index, [Doc("d1", "a new well")], ("d4",))
        assert install is not None
        assert install() is not None
    index.refresh()
    assert index.state.leaves[0].segment.documents == 9
    same_as_a_build(index, [*docs(0, 1), *docs(2, 4), *docs(5, 10), Doc("d1", "a new well")], tmp_path / "y")
    assert sorted(file.name for file in index.path.iterdir() if file.name.startswith(".")) == []
    with merged_aside(index.state) as install:
        assert install is None


def test_a_merge_that_another_process_made_first_is_dropped(index: Index, tmp_path: Path) -> None:
    with merged_aside(index.state) as install:
        Index.open(index.path).merge()
        assert install is not None
        assert install() is None
    index.refresh()
    same_as_a_build(index, docs(0, 9), tmp_path / "y")


def test_an_index_built_again_meanwhile_stays_as_it_is(index: Index, tmp_path: Path) -> None:
    with merged_aside(index.state) as install:
        Index.build(docs(20, 22), index.path, overwrite=True)
        assert install is not None
        assert install() is None
    assert len(Index.open(index.path)) == 2


def test_a_merge_whose_files_another_process_removes_is_dropped(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    original, opened = draft.Draft.merge, Index.open(index.path)

    def merge(self: draft.Draft, *args: Any) -> None:
        monkeypatch.setattr(draft.Draft, "merge", original)
        opened.merge()
        original(self, *args)

    monkeypatch.setattr(draft.Draft, "merge", merge)
    with merged_aside(index.state) as install:
        assert install is None
    assert [leaf.documents for leaf in Index.open(index.path).state.leaves] == [9]


def test_a_damaged_segment_is_an_error_that_names_it(index: Index) -> None:
    folder = index.state.leaves[1].segment.folder
    file = next(folder.glob("postings*.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexFormatError, match=folder.name), merged_aside(index.state):
        pass
    assert len(Index.open(index.path).state.leaves) == 3


def test_while_another_process_changes_the_index_the_merged_segment_waits(index: Index) -> None:
    with merged_aside(index.state) as install:
        assert install is not None
        with writing(index.state), pytest.raises(BusyError, match="is being changed"):
            install()
        assert install() is not None


def test_a_progress_that_raises_ends_the_merge_and_leaves_nothing(index: Index) -> None:
    def stop(progress: Any) -> None:
        raise KeyboardInterrupt

    before = sorted(file.name for file in index.path.rglob("*"))
    with pytest.raises(KeyboardInterrupt), work(progress=stop), merged_aside(index.state):
        pass
    assert sorted(file.name for file in index.path.rglob("*")) == before


def test_documents_that_are_all_deleted_meanwhile_leave_no_segment(index: Index) -> None:
    with merged_aside(index.state) as install:
        write(index, docs(9, 10), tuple(f"d{n}" for n in range(9)))
        assert install is not None
        install()
    index.refresh()
    assert [leaf.documents for leaf in index.state.leaves] == [1]


def test_vectors_made_during_the_merge_stay(index: Index) -> None:
    encoder = Hashed()
    with merged_aside(index.state) as install:
        Index.open(index.path).encode(encoder)
        assert install is not None
        install()
    index.refresh()
    assert len(index.state.leaves) == 1
    assert len(index.dense(encoder).search("the well", k=20)) == 9
