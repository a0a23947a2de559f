"""`fuse`: fusion of runs and stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from ..core import Explanation, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.pairs import Pairs
from ..core.progress import Report
from ..core.stage import topic_of
from .methods import NORMALIZATIONS, Formula, FusionMethod


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
        weights: Numbers from 0 up, one a system, for `wsum`, `rrf`, `isr` and `borda`; None is 1 for each.
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
        weights: Numbers from 0 up, one a stage, for wsum, rrf, isr and borda; None is 1 for each.
        k: The constant of rrf, from 0 up.
        missing: Contribution of a list to a document that it lacks: None for the method's own rule, "min" or a number.
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

    def apply(self, value: Any, progress: Report, /) -> Run:
        self.check()
        return fused([stage(value, progress=progress) for stage in self.stages], self._method_of(len(self.stages)))

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
        """Parameters, always with the method."""
        shown = super().shown() | {"method": self.method}
        return {name: shown[name] for name in self.params() if name in shown}

    def _method_of(self, systems: int) -> FusionMethod:
        """The checked method for a number of systems. Raises ParameterError as `fuse` does."""
        return FusionMethod.checked(self.method, self.normalize, self.weights, self.k, self.missing, systems)


def fused(runs: Sequence[Run], method: FusionMethod) -> Run:
    """Fuse runs by a checked method."""
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
    """Contribution of one stage; `row` is the document's row in its run, if any."""
    if row is None:
        return Explanation(contribution, f"not among the {run.rows} documents of {stage!r}")
    label = method.label(row + 1, float(run.scores[row]))
    try:
        own: tuple[Explanation, ...] = (stage.explain(topic, doc_id),)
    except PipelineError:
        own = ()
    return Explanation(contribution, f"{label} in {stage!r}", own)


def _joining(formula: Formula, lists: int) -> str:
    return f"{formula.joining}, times {lists} lists with the document" if formula.counted else formula.joining
