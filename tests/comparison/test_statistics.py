"""The statistics against scipy, statsmodels and published definitions, and where they have nothing to say."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.multicomp import pairwise_tukeyhsd
from statsmodels.stats.multitest import multipletests
from support.each import each

import fontes as ft
from fontes.comparison import statistics


def matrix(topics: int, columns: int = 3, seed: int = 1) -> np.ndarray:
    """Differences as measures give them: some of them 0, some the same."""
    generator = np.random.default_rng(seed)
    drawn = generator.normal(0.05, 0.3, (topics, columns)).clip(-1, 1)
    drawn[generator.random((topics, columns)) < 0.2] = 0
    return np.round(drawn, 1) if topics % 2 else drawn


@pytest.fixture(scope="module")
def real(shared: Path) -> np.ndarray:
    """AP of the organisers' five document runs of CAsT 2021: a row a topic, a column a run."""
    folder = shared / "cast2021"
    qrels = ft.read_qrels(folder / "qrels" / "test_docs.tsv")
    runs = sorted((folder / "baselines").glob("*.run"))
    return np.stack([ft.evaluate(run, qrels, [ft.AP]).array(ft.AP) for run in runs], axis=1)


@each("topics", [2, 7, 30, 300])
def test_the_t_test_is_that_of_scipy(topics: int) -> None:
    differences = matrix(topics)
    t, p = statistics.t_test(differences)
    theirs = scipy.stats.ttest_1samp(differences, 0)
    np.testing.assert_allclose(t, theirs.statistic, rtol=1e-12)
    np.testing.assert_allclose(p, theirs.pvalue, rtol=1e-10)


def test_the_t_test_of_real_runs_is_that_of_scipy(real: np.ndarray) -> None:
    _, p = statistics.t_test(real[:, 1:] - real[:, :1])
    theirs = [scipy.stats.ttest_rel(real[:, i], real[:, 0]).pvalue for i in range(1, real.shape[1])]
    np.testing.assert_allclose(p, theirs, rtol=1e-9)


@each("topics", [13, 60, 61, 400])
def test_wilcoxon_is_that_of_scipy_in_its_normal_form_and_where_it_counts_out(topics: int) -> None:
    differences = matrix(topics)
    ours = statistics.wilcoxon(differences)
    for column, w, p in zip(differences.T, *ours, strict=True):
        rounded = np.round(column, 12)
        left = rounded[rounded != 0]
        if len(left) <= 13:
            theirs = scipy.stats.wilcoxon(left, method=scipy.stats.PermutationMethod(n_resamples=1 << 14))
        elif len(left) <= statistics.EXACT_WILCOXON and len(set(np.abs(left))) < len(left):
            continue  # with ties and this many topics scipy does not count out
        else:
            theirs = scipy.stats.wilcoxon(left, method="exact" if len(left) <= statistics.EXACT_WILCOXON else "asymptotic")
        assert w == theirs.statistic
        assert p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_wilcoxon_of_real_runs_is_that_of_scipy(real: np.ndarray) -> None:
    differences = np.round(real[:, 1:] - real[:, :1], 12)
    _, p = statistics.wilcoxon(differences)
    np.testing.assert_allclose(
        p, [scipy.stats.wilcoxon(d[d != 0], method="asymptotic").pvalue for d in differences.T], rtol=1e-9
    )


def test_fishers_test_tries_all_signs_where_there_are_few_topics() -> None:
    differences = matrix(9)
    _, p = statistics.fisher(differences)
    for column, ours in zip(differences.T, p, strict=True):
        theirs = scipy.stats.permutation_test((column,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert ours == pytest.approx(theirs.pvalue)


def test_fishers_test_of_real_runs_agrees_with_the_t_test(real: np.ndarray) -> None:
    differences = real[:, 1:] - real[:, :1]
    _, p = statistics.fisher(differences)
    _, t = statistics.t_test(differences)
    np.testing.assert_allclose(p, t, atol=0.015)
    assert p.min() >= 1 / 100_001


def test_fishers_test_gives_the_same_for_the_same_seed_and_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = matrix(40)
    first = statistics.fisher(differences, 5000, seed=3)[1]
    assert np.array_equal(first, statistics.fisher(differences, 5000, seed=3)[1])
    assert not np.array_equal(first, statistics.fisher(differences, 5000, seed=4)[1])
    monkeypatch.setattr(statistics, "BLOCK_SIZE", 4000)
    assert np.array_equal(first, statistics.fisher(differences, 5000, seed=3)[1])


def test_tukey_without_blocks_is_that_of_scipy_and_statsmodels(real: np.ndarray) -> None:
    pairs = [(i, j) for i in range(5) for j in range(i)]
    _, p = statistics.tukey(real, pairs, blocks=False)
    theirs = scipy.stats.tukey_hsd(*real.T).pvalue
    np.testing.assert_allclose(p, [theirs[i, j] for i, j in pairs], atol=1e-9)
    groups = np.tile(np.arange(5), len(real))
    from_statsmodels = pairwise_tukeyhsd(real.ravel(), groups)
    table = dict(
        zip(zip(*(np.array(from_statsmodels._multicomp.pairindices)), strict=True), from_statsmodels.pvalues, strict=True)
    )
    np.testing.assert_allclose(p, [table[j, i] for i, j in pairs], atol=1e-4)


def test_tukey_takes_the_variance_that_statsmodels_leaves_after_systems_and_topics(real: np.ndarray) -> None:
    import pandas as pd
    from statsmodels.formula.api import ols

    n, m = real.shape
    frame = pd.DataFrame({"value": real.ravel(), "system": np.tile(np.arange(m), n), "topic": np.repeat(np.arange(n), m)})
    model = ols("value ~ C(system) + C(topic)", frame).fit()
    assert model.df_resid == (m - 1) * (n - 1)
    q, p = statistics.tukey(real, [(1, 0), (4, 2)])
    gaps = np.abs(real.mean(axis=0)[[1, 4]] - real.mean(axis=0)[[0, 2]])
    np.testing.assert_allclose(q, gaps / np.sqrt(model.mse_resid / n), rtol=1e-8)
    np.testing.assert_allclose(p, scipy.stats.studentized_range.sf(q, m, model.df_resid), rtol=1e-8)


def test_tukey_of_two_systems_is_the_t_test(real: np.ndarray) -> None:
    _, p = statistics.tukey(real[:, :2], [(1, 0)])
    _, t = statistics.t_test(real[:, 1:2] - real[:, :1])
    np.testing.assert_allclose(p, t, rtol=1e-6)


@each(("ours", "theirs"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")])
@each("number", [1, 2, 7, 45])
def test_corrections_are_those_of_statsmodels(ours: str, theirs: str, number: int) -> None:
    generator = np.random.default_rng(number)
    for p in (generator.random(number), generator.random(number) ** 4, np.round(generator.random(number) ** 3, 2)):
        np.testing.assert_allclose(statistics.corrected(p, ours), multipletests(p, method=theirs)[1], rtol=1e-12)


def test_a_correction_leaves_what_is_no_number_and_does_not_count_it() -> None:
    p = np.array([0.01, np.nan, 0.02])
    for method in ("holm", "bonferroni", "bh"):
        corrected = statistics.corrected(p, method)
        assert np.isnan(corrected[1])
        np.testing.assert_allclose(corrected[[0, 2]], statistics.corrected(p[[0, 2]], method))
    assert np.array_equal(statistics.corrected(p, "none"), p, equal_nan=True)


def test_the_bootstrap_interval_is_that_of_scipy_within_the_error_of_its_samples(real: np.ndarray) -> None:
    differences = real[:, 1:] - real[:, :1]
    low, high = statistics.bootstrap(differences, 0.95, 20_000)
    for column, a, b in zip(differences.T, low, high, strict=True):
        theirs = scipy.stats.bootstrap((column,), np.mean, n_resamples=20_000, method="BCa", rng=5).confidence_interval
        width = b - a
        assert a == pytest.approx(theirs.low, abs=0.03 * width)
        assert b == pytest.approx(theirs.high, abs=0.03 * width)


def skewed(topics: int, seed: int) -> np.ndarray:
    """Values as from few topics that are very good: most near 0, a long tail to the right."""
    return np.random.default_rng(seed).exponential(0.1, topics) ** 2


@each(("topics", "seed", "sign"), [(12, 1, 1), (12, 1, -1), (25, 2, 1), (25, 2, -1)])
def test_the_interval_of_skewed_values_is_the_bca_of_scipy_on_the_same_samples(topics: int, seed: int, sign: int) -> None:
    values = sign * skewed(topics, seed)
    rng = np.random.default_rng(9)
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=rng)
    means = theirs.bootstrap_distribution
    low, high = statistics.interval(values[:, None], means[:, None], 0.95)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert low[0] == pytest.approx(theirs.confidence_interval.low, abs=2e-3 * width)
    assert high[0] == pytest.approx(theirs.confidence_interval.high, abs=2e-3 * width)
    # which neither the percentiles are, nor BC without acceleration, nor acceleration without the bias
    percentiles = np.quantile(means, [0.025, 0.975])
    assert max(np.abs(percentiles - [low[0], high[0]])) > 0.05 * width


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_interval_is_efrons_formula_in_plain_numbers(confidence: float) -> None:
    values = skewed(15, 3)
    means = statistics.resampled(values[:, None], 5000, seed=1)[:, 0]
    normal = scipy.stats.norm
    jackknife = np.array([np.delete(values, i).mean() for i in range(len(values))])
    away = jackknife.mean() - jackknife
    a = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    z0 = normal.ppf((means < values.mean()).mean())
    assert abs(a) > 0.05
    assert abs(z0) > 0.03
    ends = [normal.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))) for z in normal.ppf([(1 - confidence) / 2, (1 + confidence) / 2])]
    low, high = statistics.interval(values[:, None], means[:, None], confidence)
    assert [low[0], high[0]] == pytest.approx(np.quantile(means, ends), rel=1e-9)


def test_hedges_g_has_the_sign_of_the_difference_and_the_size_of_its_formula() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.normal(0.5, 0.1, (30, 1)), generator.normal(0.3, 0.2, (30, 1))
    expected = (1 - 3 / (4 * 29 - 1)) * (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert expected > 0
    assert statistics.hedges_g(a, b)[0] == pytest.approx(expected)
    assert statistics.hedges_g(b, a)[0] == pytest.approx(-expected)


def test_the_effect_sizes_of_a_report_have_the_sign_of_its_difference() -> None:
    names = ["one", "two"]
    qrels = {str(i): {"good": 1, "bad": 0} for i in range(40)}
    runs = {
        "one": {t: {"good": 2.0, "bad": 1.0 + 2 * (int(t) % 5 == 0)} for t in qrels},
        "two": {t: {"good": 2.0, "bad": 1.0 + 2 * (int(t) % 2 == 0)} for t in qrels},
    }
    report = ft.compare(runs, None, qrels, "RR", baseline="two", cache=False)
    one = report.comparison(*names, "RR")
    values = report.values[ft.RR]
    differences = values[:, 0] - values[:, 1]
    assert one.difference == pytest.approx(differences.mean())
    assert one.difference > 0
    assert one.d_z == pytest.approx(differences.mean() / differences.std(ddof=1))
    spread = np.sqrt((values[:, 0].var(ddof=1) + values[:, 1].var(ddof=1)) / 2)
    assert one.hedges_g == pytest.approx((1 - 3 / (4 * (len(values) - 1) - 1)) * differences.mean() / spread)
    assert one.statistic == pytest.approx(scipy.stats.ttest_rel(values[:, 0], values[:, 1]).statistic)


def test_the_bootstrap_gives_the_same_for_the_same_seed() -> None:
    values = matrix(50)
    assert np.array_equal(statistics.bootstrap(values, seed=1), statistics.bootstrap(values, seed=1))
    assert not np.array_equal(statistics.bootstrap(values, seed=1), statistics.bootstrap(values, seed=2))


def test_effect_sizes_follow_their_formulas() -> None:
    a, b = np.array([[0.2], [0.5], [0.9], [0.4]]), np.array([[0.1], [0.5], [0.6], [0.2]])
    # differences .1, 0, .3, .2: mean .15, sd .12910; sd of a .29439, of b .23805
    assert statistics.d_z(a - b)[0] == pytest.approx(0.15 / 0.1290994449)
    spread = np.sqrt((0.2943920289**2 + 0.2380476143**2) / 2)
    assert statistics.hedges_g(a, b)[0] == pytest.approx((1 - 3 / 11) * 0.15 / spread)


@each("test", [statistics.t_test, statistics.wilcoxon, statistics.fisher])
@each("topics", [2, 20, 100])
def test_equal_systems_have_p_1_without_a_warning(test: object, topics: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, p = test(np.zeros((topics, 2)))  # type: ignore[operator]
        assert p.tolist() == [1, 1]
        assert statistics.d_z(np.zeros((topics, 1))).tolist() == [0]
        assert statistics.tukey(np.ones((topics, 3)), [(1, 0)])[1].tolist() == [1]


def test_one_topic_tells_nothing_about_spread() -> None:
    one = np.array([[0.5, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(statistics.t_test(one)[1]).all()
        assert statistics.wilcoxon(one)[1].tolist() == [1, 1]
        assert statistics.fisher(one)[1].tolist() == [1, 1]
        assert np.isnan(statistics.bootstrap(one)).all()
        assert np.isnan(statistics.tukey(one, [(1, 0)])[1]).all()
        assert np.isnan(statistics.d_z(one)).all()
        assert np.isnan(statistics.hedges_g(one, one)).all()


def test_a_constant_difference_is_significant_and_has_no_effect_size() -> None:
    same = np.full((10, 1), 0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert statistics.t_test(same)[1][0] == 0
        assert statistics.fisher(same)[1][0] == 2 / 1024
        assert np.isnan(statistics.d_z(same)[0])
        assert [end[0] for end in statistics.bootstrap(same)] == [0.25, 0.25]
        assert statistics.tukey(np.array([[0.1, 0.2]] * 4), [(1, 0)])[1][0] == 0


def test_differences_that_only_rounding_tells_apart_count_as_ties() -> None:
    differences = np.array([0.3 - 0.2, 0.2 - 0.1, 0.1, -0.1, 0.1 + 0.2 - 0.3])[:, None]
    assert statistics.wilcoxon(differences) == (2.5, 0.625)
