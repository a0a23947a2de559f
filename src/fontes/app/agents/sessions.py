"""Sessions of a log as a test collection: topics, weak judgments, and a run of the shown documents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.errors import InputError
from ...core.run import Run
from ...core.values import Qrels, Topic, Topics, Turn
from ...formats import write_run
from ...formats.folder import QRELS, QUERIES
from ...formats.format import format_named
from ...rewrite.reasoning import REASONING
from ...storage.files import write
from .log import LoggedCall, Session

QUERY = {"search": "query", "evidence": "claim", "facets": "query", "why": "event", "explain": "query"}
TOPICS = ("search", "evidence")  # tools whose calls become topics
READ, CITED = 1, 2  # grades of documents that were read, and cited
TURNS = 50  # maximum turns of a topic
SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class LoggedTopic:
    """A topic of a log.

    Args:
        topic: The topic; its turns are the last queries of the session, up to its own, and its metadata have the reasoning of
            the first call that has any.
        session: The session.
        positions: Positions of the topic's calls in the session, from 0.
    """

    topic: Topic
    session: Session
    positions: tuple[int, ...]

    @property
    def calls(self) -> list[LoggedCall]:
        """The calls with this query, in order of time."""
        return [self.session.calls[position] for position in self.positions]


def of_index(sessions: Sequence[Session], index: str | None = None) -> list[Session]:
    """Return the calls of one index, by its name, which may be omitted if the log has only one.

    Raises:
        InputError: The log has no call of this index, or calls of several, which are different collections.
    """
    names = sorted({call.index for session in sessions for call in session.calls if call.index and not call.error})
    if index is None:
        if len(names) > 1:
            raise InputError(
                f"the log has calls of {len(names)} indexes, which are different collections; choose one: --logged-index "
                f"{' or --logged-index '.join(names[:5])}"
            )
        return list(sessions)
    if index not in names:
        raise InputError(f"the log has no call of the index '{index}'; there are {_listed(set(names))}")
    parts = (replace(session, calls=tuple(call for call in session.calls if call.index == index)) for session in sessions)
    return [part for part in parts if part.calls]


def query_of(call: LoggedCall) -> str:
    """Return the query, claim or event of a call, white space collapsed; "" if it has none."""
    return SPACES.sub(" ", str(call.arguments.get(QUERY.get(call.tool, ""), ""))).strip()


def reasoning_in(call: LoggedCall) -> str:
    """Return the reasoning of a call, white space collapsed; "" if it has none, or the call failed."""
    reasoning = call.arguments.get(REASONING)
    return SPACES.sub(" ", reasoning).strip() if isinstance(reasoning, str) and not call.error else ""


def topics_of_log(sessions: Sequence[Session]) -> list[LoggedTopic]:
    """Return a topic for each distinct query of a session, with the id SESSION.NUMBER and the last queries as its turns."""
    topics = []
    for session in sessions:
        positions_of: dict[str, list[int]] = {}
        for position, call in enumerate(session.calls):
            if call.tool in TOPICS and (text := query_of(call)):
                positions_of.setdefault(text, []).append(position)
        turns = [Turn(text) for text in positions_of]
        for number, (text, positions) in enumerate(positions_of.items(), 1):
            stated = next(filter(None, (reasoning_in(session.calls[position]) for position in positions)), "")
            topic = Topic(
                f"{session.id}.{number}",
                text,
                turns=tuple(turns[max(0, number - TURNS) : number]),
                metadata={REASONING: stated} if stated else {},
            )
            topics.append(LoggedTopic(topic, session, tuple(positions)))
    return topics


def read_ids(call: LoggedCall) -> tuple[str, ...]:
    """Return the document that a call opened: by `read`, or by `evidence` with an id."""
    doc_id = call.arguments.get("id")
    return (doc_id,) if not call.error and call.tool in ("read", "evidence") and isinstance(doc_id, str) else ()


def weak_qrels(sessions: Sequence[Session], answers: Mapping[str, str] | None = None) -> Qrels:
    """Return judgments of the topics: grade 1 for a document that the session read, 2 for a document that its answer cites.

    A read document is judged for the queries that returned it before it was read, from the same index; a cited document for all
    queries that returned it; other documents stay unjudged. `answers` are texts by session id, in which cited ids occur.
    """
    rows: dict[tuple[str, str], int] = {}
    cited = {session.id: cited_ids(session, (answers or {}).get(session.id, "")) for session in sessions}
    last_read = {
        session.id: {(call.index, doc_id): position for position, call in enumerate(session.calls) for doc_id in read_ids(call)}
        for session in sessions
    }
    for logged in topics_of_log(sessions):
        session_id = logged.session.id
        for position, call in zip(logged.positions, logged.calls, strict=True):
            for doc_id in call.documents if "id" not in call.arguments else ():
                if doc_id in cited[session_id]:
                    rows[logged.topic.id, doc_id] = CITED
                elif last_read[session_id].get((call.index, doc_id), -1) > position:
                    rows[logged.topic.id, doc_id] = READ
    return Qrels((topic, "0", doc_id, grade) for (topic, doc_id), grade in rows.items())


def cited_ids(session: Session, answer: str) -> set[str]:
    """Return the ids of documents shown in a session that occur in a text, not as parts of longer words."""
    shown = {doc_id for call in session.calls for doc_id in call.documents}
    return {doc_id for doc_id in shown if re.search(rf"(?<![\w.-]){re.escape(doc_id)}(?!\w|[.-]\w)", answer)}


def shown_run(sessions: Sequence[Session]) -> Run:
    """Return the documents that each topic's calls returned, in order: the pool for judges."""
    topics = topics_of_log(sessions)
    rankings: dict[str, dict[str, float]] = {}
    for logged in topics:
        ids = dict.fromkeys(doc_id for call in logged.calls if "id" not in call.arguments for doc_id in call.documents)
        rankings[logged.topic.id] = {doc_id: float(len(ids) - rank) for rank, doc_id in enumerate(ids)}
    return Run.of(rankings, Topics(logged.topic for logged in topics))


def read_answers(path: Path, sessions: Sequence[Session]) -> dict[str, str]:
    """Read answers from JSON lines with "session" and "text"; raises InputError for other lines and unknown sessions."""
    session_ids = {session.id for session in sessions}
    answers: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the answers cannot be read ({getattr(error, 'strerror', None) or error})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            session, text = values["session"], values["text"]
        except (ValueError, KeyError, TypeError):
            raise InputError.at(path, number, 'not an answer; write {"session": "…", "text": "…"}') from None
        if session not in session_ids:
            raise InputError.at(path, number, f"session '{session}' is not in the log; there are {_listed(session_ids)}")
        answers[session] = f"{answers.get(session, '')}\n{text}"
    return answers


def export(sessions: Sequence[Session], folder: Path, answers: Mapping[str, str] | None = None) -> tuple[Topics, Qrels]:
    """Write topics, weak judgments and the run of shown documents to a folder in BEIR's layout; InputError without a query."""
    topics = Topics(logged.topic for logged in topics_of_log(sessions))
    if not topics:
        raise InputError("no call of the log has a query, so there are no topics")
    qrels = weak_qrels(sessions, answers)
    try:
        (folder / QRELS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made ({error.strerror or error})") from None
    write(folder / QUERIES, format_named("jsonl", "write", "topics").write_topics(topics))
    if qrels:
        write(folder / QRELS / "weak.tsv", format_named("beir", "write", "qrels").write_qrels(qrels))
    write_run(shown_run(sessions), folder / "shown.run", tag="shown")
    return topics, qrels


def _listed(names: set[str]) -> str:
    """The first five names, and how many more there are."""
    ordered = sorted(names)
    return ", ".join(ordered[:5]) + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")


def by_session(sessions: Sequence[Session], qrels: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
    """Return the relevant documents of each session: of its topics, and of a topic that has the id of the session."""
    relevant: dict[str, set[str]] = {session.id: set() for session in sessions}
    owners = {logged.topic.id: logged.session.id for logged in topics_of_log(sessions)} | {name: name for name in relevant}
    for topic, grades in qrels.items():
        if topic in owners:
            relevant[owners[topic]] |= {doc_id for doc_id, grade in grades.items() if grade > 0}
    return relevant


def first_shown(session: Session) -> dict[str, int]:
    """Return the number, from 1, of the call that first returned each document; calls that name the document do not count."""
    first: dict[str, int] = {}
    for number, call in enumerate(session.calls, 1):
        for doc_id in call.documents:
            if doc_id not in read_ids(call):
                first.setdefault(doc_id, number)
    return first
