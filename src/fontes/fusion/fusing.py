"""`fuse`: several runs, or the stages that make them, as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

import numpy as np

from ..core import Explanation, ParameterError, PipelineError, Run, Stage, Topic, Topics
from ..core.pairs import Pairs
from ..core.progress import Report
from .methods import COUNTED, RANK_METHODS, SUMMED, Method


@overload
def fuse(  # type: ignore[overload-overlap]
    *systems: Stage[Any, Run],
    method: str = ...,
    normalize: str | None = ...,
    weights: Sequence[float] | None = ...,
    k: float = ...,
    missing: float | str | None = ...,
) -> Fusion: ...
@overload
def fuse(
    *systems: object,
    method: str = ...,
    normalize: str | None = ...,
    weights: Sequence[float] | None = ...,
    k: float = ...,
    missing: float | str | None = ...,
) -> Run: ...
def fuse(
    *systems: object,
    method: str = "rrf",
    normalize: str | None = "min-max",
    weights: Sequence[float] | None = None,
    k: float = 60,
    missing: float | str | None = None,
) -> Fusion | Run:
    """One system out of two or more: of stages a stage, of runs a run.

    Runs are what `Run.of` accepts, or paths of files. Stages all take Topics or all take Run. The run has every document
    that one of the systems returns, and the topics of all; a system without a topic has an empty list for it.

    Each list gives each of its documents something, and the method makes one score of what the lists give:

    * `rrf`: the sum of 1 / (k + rank) (Cormack, Clarke and Büttcher, 2009)
    * `isr`: the sum of 1 / rank^2, times the number of lists with the document (Mourão, Martins and Magalhães, 2015)
    * `borda`: the sum of points; with c documents in all lists together the first has c, the next c - 1 and so on
      (Aslam and Montague, 2001)
    * `wsum`, `combsum`: the sum of the normalised scores, with weights and without (Fox and Shaw, 1994)
    * `combmnz`: that sum times the number of lists with the document; `combmax`, `combmin`: the greatest, the least
      (all Fox and Shaw, 1994)

    `weights`, one a system, from 0 up, multiply what the lists give, in `wsum`, `rrf`, `isr` and `borda`; None is 1 for each.

    `normalize` brings the scores of each list to one scale; rrf, isr and borda look at ranks only and are not touched by it.
    `min-max`: (score - least) / (best - least); `max`: score / best; `sum`: score - least, divided by the sum of these; `z`:
    (score - mean) / standard deviation (dividing by n); `rank`: 1 - (rank - 1) / length of the list; None: the scores as they
    are. A list with one score throughout gets 1 from min-max, 1 / length from sum, 0 from z.

    `missing` is what a list gives a document that it does not have. None is the method's own rule: 0 for sums; the mean of the
    points that are left over for borda; and combmax and combmin leave the list out. "min" is what the list gives its last
    document (0 if it is empty), which suits `z`, where 0 is the mean. A number is given as it is.

    Sums are made in float64 in the order of the systems and rounded to float32. Raises ParameterError for fewer than two
    systems and for parameters out of their range, PipelineError for stages that do not fit together, and InputError for an
    infinite score, or a best score that is not positive with `max`.
    """
    if len(systems) < 2:
        raise ParameterError(f"fuse takes two systems or more, each as an argument of its own, and was given {len(systems)}")
    stages = [system for system in systems if isinstance(system, Stage)]
    listed = weights if weights is None or not isinstance(weights, (list, np.ndarray)) else tuple(weights)
    if len(stages) == len(systems):
        return Fusion(_fitting(stages), method, normalize, listed, k, missing)
    if stages:
        raise PipelineError(f"fuse takes stages or runs, not both; {stages[0]!r} is a stage: fuse the run that it makes")
    return fused([_run(system) for system in systems], Method.checked(method, normalize, listed, k, missing, len(systems)))


@dataclass(frozen=True, repr=False)
class Fusion(Stage[Any, Run], name="fuse"):
    """Several stages as one: what `fuse` makes of stages. The parameters are those of `fuse`; `with_` changes them."""

    stages: tuple[Stage[Any, Run], ...]
    method: str = "rrf"
    normalize: str | None = "min-max"
    weights: Sequence[float] | None = None
    k: float = 60
    missing: float | str | None = None

    @property
    def takes(self) -> type[Any]:
        """What the stages take: Topics or Run."""
        return self.stages[0].takes

    def apply(self, given: Any, progress: Report, /) -> Run:
        checked = self._checked
        return fused([stage(given) for stage in _fitting(self.stages)], checked)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """What each stage gives the document, from the stages' own runs; it comes to the score in the run."""
        self.require(Topics, Run, "explain")
        method = self._checked
        topic = query if isinstance(query, Topic) else Topic("1", query)
        runs = [stage(topic) for stage in self.stages]
        pairs = Pairs.of(runs)
        at = next((i for i, code in enumerate(pairs.codes.tolist()) if pairs.ids[code] == doc_id), None)
        if at is None:
            return Explanation(0.0, f"no stage returns '{doc_id}'")
        given = method.given(pairs)
        columns = method.columns(pairs, given)
        score = float(np.float32(method.scores(pairs, columns)[at]))
        parts = []
        for i, (stage, run) in enumerate(zip(self.stages, runs, strict=True)):
            value, weight = float(columns[i, at]), 1.0 if method.weights is None else method.weights[i]
            found = np.flatnonzero(pairs.places[i] == at)
            if not len(found) and np.isnan(value):
                continue
            row = int(found[0]) if len(found) else -1
            part = _part(method, value, stage, run, row, topic, doc_id)
            parts.append(part if weight == 1 else Explanation(weight * value, f"{weight:g} times", (part,)))
        held = sum(bool(np.any(place == at)) for place in pairs.places)
        return Explanation(score, f"{method.name}: {_joining(method, held)}", tuple(parts))

    @property
    def _checked(self) -> Method:
        return Method.checked(self.method, self.normalize, self.weights, self.k, self.missing, len(self.stages))

    def __repr__(self) -> str:
        shown = [*map(repr, self.stages), f"method={self.method!r}"]
        if self.method == "rrf":
            shown.append(f"k={self.k}")
        if self.method not in RANK_METHODS:
            shown.append(f"normalize={self.normalize!r}")
        if self.weights is not None:
            shown.append(f"weights=({', '.join(f'{w:g}' for w in self.weights)})")
        if self.missing is not None:
            shown.append(f"missing={self.missing!r}")
        return f"fuse({', '.join(shown)})"


def fused(runs: Sequence[Run], method: Method) -> Run:
    """The fusion of runs by a method that is checked."""
    pairs = Pairs.of(runs)
    columns = method.columns(pairs, method.given(pairs))
    return pairs.run(method.scores(pairs, columns), {"parts": [run.provenance for run in runs], "fusion": asdict(method)})


def _fitting(stages: Sequence[Stage[Any, Run]]) -> tuple[Stage[Any, Run], ...]:
    """The stages. Raises PipelineError unless all give Run and take the same."""
    first = stages[0]
    for stage in stages:
        if stage.gives is not Run or stage.takes is not first.takes:
            raise PipelineError(
                f"fuse joins stages that give Run and take the same; {first!r} goes from {first.takes.__name__} to "
                f"{first.gives.__name__}, {stage!r} from {stage.takes.__name__} to {stage.gives.__name__}"
            )
    return tuple(stages)


def _run(given: object) -> Run:
    if isinstance(given, (str, os.PathLike)):
        from ..formats import read_run

        return read_run(os.fspath(given))
    return Run.of(given)


def _part(method: Method, value: float, stage: Stage[Any, Run], run: Run, row: int, topic: Topic, doc_id: str) -> Explanation:
    """What one stage gives, and why; `row` is where its run has the document, or -1."""
    if row < 0:
        return Explanation(value, f"not among the {run.rows} documents of {stage!r}")
    score = float(run.scores[row])
    match method.name:
        case "rrf":
            label = f"1 / ({method.k:g} + {row + 1}): rank {row + 1}"
        case "isr":
            label = f"1 / {row + 1}^2: rank {row + 1}"
        case "borda":
            label = f"points of rank {row + 1}"
        case _:
            label = f"{method.normalize} of {score:g}" if method.normalize else "score"
    try:
        own: tuple[Explanation, ...] = (stage.explain(topic, doc_id),)
    except PipelineError:
        own = ()
    return Explanation(value, f"{label} in {stage!r}", own)


def _joining(method: Method, held: int) -> str:
    """How the parts come to one score."""
    if method.name not in SUMMED:
        return "the greatest of the parts" if method.name == "combmax" else "the least of the parts"
    return f"sum of the parts, times {held} lists with the document" if method.name in COUNTED else "sum of the parts"
