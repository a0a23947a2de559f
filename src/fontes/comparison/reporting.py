"""`report_of`: runs side by side, on the same judgments, with the statistics that a paper needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..core import ParameterError, Qrels, Run, Topic, Topics
from ..measures.agreement import check_agreement, judgments_of
from ..measures.evaluation import Evaluation, measured
from ..measures.formulas import Judged, R
from ..measures.measure import Measure
from ..measures.names import parse_all
from .report import Candidates, Report, System
from .testing import Columns, Testing


@dataclass(frozen=True)
class SystemRun:
    """A run and how it came about.

    Args:
        run: The run.
        description: What its stage prints, or its file.
        seconds: How long all steps took together for all topics, when they were run; None where nobody measured.
        candidates: The run that the last reranker was given, where there was one.
        cached: Whether the run was made earlier.
    """

    run: Run
    description: str = ""
    seconds: float | None = None
    candidates: Run | None = None
    cached: bool = False


def report_of(
    runs: Mapping[str, SystemRun | object],
    qrels: object,
    measures: str | Measure | Iterable[str | Measure],
    *,
    topics: Topics | None = None,
    baseline: str | None = None,
    testing: Testing | None = None,
) -> Report:
    """Measures runs, and tests whether their differences are more than chance.

    Values are over all judged topics, as for `evaluate`. No stage is run; `fontes.compare` does that.

    Args:
        runs: By name of the system, what `Run.of` accepts, or a `SystemRun`.
        qrels: What `Qrels.of` accepts.
        measures: As for `evaluate`.
        topics: Topics whose texts the report shows, where the runs do not know them.
        baseline: The name of the system that the others are tested against; without one, all pairs are tested.
        testing: How differences are tested; by default with the t-test and Holm's correction.

    Raises:
        InputError: A run cannot be read, or the qrels have no judgments, or none of a run's topics or documents.
        ParameterError: There is no run, no such baseline, or a measure is unknown.
    """
    parsed = parse_all(measures)
    testing = testing or Testing()
    judgments = judgments_of(qrels)
    if not runs:
        raise ParameterError("there is no run to compare; give runs in a mapping from name to run")
    systems = {name: run if isinstance(run, SystemRun) else SystemRun(Run.of(run)) for name, run in runs.items()}
    pairs = _pairs(list(systems), baseline)
    deepest = max(_depth(system.run) for system in systems.values())
    judged = {measure: at for measure in parsed if (at := _judged_at(measure, deepest)) is not None}
    for name, system in systems.items():
        check_agreement(system.run, judgments, f"the run '{name}'")
    evaluations = {name: measured(s.run, judgments, [*parsed, *judged.values()]) for name, s in systems.items()}
    values = {measure: np.stack([e.array(measure) for e in evaluations.values()], axis=1) for measure in parsed}
    for array in values.values():
        array.setflags(write=False)
    columns = Columns.of(values, list(systems), testing.seed)
    return Report(
        systems={name: _system(name, s, evaluations[name], judgments) for name, s in systems.items()},
        measures=tuple(parsed),
        judged=judged,
        topics=_with_texts(judgments, [topics or Topics(), *(s.run.topics for s in systems.values())]),
        qrels=judgments,
        values=values,
        intervals=columns.intervals(testing.alpha),
        comparisons=columns.comparisons(pairs, testing),
        baseline=baseline,
        testing=testing,
    )


def _pairs(names: list[str], baseline: str | None) -> list[tuple[int, int]]:
    """All systems against the baseline, or each against those before it, by their places."""
    if baseline is None:
        return [(i, j) for i in range(len(names)) for j in range(i)]
    if baseline not in names:
        raise ParameterError(f"the baseline '{baseline}' is none of the systems; there are {', '.join(names)}")
    return [(i, names.index(baseline)) for i, name in enumerate(names) if name != baseline]


def _depth(run: Run) -> int:
    """The length of the longest ranking."""
    return int(np.diff(run.bounds).max(initial=0))


def _judged_at(measure: Measure, deepest: int) -> Measure | None:
    """Judged at the cutoff of the measure; where it has none, at the end of the longest ranking. None for counts."""
    if measure.summed or measure.name == "Judged":
        return None
    ranks = measure.cutoff if isinstance(measure.cutoff, int) else deepest
    return Judged @ max(ranks, 1)


def _system(name: str, system: SystemRun, evaluation: Evaluation, qrels: Qrels) -> System:
    """What the report holds of a system."""
    candidates = None
    if system.candidates is not None and (depth := _depth(system.candidates)):
        means = measured(system.candidates, qrels, [R, Judged @ depth])
        # Documents of another kind, such as passages, have no judgments, and no recall.
        candidates = Candidates(depth, means[R]) if means[Judged @ depth] else None
    topics = len(system.run.topics)
    seconds = system.seconds / topics if system.seconds is not None and topics else None
    return System(name, system.run, evaluation, system.description, seconds, candidates, system.cached)


def _with_texts(qrels: Qrels, sources: Iterable[Topics]) -> Topics:
    """The judged topics, with their texts from the first source that knows them."""
    known: dict[str, Topic] = {}
    for source in sources:
        for topic in source.values():
            if topic.text and topic.id not in known:
                known[topic.id] = topic
    return Topics(known.get(topic_id) or Topic(topic_id, "") for topic_id in qrels)
