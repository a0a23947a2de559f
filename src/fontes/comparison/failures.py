"""Error analysis: the topics on which a run loses most, and facts that may explain why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Hit, Qrels, Run, Topic
from ..index.state import State
from ..measures.measure import Measure
from ..plots.tables import ResultTable, TableReport, latex_text

if TYPE_CHECKING:
    from .report import Report

IDEAL = "ideal"  # name of the run that ranks relevant documents by grade
DEPTH = 10  # documents of a ranking to examine, if the measure has no cutoff
MAX_LISTED = 5  # documents in a sentence or list
MIN_SIMILARITY = 0.8  # share of common terms (Jaccard) from which on documents repeat each other
COLUMNS = [
    *("topic", "text", "value", "other", "loss", "relevant", "retrieved", "unjudged"),
    *("above", "low", "unknown", "lacked", "repeated"),
]
WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class LowRanked:
    """A relevant document that the run does not retrieve, or ranks below its first documents or lower than the other run.

    Args:
        id: Id of the document.
        grade: Its grade.
        rank: Its rank in the run, from 1; None if not retrieved.
        other: Its rank in the other run.
        lacks: Words of the topic that it lacks; empty if the index is not known.
        length: Its length over the mean of the collection; None if the index is not known.
    """

    id: str
    grade: int
    rank: int | None
    other: int | None
    lacks: tuple[str, ...] = ()
    length: float | None = None


@dataclass(frozen=True)
class Failure:
    """A topic on which a run loses.

    Args:
        topic: The topic.
        value: Value of the run.
        other: Value of the other run.
        depth: Number of first documents of the run that the other fields describe.
        relevant: Number of the topic's relevant documents.
        retrieved: Number of relevant documents among the first documents.
        unjudged: Number of first documents without a judgment.
        above: First documents that are not relevant and rank above a relevant one.
        low: Relevant documents that rank low, the best grades first.
        unknown: Words of the topic that no document has.
        repeated: Pairs of first documents that share most of their terms.
    """

    topic: Topic
    value: float
    other: float
    depth: int
    relevant: int
    retrieved: int
    unjudged: int
    above: tuple[Hit, ...]
    low: tuple[LowRanked, ...]
    unknown: tuple[str, ...] = ()
    repeated: tuple[tuple[str, str], ...] = ()

    @property
    def loss(self) -> float:
        """The value of the other run minus the value of the run."""
        return self.other - self.value

    def reasons(self, against: str = "the other run") -> list[str]:
        """Return the facts as sentences.

        Args:
            against: Name of the other run; "ideal" is not mentioned.
        """
        lines = [f"{self.retrieved} of {self.relevant} relevant documents are among the first {self.depth}"]
        lines += [_sentence(low_ranked, against) for low_ranked in self.low[:MAX_LISTED]]
        if len(self.low) > MAX_LISTED:
            lines.append(f"{len(self.low) - MAX_LISTED} more relevant documents rank low")
        if self.above:
            shown = ", ".join(f"{hit.id} at rank {hit.rank}" for hit in self.above[:MAX_LISTED])
            lines.append(f"{shown}{' and more' * (len(self.above) > MAX_LISTED)} not relevant, above a relevant document")
        if self.unknown:
            lines.append(f"no document has {_quoted(self.unknown)}")
        if self.unjudged:
            lines.append(f"{self.unjudged} of the first {self.depth} are not judged")
        lines += [f"{a} and {b} repeat each other" for a, b in self.repeated[:MAX_LISTED]]
        return lines


@dataclass(frozen=True, eq=False)
class Failures(TableReport, Sequence[Failure]):
    """Result of `fontes.comparison.failures`: topics by loss, the largest first.

    Args:
        rows: The failures.
        measure: The measure.
        system: Name of the run.
        against: Name of the other run; "ideal" for the best order of the judged documents.
        losing: Number of all topics on which the run loses.
        report: The comparison of both runs.
    """

    LABEL = "tab:failures"
    COLUMNS = COLUMNS

    rows: tuple[Failure, ...]
    measure: Measure
    system: str
    against: str
    losing: int
    report: Report

    def __getitem__(self, position: Any) -> Any:
        return self.rows[position]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "measure": str(self.measure),
            "system": self.system,
            "against": self.against,
            "topics": len(self.report.topics),
            "losing": self.losing,
            "failures": [
                {"topic": row.topic.id, "text": row.topic.text, "loss": row.loss}
                | {name: value for name, value in asdict(row).items() if name not in ("topic", "above")}
                | {"above": [hit.id for hit in row.above]}
                for row in self
            ],
        }

    def _rows(self) -> list[dict[str, object]]:
        return [_table_row(row) for row in self]

    def to_markdown(self) -> str:
        """Return a Markdown list of the topics with their reasons."""
        lines = [self._lead, ""]
        for row in self:
            lines.append(f"* **{row.topic.id}** {row.value:.4f} (−{row.loss:.4f}) {row.topic.text}".rstrip())
            lines += [f"    * {reason}" for reason in row.reasons(self.against)]
        return "\n".join(lines) + "\n"

    def to_latex(self, *, label: str | None = None) -> str:
        """Return a table of the topics with their values for a paper; arguments as for `Report.to_latex`."""
        rows = [(row.topic.id, row.topic.text, *(f"{v:.4f}" for v in (row.value, row.other, row.loss))) for row in self]
        table = ResultTable.of(
            ("topic", "text", self.system, self.against, "loss"), rows, 2, caption=f"{latex_text(self._lead)}."
        )
        return table.latex(label or self.LABEL)

    def to_html(self, depth: int = 10, snippet: int = 200) -> str:
        """Return the page of the comparison, opened at the largest loss, with the reasons above the rankings.

        Args:
            depth: Documents of each ranking, from 1 up.
            snippet: Characters of each known document, from 0 up.
        """
        from .report_page import html

        return html(self.report, depth, snippet, {row.topic.id: row.reasons(self.against) for row in self})

    @property
    def _lead(self) -> str:
        against = "the ideal order" if self.against == IDEAL else self.against
        topics = len(self.report.topics)
        return f"{self.measure}: {self.system} loses against {against} on {self.losing} of {topics} topics"

    def _head(self) -> list[str]:
        return [self._lead]

    def _tables(self) -> list[ResultTable]:
        return []

    def _notes(self) -> list[str]:
        lines: list[str] = []
        for row in self:
            title = f"{row.topic.id}  {row.value:.4f} against {row.other:.4f} (−{row.loss:.4f})  {row.topic.text}".rstrip()
            lines += [*([""] if lines else []), title, *(f"  {reason}" for reason in row.reasons(self.against))]
        return lines

    def __repr__(self) -> str:
        return f"Failures({self.system} against {self.against}, {self.measure}: {len(self)} topics)"


def failures_of(report: Report, n: int, state: State | None) -> Failures:
    """Return the topics on which the first system of a report of one measure loses most to the second.

    Args:
        report: The comparison.
        n: Maximum number of topics.
        state: The state of the index searched, if known.
    """
    (measure,) = report.measures
    name, against = report.systems
    values = report.values[measure]
    losses = values[:, 1] - values[:, 0]
    losing = [i for i in np.argsort(-losses, kind="stable").tolist() if losses[i] > 0]
    topics = list(report.topics.values())
    rows = (_failure(report, topics[i], values[i].tolist(), state) for i in losing[:n])
    return Failures(tuple(rows), measure, name, against, len(losing), report)


def ideal_run(qrels: Qrels) -> Run:
    """Return the run of all relevant documents by grade."""
    return Run.of(
        {topic: {doc_id: float(grade) for doc_id, grade in grades.items() if grade > 0} for topic, grades in qrels.items()}
    )


def state_of(documents: object) -> State | None:
    """Return the state of an index, or None for other sources of documents."""
    state = getattr(documents, "state", None)
    return state if isinstance(state, State) else None


def _failure(report: Report, topic: Topic, values: list[float], state: State | None) -> Failure:
    (measure,) = report.measures
    name, against = report.systems
    grades = report.qrels[topic.id]
    depth = measure.cutoff if isinstance(measure.cutoff, int) else DEPTH
    runs = report.systems[name].run, Run.of({}) if against == IDEAL else report.systems[against].run
    hits, other_hits = (list(run[topic.id]) if topic.id in run else [] for run in runs)
    ranks, other_ranks = ({hit.id: hit.rank for hit in ranking} for ranking in (hits, other_hits))
    top = [hit.id for hit in hits[:depth]]
    relevant = sorted((doc_id for doc_id in grades if grades[doc_id] > 0), key=lambda doc_id: (-grades[doc_id], doc_id))
    not_retrieved = max(depth, len(hits), len(other_hits)) + 1  # as a rank
    last = max((ranks.get(doc_id, not_retrieved) for doc_id in relevant), default=0)
    low = [
        doc_id
        for doc_id in relevant
        if (rank := ranks.get(doc_id, not_retrieved)) > depth or rank > other_ranks.get(doc_id, not_retrieved)
    ]
    terms = None if state is None else _TermFacts(state, topic, [*low[:MAX_LISTED], *top])
    return Failure(
        topic,
        value=values[0],
        other=values[1],
        depth=depth,
        relevant=len(relevant),
        retrieved=sum(ranks.get(doc_id, not_retrieved) <= depth for doc_id in relevant),
        unjudged=sum(doc_id not in grades for doc_id in top),
        above=tuple(hit for hit in hits[:depth] if grades.get(hit.id, 0) <= 0 and hit.rank < last),
        low=tuple(
            LowRanked(doc_id, grades[doc_id], ranks.get(doc_id), other_ranks.get(doc_id), *(terms.of(doc_id) if terms else ()))
            for doc_id in low
        ),
        unknown=terms.unknown if terms else (),
        repeated=terms.repeated(top) if terms else (),
    )


class _TermFacts:
    """Facts about the terms of a topic and of documents: the words that documents lack, their lengths, and repeats.

    Args:
        state: State of the index.
        topic: The topic.
        ids: Documents to read; those that the index lacks have no terms.
    """

    def __init__(self, state: State, topic: Topic, ids: Sequence[str]) -> None:
        words = list(dict.fromkeys(WORD.findall(topic.text)))
        self._words = {word: frozenset(terms) for word, terms in zip(words, state.analyzer.many(words), strict=True) if terms}
        self.unknown = tuple(w for w, terms in self._words.items() if not any(map(state.df_of, terms)))
        indexed = [doc_id for doc_id in dict.fromkeys(ids) if doc_id in state] if state.has_texts else []
        self._docs = dict(zip(indexed, map(Counter, state.analyzed(indexed)), strict=True))
        self._mean_length = state.tokens / max(len(state), 1)

    def of(self, doc_id: str) -> tuple[tuple[str, ...], float | None]:
        """Return the words of the topic that a document lacks, and its length over the mean."""
        if (terms := self._docs.get(doc_id)) is None:
            return (), None
        lacks = tuple(
            word for word, word_terms in self._words.items() if word not in self.unknown and word_terms.isdisjoint(terms)
        )
        return lacks, round(terms.total() / self._mean_length, 4) if self._mean_length else None

    def repeated(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return pairs of documents whose sets of terms have at least MIN_SIMILARITY in common."""
        sets = {doc_id: set(self._docs[doc_id]) for doc_id in ids if self._docs.get(doc_id)}
        return tuple(
            (a, b) for a, b in combinations(sets, 2) if len(sets[a] & sets[b]) >= MIN_SIMILARITY * len(sets[a] | sets[b])
        )


def _table_row(row: Failure) -> dict[str, object]:
    """Return a row of a table; several words or ids are separated by spaces."""
    lacked = Counter(word for low_ranked in row.low for word in low_ranked.lacks)
    return {
        "topic": row.topic.id,
        "text": row.topic.text,
        "value": row.value,
        "other": row.other,
        "loss": row.loss,
        "relevant": row.relevant,
        "retrieved": row.retrieved,
        "unjudged": row.unjudged,
        "above": " ".join(hit.id for hit in row.above),
        "low": " ".join(low_ranked.id for low_ranked in row.low),
        "unknown": " ".join(row.unknown),
        "lacked": " ".join(word for word, _ in lacked.most_common()),
        "repeated": " ".join(f"{a}={b}" for a, b in row.repeated),
    }


def _sentence(low_ranked: LowRanked, against: str) -> str:
    rank = "not retrieved" if low_ranked.rank is None else f"at rank {low_ranked.rank}"
    text = f"{low_ranked.id} (grade {low_ranked.grade}) is {rank}"
    if low_ranked.other is not None:
        text += f", at rank {low_ranked.other} in {against}"
    if low_ranked.lacks:
        text += f"; it lacks {_quoted(low_ranked.lacks)}"
    if low_ranked.length is not None and not 0.5 <= low_ranked.length <= 2:
        text += f"; it has {low_ranked.length:.1f} times the mean length"
    return text


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
