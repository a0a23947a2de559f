"""The space that is searched: which values each parameter may take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..core import ParameterError
from .tunable import Maker, Setting, Space


@dataclass(frozen=True)
class Values:
    """Values to choose from, in their order.

    Args:
        values: The values.
    """

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
    """All numbers between two, or all whole ones.

    Args:
        low: The least number.
        high: The greatest number.
        whole: Whether only whole numbers count.
        step: The step of a grid, where one is known.
    """

    low: float
    high: float
    whole: bool
    step: float | None = None

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
    """The values of each parameter.

    Args:
        space: By name a list of values, (low, high, step) or (low, high).
        maker: Knows the parameters' present values and ranges.

    Raises:
        ParameterError: The space is empty or cannot be read.
    """
    if not isinstance(space, Mapping) or not space:
        raise ParameterError(f"the space must map names of parameters to values, as {{'k1': (0.1, 4.5, 0.2)}}, not {space!r}")
    return {name: _axis(name, values, maker) for name, values in space.items()}


def grid_of(axes: Mapping[str, Axis]) -> Iterator[Setting]:
    """Every combination of the values; the last parameter changes fastest.

    Raises:
        ParameterError: A range has no step.
    """
    values = [_on_grid(name, axis) for name, axis in axes.items()]
    return (dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values))


def _on_grid(name: str, axis: Axis) -> tuple[Any, ...]:
    """The values of an axis that a grid tries."""
    if isinstance(axis, Values):
        return axis.values
    if axis.step is None:
        raise ParameterError(
            f"a grid needs a step: give {name}=({axis.low:g}, {axis.high:g}, step) or a list, or method='random' or 'tpe'"
        )
    return _stepped(axis.low, axis.high, axis.step, axis.whole)


def _axis(name: str, values: object, maker: Maker) -> Axis:
    """The values of one parameter, as they are written in a space."""
    if isinstance(values, tuple):
        return _numbers(name, values, maker)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError(f"{name}: give a list of values, (low, high) or (low, high, step), not {values!r}")
    listed = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if not listed:
        raise ParameterError(f"{name}: there is no value to try")
    return Values(listed)


def _numbers(name: str, bounds: tuple[Any, ...], maker: Maker) -> Axis:
    """The numbers from low to high, with a step or without."""
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
        return Values(_stepped(low, high, step, whole))
    known = maker.ranges.get(name)
    own = float(known[2]) if isinstance(known, tuple) and len(known) == 3 else None
    return Range(int(low), int(high), True, own) if whole else Range(low, high, False, own)


def _stepped(low: float, high: float, step: float, whole: bool) -> tuple[float, ...]:
    """The numbers from low to high by a step."""
    count = math.floor((high - low) / step + 1e-9) + 1
    values = (round(low + i * step, 10) for i in range(count))
    return tuple(int(v) if whole else v for v in values)
