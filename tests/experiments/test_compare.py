"""`compare`: what it runs, measures and tests, and what its report says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.lexical import BM25

QRELS = {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}, "q3": {"d1": 0}, "q4": {"d4": 1}}
GOOD = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d3": 1.0}, "q4": {"d4": 1.0}}
BAD = {"q1": {"d9": 3.0, "d1": 2.0}, "q2": {"d8": 1.0, "d3": 0.5}, "q3": {"d1": 1.0}, "q9": {"d1": 1.0}}

DOCS = [(f"d{i}", text) for i, text in enumerate(("cold water", "warm water", "warm stone", "old stone wall", "water wall"))]
TOPICS = ft.Topics.of({"1": "cold water", "2": "stone wall", "3": "warm"})
JUDGED = {"1": {"d0": 1}, "2": {"d3": 2, "d2": 1}, "3": {"d1": 1, "d2": 1}}

calls: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    calls.clear()


@pytest.fixture
def index(tmp_path: Path) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path / "index", analyzer="whitespace")


@dataclass(frozen=True)
class Counting(ft.Stage[ft.Topics, ft.Run]):
    """A retriever that says when it runs. It has a key, as a stage of Fontes has."""

    index: ft.Index = field(repr=False)
    label: str = "first"
    kept: bool = True

    def key(self) -> str | None:
        return f"Counting {self.label} {self.index.fingerprint}" if self.kept else None

    def apply(self, given: ft.Topics, /) -> ft.Run:
        calls.append((self.label, len(given)))
        return BM25(self.index)(given)


@dataclass(frozen=True)
class Reverse(ft.Stage[ft.Run, ft.Run]):
    """A reranker that turns rankings round, `times` times; it needs the documents' text."""

    times: int = 1

    def key(self) -> str | None:
        return f"Reverse {self.times}"

    def apply(self, given: ft.Run, /) -> ft.Run:
        calls.append((f"reverse {self.times}", len(given)))
        sign = (-1) ** self.times
        scores = {t: {hit.id: sign * hit.score for hit, _ in zip(r, r.docs(), strict=True)} for t, r in given.items()}
        return ft.Run.of(scores, given.topics).with_(documents=given.documents)


@dataclass(frozen=True)
class Widen(ft.Stage[ft.Topics, ft.Topics]):
    """A rewriter."""

    word: str

    def key(self) -> str | None:
        return f"Widen {self.word}"

    def apply(self, given: ft.Topics, /) -> ft.Topics:
        calls.append(("widen", len(given)))
        return ft.Topics(ft.Topic(t.id, f"{t.text} {self.word}", origin=t, weights=t.weights) for t in given.values())


def test_systems_in_a_list_are_called_by_their_files_and_what_they_print(tmp_path: Path, index: ft.Index) -> None:
    ft.write_run(GOOD, tmp_path / "good.run.gz")
    (tmp_path / "x").mkdir()
    for folder in (tmp_path, tmp_path / "x"):
        ft.write_run(BAD, folder / "bad.trec")
    systems = [tmp_path / "good.run.gz", str(tmp_path / "bad.trec"), GOOD]
    report = ft.compare(systems, None, QRELS, "AP", baseline="bad.trec", allow_empty=True)
    assert list(report.systems) == ["good", "bad", "run 3"]
    assert report.baseline == "bad"
    both = ft.compare([tmp_path / "bad.trec", tmp_path / "x" / "bad.trec"], None, QRELS, "AP", allow_empty=True)
    assert list(both.systems) == [str(tmp_path / "bad.trec"), str(tmp_path / "x" / "bad.trec")]
    assert list(ft.compare([index.bm25()], TOPICS, JUDGED, "AP").systems) == [repr(index.bm25())]


def test_what_cannot_be_compared_is_said_in_a_sentence(index: ft.Index, tmp_path: Path) -> None:
    def fails(error: type[Exception], message: str, *given: Any, **options: Any) -> None:
        with pytest.raises(error, match=message):
            ft.compare(*given, **options)

    bm25 = index.bm25()
    fails(ft.core.ParameterError, "no system to compare", {}, None, QRELS, "AP")
    fails(ft.core.ParameterError, "mapping from name to system, or .*list", "bm25.run", None, QRELS, "AP")
    fails(ft.core.ParameterError, "there is no measure; give at least one", {"a": GOOD}, None, QRELS, [])
    fails(
        ft.core.ParameterError, "unknown test 'student'; there are t, wilcoxon", {"a": GOOD}, None, QRELS, "AP", test="student"
    )
    fails(ft.core.ParameterError, "seed must be a whole number", {"a": GOOD}, None, QRELS, "AP", seed=-1)
    fails(
        ft.core.ParameterError,
        "'c' is none of the systems; there are a, b",
        {"a": GOOD, "b": BAD},
        None,
        QRELS,
        "AP",
        baseline="c",
    )
    fails(ft.core.ParameterError, "'0' is none of the systems", {"a": GOOD, "b": BAD}, None, QRELS, "AP", baseline=0)
    fails(ft.core.ParameterError, "compare has no parameter 'metrics'.* 'measures'", {"a": GOOD}, None, QRELS, metrics=["AP"])
    fails(ft.core.ParameterError, "two systems are called", [bm25, bm25], TOPICS, JUDGED, "AP")
    fails(ft.core.InputError, "'a' is a stage and needs topics", {"a": bm25}, None, JUDGED, "AP")
    fails(ft.core.PipelineError, "'a' takes Run and gives Run", {"a": ft.core.Cut(3)}, TOPICS, JUDGED, "AP")
    fails(ft.core.InputError, "none of the topics has judgments; .* '1', .* 'q1'", {"a": bm25}, TOPICS, QRELS, "AP")
    fails(ft.core.InputError, "system 'a': a run cannot be made from int", {"a": 3}, None, QRELS, "AP")
    fails(ft.core.InputError, "no judgments", {"a": GOOD}, None, {}, "AP")
    report = ft.compare({"a": GOOD}, None, QRELS, "AP")
    with pytest.raises(ft.core.ParameterError, match=r"ends in one of \.md"):
        report.save(tmp_path / "report.pdf")


def test_a_shared_prefix_is_run_once_on_the_judged_topics_alone(index: ft.Index) -> None:
    first = Counting(index)
    topics = [*TOPICS.items(), ("4", "nobody judged this")]
    systems = {
        "first": first,
        "once": first >> Reverse(),
        "twice": first >> Reverse() >> Reverse(2),
        "sum": first * 0.5 + index.bm25(),
    }
    pairs = [(t, getattr(x, "text", x)) for t, x in topics]
    report = ft.compare(systems, pairs, JUDGED, "AP", allow_empty=True, cache=False)
    assert sorted(calls) == [("first", 3), ("reverse 1", 3), ("reverse 2", 3)]
    for name, stage in systems.items():
        assert report.systems[name].run == stage(TOPICS), name


def test_a_sum_and_weights_over_shared_parts_give_the_same_as_alone(index: ft.Index) -> None:
    first = Counting(index)
    stages = [first, 0.5 * first, first + index.tfidf(), (first >> Reverse()) * 2 + first, first >> (Reverse() + Reverse(2))]
    stages += [ft.fuse(first, first >> Reverse()), ft.fuse(first % 2, index.tfidf(), weights=[1, 2], method="wsum")]
    report = ft.compare({str(i): stage for i, stage in enumerate(stages)}, TOPICS, JUDGED, "AP")
    assert sorted(calls) == [("first", 3), ("reverse 1", 3), ("reverse 2", 3)]
    for i, stage in enumerate(stages):
        assert report.systems[str(i)].run == stage(TOPICS), stage


def test_stages_whose_identity_cannot_be_told_are_shared_only_as_the_same_object(index: ft.Index, tmp_path: Path) -> None:
    one, other = Counting(index, "one", kept=False), Counting(index, "other", kept=False)
    systems = {"one": one, "other": other, "one again": one >> Reverse()}
    for _ in range(2):
        calls.clear()
        ft.compare(systems, TOPICS, JUDGED, "AP", allow_empty=True)
        assert sorted(calls) == [("one", 3), ("other", 3), ("reverse 1", 3)]
    assert not list((tmp_path / "cache").rglob("*.npz"))


def test_a_second_call_runs_nothing_and_gives_the_same(index: ft.Index) -> None:
    systems = {"first": Counting(index) % 4, "reversed": Counting(index) >> Reverse(), "wide": Widen("wall") >> Counting(index)}
    before = ft.compare(systems, TOPICS, JUDGED, ["AP", "nDCG@2"])
    assert calls
    calls.clear()
    after = ft.compare(systems, TOPICS, JUDGED, ["AP", "nDCG@2"])
    assert not calls
    for name, system in after.systems.items():
        assert (system.cached, before.systems[name].cached) == (True, False)
        assert system.run == before.systems[name].run
        assert system.seconds == before.systems[name].seconds
        assert system.run.documents is index.state
    assert after.systems["wide"].run.topics["2"].origin == TOPICS["2"]
    assert after.comparisons == before.comparisons
    assert after.systems["reversed"].candidates == before.systems["reversed"].candidates
    ft.compare({"new": Counting(index) >> Reverse(2)}, TOPICS, JUDGED, "AP")
    assert calls == [("reverse 2", 3)]


def test_other_topics_parameters_or_documents_are_other_runs(index: ft.Index, tmp_path: Path) -> None:
    first = Counting(index)
    ft.compare({"a": first}, TOPICS, JUDGED, "AP")
    changed = {
        "another name": (Counting(index, "second"), TOPICS),
        "another text": (first, {**TOPICS, "1": "warm wall"}),
        "weights": (first, {**TOPICS, "1": ft.Topic("1", "cold water", weights={"water": 1.0})}),
        "another index": (Counting(ft.Index.build(DOCS[:4], tmp_path / "other", analyzer="whitespace")), TOPICS),
    }
    for what, (stage, topics) in changed.items():
        calls.clear()
        ft.compare({"a": stage}, topics, JUDGED, "AP")
        assert len(calls) == 1, what
    calls.clear()
    ft.compare({"a": first}, TOPICS, JUDGED, "AP", cache=False)
    assert len(calls) == 1


def test_the_cache_may_be_a_folder_of_its_own(index: ft.Index, tmp_path: Path) -> None:
    ft.compare({"a": Counting(index)}, TOPICS, JUDGED, "AP", cache=tmp_path / "mine")
    assert len(list((tmp_path / "mine").rglob("*.npz"))) == 1
    assert not (tmp_path / "cache").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ft.core.InputError, match=r"the cache cannot be written .*; give another folder, or cache=False"):
        ft.compare({"a": Counting(index)}, TOPICS, JUDGED, "AP", cache=tmp_path / "file")


def damaged(whole: bytes) -> Iterator[bytes]:
    yield b""
    yield b"not a file of arrays"
    yield whole[: len(whole) // 2]
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        yield whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]


def test_a_damaged_entry_is_run_again_and_written_again(index: ft.Index, tmp_path: Path) -> None:
    systems = {"a": Widen("wall") >> Counting(index)}
    run = ft.compare(systems, TOPICS, JUDGED, "AP").systems["a"].run
    (path,) = (tmp_path / "cache").rglob("*.npz")
    whole = path.read_bytes()
    rerun = 0
    for content in damaged(whole):
        calls.clear()
        path.write_bytes(content)
        assert ft.compare(systems, TOPICS, JUDGED, "AP").systems["a"].run == run
        rerun += len(calls)
        calls.clear()
        assert ft.compare(systems, TOPICS, JUDGED, "AP").systems["a"].run == run
        assert not calls
    assert rerun > 60


def test_the_cache_drops_what_was_used_longest_ago(index: ft.Index, tmp_path: Path) -> None:
    import os

    from fontes.experiments.systems import Cache

    cache = Cache(tmp_path / "small")
    run = Counting(index)(TOPICS)
    for number in range(5):
        cache.store(f"{number}" * 64, run, run.topics)
    sizes = []
    for path in cache.folder.rglob("*.npz"):
        os.utime(path, (int(path.stem[0]), int(path.stem[0])))
        sizes.append(path.stat().st_size)
    cache = Cache(cache.folder, limit=3 * max(sizes))
    assert cache.load("0" * 64, run.topics, {index.fingerprint: index}) == run  # used now
    cache.store("5" * 64, run, run.topics)
    cache.trim()
    assert sorted(p.stem[0] for p in cache.folder.rglob("*.npz")) == ["0", "4", "5"]


def test_a_cache_deletes_no_file_but_its_own(index: ft.Index, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "ab").mkdir(parents=True)
    (mine / "ab" / "data.npz").write_bytes(b"x" * 100)
    (mine / "ab" / "notes.txt").write_bytes(b"x" * 100)
    left = mine / "ab" / f".{'a' * 64}.npz.1-1.tmp"
    left.write_bytes(b"x")
    from fontes.experiments.systems import Cache

    cache = Cache(mine, limit=0)
    run = Counting(index)(TOPICS)
    cache.store("c" * 64, run, run.topics)
    cache.trim()
    assert sorted(path.name for path in mine.rglob("*.*")) == [f"{'c' * 64}.npz", "data.npz", "notes.txt"]


def test_a_user_folder_that_cannot_be_written_is_done_without(
    index: ft.Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="runs are not cached: .*; FONTES_CACHE names another folder"):
        report = ft.compare({"a": Counting(index)}, TOPICS, JUDGED, "AP")
    assert report.mean("a", "AP") > 0


def test_a_rerankers_report_has_the_recall_of_its_candidates(index: ft.Index) -> None:
    first = index.bm25()
    report = ft.compare(
        {
            "first": first,
            "reversed": first % 1 >> Reverse(),
            "cut": first % 2 >> Reverse() % 1,
            "twice": first >> ft.core.Cut(2),
        },
        TOPICS,
        JUDGED,
        [ft.R @ 1],
    )
    assert report.systems["first"].candidates is None
    assert report.systems["twice"].candidates is None
    one = report.systems["reversed"].candidates
    assert one is not None
    assert (one.depth, one.recall) == (1, ft.evaluate((first % 1)(TOPICS), JUDGED, [ft.R])[ft.R])
    assert report.systems["cut"].candidates.depth == 2  # type: ignore[union-attr]
    assert "@1" in str(report)


def test_seconds_a_topic_are_those_of_all_steps_and_unknown_for_files(index: ft.Index, tmp_path: Path) -> None:
    ft.write_run(index.bm25()(TOPICS), tmp_path / "bm25.run")
    systems = {"file": tmp_path / "bm25.run", "stage": index.bm25() >> Reverse(), "first": index.bm25()}
    report = ft.compare(systems, TOPICS, JUDGED, "AP", allow_empty=True)
    seconds = {name: system.seconds for name, system in report.systems.items()}
    assert seconds["file"] is None
    assert 0 < seconds["first"] < seconds["stage"]  # type: ignore[operator]


def test_the_key_of_a_stage_says_what_it_does_or_nothing(index: ft.Index, tmp_path: Path) -> None:
    key = index.bm25(k1=1.2).key()
    assert key == ft.Index.open(index.path).bm25(k1=1.2).key()
    assert key != index.bm25(k1=1.3).key()
    assert key != index.tfidf().key()
    assert (index.bm25() >> index.rm3() >> index.bm25()).key() is not None
    assert (0.5 * index.bm25() + index.tfidf()).key() is not None
    own = ft.Index.build(DOCS, tmp_path / "own", analyzer=str.split)
    assert own.bm25().key() is None
    assert (own.bm25() >> ft.core.Cut(3)).key() is None

    @dataclass(frozen=True)
    class Mine(ft.Stage[ft.Run, ft.Run]):
        def apply(self, given: ft.Run, /) -> ft.Run:
            return given

    assert Mine().key() is None
