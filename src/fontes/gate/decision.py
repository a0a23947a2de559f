"""The decision of a gate: whether a candidate passes, loses, or has too few topics to tell, by tests of paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from ..comparison.statistics import DIGITS, corrected, deviation, t_test
from ..core import InputError, ParameterError
from ..core.arrays import Floats, Int64s
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure, probability
from ..measures.names import parse

Margins: TypeAlias = Mapping[str, float] | Mapping[Measure, float] | Mapping[str | Measure, float]
FEW_CHANGED = 20  # units; the worst of so few says nothing of those not seen


class Answer(StrEnum):
    """An answer of a gate; the answers are in the order of its exit codes."""

    PASSES = "passes"
    LOSES = "loses"
    NOT_ENOUGH = "not enough topics"
    DID_NOT_RUN = "did not run"


@dataclass(frozen=True)
class MeasureDecision:
    """The decision by one measure.

    Args:
        measure: The measure.
        margin: The loss of its mean that is too much.
        answer: The decision.
        baseline: Mean of the baseline.
        candidate: Mean of the candidate.
        difference: Candidate minus baseline.
        low: Lower end of the 1 - 2 alpha interval of the difference; above -margin, the measure passes.
        high: Upper end; below 0, a loss is significant before the correction.
        p_pass: One-sided p of "the loss is the margin or more".
        p_loss: One-sided p of "there is no loss", corrected over the measures.
        wins: Number of topics where the candidate is better.
        losses: Number of topics where the baseline is better.
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
    losses: int
    lost_within_margin: bool


@dataclass(frozen=True)
class Decision:
    """Result of `decide`.

    Args:
        answer: "loses" if the candidate loses by one measure, "passes" if it passes all, else "not enough topics".
        measures: The decision by each measure.
        topics: Number of judged topics.
        units: Number of clusters of topics; without clusters, of topics.
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
    margins: Margins,
    *,
    clusters: Mapping[str, Hashable] | None = None,
    alpha: float = 0.05,
    allow_equal: bool = False,
) -> Decision:
    """Decide whether a candidate is not worse than a baseline.

    By each measure the candidate passes if a one-sided test rejects that it loses the margin or more (non-inferiority); else it
    loses if one rejects that it loses nothing. To pass all measures needs no correction (Berger 1982); to lose by one of them
    is corrected by Holm's method. `p_above` is the test.

    Args:
        baseline: Its evaluation.
        candidate: Its evaluation, of the same topics.
        margins: The loss of each measure's mean that is too much, between 0 and 1.
        clusters: The cluster of each topic: topics that depend on each other, as the turns of a conversation do, count as one.
        alpha: Greatest significant p.
        allow_equal: Whether a measure by which no topic changed passes. Else it needs topics as well, 265 for a margin of .01:
            a change of one topic in 50 leaves 20 topics as they are in two cases of three.

    Raises:
        InputError: The topics differ, there are fewer than two units, a topic has no cluster, or a value is not a number.
        ParameterError: There is no margin, one is not between 0 and 1, a measure was not evaluated or is a count, or alpha is
            out of range.
    """
    probability("alpha", alpha)
    parsed = check_margins(margins)
    differences = paired_differences(baseline, candidate, parsed)
    units, changed = unit_values(differences, cluster_numbers(baseline.topic_ids, clusters))
    p_pass = p_above(units, changed, -np.array(list(parsed.values())))
    p_loss = corrected(p_above(-units, changed, np.zeros(len(parsed))), "holm")
    passes, loses = (p_pass <= alpha) | (allow_equal & (changed == 0)), p_loss <= alpha
    answers = np.where(passes, Answer.PASSES, np.where(loses, Answer.LOSES, Answer.NOT_ENOUGH)).tolist()
    columns = (
        [Answer(answer) for answer in answers],
        [float(baseline.array(measure).mean()) for measure in parsed],
        [float(candidate.array(measure).mean()) for measure in parsed],
        differences.mean(axis=0).tolist(),
        lower_end(units, changed, alpha).tolist(),
        (-lower_end(-units, changed, alpha)).tolist(),
        p_pass.tolist(),
        p_loss.tolist(),
        (differences > 0).sum(axis=0).tolist(),
        (differences < 0).sum(axis=0).tolist(),
        (passes & loses).tolist(),
    )
    rows = tuple(MeasureDecision(*row) for row in zip(parsed, parsed.values(), *columns, strict=True))
    answer = next((each for each in (Answer.LOSES, Answer.NOT_ENOUGH) if each in answers), Answer.PASSES)
    return Decision(answer, rows, len(differences), len(units), alpha)


def paired_differences(baseline: Evaluation | None, candidate: Evaluation, measures: Iterable[Measure]) -> Floats:
    """Return candidate minus baseline, (topics, measures), or the candidate's values; see `decide` for what is raised."""
    names = {"baseline": baseline or candidate, "candidate": candidate}
    for name, evaluation in names.items():
        if missing := next((measure for measure in measures if measure not in evaluation), None):
            raise ParameterError(f"the {name} was not evaluated by {missing}; evaluate it by this measure too")
        if evaluation.topic_ids != candidate.topic_ids:
            raise InputError("the baseline and the candidate were evaluated on different topics; evaluate both on the same")
    columns = [candidate.array(m) - (0.0 if baseline is None else baseline.array(m)) for m in measures]
    differences = np.round(np.stack(columns, axis=1), DIGITS)
    if not np.isfinite(differences).all():
        bad = candidate.topic_ids[int(np.argwhere(~np.isfinite(differences))[0, 0])]
        raise InputError(f"topic '{bad}' has a value that is not a number; leave the topic out of the judgments")
    return differences


def p_above(values: Floats, changed: Int64s, bounds: Floats) -> Floats:
    """Return the one-sided p of "the mean is at most its bound" for each column: Student's t with one more unit.

    Many changes leave most topics as they are and lose much on few, of which a small sample often has none: then a t-test, a
    studentized bootstrap and a randomisation test all reject too often. So one unit is added that loses as much as the worst,
    or 20 / (units that changed) if this is more, and at most 1. `bench/gate.py` measures how often the test errs.

    Args:
        values: The values, (units, columns), between -1 and 1.
        changed: Number of units that changed, for each column.
        bounds: A bound for each column.
    """
    from scipy.special import stdtr

    t, _ = t_test(_with_worst(values, changed) - bounds)
    return np.asarray(stdtr(len(values), -t))


def lower_end(values: Floats, changed: Int64s, alpha: float) -> Floats:
    """Return the greatest bound of each column that `p_above` rejects at `alpha`."""
    from scipy.special import stdtrit

    n, values = len(values), _with_worst(values, changed)
    return np.asarray(values.mean(axis=0) - stdtrit(n, 1 - alpha) * deviation(values) / math.sqrt(n + 1))


def _with_worst(values: Floats, changed: Int64s) -> Floats:
    worst = np.minimum(values.min(axis=0), -np.minimum(1, FEW_CHANGED / np.maximum(changed, 1)))
    return np.concatenate([values, worst[None]])


def cluster_numbers(topic_ids: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Int64s:
    """Return the number of each topic's cluster, from 0; raise InputError if a topic has none or there are fewer than two."""
    if clusters is not None and (alone := next((topic for topic in topic_ids if topic not in clusters), None)) is not None:
        raise InputError(f"topic '{alone}' has no cluster; name the cluster of each judged topic")
    names = list(topic_ids) if clusters is None else [clusters[topic] for topic in topic_ids]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < 2:
        noun = "topics" if clusters is None else "clusters of topics"
        raise InputError(f"a test needs two judged {noun} or more, and there is {len(numbers) or 'none'}; judge more")
    return np.array([numbers[name] for name in names])


def unit_values(differences: Floats, clusters: Int64s) -> tuple[Floats, Int64s]:
    """Return values of clusters, (clusters, columns), and how many changed; their mean is that of the topics.

    With S_g the sum of the n_g differences of cluster g, N topics, G clusters and the mean d: d + (S_g - n_g d) G / N, the
    linearised ratio estimator (Cochran 1977, section 6.4), whose standard error is that of clusters.
    """
    shape = int(clusters.max()) + 1, differences.shape[1]
    sums, changes = np.zeros(shape), np.zeros(shape)
    mean = differences.mean(axis=0)
    np.add.at(sums, clusters, differences - mean)
    np.add.at(changes, clusters, differences != 0)
    return np.asarray(mean + sums * (shape[0] / len(differences))), (changes > 0).sum(axis=0)


def check_margins(margins: Margins) -> dict[Measure, float]:
    """Return the margins by measure; raise ParameterError if there is none, one is not in 0 to 1, or a measure is a count."""
    if not margins:
        raise ParameterError("a gate needs a measure with its margin, as in {'nDCG@10': 0.01}")
    parsed: dict[Measure, float] = {}
    for name, margin in margins.items():
        measure = parse(name)
        if measure.summed:
            raise ParameterError(f"{measure} is a count over all topics, whose loss has no margin; name another measure")
        if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0 < margin < 1:
            raise ParameterError(f"the margin of {measure} must be a number between 0 and 1, as in 0.01, not {margin!r}")
        if measure in parsed:
            raise ParameterError(f"{measure} has two margins; name it once")
        parsed[measure] = float(margin)
    return parsed
