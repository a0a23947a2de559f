"""Stages over an index, with errors that name the nearest parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.parameters import longer_name_hint, parameters
from ..core.part import Part

P = ParamSpec("P")
S = TypeVar("S", bound=Part)


def stage_method(make: Callable[P, S]) -> Callable[P, S]:
    """Return a function that makes a stage as `make` does, a method of an index or a stage's class, and checks it.

    Raises:
        ParameterError: When it is called: a parameter is unknown or out of its range; the message has the nearest name.
    """

    @functools.wraps(make)
    def checked(*args: P.args, **values: P.kwargs) -> S:
        try:
            stage = make(*args, **values)
        except TypeError:
            declared = [name for name in inspect.signature(make).parameters if name not in ("self", "index")]
            for key in values:
                if key not in declared:
                    name = getattr(make, "name", "") or make.__name__
                    raise ParameterError(f"{name} has no parameter '{key}'; {nearest(key, declared)}") from None
            raise
        try:
            stage.check()
        except ParameterError as error:
            hint = next(filter(None, (_hint(stage, key, value) for key, value in values.items())), "")
            raise ParameterError(f"{error}{hint}") from None
        return stage

    return checked


def _hint(stage: Part, key: str, value: object) -> str:
    return longer_name_hint(parameters(type(stage)), key, value)
