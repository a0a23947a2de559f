"""What a warm search, request and command do, and the start of a command, in calls and files: counts, no times.

A limit is a little above the count of the day on which it was set. Raise it for work that a user gets something from.
"""

import asyncio
import functools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.counting import Counts, counted, counted_threads
from support.each import each

import fontes as ft
from fontes.core.query import Group, Term
from fontes.storage.compiled import load

QUERY = "harbour wall storm"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    path = tmp_path_factory.mktemp("warm") / "harbour.index"
    return ft.Index.build(ft.datasets.samples.harbour.corpus, path, threads=1)


def check(counts: Counts, calls: int, files: int) -> None:
    assert counts.entry_points == 0, "the entry points of all packages are read"
    assert len(counts.files) <= files, counts.files
    assert counts.total <= calls, f"{counts.total} calls:\n{counts.most()}"


def warm(work: Callable[[], Any]) -> Counts:
    for _ in range(3):
        work()
    with counted() as counts:
        work()
    return counts


def test_a_search(index: ft.Index) -> None:
    bm25 = index.bm25()
    check(warm(lambda: bm25.search(QUERY, 10)), calls=15, files=0)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], ft.Index]:
    """Indexes of 500 made-up documents in one segment, or in two."""
    load()
    draw = random.Random(3)
    words = [f"w{min(30, int(draw.paretovariate(0.7)))}" for _ in range(2_000)]
    docs = [{"id": f"d{i}", "text": " ".join(words[i : i + 20]), "year": 2000 + i % 10} for i in range(500)]
    folder = tmp_path_factory.mktemp("warm")

    def build(segments: int) -> ft.Index:
        index = ft.Index.build(
            docs[segments - 1 :],
            folder / f"{segments}.index",
            analyzer="whitespace",
            positions=True,
            columns={"year": "integer"},
            threads=1,
        )
        if segments == 2:
            index.add(docs[:1])
        return index

    return functools.cache(build)


def test_the_first_search_after_a_change_takes_no_work_of_the_size_of_the_index(tmp_path: Any) -> None:
    load()
    index = ft.Index.build([(f"d{n}", f"w{n} w{n + 1} wall") for n in range(3_000)], tmp_path / "x", threads=1)
    index.bm25().search("wall w7")
    for number in range(2):
        index.add([(f"new{number}", "wall w7")])
        bm25 = index.bm25()
        with counted() as counts:
            bm25.search("wall w7")
    assert counts.total < 2_500, counts.most()


@each(
    ("further", "in_file", "calls", "files"),
    [
        ({}, False, 1_100, 57),
        ({"title": "wall"}, False, 1_150, 57),
        ({"year": 2000, "price": 1.5, "kind": "sea"}, False, 1_350, 58),
        ({}, True, 2_050, 68),
        ({"year": 2000}, True, 3_000, 68),
    ],
)
def test_a_build_calls_few_functions_for_500_documents(
    tmp_path: Any, further: dict[str, Any], in_file: bool, calls: int, files: int
) -> None:
    load()
    docs = [{"_id": f"d{n}", "text": f"w{n % 7} w{n % 5} wall", **further} for n in range(500)]
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    several = []
    with counted_threads():
        for number in range(2):  # what the first one loads is no work of the second
            with counted() as counts:
                ft.Index.build(corpus if in_file else docs, tmp_path / str(number), threads=1)
            several.append(counts.own)
    assert several[-1][0] <= calls, several
    assert several[-1][1] <= files, several


PHRASE, FEEDBACK = "query() >> bm25()", "bm25() >> rm3() >> bm25()"


@each(
    ("segments", "pipeline", "query", "calls", "files"),
    [
        (1, "bm25()", "w1 w5 w9", 9, 5),
        (1, 'bm25(where="year >= 2005")', "w1 w5 w9", 12, 7),
        (1, PHRASE, '+"w1 w2" +w3', 38, 14),
        (1, FEEDBACK, "w1 w5 w9", 240, 29),
        (2, "bm25()", "w1 w5 w9", 9, 5),
        (2, 'bm25(where="year >= 2005")', "w1 w5 w9", 12, 7),
        (2, PHRASE, '+"w1 w2" +w3', 45, 14),
        (2, FEEDBACK, "w1 w5 w9", 260, 30),
    ],
)
def test_a_search_takes_few_calls_in_few_files(
    numbered: Callable[[int], ft.Index], segments: int, pipeline: str, query: str, calls: int, files: int
) -> None:
    stage = ft.pipeline(pipeline, numbered(segments))
    assert stage.search(query), "nothing matches"
    counts = warm(lambda: stage.search(query))
    assert counts.own[0] <= calls, f"{counts.own} calls and files:\n{counts.most(60)}"
    assert counts.own[1] <= files, f"{counts.own} calls and files:\n{counts.most(60)}"


@each(("segments", "where", "calls"), [(1, None, 24), (2, None, 36), (1, "year >= 2005", 34)])
def test_a_count_of_the_documents_with_one_of_some_terms_takes_few_calls(
    numbered: Callable[[int], ft.Index], segments: int, where: str | None, calls: int
) -> None:
    index, union = numbered(segments), Group(should=(Term("w1"), Term("w5"), Term("w9")))
    topic, stage = ft.Topic("1", "", query=union), index.bm25(where=where)
    expected = len(stage.matches(topic))
    counts = warm(lambda: stage.count(topic))
    assert stage.count(topic) == expected > 0
    assert counts.own[0] <= calls, f"{counts.own} calls and files:\n{counts.most(60)}"


def test_a_search_by_a_new_stage_with_its_snippets(index: ft.Index) -> None:
    check(warm(lambda: index.bm25().search(QUERY, 10).snippets()), calls=470, files=0)


@pytest.mark.parametrize(("k", "calls"), [(10, 28_000), (100, 40_000)])
def test_a_command(index: ft.Index, fontes: Callable[..., Any], k: int, calls: int) -> None:
    check(warm(lambda: fontes("search", index.path, QUERY, "-k", k)), calls=calls, files=25)


def test_a_command_with_json(index: ft.Index, fontes: Callable[..., Any]) -> None:
    check(warm(lambda: fontes("search", index.path, QUERY, "--json")), calls=20_000, files=25)


@pytest.mark.parametrize(("pipeline", "calls"), [("bm25", 760), ("rm3", 1_450)])
def test_a_request(index: ft.Index, pipeline: str, calls: int) -> None:
    from fontes.app.server.application import application
    from fontes.app.server.service import Service
    from fontes.app.server.settings import ServerSettings

    async def count() -> Counts:
        service = Service([index.path], ServerSettings(), {"bm25": "bm25()", "rm3": "bm25() >> rm3() >> bm25()"})
        app, running = application(service), asyncio.create_task(service.run())
        while not service.ready:
            await asyncio.sleep(0.01)
        for _ in range(3):
            await get(app, pipeline)
        several = []
        for _ in range(3):  # what other threads do is counted, too
            with counted() as counts:
                await get(app, pipeline)
            several.append(counts)
        running.cancel()
        service.close()
        return min(several, key=lambda counts: counts.total)

    with counted_threads():
        check(asyncio.run(count()), calls, files=0)


async def get(app: Any, pipeline: str) -> None:
    """Ask an application for ten hits with their texts."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    query = f"q={QUERY.replace(' ', '+')}&text=true&pipeline={pipeline}"
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
    scope |= {"path": "/search", "raw_path": b"/search", "query_string": query.encode(), "root_path": ""}
    scope |= {"headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    await app(scope, receive, send)
    assert sent[0]["status"] == 200, sent
    assert len(json.loads(b"".join(message.get("body", b"") for message in sent))["hits"]) == 10


START = """
import json, sys
files = []
sys.addaudithook(lambda event, arguments: files.append(str(arguments[0])) if event == "open" else None)
from fontes.app import cli
sys.argv = ["fontes", *sys.argv[1:]]
try:
    cli.main()
except SystemExit:
    own = [name for name in sys.modules if name.partition(".")[0] == "fontes"]
    others = [file for file in files if not file.endswith((".py", ".pyc")) and ".pyc." not in file]
    print(json.dumps([own, list(sys.modules), others]))
"""


def started(*arguments: object) -> Any:
    """Modules of Fontes, all modules, and opened files of a command in a process of its own."""
    command = [sys.executable, "-c", START, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "own", "every"), [(["--version"], 5, 240), (["--help"], 16, 500), (["search", "--help"], 105, 650)]
)
def test_the_start_of_a_command(arguments: list[str], own: int, every: int) -> None:
    own_modules, modules, files = started(*arguments)
    assert len(own_modules) <= own, own_modules
    assert len(modules) <= every, modules
    if arguments != ["--help"]:  # which lists the commands of other packages
        assert not [file for file in files if file.endswith("entry_points.txt")]
        assert len(files) <= 12, files  # some tell the quota of the process's control group


def test_a_search_from_the_command_line_loads_neither_typer_nor_numba_and_no_formats(index: ft.Index) -> None:
    own_modules, modules, files = started("search", index.path, QUERY)
    assert not {"typer", "click", "pydantic", "rich", "numba", "fontes.formats.corpus", "fontes.calibration"} & {*modules}
    assert len(own_modules) <= 128, own_modules
    assert len(modules) <= 400, modules
    assert not [file for file in files if file.endswith("entry_points.txt")]
