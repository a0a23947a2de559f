"""Runs of others beside those of a recipe: in the comparison where they have its topics, else measured on their own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison.statistics import bootstrap
from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..experiments.systems import named
from ..measures import Evaluation, Measure, evaluate
from ..measures.formulas import JudgedShare


@dataclass(frozen=True)
class Interval:
    """A mean over topics, with the interval of 95% that a bootstrap over the topics gives.

    Args:
        mean: The mean.
        low: The lower end.
        high: The upper end.
        topics: How many topics there are.
    """

    mean: float
    low: float
    high: float
    topics: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Interval:
        """That of the values of some topics."""
        column = np.fromiter(values, np.float64).reshape(-1, 1)
        low, high = bootstrap(column)
        return cls(float(column.mean()), float(low[0]), float(high[0]), len(column))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "topics": self.topics}

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True)
class Others:
    """Runs of others, which were made by no system of the recipe.

    Args:
        compared: Those that have each topic that the recipe measures: systems of its comparison.
        apart: For each of the rest its means, by measure, over the judged topics that it has.
    """

    compared: Mapping[str, Run] = field(default_factory=dict)
    apart: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)

    def beside(self, systems: Mapping[str, Stage[Topics, Run]]) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """The systems of a recipe, and after them the runs that are compared with them."""
        return {**systems, **{f"others/{name}": run for name, run in self.compared.items()}}

    @classmethod
    def of(cls, runs: object, measured: Topics, known: Qrels | None, measures: Iterable[Measure]) -> Others:
        """Those of runs that are named or given.

        Args:
            runs: What `fontes.compare` takes as systems, of runs and their paths alone.
            measured: The topics that the recipe measures.
            known: All judgments that there are, on whichever side.
            measures: What is measured.

        Raises:
            InputError: A file is no run, or a run has no topic that is judged.
            ParameterError: There are no judgments.
        """
        if not runs:
            return cls()
        if known is None:
            raise ParameterError("runs of others are measured: give judgments too")
        compared, apart = {}, {}
        for name, source in named(runs).items():
            run = Run.of(Path(source) if isinstance(source, (str, os.PathLike)) else source)
            if set(measured) <= set(run):
                compared[name] = run
            else:
                apart[name] = intervals(_measured(name, run, known, tuple(measures)))
        return cls(compared, apart)


def intervals(evaluation: Evaluation) -> dict[str, Interval]:
    """The means of an evaluation by measure, with intervals; not of how much is judged."""
    measures = [measure for measure in evaluation if not isinstance(measure, JudgedShare)]
    return {str(measure): Interval.of(evaluation.per_topic(measure).values()) for measure in measures}


def _measured(name: str, run: Run, known: Qrels, measures: tuple[Measure, ...]) -> Evaluation:
    """The values of a run over the judged topics that it has."""
    judged = Qrels(row for row in known.rows() if row[0] in run)
    if not judged:
        first, other = next(iter(run), ""), next(iter(known), "")
        raise InputError(f"run {name}: none of its topics is judged: its first is '{first}', the first judged '{other}'")
    return evaluate(run, judged, measures)
