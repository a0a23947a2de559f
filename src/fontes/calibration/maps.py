"""Maps from the scores of a run to probabilities of relevance, which keep the order of each ranking."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..core.arrays import Float32s, Float64s
from ..core.errors import InputError
from ..core.run import Run

MAPS = ("isotonic", "beta", "logistic")
FEATURES = ("best score of the topic", "score below the best", "log of the rank", "log of the query's length")
NON_INCREASING = (1, 2)
"""Features that grow along a ranking, whose weights are at most 0, so that probabilities fall along it."""
FLOOR = 1e-6
"""Least probability, and the least distance of a probability from 1."""


@dataclass(frozen=True, eq=False)
class ProbabilityMap:
    """Log odds from the features, then a curve over them.

    Args:
        kind: The curve. "logistic": the log odds as they are. "beta": a · ln p - b · ln(1 - p) + c of their probability p
            (Kull, Silva Filho and Flach, 2017). "isotonic": linear between non-decreasing points (Zadrozny and Elkan, 2002).
        weights: float64, (features + 1,): weight of each feature, then the constant.
        curve: float64: a, b and c of "beta"; (2, points) of "isotonic", log odds and probabilities; empty for "logistic".
    """

    kind: str
    weights: Float64s
    curve: Float64s

    def log_odds(self, features: Float64s) -> Float64s:
        """Return the log odds of each row of a matrix of `features_of`, float64 (rows,)."""
        total = np.full(len(features), self.weights[-1])
        for column, weight in zip(features.T, self.weights, strict=False):  # the same order of addition for any number of rows
            total += weight * column
        return total

    def probabilities(self, log_odds: Float64s) -> Float64s:
        """Return the probability for log odds, float64 (rows,), in [FLOOR, 1 - FLOOR]."""
        if self.kind == "isotonic":
            return np.clip(np.interp(log_odds, *self.curve), FLOOR, 1 - FLOOR)
        if self.kind == "beta":
            a, b, c = self.curve
            log_odds = c - a * np.logaddexp(0, -log_odds) + b * np.logaddexp(0, log_odds)
        return sigmoid(log_odds)


def sigmoid(log_odds: Float64s) -> Float64s:
    """Return 1 / (1 + exp(-x)), at least FLOOR and at most 1 - FLOOR."""
    limit = np.log(1 / FLOOR - 1)
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -limit, limit))))


def features_of(run: Run) -> Float64s:
    """Return the features of each row, float64 (rows, features), in the order of FEATURES.

    Raises:
        InputError: A score is infinite, or a topic with documents has no text.
    """
    scores, sizes = run.scores.astype(np.float64), np.diff(run.bounds)
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        topic_id = list(run.topics)[int(run.topic_numbers[row])]
        raise InputError(f"topic '{topic_id}', document '{run.ids[int(run.codes[row])]}': the score is infinite")
    lengths = np.array([len(topic.text.split()) for topic in run.topics.values()], dtype=np.float64)
    if (silent := (lengths == 0) & (sizes > 0)).any():
        topic_id = list(run.topics)[int(np.argmax(silent))]
        raise InputError(f"topic '{topic_id}' has no text; a run read from a file gets its topics with read_run(path, topics)")
    best = np.repeat(scores[np.minimum(run.bounds[:-1], run.rows - 1)] if run.rows else lengths, sizes)
    ranks = np.arange(1, run.rows + 1) - np.repeat(run.bounds[:-1], sizes)
    return np.column_stack([best, best - scores, np.log(ranks), np.repeat(np.log(np.maximum(lengths, 1)), sizes)])


def in_order(probabilities: Float64s, run: Run) -> Float32s:
    """Round probabilities to float32 so that each ranking keeps its order.

    Of two documents with different scores, the lower one gets the next smaller number where its probability is not below that
    of the higher one.
    """
    bits = probabilities.astype(np.float32).view(np.int32).astype(np.int64)  # in their order, as they are positive
    for start, end in pairwise(run.bounds.tolist()):
        steps = np.cumsum(np.diff(run.scores[start:end], prepend=run.scores[start:end][:1]) != 0)
        bits[start:end] = np.minimum.accumulate(bits[start:end] + steps) - steps
    return bits.astype(np.int32).view(np.float32)
