"""Fusion of runs and stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from ..core import Explanation, InputError, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.pairs import Floats, Ints, Pairs
from ..core.parameters import tuned
from ..core.progress import ProgressCallback
from ..core.registry import nearest
from ..core.stage import count_of_any, matches_of_any, topic_of


def reciprocal_rank(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """1 / (k + rank)."""
    return 1 / (k + ranks)


def inverse_square_rank(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """1 / rank^2."""
    return 1 / ranks**2


def points(ranks: Floats, candidates: Ints, k: float) -> Floats:
    """Borda points: with c documents in all lists together, c for the first, c - 1 for the next and so on."""
    return candidates - ranks + 1


def remaining_points(candidates: Ints, sizes: Ints) -> Floats:
    """Mean of the Borda points that a list has not assigned."""
    return (candidates.astype(np.float64) - sizes + 1) / 2


@dataclass(frozen=True)
class Formula:
    """Formula of a method.

    Args:
        source: Publication.
        of_ranks: Contribution, from ranks, the number of documents in all lists of the topic, and k; None for a method that
            uses normalised scores.
        label: Explanation of `of_ranks`, with {rank} and {k}.
        best: The ufunc of a maximum or minimum; None for a sum.
        joining: Explanation of the combination.
        counted: Whether to multiply the sum by the number of lists with the document.
        weighted: Whether the systems may have weights.
        missing: Contribution to missing documents, from the number of documents in all lists and in this one; None for 0 in a
            sum, and for no contribution to a maximum or minimum.
    """

    source: str
    of_ranks: Callable[[Floats, Ints, float], Floats] | None = None
    label: str = ""
    best: np.ufunc | None = None
    joining: str = "sum of the parts"
    counted: bool = False
    weighted: bool = False
    missing: Callable[[Ints, Ints], Floats] | None = None


_FOX = "Fox and Shaw, 1994"
METHODS: dict[str, Formula] = {
    "rrf": Formula("Cormack, Clarke and Büttcher, 2009", reciprocal_rank, "1 / ({k:g} + {rank}): rank {rank}", weighted=True),
    "isr": Formula(
        "Mourão, Martins and Magalhães, 2015", inverse_square_rank, "1 / {rank}^2: rank {rank}", counted=True, weighted=True
    ),
    "borda": Formula("Aslam and Montague, 2001", points, "points of rank {rank}", weighted=True, missing=remaining_points),
    "wsum": Formula(_FOX, weighted=True),
    "combsum": Formula(_FOX),
    "combmnz": Formula(_FOX, counted=True),
    "combmax": Formula(_FOX, best=np.fmax, joining="the greatest of the parts"),
    "combmin": Formula(_FOX, best=np.fmin, joining="the least of the parts"),
}
WEIGHTED = tuple(name for name, formula in METHODS.items() if formula.weighted)


@dataclass(frozen=True)
class FusionMethod:
    """A method with the parameters of `fuse`; create it with `checked`."""

    name: str = "rrf"
    normalize: str | None = "min-max"
    weights: tuple[float, ...] | None = None
    k: float = 60
    missing: float | str | None = None

    @classmethod
    def checked(cls, name: Any, normalize: Any, weights: Any, k: Any, missing: Any, systems: int | None = None) -> FusionMethod:
        """Check parameters for a number of systems; raise ParameterError."""
        if name not in METHODS:
            raise ParameterError(f"there is no fusion method {name!r}; {nearest(str(name), METHODS)}")
        if normalize is not None and normalize not in NORMALIZATIONS:
            raise ParameterError(f"there is no normalisation {normalize!r}; there are {', '.join(NORMALIZATIONS)} and None")
        if not _finite(k) or k < 0:
            raise ParameterError(f"k, the constant of rrf, must be a number from 0 up, not {k!r}")
        if missing is not None and missing != "min" and not _finite(missing):
            raise ParameterError(f"missing, the contribution to missing documents, is None, 'min' or a number, not {missing!r}")
        return cls(name, normalize, _weights(name, weights, systems), k, missing)

    @property
    def formula(self) -> Formula:
        return METHODS[self.name]

    def columns(self, pairs: Pairs) -> NDArray[np.float64]:
        """Unweighted contribution of each run to each pair, float64 (runs, pairs); NaN for no contribution.

        Raises InputError for an infinite score, or one that does not suit the normalisation.
        """
        table = np.empty((len(pairs.runs), len(pairs)), dtype=np.float64)
        for i, row in enumerate(table):
            values = self._contributions(pairs, i)
            row[:] = self._fill(pairs, i, values)
            row[pairs.pair_numbers[i]] = values
        return table

    def scores(self, pairs: Pairs, columns: NDArray[np.float64]) -> Floats:
        """Score of each pair, float64: the columns combined in the order of the systems."""
        if self.formula.best is not None:
            joined: Floats = self.formula.best.reduce(columns, axis=0)
            return joined
        return weighted(columns, self.weights or (1.0,) * len(columns), self.times(pairs))

    def times(self, pairs: Pairs) -> Ints | None:
        """Number of runs with each pair, for a method that multiplies by it."""
        if not self.formula.counted:
            return None
        return np.bincount(np.concatenate(pairs.pair_numbers), minlength=len(pairs))

    def label(self, rank: int, score: float) -> str:
        """Explanation of the contribution to a document of this rank and score."""
        if self.formula.of_ranks is not None:
            return self.formula.label.format(k=self.k, rank=rank)
        return f"{self.normalize} of {score:g}" if self.normalize else "score"

    def _contributions(self, pairs: Pairs, i: int) -> Floats:
        run = pairs.runs[i]
        lists = RankedLists(run, f"system {i + 1}")
        if self.formula.of_ranks is None:
            return normalized(lists, self.normalize)
        candidates = np.repeat(pairs.sizes[pairs.numbers[i]], np.diff(run.bounds))
        return self.formula.of_ranks(lists.ranks, candidates, self.k)

    def _fill(self, pairs: Pairs, i: int, values: Floats) -> Any:
        """Contribution of the run to pairs that it lacks: a number, or one per pair."""
        run, numbers = pairs.runs[i], pairs.numbers[i]
        sizes = np.diff(run.bounds)
        if self.missing is None and self.formula.missing is not None:
            topic_sizes = np.zeros(len(pairs.topics), dtype=np.int64)
            topic_sizes[numbers] = sizes
            return pairs.of_topics(self.formula.missing(pairs.sizes, topic_sizes))
        if self.missing is None:
            return 0.0 if self.formula.best is None else math.nan
        if self.missing != "min":
            return float(self.missing)
        least = np.zeros(len(pairs.topics))
        filled = np.flatnonzero(sizes)
        least[numbers[filled]] = values[run.bounds[1:][filled] - 1]
        return pairs.of_topics(least)


def weighted(columns: Sequence[Floats] | NDArray[np.float64], weights: Sequence[float], times: Ints | None = None) -> Floats:
    """Weighted sum of the columns, float64, in their order, optionally multiplied by `times`."""
    total = np.zeros(len(columns[0]), dtype=np.float64)
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    if times is not None:
        total *= times
    return total


def _weights(name: str, weights: Any, systems: int | None) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if not METHODS[name].weighted:
        raise ParameterError(f"{name} takes no weights; {', '.join(WEIGHTED)} do")
    try:
        listed = tuple(weights)
    except TypeError:
        raise ParameterError(f"weights are a list of numbers, one a system, not {weights!r}") from None
    for weight in listed:
        if not _finite(weight) or weight < 0:
            raise ParameterError(f"a weight must be a number from 0 up, not {weight!r}")
    if systems is not None and len(listed) != systems:
        raise ParameterError(f"there are {len(listed)} weights for {systems} systems; give one for each")
    return tuple(map(float, listed))


def _finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


class RankedLists:
    """The lists of a run end to end, one for each topic with documents; errors call the run `name`.

    Attributes:
        scores: Score of each row, float64, best to worst in each list.
        ranks: Rank of each row, float64, from 1.
        first: First row of each list.
        size: Number of rows of each list.
        best: Best score of each list.
        least: Worst score of each list.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run, self._name = run, name
        sizes = np.diff(run.bounds)
        filled = sizes > 0
        self.scores: Floats = run.scores.astype(np.float64)
        self.ranks: Floats = (np.arange(1, run.rows + 1) - np.repeat(run.bounds[:-1], sizes)).astype(np.float64)
        self.first: Ints = run.bounds[:-1][filled]
        self.size: Ints = sizes[filled]
        self.best: Floats = self.scores[self.first]
        self.least: Floats = self.scores[run.bounds[1:][filled] - 1]

    def per_row(self, of_lists: Any) -> Any:
        """Repeat one value per list for each row."""
        return np.repeat(of_lists, self.size)

    def sums(self, of_rows: Floats) -> Floats:
        """Sum over each list."""
        return np.add.reduceat(of_rows, self.first) if len(self.first) else self.best

    def error(self, row: int, problem: str) -> InputError:
        """Error for a problem with the score of a row."""
        topic = list(self._run.topics)[int(self._run.topic_numbers[row])]
        return InputError(f"{self._name}, topic '{topic}', document '{self._run.ids[int(self._run.codes[row])]}': {problem}")


def min_max(lists: RankedLists) -> Floats:
    """(score - least) / (best - least); 1 in a list of equal scores."""
    return _ratio(lists.scores - lists.per_row(lists.least), lists.per_row(lists.best - lists.least), 1.0)


def by_max(lists: RankedLists) -> Floats:
    """Score / best; raises InputError for a best score that is not positive."""
    if len(lists.best) and lists.best.min() <= 0:
        problem = f"max divides by the best score, which is {lists.best.min():g} here; normalise by min-max"
        raise lists.error(int(lists.first[np.argmin(lists.best)]), problem)
    scores: Floats = lists.scores / lists.per_row(lists.best)
    return scores


def by_sum(lists: RankedLists) -> Floats:
    """Score - least, divided by the sum of these over the list; 1 / length in a list of equal scores."""
    above = lists.scores - lists.per_row(lists.least)
    return _ratio(above, lists.per_row(lists.sums(above)), 1 / lists.per_row(lists.size))


def z_score(lists: RankedLists) -> Floats:
    """(score - mean) / standard deviation, which divides by n; 0 in a list of equal scores."""
    apart = lists.scores - lists.per_row(lists.sums(lists.scores) / lists.size)
    deviation = np.sqrt(lists.sums(apart**2) / lists.size)
    return _ratio(apart, lists.per_row(np.where(lists.best > lists.least, deviation, 0.0)), 0.0)


def by_rank(lists: RankedLists) -> Floats:
    """1 - (rank - 1) / length of the list."""
    scores: Floats = 1 - (lists.ranks - 1) / lists.per_row(lists.size).astype(np.float64)
    return scores


NORMALIZATIONS: dict[str, Callable[[RankedLists], Floats]] = {
    "min-max": min_max,
    "max": by_max,
    "sum": by_sum,
    "z": z_score,
    "rank": by_rank,
}


def normalized(lists: RankedLists, normalization: str | None) -> Floats:
    """Normalise the scores of each list, float64; None leaves them unchanged. Raises InputError as `FusionMethod.columns`."""
    if not np.isfinite(lists.scores).all():
        raise lists.error(int(np.argmin(np.isfinite(lists.scores))), "the score is infinite; fuse by rank")
    return lists.scores if normalization is None else NORMALIZATIONS[normalization](lists)


def _ratio(above: Floats, below: Floats, constant: Any) -> Floats:
    """above / below; `constant` for rows of a list of equal scores, where below is 0."""
    out = np.broadcast_to(np.asarray(constant, dtype=np.float64), above.shape).copy()
    return np.divide(above, below, out=out, where=below > 0)


class Parameters(TypedDict, total=False):
    """Parameters of `fuse`."""

    method: str
    normalize: str | None
    weights: Sequence[float] | None
    k: float
    missing: float | str | None


@overload
def fuse(*systems: Stage[Any, Run], **parameters: Unpack[Parameters]) -> Fusion: ...  # type: ignore[overload-overlap]
@overload
def fuse(*systems: object, **parameters: Unpack[Parameters]) -> Run: ...
def fuse(
    *systems: object,
    method: str = "rrf",
    normalize: str | None = "min-max",
    weights: Sequence[float] | None = None,
    k: float = 60,
    missing: float | str | None = None,
) -> Fusion | Run:
    """Fuse two or more systems: stages into a stage, runs into a run.

    The result has all documents and topics of the systems; a system without a topic has an empty list for it. Methods, from the
    contributions of the lists:

    * `rrf`: the sum of 1 / (k + rank) (Cormack, Clarke and Büttcher, 2009)
    * `isr`: the sum of 1 / rank^2, times the number of lists with the document (Mourão, Martins and Magalhães, 2015)
    * `borda`: the sum of points; with c documents in all lists together the first has c, the next c - 1 and so on
      (Aslam and Montague, 2001)
    * `wsum`, `combsum`: the sum of the normalised scores, with weights and without (Fox and Shaw, 1994)
    * `combmnz`: that sum times the number of lists with the document; `combmax`, `combmin`: the greatest, the least
      (all Fox and Shaw, 1994)

    Normalisations scale the scores of each list; rrf, isr and borda use ranks alone. `min-max`: (score - least) / (best -
    least); `max`: score / best; `sum`: score - least, divided by the sum of these; `z`: (score - mean) / standard deviation
    (dividing by n); `rank`: 1 - (rank - 1) / length of the list; None: unchanged. A list of equal scores gets 1 from min-max, 1
    / length from sum, 0 from z.

    Sums are computed in float64 in the order of the systems and rounded to float32.

    Args:
        *systems: Stages that all take Topics or all take Run; or runs, each as `Run.of` accepts it.
        method: One of the methods above.
        normalize: One of the normalisations above, or None.
        weights: Numbers from 0 up, one per system, for `wsum`, `rrf`, `isr` and `borda`; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: Contribution of a list to a document that it lacks. None: the method's rule, 0 for sums; the mean of the
            remaining points for borda; none for combmax and combmin. "min": that of the list's last document (0 if it is
            empty), which suits `z`, where 0 is the mean. Or a number.

    Raises:
        ParameterError: There are fewer than two systems, or a parameter is out of its range.
        PipelineError: The stages do not fit together.
        InputError: A score is infinite, or a best score is not positive with `max`.
    """
    stages = [system for system in systems if isinstance(system, Stage)]
    if stages and len(stages) < len(systems):
        raise PipelineError(f"fuse takes stages or runs, not both; {stages[0]!r} is a stage: fuse the run that it makes")
    listed = tuple(weights) if isinstance(weights, (list, np.ndarray)) else weights
    if not stages:
        return Fusion.of_runs(*systems, method=method, normalize=normalize, weights=listed, k=k, missing=missing)
    fusion = Fusion(tuple(stages), method, normalize, listed, k, missing)
    fusion.check()
    return fusion


@dataclass(frozen=True)
class Fusion(Stage[Any, Run], name="fuse"):
    """Fuses several stages; the stage that `fuse` returns.

    Args:
        stages: The stages, two or more.
        method: Method of fusion: rrf, isr, borda, wsum, combsum, combmnz, combmax or combmin.
        normalize: Normalisation of the scores of each list: min-max, max, sum, z, rank or None.
        weights: Numbers from 0 up, one per stage, for wsum, rrf, isr and borda; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: Contribution of a list to a document that it lacks: None for the method's own rule, "min" or a number.
    """

    variadic = "stages"
    stages: tuple[Stage[Any, Run], ...]
    method: str = "rrf"
    normalize: str | None = tuned("min-max", [*NORMALIZATIONS])
    weights: Sequence[float] | None = None
    k: float = tuned(60, (10, 100, 10))
    missing: float | str | None = None

    @staticmethod
    def of_runs(*runs: object, **parameters: Unpack[Parameters]) -> Run:
        """Fuse runs, each as `Run.of` accepts it; otherwise as `fuse`."""
        _check_number(len(runs))
        method = Fusion((), **parameters)._method_of(len(runs))
        return fused([Run.of(run) for run in runs], method)

    @property
    def takes(self) -> type[Any]:
        """Input of the stages: Topics or Run."""
        return self.stages[0].takes

    def check(self) -> None:
        _check_number(len(self.stages))
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

    def apply(self, value: Any, progress: ProgressCallback, /) -> Run:
        self.check()
        return fused([stage(value, progress=progress) for stage in self.stages], self._method_of(len(self.stages)))

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        return count_of_any(self, self.stages, query, up_to)

    def matches(self, topic: Topic) -> NDArray[np.integer[Any]]:
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
        rows = [np.flatnonzero(pair_numbers == pair).tolist() for pair_numbers in pairs.pair_numbers]
        parts = []
        for i, (stage, run, row) in enumerate(zip(self.stages, runs, rows, strict=True)):
            contribution, weight = float(columns[i, pair]), 1.0 if method.weights is None else method.weights[i]
            if not row and np.isnan(contribution):
                continue
            part = _part(method, contribution, stage, run, row[0] if row else None, topic, doc_id)
            parts.append(part if weight == 1 else Explanation(weight * contribution, f"{weight:g} times", (part,)))
        return Explanation(score, f"{method.name}: {_joining(method.formula, sum(map(bool, rows)))}", tuple(parts))

    def shown(self) -> dict[str, Any]:
        """Parameters, always with the method."""
        shown = super().shown() | {"method": self.method}
        return {name: shown[name] for name in self.params() if name in shown}

    def _method_of(self, systems: int) -> FusionMethod:
        """The checked method for a number of systems."""
        return FusionMethod.checked(self.method, self.normalize, self.weights, self.k, self.missing, systems)


def fused(runs: Sequence[Run], method: FusionMethod) -> Run:
    """Fuse runs by a checked method."""
    pairs = Pairs.of(runs)
    scores = method.scores(pairs, method.columns(pairs))
    return pairs.run(scores, {"parts": [run.provenance for run in runs], "fusion": asdict(method)})


def _check_number(systems: int) -> None:
    if systems < 2:
        raise ParameterError(f"fuse needs at least two systems, each as an argument of its own, not {systems}")


def _part(
    method: FusionMethod, contribution: float, stage: Stage[Any, Run], run: Run, row: int | None, topic: Topic, doc_id: str
) -> Explanation:
    """Contribution of one stage; `row` is the document's row in its run, if any."""
    if row is None:
        return Explanation(contribution, f"not among the {run.rows} documents of {stage!r}")
    label = method.label(row + 1, float(run.scores[row]))
    try:
        details: tuple[Explanation, ...] = (stage.explain(topic, doc_id),)
    except PipelineError:
        details = ()
    return Explanation(contribution, f"{label} in {stage!r}", details)


def _joining(formula: Formula, lists: int) -> str:
    return f"{formula.joining}, times {lists} lists with the document" if formula.counted else formula.joining
