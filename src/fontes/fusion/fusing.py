"""`fuse`: several runs, or the stages that make them, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from ..core import Explanation, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.pairs import Pairs
from ..core.progress import Report
from ..core.stage import topic_of
from .methods import Formula, FusionMethod
from .normalizations import NORMALIZATIONS


class Parameters(TypedDict, total=False):
    """The parameters of `fuse`."""

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
    """One system out of two or more: of stages a stage, of runs a run.

    The run has every document that one of the systems returns, and the topics of all; a system without a topic has an empty
    list for it. Each list gives each of its documents something, and the method makes one score of what the lists give:

    * `rrf`: the sum of 1 / (k + rank) (Cormack, Clarke and Büttcher, 2009)
    * `isr`: the sum of 1 / rank^2, times the number of lists with the document (Mourão, Martins and Magalhães, 2015)
    * `borda`: the sum of points; with c documents in all lists together the first has c, the next c - 1 and so on
      (Aslam and Montague, 2001)
    * `wsum`, `combsum`: the sum of the normalised scores, with weights and without (Fox and Shaw, 1994)
    * `combmnz`: that sum times the number of lists with the document; `combmax`, `combmin`: the greatest, the least
      (all Fox and Shaw, 1994)

    A normalisation brings the scores of each list to one scale; rrf, isr and borda look at ranks alone.
    `min-max`: (score - least) / (best - least); `max`: score / best; `sum`: score - least, divided by the sum of these; `z`:
    (score - mean) / standard deviation (dividing by n); `rank`: 1 - (rank - 1) / length of the list; None: the scores as they
    are. A list with one score throughout gets 1 from min-max, 1 / length from sum, 0 from z.

    Sums are made in float64 in the order of the systems and rounded to float32.

    Args:
        *systems: Stages that all take Topics or all take Run; or runs, each as `Run.of` accepts it.
        method: One of the methods above.
        normalize: One of the normalisations above, or None.
        weights: Numbers from 0 up, one a system, which multiply what the lists give, in `wsum`, `rrf`, `isr` and `borda`; None
            is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: What a list gives a document that it does not have. None is the method's own rule: 0 for sums; the mean of the
            points that are left over for borda; and combmax and combmin leave the list out. "min" is what the list gives its
            last document (0 if it is empty), which suits `z`, where 0 is the mean. A number is given as it is.

    Returns:
        A `Fusion` of stages, or the run of runs.

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
    """Several stages as one: what `fuse` makes of stages, with the same parameters.

    Args:
        stages: The stages, two or more.
        method: How what the lists give becomes one score: rrf, isr, borda, wsum, combsum, combmnz, combmax or combmin.
        normalize: How the scores of each list are brought to one scale: min-max, max, sum, z, rank or None.
        weights: Numbers from 0 up, one a stage, for wsum, rrf, isr and borda; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: What a list gives a document that it does not have: None for the method's own rule, "min" or a number.
    """

    variadic = "stages"
    stages: tuple[Stage[Any, Run], ...]
    method: str = "rrf"
    normalize: str | None = field(default="min-max", metadata={"range": [*NORMALIZATIONS]})
    weights: Sequence[float] | None = None
    k: float = field(default=60, metadata={"range": (10, 100, 10)})
    missing: float | str | None = None

    @staticmethod
    def of_runs(*runs: object, **parameters: Unpack[Parameters]) -> Run:
        """The fusion of runs, each as `Run.of` accepts it; otherwise as `fuse`."""
        _check_number(len(runs))
        method = Fusion((), **parameters)._method_of(len(runs))
        return fused([Run.of(run) for run in runs], method)

    @property
    def takes(self) -> type[Any]:
        """What the stages take: Topics or Run."""
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

    def apply(self, value: Any, progress: Report, /) -> Run:
        self.check()
        return fused([stage(value, progress=progress) for stage in self.stages], self._method_of(len(self.stages)))

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """What each stage gives the document, from the stages' own runs; it comes to the score in the run."""
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
        rows = [np.flatnonzero(places == pair).tolist() for places in pairs.places]
        parts = []
        for i, (stage, run, row) in enumerate(zip(self.stages, runs, rows, strict=True)):
            contribution, weight = float(columns[i, pair]), 1.0 if method.weights is None else method.weights[i]
            if not row and np.isnan(contribution):
                continue
            part = _part(method, contribution, stage, run, row[0] if row else None, topic, doc_id)
            parts.append(part if weight == 1 else Explanation(weight * contribution, f"{weight:g} times", (part,)))
        return Explanation(score, f"{method.name}: {_joining(method.formula, sum(map(bool, rows)))}", tuple(parts))

    def shown(self) -> dict[str, Any]:
        """The method in any case."""
        shown = super().shown() | {"method": self.method}
        return {name: shown[name] for name in self.params() if name in shown}

    def _method_of(self, systems: int) -> FusionMethod:
        """The method with its parameters, for a number of systems. Raises ParameterError as `fuse` does."""
        return FusionMethod.checked(self.method, self.normalize, self.weights, self.k, self.missing, systems)


def fused(runs: Sequence[Run], method: FusionMethod) -> Run:
    """The fusion of runs by a method that is checked."""
    pairs = Pairs.of(runs)
    scores = method.scores(pairs, method.columns(pairs))
    return pairs.run(scores, {"parts": [run.provenance for run in runs], "fusion": asdict(method)})


def _check_number(systems: int) -> None:
    if systems < 2:
        raise ParameterError(f"fuse takes two systems or more, each as an argument of its own, and was given {systems}")


def _part(
    method: FusionMethod,
    contribution: float,
    stage: Stage[Any, Run],
    run: Run,
    row: int | None,
    topic: Topic,
    doc_id: str,
) -> Explanation:
    """What one stage gives, and why; `row` is where its run has the document, if it has it."""
    if row is None:
        return Explanation(contribution, f"not among the {run.rows} documents of {stage!r}")
    label = method.label(row + 1, float(run.scores[row]))
    try:
        own: tuple[Explanation, ...] = (stage.explain(topic, doc_id),)
    except PipelineError:
        own = ()
    return Explanation(contribution, f"{label} in {stage!r}", own)


def _joining(formula: Formula, lists: int) -> str:
    """How the parts come to one score, of a document that so many lists have."""
    return f"{formula.joining}, times {lists} lists with the document" if formula.counted else formula.joining
