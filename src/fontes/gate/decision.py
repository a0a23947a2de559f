"""The decision of a gate: whether a candidate passes, loses, or has too few topics to tell, by tests of paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison.statistics import DIGITS, corrected, deviation
from ..core import InputError, ParameterError
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure
from ..measures.names import parse

Floats = NDArray[np.floating[Any]]


class Answer(StrEnum):
    """What a gate decides."""

    PASSES = "passes"
    LOSES = "loses"
    NOT_ENOUGH = "not enough topics"


@dataclass(frozen=True)
class MeasureDecision:
    """The decision by one measure.

    Args:
        measure: The measure.
        margin: The greatest loss of its mean that is allowed.
        answer: "passes" if `p_pass` is at most alpha, else "loses" if `p_loss` is, else "not enough topics".
        baseline: Mean of the baseline.
        candidate: Mean of the candidate.
        difference: Candidate minus baseline.
        low: Lower end of the 1 - 2 alpha interval of the difference: above -margin if the measure passes.
        high: Upper end: below 0 if a loss is significant before the correction.
        p_pass: One-sided p of "the true difference is at most -margin".
        p_loss: One-sided p of "the true difference is at least 0", corrected over the measures by Holm's method.
        wins: Number of topics where the candidate is better.
        ties: Number of topics where both are equal.
        losses: Number of topics where the baseline is better.
        spread: Standard deviation of the differences of units (topics or clusters).
        lost_within_margin: Whether the measure passes, and a loss smaller than the margin is significant.
    """

    measure: Measure
    margin: float
    answer: Answer
    baseline: float
    candidate: float
    difference: float
    low: float
    high: float
    p_pass: float
    p_loss: float
    wins: int
    ties: int
    losses: int
    spread: float
    lost_within_margin: bool


@dataclass(frozen=True)
class Decision:
    """Result of `decide`.

    Args:
        answer: "loses" if the candidate loses by one measure, "passes" if it passes all, else "not enough topics".
        measures: The decision by each measure.
        topics: Number of judged topics.
        units: Number of clusters of topics; the number of topics without clusters.
        alpha: Greatest significant p.
    """

    answer: Answer
    measures: tuple[MeasureDecision, ...]
    topics: int
    units: int
    alpha: float


def decide(
    baseline: Evaluation,
    candidate: Evaluation,
    margins: Mapping[str | Measure, float],
    *,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
) -> Decision:
    """Decide whether a candidate is not worse than a baseline.

    By each measure the candidate passes if "it loses the margin or more" is rejected by a one-sided test (non-inferiority). If
    not, it loses if "it loses nothing" is rejected. The candidate passes if it passes every measure, which needs no correction
    (an intersection-union test; Berger 1982); it loses if it loses by one, corrected over the measures by Holm's method.

    Args:
        baseline: Its evaluation.
        candidate: Its evaluation, of the same topics.
        margins: The greatest allowed loss of the mean of each measure, above 0.
        clusters: The cluster of each topic: topics that depend on each other, such as the turns of a conversation, count as one
            unit. None: each topic is one.
        alpha: Greatest significant p.

    Raises:
        InputError: The topics differ, there are fewer than two units, a topic has no cluster, or a value is NaN.
        ParameterError: There is no margin, one is not a number above 0, a measure was not evaluated or is a count, or alpha is
            out of range.
    """
    check_share("alpha", alpha)
    parsed = check_margins(margins)
    differences = paired_differences(baseline, candidate, parsed)
    old, new = (np.stack([e.array(measure) for measure in parsed], axis=1) for e in (baseline, candidate))
    units = unit_values(differences, cluster_numbers(baseline.topic_ids, clusters))
    margin = np.array(list(parsed.values()))
    p_pass, p_loss = p_above(units, -margin), p_above(-units, np.zeros(len(margin)))
    p_holm = corrected(p_loss, "holm")
    low, high = lower_end(units, alpha), -lower_end(-units, alpha)
    spread = deviation(units)
    rows = []
    for i, measure in enumerate(parsed):
        passes, loses = bool(p_pass[i] <= alpha), bool(p_holm[i] <= alpha)
        d = differences[:, i]
        rows.append(
            MeasureDecision(
                measure,
                float(margin[i]),
                Answer.PASSES if passes else Answer.LOSES if loses else Answer.NOT_ENOUGH,
                float(old[:, i].mean()),
                float(new[:, i].mean()),
                float(d.mean()),
                float(low[i]),
                float(high[i]),
                float(p_pass[i]),
                float(p_holm[i]),
                int((d > 0).sum()),
                int((d == 0).sum()),
                int((d < 0).sum()),
                float(spread[i]),
                passes and loses,
            )
        )
    answers = [row.answer for row in rows]
    answer = next((a for a in (Answer.LOSES, Answer.NOT_ENOUGH) if a in answers), Answer.PASSES)
    return Decision(answer, tuple(rows), len(differences), len(units), alpha)


def paired_differences(baseline: Evaluation, candidate: Evaluation, measures: Iterable[Measure]) -> Floats:
    """Return candidate minus baseline, (topics, measures); raise InputError if topics differ or a value is NaN."""
    if baseline.topic_ids != candidate.topic_ids:
        raise InputError("the baseline and the candidate were evaluated on different topics; evaluate both on the same")
    for evaluation, name in ((baseline, "baseline"), (candidate, "candidate")):
        if missing := next((measure for measure in measures if measure not in evaluation), None):
            raise ParameterError(f"the {name} was not evaluated by {missing}")
    differences = np.stack([candidate.array(measure) - baseline.array(measure) for measure in measures], axis=1)
    if not np.isfinite(differences).all():
        bad = baseline.topic_ids[int(np.argwhere(~np.isfinite(differences))[0, 0])]
        raise InputError(f"topic '{bad}' has a value that is not a number; leave the topic out of the judgments")
    return np.round(differences, DIGITS)


def p_above(values: Floats, bounds: Floats) -> Floats:
    """Return the one-sided p of "the mean is at most its bound" for each column, by Student's t.

    Args:
        values: The values, (units, columns).
        bounds: A bound for each column.
    """
    from scipy.special import stdtr

    n, gap = len(values), values.mean(axis=0) - bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        t = gap / (deviation(values) / math.sqrt(n))
    return np.where(np.round(gap, DIGITS) == 0, 1.0, stdtr(n - 1, -t))


def lower_end(values: Floats, alpha: float) -> Floats:
    """Return the greatest bound of each column that `p_above` rejects at `alpha`."""
    from scipy.special import stdtrit

    n = len(values)
    return np.asarray(values.mean(axis=0) - stdtrit(n - 1, 1 - alpha) * deviation(values) / math.sqrt(n))


def cluster_numbers(topic_ids: Sequence[str], clusters: Mapping[str, Hashable] | None) -> NDArray[np.int64]:
    """Return the number of each topic's cluster, from 0; raise InputError if a topic has none or there are fewer than two."""
    if clusters is not None and (alone := next((topic for topic in topic_ids if topic not in clusters), None)) is not None:
        raise InputError(f"topic '{alone}' has no cluster; name the cluster of each judged topic")
    names = list(topic_ids) if clusters is None else [clusters[topic] for topic in topic_ids]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < 2:
        noun = "topics" if clusters is None else "clusters of topics"
        raise InputError(f"a test needs two judged {noun} or more, and there is {len(numbers) or 'none'}; judge more")
    return np.array([numbers[name] for name in names])


def unit_values(differences: Floats, clusters: NDArray[np.int64]) -> Floats:
    """Return a value for each cluster and column; their mean is that of the topics, with the standard error of clusters.

    With S_g the sum of the n_g differences of cluster g, N topics, G clusters and the mean d: d + (S_g - n_g d) G / N, the
    linearised ratio estimator (Cochran 1977, section 6.4).
    """
    count = int(clusters.max()) + 1
    mean = differences.mean(axis=0)
    sums = np.zeros((count, differences.shape[1]))
    np.add.at(sums, clusters, differences - mean)
    return np.asarray(mean + sums * (count / len(differences)))


def check_share(name: str, value: float) -> None:
    """Raise ParameterError unless a value lies between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError(f"{name} must lie between 0 and 1, as in 0.05, not {value!r}")


def check_margins(margins: Mapping[str | Measure, float]) -> dict[Measure, float]:
    """Return the margins by measure; raise ParameterError if there is none, one is not above 0, or a measure is a count."""
    if not margins:
        raise ParameterError("a gate needs a measure with its margin, as in {'nDCG@10': 0.01}")
    parsed: dict[Measure, float] = {}
    for name, margin in margins.items():
        measure = parse(name)
        if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0 < margin < math.inf:
            raise ParameterError(f"the margin of {measure} must be a number above 0, as in 0.01, not {margin!r}")
        if measure.summed:
            raise ParameterError(f"{measure} is a count over all topics, whose loss has no margin; name another measure")
        if measure in parsed:
            raise ParameterError(f"{measure} has two margins; name it once")
        parsed[measure] = float(margin)
    return parsed
