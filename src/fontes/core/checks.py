"""Checks of parameters and ids that every room needs."""

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


def check_id(kind: str, value: Any) -> str:
    """`value`, which is the id of a topic or of a document.

    Args:
        kind: What it is the id of, "topic" or "document".
        value: Anything.

    Raises:
        InputError: It is no string: 1 and "1" are told apart in no file, and 1.0 would become another id.
    """
    if isinstance(value, str):
        return value
    raise InputError(f"the {kind} id {value!r} is no string; write str({value!r}), which is '{value}'")
