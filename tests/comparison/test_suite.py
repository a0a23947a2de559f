"""Suites: means, intervals, ranks and tests over collections against plain formulas, and the report's forms."""

import csv
import io
import json
import math

import numpy as np
import pytest
from scipy import stats

import fontes as ft
from fontes.comparison import Published, SuiteReport, Testing, compare_runs
from fontes.measures import parse

RANKS = {  # of the one relevant document of each topic
    "small": {"bm25": (1, 2, 4), "new": (1, 1, 3), "same": (1, 2, 4)},
    "large": {"bm25": (2, 4, 4, 1, 5, 3, 2, 5), "new": (1, 2, 3, 1, 2, 2, 1, 3), "same": (2, 4, 4, 1, 5, 3, 2, 5)},
}


def report(collection, baseline="bm25", measures="RR"):
    runs = {}
    for system, ranks in RANKS[collection].items():
        rankings = {}
        for topic, rank in enumerate(ranks):
            ids = [f"x{i}" for i in range(6)]
            ids[rank - 1] = f"r{topic}"
            rankings[str(topic)] = {doc: 10.0 - i for i, doc in enumerate(ids)}
        runs[system] = ft.Run.of(rankings)
    qrels = {str(topic): {f"r{topic}": 1} for topic in range(len(RANKS[collection]["bm25"]))}
    return compare_runs(runs, qrels, measures, baseline=baseline, testing=Testing(allow_empty=True))


@pytest.fixture
def suite():
    return SuiteReport({name: report(name) for name in RANKS})


def values(collection, system):
    return np.array([1 / rank for rank in RANKS[collection][system]])


def test_each_collection_counts_the_same(suite):
    expected = (values("small", "new").mean() + values("large", "new").mean()) / 2
    assert suite.mean("new", "RR") == pytest.approx(expected)
    assert suite.rank("new", "RR") == 1
    assert suite.rank("bm25", "RR") == suite.rank("same", "RR") == 2.5


def test_means_are_tested_by_the_stratified_t_test(suite):
    strata = [values(name, "new") - values(name, "bm25") for name in RANKS]
    errors = np.array([of.var(ddof=1) / len(of) for of in strata])
    freedom = errors.sum() ** 2 / sum(e**2 / (len(of) - 1) for e, of in zip(errors, strata, strict=True))
    mean, error = np.mean([of.mean() for of in strata]), math.sqrt(errors.sum()) / 2
    one = suite.comparison("new", "bm25", "RR")
    assert (one.difference, one.t, one.freedom) == pytest.approx((mean, mean / error, freedom))
    assert one.p == pytest.approx(2 * stats.t.sf(mean / error, freedom))
    assert (one.low, one.high) == pytest.approx(stats.t.interval(0.95, freedom, mean, error))
    assert one.corrected == pytest.approx(2 * one.p)  # Holm, of two
    assert suite.comparison("same", "bm25", "RR").p == 1


def test_over_one_collection_the_test_is_the_paired_t_test():
    alone = SuiteReport({"large": report("large")})
    one, own = alone.comparison("new", "bm25", "RR"), alone.reports["large"].comparison("new", "bm25", "RR")
    assert (one.t, one.p, one.corrected) == pytest.approx((own.statistic, own.p, own.corrected))
    assert one.freedom == pytest.approx(7)
    assert (one.better, one.worse) == (int(own.significant), 0)


def test_the_interval_of_a_mean_covers_as_often_as_it_says():
    generator = np.random.default_rng(3)
    from fontes.comparison.suite import _stratified

    def covers():
        strata = [generator.beta(2, 3, size=n) for n in (12, 30, 80)]
        low, high = _stratified(strata, 0.05)[1:3]
        return low <= 0.4 <= high

    assert 0.93 < np.mean([covers() for _ in range(2000)]) < 0.97


def test_a_collection_of_one_topic_leaves_the_test_open():
    one = compare_runs({"a": {"1": {"x": 1.0}}, "b": {"1": {"y": 2.0, "x": 1.0}}}, {"1": {"x": 1}}, "RR", baseline="b")
    suite = SuiteReport({"one": one})
    assert math.isnan(suite.comparison("a", "b", "RR").p)
    assert json.loads(suite.to_json())["comparisons"][0]["p"] is None
    assert "–" in str(suite)


def test_published_figures_stand_beside_and_are_not_tested(suite):
    figures = Published("Theirs", parse("RR"), {"small": 0.5}, "a paper")
    shown = SuiteReport(suite.reports, (figures,))
    line = next(line for line in str(shown).splitlines() if "Theirs" in line)
    assert line.split()[:4] == ["Theirs", "(published)", "0.5000", "–"]
    assert "Theirs (published): a paper" in str(shown)
    assert shown.comparisons == suite.comparisons
    rows = [row for row in json.loads(shown.to_json())["rows"] if row["system"] == "Theirs"]
    assert [(row["collection"], row["mean"], row["source"]) for row in rows] == [("small", 0.5, "a paper")]


def test_all_forms_have_the_mean(suite, tmp_path):
    mean = f"{suite.mean('new', 'RR'):.4f}"
    for form in ("md", "tex", "html"):
        suite.save(tmp_path / f"suite.{form}")
        assert mean in (tmp_path / f"suite.{form}").read_text()
    rows = list(csv.DictReader(io.StringIO(suite.to_csv())))
    assert [row["collection"] for row in rows if row["system"] == "new"] == ["small", "large", ""]
    assert float(rows[-1]["mean"]) == suite.mean("same", "RR")
    assert list(suite.to_pandas()["rank"].dropna()) == [2.5, 1, 2.5]
