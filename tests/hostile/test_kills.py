"""Processes that are killed or interrupted before any of their file-system operations.

After each of them the old or the new state stands whole, what is said is true, and what is left behind is named by
`fontes check` and removed by `fontes check --clean`. `make test` takes a few operations of each kind of work, `make test-all`
every one.
"""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.counting_encoder import Counting
from support.old_and_new import NEW, OLD, state
from support.processes import DONE, STOPPED, stopped_before
from support.small import blocks_of, small_batches

from fontes.index import Index
from fontes.index.leftovers import clean, leftovers
from fontes.storage.arrays import write_array
from fontes.storage.artifact import Artifact, ArtifactKind, commit, seal, staging
from fontes.storage.files import write

SOME = 1  # operations of each work that `make test` takes
KIND = ArtifactKind("test-numbers", 1, "numbers", "count again")
UNCHANGED = "interrupted; what was there before is unchanged"


def encoder(sign: float) -> Counting:
    """An encoder whose vectors are those of another one, or the same with the other sign."""
    return Counting(wrong=lambda vectors: np.float32(sign) * vectors)


def vectors(path: Path) -> str:
    """ "old", "new" or "none": which vectors the index at `path` has, which must be sound."""
    index = Index.open(path)
    index.check(deep=True)
    if not index.info()["vectors"]:
        return "none"
    first = index.embeddings(Counting()).decoded(slice(0, 1))
    assert np.array_equal(np.abs(first), np.abs(Counting().encode_queries(["o0"])))
    return "old" if np.array_equal(first, Counting().encode_queries(["o0"])) else "new"


def numbers(path: Path) -> str:
    """ "old", "new" or "none": what the artifact at `path` holds, which must be sound."""
    if not path.exists():
        return "none"
    artifact = Artifact(path, KIND)
    artifact.check()
    return {1: "old", 2: "new"}[int(artifact.arrays.array("numbers", "<i8", None)[0])]


def made(path: Path, number: int) -> None:
    with staging(path) as folder:
        write_array(folder, "numbers", np.array([number]))
        seal(folder, KIND, {})
        commit(folder, path)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else "none"


@dataclass(frozen=True)
class Work:
    """Something that is stopped: what is there before, how that is prepared, what is done, and how one sees what is there."""

    before: str
    prepare: Callable[[Path], object]
    work: Callable[[Path], object]
    state: Callable[[Path], str]


def nothing(path: Path) -> None:
    """Nothing is there before."""


def with_vectors(path: Path) -> None:
    Index.build(OLD, path, threads=1).encode(encoder(1))


def grown(path: Path) -> str:
    """ "old" or "new": whether the index at `path`, which must be sound, has been added to, with some of it replaced."""
    index = Index.open(path)
    index.check()
    assert len(index) == {"old fox 3": 30, "new fox 3": 105}[index.doc("o3").text]
    assert len(index.bm25(threads=1).search("fox dog", 1000)) == len(index)
    return index.doc("o3").text[:3]


def shrunk(path: Path) -> str:
    """ "old" or "new": whether documents of the index at `path`, which must be sound, have been deleted."""
    index = Index.open(path)
    index.check()
    assert len(index.bm25(threads=1).search("fox", 1000)) == len(index) == (28 if "o1" not in index else 30)
    return "old" if "o1" in index else "new"


def merged(path: Path) -> str:
    """ "old" or "new": whether the segments of the index at `path`, which must be sound, have been merged."""
    index = Index.open(path)
    index.check()
    assert index.ids.tolist() == [doc_id for doc_id, _ in OLD[2:20] + NEW[:5]]
    return {1: "new", 2: "old"}[index.info()["segments"]]


def in_two(path: Path) -> None:
    """An index of two segments, with deleted documents."""
    index = Index.build(OLD[:20], path, threads=1)
    index.add(NEW[:5], threads=1)
    index.delete(["o0", "o1"])


WORKS = {
    "a new index": Work("none", nothing, lambda path: Index.build(NEW, path, threads=1, memory="2K"), state),
    "an index that is overwritten": Work(
        "old",
        lambda path: Index.build(OLD, path, threads=1),
        lambda path: Index.build(NEW, path, overwrite=True, threads=1, memory="2K"),
        state,
    ),
    "documents that are added and replaced": Work(
        "old",
        lambda path: Index.build(OLD, path, threads=1),
        lambda path: Index.open(path).add(
            [*NEW[:70], *((i, "new fox 3") for i in ("o3", "e1", "e2", "e3", "e4", "e5"))],
            duplicates="replace",
            threads=1,
            memory="2K",
        ),
        grown,
    ),
    "documents that are deleted": Work(
        "old", lambda path: Index.build(OLD, path, threads=1), lambda path: Index.open(path).delete(["o1", "o7"]), shrunk
    ),
    "segments that are merged": Work("old", in_two, lambda path: Index.open(path).merge(threads=1, memory="2K"), merged),
    "new vectors": Work(
        "none", lambda path: Index.build(OLD, path, threads=1), lambda path: Index.open(path).encode(encoder(-1)), vectors
    ),
    "vectors that are overwritten": Work(
        "old", with_vectors, lambda path: Index.open(path).encode(encoder(-1), overwrite=True), vectors
    ),
    "a new model": Work("none", nothing, lambda path: made(path, 2), numbers),
    "a model that is overwritten": Work("old", lambda path: made(path, 1), lambda path: made(path, 2), numbers),
    "a file that is overwritten": Work("old", lambda path: path.write_text("old"), lambda path: write(path, [b"new"]), text),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is there before each work; after it everything that the children run is compiled."""
    places = {}
    for name, one in WORKS.items():
        place = places[name] = tmp_path_factory.mktemp("prepared") / "x"
        one.prepare(place)
        assert one.state(place) == one.before
        other = tmp_path_factory.mktemp("tried") / "x"
        copy(place, other)
        one.work(other)
        assert one.state(other) == "new"
    return places


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    small_batches(monkeypatch, 6_000, 10)
    blocks_of(monkeypatch, 10)


def copy(source: Path, place: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, place)
    elif source.exists():
        shutil.copy(source, place)


def stopped(name: str, source: Path, folder: Path, number: int, what: signal.Signals) -> tuple[str, int]:
    """Stops a work before an operation, looks at what is there, said and left, and cleans up; the outcome and the count."""
    one, place = WORKS[name], folder / "x"
    folder.mkdir()
    copy(source, place)
    status, message, count = stopped_before(number, what, folder, lambda: one.work(place))
    outcome = one.state(place)
    assert outcome in (one.before, "new")
    left = leftovers(place)
    if what == signal.SIGINT and number:
        assert status in (STOPPED, DONE)
        if status == STOPPED:
            assert message == UNCHANGED if outcome == one.before else message.endswith(" was complete by then"), message
        # What an interrupt leaves is what the next encoding goes on with.
        assert {item.path.name.partition("-")[0] for item in left} <= ({".vectors"} if "vectors" in name else set())
    elif number:
        assert status in (-signal.SIGKILL, DONE)
    gone, staying = clean(place)
    assert (gone, staying) == (left, [])
    assert leftovers(place) == []
    assert one.state(place) == outcome
    assert [entry.name for entry in folder.iterdir()] == ([] if outcome == "none" and not place.exists() else ["x"])
    hidden = [entry for entry in folder.rglob("*") if entry.name.startswith(".")]
    assert hidden == []
    shutil.rmtree(folder)
    return outcome, count


def stopped_at(name: str, source: Path, folder: Path, what: signal.Signals, some: int | None) -> None:
    """Stops a work before each of its operations, or before some of them, and prints how often there was which state."""
    outcome, count = stopped(name, source, folder / "whole", 0, what)
    assert (outcome, count > 1) == ("new", True)
    points = range(1, count + 1) if some is None else sorted({1 + int(at) for at in np.linspace(0, count - 1, some)})
    outcomes = Counter(stopped(name, source, folder / str(number), number, what)[0] for number in points)
    print(f"{name}, {what.name} before {len(points)} of {count} operations: {dict(outcomes)}")
    assert outcomes[WORKS[name].before] > 0


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGKILL], ids=lambda what: what.name)
@pytest.mark.parametrize("name", WORKS)
def test_stopped_before_some_operations_the_old_or_the_new_state_stands_whole(
    prepared: dict[str, Path], tmp_path: Path, name: str, what: signal.Signals
) -> None:
    stopped_at(name, prepared[name], tmp_path, what, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGKILL], ids=lambda what: what.name)
@pytest.mark.parametrize("name", WORKS)
def test_stopped_before_any_operation_the_old_or_the_new_state_stands_whole(
    prepared: dict[str, Path], tmp_path: Path, name: str, what: signal.Signals
) -> None:
    stopped_at(name, prepared[name], tmp_path, what, None)
