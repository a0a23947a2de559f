"""Significance tests between systems, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ..core import InputError, ParameterError, Run
from ..core.arrays import AnyArray, Float64s, Floats, Int64s
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure
from ..measures.names import parse
from ..measures.prediction_powered import PredictionPowered
from . import statistics

TESTS = {
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed rank test",
    "fisher": "Fisher's randomisation test",
    "tukey": "Tukey's HSD, topics as blocks",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "none": "no correction"}
ALLOW = "allow_empty=True (--allow-empty; in a file allow_empty = true in [report]) allows it"
PERMUTATIONS = 100_000
RESAMPLES = 10_000
PAIR_BLOCK_SIZE = 500  # pairs whose resamples are in memory at the same time: 40 MB


@dataclass(frozen=True)
class Testing:
    """Settings of the significance tests.

    Args:
        test: "t", "wilcoxon", "fisher" (randomisation) or "tukey". The first three are paired and two-sided; Tukey's
            honestly significant differences have topics as blocks.
        correction: "holm", "bonferroni", "bh" (Benjamini-Hochberg) or "none", over the tests of one measure;
            "tukey" corrects by itself.
        alpha: Greatest corrected p that is significant; intervals cover 1 - alpha.
        seed: Seed of randomisation (100,000 permutations) and bootstrap (10,000 resamples).
        allow_empty: Whether to compare runs without any row, and runs with the same rows, whose difference is empty.

    Raises:
        ParameterError: A name is unknown, or a number out of range.
    """

    __test__ = False  # keeps pytest from collecting the class

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    seed: int = 0
    allow_empty: bool = False

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise ParameterError(f"unknown test '{self.test}'; there are {', '.join(TESTS)}")
        if self.correction not in CORRECTIONS:
            raise ParameterError(f"unknown correction '{self.correction}'; there are {', '.join(CORRECTIONS)}")
        if self.test == "tukey" and self.correction not in ("holm", "none"):
            raise ParameterError(f"Tukey's test corrects by itself; leave the correction '{self.correction}' out")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not 0 < self.alpha < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, as in 0.05, not {self.alpha!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ParameterError(f"the seed must be a whole number from 0 up, not {self.seed!r}")

    @property
    def applied_correction(self) -> str:
        """The correction applied after the test; "none" for Tukey's test."""
        return "none" if self.test == "tukey" else self.correction

    def test_all(
        self, values: Sequence[Float64s], pairs: Sequence[tuple[int, int]], differences: Float64s
    ) -> tuple[AnyArray, AnyArray]:
        """Test all pairs of systems by all measures.

        Args:
            values: Values of each measure, (topics, systems).
            pairs: The pairs of systems, by their columns.
            differences: The differences of each pair, (topics, pairs of all measures).

        Returns:
            The statistic and p of each column of `differences`.
        """
        match self.test:
            case "t":
                return statistics.t_test(differences)
            case "wilcoxon":
                return statistics.wilcoxon(differences)
            case "fisher":
                return statistics.fisher(differences, PERMUTATIONS, self.seed)
        results = [statistics.tukey(by_system, pairs) for by_system in values]
        return np.concatenate([q for q, _ in results]), np.concatenate([p for _, p in results])

    def __str__(self) -> str:
        if self.test == "tukey":
            return TESTS[self.test]
        return f"{TESTS[self.test]}, {correction_text(self.correction)}"


def check_rows(runs: Mapping[str, Run], *, allow_equal: bool = False) -> None:
    """Raise InputError for a run without rows and, unless `allow_equal`, for runs with the same rows."""
    if name := next((name for name, run in runs.items() if not run.rows), None):
        raise InputError(f"the run '{name}' has no rows: its system found nothing, or did not run; leave it out, or {ALLOW}")
    if not allow_equal and (equal := equal_runs(runs)):
        first, second = equal[0][:2]
        problem = "have the same rows, so there is no difference to test"
        raise InputError(f"the runs '{first}' and '{second}' {problem}; leave one out, or {ALLOW}")


def equal_runs(runs: Mapping[str, Run]) -> list[list[str]]:
    """Return the groups of names of two or more runs that have the same rows: topics, documents and scores."""
    groups: list[list[str]] = []
    for name, run in runs.items():
        group = next((group for group in groups if _have_same_rows(runs[group[0]], run)), None)
        groups.append([name]) if group is None else group.append(name)
    return [group for group in groups if len(group) > 1]


def _have_same_rows(run: Run, other: Run) -> bool:
    return run.rows == other.rows and all(
        topic_id in other and np.array_equal(ranking.scores, other[topic_id].scores) and ranking.ids == other[topic_id].ids
        for topic_id, ranking in run.items()
        if len(ranking)
    )


def correction_text(correction: str) -> str:
    """Return a correction as printed."""
    return CORRECTIONS[correction] + (" over each measure" if correction != "none" else "")


@dataclass(frozen=True)
class MeanDifference:
    """Mean difference of two systems by one measure, with its interval; the base of tests.

    Args:
        measure: The measure.
        system: The name of the system.
        against: The name of the other system.
        difference: System minus other.
        low: The lower end of the interval.
        high: The upper end.
    """

    measure: Measure
    system: str
    against: str
    difference: float
    low: float
    high: float


D = TypeVar("D", bound=MeanDifference, covariant=True)


def beaten_by(system: str, significant: Iterable[MeanDifference]) -> set[str]:
    """Return the systems that a system is better than, from the significant tests of one measure."""
    beaten = set()
    for test in significant:
        if test.system == system and test.difference > 0:
            beaten.add(test.against)
        elif test.against == system and test.difference < 0:
            beaten.add(test.system)
    return beaten


class Tested(Generic[D]):
    """Base of reports with tests."""

    if TYPE_CHECKING:

        @property
        def comparisons(self) -> tuple[D, ...]: ...

    def comparison(self, system: str, against: str, measure: str | Measure) -> D:
        """Return the test of a system against another.

        Raises:
            KeyError: The pair was not tested in this direction.
        """
        parsed = parse(measure)
        for comparison in self.comparisons:
            if (comparison.measure, comparison.system, comparison.against) == (parsed, system, against):
                return comparison
        raise KeyError((system, against, str(parsed)))


@dataclass(frozen=True)
class Comparison(MeanDifference):
    """Test of a system against another, by one measure.

    Values that are undefined for a single topic are NaN, and never significant.

    Args:
        measure: The measure.
        system: The name of the system.
        against: The name of the other.
        difference: The mean over topics of system minus other; with machine labels the corrected one.
        low: The lower end of the interval of the difference, by bootstrap; with machine labels by the t distribution.
        high: The upper end.
        statistic: The test's: t, W, the mean difference (Fisher) or q (Tukey).
        p: The p-value.
        corrected: The p-value after the correction.
        d_z: Cohen's d_z, the mean difference in standard deviations of the differences.
        hedges_g: Hedges' g, the mean difference in standard deviations of the values.
        wins: The number of topics where `system` is better.
        ties: The number of topics where both are equal.
        losses: The number of topics where `against` is better.
        significant: Whether `corrected` is at most alpha.
    """

    statistic: float
    p: float
    corrected: float
    d_z: float
    hedges_g: float
    wins: int
    ties: int
    losses: int
    significant: bool


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Values of all systems by all measures, with their means in bootstrap samples or with values by machine labels.

    Args:
        measures: The measures.
        names: The names of the systems.
        values: float64, (topics, measures x systems), the systems of a measure side by side.
        resampled: The means of the columns, a row for each sample; empty with machine labels.
        machine: Values by machine labels of these topics and more, with the columns of `values`; None without them.
        rows: For each row of `values`, the row of its topic in `machine`.
    """

    measures: tuple[Measure, ...]
    names: list[str]
    values: Float64s
    resampled: Floats
    machine: Float64s | None = None
    rows: Int64s | None = None

    @classmethod
    def of(cls, systems: Mapping[str, Evaluation], measures: Sequence[Measure], seed: int) -> PairedValues:
        """Return the values of each measure, with samples drawn by `seed` or with machine labels."""
        evaluations = list(systems.values())
        columns = _columns(evaluations, measures)
        by_machine = [evaluation.machine for evaluation in evaluations if evaluation.machine is not None]
        if by_machine:
            rows = by_machine[0].rows_of(evaluations[0].topic_ids)
            return cls(tuple(measures), list(systems), columns, columns[:0], _columns(by_machine, measures), rows)
        return cls(tuple(measures), list(systems), columns, statistics.resampled(columns, RESAMPLES, seed))

    def intervals(self, alpha: float) -> dict[Measure, dict[str, tuple[float, float]]]:
        """Return the 1 - alpha interval of the mean, by measure and system."""
        if self.machine is None or self.rows is None:
            low, high = statistics.interval(self.values, self.resampled, 1 - alpha)
        else:
            low, high = PredictionPowered.of(self.values, self.machine, self.rows).interval(alpha)
        ends = iter(zip(low.tolist(), high.tolist(), strict=True))
        return {measure: {name: next(ends) for name in self.names} for measure in self.measures}

    def comparisons(self, pairs: list[tuple[int, int]], testing: Testing) -> tuple[Comparison, ...]:
        """Return the tests of these pairs of systems (positions in `names`) for each measure."""
        if not pairs:
            return ()
        first, second = self._sides(pairs)
        differences = np.round(self.values[:, first] - self.values[:, second], statistics.DIGITS)
        mean = differences.mean(axis=0)
        if (powered := self.differences(pairs)) is None:
            statistic, p = testing.test_all(np.split(self.values, len(self.measures), axis=1), pairs, differences)
            low, high = self._intervals_of_differences(differences, first, second, testing.alpha)
        else:
            mean, (statistic, p), (low, high) = powered.mean, powered.test(), powered.interval(testing.alpha)
        families = np.split(p, len(self.measures))
        corrected = np.concatenate([statistics.corrected(family, testing.applied_correction) for family in families])
        columns = {
            "difference": mean,
            "low": low,
            "high": high,
            "statistic": statistic,
            "p": p,
            "corrected": corrected,
            "d_z": statistics.d_z(differences),
            "hedges_g": statistics.hedges_g(self.values[:, first], self.values[:, second]),
            "wins": (differences > 0).sum(axis=0),
            "ties": (differences == 0).sum(axis=0),
            "losses": (differences < 0).sum(axis=0),
            "significant": corrected <= testing.alpha,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        sides = ((measure, self.names[i], self.names[j]) for measure in self.measures for i, j in pairs)
        return tuple(Comparison(*side, **dict(zip(columns, row, strict=True))) for side, row in zip(sides, rows, strict=True))

    def differences(self, pairs: list[tuple[int, int]]) -> PredictionPowered | None:
        """Return the mean differences of these pairs for each measure, one after the other; None without machine labels."""
        if self.machine is None or self.rows is None:
            return None
        first, second = self._sides(pairs)
        human, machine = (
            np.round(values[:, first] - values[:, second], statistics.DIGITS) for values in (self.values, self.machine)
        )
        return PredictionPowered.of(human, machine, self.rows)

    def _sides(self, pairs: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
        """Return the columns of the first and of the second system of each pair, measure by measure."""
        starts = np.arange(len(self.measures))[:, None] * len(self.names)
        first, second = np.array(pairs).T
        return (starts + first).ravel(), (starts + second).ravel()

    def _intervals_of_differences(
        self, differences: Floats, first: Int64s, second: Int64s, alpha: float
    ) -> tuple[Floats, Floats]:
        """Return the ends of the intervals, computed in blocks of columns to bound memory."""
        intervals = []
        for start in range(0, len(first), PAIR_BLOCK_SIZE):
            block = slice(start, start + PAIR_BLOCK_SIZE)
            means = self.resampled[:, first[block]] - self.resampled[:, second[block]]
            intervals.append(statistics.interval(differences[:, block], means, 1 - alpha))
        low, high = (np.concatenate(ends) for ends in zip(*intervals, strict=True))
        return low, high


def _columns(evaluations: Sequence[Evaluation], measures: Sequence[Measure]) -> Float64s:
    return np.stack([evaluation.array(measure) for measure in measures for evaluation in evaluations], axis=1)
