"""`compare`: what it runs, measures and tests, and what its report says."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

import fontes as ft
from fontes.evaluation import report_text
from fontes.evaluation.statistics import tukey

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

    takes = ft.Topics
    gives = ft.Run
    index: ft.Index = field(repr=False)
    name: str = "first"
    kept: bool = True

    def key(self) -> str | None:
        return f"Counting {self.name} {self.index.fingerprint}" if self.kept else None

    def apply(self, given: ft.Topics) -> ft.Run:
        calls.append((self.name, len(given)))
        return self.index.bm25()(given)


@dataclass(frozen=True)
class Reverse(ft.Stage[ft.Run, ft.Run]):
    """A reranker that turns rankings round, `times` times; it needs the documents' text."""

    takes = ft.Run
    gives = ft.Run
    times: int = 1

    def key(self) -> str | None:
        return f"Reverse {self.times}"

    def apply(self, given: ft.Run) -> ft.Run:
        calls.append((f"reverse {self.times}", len(given)))
        sign = (-1) ** self.times
        scores = {t: {hit.id: sign * hit.score for hit, _ in zip(r, r.docs(), strict=True)} for t, r in given.items()}
        return ft.Run.of(scores, given.topics).with_(documents=given.documents)


@dataclass(frozen=True)
class Widen(ft.Stage[ft.Topics, ft.Topics]):
    """A rewriter."""

    takes = ft.Topics
    gives = ft.Topics
    word: str

    def key(self) -> str | None:
        return f"Widen {self.word}"

    def apply(self, given: ft.Topics) -> ft.Topics:
        calls.append(("widen", len(given)))
        return ft.Topics(ft.Topic(t.id, f"{t.text} {self.word}", origin=t, weights=t.weights) for t in given.values())


def test_the_report_has_means_values_and_counts_of_each_system() -> None:
    report = ft.compare({"good": GOOD, "bad": BAD}, None, QRELS, [ft.RR, ft.nDCG @ 5])
    assert list(report.systems) == ["good", "bad"]
    assert report.mean("good", "RR") == 0.75
    assert report.mean("bad", ft.RR) == ft.evaluate(BAD, QRELS, [ft.RR])[ft.RR] == 0.25
    assert report.per_topic("RR")["q2"] == {"good": 1.0, "bad": 0.5}
    assert report.systems["good"].evaluation.missing == 1
    assert report.systems["bad"].evaluation.unjudged == 1
    assert [t.id for t in report.topics.values()] == list(QRELS)
    assert report.judged == {ft.RR: ft.Judged @ 2, ft.nDCG @ 5: ft.Judged @ 5}
    assert report.systems["good"].evaluation[ft.Judged @ 2] == 0.75


def test_a_comparison_has_difference_wins_ties_losses_and_effect_sizes() -> None:
    report = ft.compare({"bad": BAD, "good": GOOD}, None, QRELS, [ft.RR], baseline="bad")
    (one,) = report.comparisons
    assert (one.system, one.against, one.wins, one.ties, one.losses) == ("good", "bad", 3, 1, 0)
    differences = np.array([0.5, 0.5, 0.0, 1.0])
    assert one.difference == 0.5
    assert one.d_z == pytest.approx(0.5 / differences.std(ddof=1))
    assert report.comparison("good", "bad", "RR") is one
    with pytest.raises(KeyError):
        report.comparison("bad", "good", "RR")


def test_with_a_baseline_all_are_tested_against_it_and_without_one_all_pairs() -> None:
    systems = {"a": GOOD, "b": BAD, "c": {"q1": {"d1": 1.0}}, "d": {}}
    against = ft.compare(systems, None, QRELS, ["RR", "AP"], baseline="b")
    assert [(str(c.measure), c.system, c.against) for c in against.comparisons] == [
        (m, s, "b") for m in ("RR", "AP") for s in "acd"
    ]
    pairs = ft.compare(systems, None, QRELS, "RR")
    assert [(c.system, c.against) for c in pairs.comparisons] == [
        ("b", "a"), ("c", "a"), ("c", "b"), ("d", "a"), ("d", "b"), ("d", "c")
    ]  # fmt: skip


def test_the_correction_goes_over_the_comparisons_of_one_measure() -> None:
    systems = {"a": GOOD, "b": BAD, "c": {"q1": {"d1": 1.0}}}
    report = ft.compare(systems, None, QRELS, ["RR", "AP"], correction="bonferroni")
    for one in report.comparisons:
        assert one.corrected == pytest.approx(min(1, 3 * one.p))


@pytest.mark.parametrize("test", ["t", "wilcoxon", "fisher", "tukey"])
def test_equal_systems_and_single_topics_are_never_significant(test: str, recwarn: pytest.WarningsRecorder) -> None:
    equal = ft.compare({"a": GOOD, "b": GOOD}, None, QRELS, ["AP", "NumRel", "NumRet"], test=test)
    assert all(c.corrected == 1 and not c.significant and c.d_z == 0 for c in equal.comparisons)
    single = ft.compare({"a": GOOD, "b": BAD}, None, {"q1": QRELS["q1"]}, ["RR"], test=test, alpha=0.99)
    (one,) = single.comparisons
    assert not one.significant or one.corrected <= 0.99
    assert json.loads(single.to_json())["comparisons"][0]["d_z"] is None
    assert "nan" not in f"{single}{single.to_markdown()}{single.to_latex()}{single.to_csv()}{single.to_json()}".lower()
    assert not list(recwarn)


def test_one_system_alone_gets_its_means_and_intervals() -> None:
    report = ft.compare([GOOD], None, QRELS, "RR")
    assert report.comparisons == ()
    low, high = report.intervals[ft.RR]["run 1"]
    assert low <= report.mean("run 1", "RR") <= high
    assert "0.7500" in str(report)
    assert "superscripts" not in str(report)
    assert "0.75" in report.to_csv()
    assert "toprule" in report.to_latex()


def test_systems_in_a_list_are_called_by_their_files_and_what_they_print(tmp_path: Path, index: ft.Index) -> None:
    ft.write_run(GOOD, tmp_path / "good.run.gz")
    (tmp_path / "x").mkdir()
    for folder in (tmp_path, tmp_path / "x"):
        ft.write_run(BAD, folder / "bad.trec")
    report = ft.compare([tmp_path / "good.run.gz", str(tmp_path / "bad.trec"), GOOD], None, QRELS, "AP", baseline="bad.trec")
    assert list(report.systems) == ["good", "bad", "run 3"]
    assert report.baseline == "bad"
    both = ft.compare([tmp_path / "bad.trec", tmp_path / "x" / "bad.trec"], None, QRELS, "AP")
    assert list(both.systems) == [str(tmp_path / "bad.trec"), str(tmp_path / "x" / "bad.trec")]
    assert list(ft.compare([index.bm25()], TOPICS, JUDGED, "AP").systems) == [repr(index.bm25())]


def test_what_cannot_be_compared_is_said_in_a_sentence(index: ft.Index, tmp_path: Path) -> None:
    def fails(error: type[Exception], message: str, *given: Any, **options: Any) -> None:
        with pytest.raises(error, match=message):
            ft.compare(*given, **options)

    bm25 = index.bm25()
    fails(ft.ParameterError, "no system to compare", {}, None, QRELS, "AP")
    fails(ft.ParameterError, "mapping from name to system, or .*list", "bm25.run", None, QRELS, "AP")
    fails(ft.ParameterError, "no measure to compare by", {"a": GOOD}, None, QRELS, [])
    fails(ft.ParameterError, "unknown test 'student'; there are t, wilcoxon", {"a": GOOD}, None, QRELS, "AP", test="student")
    fails(ft.ParameterError, "unknown correction 'sidak'", {"a": GOOD}, None, QRELS, "AP", correction="sidak")
    fails(ft.ParameterError, "corrects by itself", {"a": GOOD}, None, QRELS, "AP", test="tukey", correction="bh")
    fails(ft.ParameterError, "alpha must lie between 0 and 1", {"a": GOOD}, None, QRELS, "AP", alpha=1)
    fails(ft.ParameterError, "seed must be a whole number", {"a": GOOD}, None, QRELS, "AP", seed=-1)
    fails(
        ft.ParameterError, "'c' is none of the systems; there are a, b", {"a": GOOD, "b": BAD}, None, QRELS, "AP", baseline="c"
    )
    fails(ft.ParameterError, "two systems are called", [bm25, bm25], TOPICS, JUDGED, "AP")
    fails(ft.InputError, "'a' is a stage and needs topics", {"a": bm25}, None, JUDGED, "AP")
    fails(ft.PipelineError, "'a' takes Run and gives Run", {"a": ft.Cut(3)}, TOPICS, JUDGED, "AP")
    fails(ft.InputError, "none of the topics has judgments; .* '1', .* 'q1'", {"a": bm25}, TOPICS, QRELS, "AP")
    fails(ft.InputError, "system 'a': a run cannot be made from int", {"a": 3}, None, QRELS, "AP")
    fails(ft.InputError, "no judgments", {"a": GOOD}, None, {}, "AP")
    report = ft.compare({"a": GOOD}, None, QRELS, "AP")
    with pytest.raises(ft.ParameterError, match=r"ends in one of \.md"):
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
    report = ft.compare(systems, [(t, getattr(x, "text", x)) for t, x in topics], JUDGED, "AP", cache=False)
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
        ft.compare(systems, TOPICS, JUDGED, "AP")
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
        assert system.cached
        assert not before.systems[name].cached
        assert system.run == before.systems[name].run
        assert system.seconds == before.systems[name].seconds
        assert system.run.documents is index
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
    with pytest.raises(ft.InputError, match=r"the cache cannot be written .*; give another folder, or cache=False"):
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

    from fontes.evaluation.cache import Cache

    cache = Cache(tmp_path / "small")
    run = Counting(index)(TOPICS)
    for number in range(5):
        cache.store(f"{number}" * 64, run, run.topics)
        os.utime(cache._path(f"{number}" * 64), (number, number))
    size = cache._path("0" * 64).stat().st_size
    assert cache.load("0" * 64, run.topics, {index.fingerprint: index}) == run  # used now
    cache.limit = 3 * size
    cache.trim()
    assert sorted(p.stem[0] for p in cache.folder.rglob("*.npz")) == ["0", "3", "4"]


def test_a_cache_deletes_no_file_but_its_own(index: ft.Index, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "ab").mkdir(parents=True)
    (mine / "ab" / "data.npz").write_bytes(b"x" * 100)
    (mine / "ab" / "notes.txt").write_bytes(b"x" * 100)
    left = mine / "ab" / f".{'a' * 64}.npz.1-1.tmp"
    left.write_bytes(b"x")
    from fontes.evaluation.cache import Cache

    cache = Cache(mine, limit=0)
    run = Counting(index)(TOPICS)
    cache.store("c" * 64, run, run.topics)
    cache.trim()
    assert sorted(path.name for path in mine.rglob("*.*")) == ["data.npz", "notes.txt"]


def test_a_user_folder_that_cannot_be_written_is_done_without(
    index: ft.Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="runs are not kept: .*; FONTES_CACHE names another folder"):
        report = ft.compare({"a": Counting(index)}, TOPICS, JUDGED, "AP")
    assert report.mean("a", "AP") > 0


def test_a_rerankers_report_has_the_recall_of_its_candidates(index: ft.Index) -> None:
    first = index.bm25()
    report = ft.compare(
        {"first": first, "reversed": first % 1 >> Reverse(), "cut": first % 2 >> Reverse() % 1, "twice": first >> ft.Cut(2)},
        TOPICS, JUDGED, [ft.R @ 1],
    )  # fmt: skip
    assert report.systems["first"].candidates is None
    assert report.systems["twice"].candidates is None
    one = report.systems["reversed"].candidates
    assert one is not None
    assert (one.depth, one.recall) == (1, ft.evaluate((first % 1)(TOPICS), JUDGED, [ft.R])[ft.R])
    assert report.systems["cut"].candidates.depth == 2  # type: ignore[union-attr]
    assert "@1" in str(report)


def test_seconds_a_topic_are_those_of_all_steps_and_unknown_for_files(index: ft.Index, tmp_path: Path) -> None:
    ft.write_run(index.bm25()(TOPICS), tmp_path / "bm25.run")
    report = ft.compare(
        {"file": tmp_path / "bm25.run", "stage": index.bm25() >> Reverse(), "first": index.bm25()}, TOPICS, JUDGED, "AP"
    )
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
    assert (own.bm25() >> ft.Cut(3)).key() is None

    @dataclass(frozen=True)
    class Mine(ft.Stage[ft.Run, ft.Run]):
        def apply(self, given: ft.Run) -> ft.Run:
            return given

    assert Mine().key() is None


def test_superscripts_name_the_systems_that_are_significantly_worse(shared: Path) -> None:
    report = of_checkthat(shared, "dev")
    lines = str(report).splitlines()
    assert lines[1].split()[:3] == ["a", "dev.leon_predictions_BM25_TOP10", "0.5523"]
    assert lines[2].split()[:3] == ["b", "dev.leon_predictions_SciBERT_TOP10", "0.7084ᵃᶜᵈ"]
    assert report.best(ft.RR @ 5) == {"dev.leon_predictions_SciBERT_TOP10"}


def of_checkthat(shared: Path, split: str, **options: Any) -> ft.Report:
    folder = shared / "checkthat25_4b"
    return ft.compare(
        sorted((folder / "runs").glob(f"{split}.*")), None, folder / "qrels" / f"{split}.tsv", ft.RR @ 5, **options
    )


def test_runs_of_checkthat_have_the_published_figures(shared: Path) -> None:
    published = {"dev.leon_predictions_BM25_TOP10": 0.552, "dev.leon_predictions_SciBERT_TOP10": 0.708}
    dev = of_checkthat(shared, "dev", test="fisher")
    assert {name: round(dev.mean(name, "RR@5"), 3) for name in published} == published
    published = {"test.leon_predictions_BM25_TOP10": 0.431, "test.leon_predictions_SciBERT_TOP10": 0.683}
    test = of_checkthat(shared, "test")
    assert {name: round(test.mean(name, "RR@5"), 3) for name in published} == published
    (one,) = test.comparisons
    assert one.significant
    assert one.low < one.difference < one.high


def test_p_values_wins_and_tukeys_are_those_of_ranx(shared: Path) -> None:
    # ranx 0.3.21, compare(stat_test="student") and "tukey" of mrr@5 on these files; its Tukey is the one without blocks.
    ranx = {
        ("leon_predictions_SciBERT_TOP10", "leon_predictions_BM25_TOP10"): (7.147106694264843e-45, (398, 912, 90), 0.0),
        ("ysong_colbertv2", "leon_predictions_BM25_TOP10"): (4.605860233939603e-16, (297, 972, 131), 2.557039529449412e-06),
        ("ysong_openai_emb", "leon_predictions_SciBERT_TOP10"): (0.000286399527965872, (158, 1018, 224), 0.2276840954047623),
        ("ysong_openai_emb", "ysong_colbertv2"): (2.9273380263785676e-05, (260, 981, 159), 0.07934057703510844),
    }
    report = of_checkthat(shared, "dev")
    names = list(report.systems)
    for (system, against), (p, counts, tukeys) in ranx.items():
        one = report.comparison(f"dev.{system}", f"dev.{against}", "RR@5")
        assert one.p == pytest.approx(p, rel=1e-9)
        assert (one.wins, one.ties, one.losses) == counts
        pair = (names.index(one.system), names.index(one.against))
        assert tukey(report.values[ft.RR @ 5], [pair], blocks=False)[1][0] == pytest.approx(tukeys, abs=1e-9)


def test_the_organisers_runs_of_cast_evaluate_to_what_trec_eval_gives(shared: Path) -> None:
    folder = shared / "cast2021"
    qrels = ft.read_qrels(folder / "qrels" / "test_docs.tsv")
    files = sorted((folder / "baselines").glob("*.run"))
    report = ft.compare(files, folder / "queries.jsonl", qrels, ["nDCG@3", "AP", "R@100", "RR"])
    trec_eval = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), {"ndcg_cut.3", "map", "recall.100", "recip_rank"})
    for path in files:
        values = trec_eval.evaluate(ft.read_run(path).to_dict())
        for measure, name in {"nDCG@3": "ndcg_cut_3", "AP": "map", "R@100": "recall_100", "RR": "recip_rank"}.items():
            mean = sum(values[t][name] for t in values if t in qrels) / len(qrels)
            system = next(s for s in report.systems if path.name.startswith(f"{s}."))
            assert report.mean(system, measure) == pytest.approx(mean, abs=1e-9)
    assert report.topics["106_1"].text


def test_json_holds_everything_and_csv_a_line_for_each_test() -> None:
    report = ft.compare({"a": GOOD, "b": BAD, "c": {}}, None, QRELS, ["AP", "RR"], test="fisher", seed=3)
    facts = json.loads(report.to_json())
    assert (facts["test"], facts["correction"], facts["permutations"], facts["seed"]) == ("fisher", "holm", 100_000, 3)
    assert facts["systems"]["c"]["missing"] == 4
    assert facts["per_topic"]["AP"]["a"] == report.systems["a"].evaluation.per_topic("AP")
    assert [c["p"] for c in facts["comparisons"]] == [c.p for c in report.comparisons]
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [(r["measure"], r["system"], r["against"]) for r in rows if r["measure"] == "AP"] == [
        ("AP", "a", ""), ("AP", "b", "a"), ("AP", "c", "a"), ("AP", "c", "b")
    ]  # fmt: skip
    assert float(rows[1]["p"]) == report.comparisons[0].p


def test_names_are_escaped_in_latex_and_markdown() -> None:
    report = ft.compare({"a_b & 50% >> {x}^2~\\|": GOOD, "*b*": BAD}, None, QRELS, "AP")
    assert (
        r"a\_b \& 50\% \textgreater{}\textgreater{} \{x\}\textasciicircum{}2\textasciitilde{}\textbackslash{}"
        in report.to_latex()
    )
    assert r"\textbf{0.7500}" in report.to_latex()
    assert r"| a | a\_b & 50% >> {x}^2~\\\| | **0.7500** |" in report.to_markdown()
    assert r"\*b\*" in report.to_markdown()


def test_the_best_value_is_bold_in_a_terminal_and_the_text_the_same() -> None:
    from rich.console import Console

    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    console.print(report)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1m0.7500" in shown
    plain = Console(file=io.StringIO(), width=200)
    plain.print(report)
    assert [x.rstrip() for x in plain.file.getvalue().split("\n")][:-1] == str(report).split("\n")  # type: ignore[attr-defined]


def test_more_than_25_systems_have_letters_of_their_own() -> None:
    report = ft.compare({f"s{i}": GOOD if i % 2 else BAD for i in range(27)}, None, QRELS, "AP")
    labels = [line.split()[0] for line in str(report).splitlines()[1:28]]
    assert labels[15:18] == ["p", "r", "s"]
    assert labels[24:] == ["z", "a2", "b2"]
    assert "351 tests, too many to print" in str(report)
    assert report_text.Cell("1", ("a2", "b")).raised == "ᵃ²ᵇ"


def test_a_report_is_saved_in_the_form_of_its_name(tmp_path: Path) -> None:
    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    for name, text in {"r.md": report.to_markdown(), "r.tex": report.to_latex(), "r.csv": report.to_csv()}.items():
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    report.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["measures"] == ["AP"]


def test_the_interval_of_a_difference_is_that_of_the_bootstrap() -> None:
    from fontes.evaluation import statistics

    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, ["AP", "RR"], seed=2)
    for one in report.comparisons:
        values = report.values[one.measure]
        low, high = statistics.bootstrap(values[:, [1]] - values[:, [0]], 0.95, seed=2)
        assert (one.low, one.high) == pytest.approx((low[0], high[0]))
        assert not math.isnan(one.low)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with judgments and two runs, which is the current one."""
    ft.write_qrels(QRELS, tmp_path / "qrels.txt")
    ft.write_run(GOOD, tmp_path / "good.run")
    ft.write_run(BAD, tmp_path / "bad.run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_fontes(*arguments: str) -> Any:
    from typer.testing import CliRunner

    from fontes.app.cli import app

    return CliRunner().invoke(app, ["compare", "qrels.txt", *arguments])


def test_the_command_prints_what_the_report_prints(files: Path) -> None:
    result = run_fontes("good.run", "bad.run", "--measures", "RR,nDCG(gain='exp')@5,P(rel=2)@1", "--baseline", "bad.run")
    measures = [ft.RR, ft.nDCG(gain="exp") @ 5, ft.P(rel=2) @ 1]
    report = ft.compare(["good.run", "bad.run"], None, "qrels.txt", measures, baseline="bad")
    assert result.output == f"{report}\n"
    assert not (files / "cache").exists()


def test_the_command_prints_json_and_writes_all_forms(files: Path) -> None:
    result = run_fontes(
        "good.run", "bad.run", "-m", "AP", "--json", "-o", "r.md", "-o", "r.tex", "--test", "wilcoxon", "--alpha", "0.1"
    )
    facts = json.loads(result.output)
    assert (facts["test"], facts["alpha"], list(facts["systems"])) == ("wilcoxon", 0.1, ["good", "bad"])
    assert "| a | good |" in (files / "r.md").read_text(encoding="utf-8")
    assert r"\toprule" in (files / "r.tex").read_text(encoding="utf-8")


def test_the_command_says_what_is_wrong(files: Path) -> None:
    for arguments, message in {
        ("good.run", "--baseline", "best"): "the baseline 'best' is none of the systems; there are good",
        ("good.run", "--test", "z"): "unknown test 'z'",
        ("none.run",): "none.run: there is no such file",
        ("good.run", "-m", ""): "there is no measure to compare by",
    }.items():
        result = run_fontes(*arguments)
        assert isinstance(result.exception, ft.FontesError)
        assert message in str(result.exception)
