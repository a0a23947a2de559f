"""Shared checks of parameters and ids."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

from .errors import InputError, ParameterError
from .hints import nearest

P = ParamSpec("P")
R = TypeVar("R")
GRADE = re.compile(r"\s*([+-]?[0-9]{1,18})(?:\.0*)?\s*")


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int; raise ParameterError unless it is a whole number from `least` to `most` (None: no maximum)."""
    is_whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not is_whole or not least <= int(value) <= (math.inf if most is None else most):
        bound = "up" if most is None else f"to {most}"
        raise ParameterError(f"{name} must be a whole number from {least} {bound}, not {value!r}")
    return int(value)


def check_names(function: Callable[..., object], values: Iterable[str], name: str = "") -> None:
    """Raise ParameterError for a keyword of a call that is no parameter of the function; the message has the nearest name.

    Args:
        function: The function.
        values: The keywords of the call.
        name: Name of the function in the message; by default its own.
    """
    from inspect import Parameter, signature  # only here, for the start of commands

    declared = [
        key for key, parameter in signature(function).parameters.items() if parameter.kind is not Parameter.VAR_POSITIONAL
    ]
    for key in values:
        if key not in declared:
            names = [each for each in declared if each not in ("self", "cls", "index")]
            raise ParameterError(f"{name or function.__name__} has no parameter '{key}'; {nearest(key, names)}") from None


def hinted(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that raises as `check_names` if it is called with an unknown keyword."""

    @wraps(function)
    def checked(*args: P.args, **values: P.kwargs) -> R:
        try:
            return function(*args, **values)
        except TypeError:
            check_names(function, values)
            raise

    return checked


def check_id(doc_id: object) -> None:
    """Raise ParameterError unless the id of a document is a string."""
    if not isinstance(doc_id, str):
        raise ParameterError(f"an id is a string, not {doc_id!r}" + f"; write '{doc_id}'" * isinstance(doc_id, Integral))


def check_key(user: str, key: str, metadata: Iterable[Mapping[str, object]], columns: Iterable[str] = ()) -> None:
    """Raise ParameterError if there is metadata, but none of it has a key, which is then likely to be misspelt.

    Args:
        user: Start of the message, such as "sort: no document of the run".
        key: The key.
        metadata: Metadata of documents or topics.
        columns: Columns of an index, which are keys as well.
    """
    every = list(metadata)
    if every and key not in columns and not any(key in each for each in every):
        keys = sorted({str(name) for each in every for name in each}.union(columns))
        raise ParameterError(f"{user} has '{key}'; {nearest(key, keys) if keys else 'they have no metadata'}")


def string_of(value: object, what: str, where: str) -> str:
    """Return an id or topic text: a string, or the digits of a whole number.

    Raises:
        InputError: It is neither; 7.0 is ambiguous between "7" and "7.0". The message starts with `where`, such as "FILE,
            line 7", and names the value `what`, such as "document id".
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        try:
            return str(int(value))
        except ValueError:  # Python's own limit
            raise InputError(f"{where}: the {what} is a number of thousands of digits; write it as a string") from None
    problem = f"the {what} is {value!r}, which is neither a string nor a whole number"
    if is_missing(value):
        problem = f"the {what} is missing"
    elif isinstance(value, float):
        problem += "; make it one (pandas: fill or drop what is missing in the column, then astype(int))"
    raise InputError(f"{where}: {problem}")


def grade_of(value: Any) -> int:
    """Return a grade from a number or its digits, also as "1.0", which pandas writes of a column with missing values.

    Raises TypeError for no number, ValueError unless it is whole and has at most 18 digits, OverflowError for an infinite one.
    """
    if isinstance(value, str):
        if not (digits := GRADE.fullmatch(value)):
            raise ValueError(f"the grade '{value[:40]}' is not a whole number")
        return int(digits[1])
    if int(value) != float(value):
        raise ValueError(f"the grade {value} is not a whole number")
    return int(value)


def real(value: Any) -> float:
    """Return a float from a number or a text, without the underscores and other scripts' digits that `float` accepts.

    Raises TypeError for other types, and ValueError for a text that is not numeric or a number too great for a float.
    """
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError(f"'{value[:40]}' is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too great") from None


def as_number(text: str) -> int | str:
    """Return an id as an integer if it is the decimal form of one, else unchanged."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,17}", text) else text


def is_missing(value: object) -> bool:
    """Whether a table cell is missing: None, NaN, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
