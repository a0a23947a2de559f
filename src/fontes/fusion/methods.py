"""The formulas of fusion: what a list gives each of its documents, and how what several lists give becomes one score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import InputError, ParameterError, Run
from ..core.pairs import Floats, Ints, Pairs

NORMALIZATIONS = ("min-max", "max", "sum", "z", "rank")
RANK_METHODS = ("rrf", "isr", "borda")
WEIGHTED = ("rrf", "isr", "borda", "wsum")
SUMMED = (*WEIGHTED, "combsum", "combmnz")
COUNTED = ("combmnz", "isr")  # times the number of lists that hold the document
METHODS = ("rrf", "combsum", "combmnz", "combmax", "combmin", "wsum", "borda", "isr")


@dataclass(frozen=True)
class Method:
    """A method with its parameters, checked: see `fuse`."""

    name: str = "rrf"
    normalize: str | None = "min-max"
    weights: tuple[float, ...] | None = None
    k: float = 60
    missing: float | str | None = None

    @classmethod
    def checked(cls, name: Any, normalize: Any, weights: Any, k: Any, missing: Any, systems: int | None = None) -> Method:
        """The method for a number of systems. Raises ParameterError for what is unknown or out of its range."""
        if name not in METHODS:
            raise ParameterError(f"there is no fusion method {name!r}; there are {', '.join(METHODS)}")
        if normalize is not None and normalize not in NORMALIZATIONS:
            raise ParameterError(f"there is no normalisation {normalize!r}; there are {', '.join(NORMALIZATIONS)} and None")
        if not _finite(k) or k < 0:
            raise ParameterError(f"k, the constant of rrf, must be a number from 0 up, not {k!r}")
        if missing is not None and missing != "min" and not _finite(missing):
            raise ParameterError(f"missing, what a list gives documents it lacks, is None, 'min' or a number, not {missing!r}")
        return cls(name, normalize, _weights(name, weights, systems), k, missing)

    def given(self, pairs: Pairs) -> list[Floats]:
        """For each run what it gives each of its rows, float64, without its weight."""
        return [self._given(pairs, i) for i in range(len(pairs.runs))]

    def columns(self, pairs: Pairs, given: Sequence[Floats]) -> NDArray[np.float64]:
        """What each run gives each pair: float64, one row a run, with what a missing document gets filled in."""
        table = np.empty((len(pairs.runs), len(pairs)), dtype=np.float64)
        for i, (row, values) in enumerate(zip(table, given, strict=True)):
            row[:] = self._fill(pairs, i, values)
            row[pairs.places[i]] = values
        return table

    def scores(self, pairs: Pairs, columns: NDArray[np.float64]) -> Floats:
        """For each pair the score, float64: the columns, in the order of the systems, as one."""
        if self.name in ("combmax", "combmin"):
            joined: Floats = (np.fmax if self.name == "combmax" else np.fmin).reduce(columns, axis=0)
            return joined
        return weighted(columns, self.weights or (1.0,) * len(columns), self.times(pairs))

    def times(self, pairs: Pairs) -> Ints | None:
        """For each pair the number of runs that hold it, for a method that multiplies by it."""
        if self.name not in COUNTED:
            return None
        return np.bincount(np.concatenate(pairs.places), minlength=len(pairs))

    def _given(self, pairs: Pairs, i: int) -> Floats:
        run = pairs.runs[i]
        sizes = np.diff(run.bounds)
        ranks = (np.arange(1, run.rows + 1) - np.repeat(run.bounds[:-1], sizes)).astype(np.float64)
        match self.name:
            case "rrf":
                return 1 / (self.k + ranks)
            case "isr":
                return 1 / ranks**2
            case "borda":
                return np.repeat(pairs.sizes[pairs.numbers[i]], sizes) - ranks + 1
        return normalized(run, self.normalize, ranks, f"system {i + 1}")

    def _fill(self, pairs: Pairs, i: int, values: Floats) -> Any:
        """What the run gives the pairs that it lacks: a number, or one a pair."""
        run, numbers = pairs.runs[i], pairs.numbers[i]
        if self.missing is None and self.name == "borda":
            left = pairs.sizes.astype(np.float64)
            left[numbers] -= np.diff(run.bounds)
            return pairs.of_topics((left + 1) / 2)
        if self.missing is None:
            return math.nan if self.name in ("combmax", "combmin") else 0.0
        if self.missing != "min":
            return float(self.missing)
        least = np.zeros(len(pairs.topics))
        filled = np.flatnonzero(np.diff(run.bounds))
        least[numbers[filled]] = values[run.bounds[1:][filled] - 1]
        return pairs.of_topics(least)


def weighted(columns: Sequence[Floats] | NDArray[np.float64], weights: Sequence[float], times: Ints | None = None) -> Floats:
    """The weighted sum of the columns, float64, in their order, and `times` something."""
    total = np.zeros(len(columns[0]), dtype=np.float64)
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    if times is not None:
        total *= times
    return total


def normalized(run: Run, how: str | None, ranks: Floats, name: str) -> Floats:
    """The scores of a run, float64, brought to one scale for each topic: see `fuse`. `ranks` count from 1.

    Raises InputError for a score that is infinite, and where `max` meets a best score that is not positive.
    """
    scores = run.scores.astype(np.float64)
    sizes = np.diff(run.bounds)
    if not np.isfinite(scores).all():
        raise InputError(f"{_where(run, int(np.argmin(np.isfinite(scores))), name)}: the score is infinite; fuse by rank")
    if how is None:
        return scores
    if how == "rank":
        return 1 - (ranks - 1) / np.repeat(sizes, sizes).astype(np.float64)
    filled = sizes > 0
    first, size = run.bounds[:-1][filled], sizes[filled]
    best, least = scores[first], scores[run.bounds[1:][filled] - 1]  # a run's rows go from best to worst
    if how == "max":
        if len(best) and best.min() <= 0:
            where = _where(run, int(first[np.argmin(best)]), name)
            raise InputError(f"{where}: max divides by the best score, which is {best.min():g} here; normalise by min-max")
        return scores / np.repeat(best, size)
    if how == "min-max":
        return _ratio(scores - np.repeat(least, size), np.repeat(best - least, size), 1.0)
    if how == "sum":
        above = scores - np.repeat(least, size)
        total = np.add.reduceat(above, first) if len(first) else best
        return _ratio(above, np.repeat(total, size), 1 / np.repeat(size, size))
    mean = np.add.reduceat(scores, first) / size if len(first) else best
    apart = scores - np.repeat(mean, size)
    deviation = np.sqrt(np.add.reduceat(apart**2, first) / size) if len(first) else best
    return _ratio(apart, np.repeat(np.where(best > least, deviation, 0.0), size), 0.0)


def _ratio(above: Floats, below: Floats, constant: Any) -> Floats:
    """above / below; `constant` for the rows of a list whose scores are all the same, where below is 0."""
    out = np.broadcast_to(np.asarray(constant, dtype=np.float64), above.shape).copy()
    return np.divide(above, below, out=out, where=below > 0)


def _where(run: Run, row: int, name: str) -> str:
    topic = list(run.topics)[int(np.searchsorted(run.bounds, row, side="right")) - 1]
    return f"{name}, topic '{topic}', document '{run.ids[int(run.codes[row])]}'"


def _weights(name: str, weights: Any, systems: int | None) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if name not in WEIGHTED:
        raise ParameterError(f"{name} takes no weights; {', '.join(WEIGHTED)} do")
    try:
        listed = tuple(weights)
    except TypeError:
        raise ParameterError(f"weights are a list of numbers, one a system, not {weights!r}") from None
    for weight in listed:
        if not _finite(weight) or weight < 0:
            raise ParameterError(f"a weight must be a number from 0 up, not {weight!r}")
    if systems is not None and len(listed) != systems:
        raise ParameterError(f"there are {len(listed)} weights for {systems} systems; give one for each")
    return tuple(map(float, listed))


def _finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
