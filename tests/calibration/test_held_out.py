"""Promises: thresholds by hand, bounds by simulation, and what too few topics and short rankings cannot promise."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from support.each import each
from support.simulated import held_out

from fontes.calibration import HeldOutTopics, least_units
from fontes.calibration.held_out import best_probabilities, expected_shares, p_value
from fontes.core import ParameterError, Qrels, Run

NINE = {f"t{n}": [(n / 10, True)] for n in range(1, 10)}
"""Nine topics, each with one relevant document, of probability .1 to .9."""


@each(("level", "threshold"), [(0.9, 0.1), (0.8, 0.2), (0.85, 0.1), (0.5, 0.5), (0.7, 0.3)])
def test_risk_control_may_lose_as_many_topics_as_the_bound_allows(level: float, threshold: float) -> None:
    """(lost + 1) / 10 <= 1 - level."""
    assert held_out(NINE).promise("complete", level).threshold == pytest.approx(threshold)
    assert held_out(NINE).promise("recall", level).threshold == pytest.approx(threshold / (1 + threshold))


def test_recall_loses_the_share_of_a_topics_relevant_documents() -> None:
    topics = {f"t{n}": [(0.9, True), (0.2 + n / 100, True), (0.1, False)] for n in range(9)}
    promise = held_out(topics).promise("recall", 0.8)  # a loss of 1 is two topics that lose half
    assert promise.threshold == pytest.approx(0.22 / (1 + 0.9 + 0.22 + 0.1))
    assert held_out(topics).promise("complete", 0.8).threshold == pytest.approx(0.9)  # one document is a set


def test_the_first_complete_evidence_set_counts() -> None:
    run = Run.of({f"t{n}": {"a": 0.9, "b": 0.5 + n / 100, "c": 0.3} for n in range(9)})
    rows = [(f"t{n}", group, doc, 1) for n in range(9) for group, doc in (("1", "a"), ("1", "b"), ("2", "c"))]
    topics = HeldOutTopics.of(run, Qrels(rows), [[t] for t in run], np.array([0.5], dtype=np.float32), 1)
    assert topics.complete == pytest.approx([0.5 + n / 100 for n in range(9)])
    assert topics.promise("complete", 0.8).threshold == pytest.approx(0.51)


def test_topics_of_one_unit_count_as_one_with_the_mean_of_their_losses() -> None:
    pairs = {f"{side}{n}": [(n / 10 if side == "a" else 0.95, True)] for n in range(1, 10) for side in "ab"}
    topics = held_out(pairs, [[f"a{n}", f"b{n}"] for n in range(1, 10)])
    assert topics.units == 9
    assert topics.promise("complete", 0.8).threshold == pytest.approx(0.3)  # two topics lose all, each half of a unit
    assert topics.promise("recall", 0.8).threshold == pytest.approx(0.3 / 1.3)
    assert held_out(pairs).promise("complete", 0.8).threshold == pytest.approx(0.3)  # 19 · .2 - 1 = 2.8 topics
    assert held_out(pairs).promise("complete", 0.9).threshold == pytest.approx(0.1)
    grouped, alone = (each.promise("recall", 0.8).statement for each in (topics, held_out(pairs)))
    assert grouped.startswith("over topics like the 18 held out, in 9 groups that count alike, a list holds at least 0.8")
    assert alone.startswith("over topics like the 18 held out, a list holds at least 0.8")
    with pytest.raises(ParameterError, match=r"^9 held-out topics or groups of topics cannot promise recall=0.95; 19 can$"):
        topics.promise("recall", 0.95)


@each(
    ("kind", "level", "least"),
    [("recall", 0.9, 9), ("recall", 0.95, 19), ("complete", 0.5, 1), ("answerable", 0.9, 9), ("precision", 0.9, 22)],
)
def test_the_smallest_number_of_topics_suffices(kind: str, level: float, least: int) -> None:
    assert least_units(kind, level) == least
    enough = {f"t{n}": [(0.9 + n / 1000, True)] for n in range(least)}
    assert held_out(enough).promise(kind, level).units == least


def test_the_greatest_recall_is_what_the_run_holds() -> None:
    topics = held_out({f"t{n}": [(0.5, True)] for n in range(19)}, missed={"t0": 1, "t1": 1})  # each loses half
    assert topics.greatest("recall") == 0.9  # (1 + 1) / 20
    assert topics.promise("recall", 0.9).threshold == pytest.approx(0.5 / 1.5)


def test_thresholds_after_the_first_that_fails_are_not_tested() -> None:
    good, bad = [(0.95, True)], [(0.95, True), *[(0.6, False)] * 9, *[(0.2, True)] * 190]
    assert held_out({f"t{n}": good for n in range(40)}).promise("precision", 0.9).threshold == pytest.approx(0.1)
    topics = held_out({f"t{n}": bad for n in range(40)})  # 1 of 1, 1 of 10, 191 of 200
    promise = topics.promise("precision", 0.9)
    assert promise.threshold == pytest.approx(0.9)
    assert promise.confidence == 0.9
    greatest = topics.greatest("precision", 0.8)
    assert greatest is not None
    assert topics.promise("precision", greatest, 0.8).threshold >= 0.1
    with pytest.raises(ParameterError, match=f"cannot promise precision={greatest + 0.001:g}"):
        topics.promise("precision", greatest + 0.001, 0.8)
    half_right = held_out({f"t{n}": [(0.95, n % 2 == 0), (0.2, True)] for n in range(40)}, grid=[0.9, 0.5])
    assert 0.3 < (half_right.greatest("precision") or 0) < 0.5
    assert (
        held_out({f"t{n}": [(0.95, False)] for n in range(40)}, missed={f"t{n}": 1 for n in range(40)}).greatest("precision")
        is None
    )


@pytest.mark.parametrize(("confidence", "threshold"), [(0.9, 0.9), (0.65, 0.9), (0.6, 0.1)])
def test_more_confidence_takes_a_higher_threshold(confidence: float, threshold: float) -> None:
    """One wrong list of 30 has a p-value of .375."""
    topics = held_out({f"t{n}": [(0.95, True)] if n else [(0.6, False), (0.2, True)] for n in range(30)})
    assert p_value(1 / 30, 30, 0.1) == pytest.approx(0.375, abs=0.005)
    assert topics.promise("precision", 0.9, confidence).threshold == pytest.approx(threshold)


HYPOTHESES = [(0.0, 22, 0.1), (0.05, 40, 0.1), (0.02, 200, 0.1), (0.4, 90, 0.5), (0.3, 50, 0.1)]


@each(("mean", "units", "risk"), HYPOTHESES)
def test_the_p_value_is_the_lesser_of_hoeffdings_and_bentkus_bounds(mean: float, units: int, risk: float) -> None:
    a = min(mean, risk)
    entropy = (a * math.log(a / risk) if a else 0) + (1 - a) * math.log((1 - a) / (1 - risk))
    bentkus = math.e * float(binom.cdf(math.ceil(round(units * mean, 9)), units, risk))
    assert p_value(mean, units, risk) == pytest.approx(min(1, math.exp(-units * entropy), bentkus), rel=1e-9)


def test_expected_shares_and_the_best_three_are_of_each_ranking() -> None:
    run = Run.of({"a": {"w": 0.5, "x": 0.25, "y": 0.2, "z": 0.05}, "none": {}, "b": {"x": 0.5}})
    assert expected_shares(run) == pytest.approx([0.25, 0.125, 0.1, 0.025, 0.5 / 1.5])
    assert best_probabilities(run) == pytest.approx([1 - 0.5 * 0.75 * 0.8, -1, 0.5])


def test_the_conformal_p_value_counts_topics_with_a_best_document_as_low() -> None:
    topics = held_out({"a": [(0.2, True)], "b": [(0.4, False)], "c": [(0.4, True)], "d": []}, missed={"b": 1, "d": 1})
    assert topics.p_values(np.array([0.1, 0.2, 0.4, 0.9, -1], dtype=np.float32)).tolist() == pytest.approx(
        [2 / 5, 3 / 5, 1, 1, 2 / 5]
    )
    halves = held_out({"a": [(0.2, True)], "b": [(0.4, True)], "c": [(0.6, True)]}, [["a", "b"], ["c"]])
    assert halves.p_values(np.array([0.3], dtype=np.float32)).tolist() == pytest.approx([(1 + 0.5) / 3])


def test_topics_without_relevant_documents_are_no_evidence() -> None:
    topics = held_out({"a": [(0.5, True)], "b": [(0.5, False)], "c": [(0.5, True)]}, [["b"], ["a", "c"]])
    assert (topics.units, len(topics.unit), topics.weights.tolist()) == (1, 2, [0.5, 0.5])


def drawn(count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Probabilities, (topics, 12), descending, and relevance drawn by them; topics without relevant documents are left out."""
    draw = np.random.default_rng(seed)
    log_odds = np.sort(draw.normal(0, 1, (count, 1)) - draw.exponential(3, (count, 12)), axis=1)[:, ::-1]
    probabilities = (1 / (1 + np.exp(-log_odds))).astype(np.float32)
    labels = draw.random(log_odds.shape) < probabilities
    return probabilities[labels.any(axis=1)], labels[labels.any(axis=1)]


def shares_of(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities divided by 1 + their sum over the ranking."""
    shares: NDArray[np.float32] = probabilities / (1 + probabilities.sum(axis=1, keepdims=True))
    return shares


def collected(probabilities: NDArray[np.float32], labels: NDArray[np.bool_], grid: NDArray[np.float32]) -> HeldOutTopics:
    """The same as `HeldOutTopics.of`, from arrays."""
    relevant = labels.sum(axis=1).astype(np.int32)
    return HeldOutTopics(
        unit=np.arange(len(labels), dtype=np.int32),
        relevant=relevant,
        bounds=np.concatenate([[0], np.cumsum(relevant, dtype=np.int64)]),
        retrieved=probabilities[labels],
        shares=shares_of(probabilities)[labels],
        complete=np.where(labels, probabilities, np.float32(-1)).max(axis=1),
        best=(1 - np.prod(1 - probabilities[:, :3].astype(np.float64), axis=1)).astype(np.float32),
        grid=grid,
        kept=(probabilities[:, :, None] >= grid).sum(axis=1).astype(np.int32),
    )


def test_collected_topics_are_those_of_runs_and_judgments() -> None:
    probabilities, labels = drawn(9, 1)
    pairs = [list(zip(p.tolist(), r.tolist(), strict=True)) for p, r in zip(probabilities, labels, strict=True)]
    rows = {f"t{n}": ranking for n, ranking in enumerate(pairs)}
    grid = [0.7, 0.3, 0.05]
    one, other = held_out(rows, grid=grid), collected(probabilities, labels, np.array(grid, dtype=np.float32))
    for name, array in vars(one).items():
        if name == "retrieved":
            array, other_array = np.sort(array), np.sort(other.retrieved)
        else:
            other_array = getattr(other, name)
        assert array == pytest.approx(other_array), name


def test_expected_recall_is_kept_by_lists_that_are_not_too_long() -> None:
    probabilities, labels = drawn(8_000, 99)
    risks = []
    for seed in range(300):
        topics = collected(*(part[:30] for part in drawn(90, seed)), np.array([0.5], dtype=np.float32))
        is_kept = shares_of(probabilities) >= np.float32(topics.promise("recall", 0.7).threshold)
        risks.append(float(np.mean(1 - (labels & is_kept).sum(axis=1) / labels.sum(axis=1))))
    mean, error = float(np.mean(risks)), float(np.std(risks) / math.sqrt(len(risks)))
    assert 0.3 - 2 / 31 - 3 * error <= mean <= 0.3 + 3 * error  # Angelopoulos et al., 2022, theorems 1 and 2


def test_precision_is_kept_with_the_promised_probability() -> None:
    probabilities, labels = drawn(6_000, 98)
    grid, risks = np.linspace(0.95, 0.05, 30).astype(np.float32), []
    for seed in range(150):
        topics = collected(*(part[:60] for part in drawn(180, 1000 + seed)), grid)
        is_kept = probabilities >= np.float32(topics.promise("precision", 0.7, 0.8).threshold)
        wrong = (is_kept & ~labels).sum(axis=1) / np.maximum(is_kept.sum(axis=1), 1)
        risks.append(float(np.mean(wrong)))
    assert np.mean(np.array(risks) > 0.3) <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 150)
    assert np.mean(risks) > 0.16  # lists are not cut much more than the test needs


def test_false_alarms_are_as_rare_as_promised() -> None:
    draw, alarms = np.random.default_rng(5), []
    for _ in range(300):
        best = draw.random(40).astype(np.float32)
        topics = collected(best[:19, None], np.ones((19, 1), dtype=np.bool_), np.array([0.5], dtype=np.float32))
        alarms.append(np.mean(topics.p_values(best[19:]) <= topics.promise("answerable", 0.9).threshold))
    assert np.mean(alarms) == pytest.approx(2 / 20, abs=0.02)
