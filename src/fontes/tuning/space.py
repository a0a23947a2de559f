"""The space that is searched: which values each parameter may take, and the stage that has given values."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..core import ParameterError, Run, Stage, Topics

Space: TypeAlias = Mapping[str, object]
Setting: TypeAlias = dict[str, Any]
Tunable: TypeAlias = Stage[Topics, Run] | Callable[..., Stage[Topics, Run]]

BM25_SPACE: Space = {"k1": (0.1, 4.5, 0.2), "b": (0.0, 1.0, 0.1), "k3": [None, 0.0, 2.0, 8.0]}


@dataclass(frozen=True)
class Values:
    """Values to choose from, in their order."""

    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        """Whether all are numbers."""
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the greatest number, or None where there is no such thing."""
        return (min(self.values), max(self.values)) if self.ordered and len(self.values) > 1 else None

    def draw(self, rng: np.random.Generator) -> Any:
        """One at random."""
        return self.values[int(rng.integers(len(self.values)))]

    def suggest(self, trial: Any, name: str) -> Any:
        """One that Optuna suggests; numbers by their place, so that neighbours are known as such."""
        last = len(self.values) - 1
        places = trial.suggest_int(name, 0, last) if self.ordered else trial.suggest_categorical(name, list(range(last + 1)))
        return self.values[places]


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, or all whole ones."""

    low: float
    high: float
    whole: bool

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number."""
        return self.low, self.high

    def draw(self, rng: np.random.Generator) -> float:
        """One at random, all equally likely."""
        if self.whole:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        return float(rng.uniform(self.low, self.high))

    def suggest(self, trial: Any, name: str) -> float:
        """One that Optuna suggests."""
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        number: float = suggest(name, self.low, self.high)
        return number


Axis: TypeAlias = Values | Range


def axes_of(space: Space, maker: Maker) -> dict[str, Axis]:
    """The parameters with their values. Raises ParameterError for a space that is empty or cannot be read."""
    if not isinstance(space, Mapping) or not space:
        raise ParameterError(f"the space must map names of parameters to values, as {{'k1': (0.1, 4.5, 0.2)}}, not {space!r}")
    return {name: _axis(name, given, maker.default.get(name, 0)) for name, given in space.items()}


def grid_of(axes: Mapping[str, Axis]) -> Iterator[Setting]:
    """Every combination of the values; the last parameter changes fastest. Raises ParameterError for a range without a step."""
    values = []
    for name, axis in axes.items():
        if isinstance(axis, Range):
            raise ParameterError(
                f"a grid needs a step: give {name}=({axis.low:g}, {axis.high:g}, step) or a list, or method='random' or 'tpe'"
            )
        values.append(axis.values)
    return (dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values))


class Maker:
    """Makes the stage for a setting, from a stage or from a function; `default` has the parameters' present values.

    `given` is the stage without changes, or None for a function of which some parameter has no default.
    """

    def __init__(self, tunable: Tunable, names: Iterable[str] | None) -> None:
        """Raises ParameterError for names that the stage or the function does not have."""
        self._tunable = tunable
        if isinstance(tunable, Stage):
            self.given: Stage[Topics, Run] | None = tunable
            self.default = {name: _present(tunable, name) for name in names or ()}
        elif callable(tunable):
            self.given, self.default = _defaults(tunable, list(names or ()))
        else:
            raise ParameterError(f"tune takes a stage, or a function that makes one, not a {type(tunable).__name__}")
        if self.given is not None:
            self.given.require(Topics, Run, "tune")

    def __call__(self, setting: Setting) -> Stage[Topics, Run]:
        """The stage with these parameters."""
        if isinstance(self._tunable, Stage):
            return _changed(self._tunable, setting)
        made = self._tunable(**setting)
        if not isinstance(made, Stage):
            raise ParameterError(f"the function that makes the stage gave a {type(made).__name__}, not a stage")
        made.require(Topics, Run, "tune")
        return made


def default_space(tunable: Tunable) -> Space:
    """The space for BM25. Raises ParameterError for a function, and for a stage in which there is no BM25."""
    from ..lexical import BM25

    if isinstance(tunable, Stage) and any(isinstance(stage, BM25) for stage in _all(tunable)):
        return BM25_SPACE
    what = repr(tunable) if isinstance(tunable, Stage) else "a function"
    raise ParameterError(f"there is no default space for {what}; give one, as {{'k1': (0.1, 4.5, 0.2), 'b': [0.4, 0.75]}}")


def _axis(name: str, given: object, present: object) -> Axis:
    if isinstance(given, tuple):
        return _numbers(name, given, present)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ParameterError(f"{name}: give a list of values, (low, high) or (low, high, step), not {given!r}")
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
    if not values:
        raise ParameterError(f"{name}: there is no value to try")
    return Values(values)


def _numbers(name: str, given: tuple[Any, ...], present: object) -> Axis:
    if len(given) not in (2, 3) or any(isinstance(n, bool) or not isinstance(n, (int, float, np.number)) for n in given):
        raise ParameterError(
            f"{name}: a tuple is a range, (low, high) or (low, high, step), not {given!r}; for a choice of values give a list"
        )
    low, high, step = (float(n) for n in (*given, 1)[:3])
    if not all(map(math.isfinite, (low, high, step))) or low > high or step <= 0:
        raise ParameterError(f"{name}: low must not be above high, and step must be above 0, not {given!r}")
    # (0, 1) for a parameter that is no whole number means all between.
    whole = all(isinstance(n, (int, np.integer)) for n in given) and isinstance(present, int)
    if len(given) == 2:
        return Range(int(low), int(high), True) if whole else Range(low, high, False)
    count = math.floor((high - low) / step + 1e-9) + 1
    values = (round(low + i * step, 10) for i in range(count))
    return Values(tuple(int(v) if whole else v for v in values))


def _all(stage: Stage[Any, Any]) -> Iterator[Stage[Any, Any]]:
    """A stage and all that are inside it."""
    yield stage
    for value in stage.params().values():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Stage):
                yield from _all(inner)


def _has(stage: Stage[Any, Any], name: str) -> bool:
    owner, _, field = name.rpartition(".")
    return field in stage.params() and owner in ("", type(stage).__name__)


def _present(stage: Stage[Any, Any], name: str) -> Any:
    """The value that a parameter has now. Raises ParameterError for a name that no stage has, or stages of several kinds."""
    owners = [inner for inner in _all(stage) if _has(inner, name)]
    kinds = list(dict.fromkeys(type(owner).__name__ for owner in owners))
    if not owners:
        known = {f"{type(s).__name__}.{f}" for s in _all(stage) for f in s.params()}
        raise ParameterError(f"no stage has the parameter '{name}'; there are {', '.join(sorted(known)) or 'none'}")
    if len(kinds) > 1:
        choices = " or ".join(f"'{kind}.{name}'" for kind in kinds)
        raise ParameterError(f"'{name}' is a parameter of {' and '.join(kinds)}; write {choices}")
    field = name.rpartition(".")[2]
    value = getattr(owners[0], field)
    # Lexical stages fill in the defaults of their variant in `weighting`.
    return getattr(getattr(owners[0], "weighting", None), field, None) if value is None else value


def _changed(stage: Stage[Any, Any], setting: Setting) -> Stage[Any, Any]:
    """A copy in which every stage that has one of the parameters has the given value."""
    changes: Setting = {}
    for field, value in stage.params().items():
        if isinstance(value, Stage):
            changes[field] = _changed(value, setting)
        elif isinstance(value, tuple) and any(isinstance(v, Stage) for v in value):
            changes[field] = tuple(_changed(v, setting) if isinstance(v, Stage) else v for v in value)
    for name, value in setting.items():
        if _has(stage, name):
            changes[name.rpartition(".")[2]] = value
    return stage.with_(**changes) if changes else stage


def _defaults(function: Callable[..., Any], names: list[str]) -> tuple[Stage[Any, Any] | None, Setting]:
    """What the function makes by itself, and its parameters' defaults."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return None, {}
    kinds = [p.kind for p in parameters.values()]
    for name in names:
        if name not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ParameterError(f"the function has no parameter '{name}'; it has {', '.join(parameters) or 'none'}")
    named = {n: p for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in names:
            raise ParameterError(f"the function needs '{name}', for which the space has no values")
    defaults = {n: p.default for n, p in named.items() if p.default is not p.empty}
    given = function() if len(defaults) == len(named) else None
    if given is not None and not isinstance(given, Stage):
        raise ParameterError(f"the function that makes the stage gave a {type(given).__name__}, not a stage")
    return given, {n: defaults[n] for n in names if n in defaults}
