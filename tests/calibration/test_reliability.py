"""Reliability of probabilities, by hand."""

from __future__ import annotations

import pytest

from fontes.calibration import reliability
from fontes.core import Qrels, Run
from fontes.core.errors import InputError, ParameterError


def test_the_calibration_error_is_the_mean_over_bins_of_equal_size() -> None:
    run = Run.of({"a": {"v": 0.8, "w": 0.6, "x": 0.2, "y": 0.1}, "unjudged": {"z": 0.9}})
    qrels = Qrels([("a", "0", "v", 1), ("a", "0", "y", 1), ("a", "0", "w", 0)])
    measured = reliability(run, qrels, bins=2)
    assert [(b.probability, b.relevant, b.rows) for b in measured.bins] == [
        (pytest.approx(0.15), 0.5, 2),
        (pytest.approx(0.7), 0.5, 2),
    ]
    assert measured.ece == pytest.approx((2 * 0.35 + 2 * 0.2) / 4)
    assert "expected calibration error 0.2750 of 4 documents" in str(measured)
    assert measured.to_dict()["rows"] == 4
    assert reliability(run, Qrels([("a", "0", "v", 2), ("a", "0", "w", 1)]), bins=1, rel=2).bins[0].relevant == 0.25


def test_scores_that_are_no_probabilities_and_unjudged_topics_are_refused() -> None:
    with pytest.raises(InputError, match="the scores of the run are no probabilities; calibrate it"):
        reliability(Run.of({"a": {"x": 1.5}}), Qrels([("a", "0", "x", 1)]))
    with pytest.raises(InputError, match="no topic of the run with documents has judgments"):
        reliability(Run.of({"a": {"x": 0.5}}), Qrels([("b", "0", "x", 1)]))
    with pytest.raises(ParameterError, match="bins, their number, must be 1 or more, not 0"):
        reliability(Run.of({"a": {"x": 0.5}}), Qrels([("a", "0", "x", 1)]), bins=0)
