"""The number of topics that a gate needs, and the sum of the differences of accepted changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..comparison.statistics import deviation
from ..core import InputError
from ..core.arrays import Floats
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure, probability
from ..measures.prediction_powered import MIN_TOPICS, PredictionPowered
from .decision import FEW_CHANGED, Margins, check_margins, cluster_numbers, paired_differences, unit_values

CORRELATION = 0.8  # of the values of a baseline and a candidate, where there is no candidate
CORRELATIONS = (0.6, 0.95)  # its range: `bench/gate.py` prints those of real changes
CONFIDENCE = 0.8  # of the upper limit of the spread that a plan assumes
MIN_PILOT = 5  # changed units of a pilot; with fewer, another may change by 1
MAX_UNITS = 1 << 30


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the differences of units: topics, or clusters of topics.

    Args:
        value: The one that a plan assumes.
        low: The least plausible one.
        high: The greatest plausible one.
        changed: Share of units that change.
        largest: The greatest change of a unit.
        source: Where it is from: "the differences of 40 topics".
    """

    value: float
    low: float
    high: float
    changed: float
    largest: float
    source: str

    @classmethod
    def of(cls, differences: Floats, changed: int, source: str) -> Spread:
        """Return the spread of the differences of a pilot, (units,), with one more unit that changes as much as the largest.

        If fewer than 5 units changed, it changes by 1.

        `value` is its upper limit at a confidence of 80 %, and `low` and `high` are the limits of 95 %, by the asymptotic
        variance of the logarithm of a variance, which grows with the fourth power of the differences.
        """
        from scipy.special import ndtri

        n = len(differences)
        largest = float(np.abs(differences).max()) if changed >= MIN_PILOT else 1.0
        squares = np.append(differences - differences.mean(), largest) ** 2
        variance = float(squares.sum()) / n
        error = math.sqrt(float(squares.var()) / n) / float(squares.mean()) / 2  # of the logarithm of the deviation
        value, low, high = (math.sqrt(variance) * math.exp(ndtri(p) * error) for p in (CONFIDENCE, 0.025, 0.975))
        return cls(value, low, high, max(changed, 1) / n, largest, source)

    def power(self, margin: float, units: float, alpha: float = 0.05, spread: float | None = None) -> float:
        """Return the share of cases in which so many units tell a loss of the margin, or pass without a loss, by `p_above`."""
        from scipy.special import ndtr, stdtrit

        if units < 2:
            return 0.0
        spread = self.value if spread is None else spread
        worst = max(self.largest, min(1.0, FEW_CHANGED / (self.changed * units)))
        error = math.sqrt(((units - 1) * spread**2 + worst**2) / units / (units + 1))
        gap = margin - worst / (units + 1) - stdtrit(units, 1 - alpha) * error
        return float(ndtr(gap * (units + 1) / (spread * math.sqrt(units))))

    def units_for(self, margin: float, alpha: float, power: float, measures: int = 1, spread: float | None = None) -> int:
        """Return the least number of units that tell a loss of the margin by one of several measures, and pass all without one.

        Each has a probability of `power`: a loss by the first step of Holm's method, passing by Bonferroni's inequality.
        """

        def suffice(units: int) -> bool:
            loss, equality = (self.power(margin, units, level, spread) for level in (alpha / measures, alpha))
            return loss >= power and equality >= 1 - (1 - power) / measures

        low, high = 1, 2
        while not suffice(high) and high < MAX_UNITS:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffice(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class MeasurePlan:
    """Topics that a gate needs by one measure.

    Args:
        measure: The measure.
        margin: The margin.
        spread: The spread of differences.
        topics: Topics needed, to tell a loss of the margin and to pass without a loss in `power` of all cases each.
        low: Topics needed with the least plausible spread.
        high: Topics needed with the greatest.
        now: Topics that there are.
        power_now: Share of cases in which they tell a loss of the margin.
        power: Share of cases asked for.
        judged: Topics that people must judge if a machine labels those that it has labelled now; None without a machine, or if
            all of them do not suffice.
    """

    measure: Measure
    margin: float
    spread: Spread
    topics: int
    low: int
    high: int
    now: int
    power_now: float
    power: float
    judged: int | None = None

    def __str__(self) -> str:
        now = f"{self.now:,} topics tell a loss of {self.margin:g} in {100 * self.power_now:.0f} of 100 cases"
        return f"{now}; {self.topics:,} would tell it in {100 * self.power:.0f}" if self.topics > self.now else now


@dataclass(frozen=True)
class Plan:
    """Topics that a gate needs.

    Args:
        measures: The plan by each measure.
        alpha: Greatest significant p.
        power: Share of cases.
    """

    measures: tuple[MeasurePlan, ...]
    alpha: float
    power: float

    @property
    def topics(self) -> int:
        """Topics needed for all measures."""
        return max(plan.topics for plan in self.measures)


def plan_differences(
    baseline: Evaluation,
    candidate: Evaluation,
    margins: Margins,
    *,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Plan from the differences of a candidate: the one just tested, a pilot, or an earlier change.

    Args:
        baseline: Its evaluation.
        candidate: Its evaluation, of the same topics. If both have machine labels, the plan has also the number of topics that
            people must judge beside them, by the error of `PredictionPowered`.
        margins: The margin of each measure.
        clusters: The cluster of each topic, as in `decide`.
        alpha: Greatest significant p.
        power: Share of cases in which a loss of the margin is told.

    Raises:
        InputError: As in `decide`.
        ParameterError: As in `decide`, or the power is out of range.
    """
    parsed = check_margins(margins)
    differences = paired_differences(baseline, candidate, parsed)
    units, changed = unit_values(differences, cluster_numbers(baseline.topic_ids, clusters))
    source = f"the differences of {len(differences):,} topics"
    spreads = [Spread.of(column, count, source) for column, count in zip(units.T, changed.tolist(), strict=True)]
    plan = _plan(parsed, spreads, len(differences), len(units), alpha, power)
    if baseline.machine is None or candidate.machine is None:
        return plan
    by_machine = paired_differences(baseline.machine, candidate.machine, parsed)
    estimates = PredictionPowered.of(differences, by_machine, baseline.machine.rows_of(baseline.topic_ids))
    variance = deviation(differences) ** 2
    rows = []
    for row, squared, error, sampled in zip(plan.measures, variance, estimates.error, estimates.sampled, strict=True):
        reducible = squared / row.topics - sampled  # of the squared error that `topics` have without a machine
        judged = (error**2 - sampled) * estimates.human / reducible if reducible > 0 else math.inf
        suffice = judged <= estimates.machine
        rows.append(replace(row, judged=max(MIN_TOPICS, math.ceil(judged)) if suffice else None))
    return replace(plan, measures=tuple(rows))


def plan_baseline(
    baseline: Evaluation,
    margins: Margins,
    *,
    correlation: float = CORRELATION,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Plan from the values of a baseline alone, and an assumed correlation with those of a candidate.

    If both vary equally, the variance of the differences is 2 (1 - correlation) times that of the values. `low` and `high` are
    the topics needed at correlations of .95 and .6.

    Args:
        baseline: Its evaluation.
        margins: The margin of each measure.
        correlation: The correlation.
        clusters: The cluster of each topic, as in `decide`.
        alpha: Greatest significant p.
        power: Share of cases in which a loss of the margin is told.

    Raises:
        InputError: As in `decide`.
        ParameterError: As in `decide`, or a number is out of range.
    """
    probability("correlation", correlation)
    parsed = check_margins(margins)
    values = paired_differences(None, baseline, parsed)
    units, _ = unit_values(values, cluster_numbers(baseline.topic_ids, clusters))
    assumed = (correlation, max(correlation, CORRELATIONS[1]), min(correlation, CORRELATIONS[0]))
    source = f"the baseline and a correlation of {correlation:g}"
    spreads = []
    for sd in np.maximum(deviation(units), 1 / len(units)).tolist():
        value, low, high = (sd * math.sqrt(2 * (1 - rho)) for rho in assumed)
        spreads.append(Spread(value, low, high, 1.0, 1.0, source))
    return _plan(parsed, spreads, len(values), len(units), alpha, power)


def _plan(
    margins: Mapping[Measure, float], spreads: Sequence[Spread], topics: int, units: int, alpha: float, power: float
) -> Plan:
    probability("alpha", alpha)
    probability("power", power)
    rows = []
    for (measure, margin), spread in zip(margins.items(), spreads, strict=True):
        needed, low, high = (
            math.ceil(spread.units_for(margin, alpha, power, len(margins), sd) * topics / units)
            for sd in (spread.value, spread.low, spread.high)
        )
        now = spread.power(margin, units, alpha / len(margins))
        rows.append(MeasurePlan(measure, margin, spread, needed, low, high, topics, now, power))
    return Plan(tuple(rows), alpha, power)


@dataclass(frozen=True)
class Drift:
    """Sum of the mean differences of accepted changes.

    Args:
        difference: The sum.
        low: Lower end of its 1 - 2 alpha interval.
        high: Upper end.
        changes: Number of changes.
    """

    difference: float
    low: float
    high: float
    changes: int


def drift(changes: Sequence[Mapping[str, float]], alpha: float = 0.05, clusters: Mapping[str, Hashable] | None = None) -> Drift:
    """Return the sum of the mean differences of accepted changes by one measure, each from its differences by topic.

    The changes may have the same topics or others: the variance is that of each topic's part of the sum, or of each cluster's,
    as in `decide`. Changes that were accepted because they did well on these topics do less well on others, which the interval
    does not know.

    Args:
        changes: Differences by topic, of each change.
        alpha: Share of intervals that miss on one side.
        clusters: The cluster of each topic, as in `decide`; topics without one count alone.

    Raises:
        InputError: There is no change, or one has fewer than two topics or clusters, or a value that is not a number.
        ParameterError: alpha is out of range.
    """
    from scipy.special import stdtrit

    probability("alpha", alpha)
    if not changes:
        raise InputError("there is no accepted change to sum")
    total, fewest, parts = 0.0, math.inf, dict[Hashable, float]()
    for number, change in enumerate(changes, 1):
        values = np.array(list(change.values()), dtype=np.float64)
        units = [(clusters or {}).get(topic, topic) for topic in change]
        n = len(set(units))
        if n < 2 or not np.isfinite(values).all():
            noun = "topics" if clusters is None else "clusters of topics"
            raise InputError(f"accepted change {number} needs the differences of two {noun} or more, all of them numbers")
        total, fewest = total + float(values.mean()), min(fewest, n)
        for unit, part in zip(units, ((values - values.mean()) / len(values) * math.sqrt(n / (n - 1))).tolist(), strict=True):
            parts[unit] = parts.get(unit, 0.0) + part
    half = float(stdtrit(fewest - 1, 1 - alpha)) * math.hypot(*parts.values())
    return Drift(total, total - half, total + half, len(changes))
