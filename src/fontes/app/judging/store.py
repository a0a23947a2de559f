"""What judges have said: topics, pools, grades, notes, evidence, and what was settled."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ...core.errors import InputError, ParameterError
from ...core.values import Topic, Topics
from .file import JudgmentsFile

NAME = re.compile(r"\w[\w .@-]{0,39}")
GRADES = range(4)
RESERVED = ("agreed", "settled")  # what exports are called
_TOPIC = TypeAdapter(Topic)


class Judgment(NamedTuple):
    """A judge's present grade of a document.

    Attributes:
        judge: Who gave it.
        topic: The topic's id.
        document: The document's id.
        grade: 0 to 3.
        time: When, in UTC.
        seconds: How long the document was looked at, all times together.
    """

    judge: str
    topic: str
    document: str
    grade: int
    time: str
    seconds: float


class Store(JudgmentsFile):
    """The judgments. Each method that changes something returns when the change is on disk."""

    # Judges

    def judges(self) -> list[str]:
        """Their names, in the order in which they came."""
        return [name for (name,) in self.rows("SELECT name FROM judges ORDER BY rowid")]

    def add_judge(self, name: str) -> str:
        """A new judge's token, of which the file keeps a hash; for one who is there, another in place of the one before.

        Raises:
            ParameterError: Nobody can be called so.
        """
        if not NAME.fullmatch(name) or name.lower() in RESERVED or name.endswith("."):
            raise ParameterError(
                f"a judge cannot be called '{name[:60]}': a name has 1 to 40 letters, digits, spaces and .@-_, "
                f"begins with a letter or digit, and is not {' or '.join(RESERVED)}"
            )
        if (other := next((known for known in self.judges() if known.lower() == name.lower()), name)) != name:
            raise ParameterError(f"there is a judge '{other}' already; '{name}' needs another name")
        token = secrets.token_urlsafe(24)
        with self.change() as db:
            db.execute(
                "INSERT INTO judges VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET token = excluded.token",
                (name, _hashed(token), _now()),
            )
        return token

    def judge_of(self, token: str) -> str | None:
        """Whose token it is. Takes as long for every token."""
        hashed, name = _hashed(token), None
        for judge, own in self.rows("SELECT name, token FROM judges"):
            if hmac.compare_digest(own, hashed):
                name = judge
        return name

    # Topics and pools

    def topics(self) -> Topics:
        """The topics, in the order in which they came."""
        return Topics(_TOPIC.validate_json(topic) for (topic,) in self.rows("SELECT topic FROM topics ORDER BY place"))

    def add_topics(self, topics: Topics) -> None:
        """Adds those that are new.

        Raises:
            InputError: One that is there already has another text; then none is added.
        """
        known = self.topics()
        for topic in topics.values():
            if topic.id in known and known[topic.id].text != topic.text:
                raise InputError(
                    f"topic '{topic.id}' is '{known[topic.id].text[:200]}' in {self.path.name}, and '{topic.text[:200]}' here: "
                    "give it another id, or judge into another file (--judgments)"
                )
        with self.change() as db:
            for topic in topics.values():
                if topic.id not in known:
                    text = _TOPIC.dump_json(topic).decode()
                    db.execute("INSERT INTO topics SELECT ?, 1 + count(*), ? FROM topics", (topic.id, text))

    def new_topic(self, topic: Topic) -> Topic:
        """Adds a topic under an id of its own: the least number that is free.

        Args:
            topic: The topic; its id counts for nothing.
        """
        with self._turn:
            known, number = self.topics(), 1
            while str(number) in known:
                number += 1
            numbered = Topic(str(number), topic.text, topic.narrative, topic.description)
            self.add_topics(Topics([numbered]))
        return numbered

    def unpooled(self, fingerprint: str, pipeline: str, depth: int) -> Topics:
        """The topics whose pools lack what a pipeline finds.

        Args:
            fingerprint: The index.
            pipeline: The pipeline's expression.
            depth: How many of its best documents.
        """
        query = "SELECT topic FROM pools WHERE fingerprint = ? AND pipeline = ? AND depth >= ?"
        done = {topic for (topic,) in self.rows(query, fingerprint, pipeline, depth)}
        return Topics(topic for topic in self.topics().values() if topic.id not in done)

    def add_pools(self, documents: Mapping[str, Iterable[str]], fingerprint: str, pipeline: str, depth: int) -> None:
        """Adds to the pools what a pipeline finds; the arguments are those of `unpooled`, after documents' ids by topic."""
        with self.change() as db:
            for topic, ids in documents.items():
                db.executemany("INSERT OR IGNORE INTO pool VALUES (?, ?)", ((topic, document) for document in ids))
                db.execute("INSERT OR REPLACE INTO pools VALUES (?, ?, ?, ?, ?)", (topic, fingerprint, pipeline, depth, _now()))

    def pool(self, topic: str) -> list[str]:
        """The documents to judge for a topic, in no order that means something."""
        return [document for (document,) in self.rows("SELECT document FROM pool WHERE topic = ? ORDER BY document", topic)]

    # Judgments

    def judge(self, judge: str, topic: str, document: str, grade: int, seconds: float = 0.0) -> None:
        """Keeps a grade; an earlier one of this judge comes back when it is undone.

        Args:
            judge: Who gives it.
            topic: The topic's id.
            document: The document's id.
            grade: 0 to 3.
            seconds: How long the document was looked at.

        Raises:
            ParameterError: The document is not in the pool of the topic, there is no such judge, or the grade is another.
        """
        query = "INSERT INTO judgments (judge, topic, document, grade, seconds, time) VALUES (?, ?, ?, ?, ?, ?)"
        self._keep(query, (judge, topic, document, grade, seconds, _now()), topic, document)

    def undo(self, judge: str) -> tuple[str, str] | None:
        """Takes a judge's last judgment back; the topic and the document that it was of, or None where there is none."""
        with self.change() as db:
            query = "SELECT number, topic, document FROM judgments WHERE judge = ? AND NOT undone ORDER BY number DESC LIMIT 1"
            row = db.execute(query, (judge,)).fetchone()
            if row is None:
                return None
            db.execute("UPDATE judgments SET undone = 1 WHERE number = ?", row[:1])
        return row[1], row[2]

    def judgments(self, judge: str | None = None, topic: str | None = None) -> list[Judgment]:
        """The present grades, the earliest first.

        Args:
            judge: Of whom; None for all.
            topic: For which topic; None for all.
        """
        only = {name: value for name, value in (("judge", judge), ("topic", topic)) if value is not None}
        where = " AND ".join(f"{name} = ?" for name in only) or "1"
        query = f"SELECT judge, topic, document, grade, time, seconds FROM grades WHERE {where} ORDER BY number"
        return [Judgment(*row) for row in self.rows(query, *only.values())]

    def note(self, judge: str, topic: str, document: str, note: str) -> None:
        """Keeps a note in place of the one before; raises ParameterError as `judge` does."""
        self._keep(
            "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?)", (judge, topic, document, note, _now()), topic, document
        )

    def notes(self, topic: str | None = None) -> dict[tuple[str, str, str], str]:
        """The notes that say something, by judge, topic and document.

        Args:
            topic: For which topic; None for all.
        """
        rows = self.rows(
            "SELECT judge, topic, document, note FROM notes WHERE note != '' AND topic = coalesce(?, topic)", topic
        )
        return {(judge, of, document): note for judge, of, document, note in rows}

    def settle(self, judge: str, topic: str, document: str, grade: int | None) -> None:
        """Keeps the grade that holds where judges differ; None for none. Raises ParameterError as `judge` does."""
        if grade is None:
            with self.change() as db:
                db.execute("DELETE FROM settled WHERE topic = ? AND document = ?", (topic, document))
            return
        values = (topic, document, grade, judge, _now())
        self._keep("INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?)", values, topic, document)

    def settled(self) -> dict[tuple[str, str], tuple[int, str]]:
        """The grade that was settled and who settled it, by topic and document."""
        rows = self.rows("SELECT topic, document, grade, judge FROM settled ORDER BY time")
        return {(topic, document): (grade, judge) for topic, document, grade, judge in rows}

    # Evidence

    def set_evidence(self, judge: str, topic: str, groups: Sequence[Sequence[str]]) -> None:
        """Keeps a judge's groups of a topic, in place of those before.

        Args:
            judge: Whose.
            topic: The topic's id.
            groups: Documents that are evidence together, each group.

        Raises:
            ParameterError: A document has no grade of this judge above 0.
        """
        relevant = {judgment.document for judgment in self.judgments(judge, topic) if judgment.grade > 0}
        for group in groups:
            for document in group:
                if document not in relevant:
                    raise ParameterError(f"document '{document[:200]}' can be evidence once its grade is 1 to 3")
        distinct = dict.fromkeys(frozenset(group) for group in groups if group)
        with self.change() as db:
            db.execute("DELETE FROM evidence WHERE judge = ? AND topic = ?", (judge, topic))
            rows = ((judge, topic, number, document) for number, group in enumerate(distinct, 1) for document in group)
            db.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?)", rows)

    def evidence(self, judge: str, topic: str) -> list[list[str]]:
        """A judge's groups of a topic; the documents in a group by their ids."""
        query = "SELECT number, document FROM evidence WHERE judge = ? AND topic = ? ORDER BY number, document"
        groups: dict[int, list[str]] = {}
        for number, document in self.rows(query, judge, topic):
            groups.setdefault(number, []).append(document)
        return list(groups.values())

    def _keep(self, query: str, values: tuple[Any, ...], topic: str, document: str) -> None:
        try:
            with self.change() as db:
                db.execute(query, values)
        except sqlite3.IntegrityError as error:
            if "FOREIGN" not in str(error):
                raise ParameterError("a grade is 0, 1, 2 or 3") from None
            raise ParameterError(f"document '{document[:200]}' is not in the pool of topic '{topic[:200]}'") from None


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
