"""Methods of an index that other packages provide.

`index.bm25()` makes the registered stage `bm25` over the index's state; any registered stage with a field `index` is such a
method. An entry point of the group `fontes.index`, such as `encode`, is a function whose first argument is the state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import entry_points
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ..core.errors import FontesError, ParameterError
from ..core.parameters import longer_name_hint, parameters
from ..core.part import fields, stages
from ..core.registry import nearest, provided

P = ParamSpec("P")
S = TypeVar("S")
METHODS = "fontes.index"
"""Group of entry points of functions that are methods of an index."""


class StageMethod(Generic[P, S]):
    """The type of a method of an index: the parameters of a stage's class or of a function, without the index."""

    def __init__(self, stage: Callable[Concatenate[Any, P], S]) -> None:
        self.stage = stage

    def __get__(self, index: object, owner: Any = None) -> Callable[P, S]:
        return partial(self.stage, index)


@lru_cache(None)
def stage_method(name: str) -> Callable[..., Any]:
    """Return the function from a state and checked parameters to the stage of this name; or the function of an entry point.

    Raises:
        AttributeError: No stage that works on an index has this name.
        ParameterError: When it is called: a parameter is unknown or out of its range; the message has the nearest name.
    """
    if name.startswith("_"):
        raise AttributeError(f"an index has no attribute '{name}'")
    cls = _stage(name)
    if cls is None:
        try:
            function: Callable[..., Any] = provided(METHODS, name)
        except FontesError as error:
            raise AttributeError(f"an index has no attribute '{name}': {stages.problem(name) or error}") from None
        return function
    declared = parameters(cls)

    def make(index: Any, /, *args: Any, **values: Any) -> Any:
        for key in values:
            if key not in declared:
                raise ParameterError(f"{name} has no parameter '{key}'; {nearest(key, declared)}")
        stage = cls(index, *args, **values)
        try:
            stage.check()
        except ParameterError as error:
            hint = next(filter(None, (longer_name_hint(declared, key, value) for key, value in values.items())), "")
            raise ParameterError(f"{error}{hint}") from None
        return stage

    signature = inspect.signature(cls)
    make.__signature__ = signature.replace(return_annotation=cls.__name__)  # type: ignore[attr-defined]
    make.__name__, make.__doc__ = name, cls.__doc__
    return make


def _stage(name: str) -> Any:
    """The class of the stage of this name, if it works on an index."""
    try:
        cls = stages[name]
    except ParameterError:  # unknown, or not importable
        return None
    return cls if "index" in {field.name for field in fields(cls)} else None


def stage_methods() -> list[str]:
    """Names of all methods that `stage_method` knows."""
    return [*(name for name, _ in stages.items() if _stage(name)), *entry_points(group=METHODS).names]
