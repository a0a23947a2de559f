"""Maps from scores to probabilities: features and curves by hand, and the order of rankings."""

import math

import numpy as np
import pytest

from fontes.calibration.maps import FLOOR, ProbabilityMap, features_of, in_order
from fontes.core import Run, Topics

TOPICS = Topics.of({"a": "one two three", "b": "one", "c": "none"})


def test_features_are_best_score_gap_log_rank_and_log_length() -> None:
    run = Run.of({"a": {"x": 5.0, "y": 3.0}, "b": {"z": -1.0}, "c": {}}, TOPICS)
    expected = [[5, 0, 0, math.log(3)], [5, 2, math.log(2), math.log(3)], [-1, 0, 0, 0]]
    assert features_of(run) == pytest.approx(np.array(expected))
    assert features_of(Run.of({}, TOPICS)).shape == (0, 4)
    assert features_of(Run.of({"c": {}, "a": {"x": 1.0}, "b": {}}, Topics.of({"c": "c", "a": "a", "b": "b"}))).shape == (1, 4)


def test_each_curve_follows_its_formula() -> None:
    weights, log_odds = np.array([1.0, -2.0, -0.5, 0.25, 3.0]), np.array([-1.5, 0.0, 2.0])
    features = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert ProbabilityMap("logistic", weights, np.zeros(0)).log_odds(features) == pytest.approx([1 - 4 - 1.5 + 1 + 3])
    p = 1 / (1 + np.exp(-log_odds))
    assert ProbabilityMap("logistic", weights, np.zeros(0)).probabilities(log_odds) == pytest.approx(p)
    beta = ProbabilityMap("beta", weights, np.array([2.0, 0.5, -1.0])).probabilities(log_odds)
    assert np.log(beta / (1 - beta)) == pytest.approx(2 * np.log(p) - 0.5 * np.log(1 - p) - 1)
    isotonic = ProbabilityMap("isotonic", weights, np.array([[-1.0, 1.0], [0.2, 0.6]]))
    assert isotonic.probabilities(log_odds) == pytest.approx([0.2, 0.4, 0.6])
    extreme = ProbabilityMap("logistic", weights, np.zeros(0)).probabilities(np.array([-1e9, 1e9]))
    assert extreme == pytest.approx([FLOOR, 1 - FLOOR], rel=1e-6)


def test_equal_and_rising_probabilities_keep_the_order() -> None:
    run = Run.of({"a": {"w": 4.0, "x": 3.0, "y": 3.0, "z": 2.0}, "b": {"p": 2.0, "q": 1.0}}, TOPICS)
    assert [run.ids[c] for c in run.codes] == ["w", "y", "x", "z", "p", "q"]
    next_below = np.nextafter(np.float32(0.5), np.float32(0))
    rounded = in_order(np.array([0.5, 0.5, 0.5, 0.9, 0.3, 0.2]), run)
    assert rounded.tolist() == [
        0.5,
        next_below,
        next_below,
        np.nextafter(next_below, np.float32(0)),
        np.float32(0.3),
        np.float32(0.2),
    ]
    constant = in_order(np.full(6, FLOOR), run)
    assert (constant > 0).all()
    again = run.with_scores(constant)
    assert (again.codes == run.codes).all()


def test_probabilities_that_fall_anyway_are_only_rounded() -> None:
    scores = np.linspace(9, 1, 50).astype(np.float32)
    run = Run.of({"a": {f"d{n:02}": float(s) for n, s in enumerate(scores)}}, TOPICS)
    probabilities = np.linspace(0.9, 1e-5, 50)
    assert (in_order(probabilities, run) == probabilities.astype(np.float32)).all()
