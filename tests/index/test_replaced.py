"""An index that another process builds again, merges or removes while it is open: no writer commits a state of lost folders."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.counting_encoder import Counting

from fontes.cluster.shards import STATES, Shards
from fontes.core import FontesError, IndexFormatError
from fontes.index import Index, files, writer
from fontes.index.embeddings import encoding, journal
from fontes.index.leftovers import clean
from fontes.index.state import State
from fontes.text import Analyzer

DOCS = [(f"d{n:02}", f"fox number {n}") for n in range(20)]
NEW = [(f"e{n}", f"dog number {n}") for n in range(5)]
IDS = [doc_id for doc_id, _ in DOCS]


def again(path: Path, **arguments: int) -> None:
    """Builds the index of the same documents anew, as a nightly job does."""
    Index.build(DOCS, path, overwrite=True, threads=1, **arguments)


def merged_back(path: Path) -> None:
    """Changes the index in steps after which it has the same documents, and the same fingerprint, in other folders."""
    index = Index.open(path)
    index.add(NEW, threads=1)
    index.delete([doc_id for doc_id, _ in NEW])
    index.merge(threads=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    again(tmp_path / "x.index")
    return tmp_path / "x.index"


@pytest.mark.parametrize("meanwhile", [again, merged_back])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda index: index.add(NEW, threads=1), IDS + [doc_id for doc_id, _ in NEW]),
        (lambda index: index.delete(["d03"]), [doc_id for doc_id in IDS if doc_id != "d03"]),
        (lambda index: index.merge(threads=1), IDS),
        (lambda index: index.encode(Counting()), IDS),
    ],
    ids=["add", "delete", "merge", "encode"],
)
def test_an_open_index_replaced_by_an_equal_one_is_changed_there(
    path: Path, meanwhile: Callable[[Path], None], change: Callable[[Index], object], expected: list[str]
) -> None:
    index = Index.open(path)
    before = index.fingerprint
    meanwhile(path)
    assert Index.open(path).fingerprint == before
    try:
        change(index)
    except FontesError:  # vectors are of the segments that are open
        index.refresh()
        change(index)
    newest = Index.open(path)
    newest.check(deep=True)
    assert newest.ids.tolist() == index.ids.tolist() == expected
    assert len(newest.bm25(threads=1).search("number", 100)) == len(expected)


def test_an_index_replaced_by_an_equal_one_is_not_damaged(path: Path) -> None:
    index = Index.open(path)
    again(path)
    with pytest.raises(FontesError, match=r"has changed since it was opened; index\.refresh\(\)") as error:
        index.check()
    assert not isinstance(error.value, IndexFormatError)
    assert index.refresh()
    index.check(deep=True)
    assert not index.refresh()


CHANGES: dict[str, tuple[Callable[[Index], object], list[str]]] = {
    "add": (lambda index: index.add(NEW, threads=1), IDS + [doc_id for doc_id, _ in NEW]),
    "delete": (lambda index: index.delete("d03"), [doc_id for doc_id in IDS if doc_id != "d03"]),
    "merge": (lambda index: index.merge(threads=1), IDS),
}


@pytest.mark.parametrize("moment", ["require_all", "Draft", "commit_draft"])
@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_change_during_which_another_index_comes_goes_on_with_that_one(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Index], object],
    expected: list[str],
    moment: str,
) -> None:
    Index.open(path).delete("d01")  # its file is read again before a further deletion
    index, calls = Index.open(path), [0]
    module = State if moment == "require_all" else writer
    original = getattr(module, moment)

    def replacing(*arguments: object) -> object:
        calls[0] += 1
        if calls[0] == 1:
            again(path)
        return original(*arguments)

    monkeypatch.setattr(module, moment, replacing)
    change(index)
    newest = Index.open(path)
    newest.check(deep=True)
    assert newest.ids.tolist() == index.ids.tolist() == expected
    assert "was replaced by another index meanwhile, which is changed in its place" in caplog.text


@pytest.mark.parametrize(
    "change", [lambda index: index.add(NEW), lambda index: index.add(iter(NEW)), lambda index: index.delete("d01")]
)
def test_a_change_during_which_indexes_keep_coming_is_refused_and_leaves_the_last(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Index], object]
) -> None:
    index, commit = Index.open(path), writer.commit_draft

    def committed(*arguments: object) -> object:
        again(path)
        return commit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "commit_draft", committed)
    with pytest.raises(FontesError, match="was replaced by another index meanwhile; nothing was changed"):
        change(index)
    newest = Index.open(path)
    newest.check(deep=True)
    assert newest.ids.tolist() == IDS


def test_no_manifest_is_committed_that_names_a_folder_that_is_not_there(path: Path) -> None:
    """Whoever has removed it; the segment that was added goes, too."""
    index = Index.open(path)
    (segment,) = path.glob("segment-*")
    before = (path / "manifest.json").read_bytes()

    def docs() -> Iterator[tuple[str, str]]:
        yield from NEW
        segment.rename(path.parent / "kept")

    with pytest.raises(IndexFormatError, match=rf"{segment.name}.*is missing"):
        index.add(docs())
    assert (path / "manifest.json").read_bytes() == before
    assert list(path.glob("segment-*")) == []
    (path.parent / "kept").rename(segment)
    Index.open(path).check(deep=True)


def test_no_segment_gets_the_name_of_one_that_may_be_open(path: Path) -> None:
    names = []
    for _ in range(3):
        names += [folder.name for folder in path.glob("segment-*")]
        again(path)
    assert names[1:] == [f"{names[0]}-2", f"{names[0]}-3"]


def test_a_build_that_cannot_place_its_segments_leaves_the_old_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(file.name for file in path.iterdir())

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_manifest", full)
    with pytest.raises(FontesError, match="nothing was changed"):
        again(path)
    assert sorted(file.name for file in path.iterdir()) == before


def test_a_link_to_an_index_leads_all_writers_to_one_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = path.parent / "links" / "y.index"
    link.parent.mkdir()
    link.symlink_to(path)
    locks: list[Path] = []
    for module in (files, writer):
        locked = module.locked
        monkeypatch.setattr(module, "locked", lambda place, locked=locked: (locks.append(place), locked(place))[1])
    Index.open(link).add(NEW)
    again(link)
    assert set(locks) == {path.parent}
    assert link.is_symlink()
    assert Index.open(path).ids.tolist() == IDS
    assert [entry.name for entry in link.parent.iterdir()] == ["y.index"]


def test_an_index_that_is_removed_is_an_error_at_once(path: Path) -> None:
    index = Index.open(path)
    shutil.rmtree(path)
    with pytest.raises(IndexFormatError, match="does not exist"):
        index.add(NEW)
    with pytest.raises(FontesError, match=r"has changed since it was opened"):
        index.encode(Counting())
    segment = index.state.leaves[0].segment
    job = encoding.SegmentEncodingJob(
        "f", "f", None, 4, "float32", segment.ids.tolist(), lambda *_: pytest.fail("nothing is encoded")
    )
    with pytest.raises(FontesError, match="vectors cannot be written: No such file"):
        journal.encode(segment.folder, encoding.VectorEncoding(job), False, lambda _: None)


def test_actors_search_the_state_that_is_asked_for_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "shards"
    Index.build(DOCS, path, shards=2, threads=1)
    index = Index.open(path)
    first = index.state
    shards = Shards(path, Analyzer.of("english"), [1], False)
    old = shards.part(first.identity)
    assert old.ids.tolist() == IDS[10:]
    index.delete(["d15"])
    new = shards.part(index.state.identity)
    assert new.ids.tolist() == [doc_id for doc_id in IDS[10:] if doc_id != "d15"]
    assert shards.part(first.identity) is old
    again(path, shards=2)
    assert index.refresh()
    assert index.fingerprint == first.fingerprint
    newest = shards.part(index.state.identity)
    assert newest is not old
    assert all(leaf.segment.folder.is_dir() for leaf in newest.leaves)
    identities = [first.identity, index.state.identity]
    for number in range(STATES):
        index.delete([IDS[number]])
        identities.append(index.state.identity)
        assert shards.part(identities[-1]).ids.tolist() == IDS[10:]
    for identity in (identities[0], "no state"):
        with pytest.raises(FontesError, match="has changed since it was opened"):
            shards.part(identity)


OTHER = [(f"o{n}", f"bird number {n}") for n in range(9)]
Texts = dict[str, str]


class Histories:
    """An index that several handles and builds change in turn, and the documents that it must hold."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.draw = path, random.Random(seed)
        self.shards = self.draw.choice([1, 1, 2])
        self.docs: Texts = {}
        self.build(dict(DOCS))
        self.handles = [Index.open(path) for _ in range(3)]

    def build(self, docs: Texts) -> None:
        self.docs = dict(docs)
        Index.build(self.docs, self.path, overwrite=True, drop_vectors=True, threads=1, shards=self.shards)

    def add(self, index: Index, step: int) -> None:
        docs = {f"n{step}-{number}": f"cat number {step}" for number in range(self.draw.randint(1, 3))}
        index.add(docs, threads=1)
        self.docs |= docs

    def replace(self, index: Index, step: int) -> None:
        docs = [(doc_id, f"horse number {step}") for doc_id in self.draw.sample(sorted(self.docs), min(3, len(self.docs)))]
        docs.append((docs[0][0], "the last horse number"))
        index.add(docs, duplicates="replace", threads=1)
        for doc_id, text in docs:
            self.docs.pop(doc_id, None)
            self.docs[doc_id] = text

    def delete(self, index: Index, step: int) -> None:
        ids = self.draw.sample(sorted(self.docs), min(self.draw.randint(1, 6), len(self.docs) - 1))
        index.delete(ids)
        for doc_id in ids:
            del self.docs[doc_id]

    def search(self, index: Index) -> None:
        """Whoever has an older state open goes on over that."""
        assert len(index.bm25(threads=1).search("number", 100)) == len(index.docs(index.ids)) > 0

    def step(self, number: int) -> None:
        index = self.draw.choice(self.handles)
        steps: list[Callable[[], object]] = [
            *[lambda: self.build(self.docs)] * 3,
            lambda: self.build(dict(OTHER)),
            lambda: self.build(dict(DOCS)),
            *[lambda: self.add(index, number), lambda: self.replace(index, number), lambda: self.delete(index, number)] * 2,
            index.refresh,
            lambda: self.search(index),
            lambda: clean(self.path),
        ]
        apart: list[Callable[[], object]] = [lambda: index.encode(Counting()), lambda: index.check(deep=True), index.merge]
        if self.draw.random() < 0.7:
            self.draw.choice(steps)()
        else:
            with contextlib.suppress(FontesError):  # the state has gone, or its segments have different vectors
                self.draw.choice(apart)()
        newest = Index.open(self.path)
        newest.check(deep=True)
        assert {doc.id: doc.text for doc in newest.docs(newest.ids)} == self.docs


@pytest.mark.parametrize("histories", [range(5), pytest.param(range(5, 200), marks=pytest.mark.slow)], ids=["some", "many"])
def test_an_index_that_several_have_open_stays_sound_and_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, histories: range
) -> None:
    for seed in histories:
        history = Histories(tmp_path / f"{seed}.index", seed)
        for number in range(10):
            history.step(number)
