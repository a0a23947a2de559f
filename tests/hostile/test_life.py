"""An index that changes, and what befalls the process that changes it: kills at any moment, a full disk, another writer."""

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from support.histories import MODELS, agrees, files, some_docs
from support.processes import in_a_child, small_disk
from support.small import small_batches

from fontes.core import Doc, FontesError
from fontes.index import Index
from fontes.index.leftovers import leftovers

KILLS, MANY = 3, 300  # in `make test`, in `make test-all`
STEPS = 8  # of a process, unless it is killed before
Docs = dict[str, Doc]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    small_batches(monkeypatch, 2_000, 10)


def step(seed: str, docs: Docs, index: Index | None) -> Docs:
    """Does one random change to an index of `docs`, or none; gives the documents that there are after it."""
    draw = random.Random(seed)
    ids, new = list(docs), [f"{seed}-{n}" for n in range(draw.randrange(1, 40))]
    kind = draw.choice(["add", "add", "replace", "delete", "merge"])
    if kind == "add":
        added = some_docs(draw.randrange(1000), new)
        if index is not None:
            index.add(added, memory="1K", threads=1)
        return docs | {doc.id: doc for doc in added}
    some = draw.sample(ids, min(len(ids), draw.randrange(1, 30)))
    left = {doc_id: doc for doc_id, doc in docs.items() if doc_id not in some}
    if kind == "replace":
        added = some_docs(draw.randrange(1000), [*some, *new])
        if index is not None:
            index.add(added, duplicates="replace", threads=1)
        return left | {doc.id: doc for doc in added}
    if kind == "delete":
        if index is not None:
            index.delete(some)
        return left
    if index is not None:
        index.merge(threads=1)
    return docs


def content(index: Index) -> list[Doc]:
    return index.docs(index.ids.tolist())


def killed(path: Path, number: int, docs: Docs, seconds: float | None) -> tuple[Docs, bool]:
    """Changes an index in a process that is killed after so many seconds; the documents that there are, and whether it was."""
    said = path.with_name("said")
    said.write_bytes(b"")
    states = [docs]
    for at in range(STEPS):
        states.append(step(f"{number}.{at}", states[-1], None))
    child = os.fork()
    if child == 0:
        try:
            index, log = Index.open(path), os.open(said, os.O_WRONLY | os.O_APPEND)
            for at in range(STEPS):
                step(f"{number}.{at}", states[at], index)
                os.write(log, b".")
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(5)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    done = len(said.read_bytes())
    index = Index.open(path)
    index.check(deep=True)
    found = content(index)
    state = next((state for state in states[done : done + 2] if list(state.values()) == found), None)
    assert state is not None, f"{done} changes were committed before the process was killed, and something else is there"
    return state, status != 0


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_nothing_committed(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "x"
    docs = {doc.id: doc for doc in some_docs(0, [f"o{n}" for n in range(30)])}
    Index.build(docs.values(), path, analyzer="whitespace", threads=1)
    for number in range(3):  # after which all that the children run is compiled
        for at in range(STEPS):
            docs = step(f"warm{number}.{at}", docs, Index.open(path))
    start = time.perf_counter()
    docs, _ = killed(path, 0, docs, None)
    seconds = time.perf_counter() - start
    draw, count, number = random.Random(5), 0, 0
    while count < kills:
        number += 1
        docs, was = killed(path, number, docs, draw.uniform(0, seconds))
        seconds = seconds * 1.05 if was else seconds * 0.7
        count += was
        if len(docs) > 400:
            Index.open(path).delete(list(docs)[:300])
            docs = dict(list(docs.items())[300:])
    index = Index.open(path)
    index.delete([next(iter(docs))])
    docs.pop(next(iter(docs)))
    assert leftovers(path) == []
    fresh = Index.build(docs.values(), tmp_path / "fresh", analyzer="whitespace", threads=1)
    agrees(index, fresh, MODELS)
    index.merge(threads=1)
    assert files(path) == files(tmp_path / "fresh")


def is_a_sentence(error: FontesError, path: Path) -> None:
    assert str(error).startswith(f"{path} cannot be written: No space left on device")
    assert "\n" not in str(error)


@pytest.mark.parametrize("kind", ["add", "replace", "delete", "merge"])
def test_a_disk_that_is_full_at_any_point_fails_the_change_and_not_the_index(tmp_path: Path, kind: str) -> None:
    docs = {doc.id: doc for doc in some_docs(1, [f"o{n}" for n in range(300)])}
    more = some_docs(2, [f"n{n}" for n in range(400)])
    changes = {
        "add": lambda index: index.add(more, memory="1K", threads=1),
        "replace": lambda index: index.add([*more[:300], *some_docs(3, list(docs)[:100])], duplicates="replace", threads=1),
        "delete": lambda index: index.delete(list(docs)[:30]),
        "merge": lambda index: index.merge(threads=1),
    }
    failures = 0
    with small_disk(tmp_path / "disk", "2m") as disk:
        path, filler = disk / "x", disk / "filler"
        index = Index.build(docs.values(), path, analyzer="whitespace", threads=1)
        index.delete(["o299"])
        before, found = files(path), content(index)
        for kilobytes in [*range(0, 160, 6), *range(160, 1000, 40)]:
            status = os.statvfs(disk)
            filler.write_bytes(b"x" * max(0, status.f_bavail * status.f_frsize - kilobytes * 1024))
            try:
                changes[kind](index)
            except FontesError as error:
                is_a_sentence(error, path)
                failures += 1
                assert files(path) == before
                assert leftovers(path) == []
                assert content(index) == content(Index.open(path)) == found
                filler.unlink()
            else:
                break
        Index.open(path).check(deep=True)
        assert content(Index.open(path)) == content(index)
        assert kind == "merge" or content(index) != found
    assert failures > 2


def holder(error: FontesError) -> str:
    """What an error says of who changes an index."""
    return str(error).partition(" is being changed by ")[2].partition(";")[0]


def test_one_process_at_a_time_changes_an_index(tmp_path: Path) -> None:
    path = tmp_path / "x"
    Index.build({"o": "old"}, path, threads=1)
    before = time.time()
    errors: list[FontesError] = []

    def in_another() -> None:
        with pytest.raises(FontesError) as error:
            Index.open(path).delete("o")
        assert holder(error.value).startswith(f"process {os.getppid()} on {socket.gethostname()} since ")

    def docs() -> Iterator[tuple[str, str]]:
        for change in (lambda: Index.open(path).add({"p": "other"}), lambda: index.delete("o"), lambda: index.merge()):
            with pytest.raises(FontesError) as error:
                change()
            errors.append(error.value)
        assert in_a_child(in_another) == 0
        assert index.bm25(threads=1).search("old").topic is not None  # searches are not held up
        yield "n", "new"

    index = Index.open(path)
    index.add(docs())
    assert index.ids.tolist() == ["o", "n"]
    for error in errors:
        who, _, since = holder(error).partition(" since ")
        assert who == f"process {os.getpid()} on {socket.gethostname()}"
        assert int(before) <= datetime.fromisoformat(since).timestamp() <= time.time()


def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "x"
    Index.build({"o": "old"}, path, threads=1)

    def docs() -> Iterator[tuple[str, str]]:
        yield "n", "new"
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(lambda: Index.open(path).add(docs())) == -signal.SIGKILL
    left = leftovers(path)
    assert [(item.path.name, item.in_use) for item in left] == [(".writer", False)]
    index = Index.open(path)
    index.add({"p": "other"})
    assert index.ids.tolist() == ["o", "p"]
    assert leftovers(path) == []


def test_an_index_that_is_overwritten_while_it_is_changed_is_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    index = Index.build({"o": "old"}, path, threads=1)

    def docs() -> Iterator[tuple[str, str]]:
        Index.build({"a": "another"}, path, overwrite=True, threads=1)
        yield "n", "new"

    with pytest.raises(FontesError, match="was replaced by another index meanwhile; nothing was changed"):
        index.add(docs())
    assert Index.open(path).ids.tolist() == ["a"]
    assert leftovers(path) == []
    assert index.ids.tolist() == ["o"]
    assert index.refresh()
    assert index.add({"n": "new"}).documents == 2
