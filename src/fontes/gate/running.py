"""`run_gate`: both arms answer the topics, and the candidate passes, loses, has too few topics, or did not run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..comparison import Testing, compare_runs
from ..comparison.report import Report
from ..core import FontesError, InputError, ParameterError, Qrels, Run, Topics
from ..core.arrays import Float64s
from ..core.work import Progress, ProgressCallback, reporter, silent, work
from ..experiments.experiment import problem_in
from ..measures.measure import Measure
from .arms import Arm
from .decision import decide
from .file import ARMS, GateFile
from .lock import Lock, digests_of, texts_of
from .planning import Plan, plan_baseline, plan_differences
from .result import GateResult, Limit, LostTopic, Moved, have_same_documents

ROUNDS = 3  # in which each topic is timed; its least time counts
RESAMPLES = 2_000
QUANTILE = 0.95  # of the times of topics
CONFIDENCE = 0.95
LOST = 5  # topics that are shown
DEPTH = 10  # documents of a ranking that are compared, if the measure has no cutoff
SHOWN = 3  # topics that a sentence names


def run_gate(gate: GateFile, candidate: Arm | None = None, progress: ProgressCallback | None = None) -> GateResult:
    """Run both arms, and decide.

    Args:
        gate: The gate.
        candidate: The arm to test in place of the file's.
        progress: Called with the progress of each step.

    Raises:
        InputError: There is no candidate, or a lock is damaged.
    """
    candidate = candidate or gate.candidate
    if candidate is None:
        raise problem_in(gate.path, "", 'there is no table [candidate]; index = "papers.index" in it names an index to search')
    arms = {"baseline": gate.baseline, "candidate": candidate}
    lock = Lock.read(gate.lock) if gate.lock is not None and gate.lock.exists() else None
    with work(progress=progress):
        runs, problems = _answers(gate, arms, lock)
    stale = () if lock is None else tuple(_stale(gate, lock, runs))
    result = GateResult(gate, tuple(problems), stale, runs, lock)
    if problems:
        return result
    try:
        report = _compare(gate, runs)
        baseline, tested = (report.systems[name].evaluation for name in arms)
        margins = gate.margins
        allow_equal = gate.settings.allow_equal
        decision = decide(baseline, tested, margins, clusters=gate.clusters, alpha=gate.settings.alpha, allow_equal=allow_equal)
        plan = plan_differences(baseline, tested, margins, **_settings(gate))
    except (InputError, ParameterError) as error:
        return replace(result, problems=(str(error),))
    try:
        with work(progress=progress):
            limits = tuple(_limits(gate, arms, runs))
    except FontesError as error:
        return replace(result, problems=(f"time cannot be measured: {error}",))
    worst = min(decision.measures, key=lambda row: row.difference / row.margin).measure
    lost = tuple(_lost(report, worst))
    return replace(result, report=report, decision=decision, plan=plan, limits=limits, lost_by=worst, lost=lost)


def plan_gate(gate: GateFile, progress: ProgressCallback | None = None) -> Plan:
    """Plan how many topics the gate needs: from the differences of both arms or, without a second, values of the baseline.

    Raises:
        InputError: An arm does not answer, or cannot be measured.
    """
    if gate.machine is not None:
        gate = replace(gate, topics=gate.all_topics.judged({**gate.qrels, **gate.machine}))
    arms = {"baseline": gate.baseline, **({} if gate.candidate is None else {"candidate": gate.candidate})}
    with work(progress=progress):
        runs, problems = _answers(gate, arms, None)
    alone = len(arms) == 1 or (len(runs) == len(ARMS) and have_same_documents(runs))
    if problems and ("baseline" not in runs or not alone):
        raise InputError.of_lines(problems)
    if alone and gate.machine is not None:
        problem = "labels of a machine correct the differences of two arms: write a [candidate] that differs from the baseline"
        raise problem_in(gate.path, "", f"{problem}, or plan without them")
    report = _compare(gate, {"baseline": runs["baseline"]} if alone else runs, gate.machine)
    evaluations, margins = [system.evaluation for system in report.systems.values()], gate.margins
    if alone:
        return plan_baseline(evaluations[0], margins, **_settings(gate))
    return plan_differences(evaluations[0], evaluations[1], margins, **_settings(gate))


def _settings(gate: GateFile) -> dict[str, Any]:
    """Return the settings of a plan."""
    return {"clusters": gate.clusters, "alpha": gate.settings.alpha, "power": gate.settings.power}


def _compare(gate: GateFile, runs: Mapping[str, Run], machine: Qrels | None = None) -> Report:
    testing = Testing(alpha=gate.settings.alpha, allow_empty=True)
    return compare_runs(
        runs, gate.qrels, list(gate.margins), topics=gate.topics, baseline="baseline", testing=testing, machine=machine
    )


def _answers(gate: GateFile, arms: Mapping[str, Arm], lock: Lock | None) -> tuple[dict[str, Run], list[str]]:
    """Return the runs of the arms that answer, and why nothing can be decided."""
    report = reporter()
    runs, problems = dict[str, Run](), list[str]()
    for name, arm in arms.items():
        report(Progress(f"running the {name}", 0, len(gate.topics), 0.0, "topics"))
        try:
            if arm is gate.baseline and gate.baseline_run is not None and not gate.baseline_run.exists():
                remedy = "'fontes gate accept' makes the candidate's run the first baseline"
                if gate.lock is not None and gate.lock.exists():
                    remedy = f"restore it, or delete {gate.lock}, with its history of changes, to begin anew"
                raise InputError(f"{gate.baseline_run}: there is no such run; {remedy}")
            run = arm.run(gate.topics, gate.settings.k)
            judged = np.array([topic in gate.topics for topic in run.topics], dtype=bool)
            if len(judged) and not judged.any():
                first, other = next(iter(run.topics)), next(iter(gate.topics))
                problem = f"no topic of its run, such as '{first}', is one of the judged, such as '{other}'"
                raise InputError(f"{problem}; name the topics and the split of this run")
            runs[name] = run.keep(judged[run.topic_numbers]) if len(run.topics) else run
        except (FontesError, OSError) as error:
            problems.append(f"the {name} did not answer: {error}")
    for name, run in runs.items():
        other = next((other for other in runs if other != name), name)
        problems += [f"the {name} {problem}" for problem in _problems(gate, run, runs[other], other)]
    if lock is not None and "candidate" in runs and not gate.settings.any_generation:
        problems += _changed_index(runs["candidate"], lock)
    if len(runs) == len(ARMS) and not problems and not gate.settings.allow_equal and have_same_documents(runs):
        problem = "both arms gave the same documents in the same order: was the change in effect?"
        problems.append(f"{problem} If such a change may pass, write allow_equal = true")
    return runs, problems


def _problems(gate: GateFile, run: Run, other: Run, other_name: str) -> Iterator[str]:
    """Yield what is wrong with the run of an arm, as predicates."""
    failed: Mapping[str, str] = run.provenance["failed"]
    if failed:
        topic, problem = next(iter(failed.items()))
        yield f"failed on {_count(len(failed))}, such as '{topic}': {problem}"
        return
    if not run.rows:
        yield "has no documents: it is empty"
        return
    answered = {topic for topic, ranking in run.items() if len(ranking)} | set(run.provenance["empty"])
    missing = [topic for topic, ranking in other.items() if len(ranking) and topic not in answered]
    if len(missing) > gate.settings.allow_missing:
        names = ", ".join(f"'{topic}'" for topic in missing[:SHOWN])
        remedy = f"if they have none to find, write allow_missing = {len(missing)}"
        yield f"has no documents for {_count(len(missing))} that the {other_name} has, such as {names}; {remedy}"
    if _is_constant(run):
        yield "gives equal scores to all documents of each topic: it ranks nothing"
    generations = run.provenance.get("generations", ())
    if len(generations) > 1:
        yield f"answered from {len(generations)} generations of the index: it changed meanwhile; run it again"


def _is_constant(run: Run) -> bool:
    """Whether each ranking of two documents or more has one score."""
    rankings = [ranking.scores for ranking in run.values() if len(ranking) > 1]
    return bool(run.provenance.get("tied")) or (bool(rankings) and all(scores[0] == scores[-1] for scores in rankings))


def _changed_index(run: Run, lock: Lock) -> Iterator[str]:
    """Yield a problem if the index of the accepted run has changed since."""
    locked, now = lock.facts.get("generations"), run.provenance.get("generations")
    if locked and now and locked != now and lock.facts.get("source") == run.provenance["source"]:
        problem = f"the candidate's index {run.provenance['source']} is of another generation than the lock's"
        yield f"{problem}; if that is the change to test, or to accept, write any_generation = true"


def _stale(gate: GateFile, lock: Lock, runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield what differs from the lock."""
    if "baseline" in runs and gate.baseline_run is not None:
        digests = digests_of(gate.baseline_run, gate.topics, gate.qrels)
        if different := lock.differences(digests, texts_of(gate.margins)):
            verb = "is" if len(different) == 1 and different[0].startswith("the file") else "are"
            remedy = "'fontes gate accept --because REASON' accepts the candidate's run with what is there now"
            yield f"{' and '.join(different)} {verb} not what {gate.lock} has; restore them, or {remedy}"


def _limits(gate: GateFile, arms: Mapping[str, Arm], runs: Mapping[str, Run]) -> Iterator[Limit]:
    limits = gate.settings.limits
    if limits.time is not None:
        seconds = _seconds(arms, gate.topics, gate.settings.k)
        p95 = np.quantile(seconds, QUANTILE, axis=0)
        draws = seconds[np.random.default_rng(0).integers(len(seconds), size=(RESAMPLES, len(seconds)))]
        ratios = np.quantile(draws, QUANTILE, axis=1)
        low, high = np.quantile(ratios[:, 1] / ratios[:, 0], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
        first, second = (p95 * 1000).tolist()
        yield Limit("p95 of time", "ms", first, second, limits.time, low, high)
    for name, limit in (("tokens", limits.tokens), ("bytes", limits.bytes)):
        if limit is not None:
            first, second = (float(runs[arm].provenance.get(name, "nan")) for arm in arms)
            yield Limit(name, "", first, second, limit)


def _seconds(arms: Mapping[str, Arm], topics: Topics, k: int) -> Float64s:
    """Return the least seconds of each topic, (topics, arms). The arms take turns, and who is first alternates."""
    report = reporter()
    seconds = np.full((len(topics), len(arms)), np.inf)
    first, second = arms.values()
    with first.asking(k) as ask_first, second.asking(k) as ask_second, work(progress=silent):
        asks = (ask_first, ask_second)
        for round_ in range(ROUNDS):
            report(Progress(f"timing, round {round_ + 1} of {ROUNDS}", 0, len(topics), 0.0, "topics"))
            for number, topic in enumerate(topics.values()):
                for arm in (0, 1) if (number + round_) % 2 else (1, 0):
                    start = time.perf_counter()
                    asks[arm](topic)
                    seconds[number, arm] = min(seconds[number, arm], time.perf_counter() - start)
    return seconds


def _lost(report: Report, measure: Measure) -> Iterator[LostTopic]:
    """Yield the topics that lost most, with the documents that left and entered the first ranks."""
    values = report.values[measure]
    order = np.argsort(values[:, 1] - values[:, 0], kind="stable")[:LOST]
    depth = measure.cutoff if isinstance(measure.cutoff, int) else DEPTH
    ids = list(report.topics)
    baseline, candidate = (system.run for system in report.systems.values())
    for row in order.tolist():
        topic, (old, new) = report.topics[ids[row]], values[row].tolist()
        if new >= old:
            return
        before, after = (run[topic.id].ids[:depth] if topic.id in run else [] for run in (baseline, candidate))
        grades = report.qrels[topic.id]
        ranks = [{doc: rank for rank, doc in enumerate(ids, 1)} for ids in (before, after)]
        moved = [Moved(doc, grades.get(doc), *(rank.get(doc) for rank in ranks)) for doc in dict.fromkeys([*before, *after])]
        moved.sort(key=lambda document: -(document.grade or 0))
        went = tuple(document for document in moved if document.new is None)
        came = tuple(document for document in moved if document.old is None)
        fell = tuple(document for document in moved if document.grade and (document.new or 0) > (document.old or depth))
        yield LostTopic(topic, old, new, went, fell, came)


def _count(number: int) -> str:
    return f"{number:,} topic{'' if number == 1 else 's'}"
