"""Cohen's kappa, beside scikit-learn's and the example of the paper."""

import numpy as np
import pytest

from fontes.comparison.statistics import kappa


@pytest.mark.parametrize("weights", ["", "linear", "quadratic"])
@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_scikit_learns(weights: str, seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(seed)
    first = random.integers(0, 4, 60)
    second = np.where(random.random(60) < 0.5, first, random.integers(0, 4, 60))
    table = metrics.confusion_matrix(first, second, labels=range(4))
    assert kappa(table, weights) == pytest.approx(metrics.cohen_kappa_score(first, second, weights=weights or None))


def test_kappa_of_cohens_own_table() -> None:
    table = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]  # Cohen 1968, table 1, times its 200 cases: kappa 0.492
    assert kappa(table) == pytest.approx((140 / 200 - 0.41) / (1 - 0.41))


def test_kappa_cannot_be_told_where_chance_always_agrees() -> None:
    assert np.isnan(kappa([[5, 0], [0, 0]]))
    assert np.isnan(kappa([[0, 0], [0, 0]]))
    assert kappa([[0, 5], [0, 0]]) == 0.0
