"""The statistics against scipy, statsmodels and published definitions, and where they have nothing to say."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.multicomp import pairwise_tukeyhsd
from statsmodels.stats.multitest import multipletests

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


@pytest.mark.parametrize("topics", [2, 7, 30, 300])
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


@pytest.mark.parametrize("topics", [13, 60, 61, 400])
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


def test_fishers_test_of_real_runs_agrees_with_the_t_test_within_the_error_of_its_permutations(real: np.ndarray) -> None:
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
    monkeypatch.setattr(statistics, "BLOCK", 4000)
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


@pytest.mark.parametrize(("ours", "theirs"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")])
def test_corrections_are_those_of_statsmodels(ours: str, theirs: str) -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.9, 0.04, 1.0])
    np.testing.assert_allclose(statistics.corrected(p, ours), multipletests(p, method=theirs)[1])


def test_a_correction_leaves_what_is_no_number_and_does_not_count_it() -> None:
    p = np.array([0.01, np.nan, 0.02])
    for method in ("holm", "bonferroni", "bh"):
        corrected = statistics.corrected(p, method)
        assert np.isnan(corrected[1])
        np.testing.assert_allclose(corrected[[0, 2]], statistics.corrected(p[[0, 2]], method))
    assert np.array_equal(statistics.corrected(p, "none"), p, equal_nan=True)
    with pytest.raises(ft.core.ParameterError, match="unknown correction 'sidak'; there are holm, bonferroni, bh and none"):
        statistics.corrected(p, "sidak")


def test_the_bootstrap_interval_is_that_of_scipy_within_the_error_of_its_samples(real: np.ndarray) -> None:
    differences = real[:, 1:] - real[:, :1]
    low, high = statistics.bootstrap(differences, 0.95, 20_000)
    for column, a, b in zip(differences.T, low, high, strict=True):
        theirs = scipy.stats.bootstrap((column,), np.mean, n_resamples=20_000, method="BCa", rng=5).confidence_interval
        width = b - a
        assert a == pytest.approx(theirs.low, abs=0.03 * width)
        assert b == pytest.approx(theirs.high, abs=0.03 * width)


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


@pytest.mark.parametrize("test", [statistics.t_test, statistics.wilcoxon, statistics.fisher])
@pytest.mark.parametrize("topics", [2, 20, 100])
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


def test_a_difference_that_is_the_same_in_all_topics_is_significant_and_has_no_effect_size() -> None:
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
