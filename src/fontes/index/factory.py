"""Stages over an index, with errors that name the nearest parameter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..core.checks import check_names
from ..core.errors import ParameterError, PipelineError
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
            check_names(make, values, getattr(make, "name", ""))
            raise
        try:
            stage.check()
        except ParameterError as error:
            hint = next(filter(None, (_hint(stage, key, value) for key, value in values.items())), "")
            raise ParameterError(f"{error}{hint}") from None
        except TypeError as error:
            if not isinstance(error, PipelineError):
                _check_types(stage)
            raise
        return stage

    return checked


def _check_types(stage: Part) -> None:
    """Raise ParameterError for a parameter of another type than its field."""
    for name, parameter in parameters(type(stage)).items():
        try:
            parameter.checked(getattr(stage, name))
        except ParameterError as error:
            raise ParameterError(f"{stage.name}: {error}") from None


def _hint(stage: Part, key: str, value: object) -> str:
    return longer_name_hint(parameters(type(stage)), key, value)
