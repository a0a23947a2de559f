"""Pairs of two parameters of a test."""

from collections.abc import Sequence
from typing import Any

import pytest


def every_other(rows: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
    """All pairs; half of them are quick, as on a chessboard, so that each value is in a quick pair."""
    return [
        pytest.param(row, column, id=f"{row}-{column}", marks=[pytest.mark.slow] if (i + j) % 2 else [])
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
