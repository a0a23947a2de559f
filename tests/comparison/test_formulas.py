"""The statistics on small random data, against plain numpy, scipy and statsmodels; none of it needs a collection."""

import itertools
import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.multitest import multipletests
from support.each import each

import fontes as ft
from fontes.comparison import statistics
from fontes.comparison.report import SystemRun, compare_runs
from fontes.comparison.testing import Testing

Floats = np.ndarray[Any, np.dtype[np.float64]]


def skewed(topics: int, columns: int = 4, seed: int = 7) -> Floats:
    """Columns with long tails, to the right and to the left."""
    drawn = np.random.default_rng(seed).lognormal(0, 1.2, (topics, columns))
    drawn[:, 1::2] *= -1
    return drawn + np.array([0.0, 0.5, -2.0, 3.0])[:columns]


@each("topics", [2, 5, 23, 60])
@each("confidence", [0.95, 0.8])
def test_bca_of_skewed_values_is_that_of_scipy_on_the_same_samples(topics: int, confidence: float) -> None:
    values = skewed(topics)
    means = statistics.resampled(values, 2_000, seed=3)
    low, high = statistics.interval(values, means, confidence)
    moved = 0
    for column, drawn, a, b in zip(values.T, means.T, low, high, strict=True):
        distribution = SimpleNamespace(bootstrap_distribution=drawn)
        how = {"n_resamples": 0, "bootstrap_result": distribution, "confidence_level": confidence}
        theirs = scipy.stats.bootstrap((column,), np.mean, method="BCa", **how).confidence_interval
        assert (a, b) == pytest.approx((theirs.low, theirs.high), rel=1e-9)
        plain = scipy.stats.bootstrap((column,), np.mean, method="percentile", **how).confidence_interval
        moved += abs(plain.low - a) > 1e-3 * (b - a)
    assert moved or topics == 2  # the correction matters here


def test_bias_and_acceleration_shift_the_interval_as_efron_says() -> None:
    values = skewed(30, 1)
    means = statistics.resampled(values, 5_000, seed=1)[:, 0]
    x, normal = values[:, 0], scipy.stats.norm
    jackknife = np.array([np.delete(x, i).mean() for i in range(30)])
    left = jackknife.mean() - jackknife
    acceleration = (left**3).sum() / (6 * (left**2).sum() ** 1.5)
    bias = normal.ppf((means < x.mean()).mean())
    z = normal.ppf([0.05, 0.95])
    expected = np.quantile(means, normal.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))))
    assert abs(bias) > 0.02
    assert acceleration > 0.02
    ends = statistics.interval(values, means[:, None], 0.9)
    assert [end[0] for end in ends] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("whole", [[-3, -2, -1, 1, 2, 3], [7, 1, 1, -9], [-5, 6, 2, -3, 11, -11, 0]])
def test_sample_means_that_equal_the_mean_but_for_rounding_count_half(whole: list[int]) -> None:
    exact = np.array(whole, dtype=float)[:, None]
    assert exact.mean() == 0  # so many samples have the very mean of the values
    ends = statistics.bootstrap(exact, resamples=999)
    for factor in (0.1, 0.7, 1e-3):
        rounded = statistics.bootstrap(factor * exact, resamples=999)
        assert [end[0] for end in rounded] == pytest.approx([factor * end[0] for end in ends], rel=1e-9)


def test_samples_are_means_of_topics_drawn_with_replacement_by_numpys_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    values = skewed(11, 3)
    drawn = np.random.default_rng(5).integers(0, 11, (700, 11))
    expected = values[drawn].mean(axis=1)
    for block, part in ((1 << 21, 1 << 17), (11 * 64, 11 * 7), (5, 5)):
        monkeypatch.setattr(statistics, "BLOCK_SIZE", block)
        monkeypatch.setattr(statistics, "DRAW_SIZE", part)
        np.testing.assert_allclose(statistics.resampled(values, 700, seed=5), expected, rtol=1e-12)


def test_bootstrap_is_the_interval_of_ten_thousand_samples_at_95_percent() -> None:
    values = skewed(12)
    expected = statistics.interval(values, statistics.resampled(values, 10_000, 0), 0.95)
    np.testing.assert_array_equal(statistics.bootstrap(values), expected)


def test_an_interval_of_equal_values_is_their_mean_and_of_one_topic_nothing() -> None:
    values = np.column_stack([np.full(6, 0.3), np.arange(6) / 7])
    low, high = statistics.bootstrap(values, resamples=500)
    assert (low[0], high[0]) == pytest.approx((0.3, 0.3))
    assert low[1] < values[:, 1].mean() < high[1]
    assert np.isnan(statistics.interval(values[:1], values[:1])).all()


@each("topics", [2, 3, 8, 40])
def test_effect_sizes_of_random_values_have_the_sign_and_size_of_their_formulas(topics: int) -> None:
    generator = np.random.default_rng(topics)
    a, b = generator.random((topics, 5)), generator.random((topics, 5)) * 0.5 + 0.2
    differences = a - b
    mean = differences.sum(axis=0) / topics
    np.testing.assert_allclose(
        statistics.d_z(differences), mean / np.sqrt(((differences - mean) ** 2).sum(axis=0) / (topics - 1)), rtol=1e-12
    )
    pooled = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 2)
    small_sample = 1 - 3 / (4 * (topics - 1) - 1)
    np.testing.assert_allclose(statistics.hedges_g(a, b), small_sample * mean / pooled, rtol=1e-12)
    np.testing.assert_allclose(statistics.hedges_g(b, a), -statistics.hedges_g(a, b), rtol=1e-12)
    better = statistics.hedges_g(a + 1, a)
    assert (better >= 0).all()


def test_effect_sizes_without_spread_are_0_for_equal_values_and_nothing_else() -> None:
    flat = np.full((4, 1), 0.5)
    assert statistics.hedges_g(flat, flat).tolist() == [0]
    assert np.isnan(statistics.hedges_g(flat, flat - 0.1)).all()
    assert statistics.deviation(np.array([[0.1], [0.3]])) == pytest.approx([math.sqrt(0.02)])
    assert statistics.deviation(np.array([[0.1 + 0.2, 1.0], [0.3, 3.0]])) == pytest.approx([0, math.sqrt(2)], abs=0)
    assert np.isnan(statistics.deviation(np.array([[0.1]]))).all()


def signed_ranks(column: Floats) -> tuple[float, float]:
    """Wilcoxon's test by counting out sums of ranks, whatever the ties."""
    left = column[column != 0]
    ranks = scipy.stats.rankdata(np.abs(left))
    above = ranks[left > 0].sum()
    w = min(above, ranks.sum() - above)
    ways = Counter({0.0: 1})
    for rank in ranks:
        ways = ways + Counter({total + rank: count for total, count in ways.items()})
    return w, min(1.0, 2 * sum(count for total, count in ways.items() if total <= w) / 2 ** len(left))


@each("topics", [1, 2, 3, 9, 25, 50])
def test_wilcoxon_counts_out_the_sums_of_ranks_with_ties_and_zeros(topics: int) -> None:
    generator = np.random.default_rng(topics)
    columns = np.column_stack([np.round(generator.normal(shift, 1, topics), digits) for shift, digits in ((0.3, 1), (-0.6, 6))])
    columns[: topics // 5, 0] = 0
    w, p = statistics.wilcoxon(columns)
    expected = [signed_ranks(column) for column in columns.T]
    assert w.tolist() == [e[0] for e in expected]
    assert p == pytest.approx([e[1] for e in expected], rel=1e-9)


@pytest.mark.parametrize("topics", [51, 52, 120])
def test_wilcoxon_beyond_fifty_differences_is_normal_with_ties_corrected(topics: int) -> None:
    generator = np.random.default_rng(topics)
    columns = np.column_stack([np.round(generator.normal(shift, 1, topics), digits) for shift, digits in ((0.3, 1), (-0.2, 6))])
    columns[columns == 0] = 0.1
    _, p = statistics.wilcoxon(columns)
    for column, ours in zip(columns.T, p, strict=True):
        assert ours == pytest.approx(scipy.stats.wilcoxon(column, method="asymptotic", correction=False).pvalue, rel=1e-9)
    assert statistics.wilcoxon(np.tile([[1.0], [-1.0]], (topics // 2, 1)))[1] == [1]


@each("topics", [1, 4, 11, 16])
def test_fishers_test_of_few_topics_is_the_share_of_signs_that_reach_the_mean(topics: int) -> None:
    columns = np.round(np.random.default_rng(topics).normal(0.2, 0.4, (topics, 3)), 2)
    mean, p = statistics.fisher(columns)
    np.testing.assert_allclose(mean, columns.mean(axis=0), rtol=1e-12)
    signs = np.array(list(itertools.product((-1, 1), repeat=topics)))
    reached = np.round(np.abs(signs @ columns), 8) >= np.round(np.abs(columns.sum(axis=0)), 8)
    np.testing.assert_allclose(p, reached.mean(axis=0), rtol=1e-12)


def test_fishers_test_counts_the_observed_difference_as_a_permutation() -> None:
    assert statistics.fisher(np.ones((17, 1)) + np.arange(17)[:, None], 500)[1] == [pytest.approx(1 / 501)]
    differences = np.random.default_rng(2).normal(0.1, 0.5, (40, 3))
    theirs = [
        scipy.stats.permutation_test((c,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
        for c in differences.T
    ]
    np.testing.assert_allclose(statistics.fisher(differences, 20_000)[1], theirs, atol=0.015)
    assert (statistics.fisher(differences, 99)[1] * 100) % 1 == pytest.approx(0, abs=1e-9)


def test_fishers_signs_are_the_bits_of_numpys_generator() -> None:
    differences = np.random.default_rng(4).normal(0.15, 0.5, (19, 2))
    packed = np.frombuffer(np.random.default_rng(9).bytes(300 * 3), dtype=np.uint8).reshape(300, 3)
    signs = 2.0 * np.unpackbits(packed, axis=1)[:, :19] - 1
    reached = (np.abs(signs @ differences) >= np.abs(differences.sum(axis=0))).sum(axis=0)
    np.testing.assert_allclose(statistics.fisher(differences, 300, seed=9)[1], (reached + 1) / 301, rtol=1e-12)


@pytest.mark.parametrize(("topics", "systems"), [(2, 3), (12, 2), (30, 5)])
def test_tukey_is_the_studentized_range_of_what_systems_and_topics_leave(topics: int, systems: int) -> None:
    generator = np.random.default_rng(topics)
    values = generator.random((topics, 1)) + generator.normal(0, 0.2, (topics, systems)) + np.arange(systems) / 10
    pairs = [(0, systems - 1), *((i, j) for i in range(systems) for j in range(i))]
    means, grand = values.mean(axis=0), values.mean()
    left = values - means - values.mean(axis=1, keepdims=True) + grand
    variance = (left**2).sum() / ((systems - 1) * (topics - 1))
    expected = np.array([abs(means[i] - means[j]) / math.sqrt(variance / topics) for i, j in pairs])
    q, p = statistics.tukey(values, pairs)
    np.testing.assert_allclose(q, expected, rtol=1e-9)
    survival = scipy.stats.studentized_range.sf(expected, systems, (systems - 1) * (topics - 1))
    np.testing.assert_allclose(p, survival, rtol=1e-7)
    apart = scipy.stats.tukey_hsd(*values.T)
    q, p = statistics.tukey(values, pairs, blocks=False)
    np.testing.assert_allclose(p, [apart.pvalue[i, j] for i, j in pairs], atol=1e-9)
    within = values.var(axis=0, ddof=1).mean()
    np.testing.assert_allclose(q, [abs(means[i] - means[j]) / math.sqrt(within / topics) for i, j in pairs], rtol=1e-9)


def test_tukey_has_nothing_to_say_of_one_topic_one_system_or_no_pair() -> None:
    assert [len(side) for side in statistics.tukey(np.ones((5, 3)), [])] == [0, 0]
    assert np.isnan(statistics.tukey(np.ones((1, 3)), [(0, 1), (1, 2)])).all()
    q, p = statistics.tukey(np.array([[0.1, 0.2, 0.1]] * 4), [(0, 1), (0, 2)])
    assert q.tolist() == [np.inf, 0]
    assert p.tolist() == [0, 1]


@each(("ours", "theirs"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")])
@each("seed", range(4))
def test_corrections_of_random_families_are_those_of_statsmodels(ours: str, theirs: str, seed: int) -> None:
    p = np.round(np.random.default_rng(seed).beta(0.4, 2, 9), 3)
    np.testing.assert_allclose(statistics.corrected(p, ours), multipletests(p, method=theirs)[1], rtol=1e-12)
    with_gaps = np.insert(p, [0, 4, 9], np.nan)
    np.testing.assert_allclose(statistics.corrected(with_gaps, ours)[~np.isnan(with_gaps)], multipletests(p, method=theirs)[1])
    assert np.isnan(statistics.corrected(np.array([np.nan]), ours)).all()


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, dict[str, float]]]:
    """Four systems over fourteen topics, of which the last system leaves two out."""
    generator = np.random.default_rng(11)
    docs = [f"d{i}" for i in range(12)]
    made = {}
    for system, skill in (("base", 0.5), ("good", 2.0), ("poor", 0.0), ("part", 1.0)):
        scores = generator.normal(0, 1, (14, 12)) + skill * (np.arange(12) < 4)
        rows = range(2 if system == "part" else 0, 14)
        made[system] = {f"q{t:02}": dict(zip(docs, scores[t].tolist(), strict=True)) for t in rows}
    return made


QRELS = {f"q{t:02}": {f"d{i}": 1 + (i == 0) for i in range(4)} for t in range(14)}
MEASURES = ["nDCG@5", "RR", "P@3"]


def values_of(runs: Any) -> dict[str, Floats]:
    """For each measure its values, a row a topic and a column a system."""
    return {m: np.stack([ft.evaluate(run, QRELS, m).array(m) for run in runs.values()], axis=1) for m in MEASURES}


@each("baseline", [None, "base", "poor"])
@each(("test", "correction"), [("t", "holm"), ("t", "bh"), ("wilcoxon", "bonferroni"), ("fisher", "none")])
def test_each_comparison_has_the_figures_of_its_pair_corrected_within_its_measure(
    runs: Any, baseline: str | None, test: str, correction: str
) -> None:
    names = list(runs)
    pairs = [(i, j) for i in range(4) for j in range(i)] if baseline is None else []
    pairs = pairs or [(i, names.index(str(baseline))) for i in range(4) if names[i] != baseline]
    testing = Testing(test=test, correction=correction, alpha=0.1, seed=6)
    report = compare_runs(runs, QRELS, MEASURES, baseline=baseline, testing=testing)
    rows = iter(report.comparisons)
    for measure, values in values_of(runs).items():
        found = [next(rows) for _ in pairs]
        differences = np.round(np.stack([values[:, i] - values[:, j] for i, j in pairs], axis=1), 12)
        p = {"t": statistics.t_test, "wilcoxon": statistics.wilcoxon}.get(test, lambda d: statistics.fisher(d, 100_000, 6))(
            differences
        )[1]
        method = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh"}.get(correction)
        expected = multipletests(p, method=method)[1] if method else p
        ends = np.transpose(statistics.bootstrap(differences, 0.9, 10_000, seed=6))
        for (i, j), column, c, raw, raised, end in zip(pairs, differences.T, found, p, expected, ends, strict=True):
            assert (str(c.measure), c.system, c.against) == (measure, names[i], names[j])
            assert c.difference == pytest.approx(values[:, i].mean() - values[:, j].mean())
            assert (c.p, c.corrected) == pytest.approx((raw, raised))
            assert c.significant == (raised <= 0.1)
            assert c.d_z == pytest.approx(column.mean() / column.std(ddof=1))
            assert c.hedges_g == pytest.approx(statistics.hedges_g(values[:, [i]], values[:, [j]])[0])
            assert (c.wins, c.ties, c.losses) == ((column > 0).sum(), (column == 0).sum(), (column < 0).sum())
            assert (c.low, c.high) == pytest.approx(end, abs=1e-9)
    assert next(rows, None) is None
    assert any(c.significant for c in report.comparisons)
    assert not all(c.significant for c in report.comparisons)


def test_the_interval_of_each_mean_and_tukeys_test_are_those_of_the_values(runs: Any) -> None:
    report = compare_runs(runs, QRELS, MEASURES, testing=Testing(test="tukey", alpha=0.2, seed=2))
    pairs = [(i, j) for i in range(4) for j in range(i)]
    rows = iter(report.comparisons)
    for measure, values in values_of(runs).items():
        q, p = statistics.tukey(values, pairs)
        found = [next(rows) for _ in pairs]
        assert [c.statistic for c in found] == pytest.approx(q)
        assert [c.p for c in found] == [c.corrected for c in found] == pytest.approx(p)
        low, high = statistics.bootstrap(values, 0.8, 10_000, seed=2)
        for place, name in enumerate(runs):
            assert report.intervals[ft.measures.parse(measure)][name] == pytest.approx((low[place], high[place]))


def test_more_pairs_than_fit_into_a_block_have_the_same_intervals(runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fontes.comparison import testing

    whole = compare_runs(runs, QRELS, MEASURES)
    for columns in (1, 5, 18):
        monkeypatch.setattr(testing, "PAIR_BLOCK_SIZE", columns)
        parts = compare_runs(runs, QRELS, MEASURES).comparisons
        assert [(c.low, c.high) for c in parts] == [(c.low, c.high) for c in whole.comparisons]


def test_a_way_of_testing_says_its_test_and_its_correction() -> None:
    assert str(Testing()) == "paired t-test, Holm over each measure"
    assert str(Testing("wilcoxon", "bh")) == "Wilcoxon's signed rank test, Benjamini-Hochberg over each measure"
    assert str(Testing("fisher", "none")) == "Fisher's randomisation test, no correction"
    assert str(Testing("tukey")) == str(Testing("tukey", "none")) == "Tukey's HSD, topics as blocks"
    applied = [Testing(test, correction).applied_correction for test, correction in (("t", "bh"), ("tukey", "holm"))]
    assert applied == ["bh", "none"]
    assert (Testing(alpha=0.999, seed=0).alpha, Testing(seed=7).seed) == (0.999, 7)


def test_the_best_systems_have_the_highest_mean_unless_documents_are_counted(runs: Any) -> None:
    measures = ["nDCG@5", "NumRet", "NumRel", "NumRelRet", "Judged@5"]
    report = compare_runs({**runs, "again": runs["good"]}, QRELS, measures, testing=Testing(allow_empty=True))
    best = {str(m): report.best(m) for m in report.measures}
    assert best["nDCG@5"] == {"good", "again"}
    assert best["NumRelRet"] == {"base", "good", "poor", "again"}  # all four of each topic; "part" leaves topics out
    means = {name: values_of({name: run})["nDCG@5"].mean() for name, run in runs.items()}
    assert max(means, key=lambda name: means[name]) == "good"
    assert [best[name] for name in ("NumRet", "NumRel", "Judged@5")] == [set(), set(), set()]
    alone = compare_runs({"good": runs["good"]}, QRELS, measures)
    assert [alone.best(m) for m in alone.measures] == [set()] * 5


@each(("documents", "depth"), [(0, 1), (1, 1), (2, 2), (7, 7)])
def test_judged_goes_to_the_end_of_the_longest_ranking_where_a_measure_has_no_cutoff(documents: int, depth: int) -> None:
    run = {"q00": {f"d{i}": 1.0 - i / 10 for i in range(documents)}, "q01": {}}
    measures = ["AP", "nDCG@3", "IPrec@0.1", "NumRet", "Judged@4"]
    report = compare_runs({"a": run, "b": {"q00": {}}}, QRELS, measures, testing=Testing(allow_empty=True))
    assert {str(m): str(j) for m, j in report.judged.items()} == {
        "AP": f"Judged@{depth}",
        "nDCG@3": "Judged@3",
        "IPrec@0.1": f"Judged@{depth}",
    }


def test_markdown_names_the_systems_of_a_test_and_the_terminal_shows_letters(runs: Any) -> None:
    report = compare_runs(runs, QRELS, ["nDCG@5"])
    assert "| measure | system | against | difference |" in report.to_markdown()
    assert "| nDCG@5 | good | base |" in report.to_markdown()
    shown = report._repr_html_()
    assert shown.index("<details>") < shown.index("against")
    assert "b – a" in str(report)
    assert "b – a" not in report.to_markdown() + shown


def test_seconds_stand_beside_the_means_and_not_in_a_paper(runs: Any) -> None:
    timed = {name: SystemRun(ft.Run.of(run), seconds=7.0 if name == "good" else None) for name, run in runs.items()}
    report = compare_runs(timed, QRELS, ["nDCG@5"])
    assert report.systems["good"].seconds == 0.5  # of 14 topics
    for text in (str(report), report.to_markdown(), report._repr_html_()):
        assert "a topic" in text
        assert "0.5 s" in text
    assert "0.5 s" not in report.to_latex()
    assert "a topic" not in str(compare_runs(runs, QRELS, ["nDCG@5"]))
