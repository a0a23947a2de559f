"""`fit_weights`: fusion weights learned from judgments by cross-validation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import ParameterError, Qrels, Run
from ..core.arrays import Bools, Float64s, Int64s
from ..core.pairs import Pairs
from ..core.run import order_keys
from ..fusion.fusing import WEIGHTED, FusionMethod, weighted
from ..measures.evaluation import check_agreement, judgments_of
from ..measures.measure import Measure
from ..measures.names import parse
from ..measures.ranks import NOT_RETRIEVED, Ranks, judgments
from ..plots.tables import ResultTable
from .folds import folds_of
from .result import Fold, HeldOut, cross_validated, total_of

Steps = tuple[int, ...]  # the weights as multiples of the step
MAX_COMPARISONS = 8  # comparisons per pair of a document and a topic; with more, sorting all pairs is faster
MAX_GRID = 1001  # greatest grid searched exhaustively: 5 systems in steps of 0.1


@dataclass(frozen=True, eq=False, repr=False)
class LearnedWeights(HeldOut[tuple[float, ...]]):
    """Result of `fit_weights`.

    Args:
        measure: The maximised measure.
        topic_ids: The judged topics, in the order of the judgments.
        units: The number of each topic.
        folds: For each fold, the weights learned without it, and their values on the fold.
        baseline_values: None.
        weights: Weights learned on all judged topics, for use on other topics.
        trained: Mean of `weights` on the topics they were learned on, an optimistic estimate.
        run: The held-out run: each judged topic is fused with the weights learned without its fold, other topics with
            `weights`.
    """

    TITLE = "Weights of a fusion"
    LABEL = "tab:weights"

    weights: tuple[float, ...]
    trained: float
    run: Run

    def _rows(self) -> list[dict[str, object]]:
        return [
            {
                "fold": number,
                **{f"weight{i}": weight for i, weight in enumerate(fold.choice, 1)},
                "trained": fold.chosen,
                "score": total_of(self.measure, fold.values),
                "topics": len(fold.topics),
            }
            for number, fold in enumerate(self.folds, 1)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        folds = [
            {
                "weights": list(fold.choice),
                "trained": fold.chosen,
                "score": total_of(self.measure, fold.values),
                "topics": [self.topic_ids[i] for i in fold.topics.tolist()],
            }
            for fold in self.folds
        ]
        return self._facts() | {"trained": self.trained, "weights": list(self.weights), "folds": folds}

    def _head(self) -> list[str]:
        return [f"{self.measure} {self.score:.4f} on held-out topics"]

    def _tables(self) -> list[ResultTable]:
        return [self._folds_table(["weights"], lambda weights: [_format_weights(weights)])]

    def _notes(self) -> list[str]:
        return [f"all topics: weights {_format_weights(self.weights)}"]

    def __repr__(self) -> str:
        return f"LearnedWeights({self.measure} {self.score:.4f} held out; {_format_weights(self.weights)})"


def fit_weights(
    runs: Iterable[object],
    qrels: object,
    measure: str | Measure = "nDCG@10",
    *,
    folds: int = 5,
    seed: int = 0,
    step: float = 0.1,
    **fusion: Any,
) -> LearnedWeights:
    """Learn the weights that maximise `measure` for a fusion of `runs`, by cross-validation.

    Weights are multiples of `step` that sum to 1. Up to 1,001 combinations (five runs in steps of 0.1) are all tried; of more,
    hill climbing tries some, moving one step of weight at a time, from equal weights and from each run alone. Ties go to the
    weights of the fewest runs (a run alone, the first before the others), then to those nearest to equal ones. The order of
    topics and judgments does not matter. Judged topics missing from the runs count 0, as in `evaluate`.

    Args:
        runs: Two or more runs, each a Run or anything that `Run.of` accepts.
        qrels: Anything that `Qrels.of` accepts.
        measure: Measure to maximise.
        folds: Folds of the judged topics.
        seed: Seed of the folds.
        step: The smallest difference between two weights; it divides 1.
        **fusion: Parameters of `fuse`: `method` (by default "wsum"), `normalize`, `k`, `missing`.

    Raises:
        ParameterError: The method has no weights, `step` does not divide 1, there are fewer than two runs, or the number of
            folds is not between two and the number of judged topics.
        InputError: The qrels have no judgments, or none of a run's topics or documents.
    """
    systems = [Run.of(run) for run in runs]
    if len(systems) < 2:
        raise ParameterError(f"weights are learned for two runs or more, not {len(systems)}")
    judged = judgments_of(qrels, [parse(measure)])
    for number, system in enumerate(systems, 1):
        check_agreement(system, judged, f"run {number}")
    fold_of = folds_of([[topic_id] for topic_id in sorted(judged)], folds, seed)
    space = _WeightGrid(systems, judged, parse(measure), _fusion_method(fusion), _step_count(step))
    all_topics = np.ones(len(judged), dtype=bool)
    best = space.search(all_topics)
    points = cross_validated(
        np.array([fold_of[topic_id] for topic_id in judged]),
        lambda _, others: space.search(others),
        lambda point, _: space.values(point),
        space.measure,
    )
    topic_ids = tuple(judged)
    return LearnedWeights(
        measure=space.measure,
        topic_ids=topic_ids,
        units=np.arange(len(judged)),
        folds=tuple(Fold(space.weights(fold.choice), fold.topics, fold.values, fold.chosen) for fold in points),
        baseline_values=None,
        weights=space.weights(best),
        trained=space.mean(best, all_topics),
        run=space.run(best, [(fold.choice, [topic_ids[i] for i in fold.topics.tolist()]) for fold in points]),
    )


class _WeightGrid:
    """Grid of weights; a point is a tuple of multiples of the step, whose values of each topic are cached."""

    def __init__(self, runs: Sequence[Run], qrels: Qrels, measure: Measure, method: FusionMethod, steps: int) -> None:
        self.pairs = Pairs.of(runs)
        self.columns = method.columns(self.pairs)
        self.times = method.times(self.pairs)
        self.method, self.measure, self.steps = method, measure, steps
        self.qrels = qrels
        self.judgments = _Judgments.of(self.pairs, qrels)
        self._values: dict[Steps, Float64s] = {}
        systems = len(runs)
        self.exhaustive = math.comb(systems - 1 + steps, systems - 1) <= MAX_GRID
        self._grid = list(_grid(systems, steps)) if self.exhaustive else []

    def weights(self, point: Steps) -> tuple[float, ...]:
        """Return the weights of a point, which sum to 1."""
        return tuple(part / self.steps for part in point)

    def values(self, point: Steps) -> Float64s:
        """Return the measure of each judged topic, float64, in the order of the qrels."""
        if point not in self._values:
            scores = weighted(self.columns, self.weights(point), self.times)
            ranks = self.judgments.ranks(self.pairs, scores)
            self._values[point] = np.asarray(self.measure.score(ranks), dtype=np.float64)
        return self._values[point]

    def mean(self, point: Steps, topics: Bools) -> float:
        """Return the mean over some of the judged topics, or the sum for a count."""
        return total_of(self.measure, self.values(point)[topics])

    def search(self, topics: Bools) -> Steps:
        """Return the best point for these topics: of the whole grid, or by hill climbing in a large one."""
        if self.exhaustive:
            return self._best(self._grid, topics)
        systems = len(self.columns)
        alone = [tuple(self.steps * (i == j) for j in range(systems)) for i in range(systems)]
        even = tuple((self.steps * (i + 1)) // systems - (self.steps * i) // systems for i in range(systems))
        return self._best([self._climb(start, topics) for start in (even, *alone)], topics)

    def _climb(self, point: Steps, topics: Bools) -> Steps:
        while True:
            better = self._best([point, *_moves(point)], topics)
            if self.mean(better, topics) <= self.mean(point, topics):
                return point
            point = better

    def _best(self, points: Sequence[Steps], topics: Bools) -> Steps:
        # Of equally good weights those of the fewest runs, then the most even ones, then the greatest of the first runs.
        # Rounded, since means of the same values in another order differ in their last bits.
        return max(points, key=lambda p: (round(self.mean(p, topics), 12), p.count(0), -sum(x * x for x in p), p))

    def run(self, best: Steps, folds: Sequence[tuple[Steps, Iterable[str]]]) -> Run:
        """Return the run fused with each fold's weights on its topics, and with `best` on all others."""
        number = {topic_id: i for i, topic_id in enumerate(self.pairs.topics)}
        scores = weighted(self.columns, self.weights(best), self.times)
        for point, names in folds:
            in_fold = np.zeros(len(number), dtype=bool)
            in_fold[[number[name] for name in names if name in number]] = True
            rows = self.pairs.of_topics(in_fold)
            times = None if self.times is None else self.times[rows]
            scores[rows] = weighted(self.columns[:, rows], self.weights(point), times)
        return self.pairs.run(scores, {"parts": [run.provenance for run in self.pairs.runs], "weights": self.weights(best)})


@dataclass(frozen=True, eq=False)
class _Judgments:
    """The judged documents among the pairs of a topic and a document, and the columns of `Ranks` that no scores change.

    Args:
        qrels: The judgments.
        row: Qrels row of each judged document among the pairs.
        pair: Pair of each such document.
        first: First pair of its topic.
        size: Number of pairs of its topic.
        rivals: Concatenated pairs of the topic of each judged document; None if sorting is faster than comparing.
        topic: Topic of each qrels row, as in `Ranks`.
        grade: Grade of each qrels row.
        starts: First row of each topic.
        retrieved: Number of pairs of each topic.
    """

    qrels: Qrels
    row: Int64s
    pair: Int64s
    first: Int64s
    size: Int64s
    rivals: Int64s | None
    topic: Int64s
    grade: Int64s
    starts: Int64s
    retrieved: Int64s

    @classmethod
    def of(cls, pairs: Pairs, qrels: Qrels) -> _Judgments:
        # Ranks of equal scores show which judged documents are among the pairs.
        topic, grade, starts = judgments(qrels)
        ordered = Ranks.of(pairs.run(np.zeros(len(pairs)), {}), qrels)
        number = {topic_id: i for i, topic_id in enumerate(pairs.topics)}
        last = np.array([pairs.bounds[number[t] + 1] - 1 if t in number else 0 for t in qrels], dtype=np.int64)
        row = np.flatnonzero(ordered.by_qrels < NOT_RETRIEVED)
        # Equal scores are ordered by descending id, and the pairs of a topic by ascending id.
        pair = last[topic[row]] - ordered.by_qrels[row]
        end = np.searchsorted(pairs.bounds, pair, side="right")
        first, size = pairs.bounds[end - 1], pairs.bounds[end] - pairs.bounds[end - 1]
        rivals = None
        if 0 < size.sum() <= MAX_COMPARISONS * len(pairs):
            rivals = np.arange(size.sum()) + np.repeat(first - (np.cumsum(size) - size), size)
        return cls(qrels, row, pair, first, size, rivals, topic, grade, starts, ordered.retrieved)

    def ranks(self, pairs: Pairs, scores: Float64s) -> Ranks:
        rounded = scores.astype(np.float32)
        rank = np.full(len(self.topic), NOT_RETRIEVED, dtype=np.int64)
        if self.rivals is None:
            position = np.empty(len(pairs), dtype=np.int64)
            position[pairs.order(rounded)] = np.arange(len(pairs))
            rank[self.row] = position[self.pair] - self.first
        else:
            keys = order_keys(rounded, np.arange(len(pairs), dtype=np.uint32))
            better = keys[self.rivals] > np.repeat(keys[self.pair], self.size)
            rank[self.row] = np.add.reduceat(better, np.cumsum(self.size) - self.size, dtype=np.int64)
        order = np.lexsort((rank, self.topic))
        return Ranks(self.qrels, self.topic, self.grade[order], rank[order], self.starts, self.retrieved, rank)


def _step_count(step: float) -> int:
    steps = round(1 / step) if isinstance(step, (int, float)) and 0 < step <= 1 else 0
    if steps < 1 or abs(steps * step - 1) > 1e-9:
        raise ParameterError(f"step must divide 1, as 0.1, 0.05 and 0.25 do, and {step!r} does not")
    return steps


def _fusion_method(fusion: dict[str, Any]) -> FusionMethod:
    settings = {"method": "wsum", "normalize": "min-max", "k": 60, "missing": None, **fusion}
    unknown = set(settings) - {"method", "normalize", "k", "missing"}
    if unknown:
        raise ParameterError(
            f"fit_weights has no parameter '{min(unknown)}'; of fuse it takes method, normalize, k and missing"
        )
    if str(settings["method"]).lower() not in WEIGHTED:
        raise ParameterError(f"weights can be learned for {', '.join(WEIGHTED)}, not for {settings['method']!r}")
    return FusionMethod.checked(settings["method"], settings["normalize"], None, settings["k"], settings["missing"])


def _grid(systems: int, steps: int) -> Iterator[Steps]:
    """Yield all points of a number of systems that sum to a number of steps."""
    for cuts in itertools.combinations(range(systems - 1 + steps), systems - 1):
        bars = (-1, *cuts, systems - 1 + steps)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(bars))


def _moves(point: Steps) -> Iterator[Steps]:
    """Yield the points in which one system's weight has moved by a step to another system."""
    for i, j in itertools.permutations(range(len(point)), 2):
        if point[i]:
            yield tuple(part - (n == i) + (n == j) for n, part in enumerate(point))


def _format_weights(weights: Sequence[float]) -> str:
    return ",".join(f"{weight:g}" for weight in weights)
