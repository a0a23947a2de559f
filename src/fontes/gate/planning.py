"""The number of topics that a gate needs, before or after they are judged, and the drift over accepted changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison.statistics import deviation
from ..core import InputError
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure
from ..measures.prediction_powered import PredictionPowered
from .decision import check_margins, check_share, cluster_numbers, paired_differences, unit_values

Floats = NDArray[np.floating[Any]]

CORRELATION = 0.9  # of a baseline and a candidate, topic by topic, where no candidate is known
CORRELATIONS = (0.7, 0.97)  # the range shown beside it
CONFIDENCE = 0.8  # that the spread of differences is below the limit that a plan assumes
MAX_UNITS = 1 << 30


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the differences of units: topics, or clusters of topics.

    Args:
        value: The estimate.
        low: The least that is plausible.
        high: The greatest that is plausible.
        assumed: The one that a plan assumes.
        source: Where it is from, as a phrase: "differences of 40 topics".
    """

    value: float
    low: float
    high: float
    assumed: float
    source: str


@dataclass(frozen=True)
class MeasurePlan:
    """Topics that a gate needs by one measure.

    With these topics a loss of the margin is told, and a change without a loss passes, in `power` of all cases each.

    Args:
        measure: The measure.
        margin: The margin.
        spread: The spread of differences.
        topics: Topics needed.
        low: Topics needed with the least plausible spread.
        high: Topics needed with the greatest.
        now: Topics that there are; None if none is judged.
        power_now: Share of cases in which they tell a loss of the margin.
        power: Share of cases asked for.
        judged: Topics that people must judge where a machine labels `now` topics; None without its labels, or if all do not
            suffice.
    """

    measure: Measure
    margin: float
    spread: Spread
    topics: int
    low: int
    high: int
    now: int | None
    power_now: float | None
    power: float
    judged: int | None = None

    def __str__(self) -> str:
        loss, would = f"a loss of {self.margin:g}", f"{100 * self.power:.0f} of 100 cases"
        if self.now is None or self.power_now is None:
            return f"{self.topics:,} topics would tell {loss} in {would}"
        now = f"{self.now:,} topics tell {loss} in {100 * self.power_now:.0f} of 100 cases"
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
    margins: Mapping[str | Measure, float],
    *,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Plan from the differences of a candidate, such as the one just tested or a pilot.

    Args:
        baseline: Its evaluation.
        candidate: Its evaluation, of the same topics. If both have machine labels, the plan also has the number of topics that
            people must judge beside them.
        margins: The greatest allowed loss of each measure.
        clusters: The cluster of each topic, as in `decide`.
        alpha: Greatest significant p.
        power: Share of cases in which a loss of the margin is told.

    Raises:
        InputError: As in `decide`.
        ParameterError: As in `decide`, or the power is out of range.
    """
    parsed = check_margins(margins)
    differences = paired_differences(baseline, candidate, parsed)
    units = unit_values(differences, cluster_numbers(baseline.topic_ids, clusters))
    source = f"differences of {len(differences)} topics"
    spreads = [_spread(column, source) for column in units.T]
    plan = plan_spreads(
        dict(zip(parsed, spreads, strict=True)),
        parsed,
        now=len(differences),
        topics_per_unit=len(differences) / len(units),
        alpha=alpha,
        power=power,
    )
    if baseline.machine is None or candidate.machine is None:
        return plan
    machine = paired_differences(baseline.machine, candidate.machine, parsed)
    estimates = PredictionPowered.of(differences, machine, baseline.machine.rows_of(baseline.topic_ids))
    level = replace(estimates, mean=np.array(list(parsed.values())))
    judged = level.topics_for(2 * alpha / len(parsed), power).tolist()
    rows = [
        replace(row, judged=None if math.isnan(count) else int(count)) for row, count in zip(plan.measures, judged, strict=True)
    ]
    return replace(plan, measures=tuple(rows))


def plan_baseline(
    baseline: Evaluation,
    margins: Mapping[str | Measure, float],
    *,
    correlation: float = CORRELATION,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Plan from the values of a baseline alone, and an assumed correlation with a candidate's, topic by topic.

    The candidate's values are assumed to vary as much as the baseline's, so that the variance of the differences is
    2 (1 - correlation) times theirs. `low` and `high` are the topics needed at correlations of .97 and .7.

    Args:
        baseline: Its evaluation.
        margins: The greatest allowed loss of each measure.
        correlation: The correlation.
        clusters: The cluster of each topic, as in `decide`.
        alpha: Greatest significant p.
        power: Share of cases in which a loss of the margin is told.

    Raises:
        InputError: As in `decide`.
        ParameterError: As in `decide`, or a number is out of range.
    """
    check_share("the correlation", correlation)
    parsed = check_margins(margins)
    values = np.stack([baseline.array(measure) for measure in parsed], axis=1)
    units = unit_values(values, cluster_numbers(baseline.topic_ids, clusters))
    spreads = {}
    for measure, deviation_ in zip(parsed, deviation(units).tolist(), strict=True):
        value, low, high = (
            deviation_ * math.sqrt(2 * (1 - c))
            for c in (correlation, max(correlation, CORRELATIONS[1]), min(correlation, CORRELATIONS[0]))
        )
        spreads[measure] = Spread(value, low, high, value, f"values of the baseline and a correlation of {correlation:g}")
    each = len(values) / len(units)
    return plan_spreads(spreads, parsed, now=len(values), topics_per_unit=each, alpha=alpha, power=power)


def plan_spreads(
    spreads: Mapping[Measure, Spread],
    margins: Mapping[Measure, float],
    *,
    now: int | None = None,
    topics_per_unit: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Plan from the spread of the differences by each measure."""
    check_share("alpha", alpha)
    check_share("the power", power)
    rows = []
    for measure, margin in margins.items():
        spread = spreads[measure]
        topics, low, high = (
            math.ceil(units_for(sd, margin, alpha, power, len(margins)) * topics_per_unit)
            for sd in (spread.assumed, spread.low, spread.high)
        )
        power_now = None if now is None else power_of(spread.assumed, margin, now / topics_per_unit, alpha, len(margins))
        rows.append(MeasurePlan(measure, margin, spread, topics, low, high, now, power_now, power))
    return Plan(tuple(rows), alpha, power)


def power_of(spread: float, margin: float, units: float, alpha: float = 0.05, measures: int = 1) -> float:
    """Return the share of cases in which so many units tell a loss of the margin by one of several measures."""
    from scipy.special import stdtr, stdtrit

    if units < 2:
        return 0.0
    if spread <= 0:
        return 1.0
    return float(stdtr(units - 1, margin * math.sqrt(units) / spread - stdtrit(units - 1, 1 - alpha / measures)))


def units_for(spread: float, margin: float, alpha: float = 0.05, power: float = 0.8, measures: int = 1) -> int:
    """Return the least number of units that tell a loss of the margin in `power` of all cases, at least 2."""
    low, high = 1, 2
    while power_of(spread, margin, high, alpha, measures) < power and high < MAX_UNITS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(spread, margin, middle, alpha, measures) >= power else (middle, high)
    return high


def _spread(units: Floats, source: str) -> Spread:
    """Return the spread of differences with its limits, by the asymptotic variance of the logarithm of the variance."""
    from scipy.special import ndtri

    n = len(units)
    value = float(deviation(units[:, None])[0])
    if value == 0:
        return Spread(0.0, 0.0, 0.0, 0.0, source)
    kurtosis = float(((units - units.mean()) ** 4).mean()) / float(units.var()) ** 2
    error = math.sqrt(max(kurtosis - (n - 3) / (n - 1), 0) / n) / 2  # of log(sd)
    low, assumed, high = (value * math.exp(z * error) for z in (ndtri(0.025), ndtri(CONFIDENCE), ndtri(0.975)))
    return Spread(value, low, high, assumed, source)


@dataclass(frozen=True)
class Drift:
    """Sum of the mean differences of accepted changes, with its interval.

    Args:
        difference: The sum.
        low: Lower end of the 1 - 2 alpha interval.
        high: Upper end.
        changes: Number of changes.
    """

    difference: float
    low: float
    high: float
    changes: int


def drift(changes: Sequence[Mapping[str, float]], alpha: float = 0.05) -> Drift:
    """Return the sum of the mean differences of accepted changes by one measure.

    Changes may have been tested on the same topics, on others, or on some of each: the variance is that of each topic's share
    of the sum, over all changes. It does not account for the choice of changes: those accepted because they did well on these
    topics do less well on others.

    Args:
        changes: The difference of each topic, candidate minus baseline, for each accepted change.
        alpha: One-sided level of each end.

    Raises:
        InputError: There is no change, or one has fewer than two topics or a value that is not a number.
        ParameterError: alpha is out of range.
    """
    from scipy.special import stdtrit

    check_share("alpha", alpha)
    if not changes:
        raise InputError("there is no accepted change to sum")
    total, shares = 0.0, dict[str, float]()
    for number, change in enumerate(changes, 1):
        values = np.array(list(change.values()), dtype=np.float64)
        if len(values) < 2 or not np.isfinite(values).all():
            raise InputError(f"accepted change {number} needs the differences of two topics or more, all of them numbers")
        mean, n = float(values.mean()), len(values)
        total += mean
        scale = 1 / math.sqrt(n * (n - 1))
        for topic, value in zip(change, values.tolist(), strict=True):
            shares[topic] = shares.get(topic, 0.0) + (value - mean) * scale
    error = math.sqrt(math.fsum(share**2 for share in shares.values()))
    half = float(stdtrit(min(map(len, changes)) - 1, 1 - alpha)) * error
    return Drift(total, total - half, total + half, len(changes))
