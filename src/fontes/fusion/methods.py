"""The methods of fusion: what a list gives each of its documents, and how what several lists give becomes one score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import ParameterError
from ..core.pairs import Floats, Ints, Pairs
from ..core.registry import nearest
from .normalizations import NORMALIZATIONS, RankedLists, normalized


def reciprocal_rank(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """1 / (k + rank)."""
    return 1 / (k + ranks)


def inverse_square_rank(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """1 / rank^2."""
    return 1 / ranks**2


def points(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """With c documents in all lists together the first has c points, the next c - 1 and so on."""
    return candidates - ranks + 1


def points_left_over(candidates: Ints, sizes: Ints) -> Floats:
    """The mean of the points of Borda that a list has not given away."""
    left = candidates.astype(np.float64)
    left -= sizes
    return (left + 1) / 2


@dataclass(frozen=True)
class Formula:
    """How a method makes one score of what several lists give.

    Args:
        source: Where it was published.
        of_ranks: What a list gives, from ranks, the number of documents that all lists of the topic have together, and k; None
            for a method that takes the normalised scores.
        label: What an explanation says of `of_ranks`, with {rank} and {k}.
        best: For a method that takes the greatest or the least, that ufunc; None for a sum.
        joining: What an explanation says of how the parts come to one score.
        counted: Whether the sum is multiplied by the number of lists that have the document.
        weighted: Whether the systems may have weights.
        missing: What a list gives the documents of a topic that it lacks, from the number of documents that all lists have
            together and its own; None for 0 in a sum, and for leaving the list out of the greatest or the least.
    """

    source: str
    of_ranks: Callable[[Floats, Ints, float], Floats] | None = None
    label: str = ""
    best: np.ufunc | None = None
    joining: str = "sum of the parts"
    counted: bool = False
    weighted: bool = False
    missing: Callable[[Ints, Ints], Floats] | None = None


_FOX = "Fox and Shaw, 1994"
METHODS: dict[str, Formula] = {
    "rrf": Formula(
        "Cormack, Clarke and Büttcher, 2009",
        reciprocal_rank,
        "1 / ({k:g} + {rank}): rank {rank}",
        weighted=True,
    ),
    "isr": Formula(
        "Mourão, Martins and Magalhães, 2015",
        inverse_square_rank,
        "1 / {rank}^2: rank {rank}",
        counted=True,
        weighted=True,
    ),
    "borda": Formula(
        "Aslam and Montague, 2001",
        points,
        "points of rank {rank}",
        weighted=True,
        missing=points_left_over,
    ),
    "wsum": Formula(_FOX, weighted=True),
    "combsum": Formula(_FOX),
    "combmnz": Formula(_FOX, counted=True),
    "combmax": Formula(_FOX, best=np.fmax, joining="the greatest of the parts"),
    "combmin": Formula(_FOX, best=np.fmin, joining="the least of the parts"),
}
WEIGHTED = tuple(name for name, formula in METHODS.items() if formula.weighted)


@dataclass(frozen=True)
class FusionMethod:
    """A method with its parameters, as `checked` makes it. `fuse` describes them."""

    name: str = "rrf"
    normalize: str | None = "min-max"
    weights: tuple[float, ...] | None = None
    k: float = 60
    missing: float | str | None = None

    @classmethod
    def checked(cls, name: Any, normalize: Any, weights: Any, k: Any, missing: Any, systems: int | None = None) -> FusionMethod:
        """The method for a number of systems.

        Raises:
            ParameterError: There is no such method or normalisation, or a parameter is out of its range.
        """
        if name not in METHODS:
            raise ParameterError(f"there is no fusion method {name!r}; {nearest(str(name), METHODS)}")
        if normalize is not None and normalize not in NORMALIZATIONS:
            raise ParameterError(f"there is no normalisation {normalize!r}; there are {', '.join(NORMALIZATIONS)} and None")
        if not _finite(k) or k < 0:
            raise ParameterError(f"k, the constant of rrf, must be a number from 0 up, not {k!r}")
        if missing is not None and missing != "min" and not _finite(missing):
            raise ParameterError(f"missing, what a list gives documents it lacks, is None, 'min' or a number, not {missing!r}")
        return cls(name, normalize, _weights(name, weights, systems), k, missing)

    @property
    def formula(self) -> Formula:
        """The formula of the method."""
        return METHODS[self.name]

    def columns(self, pairs: Pairs) -> NDArray[np.float64]:
        """What each run gives each pair, without its weight.

        Returns:
            float64, one row a run, one column a pair; with what a document that the run lacks gets, NaN where the run is left
            out.

        Raises:
            InputError: A score is infinite, or does not suit the normalisation.
        """
        table = np.empty((len(pairs.runs), len(pairs)), dtype=np.float64)
        for i, row in enumerate(table):
            values = self._contributions(pairs, i)
            row[:] = self._fill(pairs, i, values)
            row[pairs.places[i]] = values
        return table

    def scores(self, pairs: Pairs, columns: NDArray[np.float64]) -> Floats:
        """For each pair the score, float64: the columns, in the order of the systems, as one."""
        if self.formula.best is not None:
            joined: Floats = self.formula.best.reduce(columns, axis=0)
            return joined
        return weighted(columns, self.weights or (1.0,) * len(columns), self.times(pairs))

    def times(self, pairs: Pairs) -> Ints | None:
        """For each pair the number of runs that have it, for a method that multiplies by it."""
        if not self.formula.counted:
            return None
        return np.bincount(np.concatenate(pairs.places), minlength=len(pairs))

    def label(self, rank: int, score: float) -> str:
        """How what a list gives its document of this rank and score comes about."""
        if self.formula.of_ranks is not None:
            return self.formula.label.format(k=self.k, rank=rank)
        return f"{self.normalize} of {score:g}" if self.normalize else "score"

    def _contributions(self, pairs: Pairs, i: int) -> Floats:
        """What a run gives each of its rows."""
        run = pairs.runs[i]
        lists = RankedLists(run, f"system {i + 1}")
        if self.formula.of_ranks is None:
            return normalized(lists, self.normalize)
        candidates = np.repeat(pairs.sizes[pairs.numbers[i]], np.diff(run.bounds))
        return self.formula.of_ranks(lists.ranks, candidates, self.k)

    def _fill(self, pairs: Pairs, i: int, values: Floats) -> Any:
        """What the run gives the pairs that it lacks: a number, or one a pair."""
        run, numbers = pairs.runs[i], pairs.numbers[i]
        sizes = np.diff(run.bounds)
        if self.missing is None and self.formula.missing is not None:
            own = np.zeros(len(pairs.topics), dtype=np.int64)
            own[numbers] = sizes
            return pairs.of_topics(self.formula.missing(pairs.sizes, own))
        if self.missing is None:
            return 0.0 if self.formula.best is None else math.nan
        if self.missing != "min":
            return float(self.missing)
        least = np.zeros(len(pairs.topics))
        filled = np.flatnonzero(sizes)
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


def _weights(name: str, weights: Any, systems: int | None) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if not METHODS[name].weighted:
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
