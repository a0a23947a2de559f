"""Report of a log: calls, tokens, repeats, searches without hits, and evidence by call, with intervals over sessions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ...comparison.statistics import bootstrap
from ...plots.tables import EMPTY_CELL, ResultTable, TableReport, json_values
from ...rewrite.reasoning import REASONING
from .log import LoggedCall, Session
from .sessions import QUERY, TOPICS, by_session, first_shown, query_of, read_ids, reasoning_in

CALLS = (1, 2, 3, 5, 10, 20)  # numbers of calls after which evidence is counted


@dataclass(frozen=True)
class Mean:
    """Mean of a value over the sessions that have it (NaN without any), and its bootstrap interval."""

    name: str
    mean: float
    low: float
    high: float
    sessions: int


@dataclass(frozen=True)
class AgentReport(TableReport):
    """Report of a log.

    Args:
        sessions: Number of sessions.
        calls: Number of calls by tool.
        failed: Number of failed calls by sentence, the most frequent first.
        means: Means over the sessions.
        evidence: Share of a session's evidence shown up to a call, and documents of the evidence per 1,000 tokens of answers.
        judged: Source of the evidence: "read", "cited" or "judged".
        confidence: Confidence of the intervals.
    """

    TITLE = "Calls of agents"
    LABEL = "tab:agents"

    sessions: int
    calls: Mapping[str, int]
    failed: Mapping[str, int]
    means: tuple[Mean, ...]
    evidence: tuple[Mean, ...]
    judged: str
    confidence: float

    def _rows(self) -> list[dict[str, object]]:
        return [asdict(mean) for mean in (*self.means, *self.evidence)]

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values; NaN is None."""
        values: dict[str, object] = json_values(asdict(self))
        return values

    def _head(self) -> list[str]:
        tools = ", ".join(f"{tool} {count:,}" for tool, count in self.calls.items())
        return [f"{self.sessions:,} sessions, {sum(self.calls.values()):,} calls: {tools}"]

    def _tables(self) -> list[ResultTable]:
        tables = {"a session has": self.means, f"evidence ({self.judged}) shown": self.evidence}
        interval = f"{self.confidence:.0%} interval"
        return [
            ResultTable.of((name, "mean", interval), map(_row, means), 1, caption=f"Means over sessions, with {interval}s.")
            for name, means in tables.items()
            if means
        ]

    def _notes(self) -> list[str]:
        none = [] if self.evidence else ["no session has any evidence"]
        return [*none, *(f"{count:,} failed: {sentence}" for sentence, count in list(self.failed.items())[:5])]


def report_of(
    sessions: Sequence[Session], qrels: Mapping[str, Mapping[str, int]], judged: str, confidence: float = 0.95
) -> AgentReport:
    """Return the report of a log.

    Means are over sessions, each of which counts once; their intervals are bootstrapped over sessions. A repeat is a call with
    the tool and arguments of an earlier call of its session. Evidence is shown by call n if one of the first n calls returned
    it; a call that names the document does not count. It is also counted per 1,000 tokens of the session's answers.

    Args:
        sessions: The sessions; at least one.
        qrels: Evidence; its topics are ids of sessions, or of topics of the log.
        judged: Source of the evidence, for the report: "read", "cited" or "judged".
        confidence: Confidence of the intervals.
    """
    figures: dict[str, list[float]] = {}
    for session in sessions:
        for name, value in _figures(session).items():
            figures.setdefault(name, []).append(value)
    relevant = by_session(sessions, qrels)
    longest = max(len(session.calls) for session in sessions)
    first = {session.id: first_shown(session) for session in sessions}
    evidence: list[Mean] = []
    for number in [call for call in CALLS if call <= longest] or [1]:
        shares = [
            sum(first[session].get(doc_id, longest + 1) <= number for doc_id in doc_ids) / len(doc_ids)
            for session, doc_ids in relevant.items()
            if doc_ids
        ]
        if shares:
            evidence.append(mean_of(f"by call {number}", shares, confidence))
    if evidence:
        rates = [
            1000 * len(doc_ids & first[session.id].keys()) / tokens
            for session in sessions
            if (doc_ids := relevant[session.id]) and (tokens := sum(call.tokens for call in session.calls))
        ]
        evidence.append(mean_of("documents per 1,000 tokens", rates, confidence))
    failed = Counter(call.error for session in sessions for call in session.calls if call.error)
    return AgentReport(
        sessions=len(sessions),
        calls=dict(Counter(call.tool for session in sessions for call in session.calls).most_common()),
        failed=dict(failed.most_common()),
        means=tuple(mean_of(name, values, confidence) for name, values in figures.items()),
        evidence=tuple(evidence),
        judged=judged,
        confidence=confidence,
    )


def _figures(session: Session) -> dict[str, float]:
    """Values of a session by name; NaN where a value is undefined."""
    calls = session.calls
    searches = [call for call in calls if call.tool in TOPICS and query_of(call) and not call.error]
    return {
        "calls": len(calls),
        "tokens of answers": sum(call.tokens for call in calls),
        "seconds of a call": sum(call.ms for call in calls) / len(calls) / 1000,
        "searches": len(searches),
        "documents read": len({doc_id for call in calls for doc_id in read_ids(call)}),
        "repeated calls, share": _repeats(calls) / len(calls),
        "failed calls, share": sum(bool(call.error) for call in calls) / len(calls),
        "searches with reasoning, share": _share(bool(reasoning_in(call)) for call in searches),
        "hits shown before, share": _share(_shown_before(searches)),
        "searches without hits, share": _share(not call.documents for call in searches),
    }


def _share(values: Iterable[bool]) -> float:
    """Share of the values that are true; NaN without values."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan


def _shown_before(searches: Sequence[LoggedCall]) -> Iterator[bool]:
    """Yield for each document that the searches returned whether an earlier search had returned it."""
    shown: set[tuple[str, str]] = set()
    for call in searches:
        documents = {(call.index, doc_id) for doc_id in call.documents}
        yield from (document in shown for document in documents)
        shown |= documents


def _repeats(calls: Sequence[LoggedCall]) -> int:
    """Number of calls that repeat tool, query and other arguments of an earlier call.

    Case, reasoning and budget do not count. A search that leaves out what was shown is no repeat: it gives the next hits.
    """
    keys = set()
    for number, call in enumerate(calls):
        other_arguments = {
            name: value for name, value in call.arguments.items() if name not in ("tokens", REASONING, QUERY.get(call.tool))
        }
        continued = number if call.arguments.get("seen") == "drop" else None
        keys.add((call.tool, query_of(call).casefold(), repr(sorted(other_arguments.items())), continued))
    return len(calls) - len(keys)


def mean_of(name: str, values: Sequence[float], confidence: float) -> Mean:
    """Mean of the values that are defined, with its interval."""
    defined = np.array([value for value in values if not math.isnan(value)], dtype=np.float64)
    if not len(defined):
        return Mean(name, math.nan, math.nan, math.nan, 0)
    low, high = bootstrap(defined[:, None], confidence)
    return Mean(name, float(defined.mean()), float(low[0]), float(high[0]), len(defined))


def _row(mean: Mean) -> tuple[str, str, str]:
    """Name, mean and interval."""
    if not mean.sessions:
        return mean.name, EMPTY_CELL, EMPTY_CELL
    unit = " s" if mean.name.startswith("seconds") else ""
    interval = EMPTY_CELL if math.isnan(mean.low) else f"{_number(mean.low)}{unit} to {_number(mean.high)}{unit}"
    return mean.name, _number(mean.mean) + unit, interval


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
