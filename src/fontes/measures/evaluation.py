"""`evaluate`, which applies measures to a run and its qrels, and its result, `Evaluation`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..core import Documents, FontesError, InputError, ParameterError, Qrels, Run, Topic, Topics
from ..core.arrays import Float64s, Int64s
from ..core.checks import hinted
from ..core.errors import InputWarning
from ..core.html import table
from ..core.tabular import Tabular, shape_of
from .measure import Measure
from .names import DEFAULT, parse, parse_all
from .prediction_powered import MIN_ERRORS, MIN_TOPICS, PredictionPowered
from .ranks import Ranks

MAX_LOOKUPS = 1000  # greatest number of judged documents looked up in a collection
MAX_ROWS = 1_000  # greatest number of topics shown in a notebook


# Types of callers' arguments.
class Frame(Protocol):
    """Type of a DataFrame: columns by name."""

    @property
    def columns(self) -> object:
        """The names of the columns."""

    def __getitem__(self, name: object, /) -> object: ...


Path: TypeAlias = str | os.PathLike[str]
AnyRun: TypeAlias = (
    Run
    | Mapping[str, Mapping[str, float]]
    | Mapping[str, Iterable[tuple[str, float]]]
    | Iterable[tuple[str, str, float]]
    | Frame
    | Path
)
AnyQrels: TypeAlias = Qrels | Mapping[str, Mapping[str, int]] | Iterable[tuple[str, str, int]] | Frame | Path
AnyTopics: TypeAlias = (
    Topics | Topic | Mapping[str, str] | Mapping[str, Topic] | Iterable[Topic | tuple[str, str] | str] | Frame | Path
)


def judgments_of(qrels: object, measures: Iterable[Measure] = ()) -> Qrels:
    """Convert `qrels` with `Qrels.of`, with groups if a measure needs them; raise InputError if empty, a run or topics."""
    if isinstance(qrels, (Run, Topics)):
        raise InputError(
            f"{type(qrels).__name__} stand where judgments belong; the order is evaluate(run, qrels, measures) and "
            "compare(systems, topics, qrels, measures)"
        )
    judgments = Qrels.of(qrels, groups=any(measure.grouped for measure in measures))
    if not judgments:
        raise InputError("the qrels hold no judgments")
    return judgments


def run_and_judgments(run: object, qrels: object, measures: Iterable[Measure] = ()) -> tuple[Run, Qrels]:
    """Convert a run with `Run.of` and judgments with `judgments_of`; raise InputError if exchanged or unreadable."""
    try:
        if isinstance(run, Qrels):
            raise InputError("judgments stand where the run belongs")
        return Run.of(run), judgments_of(qrels, measures)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise


def refuse_exchanged(run: object, qrels: object, error: Exception) -> None:
    """Raise InputError, from `error`, if `run` holds judgments and `qrels` a run."""
    if "-" not in (run, qrels) and _reads(Qrels, run) and _reads(Run, qrels):
        raise InputError(
            f"the run and the judgments are exchanged: {_kind_of(run)} holds judgments, and {_kind_of(qrels)} a run"
        ) from error


def check_agreement(run: Run, qrels: Qrels, name: str = "the run") -> None:
    """Check that a run's topics and collection are those that were judged.

    They must share a topic. If no document of the run is judged, all values are 0, as in trec_eval; that is an error if none of
    its ids looks like a judged one, with the same kinds of characters, and an `InputWarning` otherwise. A run that knows its
    collection is better known: a judged document there suffices, and none is an error. An empty run agrees with all judgments.

    Args:
        run: The run.
        qrels: The judgments.
        name: Name of the run in the message.

    Raises:
        InputError: They do not agree; the message has an id of the run and one of the judgments.
    """
    common = [topic_id for topic_id in run if topic_id in qrels]
    if any(doc_id in qrels[topic_id] for topic_id in common for doc_id in run[topic_id].ids):
        return  # the usual case, after a few lookups
    answered = [topic_id for topic_id in common or run if len(run[topic_id])]
    if not answered:
        return
    if not common:
        raise InputError(
            f"{name} and the judgments have no topic in common: topics of the run are such as '{answered[0]}', those of the "
            f"judgments such as '{next(iter(qrels))}'; give the judgments of these topics"
        )
    judged = dict.fromkeys(doc_id for grades in qrels.values() for doc_id in grades)
    if any(doc_id in judged for topic_id in run for doc_id in run[topic_id].ids):
        return
    if run.documents is not None and any(has_document(run.documents, doc_id) for doc_id in islice(judged, MAX_LOOKUPS)):
        return
    collection = "" if run.documents is None else ", nor is any document of its collection"
    problem = (
        f"not one document of {name} is judged{collection}: those of the run are such as '{run[answered[0]].ids[0]}', those of "
        f"the judgments such as '{next(iter(qrels[answered[0]]))}'"
    )
    run_ids = (doc_id for topic_id in answered for doc_id in run[topic_id].ids)
    shapes = set(map(shape_of, islice(run_ids, MAX_LOOKUPS)))
    if run.documents is not None or shapes.isdisjoint(map(shape_of, islice(judged, MAX_LOOKUPS))):
        raise InputError(f"{problem}; give the judgments of this collection, with its ids")
    warnings.warn(InputWarning(f"{problem}; all values are 0"), stacklevel=2)


def has_document(documents: Documents, doc_id: str) -> bool:
    """Whether a collection has a document."""
    try:
        return bool(documents.docs([doc_id]))
    except FontesError:
        return False


def _reads(kind: type[Run] | type[Qrels], value: object) -> bool:
    try:
        return isinstance(value, kind) or (not isinstance(value, (Run, Qrels)) and bool(kind.of(value)))
    except (FontesError, TypeError, ValueError):
        return False


def _kind_of(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) or hasattr(value, "__fspath__") else f"the {type(value).__name__}"


@hinted
def evaluate(
    run: AnyRun,
    qrels: AnyQrels,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    machine: AnyQrels | None = None,
) -> Evaluation:
    """Evaluate a run.

    Means are over all judged topics, as with trec_eval's option -c; topics without results or relevant documents count 0.
    Topics of the run without judgments are ignored.

    With `machine`, a mean is computed from machine labels on all topics and corrected by its error on the topics that people
    judged (see `PredictionPowered`); `Evaluation.interval` returns its interval. The topics that people judged must be a random
    sample of all topics. The ideal ranking of a value comes from the same labels as the value.

    Args:
        run: Any value that `Run.of` accepts, such as the path of a file.
        qrels: Any value that `Qrels.of` accepts, such as the path of a file.
        measures: Objects such as `nDCG @ 10` or their names, in a list, or a single one; by default nDCG@10, AP and R@100.
        machine: Labels by a machine, in any form of `qrels`, of these topics and more. At least 20 topics must have labels of
            both kinds.

    Returns:
        The mean of each measure, and the values per topic.

    Raises:
        InputError: A file cannot be read, the qrels have no judgments, they belong to other topics or another collection (see
            `check_agreement`), or the machine labels do not fit them (see `BothLabels.of`).
        ParameterError: There is no measure, one is unknown, or with `machine` one is a count.
    """
    parsed = parse_all(measures)
    ranking, judgments = run_and_judgments(run, qrels, parsed)
    if machine is None:
        check_agreement(ranking, judgments)
        return measure_run(ranking, judgments, parsed)
    both = BothLabels.of(judgments, machine, parsed)
    both.check(ranking)
    return measure_run(ranking, both.people, parsed, both)


@dataclass(frozen=True, eq=False)
class BothLabels:
    """Judgments by people of some topics, and labels by a machine of these topics and more.

    Args:
        people: The judgments, of topics that the machine labelled.
        machine: The machine's labels.
        notes: Sentences about topics left out and unusual labels.
    """

    people: Qrels
    machine: Qrels
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, qrels: Qrels, machine: object, measures: Iterable[Measure]) -> BothLabels:
        """Check labels of both kinds.

        Raises:
            InputError: Fewer than 20 topics have labels of both kinds, or labels of one kind have no relevant document.
            ParameterError: A measure counts documents or judgments.
        """
        for measure in measures:
            if measure.summed or measure.name == "Judged":
                raise ParameterError(
                    f"{measure} counts, and machine labels can only correct measures of relevance; leave it out"
                )
        labels = judgments_of(machine)
        people = qrels.only(labels)
        if len(people) < MIN_TOPICS:
            raise InputError(
                f"people judged {_topics(len(qrels))}, the machine labelled {len(labels)}, and {len(people)} have both; "
                f"the correction needs {MIN_TOPICS}: judge or label more, or evaluate only by one kind"
            )
        highest = {
            "judgments of people": max(grade for grades in people.values() for grade in grades.values()),
            "machine's labels": max(grade for grades in labels.values() for grade in grades.values()),
        }
        for kind, grade in highest.items():
            if grade < 1:
                raise InputError(f"the {kind} have no relevant document, of grade 1 or more, so there is nothing to measure")
        notes = []
        if left_out := len(qrels) - len(people):
            notes.append(f"{_topics(left_out)} judged by people without machine labels left out")
        if len(set(highest.values())) > 1:
            scales = " and ".join(f"the {kind} to {grade}" for kind, grade in highest.items())
            notes.append(f"grades of {scales}: the correction holds, and is sharper on one scale")
        return cls(people, labels, tuple(notes))

    def check(self, run: Run, name: str = "the run") -> None:
        """Check a run as `check_agreement` does, and that it has results for topics that only the machine labelled, if any."""
        check_agreement(run, self.people, name)
        machine_only = [topic_id for topic_id in self.machine if topic_id not in self.people]
        if machine_only and not any(topic_id in run for topic_id in machine_only):
            raise InputError(
                f"{name} has no results for the topics that only the machine labelled, such as '{machine_only[0]}'; search "
                "them too, or evaluate only by the judgments of people"
            )


def measure_run(run: Run, qrels: Qrels, measures: Iterable[Measure], both: BothLabels | None = None) -> Evaluation:
    """Evaluate a run as `evaluate` does, without `check_agreement`; with `both`, `qrels` are `both.people`."""
    measures = list(measures)
    by_machine = None
    if both is not None:
        by_machine = measure_run(run, both.machine, [m for m in measures if m.name != "Judged"])
    ranks = Ranks.of(run, qrels)
    return Evaluation(
        tuple(qrels),
        {measure: np.asarray(measure.score(ranks), dtype=np.float64) for measure in measures},
        missing=int(np.count_nonzero(ranks.retrieved == 0)),
        unjudged=sum(topic_id not in qrels for topic_id in run) if by_machine is None else by_machine.unjudged,
        irrelevant=int(np.count_nonzero(ranks.count(ranks.relevant(1)) == 0)),
        machine=by_machine,
        notes=() if both is None else both.notes,
    )


class Evaluation(Tabular, Mapping[Measure, float]):
    """Result of `evaluate`: a mapping from measure to its mean over the judged topics.

    A measure is looked up as an object or by name. Counts (NumRet, NumRel, NumRelRet) are sums, not means. With machine labels
    the means are corrected; all other values are those of the topics that people judged.

    Attributes:
        topic_ids: Judged topics, in the order of the qrels.
        topics: Number of judged topics.
        missing: Number of them without results; part of the mean.
        irrelevant: Number of them without a document of grade 1 or more; part of the mean.
        unjudged: Number of the run's topics without judgments; ignored.
        machine: The evaluation by machine labels on all topics; None without them.
        notes: Sentences on the machine labels.
    """

    def __init__(
        self,
        topic_ids: tuple[str, ...],
        values: Mapping[Measure, Float64s],
        *,
        missing: int = 0,
        unjudged: int = 0,
        irrelevant: int = 0,
        machine: Evaluation | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Create an evaluation from its values.

        Args:
            topic_ids: Judged topics.
            values: Each measure's values per topic, in order. The arrays become read-only.
            missing: Topics without results.
            unjudged: Number of the run's topics without judgments.
            irrelevant: Topics without a relevant document.
            machine: The evaluation by machine labels, of these topics and more.
            notes: Sentences on the machine labels.
        """
        self.topic_ids = topic_ids
        self.topics = len(topic_ids)
        self.missing = missing
        self.unjudged = unjudged
        self.irrelevant = irrelevant
        self.machine = machine
        self.notes = notes
        self._values = dict(values)
        for array in self._values.values():
            array.setflags(write=False)

    def per_topic(self, measure: str | Measure) -> dict[str, float]:
        """Return the measure's value by topic id, in the order of the qrels; KeyError if not evaluated."""
        return dict(zip(self.topic_ids, self.array(measure).tolist(), strict=True))

    def array(self, measure: str | Measure) -> Float64s:
        """Return the measure's values, float64, in the order of `topic_ids`, read-only; KeyError if not evaluated."""
        return self._values[parse(measure)]

    def estimate(self, measures: Iterable[str | Measure]) -> PredictionPowered:
        """Return the corrected means of measures, one column per measure, with their standard errors.

        Raises:
            ParameterError: There are no machine labels.
            KeyError: A measure was not evaluated.
        """
        if self.machine is None:
            raise ParameterError("there are no machine labels to correct; evaluate(…, machine=labels) takes them")
        parsed = [parse(measure) for measure in measures]
        human = np.stack([self.array(measure) for measure in parsed], axis=1)
        machine = np.stack([self.machine.array(measure) for measure in parsed], axis=1)
        return PredictionPowered.of(human, machine, self.machine.rows_of(self.topic_ids))

    def rows_of(self, topic_ids: Iterable[str]) -> Int64s:
        """Return the positions of topics in `topic_ids`."""
        rows = {topic_id: row for row, topic_id in enumerate(self.topic_ids)}
        return np.array([rows[topic_id] for topic_id in topic_ids], dtype=np.int64)

    def interval(self, measure: str | Measure, alpha: float = 0.05) -> tuple[float, float]:
        """Return the ends of the 1 - alpha interval of a corrected mean, NaN if unknown; raises as `estimate` does."""
        low, high = self.estimate([measure]).interval(alpha)
        return float(low[0]), float(high[0])

    def to_dict(self, per_topic: bool = False) -> dict[str, Any]:
        """Return plain values for JSON: topics, missing, unjudged, irrelevant and measures; with machine labels, intervals.

        Args:
            per_topic: Whether to add values per topic, as measure to topic to value.
        """
        plain: dict[str, object] = {
            "topics": self.topics,
            "missing": self.missing,
            "unjudged": self.unjudged,
            "irrelevant": self.irrelevant,
            "measures": {str(measure): value for measure, value in self.items()},
        }
        if self.machine is not None:
            ends = {str(measure): self.interval(measure) for measure in self}
            plain["intervals"] = {name: None if math.isnan(low) else [low, high] for name, (low, high) in ends.items()}
            plain["machine"] = self.machine.to_dict(per_topic)
        if per_topic:
            plain["per_topic"] = {str(measure): self.per_topic(measure) for measure in self}
        return plain

    def to_columns(self) -> dict[str, Any]:
        """Return the columns: query_id, and one per measure."""
        return {"query_id": list(self.topic_ids)} | {str(measure): values for measure, values in self._values.items()}

    def __getitem__(self, measure: str | Measure) -> float:
        values = self.array(measure)
        if self.machine is not None and measure in self.machine:
            return float(self.estimate([measure]).mean[0])
        return float(values.sum() if parse(measure).summed else values.mean())

    def __contains__(self, measure: object) -> bool:
        try:
            return isinstance(measure, (str, Measure)) and parse(measure) in self._values
        except ParameterError:
            return False

    def __iter__(self) -> Iterator[Measure]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        shown = {str(measure): _shown(measure, value) for measure, value in self.items()}
        name_width, value_width = max(map(len, shown)), max(map(len, shown.values()))
        ends = self._intervals()
        lines = []
        for name, value in shown.items():
            interval = f"  {ends[name]}" if ends else ""
            lines.append(f"{name:<{name_width}}  {value:>{value_width}}{interval}")
        return "\n".join([*lines, self._note()])

    def _repr_html_(self) -> str:
        """HTML for notebooks: a table of the means, and a collapsed one of the topics."""
        names = list(map(str, self))
        rows = [[_shown(measure, value) for measure, value in self.items()], list(self._intervals().values())]
        means = table(names, [row for row in rows if row])
        columns = [[_shown(measure, value) for value in self.array(measure)[:MAX_ROWS].tolist()] for measure in self]
        values = table(["topic", *names], zip(self.topic_ids[:MAX_ROWS], *columns, strict=True))
        left_out = f", the first {MAX_ROWS:,} of {self.topics:,}" if self.topics > MAX_ROWS else ""
        summary = f"<summary>each topic{left_out}</summary>"
        return f"{means}<p>{escape(self._note())}</p><details>{summary}{values}</details>"

    def _intervals(self) -> dict[str, str]:
        """95% intervals as text, by measure; empty without machine labels."""
        if self.machine is None:
            return {}
        ends = {str(measure): self.interval(measure) for measure in self}
        return {name: "–" if math.isnan(low) else f"{low:.4f} to {high:.4f}" for name, (low, high) in ends.items()}

    def _note(self) -> str:
        parts = [_topics(self.topics)]
        if self.machine is not None:
            doubts = self.estimate(self).doubtful
            doubtful = [str(measure) for measure, doubt in zip(self, doubts, strict=True) if doubt]
            parts = ["95% intervals", *machine_notes(self), *few_errors(doubtful)]
        if self.missing:
            parts.append(f"{self.missing} without results count 0")
        if self.irrelevant:
            parts.append(f"{self.irrelevant} without a relevant document count 0")
        if self.unjudged:
            parts.append(f"{_topics(self.unjudged)} of the run without judgments left out")
        return "; ".join(parts)

    def __repr__(self) -> str:
        means = ", ".join(f"{measure} {value:.4g}" for measure, value in self.items())
        return f"Evaluation({_topics(self.topics)}: {means})"


def machine_notes(evaluation: Evaluation) -> list[str]:
    """Return notes on corrected means: numbers of topics, and anything unusual; none without machine labels."""
    if evaluation.machine is None:
        return []
    total, missing = evaluation.machine.topics, evaluation.machine.missing - evaluation.missing
    notes = [f"machine labels of {_topics(total)}, corrected by the {evaluation.topics} that people judged", *evaluation.notes]
    return [*notes, f"{missing} of the others without results count 0"] if missing else notes


def few_errors(estimates: list[str]) -> list[str]:
    """Return a note on estimates for which the machine made too few errors to know their size; none without such estimates."""
    if not estimates:
        return []
    names = ", ".join(estimates[:3]) + (f" and {len(estimates) - 3:,} more" if len(estimates) > 3 else "")
    return [f"{names}: machine and people differ on fewer than {MIN_ERRORS} topics; the interval may be too narrow"]


def _shown(measure: Measure, value: float) -> str:
    return f"{value:.0f}" if measure.summed else f"{value:.4f}"


def _topics(count: int) -> str:
    return f"{count} topic" + ("" if count == 1 else "s")
