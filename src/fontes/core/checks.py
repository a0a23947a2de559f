"""A check of parameters that every room needs."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from .errors import ParameterError


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an int.

    Args:
        name: What the message calls it.
        value: Anything.
        least: The least number that will do.
        most: The greatest one; None where there is none.

    Raises:
        ParameterError: It is no whole number from `least` to `most`.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= (math.inf if most is None else most):
        bound = "up" if most is None else f"to {most}"
        raise ParameterError(f"{name} must be a whole number from {least} {bound}, not {value!r}")
    return int(value)
