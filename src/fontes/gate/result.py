"""`GateResult`: the result of a gate, as text, Markdown for a pull request, JUnit's XML and JSON."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from xml.etree import ElementTree

from ..comparison import Report
from ..comparison.list_lengths import length_notes
from ..core import FontesError, InputError, ParameterError, Run, Topic
from ..core.errors import InputWarning
from ..formats import write_run
from ..formats.json_text import json_text
from ..measures.measure import Measure
from ..plots.tables import EMPTY_CELL, ResultCell, ResultTable, TableReport, escaped_markdown, json_values
from ..storage.files import write
from .decision import Answer, Decision, MeasureDecision
from .file import GateFile
from .lock import Lock, digest_of, digests_of, facts_of, texts_of
from .planning import Drift, Plan

EXIT_CODES = {answer: code for code, answer in enumerate(Answer)}
FORMS = {".md": "to_markdown", ".xml": "to_junit", ".json": "to_json", ".html": "to_html"}
MAX_TEXT = 120  # characters of a topic's text
SHOWN = 3  # documents of a topic that went or came
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Limit:
    """A limit of time or cost.

    Args:
        name: The limited quantity.
        unit: Its unit.
        baseline: Of the baseline; NaN if it is not known.
        candidate: Of the candidate.
        limit: The greatest allowed ratio of candidate to baseline.
        low: Lower end of the 95% interval of the ratio; NaN if the ratio is exact.
        high: Its upper end.
    """

    name: str
    unit: str
    baseline: float
    candidate: float
    limit: float
    low: float = math.nan
    high: float = math.nan

    @property
    def ratio(self) -> float:
        """Candidate over baseline."""
        return self.candidate / self.baseline if self.baseline else math.inf if self.candidate else 1.0

    @property
    def answer(self) -> Answer:
        """Whether the ratio, or the lower end of its interval, is above the limit; "did not run" if a cost is not known."""
        if math.isnan(self.ratio):
            return Answer.DID_NOT_RUN
        return Answer.LOSES if (self.ratio if math.isnan(self.low) else self.low) > self.limit else Answer.PASSES


@dataclass(frozen=True)
class Moved:
    """A document of the first ranks that moved.

    Args:
        id: Its id.
        grade: Its grade; None if it is not judged.
        old: Its rank in the baseline; None if it is not among the first.
        new: Its rank in the candidate.
    """

    id: str
    grade: int | None
    old: int | None
    new: int | None

    def __str__(self) -> str:
        ranks = " to ".join(str(rank) for rank in (self.old, self.new) if rank is not None)
        return f"{self.id} (rank {ranks}, {'not judged' if self.grade is None else f'grade {self.grade}'})"


@dataclass(frozen=True)
class LostTopic:
    """A topic on which the candidate is worse, with the documents that moved, the highest grades first.

    Args:
        topic: The topic.
        baseline: Value of the baseline.
        candidate: Value of the candidate.
        went: Documents that are not among the first ranks any more.
        fell: Relevant documents that rank lower.
        came: Documents that are new among the first ranks.
    """

    topic: Topic
    baseline: float
    candidate: float
    went: tuple[Moved, ...]
    fell: tuple[Moved, ...]
    came: tuple[Moved, ...]


@dataclass(frozen=True, eq=False)
class GateResult(TableReport):
    """The result of a gate; `print` shows it, `save` writes it.

    Args:
        gate: The gate.
        problems: Why nothing can be decided.
        stale: How the lock differs from what is there now.
        runs: The runs of the arms that answered.
        lock: The lock of the baseline, if there is one.
        report: The comparison of both runs; None without a decision.
        decision: The decision by the measures.
        plan: The topics that it takes.
        limits: The limits of time and cost.
        lost_by: The measure by which the candidate loses most, in margins.
        lost: The topics on which it loses most.
    """

    NOUN = "a gate's result"
    FORMS = FORMS

    gate: GateFile
    problems: tuple[str, ...]
    stale: tuple[str, ...]
    runs: Mapping[str, Run]
    lock: Lock | None
    report: Report | None = None
    decision: Decision | None = None
    plan: Plan | None = None
    limits: tuple[Limit, ...] = ()
    lost_by: Measure | None = None
    lost: tuple[LostTopic, ...] = ()

    @property
    def outcome(self) -> Answer:
        """The answer of the measures and the limits together."""
        answers = {limit.answer for limit in self.limits}
        if self.decision is None or self.stale or Answer.DID_NOT_RUN in answers:
            return Answer.DID_NOT_RUN
        return Answer.LOSES if Answer.LOSES in answers else self.decision.answer

    @property
    def exit_code(self) -> int:
        """0 passes, 1 loses, 2 not enough topics, 3 did not run."""
        return EXIT_CODES[self.outcome]

    def differences(self) -> dict[str, dict[str, float]]:
        """Return candidate minus baseline by measure and topic."""
        if self.report is None:
            return {}
        rows = {str(measure): (values[:, 1] - values[:, 0]).round(6).tolist() for measure, values in self.report.values.items()}
        return {measure: dict(zip(self.report.topics, values, strict=True)) for measure, values in rows.items()}

    def write(self) -> None:
        """Write the candidate's run and the result into the folder of results, from which `accept` takes them.

        An InputWarning tells if they cannot be written, as in a folder that is read-only: the answer is none the less one.
        """
        folder = self.gate.results
        try:
            folder.mkdir(exist_ok=True)
            if (run := self.runs.get("candidate")) is not None:
                try:
                    write_run(run, folder / "candidate.run", "candidate")
                except InputError:  # ids with white space, which TREC's format cannot hold
                    write(folder / "candidate.run", [json_text(run.to_dict()).encode()])
            write(folder / "result.json", [self.to_json().encode()])
        except (FontesError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            problem = f"{folder}: the result cannot be written ({reason}), so 'fontes gate accept' does not have it"
            warnings.warn(problem, InputWarning, stacklevel=2)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except texts and judgments as JSON values."""
        facts = {name: facts_of(run) for name, run in self.runs.items()}
        path = self.gate.results / "candidate.run"
        values: dict[str, object] = json_values(
            {
                "outcome": self.outcome,
                "date": date.today().isoformat(),
                "problems": self.problems,
                "stale": self.stale,
                "topics": len(self.gate.topics),
                "alpha": self.gate.settings.alpha,
                "power": self.gate.settings.power,
                "margins": texts_of(self.gate.margins),
                "measures": [_plain(row) for row in self.decision.measures] if self.decision else [],
                "needed": [{**_plain(row), "text": str(row)} for row in self.plan.measures] if self.plan else [],
                "limits": [{**asdict(limit), "ratio": limit.ratio, "answer": limit.answer} for limit in self.limits],
                "drift": {measure: asdict(total) for measure, total in self._drifts().items()},
                "lost": [{**asdict(lost), "topic": lost.topic.id} for lost in self.lost],
                "arms": facts,
                "baseline": self._baseline_digest(),
                "digests": digests_of(path, self.gate.topics, self.gate.qrels) if "candidate" in self.runs else {},
                "differences": self.differences(),
            }
        )
        return values

    def _baseline_digest(self) -> str | None:
        path = self.gate.baseline_run
        return digest_of(path) if path is not None and path.exists() else None

    def to_markdown(self, page: str = "") -> str:
        """Return a comment for a pull request; `page` is the address of the HTML report, if there is one."""
        parts = [f"### Search quality: {self.outcome}", *(table.markdown() for table in self._tables())]
        parts.append("\n".join(f"- {escaped_markdown(line)}" for line in self._notes()))
        if self.lost:
            lines = "\n".join(line for lost in self.lost for line in _lost_lines(lost)).replace("`", "'")
            parts.append(f"<details><summary>{self._lost_title()}</summary>\n\n```text\n{lines}\n```\n\n</details>")
        if page:
            parts.append(f"[Both runs, topic by topic]({page})")
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_html(self) -> str:
        """Return the page of the comparison; ParameterError if nothing was compared."""
        if self.report is None:
            raise ParameterError("the gate did not run, so there is no comparison to write as a page")
        return self.report.to_html()

    def to_junit(self) -> str:
        """Return a suite of JUnit's XML, with a case for each measure and limit."""
        suite = ElementTree.Element("testsuite", name="fontes gate")
        too_few = self.gate.settings.too_few
        counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for name, answer, text in self._cases():
            counts["tests"] += 1
            case = ElementTree.SubElement(suite, "testcase", classname=self.gate.path.name, name=name)
            tag = {Answer.LOSES: "failure", Answer.DID_NOT_RUN: "error"}.get(answer, "")
            if answer == Answer.NOT_ENOUGH:
                tag = "failure" if too_few == "fail" else "skipped"
            if tag:
                counts[{"failure": "failures", "error": "errors"}.get(tag, tag)] += 1
                ElementTree.SubElement(case, tag, type=answer, message=NOT_XML.sub("", text)).text = NOT_XML.sub("", str(self))
        for name, count in counts.items():
            suite.set(name, str(count))
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

    def _cases(self) -> Iterator[tuple[str, Answer, str]]:
        if self.decision is None or self.stale:
            yield "gate", Answer.DID_NOT_RUN, " ".join([*self.problems, *self.stale])
            return
        for row in self.decision.measures:
            yield str(row.measure), row.answer, self._sentence(row)
        for limit in self.limits:
            yield limit.name, limit.answer, f"{limit.name}: {_ratio(limit)} of the baseline's, the limit is {limit.limit:g}"

    def _rows(self) -> list[dict[str, object]]:
        return [] if self.decision is None else [vars(row) for row in self.decision.measures]

    def _tables(self) -> list[ResultTable]:
        if self.decision is None:
            return []
        header = ("measure", "baseline", "candidate", "difference", self._interval(), "margin", "answer")
        rows: list[tuple[str, ...]] = [
            (*_figures(row), _range(row.low, row.high), f"{row.margin:g}", row.answer) for row in self.decision.measures
        ]
        tables = [_table(header, rows)]
        if self.limits:
            amounts = [[_amount(value, limit.unit) for value in (limit.baseline, limit.candidate)] for limit in self.limits]
            rows = [
                (limit.name, *amount, _ratio(limit), f"{limit.limit:g}", limit.answer)
                for limit, amount in zip(self.limits, amounts, strict=True)
            ]
            tables.append(_table(("limit of", "baseline", "candidate", "ratio", "limit", "answer"), rows))
        return tables

    def _interval(self) -> str:
        return f"{100 * (1 - 2 * self.gate.settings.alpha):g}% interval"

    def _sentence(self, row: MeasureDecision) -> str:
        name, baseline, candidate, difference = _figures(row)
        interval = f"({self._interval()} {_range(row.low, row.high)}), margin {row.margin:g}"
        return f"{name} {row.answer}: {baseline} to {candidate}, {difference} {interval}"

    def _notes(self) -> list[str]:
        return list(self._note_lines())

    def _note_lines(self) -> Iterator[str]:
        yield from self.problems
        yield from self.stale
        if self.decision is None or self.plan is None:
            return
        yield "; ".join(f"{name}: {run.provenance['description']}" for name, run in self.runs.items())
        if have_same_documents(self.runs):
            yield "both gave the same documents in the same order"
        yield from length_notes(self.runs, (row.measure for row in self.decision.measures))
        units = "" if self.decision.units == self.decision.topics else f" in {self.decision.units:,} groups"
        yield f"{self.decision.topics:,} topics{units}; one-sided t-tests against the margins, p ≤ {self.decision.alpha:g}"
        for row, needed in zip(self.decision.measures, self.plan.measures, strict=True):
            if row.answer == Answer.NOT_ENOUGH:
                yield f"{row.measure}: {needed}"
            if row.lost_within_margin:
                yield f"{row.measure}: a loss is certain, and it is smaller than the margin"
        for name, run in self.runs.items():
            if empty := run.provenance["empty"]:
                yield f"the {name} found nothing for {len(empty):,} topics, such as '{empty[0]}'; they count 0"
        for limit in self.limits:
            if limit.answer == Answer.DID_NOT_RUN:
                names = zip(self.runs, (limit.baseline, limit.candidate), strict=True)
                unknown = " and the ".join(name for name, value in names if math.isnan(value))
                yield f"the {limit.name} of the {unknown} are not known; leave {limit.name} out of [limits]"
        for measure, total in self._drifts().items():
            margin, changes = texts_of(self.gate.margins)[measure], "change" if total.changes == 2 else "changes"
            more = f", more than the margin of {margin:g}" if total.high < -margin else ""
            accepted = f"over {total.changes - 1:,} accepted {changes} and this one"
            total_text = f"{_signed(total.difference)} ({_range(total.low, total.high)})"
            yield f"{measure} since the first baseline, {accepted}: {total_text}{more}"

    def _drifts(self) -> Mapping[str, Drift]:
        if self.lock is None or not self.lock.accepted or self.decision is None:
            return {}
        return self.lock.drifts(self.differences(), self.gate.settings.alpha, self.gate.clusters)

    def _lost_title(self) -> str:
        return f"Topics that lost most, by {self.lost_by}"

    def _head(self) -> list[str]:
        return [f"{self.gate.path}: {self.outcome}"]

    def __str__(self) -> str:
        lost = ["", self._lost_title(), *(line for lost in self.lost for line in _lost_lines(lost))] if self.lost else []
        return "\n".join([super().__str__(), *lost])

    def __repr__(self) -> str:
        return f"GateResult({self.outcome})"


def have_same_documents(runs: Mapping[str, Run]) -> bool:
    """Whether two runs have the same documents in the same order for each topic."""
    first, second = ({topic: ranking.ids for topic, ranking in run.items() if len(ranking)} for run in runs.values())
    return first == second


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> ResultTable:
    return ResultTable.of(header, ([ResultCell(text, best=text == Answer.LOSES) for text in row] for row in rows), 1)


def _figures(row: MeasureDecision) -> tuple[str, str, str, str]:
    return str(row.measure), f"{row.baseline:.4f}", f"{row.candidate:.4f}", _signed(row.difference)


def _lost_lines(lost: LostTopic) -> Iterator[str]:
    text = " ".join(lost.topic.text.split())
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1].rstrip()}…"
    yield f"{lost.topic.id}  {lost.baseline:.4f} to {lost.candidate:.4f}  {text}".rstrip()
    for verb, moved in (("went", lost.went), ("fell", lost.fell), ("came", lost.came)):
        if moved:
            more = f" and {len(moved) - SHOWN} more" if len(moved) > SHOWN else ""
            yield f"    {verb}: {', '.join(map(str, moved[:SHOWN]))}{more}"


def _signed(value: float) -> str:
    return f"{round(value, 4) + 0.0:+.4f}"  # no negative zero


def _range(low: float, high: float) -> str:
    return f"{_signed(low)} to {_signed(high)}"


def _amount(value: float, unit: str) -> str:
    return EMPTY_CELL if math.isnan(value) else f"{value:,.2f} {unit}" if unit else f"{value:,.0f}"


def _ratio(limit: Limit) -> str:
    if math.isnan(limit.ratio):
        return EMPTY_CELL
    return f"{limit.ratio:.2f}" + ("" if math.isnan(limit.low) else f" ({limit.low:.2f} to {limit.high:.2f})")


def _plain(row: Any) -> dict[str, object]:
    return {**asdict(row), "measure": str(row.measure)}
