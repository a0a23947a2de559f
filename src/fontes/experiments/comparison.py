"""`compare`: systems side by side, on the same topics and judgments, with the statistics that a paper needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison import statistics
from ..comparison.report import RESAMPLES, Candidates, Comparison, Method, Report, System
from ..core import InputError, ParameterError, Qrels, Run, Topic, Topics
from ..measures.evaluation import Evaluation, evaluate, judgments_of
from ..measures.formulas import Judged, R
from ..measures.measure import Measure
from ..measures.names import parse
from .cache import Cache
from .systems import Made, named, run_all, stem

COLUMNS = 500  # pairs whose resamples are in memory at a time: 40 MB


def compare(
    systems: object,
    topics: object,
    qrels: object,
    measures: str | Measure | Iterable[str | Measure],
    *,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    cache: bool | str | os.PathLike[str] = True,
) -> Report:
    """Runs and measures systems, and tests whether their differences are more than chance.

    systems     stages, runs (all that `Run.of` accepts) or files of runs: in a mapping from name to system, or in a list,
                where a file is called by its stem and a stage by what it prints
    topics      all that `Topics.of` accepts, or the path of a file; None where no system is a stage. Stages are run on the
                topics that have judgments
    qrels       all that `Qrels.of` accepts, or the path of a file
    measures    as for `evaluate`
    baseline    the name of the system that the others are tested against; without one, all pairs are tested
    test        "t" (paired t-test), "wilcoxon" (signed ranks), "fisher" (randomisation), each two-sided, or "tukey" (honestly
                significant differences, topics as blocks)
    correction  "holm", "bonferroni", "bh" (Benjamini-Hochberg) or "none", over the comparisons of each measure; "tukey"
                corrects by itself
    alpha       the corrected p up to which a difference is called significant; intervals cover 1 - alpha
    seed        of randomisation (100,000 permutations) and bootstrap (10,000 resamples): the same seed, the same numbers
    cache       keep the runs of stages, and those of each prefix, on disk: True in the user's cache folder, or the path of a
                folder; False neither reads nor writes. See `Stage.key` for what is kept

    A prefix that several pipelines share is run once. Values are over all judged topics, as for `evaluate`. Raises InputError
    and ParameterError for what cannot be used, PipelineError for a stage that does not go from topics to a run.
    """
    given = named(systems)
    wanted = list(dict.fromkeys(parse(m) for m in ([measures] if isinstance(measures, (str, Measure)) else measures)))
    if not wanted:
        raise ParameterError("there is no measure to compare by; give at least one, such as nDCG@10")
    method = Method(test, correction, alpha, seed)
    against = None if baseline is None else _known(baseline, list(given))
    judged = judgments_of(qrels)
    asked = None if topics is None else _topics(topics)
    made = run_all(given, None if asked is None else _judged_topics(asked, judged), Cache.of(cache))
    deepest = max(_depth(m.run) for m in made.values())
    beside = {measure: _judged(measure, deepest) for measure in wanted}
    evaluations = {name: evaluate(m.run, judged, [*wanted, *filter(None, beside.values())]) for name, m in made.items()}
    values = {measure: np.stack([e.array(measure) for e in evaluations.values()], axis=1) for measure in wanted}
    for array in values.values():
        array.setflags(write=False)
    table = _Values.of(values, list(made), method.seed)
    return Report(
        systems={name: _system(name, m, evaluations[name], judged) for name, m in made.items()},
        measures=tuple(wanted),
        judged={measure: judgments for measure, judgments in beside.items() if judgments is not None},
        topics=_texts(asked, judged, made),
        qrels=judged,
        values=values,
        intervals=table.intervals(method.alpha),
        comparisons=table.comparisons(_pairs(list(made), against), method),
        baseline=against,
        method=method,
    )


def _known(baseline: str, names: list[str]) -> str:
    if baseline in names:
        return baseline
    if stem(baseline) in names:
        return stem(baseline)
    raise ParameterError(f"the baseline '{baseline}' is none of the systems; there are {', '.join(names)}")


def _topics(given: object) -> Topics:
    if isinstance(given, (str, os.PathLike)):
        from ..formats import read_topics

        return read_topics(os.fspath(given))
    return Topics.of(given)


def _judged_topics(topics: Topics, qrels: Qrels) -> Topics:
    """The topics that have judgments: a system need not run on others."""
    kept = Topics(topic for topic in topics.values() if topic.id in qrels)
    if not kept:
        raise InputError(
            f"none of the topics has judgments; topic ids are such as '{next(iter(topics), '')}', those of the qrels such as "
            f"'{next(iter(qrels))}'"
        )
    return kept


def _texts(topics: Topics | None, qrels: Qrels, made: dict[str, Made]) -> Topics:
    """The judged topics, with their texts where anybody knows them."""
    known: dict[str, Topic] = {}
    for source in [topics or Topics(), *(m.run.topics for m in made.values())]:
        for topic in source.values():
            if topic.text and topic.id not in known:
                known[topic.id] = topic
    return Topics(known.get(topic_id) or Topic(topic_id, "") for topic_id in qrels)


def _depth(run: Run) -> int:
    """The length of the longest ranking."""
    return int(np.diff(run.bounds).max(initial=0))


def _judged(measure: Measure, deepest: int) -> Measure | None:
    """Judged at the cutoff of the measure; where it has none, at the end of the longest ranking. None for counts."""
    if measure.summed or measure.name == "Judged":
        return None
    ranks = measure.cutoff if isinstance(measure.cutoff, int) else deepest
    return Judged @ max(ranks, 1)


def _system(name: str, made: Made, evaluation: Evaluation, qrels: Qrels) -> System:
    candidates = None
    if made.candidates is not None and (depth := _depth(made.candidates)):
        found = evaluate(made.candidates, qrels, [R, Judged @ depth])
        # Documents of another kind, such as passages, have no judgments, and no recall.
        candidates = Candidates(depth, found[R]) if found[Judged @ depth] else None
    topics = len(made.run.topics)
    seconds = made.seconds / topics if made.seconds is not None and topics else None
    return System(name, made.run, evaluation, made.description, seconds, candidates, made.cached)


@dataclass(frozen=True)
class _Values:
    """All values side by side: a row for each topic; a column for each measure and system, by measure. And their resamples."""

    measures: tuple[Measure, ...]
    names: list[str]
    columns: NDArray[np.float64]
    resampled: NDArray[np.floating[Any]]

    @classmethod
    def of(cls, values: Mapping[Measure, NDArray[np.float64]], names: list[str], seed: int) -> _Values:
        columns = np.concatenate(list(values.values()), axis=1)
        return cls(tuple(values), names, columns, statistics.resampled(columns, RESAMPLES, seed))

    def intervals(self, alpha: float) -> dict[Measure, dict[str, tuple[float, float]]]:
        """For each measure and system the interval of the mean."""
        low, high = statistics.interval(self.columns, self.resampled, 1 - alpha)
        ends = iter(zip(low.tolist(), high.tolist(), strict=True))
        return {measure: {name: next(ends) for name in self.names} for measure in self.measures}

    def comparisons(self, pairs: list[tuple[int, int]], method: Method) -> tuple[Comparison, ...]:
        """For each measure, each pair of systems."""
        if not pairs:
            return ()
        number = len(self.names)
        ours, theirs = (
            np.array([m * number + pair[side] for m in range(len(self.measures)) for pair in pairs]) for side in (0, 1)
        )
        differences = np.round(self.columns[:, ours] - self.columns[:, theirs], statistics.DIGITS)
        statistic, p = method.test_all(np.split(self.columns, len(self.measures), axis=1), pairs, differences)
        families = np.split(p, len(self.measures))
        corrected = np.concatenate([statistics.corrected(family, method.applied_correction) for family in families])
        low, high = self._intervals_of_differences(differences, ours, theirs, method.alpha)
        columns = {
            "difference": differences.mean(axis=0),
            "low": low,
            "high": high,
            "statistic": statistic,
            "p": p,
            "corrected": corrected,
            "d_z": statistics.d_z(differences),
            "hedges_g": statistics.hedges_g(self.columns[:, ours], self.columns[:, theirs]),
            "wins": (differences > 0).sum(axis=0),
            "ties": (differences == 0).sum(axis=0),
            "losses": (differences < 0).sum(axis=0),
            "significant": corrected <= method.alpha,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        sides = ((measure, self.names[i], self.names[j]) for measure in self.measures for i, j in pairs)
        return tuple(Comparison(*side, **dict(zip(columns, row, strict=True))) for side, row in zip(sides, rows, strict=True))

    def _intervals_of_differences(self, differences: Any, ours: Any, theirs: Any, alpha: float) -> tuple[Any, Any]:
        """Some columns at a time, which bounds the memory where there are many pairs."""
        parts = []
        for start in range(0, len(ours), COLUMNS):
            part = slice(start, start + COLUMNS)
            means = self.resampled[:, ours[part]] - self.resampled[:, theirs[part]]
            parts.append(statistics.interval(differences[:, part], means, 1 - alpha))
        low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
        return low, high


def _pairs(names: list[str], baseline: str | None) -> list[tuple[int, int]]:
    """All systems against the baseline, or each against those before it, by their places."""
    if baseline is None:
        return [(i, j) for i in range(len(names)) for j in range(i)]
    return [(i, names.index(baseline)) for i, name in enumerate(names) if name != baseline]
