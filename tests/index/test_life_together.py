"""Threads and processes that search an index while one changes it: each answer is that of one committed state."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.histories import MODELS, TOPICS, answer, some_docs

from fontes.core import Doc, FontesError, Topic, Topics
from fontes.index import Index

SECONDS, MINUTE = 0.4, 60.0  # in `make test`, in `make test-all`
SEARCHERS = {name: MODELS[name] for name in ("bm25 lucene", "bm25 okapi", "tfidf", "dirichlet", "rm3")}
TOPIC: Topic = next(iter(TOPICS.values()))
Docs = dict[str, Doc]
each_time = pytest.mark.parametrize("seconds", [SECONDS, pytest.param(MINUTE, marks=pytest.mark.slow)])


OLD = some_docs(1, [f"o{n}" for n in range(300)])
NEW = some_docs(2, [f"n{n}" for n in range(100)])
OTHER = some_docs(3, [f"o{n}" for n in range(50, 90)])
# A round of changes, after which the index has the documents again that it had before.
ROUND: list[tuple[Callable[[Index], object], Callable[[Docs], Docs]]] = [
    (lambda index: index.add(NEW, threads=1), lambda docs: docs | of(NEW)),
    (lambda index: index.delete([doc.id for doc in OLD[:60]]), lambda docs: without(docs, OLD[:60])),
    (lambda index: index.add(OTHER, duplicates="replace", threads=1), lambda docs: docs | of(OTHER)),
    (lambda index: index.delete([doc.id for doc in NEW[20:]]), lambda docs: without(docs, NEW[20:])),
    (lambda index: index.merge(threads=1), lambda docs: docs),
    (lambda index: index.delete([doc.id for doc in NEW[:20]]), lambda docs: without(docs, NEW[:20])),
    (lambda index: index.add(OLD[:90], duplicates="replace", threads=1), lambda docs: docs | of(OLD[:90])),
]


def of(docs: list[Doc]) -> Docs:
    return {doc.id: doc for doc in docs}


def without(docs: Docs, some: list[Doc]) -> Docs:
    return {doc_id: doc for doc_id, doc in docs.items() if doc_id not in of(some)}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each model finds in each state of the round, in an index that was built of it."""
    folder = tmp_path_factory.mktemp("states")
    docs, states = of(OLD), [of(OLD)]
    for _, after in ROUND:
        docs = after(docs)
        states.append(docs)
    assert states[-1] == states[0]
    found = []
    for number, state in enumerate(states[:-1]):
        fresh = Index.build(state.values(), folder / str(number), analyzer="whitespace", threads=1)
        found.append({name: looked_for(model(fresh)) for name, model in SEARCHERS.items()})
    assert len({repr(sorted(state.items())) for state in found}) >= len(found) - 1  # merging changes nothing
    return found


def looked_for(stage: Any) -> Any:
    """What a stage finds, and the text of its best document."""
    run = stage(Topics([TOPIC]))
    best = next(iter(run.values()))
    return answer(run), best.docs()[0].text


def changes(index: Index, begun: Callable[[int], None], done: Callable[[int], None], seconds: float) -> None:
    """Goes round, and says of each state when it may be there and when it is."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end or number % len(ROUND):
        number += 1
        begun(number)
        ROUND[(number - 1) % len(ROUND)][0](index)
        done(number)


def is_right(found: Any, name: str, expected: list[dict[str, Any]], least: int, most: int) -> bool:
    """Whether an answer is that of a state that was there meanwhile."""
    return any(found == expected[number % len(ROUND)][name] for number in range(least, most + 1))


@each_time
def test_threads_that_search_while_one_changes_the_index_see_one_state_each(
    tmp_path: Path, expected: list[dict[str, Any]], seconds: float
) -> None:
    index = Index.build(OLD, tmp_path / "x", analyzer="whitespace", threads=1)
    state = {"begun": 0, "done": 0}
    wrong: list[str] = []
    asked: dict[str, int] = {}
    ended = threading.Event()

    def search(name: str) -> None:
        asked[name] = 0
        while not wrong and (asked[name] == 0 or not ended.is_set()):
            least = state["done"]
            try:
                found = looked_for(SEARCHERS[name](type(index)(index.state)))
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
                raise
            if not is_right(found, name, expected, least, state["begun"]):
                wrong.append(f"{name}: wrong from {least} to {state['begun']}")
            asked[name] += 1

    threads = [threading.Thread(target=search, args=(name,)) for name in SEARCHERS]
    for thread in threads:
        thread.start()
    try:
        changes(index, lambda number: state.update(begun=number), lambda number: state.update(done=number), seconds)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert state["done"] >= len(ROUND)
    assert min(asked.values()) > 0
    print(f"{state['done']} changes, {sum(asked.values())} answers")


def searches(path: Path, name: str, expected: list[dict[str, Any]], numbers: tuple[Any, Any, Any], reports: Path) -> None:
    """Searches in a process of its own, in the newest state again and again, until the changes are over."""
    begun, done, over = numbers
    count = 0
    index = Index.open(path)
    try:
        while not over.value or not count:
            least = done.value
            index.refresh()
            stage = SEARCHERS[name](index)
            most = begun.value
            for _ in range(2):  # the state stays that of the refreshing
                if not is_right(looked_for(stage), name, expected, least, most):
                    raise AssertionError(f"wrong from {least} to {most}")
            count += 1
    except BaseException as error:
        with (reports / name).open("w") as file:
            file.write(f"{type(error).__name__}: {error}")
    (reports / f"{name}.done").write_text(str(count))


@each_time
@pytest.mark.slow
def test_processes_see_the_state_that_they_refreshed_to(tmp_path: Path, expected: list[dict[str, Any]], seconds: float) -> None:
    path, reports = tmp_path / "x", tmp_path / "reports"
    reports.mkdir()
    index = Index.build(OLD, path, analyzer="whitespace", threads=1)
    context = multiprocessing.get_context("fork")
    begun, done, over = (context.Value("l", 0) for _ in range(3))
    arguments = ((path, name, expected, (begun, done, over), reports) for name in SEARCHERS)
    children = [context.Process(target=searches, args=of_child) for of_child in arguments]
    for child in children:
        child.start()

    def says(value: Any) -> Callable[[int], None]:
        return lambda number: setattr(value, "value", number)

    try:
        changes(index, says(begun), says(done), seconds)
    finally:
        over.value = 1
        for child in children:
            child.join()
    wrong = {file.name: file.read_text() for file in reports.iterdir() if not file.name.endswith(".done")}
    assert wrong == {}
    counts = [int((reports / f"{name}.done").read_text()) for name in SEARCHERS]
    assert min(counts) > 0
    print(f"{done.value} changes, {sum(counts)} states looked at")


def test_threads_that_all_change_an_index_are_told_or_succeed(tmp_path: Path) -> None:
    index = Index.build(OLD, tmp_path / "x", analyzer="whitespace", threads=1)
    added: list[str] = []

    def change(name: str) -> None:
        n = 0
        while n < 3:
            try:
                index.add({f"{name}{n}": "w1 w2"})
            except FontesError:  # another thread changes the index
                time.sleep(0.001)
                continue
            added.append(f"{name}{n}")
            n += 1

    threads = [threading.Thread(target=change, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(index.ids.tolist()) == sorted([*of(OLD), *added])
    assert len(added) == 12
    Index.open(tmp_path / "x").check(deep=True)


def test_a_ranking_keeps_the_documents_of_its_state(tmp_path: Path) -> None:
    index = Index.build({"a": "fox one", "b": "fox two"}, tmp_path / "x", threads=1)
    ranking = index.bm25(threads=1).search("fox")
    run = index.bm25(threads=1)(Topics([Topic("1", "fox")]))
    index.delete("a")
    index.add({"b": "another text", "c": "fox three"}, duplicates="replace")
    index.merge()
    assert {doc.id: doc.text for doc in ranking.docs()} == {"a": "fox one", "b": "fox two"}
    assert {doc.text for doc in run["1"].docs()} == {"fox one", "fox two"}
    assert [hit.id for hit in index.bm25(threads=1).search("fox")] == ["c"]


def test_an_open_index_is_readable_after_its_files_have_been_replaced(tmp_path: Path) -> None:
    index = Index.build(OLD[:60], tmp_path / "x", analyzer="whitespace", threads=1)
    index.add(NEW[:9], threads=1)
    index.delete(["o1"])
    before = {name: looked_for(model(index)) for name, model in MODELS.items()}
    facets = index.bm25(threads=1)(TOPICS).facets("lang", "year")
    reader = Index.open(tmp_path / "x")
    index.delete(["o2"])
    index.merge(threads=1)
    assert {name: looked_for(model(reader)) for name, model in MODELS.items()} == before
    assert reader.bm25(threads=1)(TOPICS).facets("lang", "year") == facets
    assert len(reader.docs(reader.ids.tolist())) == 68
    with pytest.raises(FontesError, match="has changed since it was opened"):
        reader.check()
    assert reader.refresh()
    reader.check()
