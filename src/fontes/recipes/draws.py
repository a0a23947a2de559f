"""`run_draws`: a recipe that divides the topics itself, run on several draws of its division."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core import ParameterError
from ..core.arrays import Float64s
from ..core.checks import check_whole
from ..core.work import ProgressCallback, work
from ..measures import Measure
from ..plots.tables import ResultTable, TableReport
from .base import LearningRecipe, Recipe
from .result import RecipeResult

LEVEL = 0.95


@dataclass(frozen=True)
class DrawMean:
    """Mean of a figure over draws, with an interval for the mean over all draws.

    Args:
        mean: Mean over the draws.
        deviation: Standard deviation over the draws.
        low: Lower end of the interval of 95%.
        high: Upper end.
    """

    mean: float
    deviation: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Float64s, ratio: float) -> DrawMean:
        """Return the corrected resampled t-interval of the values of draws (Nadeau and Bengio 2003).

        Draws share topics, so that their values depend on each other: the variance of the mean is taken as (1 / J + ratio) · s²
        for J draws, with J - 1 degrees of freedom.

        Args:
            values: The figure in each draw, float64, (draws,).
            ratio: Number of measured topics over the number of topics to learn from and to choose with.
        """
        from scipy.special import stdtrit

        draws, mean, deviation = len(values), float(values.mean()), float(values.std(ddof=1))
        half = float(stdtrit(draws - 1, (1 + LEVEL) / 2)) * math.sqrt(1 / draws + ratio) * deviation
        return cls(mean, deviation, mean - half, mean + half)


@dataclass(frozen=True, eq=False, repr=False)
class Draws(TableReport):
    """Results of `run_draws`.

    Args:
        folder: Folder with the folders of the draws, draw-1, draw-2, …
        results: The result of each draw.
    """

    TITLE: ClassVar[str] = "Draws"
    LABEL: ClassVar[str] = "tab:draws"
    NOUN: ClassVar[str] = "draws of a recipe"

    folder: Path
    results: tuple[RecipeResult, ...]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of the report."""
        assert self.results[0].report is not None
        return self.results[0].report.measures

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that were measured in every draw."""
        reports = [result.report for result in self.results]
        return tuple(name for name in self.results[0].runs if all(report and name in report.systems for report in reports))

    def values(self, system: str, measure: Measure) -> Float64s:
        """The mean of a system over the measured topics in each draw, float64, (draws,)."""
        return np.array([result.report.mean(system, measure) for result in self.results if result.report is not None])

    def mean(self, system: str, measure: Measure, baseline: str | None = None) -> DrawMean:
        """The mean of a system over the draws; with a baseline, of the differences from it."""
        values = self.values(system, measure)
        return DrawMean.of(values if baseline is None else values - self.values(baseline, measure), self._ratio)

    def to_dict(self) -> dict[str, object]:
        first = self.results[0]
        seeds = [getattr(result.recipe, "seed", 0) for result in self.results]
        return {"recipe": first.recipe.name, "seeds": seeds, "topics": self._topics, "rows": self._rows()}

    @property
    def _ratio(self) -> float:
        """Measured over other topics, the mean of the draws."""
        other = [len(result.learning.train.topics) + len(result.learning.dev.topics) for result in self.results]
        return float(np.mean([measured / count for measured, count in zip(self._topics, other, strict=True)]))

    @property
    def _topics(self) -> list[int]:
        return [len(result.report.topics) for result in self.results if result.report is not None]

    @property
    def _baseline(self) -> str | None:
        recipe = self.results[0].recipe
        baseline = recipe.baseline and recipe.name_here(recipe.baseline)
        return baseline if baseline in self.systems else None

    def _rows(self) -> list[dict[str, object]]:
        return list(self._figures())

    def _figures(self) -> Iterator[dict[str, object]]:
        for system in self.systems:
            for measure in self.measures:
                row: dict[str, object] = {"system": system, "measure": str(measure)}
                row |= vars(self.mean(system, measure))
                row |= {f"draw_{n}": float(value) for n, value in enumerate(self.values(system, measure), 1)}
                if self._baseline not in (None, system):
                    difference = vars(self.mean(system, measure, self._baseline))
                    row |= {f"difference_{name}": value for name, value in difference.items()}
                yield row

    def _columns(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        return list(dict.fromkeys(name for row in rows for name in row))

    def _tables(self) -> list[ResultTable]:
        draws = [f"draw {n}" for n in range(1, len(self.results) + 1)]
        further = ["interval", *draws, *([f"from {self._baseline}", "its interval"] if self._baseline else [])]
        return [
            ResultTable.of(
                ["system", str(measure), *further],
                [self._cells(name, measure) for name in self.systems],
                1,
                caption=f"Means of {measure} over draws",
            )
            for measure in self.measures
        ]

    def _cells(self, system: str, measure: Measure) -> list[str]:
        mean = self.mean(system, measure)
        cells = [system, f"{mean.mean:.4f}", f"{mean.low:.4f} to {mean.high:.4f}"]
        cells += [f"{value:.4f}" for value in self.values(system, measure)]
        if self._baseline not in (None, system):
            difference = self.mean(system, measure, self._baseline)
            return [*cells, f"{difference.mean:+.4f}", f"{difference.low:+.4f} to {difference.high:+.4f}"]
        return cells + [""] * (2 if self._baseline else 0)

    def _notes(self) -> list[str]:
        counts = " or ".join(map(str, sorted(set(self._topics))))
        return [
            f"means over {len(self.results)} draws of {counts} measured topics; intervals of 95% are of the mean of all draws,"
            " with the correction of Nadeau and Bengio (2003) for topics that draws share"
        ]


def run_draws(
    recipe: Recipe,
    collection: object,
    topics: object,
    qrels: object,
    output: str | Path = "results",
    *,
    draws: int = 5,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Draws:
    """Run a recipe that divides the topics itself on several draws of the division, with seeds from the recipe's own up.

    A single draw says nothing of what another fifth of the topics would give. Each draw trains and chooses anew, and is resumed
    after an interruption.

    Args:
        recipe: The recipe.
        collection: As for `Recipe.run`.
        topics: As for `Recipe.run`.
        qrels: Judgments to learn from and to measure with.
        output: Output folder: draw-1, draw-2, … with the results of each draw, draws.md, and draws.json.
        draws: Number of draws, from 2 up.
        progress: Called with the progress of each step.
        **options: Further arguments of `Recipe.run`, except `train` and `dev`.

    Raises:
        ParameterError: The recipe does not divide topics, or there are fewer than two draws.
        FontesError: As for `Recipe.run`.
    """
    check_whole("draws", draws, 2)
    if not isinstance(recipe, LearningRecipe) or options.get("train") or options.get("dev") or qrels is None:
        remedy = "give a recipe that learns, judgments to measure with, and leave train and dev out"
        raise ParameterError(f"draws are of topics that the recipe {recipe.name} divides itself: {remedy}")
    folder = Path(output)
    seeds = range(recipe.seed, recipe.seed + draws)
    with work(progress=progress):
        results = tuple(
            recipe.with_(seed=seed).run(collection, topics, qrels, folder / f"draw-{n}", **options)
            for n, seed in enumerate(seeds, 1)
        )
    report = Draws(folder, results)
    report.save(folder / "draws.md")
    report.save(folder / "draws.json")
    return report
