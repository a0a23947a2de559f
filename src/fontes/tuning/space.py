"""Search space of a tuning, and the stage of each setting."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core import ParameterError, Run, Stage, Topics
from ..core.expression import tunable as parse_tunable
from ..core.hints import nearest
from ..core.parameters import parameters
from ..core.part import Part, walk

if TYPE_CHECKING:
    from optuna import Trial


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

    def draw(self, rng: np.random.Generator) -> object:
        """Draw a value uniformly."""
        return self.values[int(rng.integers(len(self.values)))]

    def suggest(self, trial: Trial, name: str) -> object:
        """Return Optuna's suggestion; numbers by index, so that Optuna knows their order."""
        last = len(self.values) - 1
        choice = trial.suggest_int(name, 0, last) if self.ordered else trial.suggest_categorical(name, list(range(last + 1)))
        return self.values[choice]


@dataclass(frozen=True)
class Range:
    """A range of numbers, or with `whole` of integers; `step` is the step of a grid, if known."""

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

    def suggest(self, trial: Trial, name: str) -> float:
        """Return Optuna's suggestion."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high))
        return trial.suggest_float(name, self.low, self.high)


Axis: TypeAlias = Choices | Range


def axes_of(space: Space, maker: Maker) -> dict[str, Axis]:
    """Return the axis of each parameter of a space; `maker` has the present values and declared ranges.

    Raises:
        ParameterError: The space is empty or invalid.
    """
    if not isinstance(space, Mapping) or not space:
        raise ParameterError(f"the space must map names of parameters to values, as {{'k1': (0.1, 4.5, 0.2)}}, not {space!r}")
    return {name: _parse_axis(name, values, maker) for name, values in space.items()}


def grid_of(axes: Mapping[str, Axis]) -> Iterator[Setting]:
    """Yield every combination of the values; the last parameter changes fastest.

    Raises:
        ParameterError: A range has no step.
    """
    values = [_grid_values(name, axis) for name, axis in axes.items()]
    return (dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values))


def _grid_values(name: str, axis: Axis) -> tuple[Any, ...]:
    if isinstance(axis, Choices):
        return axis.values
    if axis.step is None:
        raise ParameterError(
            f"a grid needs a step: give {name}=({axis.low:g}, {axis.high:g}, step) or a list, or method='random' or 'tpe'"
        )
    return _range_values(axis.low, axis.high, axis.step, axis.whole)


def _parse_axis(name: str, values: object, maker: Maker) -> Axis:
    if isinstance(values, tuple):
        return _parse_range(name, values, maker)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError(f"{name}: give a list of values, (low, high) or (low, high, step), not {values!r}")
    listed = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if not listed:
        raise ParameterError(f"{name}: there is no value to try")
    return Choices(listed)


def _parse_range(name: str, bounds: tuple[Any, ...], maker: Maker) -> Axis:
    if len(bounds) not in (2, 3) or any(isinstance(n, bool) or not isinstance(n, (int, float, np.number)) for n in bounds):
        raise ParameterError(
            f"{name}: a tuple is a range, (low, high) or (low, high, step), not {bounds!r}; for a choice of values give a list"
        )
    low, high, step = (float(n) for n in (*bounds, 1)[:3])
    if not all(map(math.isfinite, (low, high, step))) or low > high or step <= 0:
        raise ParameterError(f"{name}: low must not be above high, and step must be above 0, not {bounds!r}")
    # For a parameter that is not an integer, (0, 1) means all numbers between.
    is_integer = all(isinstance(n, (int, np.integer)) for n in bounds) and isinstance(maker.default.get(name, 0), int)
    if len(bounds) == 3:
        return Choices(_range_values(low, high, step, is_integer))
    declared = maker.ranges.get(name)
    default = float(declared[2]) if isinstance(declared, tuple) and len(declared) == 3 else None
    return Range(int(low), int(high), True, default) if is_integer else Range(low, high, False, default)


def _range_values(low: float, high: float, step: float, is_integer: bool) -> tuple[float, ...]:
    count = math.floor((high - low) / step + 1e-9) + 1
    values = (round(low + i * step, 10) for i in range(count))
    return tuple(int(v) if is_integer else v for v in values)


Space: TypeAlias = Mapping[str, object]
Setting: TypeAlias = dict[str, Any]
Retriever: TypeAlias = Stage[Topics, Run]
Tunable: TypeAlias = Retriever | Callable[..., Retriever] | str


@dataclass(frozen=True)
class Maker:
    """Creates the stage of a setting.

    Args:
        make: Function from parameter values, by name, to the stage.
        unchanged: The stage with its present values; None for a function with a parameter that has no default.
        default: Present values of the parameters, where known.
        ranges: Ranges that the classes of the parameters declare.
    """

    make: Callable[..., object]
    unchanged: Retriever | None
    default: Setting
    ranges: Setting

    def __call__(self, setting: Setting) -> Retriever:
        """Return the stage with these parameters.

        Raises:
            ParameterError: The function did not return a stage.
            PipelineError: The stage does not go from topics to a run.
        """
        return _checked_retriever(self.make(**setting))


def maker_of(tunable: Tunable, space: Space | None, index: object) -> tuple[Maker, Space]:
    """Return the maker of stages and the space to search.

    `space` is added to the space of a text; None is the default space of a stage. `index` is the index of a text, or a mapping
    from names to indexes.

    Raises:
        ParameterError: A parameter of the space is not in `tunable`, or there is no default space.
        PipelineError: The stage does not go from topics to a run.
    """
    if isinstance(tunable, str):
        return _text_maker(tunable, space, index)
    if index is not None:
        raise ParameterError("an index is only for a text; a stage has its own")
    if not isinstance(tunable, Stage) and not callable(tunable):
        raise ParameterError(f"tune takes a stage, a function that makes one, or a text, not a {type(tunable).__name__}")
    chosen = default_space(tunable) if space is None else space
    names = list(chosen) if isinstance(chosen, Mapping) else []
    return _stage_maker(tunable, names) if isinstance(tunable, Stage) else _function_maker(tunable, names), chosen


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
        named = repr(tunable) if isinstance(tunable, Stage) else "a function"
        raise ParameterError(f"there is no default space for {named}; give one, as {{'k1': (0.1, 4.5, 0.2), 'b': [0.4, 0.75]}}")
    return space


def _stage_maker(stage: Retriever, names: list[str]) -> Maker:
    """Return the maker of copies of a stage; it sets a parameter in every part that has it."""
    owners = {name: _owner(stage, name) for name in names}

    def make(**setting: object) -> Part:
        def changed(part: Part) -> Part:
            changes = {_field(name): value for name, value in setting.items() if _has_parameter(part, name)}
            return part.with_(**changes) if changes else part

        return stage.map(changed)

    default = {name: _present_value(owner, _field(name)) for name, owner in owners.items()}
    return Maker(make, _checked_retriever(stage), default, _ranges(owners))


def _text_maker(text: str, space: Space | None, index: object) -> tuple[Maker, Space]:
    single, indexes = (None, index) if isinstance(index, Mapping) else (index, None)
    make, declared = parse_tunable(text, single, indexes=indexes)
    values = {**declared, **(space or {})}
    for name in values:
        if name not in declared:
            raise ParameterError(f"'{name}' is not tuned in the text; {nearest(name, declared)}")
    unchanged = _checked_retriever(make())
    owners = {path: part for path in values if (part := _part_at(unchanged, path)) is not None}
    default = {path: _present_value(owner, _field(path)) for path, owner in owners.items()}
    return Maker(make, unchanged, default, _ranges(owners)), values


def _function_maker(function: Callable[..., object], names: list[str]) -> Maker:
    try:
        signature = inspect.signature(function).parameters
    except ValueError:
        return Maker(function, None, {}, {})
    kinds = [parameter.kind for parameter in signature.values()]
    for name in names:
        if name not in signature and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ParameterError(f"the function has no parameter '{name}'; it has {', '.join(signature) or 'none'}")
    declared = {n: p for n, p in signature.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    for name, parameter in declared.items():
        if parameter.default is parameter.empty and name not in names:
            raise ParameterError(f"the function needs '{name}', for which the space has no values")
    defaults = {n: p.default for n, p in declared.items() if p.default is not p.empty}
    unchanged = _checked_retriever(function()) if len(defaults) == len(declared) else None
    return Maker(function, unchanged, {n: defaults[n] for n in names if n in defaults}, {})


def _checked_retriever(stage: object) -> Retriever:
    if not isinstance(stage, Stage):
        raise ParameterError(f"the function that makes the stage returned a {type(stage).__name__}, not a stage")
    stage.require(Topics, Run, "tune")
    return stage


def _field(name: str) -> str:
    """Return the parameter of a name in the space: `k1` for `bm25__k1`."""
    return name.rpartition("__")[2]


def _label(part: Part) -> str:
    return part.name or type(part).__name__


def _parameter(name: str) -> str:
    """Return the parameter of a name in the space that may name an entry of a mapping: `fields` for `bm25__fields.title`."""
    return _field(name).partition(".")[0]


def _has_parameter(part: Part, name: str) -> bool:
    owner, _, _ = name.rpartition("__")
    return _parameter(name) in part.params() and owner in ("", _label(part))


def _owner(stage: Retriever, name: str) -> Part:
    owners = [part for part in walk(stage) if _has_parameter(part, name)]
    kinds = list(dict.fromkeys(map(_label, owners)))
    if not owners:
        names = {f"{_label(part)}__{field}" for part in walk(stage) for field in part.params()}
        raise ParameterError(f"no stage has the parameter '{name}'; there are {', '.join(sorted(names)) or 'none'}")
    if len(kinds) > 1:
        choices = " or ".join(f"'{kind}__{name}'" for kind in kinds)
        raise ParameterError(f"'{name}' is a parameter of {' and '.join(kinds)}; write {choices}")
    return owners[0]


def _part_at(stage: Retriever, path: str) -> Part | None:
    """Return the part that a path of a text names, or None: `bm25_2__k1` is the second part named bm25."""
    label, _, field = path.rpartition("__")
    numbered = re.fullmatch(r"(.+)_(\d+)", label)
    parts = [part for part in walk(stage) if part.name == label and field.partition(".")[0] in part.params()]
    if not parts and numbered:
        parts = [part for part in walk(stage) if part.name == numbered[1]][int(numbered[2]) - 1 :]
    return parts[0] if parts else None


def _present_value(part: Part, field: str) -> object:
    name, dot, entry = field.partition(".")
    if dot:
        return part.entries(name).get(entry)
    value = getattr(part, field)
    # Lexical stages fill in the defaults of their variant in `weighting`.
    return getattr(getattr(part, "weighting", None), field, None) if value is None else value


def _ranges(owners: Mapping[str, Part]) -> Setting:
    declared = {name: parameters(type(owner))[_parameter(name)] for name, owner in owners.items()}
    return {name: parameter.range for name, parameter in declared.items() if parameter.range is not None}
