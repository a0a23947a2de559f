"""`work`: what a block says, what it inherits, and which threads and processes belong to it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread, get_ident

import pytest
from support.hashed_encoder import Hashed
from support.toys import Find, Shelf

import fontes as ft
from fontes.core import ParameterError, work as work_module
from fontes.core.work import (
    MEMORY,
    Progress,
    Resources,
    memory_size,
    processors,
    reported_as,
    reporter,
    resources,
    silent,
    thread_count,
    work,
)
from fontes.storage.threads import in_threads


def test_a_block_inherits_what_it_does_not_say_and_ends_with_it() -> None:
    with work(threads=3, memory="1M", ray="host:1"):
        with work(threads=2):
            assert resources() == Resources(2, 1 << 20, "host:1")
            with work(memory=5, ray=False):
                assert resources() == Resources(2, 5, False)
        assert resources() == Resources(3, 1 << 20, "host:1")
    assert resources() == Resources(None, MEMORY, None)
    assert thread_count() == processors()


def test_a_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), work(threads=7):
        raise KeyError
    assert resources() == Resources()


def test_foreign_threads_belong_to_the_block_of_the_main_thread() -> None:
    seen: list[Resources] = []

    def of_its_own() -> None:
        with work(memory=9):
            seen.append(resources())

    with work(threads=5):
        for target in (lambda: seen.append(resources()), of_its_own):
            thread = Thread(target=target)
            thread.start()
            thread.join()
    assert seen == [Resources(5), Resources(5, 9)]


def test_blocks_of_two_threads_know_nothing_of_one_another() -> None:
    def count(threads: int) -> int:
        with work(threads=threads):
            barrier.wait(10)
            return thread_count()

    from threading import Barrier

    barrier = Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(count, (3, 4))) == [3, 4]
    assert resources() == Resources()


def test_a_memory_size_reads_as_bytes() -> None:
    for size, expected in [
        (1, 1),
        ("10", 10),
        ("2K", 2048),
        ("500M", 500 << 20),
        ("2G", 2 << 30),
        ("1.5g", 3 << 29),
        ("1 GiB", 1 << 30),
    ]:
        assert memory_size(size) == expected


def test_the_report_of_a_block_is_told_of_stages_builds_and_encodings(tmp_path: Path) -> None:
    told: list[Progress] = []
    with ft.work(progress=told.append):
        index = ft.Index.build([("a", "hot springs"), ("b", "a cold well")], tmp_path / "x")
        index.encode(Hashed())
        index.dense(Hashed())("springs")
    assert list(dict.fromkeys((report.task, report.unit) for report in told)) == [
        ("indexing", "documents"),
        ("encoding", "documents"),
        ("encoding", "topics"),
    ]


def test_an_argument_is_a_block_of_its_own_which_ends_with_an_error() -> None:
    around: list[Progress] = []
    argument: list[Progress] = []

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with work(progress=around.append):
        Find(Shelf())("x", progress=argument.append)
        assert (len(around), len(argument)) == (0, 1)
        with pytest.raises(KeyboardInterrupt):
            Find(Shelf())("x", progress=stop)
        Find(Shelf())("x")
        assert (len(around), len(argument)) == (1, 1)
        with work(progress=silent):
            Find(Shelf())("x")
    Find(Shelf())("x")
    assert (len(around), len(argument)) == (1, 1)


def test_converted_reports_reach_the_block_around() -> None:
    told: list[str] = []
    with work(progress=lambda progress: told.append(progress.task)):
        for outer in ("a", "b"):
            with reported_as(lambda progress, outer=outer: replace(progress, task=f"{outer} {progress.task}")):  # type: ignore[misc]
                with reported_as(lambda progress: replace(progress, task=f"inner {progress.task}")):
                    reporter()(Progress("work", 0, 1, 0.0))
                reporter()(Progress("work", 1, 1, 0.0))
    assert told == ["a inner work", "a work", "b inner work", "b work"]


def test_work_of_the_report_itself_is_not_reported() -> None:
    told: list[Progress] = []

    def search_again(progress: Progress) -> None:
        told.append(progress)
        Find(Shelf())("x")

    Find(Shelf())("x", progress=search_again)
    assert len(told) == 1


def test_threads_that_fontes_starts_report_to_the_block_and_others_do_not() -> None:
    told: list[Progress] = []
    with work(threads=2, progress=told.append):
        in_threads(lambda number: reporter()(Progress("counting", number, 3, 0.0)), [1, 2, 3])
        thread = Thread(target=lambda: reporter()(Progress("counting", 4, 4, 0.0)))
        thread.start()
        thread.join()
        assert resources().for_worker().progress is silent
    assert sorted(report.done for report in told) == [1, 2, 3]


def test_an_index_has_the_same_bytes_whatever_the_block_says(tmp_path: Path) -> None:
    docs = [(f"d{i}", f"w{i % 7} w{i % 11} w{i}") for i in range(3000)]
    folders = []
    for number, settings in enumerate([{}, {"threads": 1}, {"threads": 3, "memory": "64K"}]):
        with ft.work(**settings):  # type: ignore[arg-type]
            folders.append(ft.Index.build(docs, tmp_path / f"{number}.index").path)
    contents = [
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()} for folder in folders
    ]
    assert contents[0] == contents[1] == contents[2]


def test_a_single_thread_is_the_callers_own() -> None:
    with work(threads=1):
        assert set(in_threads(lambda _: get_ident(), [1, 2, 3])) == {get_ident()}
    with work(threads=2):
        assert get_ident() not in in_threads(lambda _: get_ident(), [1, 2, 3])


def test_a_refused_block_leaves_the_resources_as_they_were() -> None:
    with pytest.raises(ParameterError), work(threads=2, memory="much"):
        pass
    assert resources() == Resources()


def test_memory_is_64_megabytes_a_processor_by_default() -> None:
    assert Resources().memory == max(2, processors()) * memory_size("64M")
    assert memory_size("1024T") == 1 << 50


def test_the_package_of_clusters_is_imported_where_work_names_a_cluster() -> None:
    assert work_module.cluster() is None
    with work(ray=True):
        assert work_module.cluster() is ft.cluster
