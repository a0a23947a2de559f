"""Report of a comparison: means, tests and rankings of runs on the same judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..core import Documents, InputError, ParameterError, Qrels, Run, Topic, Topics
from ..core.arrays import Float64s
from ..core.checks import check_whole
from ..measures.evaluation import (
    MAX_LOOKUPS,
    BothLabels,
    Evaluation,
    check_agreement,
    has_document,
    judgments_of,
    measure_run,
    run_and_judgments,
)
from ..measures.formulas import Judged, R
from ..measures.measure import Measure
from ..measures.names import parse, parse_all
from ..measures.prediction_powered import PredictionPowered
from ..plots.tables import ResultTable, TableReport, json_values
from ..storage.files import write
from . import report_text
from .failures import IDEAL, Failures, failures_of, ideal_run, state_of
from .testing import PERMUTATIONS, RESAMPLES, Comparison, PairedValues, Tested, Testing, beaten_by, check_rows


@dataclass(frozen=True)
class Candidates:
    """Documents that a reranker read.

    Args:
        depth: Their greatest number per topic.
        recall: Their recall, an upper bound for the reranker.
    """

    depth: int
    recall: float


@dataclass(frozen=True)
class System:
    """A system of a report.

    Args:
        name: Its name.
        run: Its run.
        evaluation: The measures of the run.
        description: The text of its stage, or its file.
        seconds: Seconds per topic of all steps; None if not measured.
        candidates: Candidates of the last reranker; None for a pipeline that does not end in one.
        cached: Whether the run was read from the cache.
    """

    name: str
    run: Run
    evaluation: Evaluation
    description: str = ""
    seconds: float | None = None
    candidates: Candidates | None = None
    cached: bool = False


@dataclass(frozen=True, eq=False)
class Report(Tested[Comparison], TableReport):
    """Result of `compare`: `print` shows it, `to_markdown` and others convert it, `save` writes it.

    Its rows, as in `to_csv` and `to_pandas`, are one for each measure, system and test of that system.

    With machine labels, means, intervals and tests are corrected; everything else is over the topics that people judged.

    Args:
        systems: The systems by name.
        measures: The measures, in the given order.
        judged: Judged@k for each measure that has one.
        topics: The measured topics in the order of the qrels, with their texts if known.
        qrels: Their judgments.
        values: Values of each measure, float64, (topics, systems); see `per_topic`.
        intervals: Bootstrap interval of the mean, by measure and system; with machine labels by the t distribution.
        comparisons: A `Comparison` for each measure and tested pair of systems.
        baseline: The baseline of the tests; None if all pairs were tested.
        testing: Test, correction, alpha and seed.
        not_given: Number of judged topics that were not given, and are not measured.
    """

    LABEL = "tab:comparison"

    systems: Mapping[str, System]
    measures: tuple[Measure, ...]
    judged: Mapping[Measure, Measure]
    topics: Topics
    qrels: Qrels
    values: Mapping[Measure, Float64s]
    intervals: Mapping[Measure, Mapping[str, tuple[float, float]]]
    comparisons: tuple[Comparison, ...]
    baseline: str | None
    testing: Testing
    not_given: int = 0

    def with_documents(self, documents: Documents) -> Report:
        """Return a copy whose runs know the text of their documents, which `to_html` shows.

        Args:
            documents: For example an index. Runs that know their documents keep them.

        Raises:
            InputError: `documents` has none of the documents of a run.
        """
        systems = {}
        for name, system in self.systems.items():
            ids = system.run.ids.take(system.run.codes[:MAX_LOOKUPS])
            if ids and not any(has_document(documents, doc_id) for doc_id in ids):
                raise InputError(f"{documents!r} has none of the documents of the run '{name}', such as '{ids[0]}'")
            run = system.run if system.run.documents is not None else system.run.with_(documents=documents)
            systems[name] = replace(system, run=run)
        return replace(self, systems=systems)

    def mean(self, system: str, measure: str | Measure) -> float:
        """Return the mean of a system, or the sum for counts."""
        return self.systems[system].evaluation[measure]

    def per_topic(self, measure: str | Measure) -> dict[str, dict[str, float]]:
        """Return the values by topic id and system.

        Raises:
            KeyError: The measure is not in the report.
        """
        rows = self.values[parse(measure)].tolist()
        return {topic: dict(zip(self.systems, row, strict=True)) for topic, row in zip(self.topics, rows, strict=True)}

    def failures(
        self, system: str | None = None, against: str | None = None, measure: str | Measure | None = None, n: int = 10
    ) -> Failures:
        """Return the topics on which a system loses most; see `fontes.comparison.failures`.

        Args:
            system: The system; by default the one with the best mean.
            against: The system to compare with; by default the ideal order.
            measure: The measure; by default the first of the report.
            n: Maximum number of topics.

        Raises:
            ParameterError: There is no such system.
        """
        for name in filter(None, (system, against)):
            if name not in self.systems:
                raise ParameterError(f"'{name}' is none of the systems; there are {', '.join(self.systems)}")
        parsed = self.measures[0] if measure is None else parse(measure)
        if system is None:
            values = self.values[parsed if parsed in self.values else self.measures[0]]
            means = dict(zip(self.systems, values.mean(axis=0).tolist(), strict=True))
            system = max([name for name in self.systems if name != against] or self.systems, key=means.__getitem__)
        run, beside = self.systems[system].run, None if against is None else self.systems[against].run
        names = system, against or ""
        return failures(run, self.qrels, parsed, beside=beside, topics=self.topics, names=names, n=n)

    def best(self, measure: Measure) -> set[str]:
        """Return the systems with the highest mean, rounded as shown; empty for counts and for a single system."""
        if measure.name in ("NumRet", "NumRel", "Judged") or len(self.systems) < 2:
            return set()
        means = {name: round(self.mean(name, measure), 4) for name in self.systems}
        return {name for name, mean in means.items() if mean == max(means.values())}

    def beaten(self, system: str, measure: Measure) -> list[str]:
        """Return the systems that this one is significantly better than."""
        beaten = beaten_by(system, [c for c in self.comparisons if c.measure == measure and c.significant])
        return [name for name in self.systems if name in beaten]

    def to_dict(self) -> dict[str, object]:
        """Return everything except runs, texts and judgments as JSON values, with None for NaN and infinity."""
        first = report_text.first_evaluation(self)
        return {
            "fontes": version("fontes"),
            "baseline": self.baseline,
            **asdict(self.testing),
            "correction": self.testing.applied_correction,
            "permutations": PERMUTATIONS if self.testing.test == "fisher" else None,
            "resamples": RESAMPLES if first.machine is None else None,
            "topics": len(self.topics),
            "not_given": self.not_given,
            **({} if first.machine is None else {"machine_topics": first.machine.topics}),
            "without_relevant": first.irrelevant,
            "measures": [str(m) for m in self.measures],
            "systems": {name: self._system_facts(system) for name, system in self.systems.items()},
            "comparisons": [json_values({**vars(c), "measure": str(c.measure)}) for c in self.comparisons],
            "per_topic": {str(m): {name: s.evaluation.per_topic(m) for name, s in self.systems.items()} for m in self.measures},
        }

    def to_html(self, path: str | Path | None = None, *, depth: int = 10, snippet: int = 200) -> str:
        """Return a self-contained page: sortable tables, tests, curves, differences and rankings by topic.

        A page has at most 300,000 ranked documents, so that the last topics may lack rankings, and 3,000,000 characters of
        texts, which are cut; the page says what it leaves out.

        Args:
            path: The file to write the page to as well.
            depth: Documents of each ranking, from 1 up.
            snippet: Characters of each known document, title included, from 0 up.

        Raises:
            ParameterError: `depth` or `snippet` is out of range.
            InputError: The file cannot be written.
        """
        from .report_page import html

        page = html(self, depth, snippet)
        if path is not None:
            write(path, [page.encode()])
        return page

    def differences(self) -> PredictionPowered | None:
        """Return the corrected differences of `comparisons`, a column for each; None without machine labels."""
        if report_text.first_evaluation(self).machine is None:
            return None
        values = PairedValues.of({name: system.evaluation for name, system in self.systems.items()}, self.measures, 0)
        names = list(self.systems)
        comparisons = [c for c in self.comparisons if c.measure == self.measures[0]]
        return (
            values.differences([(names.index(c.system), names.index(c.against)) for c in comparisons]) if comparisons else None
        )

    def _system_facts(self, system: System) -> dict[str, object]:
        evaluation = system.evaluation
        return {
            "description": system.description,
            "means": {str(m): evaluation[m] for m in self.measures},
            "intervals": {str(m): json_values(self.intervals[m][system.name]) for m in self.measures},
            "judged": {str(m): evaluation[j] for m, j in self.judged.items()},
            "missing": evaluation.missing,
            "unjudged": evaluation.unjudged,
            "seconds_per_topic": system.seconds,
            "cached": system.cached,
            "candidates": None if system.candidates is None else asdict(system.candidates),
        }

    def _rows(self) -> list[dict[str, object]]:
        return [row for measure in self.measures for name in self.systems for row in self._rows_of(measure, name)]

    def _rows_of(self, measure: Measure, name: str) -> list[dict[str, object]]:
        """Return a row for each test of a system by a measure, or one row with empty cells without tests."""
        system = self.systems[name]
        low, high = json_values(self.intervals[measure][name])
        figures = {
            "measure": str(measure),
            "system": name,
            "mean": self.mean(name, measure),
            "mean_low": low,
            "mean_high": high,
            "judged": system.evaluation[self.judged[measure]] if measure in self.judged else None,
            "topics": len(self.topics),
            "missing": system.evaluation.missing,
            "seconds_per_topic": system.seconds,
            "candidates_depth": system.candidates.depth if system.candidates else None,
            "candidates_recall": system.candidates.recall if system.candidates else None,
        }
        comparisons = [c for c in self.comparisons if c.measure == measure and c.system == name]
        empty: dict[str, object] = dict.fromkeys(f for f in Comparison.__dataclass_fields__ if f not in ("measure", "system"))
        tests = [json_values({key: vars(c)[key] for key in empty}) for c in comparisons] or [empty]
        return [{**figures, **test} for test in tests]

    def _tables(self, letters: bool = False) -> list[ResultTable]:
        tests = [report_text.tests_table(self, letters=letters)] if self.comparisons else []
        return [report_text.means_table(self), *tests]

    def _notes(self) -> list[str]:
        return report_text.notes(self)

    def _printed(self) -> tuple[list[ResultTable], list[str]]:
        if (count := len(self.comparisons)) <= report_text.MAX_COMPARISONS:
            return self._tables(letters=True), self._notes()
        return self._tables()[:1], [*self._notes(), f"{count} tests, too many to print; the other forms list them"]

    def __repr__(self) -> str:
        return f"Report({', '.join(self.systems)}: {', '.join(map(str, self.measures))})"


@dataclass(frozen=True)
class SystemRun:
    """A run and its origin.

    Args:
        run: The run.
        description: The text of its stage, or its file.
        seconds: Seconds of all steps for all topics; None if not measured.
        candidates: The run that the last reranker read, if any.
        cached: Whether the run was read from the cache.
    """

    run: Run
    description: str = ""
    seconds: float | None = None
    candidates: Run | None = None
    cached: bool = False


def compare_runs(
    runs: Mapping[str, SystemRun | object],
    qrels: object,
    measures: str | Measure | Iterable[str | Measure],
    *,
    topics: Topics | None = None,
    baseline: str | None = None,
    testing: Testing | None = None,
    machine: object = None,
) -> Report:
    """Measure runs, and test whether their differences are more than chance.

    Values are over the given topics that are judged, or, without `topics`, over all judged topics, as for `evaluate`. A topic
    without results counts 0. No stage is run; `fontes.compare` does that.

    Args:
        runs: By name of the system, anything that `Run.of` accepts, or a `SystemRun`.
        qrels: Anything that `Qrels.of` accepts.
        measures: As for `evaluate`.
        topics: The topics to measure, with texts to show; None: all judged topics.
        baseline: The system to test the others against; None tests all pairs.
        testing: By default the t-test with Holm's correction.
        machine: Labels by a machine, as for `evaluate`; they need the t-test.

    Raises:
        InputError: A run cannot be read, there are no judgments, none of a run's topics or documents are judged, the machine
            labels cannot be used, or a run has no rows or the same rows as another, unless the settings allow it.
        ParameterError: There is no run or no such baseline, a measure is unknown, or the test cannot use machine labels.
    """
    parsed = parse_all(measures)
    testing = testing or Testing()
    judgments, machine_labels = judgments_of(qrels, parsed), None if machine is None else judgments_of(machine)
    not_given = 0 if topics is None else sum(topic_id not in topics for topic_id in judgments)
    if topics is not None:
        judgments, machine_labels = labels_of(topics, judgments, machine_labels)
    labels = None if machine_labels is None else both_labels(judgments, machine_labels, parsed, testing)
    judgments = judgments if labels is None else labels.people
    if not runs:
        raise ParameterError("there is no run to compare; give runs in a mapping from name to run")
    systems = {name: run if isinstance(run, SystemRun) else SystemRun(Run.of(run)) for name, run in runs.items()}
    if not testing.allow_empty:
        check_rows({name: system.run for name, system in systems.items()})
    pairs = _pairs(list(systems), baseline)
    deepest = max(_depth(system.run) for system in systems.values())
    judged = {measure: judged_at for measure in parsed if (judged_at := _judged_at(measure, deepest)) is not None}
    for name, system in systems.items():
        check = partial(check_agreement, qrels=judgments) if labels is None else labels.check
        check(system.run, name=f"the run '{name}'")
    all_measures = [*parsed, *judged.values()]
    evaluations = {name: measure_run(system.run, judgments, all_measures, labels) for name, system in systems.items()}
    values = {
        measure: np.stack([evaluation.array(measure) for evaluation in evaluations.values()], axis=1) for measure in parsed
    }
    for array in values.values():
        array.setflags(write=False)
    columns = PairedValues.of(evaluations, parsed, testing.seed)
    return Report(
        systems={name: _system_of(name, system, evaluations[name], judgments) for name, system in systems.items()},
        measures=tuple(parsed),
        judged=judged,
        topics=_with_texts(judgments, [topics or Topics(), *(system.run.topics for system in systems.values())]),
        qrels=judgments,
        values=values,
        intervals=columns.intervals(testing.alpha),
        comparisons=columns.comparisons(pairs, testing),
        baseline=baseline,
        testing=testing,
        not_given=not_given,
    )


def labels_of(topics: Topics, qrels: Qrels, machine: Qrels | None) -> tuple[Qrels, Qrels | None]:
    """Return the judgments and machine labels of the given topics; raise InputError if none of them has any."""
    judged = topics.judged(qrels if machine is None else {**qrels, **machine})
    return qrels.only(judged), None if machine is None else machine.only(judged)


def both_labels(qrels: Qrels, machine: object, measures: Iterable[Measure], testing: Testing) -> BothLabels:
    """Check judgments, machine labels, measures and test of a comparison; raises as `compare_runs` does."""
    if testing.test != "t":
        raise ParameterError(f"with machine labels the test is t, not {testing.test}, which has no form for corrected means")
    return BothLabels.of(qrels, machine, measures)


def failures(
    run: object,
    qrels: object,
    measure: str | Measure = "nDCG@10",
    *,
    beside: object = None,
    topics: Topics | None = None,
    index: Documents | None = None,
    names: tuple[str, str] = ("run", "other"),
    n: int = 10,
) -> Failures:
    """Return the topics on which a run loses most, with facts that may explain it.

    Args:
        run: Any value that `Run.of` accepts.
        qrels: Any value that `Qrels.of` accepts.
        measure: The measure, or its name.
        beside: The run to compare with; None: the judged documents by grade, the ideal order.
        topics: The topics to examine, with their texts; None: all judged topics.
        index: The index searched, for runs that do not know it; without an index, words, lengths and repeats are not examined.
        names: Names of both runs.
        n: Maximum number of topics, from 1 up.

    Raises:
        InputError: A run or judgments cannot be read, or do not belong to the same topics and documents.
        ParameterError: The measure is unknown, is a count, or `n` is out of range.
    """
    n = check_whole("the number of topics", n)
    parsed = parse(measure)
    if parsed.summed:
        raise ParameterError(f"{parsed} is a count, which has no best order; nDCG@10 or AP is a measure of rankings")
    ranking, judgments = run_and_judgments(run, qrels, [parsed])
    name, against = names if beside is not None else (names[0], IDEAL)
    if name == against:
        raise ParameterError(f"both runs are called '{name}'; rename one")
    other = ideal_run(judgments) if beside is None else Run.of(beside)
    testing = Testing(allow_empty=True)  # the topics of a run that found nothing are failures, too
    runs = {name: ranking, against: other}
    report = compare_runs(runs, judgments, [parsed], topics=topics, baseline=against, testing=testing)
    if index is not None:
        report = report.with_documents(index)
    return failures_of(report, n, state_of(index if index is not None else ranking.documents))


def _pairs(names: list[str], baseline: str | None) -> list[tuple[int, int]]:
    """Return the pairs of systems to test: each system against the baseline, or against the systems before it."""
    if baseline is None:
        return [(i, j) for i in range(len(names)) for j in range(i)]
    if baseline not in names:
        raise ParameterError(f"the baseline '{baseline}' is none of the systems; there are {', '.join(names)}")
    return [(i, names.index(baseline)) for i, name in enumerate(names) if name != baseline]


def _depth(run: Run) -> int:
    """Return the greatest number of documents of a topic."""
    return int(np.diff(run.bounds).max(initial=0))


def _judged_at(measure: Measure, deepest: int) -> Measure | None:
    """Return Judged at the cutoff of a measure, or without one at the deepest ranking; None for counts."""
    if measure.summed or measure.name == "Judged":
        return None
    depth = measure.cutoff if isinstance(measure.cutoff, int) else deepest
    return Judged @ max(depth, 1)


def _system_of(name: str, system: SystemRun, evaluation: Evaluation, qrels: Qrels) -> System:
    candidates = None
    if system.candidates is not None and (depth := _depth(system.candidates)):
        means = measure_run(system.candidates, qrels, [R, Judged @ depth])
        # Candidates of another kind, such as passages, have no judgments and so no recall.
        candidates = Candidates(depth, means[R]) if means[Judged @ depth] else None
    topics = len(system.run.topics)
    seconds = system.seconds / topics if system.seconds is not None and topics else None
    return System(name, system.run, evaluation, system.description, seconds, candidates, system.cached)


def _with_texts(qrels: Qrels, sources: Iterable[Topics]) -> Topics:
    """Return the judged topics, each with the first text in the sources."""
    by_id: dict[str, Topic] = {}
    for source in sources:
        for topic in source.values():
            if topic.text:
                by_id.setdefault(topic.id, topic)
    return Topics(by_id.get(topic_id) or Topic(topic_id, "") for topic_id in qrels)
