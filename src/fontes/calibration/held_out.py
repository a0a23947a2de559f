"""Promises about lists, and the held-out topics that they rest on.

A promise's loss is a number from 0 to 1 for each topic and threshold. Topics that share a group (turns of a conversation,
claims with the same evidence) are one unit, with the mean loss of its topics. Units are exchangeable where topics are not, and
the mean is a loss from 0 to 1 like any other, so the theorems hold for it; a bound of its expectation is one for a random topic
of a new unit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from ..core.arrays import Float32s, Float64s, Floats, Int32s, Int64s
from ..core.errors import ParameterError
from ..core.run import Run
from ..core.values import Qrels

PROMISES = ("recall", "precision", "complete")
"""Kinds of promises of `cut`."""
ANSWERABLE = "answerable"
"""Kind of the promise of `abstain`: topics with an answer are refused rarely."""
MISSING = np.float32(-1)
"""Probability of what the run does not hold."""
BEST = 3
"""Documents that say whether a topic has an answer."""
EPSILON = 1e-9  # of sums of losses, which are rounded


@dataclass(frozen=True)
class Promise:
    """A threshold, and what holds of the lists that it leaves.

    Args:
        kind: "recall", "precision", "complete", or "answerable" for `abstain`.
        level: The promised level; the risk is at most 1 - level.
        confidence: Probability of the promise over the choice of calibration topics; None: it holds in expectation over them.
        threshold: Least value that is kept: of "recall" a document's expected share of the relevant documents, else its
            probability. Of "answerable": the greatest p-value that is refused.
        units: Number of topics, or groups of topics, that it rests on.
        statement: The promise in words.
    """

    kind: str
    level: float
    confidence: float | None
    threshold: float
    units: int
    statement: str

    @property
    def risk(self) -> float:
        """Bound of the risk, 1 - level."""
        return _risk(self.level)

    def apply(self, run: Run) -> Run:
        """Return the run with the rows that reach the threshold; not for "answerable"."""
        return run.keep(self.values(run) >= np.float32(self.threshold))

    def values(self, run: Run) -> Float32s:
        """Return what is compared with the threshold for each row of a run of whole lists, float32 (rows,)."""
        return expected_shares(run) if self.kind == "recall" else run.scores

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "risk": self.risk}


@dataclass(frozen=True, eq=False)
class HeldOutTopics:
    """Probabilities of held-out topics with relevant documents.

    Args:
        unit: int32, (topics,): unit of each topic, from 0.
        relevant: int32, (topics,): number of relevant documents.
        bounds: int64, (topics + 1,): each topic's part of `retrieved` and `shares`.
        retrieved: float32: probabilities of the relevant documents in the run.
        shares: float32: their `expected_shares`.
        complete: float32, (topics,): probability down to which the first evidence set is complete; MISSING for none.
        best: float32, (topics,): `best_probabilities`.
        grid: float32, (thresholds,): thresholds to test for precision, descending, chosen without these topics.
        kept: int32, (topics, thresholds): number of documents from each threshold up.
    """

    unit: Int32s
    relevant: Int32s
    bounds: Int64s
    retrieved: Float32s
    shares: Float32s
    complete: Float32s
    best: Float32s
    grid: Float32s
    kept: Int32s

    @classmethod
    def of(cls, run: Run, qrels: Qrels, units: Sequence[Sequence[str]], grid: Float32s, rel: int) -> Self:
        """Collect the topics of a run of probabilities; topics without relevant documents are left out.

        Args:
            run: The run, whose scores are probabilities.
            qrels: The judgments.
            units: Topic ids of each unit.
            grid: Thresholds, descending.
            rel: Least relevant grade.
        """
        numbers = {topic_id: number for number, topic_id in enumerate(run.topics)}
        of_run, best = expected_shares(run), best_probabilities(run)
        rows: list[tuple[object, ...]] = []
        unit = 0
        for members in units:
            judged = [topic_id for topic_id in members if any(grade >= rel for grade in qrels.get(topic_id, {}).values())]
            for topic_id in judged:
                number = numbers[topic_id]
                part = slice(int(run.bounds[number]), int(run.bounds[number + 1]))
                scores = run.scores[part]
                rank = {doc_id: n for n, doc_id in enumerate(run.ids.take(run.codes[part]))}
                relevant = [doc_id for doc_id, grade in qrels[topic_id].items() if grade >= rel]
                ranks = np.array(sorted(rank[doc_id] for doc_id in relevant if doc_id in rank), dtype=np.int64)
                sets = [doc_ids for doc_ids in qrels.groups(topic_id, rel) if doc_ids <= rank.keys()]
                complete = max((scores[max(rank[d] for d in doc_ids)] for doc_ids in sets), default=MISSING)
                kept = np.searchsorted(-scores, -grid, side="right").astype(np.int32)
                rows.append((unit, len(relevant), scores[ranks], of_run[part][ranks], complete, best[number], kept))
            unit += bool(judged)
        units_of, relevant_counts, retrieved, shares, completes, bests, counts = zip(*rows, strict=True) if rows else [()] * 7
        none = np.zeros(0, dtype=np.float32)
        return cls(
            unit=np.array(units_of, dtype=np.int32),
            relevant=np.array(relevant_counts, dtype=np.int32),
            bounds=np.concatenate([[0], np.cumsum([len(values) for values in retrieved], dtype=np.int64)]),
            retrieved=np.concatenate([none, *retrieved]),
            shares=np.concatenate([none, *shares]),
            complete=np.array(completes, dtype=np.float32),
            best=np.array(bests, dtype=np.float32),
            grid=grid,
            kept=np.array(counts, dtype=np.int32).reshape(len(rows), len(grid)),
        )

    @classmethod
    def none(cls) -> Self:
        """Return no topics."""
        return cls.of(Run.of({}), Qrels(), [], np.zeros(0, dtype=np.float32), 1)

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1 if len(self.unit) else 0

    @property
    def weights(self) -> Float64s:
        """1 / number of topics of the topic's unit, float64 (topics,)."""
        weights: Float64s = 1 / np.bincount(self.unit)[self.unit]
        return weights

    def losses(self, kind: str) -> tuple[Float32s, Float64s, float]:
        """Return the sum over units of a monotone loss, as a function of the threshold.

        Returns:
            Values as of `Promise.values`, ascending; what is added to the sum when the threshold is above each; and the sum for
            lists that are not cut at all, the loss of what the run does not reach.
        """
        if kind == "recall":
            sizes = np.diff(self.bounds)
            values, steps = self.shares, np.repeat(self.weights / self.relevant, sizes)
            beyond = float(np.sum(self.weights * (1 - sizes / self.relevant)))
        else:
            values, steps = self.complete[self.complete > MISSING], self.weights[self.complete > MISSING]
            beyond = float(np.sum(self.weights[self.complete == MISSING]))
        order = np.argsort(values, kind="stable")
        return values[order], steps[order], beyond

    def greatest(self, kind: str, confidence: float = 0.9) -> float | None:
        """Return the greatest level of a promise that these topics allow, in thousandths; None if they allow none."""
        if not self.units:
            return None
        if kind == "precision":  # a greater risk refutes at least as many thresholds
            thousandths = bisect.bisect_left(range(1, 1000), True, key=lambda n: not self._allows(n / 1000, confidence))
        else:
            beyond = 0.0 if kind == ANSWERABLE else self.losses(kind)[2]
            thousandths = math.floor(1000 * (1 - (beyond + 1) / (self.units + 1)) + EPSILON)
        return thousandths / 1000 if thousandths > 0 else None

    def _allows(self, precision: float, confidence: float) -> bool:
        """Whether a precision can be promised by lists that are not all empty."""
        try:
            return bool(self.promise("precision", precision, confidence))
        except ParameterError:
            return False

    def promise(self, kind: str, level: float, confidence: float = 0.9) -> Promise:
        """Return the promise with the highest threshold that the topics allow.

        Raises:
            ParameterError: A number is out of its range, the topics are too few, or the run does not reach the level.
        """
        check_level(kind, level)
        check_level("confidence", confidence)
        self._check_feasible(kind, level, confidence)
        if kind == ANSWERABLE:
            threshold = _risk(level)
        elif kind == "precision":
            threshold = self._tested(level, confidence)
        else:
            threshold = self._controlled(kind, level)
        chance = confidence if kind == "precision" else None
        return Promise(kind, level, chance, threshold, self.units, self._statement(kind, level, confidence, threshold))

    def _controlled(self, kind: str, level: float) -> float:
        """Conformal risk control: the greatest threshold with (sum of losses + 1) / (units + 1) <= risk."""
        values, steps, beyond = self.losses(kind)
        below = np.concatenate([[0.0], np.cumsum(steps)])[np.searchsorted(values, values, side="left")]
        allowed = np.flatnonzero(beyond + below + 1 <= _risk(level) * (self.units + 1) + EPSILON)
        return float(values[allowed[-1]]) if len(allowed) else 0.0

    def _tested(self, level: float, confidence: float) -> float:
        """Learn then Test with a fixed sequence: the last threshold, from the highest, before the first that fails."""
        hits = np.zeros_like(self.kept)
        topics = np.repeat(np.arange(len(self.unit)), np.diff(self.bounds))
        first = np.searchsorted(-self.grid, -self.retrieved, side="left")  # threshold from which each is kept
        np.add.at(hits, (topics[first < len(self.grid)], first[first < len(self.grid)]), 1)
        hits = hits.cumsum(axis=1)
        losses = np.where(self.kept > 0, 1 - hits / np.maximum(self.kept, 1), 0.0)
        means = (self.weights[:, None] * losses).sum(axis=0) / self.units
        passed = 0
        while passed < len(self.grid) and p_value(float(means[passed]), self.units, _risk(level)) <= 1 - confidence + EPSILON:
            passed += 1
        if not passed or not self.kept[:, passed - 1].any():
            raise ParameterError(
                f"cut: precision={level:g} leaves no document for any of the {self.units} held-out topics, as too few of the "
                "best ones are relevant; ask for a lower precision, or take a better pipeline"
            )
        return float(self.grid[passed - 1])

    def p_values(self, best: Floats) -> Float64s:
        """Return the conformal p-value of `best_probabilities`: (1 + units with one as low) / (units + 1), float64."""
        order = np.argsort(self.best, kind="stable")
        counts = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        p_values: Float64s = (1 + counts[np.searchsorted(self.best[order], best, side="right")]) / (self.units + 1)
        return p_values

    def _check_feasible(self, kind: str, level: float, confidence: float) -> None:
        name = f"false_alarm={_risk(level):g}" if kind == ANSWERABLE else f"{kind}={level:g}"
        least = least_units(kind, level, confidence)
        if self.units < least:
            raise ParameterError(f"{self.units} held-out topics or groups of topics cannot promise {name}; {least} can")
        if kind not in ("recall", "complete"):
            return
        beyond, risk = self.losses(kind)[2], _risk(level)
        if beyond + 1 <= risk * (self.units + 1) + EPSILON:
            return
        mean, greatest = beyond / self.units, self.greatest(kind)
        what = "of the relevant documents" if kind == "recall" else "of the topics' evidence sets in full"
        remedy = "retrieve more documents before calibrated(…)"
        if risk - mean > EPSILON:
            remedy += f", or train with {math.ceil((1 - risk) / (risk - mean) - EPSILON)} held-out topics like these"
        raise ParameterError(
            f"{name} cannot be promised: uncut rankings of the {self.units} held-out topics hold {1 - mean:.3g} {what}, which "
            f"allows {f'{kind}={greatest:g} at most' if greatest else 'no promise'}; {remedy}"
        )

    def _statement(self, kind: str, level: float, confidence: float, threshold: float) -> str:
        topics = f"over topics like the {len(self.unit)} held out"
        if self.units < len(self.unit):
            topics += f", in {self.units} groups that count alike"
        risk = f"{_risk(level):g}"
        if kind == "precision":
            empty = float(np.mean(self.kept[:, self.grid == np.float32(threshold)] == 0))
            return (
                f"{topics}, at least {level:g} of a list's documents are relevant in the mean, where an empty list, as "
                f"{empty:.0%} of them got, counts as 1: risk <= {risk} with probability {confidence:g} over the choice of "
                "held-out topics (Learn then Test)"
            )
        what = {
            "recall": f"a list holds at least {level:g} of the relevant documents in the mean",
            "complete": f"a list holds a complete evidence set for at least {level:g} of the topics",
            ANSWERABLE: f"at most {risk} of those whose answer the collection holds are refused",
        }[kind]
        method = "conformal p-values" if kind == ANSWERABLE else "conformal risk control"
        return f"{topics}, {what}: risk <= {risk} in expectation over held-out and new topics ({method})"


def expected_shares(run: Run) -> Float32s:
    """Return p / (1 + sum of the probabilities of the ranking) for each row: about its share of the relevant documents.

    A document's share of recall is 1 / number of relevant documents, so that it counts less where many are expected.
    """
    totals = np.bincount(run.topic_numbers, weights=run.scores.astype(np.float64), minlength=len(run.topics))
    return (run.scores / (1 + totals[run.topic_numbers])).astype(np.float32)


def best_probabilities(run: Run) -> Float32s:
    """Return the probability that one of the best three documents is relevant, were they independent; MISSING for none."""
    best = run.top(BEST)
    against = np.log1p(-best.scores.astype(np.float64))
    sums = np.bincount(best.topic_numbers, weights=against, minlength=len(run.topics))
    return np.where(np.diff(run.bounds) > 0, -np.expm1(sums), MISSING).astype(np.float32)


def least_units(kind: str, level: float, confidence: float = 0.9) -> int:
    """Return the smallest number of units with which a promise can hold at all.

    Conformal risk control needs 1 / (n + 1) <= risk. Learn then Test needs (1 - risk)^n <= 1 - confidence.
    """
    risk = _risk(level)
    if kind == "precision":
        return math.ceil(math.log(1 - confidence) / math.log(1 - risk) - EPSILON)
    return math.ceil(1 / risk - 1 - EPSILON)


def p_value(mean: float, units: int, risk: float) -> float:
    """Return the Hoeffding-Bentkus p-value of "the expected loss is above `risk`" (Bates et al., 2021, proposition 4).

    Args:
        mean: Mean loss of the units, each from 0 to 1.
        units: Number of units.
        risk: The bound to refute.
    """
    below = min(mean, risk)
    hoeffding = math.exp(-units * (_entropy(below, risk) + _entropy(1 - below, 1 - risk)))
    whole, odds = math.lgamma(units + 1), (math.log(risk), math.log1p(-risk))
    logs = [
        whole - math.lgamma(k + 1) - math.lgamma(units - k + 1) + k * odds[0] + (units - k) * odds[1]
        for k in range(math.ceil(units * mean - EPSILON) + 1)
    ]
    return min(1.0, hoeffding, math.e * math.fsum(map(math.exp, logs)))


def check_level(name: str, level: object) -> None:
    """Raise ParameterError unless the level of a promise is a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < _risk(level) < 1:
        raise ParameterError(f"{name} must be a number between 0 and 1, not {level!r}")


def refused(run: Run) -> Mapping[str, float]:
    """Return the p-value of each topic that `abstain` refused, by topic id; empty for a run without `abstain`."""
    topics: Mapping[str, float] = run.provenance.get("refused", {})
    return topics


def promises_of(run: Run) -> list[Mapping[str, Any]]:
    """Return the promises of a run, in the order in which they were made, as of `Promise.to_dict`."""
    return list(run.provenance.get("promises", ()))


def _risk(level: float) -> float:
    return round(1 - level, 12)


def _entropy(a: float, b: float) -> float:
    return a * math.log(a / b) if a > 0 else 0.0
