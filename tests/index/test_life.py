"""Random histories of an index: after each change it says and finds what an index does that is built of what is left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from support.histories import COLUMNS, MODELS, OF_WEIGHTS, answers, files, some_docs, statistics
from support.small import small_tiers

from fontes.core import Doc, FontesError
from fontes.index import Change, Index, build, inversion as postings, packing, postings as inverted, texts as documents
from fontes.lexical import direct, weighting
from fontes.storage.compiled import load

CHUNKS = (
    (build, "READ_SIZE", 4),
    (build, "BATCH", 500),
    (documents, "MAX_BLOCK_BYTES", 200),
    (inverted, "CHUNK_POSTINGS", 50),
    (postings, "CHUNK_POSTINGS", 40),
    (weighting, "CHUNK_POSTINGS", 30),
    (packing, "CHUNK_POSTINGS", 40),
    (direct, "MAX_RESULTS", 20),
)


@pytest.fixture(scope="module")
def small_portions() -> Iterator[None]:
    """All that is done in portions is done in small ones."""
    load()
    with pytest.MonkeyPatch.context() as patch:
        for module, name, size in CHUNKS:
            assert hasattr(module, name)
            patch.setattr(module, name, size)
        yield


SOME = 1  # histories in `make test`
MANY = int(os.environ.get("FONTES_EXAMPLES", 300))  # in `make test-all`
KS = st.sampled_from([1, 2, 3, 7, 10, 1000])
SEEDS = st.integers(0, 2**20)
COUNTS = st.integers(0, 40)


class Life(RuleBasedStateMachine):
    """An index, and the documents that should be in it, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fontes-life-"))
        self.docs: dict[str, Doc] = {}
        self.count = 0
        self.k = 1000
        self.steps = 0
        self.readers: list[tuple[Index, Any, int]] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(weights=st.booleans(), seed=SEEDS, count=COUNTS)
    def build(self, weights: bool, seed: int, count: int) -> None:
        self.models = OF_WEIGHTS if weights else MODELS
        self.parameters: Any = {
            "analyzer": "whitespace",
            "vectors": "vector" if weights else None,
            "columns": COLUMNS,
            "threads": 1,
        }
        docs = self.new(seed, count)
        self.index = Index.build(docs, self.folder / "x", **self.parameters)
        self.docs = {doc.id: doc for doc in docs}

    def new(self, seed: int, count: int) -> list[Doc]:
        """Documents with ids that there never were, which do not ascend."""
        self.count += count
        return some_docs(seed, [f"{n * 7919 % 1009}é" for n in range(self.count - count, self.count)])

    def again(self, seed: int, chosen: list[float]) -> list[Doc]:
        """Other documents with ids that there are."""
        return some_docs(seed, dict.fromkeys(self.id_at(at) for at in chosen)) if self.docs else []

    def id_at(self, at: float) -> str:
        return list(self.docs)[int(at * len(self.docs))]

    def changed(self, change: Change, **expected: int) -> None:
        """A change said what it did."""
        counts = {"added": 0, "replaced": 0, "skipped": 0, "deleted": 0} | expected
        assert {name: getattr(change, name) for name in counts} == counts
        assert change.documents == len(self.docs)

    @rule(seed=SEEDS, count=COUNTS, memory=st.sampled_from(["1K", "2G"]))
    def add(self, seed: int, count: int, memory: str) -> None:
        docs = self.new(seed, count)
        change = self.index.add(docs, memory=memory, threads=1)
        self.docs.update((doc.id, doc) for doc in docs)
        self.changed(change, added=count)

    @rule(seed=SEEDS, count=COUNTS, chosen=st.lists(st.floats(0, 0.999), max_size=8))
    def add_some_that_there_are(self, seed: int, count: int, chosen: list[float]) -> None:
        old, new = self.again(seed, chosen), self.new(seed, count)
        change = self.index.add([*old, *new], duplicates="skip", threads=1)
        self.docs.update((doc.id, doc) for doc in new)
        self.changed(change, added=count, skipped=len(old))

    @rule(seed=SEEDS, count=COUNTS, chosen=st.lists(st.floats(0, 0.999), max_size=8))
    def replace(self, seed: int, count: int, chosen: list[float]) -> None:
        old, new = self.again(seed, chosen), self.new(seed, count)
        change = self.index.add([*new, *old], duplicates="replace", threads=1)
        for doc in [*new, *old]:
            self.docs.pop(doc.id, None)
            self.docs[doc.id] = doc
        self.changed(change, added=count + len(old), replaced=len(old))

    @precondition(lambda self: self.docs)
    @rule(chosen=st.lists(st.floats(0, 0.999), max_size=12))
    def delete(self, chosen: list[float]) -> None:
        ids = list(dict.fromkeys(self.id_at(at) for at in chosen))
        change = self.index.delete(ids)
        for doc_id in ids:
            del self.docs[doc_id]
        self.changed(change, deleted=len(ids))

    @precondition(lambda self: self.docs)
    @rule(first=st.floats(0, 0.999), count=st.integers(1, 60))
    def delete_a_row(self, first: float, count: int) -> None:
        at = int(first * len(self.docs))
        ids = list(self.docs)[at : at + count]
        change = self.index.delete([*ids, "nobody"], missing="skip")
        for doc_id in ids:
            del self.docs[doc_id]
        self.changed(change, deleted=len(ids), skipped=1)

    @rule(memory=st.sampled_from(["1K", "2G"]))
    def merge(self, memory: str) -> None:
        change = self.index.merge(memory=memory, threads=1)
        self.changed(change)
        assert change.segments <= 1
        assert files(self.folder / "x") == files(self.fresh().path)

    @precondition(lambda self: self.docs)
    @rule(at=st.floats(0, 0.999), seed=SEEDS)
    def changes_that_are_refused_change_nothing(self, at: float, seed: int) -> None:
        before = files(self.folder / "x")
        there = self.id_at(at)
        for refused in (
            lambda: self.index.add([*some_docs(seed, ["new1", "new2"]), Doc(there, "again")], threads=1),
            lambda: self.index.add([*some_docs(seed, ["new1", "new2"]), Doc("", "no id")], threads=1),
            lambda: self.index.add([*some_docs(seed, ["new1", "new1"])], threads=1),
            lambda: self.index.delete([there, "nobody"]),
        ):
            with pytest.raises(FontesError) as error:
                refused()
            assert "\n" not in str(error.value)
        assert files(self.folder / "x") == before

    @rule()
    def open_again(self) -> None:
        self.index = Index.open(self.folder / "x")

    @precondition(lambda self: len(self.readers) < 3)
    @rule()
    def another_opens_it(self) -> None:
        reader = Index.open(self.folder / "x")
        self.readers.append((reader, self.state(reader, self.k), self.k))

    @precondition(lambda self: self.readers)
    @rule()
    def another_refreshes(self) -> None:
        reader, before, k = self.readers.pop(0)
        assert self.state(reader, k) == before
        changed = reader.refresh()
        assert self.state(reader, k) == self.state(self.index, k)
        assert changed or before == self.state(reader, k)
        assert not reader.refresh()

    @rule(k=KS)
    def another_depth(self, k: int) -> None:
        self.k = k

    def fresh(self) -> Index:
        shutil.rmtree(self.folder / "fresh", ignore_errors=True)
        return Index.build(list(self.docs.values()), self.folder / "fresh", **self.parameters)

    def state(self, index: Index, k: int) -> Any:
        return statistics(index), answers(index, self.models, k=k)

    def some(self) -> dict[str, Any]:
        """Every third model, others at each step: all of them would take too long."""
        self.steps += 1
        return dict(list(self.models.items())[self.steps % 3 :: 3]) or self.models

    @invariant()
    def it_is_as_one_that_was_built_of_what_is_left(self) -> None:
        if hasattr(self, "index"):
            fresh, some = self.fresh(), self.some()
            assert statistics(self.index) == statistics(fresh)
            expected, found = (answers(index, some, k=self.k) for index in (fresh, self.index))
            assert [name for name in some if found[name] != expected[name]] == []

    @invariant()
    def those_who_opened_it_before_see_what_they_saw(self) -> None:
        for reader, (before, found), k in self.readers:
            assert len(reader) == before["documents"]
            name = next(iter(self.some()))
            assert answers(reader, {name: self.models[name]}, k=k) == {name: found[name]}


@pytest.fixture
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are soon merged, and what histories change is as it was after them."""
    small_tiers(monkeypatch, 3, 15)


@pytest.mark.usefixtures("small_portions", "_as_it_was")
@pytest.mark.parametrize("histories", [SOME, pytest.param(MANY, marks=pytest.mark.slow)])
def test_after_any_history_an_index_is_as_one_that_was_built_of_what_is_left(histories: int) -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=histories,
            stateful_step_count=15,
            deadline=None,
            database=None,
            derandomize=settings.default.derandomize and histories == SOME,
            phases=[Phase.generate],  # shrinking a history takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
