"""Fusion methods and score normalisations; `fuse` applies them to runs or stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, TypedDict, TypeGuard, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from ..core import Explanation, InputError, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.arrays import Float64s, Int64s, Ints, Scalar
from ..core.checks import hinted
from ..core.hints import nearest
from ..core.pairs import Pairs
from ..core.parameters import tuned
from ..core.searches import matches_of_any
from ..core.stage import Ranker, count_of_any, topic_of


def reciprocal_rank(ranks: Float64s, candidates: Int64s, k: float) -> Float64s:
    """1 / (k + rank)."""
    return 1 / (k + ranks)


def inverse_square_rank(ranks: Float64s, candidates: Int64s, k: float) -> Float64s:
    """1 / rank^2."""
    return 1 / ranks**2


def points(ranks: Float64s, candidates: Int64s, k: float) -> Float64s:
    """Borda points: candidates - rank + 1, where the candidates are the documents of all lists of the topic."""
    return candidates - ranks + 1


LEAST_PROBABILITY = 1e-6


def log_odds(lists: RankedLists) -> Float64s:
    """log(p / (1 - p)) of probabilities, with p from 1e-6 to 1 - 1e-6; raises InputError for scores outside [0, 1]."""
    outside = (lists.scores < 0) | (lists.scores > 1)
    if outside.any():
        raise lists.error(int(np.argmax(outside)), "logodds fuses probabilities; calibrate: … >> calibrated(FOLDER)")
    probabilities = np.clip(lists.scores, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.asarray(np.log(probabilities) - np.log1p(-probabilities))


def remaining_points(candidates: Int64s, sizes: Int64s) -> Float64s:
    """Mean of the Borda points that a list of `sizes` documents leaves unassigned."""
    return (candidates.astype(np.float64) - sizes + 1) / 2


@dataclass(frozen=True)
class Formula:
    """Formula of a fusion method: the contribution of each list to a document, and how contributions are combined.

    Args:
        source: Publication.
        of_ranks: Contributions from the ranks, the number of documents in all lists of the topic, and k; None for a method
            that uses scores.
        label: Explanation of `of_ranks` or `of_scores`, with {rank}, {k} and {score}.
        extremum: Ufunc of the maximum or minimum of the contributions; None for their sum.
        combination: Explanation of the combination.
        counted: Whether to multiply the sum by the number of lists with the document.
        weighted: Whether the systems may have weights.
        missing: Contribution to missing documents, from the number of documents in all lists and in this one; "min" for that
            to the list's last document; None for 0 in a sum, and for no contribution to a maximum or minimum.
        of_scores: Contributions from the scores; None for a method that normalises them, or uses ranks.
    """

    source: str
    of_ranks: Callable[[Float64s, Int64s, float], Float64s] | None = None
    label: str = ""
    extremum: np.ufunc | None = None
    combination: str = "sum of the parts"
    counted: bool = False
    weighted: bool = False
    missing: Callable[[Int64s, Int64s], Float64s] | Literal["min"] | None = None
    of_scores: Callable[[RankedLists], Float64s] | None = None


_FOX = "Fox and Shaw, 1994"
METHODS: dict[str, Formula] = {
    "rrf": Formula("Cormack, Clarke and Büttcher, 2009", reciprocal_rank, "1 / ({k:g} + {rank}): rank {rank}", weighted=True),
    "isr": Formula(
        "Mourão, Martins and Magalhães, 2015", inverse_square_rank, "1 / {rank}^2: rank {rank}", counted=True, weighted=True
    ),
    "borda": Formula("Aslam and Montague, 2001", points, "points of rank {rank}", weighted=True, missing=remaining_points),
    "logodds": Formula("Good, 1950", of_scores=log_odds, label="log odds of {score:g}", weighted=True, missing="min"),
    "wsum": Formula(_FOX, weighted=True),
    "combsum": Formula(_FOX),
    "combmnz": Formula(_FOX, counted=True),
    "combmax": Formula(_FOX, extremum=np.fmax, combination="the greatest of the parts"),
    "combmin": Formula(_FOX, extremum=np.fmin, combination="the least of the parts"),
}
WEIGHTED = tuple(name for name, formula in METHODS.items() if formula.weighted)


@dataclass(frozen=True)
class FusionMethod:
    """A fusion method with its parameters, as in `fuse`; `checked` creates it."""

    name: str = "rrf"
    normalize: str | None = "min-max"
    weights: tuple[float, ...] | None = None
    k: float = 60
    missing: float | str | None = None

    @classmethod
    def checked(
        cls, name: object, normalize: object, weights: Any, k: object, missing: Any, systems: int | None = None
    ) -> FusionMethod:
        """Return the method with these parameters.

        Args:
            name: Name of the method.
            normalize: As in `fuse`.
            weights: As in `fuse`.
            k: As in `fuse`.
            missing: As in `fuse`.
            systems: Number of systems, to check the number of weights; None to leave it unchecked.

        Raises:
            ParameterError: A parameter is out of its range.
        """
        name = name.lower() if isinstance(name, str) else name
        if name not in METHODS:
            raise ParameterError(f"there is no fusion method {name!r}; {nearest(str(name), METHODS)}")
        if normalize is not None and normalize not in NORMALIZATIONS:
            raise ParameterError(f"there is no normalisation {normalize!r}; there are {', '.join(NORMALIZATIONS)} and None")
        if not _is_finite(k) or k < 0:
            raise ParameterError(f"k, the constant of rrf, must be a number from 0 up, not {k!r}")
        if missing is not None and missing != "min" and not _is_finite(missing):
            raise ParameterError(f"missing, the contribution to missing documents, is None, 'min' or a number, not {missing!r}")
        return cls(name, normalize, _checked_weights(name, weights, systems), k, missing)

    @property
    def formula(self) -> Formula:
        """Formula of the method."""
        return METHODS[self.name]

    def columns(self, pairs: Pairs) -> Float64s:
        """Return the unweighted contribution of each run to each pair, float64 (runs, pairs); NaN for no contribution.

        Raises:
            InputError: A score is infinite, or does not suit the normalisation.
        """
        table = np.empty((len(pairs.runs), len(pairs)), dtype=np.float64)
        for i, row in enumerate(table):
            contributions = self._contributions(pairs, i)
            row[:] = self._missing_contributions(pairs, i, contributions)
            row[pairs.pair_numbers[i]] = contributions
        return table

    def scores(self, pairs: Pairs, columns: Float64s) -> Float64s:
        """Return the score of each pair, float64 (pairs,): the columns combined in the order of the systems."""
        if self.formula.extremum is not None:
            extremes: Float64s = self.formula.extremum.reduce(columns, axis=0)
            return extremes
        return weighted(columns, self.weights or (1.0,) * len(columns), self.times(pairs))

    def times(self, pairs: Pairs) -> Int64s | None:
        """Return the number of runs with each pair, int64 (pairs,), if the method multiplies by it; else None."""
        if not self.formula.counted:
            return None
        return np.bincount(np.concatenate(pairs.pair_numbers), minlength=len(pairs))

    def label(self, rank: int, score: float) -> str:
        """Return the explanation of the contribution to a document with this rank and score."""
        if self.formula.of_ranks is not None:
            return self.formula.label.format(k=self.k, rank=rank)
        if self.formula.of_scores is not None:
            return self.formula.label.format(score=score)
        return f"{self.normalize} of {score:g}" if self.normalize else "score"

    def _contributions(self, pairs: Pairs, i: int) -> Float64s:
        """Return the contribution of run `i` to each of its rows, float64 (rows,)."""
        run = pairs.runs[i]
        lists = RankedLists(run, f"system {i + 1}")
        if self.formula.of_scores is not None:
            return self.formula.of_scores(lists)
        if self.formula.of_ranks is None:
            return normalized(lists, self.normalize)
        candidates = np.repeat(pairs.sizes[pairs.numbers[i]], np.diff(run.bounds))
        return self.formula.of_ranks(lists.ranks, candidates, self.k)

    def _missing_contributions(self, pairs: Pairs, i: int, contributions: Float64s) -> float | Float64s:
        """Return the contribution of run `i` to the pairs that it lacks: one number, or an array (pairs,).

        Args:
            pairs: The union of the runs.
            i: Position of the run.
            contributions: The run's contributions to its own rows.
        """
        run, topic_numbers = pairs.runs[i], pairs.numbers[i]
        lengths = np.diff(run.bounds)
        missing = self.formula.missing if self.missing is None else self.missing
        if missing is None or callable(missing):
            if missing is None:
                return 0.0 if self.formula.extremum is None else math.nan
            lengths_by_topic = np.zeros(len(pairs.topics), dtype=np.int64)
            lengths_by_topic[topic_numbers] = lengths
            return pairs.of_topics(missing(pairs.sizes, lengths_by_topic))
        if missing != "min":
            return float(missing)
        last = np.zeros(len(pairs.topics))
        nonempty = np.flatnonzero(lengths)
        last[topic_numbers[nonempty]] = contributions[run.bounds[nonempty + 1] - 1]
        return pairs.of_topics(last)


def weighted(columns: Sequence[Float64s] | Float64s, weights: Sequence[float], times: Int64s | None = None) -> Float64s:
    """Return the weighted sum of the columns, float64, added in their order and multiplied by `times` if given."""
    total = np.zeros(len(columns[0]), dtype=np.float64)
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    if times is not None:
        total *= times
    return total


def _checked_weights(method: str, weights: Any, systems: int | None) -> tuple[float, ...] | None:
    """Return the weights as floats; raise ParameterError if the method takes none, or if they do not fit the systems."""
    if weights is None:
        return None
    if not METHODS[method].weighted:
        raise ParameterError(f"{method} takes no weights; {', '.join(WEIGHTED)} do")
    try:
        values = tuple(weights)
    except TypeError:
        raise ParameterError(f"weights are a list of numbers, one a system, not {weights!r}") from None
    for weight in values:
        if not _is_finite(weight) or weight < 0:
            raise ParameterError(f"a weight must be a number from 0 up, not {weight!r}")
    if systems is not None and len(values) != systems:
        raise ParameterError(f"there are {len(values)} weights for {systems} systems; give one for each")
    return tuple(map(float, values))


def _is_finite(value: object) -> TypeGuard[float]:
    """Return whether the value is a finite real number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


class RankedLists:
    """The lists of a run, one after the other; topics without documents are left out.

    Args:
        run: The run.
        name: Name of the run in errors.

    Attributes:
        scores: Score of each row, float64, best to worst in each list.
        ranks: Rank of each row, float64, from 1.
        starts: First row of each list.
        lengths: Number of rows of each list.
        best: Best score of each list.
        worst: Worst score of each list.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run, self._name = run, name
        lengths = np.diff(run.bounds)
        nonempty = lengths > 0
        self.scores: Float64s = run.scores.astype(np.float64)
        self.ranks: Float64s = (np.arange(1, run.rows + 1) - np.repeat(run.bounds[:-1], lengths)).astype(np.float64)
        self.starts: Int64s = run.bounds[:-1][nonempty]
        self.lengths: Int64s = lengths[nonempty]
        self.best: Float64s = self.scores[self.starts]
        self.worst: Float64s = self.scores[run.bounds[1:][nonempty] - 1]

    def per_row(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Repeat the value of each list for its rows."""
        return np.repeat(values, self.lengths)

    def sums(self, values: Float64s) -> Float64s:
        """Return the sum over each list of the values of its rows."""
        return np.add.reduceat(values, self.starts) if len(self.starts) else self.best

    def error(self, row: int, problem: str) -> InputError:
        """Return the error for a problem with the score of a row."""
        topic = list(self._run.topics)[int(self._run.topic_numbers[row])]
        return InputError(f"{self._name}, topic '{topic}', document '{self._run.ids[int(self._run.codes[row])]}': {problem}")


def min_max(lists: RankedLists) -> Float64s:
    """(score - worst) / (best - worst); 1 in a list of equal scores."""
    return _ratio(lists.scores - lists.per_row(lists.worst), lists.per_row(lists.best - lists.worst), 1.0)


def by_max(lists: RankedLists) -> Float64s:
    """score / best; raises InputError for a best score that is not positive."""
    if len(lists.best) and lists.best.min() <= 0:
        problem = f"max divides by the best score, which is {lists.best.min():g} here; normalise by min-max"
        raise lists.error(int(lists.starts[np.argmin(lists.best)]), problem)
    scores: Float64s = lists.scores / lists.per_row(lists.best)
    return scores


def by_sum(lists: RankedLists) -> Float64s:
    """(score - worst) / sum of (score - worst) over the list; 1 / length in a list of equal scores."""
    differences = lists.scores - lists.per_row(lists.worst)
    return _ratio(differences, lists.per_row(lists.sums(differences)), 1 / lists.per_row(lists.lengths))


def z_score(lists: RankedLists) -> Float64s:
    """(score - mean) / standard deviation, which divides by n; 0 in a list of equal scores."""
    deviations = lists.scores - lists.per_row(lists.sums(lists.scores) / lists.lengths)
    standard_deviation = np.sqrt(lists.sums(deviations**2) / lists.lengths)
    # The mean of equal scores may be rounded, which would leave a deviation above 0.
    standard_deviation = np.where(lists.best > lists.worst, standard_deviation, 0.0)
    return _ratio(deviations, lists.per_row(standard_deviation), 0.0)


def by_rank(lists: RankedLists) -> Float64s:
    """1 - (rank - 1) / length of the list."""
    scores: Float64s = 1 - (lists.ranks - 1) / lists.per_row(lists.lengths).astype(np.float64)
    return scores


NORMALIZATIONS: dict[str, Callable[[RankedLists], Float64s]] = {
    "min-max": min_max,
    "max": by_max,
    "sum": by_sum,
    "z": z_score,
    "rank": by_rank,
}


def normalized(lists: RankedLists, normalization: str | None) -> Float64s:
    """Return the scores, normalised in each list, float64 (rows,).

    Args:
        lists: The lists of a run.
        normalization: A name in `NORMALIZATIONS`; None for unchanged scores.

    Raises:
        InputError: A score is infinite, or does not suit the normalisation.
    """
    if not np.isfinite(lists.scores).all():
        raise lists.error(int(np.argmin(np.isfinite(lists.scores))), "the score is infinite; fuse by rank")
    return lists.scores if normalization is None else NORMALIZATIONS[normalization](lists)


def _ratio(numerator: Float64s, denominator: Float64s, default: Float64s | float) -> Float64s:
    """Return numerator / denominator, and `default` where the denominator is 0, in lists of equal scores."""
    ratios = np.broadcast_to(np.asarray(default, dtype=np.float64), numerator.shape).copy()
    return np.divide(numerator, denominator, out=ratios, where=denominator > 0)


class Parameters(TypedDict, total=False):
    """Parameters of `fuse`."""

    method: str
    normalize: str | None
    weights: Sequence[float] | None
    k: float
    missing: float | str | None


@overload
def fuse(*systems: Ranker, **parameters: Unpack[Parameters]) -> Fusion: ...  # type: ignore[overload-overlap]
@overload
def fuse(*systems: object, **parameters: Unpack[Parameters]) -> Run: ...
@hinted
def fuse(
    *systems: object,
    method: str = "rrf",
    normalize: str | None = "min-max",
    weights: Sequence[float] | None = None,
    k: float = 60,
    missing: float | str | None = None,
) -> Fusion | Run:
    """Fuse two or more systems: stages into a stage, runs into a run.

    The result has all documents and topics of the systems; a system without a topic has an empty list for it. The methods
    combine the contributions of the lists:

    * `rrf`: the sum of 1 / (k + rank) (Cormack, Clarke and Büttcher, 2009)
    * `isr`: the sum of 1 / rank^2, times the number of lists with the document (Mourão, Martins and Magalhães, 2015)
    * `borda`: the sum of points: with c documents in all lists together, a list gives c points to its first document, c - 1 to
      the next and so on (Aslam and Montague, 2001)
    * `logodds`: the sum of log(p / (1 - p)) of probabilities p from 0 to 1, such as those of `calibrated`: evidence of
      independent systems adds up (Good, 1950)
    * `wsum`, `combsum`: the sum of the normalised scores, with and without weights (Fox and Shaw, 1994)
    * `combmnz`: the sum of the normalised scores, times the number of lists with the document (Fox and Shaw, 1994)
    * `combmax`, `combmin`: the greatest and the least of the normalised scores (Fox and Shaw, 1994)

    Normalisations scale the scores of each list; rrf, isr and borda use only ranks, and logodds probabilities as they are:

    * `min-max`: (score - worst) / (best - worst); 1 in a list of equal scores
    * `max`: score / best
    * `sum`: (score - worst) / sum of (score - worst) over the list; 1 / length in a list of equal scores
    * `z`: (score - mean) / standard deviation, which divides by n; 0 in a list of equal scores
    * `rank`: 1 - (rank - 1) / length of the list
    * None: unchanged

    Sums are computed in float64 in the order of the systems and rounded to float32.

    Args:
        *systems: Stages that all take Topics or all take Run; or runs, each as `Run.of` accepts it.
        method: One of the methods above.
        normalize: One of the normalisations above, or None.
        weights: Numbers from 0 up, one per system, for `wsum`, `logodds`, `rrf`, `isr` and `borda`; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: Contribution of a list to a document that it lacks. None: the method's rule, which is 0 for sums, the mean of
            the remaining points for borda, "min" for logodds, and no contribution for combmax and combmin. "min": the
            contribution to the list's last document (0 for an empty list), which suits `z`, where 0 is the mean. Or a number.

    Raises:
        ParameterError: There are fewer than two systems, or a parameter is out of its range.
        PipelineError: The stages do not fit together.
        InputError: A score is infinite, no probability with `logodds`, or a best score is not positive with `max`.
    """
    stages = [system for system in systems if isinstance(system, Stage)]
    if stages and len(stages) < len(systems):
        raise PipelineError(f"fuse takes stages or runs, not both; {stages[0]!r} is a stage: fuse the run that it makes")
    if isinstance(weights, (list, np.ndarray)):
        weights = tuple(weights)
    if not stages:
        return Fusion.of_runs(*systems, method=method, normalize=normalize, weights=weights, k=k, missing=missing)
    fusion = Fusion(tuple(stages), method, normalize, weights, k, missing)
    fusion.check()
    return fusion


@dataclass(frozen=True)
class Fusion(Stage[Any, Run], name="fuse"):
    """Fuses several stages; the stage that `fuse` returns.

    Args:
        stages: The stages, two or more.
        method: Method of fusion: rrf, isr, borda, logodds, wsum, combsum, combmnz, combmax or combmin.
        normalize: Normalisation of the scores of each list: min-max, max, sum, z, rank or None.
        weights: Numbers from 0 up, one per stage, for wsum, logodds, rrf, isr and borda; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: Contribution of a list to a document that it lacks: None for the method's own rule, "min" or a number.
    """

    variadic = "stages"
    stages: tuple[Ranker, ...]
    method: str = "rrf"
    normalize: str | None = tuned("min-max", [*NORMALIZATIONS])
    weights: Sequence[float] | None = None
    k: float = tuned(60, (10, 100, 10))
    missing: float | str | None = None

    @staticmethod
    def of_runs(*runs: object, **parameters: Unpack[Parameters]) -> Run:
        """Fuse runs, each as `Run.of` accepts it, with the parameters of `fuse`."""
        _check_system_count(len(runs))
        method = Fusion((), **parameters)._method_of(len(runs))
        return fused([Run.of(run) for run in runs], method)

    @property
    def takes(self) -> type[Any]:
        """Input of the stages: Topics or Run."""
        return self.stages[0].takes

    def check(self) -> None:
        _check_system_count(len(self.stages))
        first = self.stages[0]
        for stage in self.stages:
            if not isinstance(stage, Stage):
                raise PipelineError(f"fuse joins stages; {stage!r} is a {type(stage).__name__}")
            if stage.gives is not Run or stage.takes is not first.takes:
                raise PipelineError(
                    f"fuse joins stages that give Run and take the same; {first!r} goes from {first.takes.__name__} to "
                    f"{first.gives.__name__}, {stage!r} from {stage.takes.__name__} to {stage.gives.__name__}"
                )
        self._method_of(len(self.stages))

    def apply(self, value: object, /) -> Run:
        self.check()
        return fused([stage(value) for stage in self.stages], self._method_of(len(self.stages)))

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        return count_of_any(self, self.stages, query, up_to)

    def matches(self, topic: Topic) -> Ints:
        return matches_of_any(self, self.stages, topic)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain a score by the contribution of each stage's own run."""
        self.require(Topics, Run, "explain")
        self.check()
        method = self._method_of(len(self.stages))
        topic = topic_of(query)
        runs = [stage(topic) for stage in self.stages]
        pairs = Pairs.of(runs)
        pair = next((i for i, code in enumerate(pairs.codes.tolist()) if pairs.ids[code] == doc_id), None)
        if pair is None:
            return Explanation(0.0, f"no stage returns '{doc_id}'")
        columns = method.columns(pairs)
        score = float(np.float32(method.scores(pairs, columns)[pair]))
        weights = method.weights or (1.0,) * len(runs)
        parts = []
        list_count = 0
        for i, (stage, run) in enumerate(zip(self.stages, runs, strict=True)):
            contribution, weight = float(columns[i, pair]), weights[i]
            rows = np.flatnonzero(pairs.pair_numbers[i] == pair)
            if len(rows):
                list_count += 1
                part = _list_part(method, contribution, stage, run, int(rows[0]), topic, doc_id)
            elif math.isnan(contribution):
                continue
            else:
                part = Explanation(contribution, f"not among the {run.rows} documents of {stage!r}")
            parts.append(part if weight == 1 else Explanation(weight * contribution, f"{weight:g} times", (part,)))
        combination = method.formula.combination
        if method.formula.counted:
            combination += f", times {list_count} lists with the document"
        return Explanation(score, f"{method.name}: {combination}", tuple(parts))

    def shown(self) -> dict[str, Any]:
        """Return the parameters in the text, always with the method, in the order of the fields."""
        shown = super().shown() | {"method": self.method}
        return {name: shown[name] for name in self.params() if name in shown}

    def _method_of(self, systems: int) -> FusionMethod:
        """Return the checked method for this number of systems."""
        return FusionMethod.checked(self.method, self.normalize, self.weights, self.k, self.missing, systems)


def fused(runs: Sequence[Run], method: FusionMethod) -> Run:
    """Fuse runs by a checked method."""
    pairs = Pairs.of(runs)
    scores = method.scores(pairs, method.columns(pairs))
    return pairs.run(scores, {"parts": [run.provenance for run in runs], "fusion": asdict(method)})


def _check_system_count(systems: int) -> None:
    if systems < 2:
        raise ParameterError(f"fuse needs at least two systems, each as an argument of its own, not {systems}")


def _list_part(
    method: FusionMethod, contribution: float, stage: Ranker, run: Run, row: int, topic: Topic, doc_id: str
) -> Explanation:
    """Return the explanation of a stage's contribution to the document in this row of its run."""
    label = method.label(row + 1, float(run.scores[row]))
    try:
        details: tuple[Explanation, ...] = (stage.explain(topic, doc_id),)
    except PipelineError:
        details = ()
    return Explanation(contribution, f"{label} in {stage!r}", details)
