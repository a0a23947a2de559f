"""Search space of a tuning, and the stages that its settings make."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..core import ParameterError, Run, Stage, Topics
from ..core.expression import tunable as parse_tunable
from ..core.parameters import parameters
from ..core.part import Part, walk
from ..core.registry import nearest


@dataclass(frozen=True)
class Choices:
    """An ordered list of values."""

    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Least and greatest number, or None if not all are numbers."""
        return (min(self.values), max(self.values)) if self.ordered and len(self.values) > 1 else None

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a value uniformly."""
        return self.values[int(rng.integers(len(self.values)))]

    def suggest(self, trial: Any, name: str) -> Any:
        """Return Optuna's suggestion; numbers by index, so that Optuna knows their order."""
        last = len(self.values) - 1
        choice = trial.suggest_int(name, 0, last) if self.ordered else trial.suggest_categorical(name, list(range(last + 1)))
        return self.values[choice]


@dataclass(frozen=True)
class Range:
    """A range of numbers, or of whole numbers; `step` is the grid's, if known."""

    low: float
    high: float
    whole: bool
    step: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest number."""
        return self.low, self.high

    def draw(self, rng: np.random.Generator) -> float:
        """Draw a number uniformly."""
        if self.whole:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        return float(rng.uniform(self.low, self.high))

    def suggest(self, trial: Any, name: str) -> float:
        """Return Optuna's suggestion."""
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        number: float = suggest(name, self.low, self.high)
        return number


Axis: TypeAlias = Choices | Range


def axes_of(space: Space, maker: Maker) -> dict[str, Axis]:
    """Return the values of each parameter of a space; `maker` gives present values and known ranges.

    Raises:
        ParameterError: The space is empty or invalid.
    """
    if not isinstance(space, Mapping) or not space:
        raise ParameterError(f"the space must map names of parameters to values, as {{'k1': (0.1, 4.5, 0.2)}}, not {space!r}")
    return {name: _axis(name, values, maker) for name, values in space.items()}


def grid_of(axes: Mapping[str, Axis]) -> Iterator[Setting]:
    """Yield every combination of the values; the last parameter changes fastest.

    Raises:
        ParameterError: A range has no step.
    """
    values = [_on_grid(name, axis) for name, axis in axes.items()]
    return (dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values))


def _on_grid(name: str, axis: Axis) -> tuple[Any, ...]:
    if isinstance(axis, Choices):
        return axis.values
    if axis.step is None:
        raise ParameterError(
            f"a grid needs a step: give {name}=({axis.low:g}, {axis.high:g}, step) or a list, or method='random' or 'tpe'"
        )
    return _stepped(axis.low, axis.high, axis.step, axis.whole)


def _axis(name: str, values: object, maker: Maker) -> Axis:
    if isinstance(values, tuple):
        return _numbers(name, values, maker)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError(f"{name}: give a list of values, (low, high) or (low, high, step), not {values!r}")
    listed = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if not listed:
        raise ParameterError(f"{name}: there is no value to try")
    return Choices(listed)


def _numbers(name: str, bounds: tuple[Any, ...], maker: Maker) -> Axis:
    if len(bounds) not in (2, 3) or any(isinstance(n, bool) or not isinstance(n, (int, float, np.number)) for n in bounds):
        raise ParameterError(
            f"{name}: a tuple is a range, (low, high) or (low, high, step), not {bounds!r}; for a choice of values give a list"
        )
    low, high, step = (float(n) for n in (*bounds, 1)[:3])
    if not all(map(math.isfinite, (low, high, step))) or low > high or step <= 0:
        raise ParameterError(f"{name}: low must not be above high, and step must be above 0, not {bounds!r}")
    # (0, 1) for a parameter that is no whole number means all between.
    whole = all(isinstance(n, (int, np.integer)) for n in bounds) and isinstance(maker.default.get(name, 0), int)
    if len(bounds) == 3:
        return Choices(_stepped(low, high, step, whole))
    known = maker.ranges.get(name)
    default = float(known[2]) if isinstance(known, tuple) and len(known) == 3 else None
    return Range(int(low), int(high), True, default) if whole else Range(low, high, False, default)


def _stepped(low: float, high: float, step: float, whole: bool) -> tuple[float, ...]:
    count = math.floor((high - low) / step + 1e-9) + 1
    values = (round(low + i * step, 10) for i in range(count))
    return tuple(int(v) if whole else v for v in values)


Space: TypeAlias = Mapping[str, object]
Setting: TypeAlias = dict[str, Any]
Retriever: TypeAlias = Stage[Topics, Run]
Tunable: TypeAlias = Retriever | Callable[..., Retriever] | str


@dataclass(frozen=True)
class Maker:
    """Makes the stage of a setting.

    Args:
        make: Makes the stage from parameter values by name.
        unchanged: The stage with its present values; None for a function without all defaults.
        default: Known present values of the parameters.
        ranges: Ranges known to the parameters' classes.
    """

    make: Callable[..., Any]
    unchanged: Retriever | None
    default: Setting
    ranges: Setting

    def __call__(self, setting: Setting) -> Retriever:
        """Return the stage with these parameters.

        Raises:
            ParameterError: The function did not return a stage.
            PipelineError: The stage does not go from topics to a run.
        """
        return _checked(self.make(**setting))


def maker_of(tunable: Tunable, space: Space | None, index: Any) -> tuple[Maker, Space]:
    """Return the maker of stages and the space to search.

    `space` is added to that of a text; None is the default space of a stage. `index` is that of a text, or several by name.

    Raises:
        ParameterError: A parameter of the space is not in `tunable`, or there is no default space.
        PipelineError: The stage does not go from topics to a run.
    """
    if isinstance(tunable, str):
        return _of_text(tunable, space, index)
    if index is not None:
        raise ParameterError("an index is given for a text alone; a stage has its own")
    if not isinstance(tunable, Stage) and not callable(tunable):
        raise ParameterError(f"tune takes a stage, a function that makes one, or a text, not a {type(tunable).__name__}")
    chosen = default_space(tunable) if space is None else space
    names = list(chosen) if isinstance(chosen, Mapping) else []
    return _of_stage(tunable, names) if isinstance(tunable, Stage) else _of_function(tunable, names), chosen


def default_space(tunable: Retriever | Callable[..., Retriever]) -> Space:
    """Return the usual parameters of a stage's parts, with their classes' ranges.

    Raises:
        ParameterError: The stage has no such part, or `tunable` is a function.
    """
    space: dict[str, object] = {}
    for part in walk(tunable) if isinstance(tunable, Stage) else ():
        shown = part.shown()
        for name, parameter in parameters(type(part)).items():
            if parameter.usual and (name in shown or getattr(part, name) is None):
                entries = shown[name] if isinstance(shown.get(name), Mapping) else None
                names = [name] if entries is None else [f"{name}.{entry}" for entry in entries]
                space |= dict.fromkeys(names, parameter.range)
    if not space:
        what = repr(tunable) if isinstance(tunable, Stage) else "a function"
        raise ParameterError(f"there is no default space for {what}; give one, as {{'k1': (0.1, 4.5, 0.2), 'b': [0.4, 0.75]}}")
    return space


def _of_stage(stage: Retriever, names: list[str]) -> Maker:
    """Maker of copies of a stage that sets a parameter in every part that has it."""
    owners = {name: _owner(stage, name) for name in names}

    def make(**setting: Any) -> Part:
        def changed(part: Part) -> Part:
            changes = {_field(name): value for name, value in setting.items() if _has(part, name)}
            return part.with_(**changes) if changes else part

        return stage.map(changed)

    default = {name: _present(owner, _field(name)) for name, owner in owners.items()}
    return Maker(make, _checked(stage), default, _ranges(owners))


def _of_text(text: str, space: Space | None, index: Any) -> tuple[Maker, Space]:
    one, several = (None, index) if isinstance(index, Mapping) else (index, None)
    make, written = parse_tunable(text, one, indexes=several)
    chosen = {**written, **(space or {})}
    for name in chosen:
        if name not in written:
            raise ParameterError(f"'{name}' is not tuned in the text; {nearest(name, written)}")
    unchanged = _checked(make())
    owners = {path: part for path in chosen if (part := _at(unchanged, path)) is not None}
    default = {path: _present(owner, _field(path)) for path, owner in owners.items()}
    return Maker(make, unchanged, default, _ranges(owners)), chosen


def _of_function(function: Callable[..., Any], names: list[str]) -> Maker:
    try:
        known = inspect.signature(function).parameters
    except ValueError:
        return Maker(function, None, {}, {})
    kinds = [parameter.kind for parameter in known.values()]
    for name in names:
        if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ParameterError(f"the function has no parameter '{name}'; it has {', '.join(known) or 'none'}")
    named = {n: p for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in names:
            raise ParameterError(f"the function needs '{name}', for which the space has no values")
    defaults = {n: p.default for n, p in named.items() if p.default is not p.empty}
    unchanged = _checked(function()) if len(defaults) == len(named) else None
    return Maker(function, unchanged, {n: defaults[n] for n in names if n in defaults}, {})


def _checked(stage: Any) -> Retriever:
    if not isinstance(stage, Stage):
        raise ParameterError(f"the function that makes the stage returned a {type(stage).__name__}, not a stage")
    stage.require(Topics, Run, "tune")
    return stage


def _field(name: str) -> str:
    """Parameter of a name in the space: `k1` for `bm25__k1`."""
    return name.rpartition("__")[2]


def _label(part: Part) -> str:
    return part.name or type(part).__name__


def _parameter(name: str) -> str:
    """Parameter of a name in the space that may be of a value in a mapping: `fields` for `bm25__fields.title`."""
    return _field(name).partition(".")[0]


def _has(part: Part, name: str) -> bool:
    owner, _, _ = name.rpartition("__")
    return _parameter(name) in part.params() and owner in ("", _label(part))


def _owner(stage: Retriever, name: str) -> Part:
    owners = [part for part in walk(stage) if _has(part, name)]
    kinds = list(dict.fromkeys(map(_label, owners)))
    if not owners:
        known = {f"{_label(part)}__{field}" for part in walk(stage) for field in part.params()}
        raise ParameterError(f"no stage has the parameter '{name}'; there are {', '.join(sorted(known)) or 'none'}")
    if len(kinds) > 1:
        choices = " or ".join(f"'{kind}__{name}'" for kind in kinds)
        raise ParameterError(f"'{name}' is a parameter of {' and '.join(kinds)}; write {choices}")
    return owners[0]


def _at(stage: Retriever, path: str) -> Part | None:
    """Part for a path of a text: `bm25_2__k1` is the second part called bm25."""
    label, _, field = path.rpartition("__")
    numbered = re.fullmatch(r"(.+)_(\d+)", label)
    named = [part for part in walk(stage) if part.name == label and field.partition(".")[0] in part.params()]
    if not named and numbered:
        named = [part for part in walk(stage) if part.name == numbered[1]][int(numbered[2]) - 1 :]
    return named[0] if named else None


def _present(part: Part, field: str) -> Any:
    name, dot, entry = field.partition(".")
    if dot:
        return part.entries(name).get(entry)
    value = getattr(part, field)
    # Lexical stages fill in the defaults of their variant in `weighting`.
    return getattr(getattr(part, "weighting", None), field, None) if value is None else value


def _ranges(owners: Mapping[str, Part]) -> Setting:
    known = {name: parameters(type(owner))[_parameter(name)] for name, owner in owners.items()}
    return {name: parameter.range for name, parameter in known.items() if parameter.range is not None}
