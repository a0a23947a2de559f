"""Checks of parameters and of ids that every room needs."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from .errors import InputError, ParameterError


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


def string_of(value: Any, what: str, where: str) -> str:
    """An id, or the text of a topic: a string, or a whole number, which stands for its digits.

    Args:
        value: Anything.
        what: What the message calls it, such as "document id".
        where: What it stands in, such as "FILE, line 7".

    Raises:
        InputError: It is neither; 7.0 is no id, for nobody can say whether "7" or "7.0" is meant.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    problem = f"the {what} is {value!r}, which is neither a string nor a whole number"
    if is_missing(value):
        problem = f"the {what} is missing"
    elif isinstance(value, float):
        problem += "; make it one (pandas: fill or drop what is missing in the column, then astype(int))"
    raise InputError(f"{where}: {problem}")


def is_missing(value: Any) -> bool:
    """Whether it is what a table has where there is nothing: None, NaN, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
