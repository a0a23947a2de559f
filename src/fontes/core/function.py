"""Functions as stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from .errors import PipelineError
from .part import Names
from .run import Kind, Run
from .stage import Stage
from .values import Topics


@dataclass(frozen=True, repr=False, eq=False)
class FunctionStage(Stage[Any, Any]):
    """A function as a stage, made by `stage`. It has no text, and its runs are not kept on disk.

    Args:
        function: From topics or a run to topics or a run, or to anything that `Topics.of` or `Run.of` accepts.
        input: Its input: Topics or Run.
        output: Its output: Topics or Run.
    """

    function: Callable[[Any], object]
    input: Kind = Topics
    output: Kind = Run

    @property
    def takes(self) -> Kind:
        return self.input

    @property
    def gives(self) -> Kind:
        return self.output

    def apply(self, value: object, /) -> Topics | Run:
        return self.output.of(self.function(value))

    def key(self) -> str | None:
        return None

    def written(self, names: Names, *, strict: bool) -> str:
        if strict:
            raise PipelineError(f"{self._label} has no text: it is made from a Python function")
        return f"stage({self._label})"

    @property
    def _label(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


@overload
def stage(function: Callable[[Any], object], *, takes: Kind = ..., gives: Kind = ...) -> FunctionStage: ...
@overload
def stage(
    function: None = None, *, takes: Kind = ..., gives: Kind = ...
) -> Callable[[Callable[[Any], object]], FunctionStage]: ...
def stage(
    function: Callable[[Any], object] | None = None, *, takes: Kind = Topics, gives: Kind = Run
) -> FunctionStage | Callable[[Callable[[Any], object]], FunctionStage]:
    """Make a stage from a function, directly or as a decorator.

    Args:
        function: From `takes` to `gives`, or to anything that `Topics.of` or `Run.of` accepts.
        takes: Topics or Run.
        gives: Topics or Run.

    Returns:
        The stage; without `function` a decorator: `@ft.stage(takes=ft.Run, gives=ft.Run)`.

    Raises:
        PipelineError: `takes` or `gives` is something else.
    """
    for kind in (takes, gives):
        if kind is not Topics and kind is not Run:
            raise PipelineError(f"a stage takes and gives Topics or Run, not {getattr(kind, '__name__', kind)}")
    if function is None:
        return lambda function: FunctionStage(function, takes, gives)
    if not callable(function):
        raise PipelineError(f"a stage is made from a function, not from {function!r}")
    return FunctionStage(function, takes, gives)
