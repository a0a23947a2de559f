"""Agreement of two judges beyond chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core import ParameterError

WEIGHTS = {"": 0, "linear": 1, "quadratic": 2}  # the power of the distance of two grades


def kappa(table: Sequence[Sequence[int]] | NDArray[np.int64], weights: str = "") -> float:
    """Cohen's kappa: 1 - sum(w * observed) / sum(w * expected by chance) (Cohen 1960; weighted, Cohen 1968, equation 4).

    Args:
        table: How many documents have this grade of the first judge, the row, and that of the second, the column.
        weights: How much a disagreement counts: "", each the same; "linear" or "quadratic", by the distance of the grades.

    Returns:
        1 for judges who always agree, 0 for such as agree no more than by chance. NaN where chance alone agrees always: both
        give one and the same grade to all, or there are no documents.

    Raises:
        ParameterError: There are no such weights.
    """
    if weights not in WEIGHTS:
        raise ParameterError(f"there are no weights '{weights}' of kappa; there are linear and quadratic, and '' for none")
    observed = np.asarray(table, dtype=np.float64)
    grades = np.arange(len(observed))
    distance = np.abs(grades[:, None] - grades)
    weight = distance.astype(np.float64) ** WEIGHTS[weights] if WEIGHTS[weights] else (distance > 0).astype(np.float64)
    total = observed.sum()
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / total if total else observed
    chance = float((weight * expected).sum())
    return float(1 - (weight * observed).sum() / chance) if chance else float("nan")
