"""The number of topics that a gate needs, and the drift over accepted changes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fontes.gate.decision import decide
from fontes.gate.planning import MeasurePlan, Spread, drift, plan_baseline, plan_differences
from fontes.measures.evaluation import Evaluation
from fontes.measures.names import parse
from fontes.tuning.result import interval

Floats = NDArray[np.float64]
NDCG = parse("nDCG@10")
MARGIN: dict[Any, float] = {"nDCG@10": 0.02}


def evaluation(values: Floats, machine: Evaluation | None = None) -> Evaluation:
    return Evaluation(tuple(map(str, range(len(values)))), {NDCG: np.array(values, float)}, machine=machine)


def arms(differences: Floats) -> tuple[Evaluation, Evaluation]:
    return evaluation(np.full(len(differences), 0.5)), evaluation(0.5 + differences)


def normal(sd: float, n: int, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).normal(size=n)
    return sd * (values - values.mean()) / values.std(ddof=1)


def plan_of(differences: Floats, margin: float = 0.02, **options: Any) -> MeasurePlan:
    return plan_differences(*arms(differences), {"nDCG@10": margin}, **options).measures[0]


def test_the_spread_is_that_of_the_differences_and_one_more() -> None:
    d = normal(0.1, 80)
    spread = Spread.of(d, len(d), "a pilot")
    middle = np.sqrt((np.sum(d**2) + np.abs(d).max() ** 2) / 80)
    assert spread.low < middle < spread.value < spread.high
    assert spread.value == pytest.approx(middle * (spread.high / middle) ** (0.8416 / 1.96), rel=1e-3)
    assert (spread.changed, spread.largest) == (1.0, pytest.approx(np.abs(d).max()))


def test_differences_of_one_size_have_a_spread() -> None:
    for d in (np.tile([0.1, -0.1], 10), np.full(20, -0.1), np.array([0.3, -0.3])):
        spread = Spread.of(d, len(d), "a pilot")
        assert 0 < spread.low <= spread.value <= spread.high < 2


def test_the_topics_needed_are_the_least_that_suffice() -> None:
    plan = plan_of(normal(0.1, 80))
    assert plan.spread.power(0.02, plan.topics) >= 0.8 > plan.spread.power(0.02, plan.topics - 1)
    assert plan.low < plan.topics < plan.high
    assert plan.power_now == pytest.approx(plan.spread.power(0.02, 80))


@pytest.mark.parametrize("loss", [0.02, 0.0])
def test_the_planned_power_is_that_of_the_decision(loss: float) -> None:
    spread = Spread(0.1, 0.1, 0.1, 1.0, 0.28, "an assumption")  # the greatest of about 200 such differences
    n, random = spread.units_for(0.02, 0.05, 0.8), np.random.default_rng(0)
    draws = (random.normal(-loss, 0.1, n) for _ in range(300))
    wanted = "loses" if loss else "passes"
    right = sum(decide(*arms(d), MARGIN).answer == wanted for d in draws)
    assert 215 <= right <= 265  # 240 expected


def test_a_plan_is_a_sentence() -> None:
    plan = plan_of(normal(0.1, 40))
    assert (
        str(plan)
        == f"40 topics tell a loss of 0.02 in {100 * plan.power_now:.0f} of 100 cases; {plan.topics} would tell it in 80"
    )
    assert "would" not in str(plan_of(normal(0.02, 100)))
    assert f"{plan_of(normal(0.3, 40)).topics:,} would tell it in 80" in str(plan_of(normal(0.3, 40)))


def test_a_pilot_without_a_change_needs_as_many_topics_as_passing_does() -> None:
    assert plan_of(np.zeros(40), margin=0.01).topics >= 265
    rare = np.zeros(40)
    rare[0] = -0.1
    assert plan_of(rare, margin=0.01).topics >= 265


def test_wider_margins_need_fewer_topics_and_more_measures_more() -> None:
    d = normal(0.1, 60)
    topics = [plan_of(d, margin=margin).topics for margin in (0.01, 0.02, 0.05)]
    assert topics == sorted(topics, reverse=True)
    spread = Spread.of(d, len(d), "a pilot")
    assert spread.units_for(0.02, 0.05, 0.8, measures=3) > spread.units_for(0.02, 0.05, 0.8)


def test_a_plan_of_several_measures_needs_the_most_of_them() -> None:
    columns = {NDCG: normal(0.1, 60), parse("RR@10"): normal(0.2, 60, seed=1)}
    ids = tuple(map(str, range(60)))
    baseline = Evaluation(ids, {measure: np.full(60, 0.5) for measure in columns})
    candidate = Evaluation(ids, {measure: 0.5 + d for measure, d in columns.items()})
    plan = plan_differences(baseline, candidate, {"nDCG@10": 0.02, "RR@10": 0.02})
    assert plan.topics == plan.measures[1].topics > plan.measures[0].topics


def test_clusters_need_as_many_clusters_as_topics_alone() -> None:
    d = normal(0.1, 60)
    thrice = plan_of(np.repeat(d, 3), clusters={str(n): n // 3 for n in range(180)})
    assert thrice.topics == 3 * plan_of(d).topics
    assert thrice.power_now == pytest.approx(plan_of(d).power_now)


def test_a_plan_from_the_baseline_assumes_a_correlation() -> None:
    values = 0.5 + normal(0.2, 50)
    plan = plan_baseline(evaluation(values), MARGIN).measures[0]
    assert plan.spread.value == pytest.approx(0.2 * np.sqrt(2 * 0.2))
    assert (plan.spread.low, plan.spread.high) == pytest.approx((0.2 * np.sqrt(2 * 0.05), 0.2 * np.sqrt(2 * 0.4)))
    assert plan.low < plan.topics < plan.high
    assert plan.spread.source == "the baseline and a correlation of 0.8"
    assert plan_baseline(evaluation(values), MARGIN, correlation=0.9).topics < plan.topics
    assert plan_baseline(evaluation(np.full(50, 1.0)), MARGIN).topics > 100


def with_machine(errors: float, labelled: int = 2000, judged: int = 60) -> tuple[Evaluation, Evaluation]:
    """Both arms by people, and by a machine whose differences are those of people and errors."""
    random = np.random.default_rng(0)
    d = random.normal(0, 0.1, labelled)
    by_machine = d + random.normal(0, errors, labelled) if errors else d
    zero = evaluation(np.full(judged, 0.5), evaluation(np.full(labelled, 0.5)))
    return zero, evaluation(0.5 + d[:judged], evaluation(0.5 + by_machine))


def test_labels_of_a_machine_save_judgments_of_people() -> None:
    good, fair, bad = (plan_differences(*with_machine(errors), MARGIN).measures[0] for errors in (0.02, 0.06, 2.0))
    assert good.judged is not None
    assert fair.judged is not None
    assert bad.judged is not None
    assert good.judged < fair.judged < bad.judged
    assert good.judged < good.topics / 5
    assert bad.judged == pytest.approx(bad.topics, rel=0.15)  # such labels say nothing
    assert plan_differences(*with_machine(0.0), MARGIN).measures[0].judged == 20  # the least that the estimator takes


def test_too_few_labelled_topics_do_not_suffice() -> None:
    assert plan_differences(*with_machine(0.02, labelled=100), MARGIN).measures[0].judged is None
    assert plan_of(normal(0.1, 60)).judged is None


def by_topic(values: Floats, first: int = 0) -> dict[str, float]:
    return {str(first + number): value for number, value in enumerate(values.tolist())}


def test_the_drift_over_the_same_topics_is_that_of_their_sums() -> None:
    changes = [normal(0.1, 30, seed) - 0.01 for seed in range(3)]
    total = drift([by_topic(change) for change in changes])
    assert (total.difference, total.changes) == (pytest.approx(-0.03), 3)
    assert (total.low, total.high) == pytest.approx(interval(sum(changes), np.arange(30), 0.9))


def test_a_change_taken_back_leaves_no_drift() -> None:
    change = by_topic(normal(0.1, 30) - 0.01)
    total = drift([change, {topic: -value for topic, value in change.items()}])
    assert (total.difference, total.low, total.high) == pytest.approx((0, 0, 0))


def test_the_variances_of_changes_with_other_topics_add_up() -> None:
    first, second = normal(0.1, 30), normal(0.2, 30, seed=1)
    total, alone = drift([by_topic(first), by_topic(second, 30)]), drift([by_topic(first)])
    assert total.high == pytest.approx(alone.high * np.sqrt(1 + 4))


def test_the_drift_of_topics_in_groups_is_that_of_groups() -> None:
    one = np.array([0.1, -0.2, 0.3, 0.05, -0.1, 0.2])
    alone = drift([by_topic(one)])
    doubled = {f"{topic}{turn}": value for topic, value in by_topic(one).items() for turn in "ab"}
    groups = drift([doubled], clusters={topic: topic[:-1] for topic in doubled})
    assert (groups.difference, groups.low, groups.high) == pytest.approx((alone.difference, alone.low, alone.high))
