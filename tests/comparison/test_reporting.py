"""`compare_runs`: what it measures and tests of runs that are there already."""

import json
import math

import numpy as np
import pytest

import fontes as ft
from fontes.comparison import SystemRun, Testing, compare_runs, statistics

QRELS = {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}, "q3": {"d1": 0}, "q4": {"d4": 1}}
GOOD = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d3": 1.0}, "q4": {"d4": 1.0}}
BAD = {"q1": {"d9": 3.0, "d1": 2.0}, "q2": {"d8": 1.0, "d3": 0.5}, "q3": {"d1": 1.0}, "q9": {"d1": 1.0}}


def test_the_report_has_means_values_and_counts_of_each_system() -> None:
    report = compare_runs({"good": GOOD, "bad": BAD}, QRELS, [ft.RR, ft.nDCG @ 5])
    assert list(report.systems) == ["good", "bad"]
    assert report.mean("good", "RR") == 0.75
    assert report.mean("bad", ft.RR) == ft.evaluate(BAD, QRELS, [ft.RR])[ft.RR] == 0.25
    assert report.per_topic("RR")["q2"] == {"good": 1.0, "bad": 0.5}
    assert report.systems["good"].evaluation.missing == 1
    assert report.systems["bad"].evaluation.unjudged == 1
    assert [t.id for t in report.topics.values()] == list(QRELS)
    assert report.judged == {ft.RR: ft.measures.Judged @ 2, ft.nDCG @ 5: ft.measures.Judged @ 5}
    assert report.systems["good"].evaluation[ft.measures.Judged @ 2] == 0.75


def test_a_comparison_has_difference_wins_ties_losses_and_effect_sizes() -> None:
    report = compare_runs({"bad": BAD, "good": GOOD}, QRELS, [ft.RR], baseline="bad")
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
    against = compare_runs(systems, QRELS, ["RR", "AP"], baseline="b", testing=Testing(allow_empty=True))
    assert [(str(c.measure), c.system, c.against) for c in against.comparisons] == [
        (m, s, "b") for m in ("RR", "AP") for s in "acd"
    ]
    pairs = compare_runs(systems, QRELS, "RR", testing=Testing(allow_empty=True))
    assert [(c.system, c.against) for c in pairs.comparisons] == [
        ("b", "a"), ("c", "a"), ("c", "b"), ("d", "a"), ("d", "b"), ("d", "c")
    ]  # fmt: skip


def test_the_correction_goes_over_the_comparisons_of_one_measure() -> None:
    systems = {"a": GOOD, "b": BAD, "c": {"q1": {"d1": 1.0}}}
    report = compare_runs(systems, QRELS, ["RR", "AP"], testing=Testing(correction="bonferroni"))
    for one in report.comparisons:
        assert one.corrected == pytest.approx(min(1, 3 * one.p))


@pytest.mark.parametrize("test", ["t", "wilcoxon", "fisher", "tukey"])
def test_equal_systems_and_single_topics_are_never_significant(test: str, recwarn: pytest.WarningsRecorder) -> None:
    testing = Testing(test=test, allow_empty=True)
    equal = compare_runs({"a": GOOD, "b": GOOD}, QRELS, ["AP", "NumRel", "NumRet"], testing=testing)
    assert all(c.corrected == 1 and not c.significant and c.d_z == 0 for c in equal.comparisons)
    single = compare_runs({"a": GOOD, "b": BAD}, {"q1": QRELS["q1"]}, ["RR"], testing=Testing(test=test, alpha=0.99))
    (one,) = single.comparisons
    # the t-test and Tukey's have no variance of a single topic; the sign of one difference is + or - with equal chance
    assert (one.p, one.corrected) == pytest.approx(
        (1, 1) if test in ("wilcoxon", "fisher") else (math.nan, math.nan), nan_ok=True
    )
    assert not one.significant
    assert json.loads(single.to_json())["comparisons"][0]["d_z"] is None
    assert "nan" not in f"{single}{single.to_markdown()}{single.to_latex()}{single.to_csv()}{single.to_json()}".lower()
    assert not list(recwarn)


def test_one_system_alone_gets_its_means_and_intervals() -> None:
    report = compare_runs({"run 1": GOOD}, QRELS, "RR")
    assert report.comparisons == ()
    low, high = report.intervals[ft.RR]["run 1"]
    assert low <= report.mean("run 1", "RR") <= high
    assert "0.7500" in str(report)
    assert "superscripts" not in str(report)
    assert "0.75" in report.to_csv()
    assert "toprule" in report.to_latex()


def test_the_interval_of_a_difference_is_that_of_the_bootstrap() -> None:
    report = compare_runs({"a": GOOD, "b": BAD}, QRELS, ["AP", "RR"], testing=Testing(seed=2))
    for one in report.comparisons:
        values = report.values[one.measure]
        low, high = statistics.bootstrap(values[:, [1]] - values[:, [0]], 0.95, seed=2)
        assert (one.low, one.high) == pytest.approx((low[0], high[0]))
        assert not math.isnan(one.low)


def test_a_run_says_how_it_came_about_and_what_its_reranker_was_given() -> None:
    run = ft.Run.of(GOOD)
    system = compare_runs({"a": SystemRun(run, "bm25()", 6.0, ft.Run.of(BAD), cached=True)}, QRELS, "AP").systems["a"]
    assert (system.name, system.run, system.description, system.seconds, system.cached) == ("a", run, "bm25()", 2.0, True)
    assert system.candidates is not None
    assert (system.candidates.depth, system.candidates.recall) == (2, 0.375)  # 1/2, 1/1, none relevant, none: 1.5 / 4


def test_candidates_of_another_kind_than_the_judged_documents_have_no_recall() -> None:
    passages = ft.Run.of({"q1": {"d1#1": 1.0, "d1#2": 0.5}})
    assert compare_runs({"a": SystemRun(ft.Run.of(GOOD), candidates=passages)}, QRELS, "AP").systems["a"].candidates is None


def test_topics_have_their_texts_from_whoever_knows_them_first() -> None:
    known = ft.Topics.of({"q1": "from the topics", "q2": "", "q3": "", "q9": "not judged"})
    run = ft.Run.of(GOOD, ft.Topics.of({"q1": "from the run", "q2": "of the run", "q4": ""}))
    report = compare_runs({"a": run}, QRELS, "AP", topics=known)
    assert {t.id: t.text for t in report.topics.values()} == {"q1": "from the topics", "q2": "of the run", "q3": ""}


def test_only_given_topics_are_measured_and_those_without_results_count_0() -> None:
    known = ft.Topics.of({"q1": "spring", "q4": "well", "q9": "not judged"})
    report = compare_runs({"good": GOOD, "bad": BAD}, QRELS, "RR", topics=known)
    assert list(report.topics) == list(report.qrels) == ["q1", "q4"]
    assert report.per_topic("RR") == {"q1": {"good": 1.0, "bad": 0.5}, "q4": {"good": 1.0, "bad": 0.0}}
    assert (report.not_given, report.to_dict()["not_given"], report.systems["bad"].evaluation.missing) == (2, 2, 1)
    assert "2 topics with judgments not given, and not measured" in str(report)
    assert "not given" not in str(compare_runs({"good": GOOD, "bad": BAD}, QRELS, "RR"))


def test_a_run_without_rows_has_the_mean_0_where_it_is_allowed() -> None:
    report = compare_runs({"good": GOOD, "none": {}}, QRELS, "RR", testing=Testing(allow_empty=True))
    assert report.mean("none", "RR") == 0
    assert report.to_dict()["allow_empty"] is True


def test_runs_with_the_same_rows_are_named_where_they_are_allowed() -> None:
    again = {topic: dict(reversed(ranking.items())) for topic, ranking in reversed(GOOD.items())} | {"q3": {}}
    runs = {"good": GOOD, "bad": BAD, "again": again}
    assert "good and again: the same rows" in str(compare_runs(runs, QRELS, "RR", testing=Testing(allow_empty=True)))
    other_score = {**GOOD, "q4": {"d4": 2.0}}
    assert "the same rows" not in str(compare_runs({"good": GOOD, "other": other_score}, QRELS, "RR"))
