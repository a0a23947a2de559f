"""How far probabilities agree with the share of relevant documents."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ..core.arrays import Bools, Float64s
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.values import Qrels


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows with similar probabilities.

    Args:
        probability: Their mean probability.
        relevant: Share of relevant documents.
        rows: Their number.
    """

    probability: float
    relevant: float
    rows: int


@dataclass(frozen=True)
class Reliability:
    """Bins of a run's rows by probability, ascending.

    Args:
        bins: Bins with equal numbers of rows, up to one.
        ece: Expected calibration error, Σ rows / all rows · |probability - relevant| (Naeini, Cooper and Hauskrecht, 2015).
        rows: Number of rows.
    """

    bins: tuple[ReliabilityBin, ...]
    ece: float
    rows: int

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"expected calibration error {self.ece:.4f} of {self.rows:,} documents", "probability  relevant  documents"]
        return "\n".join([*lines, *(f"{b.probability:11.4f}  {b.relevant:8.4f}  {b.rows:9,}" for b in self.bins)])


def reliability(run: Run, qrels: object, bins: int = 15, rel: int = 1) -> Reliability:
    """Compare probabilities with judgments.

    Args:
        run: A run whose scores are probabilities; topics without judgments do not count.
        qrels: Anything that `Qrels.of` accepts; unjudged documents count as not relevant.
        bins: Number of bins.
        rel: Least relevant grade.

    Raises:
        InputError: A score is no probability, or no topic with documents has judgments.
        ParameterError: There is no bin.
    """
    if bins < 1:
        raise ParameterError(f"bins, their number, must be 1 or more, not {bins}")
    judgments = Qrels.of(qrels)
    probabilities = run.scores.astype(np.float64)
    if run.rows and not (probabilities.min() >= 0 and probabilities.max() <= 1):
        raise InputError("the scores of the run are no probabilities; calibrate it: … >> calibrated(FOLDER)")
    judged = np.array([topic_id in judgments for topic_id in run.topics], dtype=np.bool_)[run.topic_numbers]
    if not judged.any():
        raise InputError("no topic of the run with documents has judgments")
    return reliability_of(probabilities[judged], labels_of(run, judgments, rel)[judged], bins)


def reliability_of(probabilities: Float64s, labels: Bools, bins: int = 15) -> Reliability:
    """Compare the probability of each row with its label; see `reliability`."""
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    table = tuple(ReliabilityBin(float(probabilities[p].mean()), float(labels[p].mean()), len(p)) for p in parts)
    ece = sum(b.rows * abs(b.probability - b.relevant) for b in table) / max(1, len(order))
    return Reliability(table, ece, len(order))


def labels_of(run: Run, qrels: Qrels, rel: int) -> Bools:
    """Return whether each row's document is relevant, bool (rows,)."""
    grades = (qrels.get(topic_id, {}).get(hit.id, rel - 1) for topic_id, ranking in run.items() for hit in ranking)
    return np.fromiter((grade >= rel for grade in grades), np.bool_, run.rows)
