"""The decision of a gate: by hand, with clusters, and how often it is wrong."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_1samp
from support.each import each

from fontes.gate.decision import Answer, decide, lower_end, p_above, unit_values
from fontes.measures.evaluation import Evaluation
from fontes.measures.names import parse
from fontes.tuning.result import interval

Floats = NDArray[np.float64]


def evaluation(values: Mapping[str, Any]) -> Evaluation:
    count = len(next(iter(values.values())))
    return Evaluation(tuple(map(str, range(count))), {parse(name): np.array(column, float) for name, column in values.items()})


def arms(**differences: Any) -> tuple[Evaluation, Evaluation]:
    """A baseline with 0.5 for each topic, and a candidate with these differences, by name of the measure."""
    names = {"ndcg": "nDCG@10", "rr": "RR@10"}
    columns = {names[name]: np.asarray(column, float) for name, column in differences.items()}
    return evaluation({name: np.full(len(d), 0.5) for name, d in columns.items()}), evaluation(
        {name: 0.5 + d for name, d in columns.items()}
    )


def spread(mean: float, sd: float, n: int, seed: int = 0) -> Floats:
    """Normal differences of exactly this mean and standard deviation."""
    values = np.random.default_rng(seed).normal(size=n)
    return mean + sd * (values - values.mean()) / values.std(ddof=1)


def test_p_is_that_of_a_t_test_with_one_more_topic_as_bad_as_the_worst() -> None:
    d = np.round(spread(-0.004, 0.3, 100), 12)
    row = decide(*arms(ndcg=d), {"nDCG@10": 0.02}).measures[0]
    passes = ttest_1samp([*d, d.min()], -0.02, alternative="greater").pvalue
    loses = ttest_1samp([*d, d.max()], 0, alternative="less").pvalue
    assert min(-d.min(), d.max()) > 0.2
    assert (row.p_pass, row.p_loss) == pytest.approx((passes, loses))
    assert (row.baseline, row.candidate, row.difference) == pytest.approx((0.5, 0.496, -0.004))
    assert row.wins == (d > 0).sum()
    assert row.losses == (d < 0).sum()


@each(("changed", "other"), [(1, -1.0), (20, -1.0), (40, -0.5), (200, -0.1), (400, -0.08)])
def test_the_fewer_topics_changed_the_more_the_other_one_loses(changed: int, other: float) -> None:
    d = np.zeros(400)
    d[:changed] = 0.02
    d[0] = -0.08
    row = decide(*arms(ndcg=d), {"nDCG@10": 0.01}).measures[0]
    assert row.p_pass == pytest.approx(ttest_1samp([*d, other], -0.01, alternative="greater").pvalue)


@each(
    ("mean", "answer", "within"),
    [(0.0, "passes", False), (0.03, "passes", False), (-0.01, "passes", True), (-0.03, "loses", False)],
)
def test_a_candidate_passes_loses_or_loses_within_the_margin(mean: float, answer: str, within: bool) -> None:
    decision = decide(*arms(ndcg=spread(mean, 0.04, 200)), {"nDCG@10": 0.02})
    assert (decision.answer, decision.measures[0].lost_within_margin) == (answer, within)


def test_too_few_topics_are_said_to_be_too_few() -> None:
    assert decide(*arms(ndcg=spread(-0.01, 0.2, 40)), {"nDCG@10": 0.02}).answer is Answer.NOT_ENOUGH


def test_ends_of_the_interval_agree_with_the_answers() -> None:
    for seed in range(40):
        d = spread(-0.02 + 0.001 * seed, 0.06, 60, seed)
        row = decide(*arms(ndcg=d), {"nDCG@10": 0.02}).measures[0]
        assert (row.low >= -0.02) == (row.p_pass <= 0.05)
        assert (row.high <= 0) == (row.p_loss <= 0.05)
        assert row.low < row.difference < row.high


def test_without_a_changed_topic_a_margin_of_a_hundredth_needs_265_topics() -> None:
    margins = {"nDCG@10": 0.01}
    answers = {n: decide(*arms(ndcg=np.zeros(n)), margins).answer for n in (20, 264, 265)}
    assert answers == {20: "not enough topics", 264: "not enough topics", 265: "passes"}
    assert decide(*arms(ndcg=np.zeros(20)), margins, allow_equal=True).answer == "passes"


def test_one_measure_that_loses_decides_after_holms_correction() -> None:
    lost, equal = spread(-0.03, 0.1, 60), spread(0.0, 0.05, 60, seed=1)
    alone = decide(*arms(ndcg=lost), {"nDCG@10": 0.02}).measures[0]
    both = decide(*arms(ndcg=lost, rr=equal), {"nDCG@10": 0.02, "RR@10": 0.02})
    assert both.measures[0].p_loss == pytest.approx(2 * alone.p_loss)
    assert both.measures[0].p_pass == pytest.approx(alone.p_pass)
    assert alone.p_loss < 0.05 < both.measures[0].p_loss
    assert (alone.answer, both.answer) == ("loses", "not enough topics")
    worse = decide(*arms(ndcg=spread(-0.1, 0.1, 60), rr=equal), {"nDCG@10": 0.02, "RR@10": 0.02})
    assert [row.answer for row in worse.measures] == ["loses", "passes"]
    assert worse.answer == "loses"


def test_a_candidate_passes_if_it_passes_every_measure() -> None:
    sure, unsure = spread(0.0, 0.03, 60), spread(0.0, 0.2, 60, seed=1)
    margins = {"nDCG@10": 0.02, "RR@10": 0.02}
    assert decide(*arms(ndcg=sure, rr=sure), margins).answer == "passes"
    assert decide(*arms(ndcg=sure, rr=unsure), margins).answer == "not enough topics"


def test_copies_of_topics_in_a_cluster_count_once() -> None:
    d = spread(-0.01, 0.05, 40)
    once = decide(*arms(ndcg=d), {"nDCG@10": 0.02})
    clusters = {str(n): n // 3 for n in range(120)}
    thrice = decide(*arms(ndcg=np.repeat(d, 3)), {"nDCG@10": 0.02}, clusters=clusters)
    assert (thrice.topics, thrice.units) == (120, 40)
    assert thrice.measures[0].p_pass == pytest.approx(once.measures[0].p_pass)
    assert thrice.measures[0].p_loss == pytest.approx(once.measures[0].p_loss)
    assert decide(*arms(ndcg=np.repeat(d, 3)), {"nDCG@10": 0.02}).measures[0].p_pass < once.measures[0].p_pass / 2


def test_values_of_clusters_have_the_mean_of_topics_and_the_error_of_clusters() -> None:
    random = np.random.default_rng(3)
    clusters = random.permutation(np.concatenate([np.arange(12), random.integers(0, 12, 60)]))
    d = random.normal(size=(72, 1)) + 0.5 * clusters[:, None]
    d[clusters == 4] = 0.0
    units, changed = unit_values(d, clusters)
    assert units.shape == (12, 1)
    assert changed.tolist() == [11]
    assert units.mean() == pytest.approx(d.mean())
    assert interval(units[:, 0], np.arange(12)) == pytest.approx(interval(d[:, 0], clusters))


def test_rare_large_losses_pass_seldom_where_they_pass_a_t_test_often() -> None:
    random, margin, draws = np.random.default_rng(0), 0.01, 4000
    for n in (20, 40, 80, 150, 300):
        d = -0.5 * (random.random((n, draws)) < 2 * margin)  # a topic in 50 loses .5
        passed = p_above(d, (d != 0).sum(axis=0), np.full(draws, -margin)) <= 0.05
        assert passed.sum() <= 0.05 * draws
        if n <= 80:
            with np.errstate(invalid="ignore", divide="ignore"):
                t = (d.mean(axis=0) + margin) / (d.std(axis=0, ddof=1) / n**0.5)
            assert np.mean(~(t < 1.8)) > 0.15  # no loss seen, or few


def test_rare_large_gains_beside_frequent_small_losses_are_seldom_called_a_loss() -> None:
    random, draws = np.random.default_rng(0), 4000
    for n in (20, 40, 80, 150, 300):
        part = random.random((n, draws))
        d = np.where(part < 0.02, 1.0, np.where(part < 0.12, -0.2, 0.0))  # mean 0
        lost = p_above(-d, (d != 0).sum(axis=0), np.zeros(draws)) <= 0.05
        assert lost.sum() <= 0.05 * draws


def test_three_measures_of_the_same_topics_seldom_lose_without_a_loss() -> None:
    random, lost = np.random.default_rng(0), 0
    for _ in range(150):
        shared = random.normal(size=60)
        d = {"ndcg": 0.1 * shared, "rr": 0.1 * shared + 0.1 * random.normal(size=60)}
        lost += decide(*arms(**d), {"nDCG@10": 0.01, "RR@10": 0.01}).answer == "loses"
    assert lost <= 12


def test_ends_bound_what_is_rejected() -> None:
    d, changed = spread(0.01, 0.1, 50)[:, None], np.array([50])
    low = lower_end(d, changed, 0.05)
    assert p_above(d, changed, low) == pytest.approx(0.05)
