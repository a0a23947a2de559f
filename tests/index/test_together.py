"""Several builds and readers of one index at once: each sees a whole one, and nothing is left behind."""

import contextlib
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.old_and_new import NEW, OLD, leftovers, state
from support.small import small_batches

from fontes.core import IndexFormatError, InputError
from fontes.index import Index


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    small_batches(monkeypatch, 6_000)


def test_the_folder_of_a_build_that_is_running_is_left_alone(tmp_path):
    seen = []

    def docs() -> Iterator[tuple[str, str]]:
        yield from OLD[:15]
        seen.extend(leftovers(tmp_path))
        Index.build(NEW, tmp_path / "x")
        assert leftovers(tmp_path) == seen
        yield from OLD[15:]

    with contextlib.suppress(InputError):  # the other build was first
        Index.build(docs(), tmp_path / "x")
    assert len(seen) == 1
    assert state(tmp_path / "x") == "new"
    assert leftovers(tmp_path) == []


def test_a_build_without_overwrite_keeps_an_index_finished_meanwhile(tmp_path):
    def docs() -> Iterator[tuple[str, str]]:
        Index.build(NEW, tmp_path / "x")
        yield from OLD

    with pytest.raises(InputError, match="is an index already"):
        Index.build(docs(), tmp_path / "x")
    assert state(tmp_path / "x") == "new"


@pytest.mark.slow
def test_two_builds_at_the_same_time_both_succeed_and_readers_see_one_or_the_other(tmp_path):
    path = tmp_path / "x"
    Index.build(OLD, path)

    def rebuild(docs: list[tuple[str, str]]) -> None:
        for _ in range(40):
            with report(tmp_path, "build"):
                Index.build(docs, path, overwrite=True, threads=1)

    def read() -> None:
        while not (tmp_path / "ended").exists():
            with report(tmp_path, "read"):
                index = Index.open(path)
                assert index.doc(index.ids[0]).text
                index.bm25(threads=1).search("fox dog")

    context = multiprocessing.get_context("fork")
    builders = [context.Process(target=rebuild, args=(docs,)) for docs in (OLD, NEW)]
    reader = context.Process(target=read)
    for process in (reader, *builders):
        process.start()
    for process in builders:
        process.join()
    (tmp_path / "ended").touch()
    reader.join()
    assert state(path) in ("old", "new")
    assert leftovers(tmp_path) == []
    assert reports(tmp_path) == []


def test_an_index_that_is_replaced_by_an_equal_one_while_it_is_opened_opens(tmp_path, monkeypatch):
    path = tmp_path / "x"
    Index.build(OLD, path)
    checked = []

    def check_sizes(*given: object) -> None:
        checked.append(given)
        if len(checked) == 1:
            Index.build(OLD, path, overwrite=True)
            raise IndexFormatError("a file is missing")

    monkeypatch.setattr("fontes.index.state.check_sizes", check_sizes)
    assert len(Index.open(path)) == len(OLD)


@contextlib.contextmanager
def report(folder: Path, who: str) -> Iterator[None]:
    """Writes the errors of a child where `reports` finds them."""
    try:
        yield
    except Exception as error:
        with (folder / "reports.txt").open("a") as file:
            file.write(f"{who}: {type(error).__name__}: {error}\n")


def reports(folder: Path) -> list[str]:
    file = folder / "reports.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_two_threads_that_build_at_the_same_path_leave_a_sound_index(tmp_path):
    failures: list[BaseException] = []

    def work(docs: list[tuple[str, str]]) -> None:
        for _ in range(10):
            try:
                Index.build(docs, tmp_path / "x", overwrite=True, threads=2)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(docs,)) for docs in (OLD, NEW)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state(tmp_path / "x") in ("old", "new")
    assert leftovers(tmp_path) == []
    assert failures == []
