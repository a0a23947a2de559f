"""Reliability of probabilities, by hand."""

import pytest

from fontes.calibration import reliability
from fontes.core import Qrels, Run


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
