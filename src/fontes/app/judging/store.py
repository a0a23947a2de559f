"""Storage of judgments in SQLite: judges, topics, pools, grades, notes, evidence, and settled grades."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter

from ...core.errors import FontesError, InputError, ParameterError
from ...core.values import Topic, Topics
from ...storage.files import as_path
from ...storage.system import locked

NAME = re.compile(r"\w[\w .@-]{0,39}")
GRADES = range(4)
RESERVED = AGREED, SETTLED = "agreed", "settled"  # names of exports
_TOPIC_ADAPTER = TypeAdapter(Topic)

APPLICATION_ID = 0x464E_544A  # "FNTJ", in the header of the file
VERSION = 1
SCHEMA = """
CREATE TABLE judges (name TEXT PRIMARY KEY, token BLOB NOT NULL, since TEXT NOT NULL);
CREATE TABLE topics (id TEXT PRIMARY KEY, place INTEGER NOT NULL UNIQUE, topic TEXT NOT NULL);
CREATE TABLE pools (
    topic TEXT NOT NULL REFERENCES topics, fingerprint TEXT NOT NULL, pipeline TEXT NOT NULL, depth INTEGER NOT NULL,
    time TEXT NOT NULL, PRIMARY KEY (topic, fingerprint, pipeline)
);
CREATE TABLE pool (topic TEXT NOT NULL REFERENCES topics, document TEXT NOT NULL, PRIMARY KEY (topic, document));
CREATE TABLE judgments (
    number INTEGER PRIMARY KEY AUTOINCREMENT, judge TEXT NOT NULL REFERENCES judges,
    topic TEXT NOT NULL, document TEXT NOT NULL, grade INTEGER NOT NULL CHECK (grade BETWEEN 0 AND 3),
    seconds REAL NOT NULL, time TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0, FOREIGN KEY (topic, document) REFERENCES pool
);
CREATE INDEX judgments_of ON judgments (judge, topic, document);
CREATE VIEW grades AS
    SELECT judge, topic, document, grade, time, max(number) AS number, sum(seconds) AS seconds
    FROM judgments WHERE NOT undone GROUP BY judge, topic, document;
CREATE TABLE notes (
    judge TEXT NOT NULL REFERENCES judges, topic TEXT NOT NULL, document TEXT NOT NULL, note TEXT NOT NULL, time TEXT NOT NULL,
    PRIMARY KEY (judge, topic, document), FOREIGN KEY (topic, document) REFERENCES pool
);
CREATE TABLE evidence (
    judge TEXT NOT NULL REFERENCES judges, topic TEXT NOT NULL, number INTEGER NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (judge, topic, number, document), FOREIGN KEY (topic, document) REFERENCES pool
);
CREATE TABLE settled (
    topic TEXT NOT NULL, document TEXT NOT NULL, grade INTEGER NOT NULL CHECK (grade BETWEEN 0 AND 3),
    judge TEXT NOT NULL REFERENCES judges, time TEXT NOT NULL,
    PRIMARY KEY (topic, document), FOREIGN KEY (topic, document) REFERENCES pool
);
"""


class Database:
    """An open file of judgments, usable by several threads; each change is on disk before its method returns.

    With `reading` an existing file is opened for reading only, even while a server writes it. Raises InputError for a damaged
    file or another kind of file, and FontesError if another server has the file open.
    """

    def __init__(self, path: str | Path, reading: bool = False) -> None:
        self.path = as_path(path)
        self._lock = threading.RLock()
        self._closing = contextlib.ExitStack()
        try:
            if reading and not self.path.is_file():
                raise InputError(f"{path}: there is no such file; fontes judge INDEX --judgments FILE begins one")
            if not reading:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666))
                self._closing.enter_context(locked(self.path, FontesError(f"{path}: another server has this file open")))
            with self._translated_errors():
                self._db = self._connect(reading)
                self._check(reading)
        except OSError as error:
            self.close()
            raise InputError(f"{path}: the file of judgments cannot be opened ({error.strerror or error})") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closing.close()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Transaction: committed to disk at the end of the block, rolled back if the block raises."""
        with self._lock, self._translated_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows that a query selects."""
        with self._lock, self._translated_errors():
            return self._db.execute(query, values).fetchall()

    def _connect(self, reading: bool) -> sqlite3.Connection:
        """Open the file with foreign keys checked and each commit synchronized to disk."""
        address = self.path.absolute().as_uri() + ("?mode=ro" if reading else "")
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        self._closing.callback(db.close)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _check(self, reading: bool) -> None:
        """Create the tables of a new file; raise InputError for another kind of file, a newer version, or damage."""
        (application,), (version,) = self.rows("PRAGMA application_id") + self.rows("PRAGMA user_version")
        if not application and not version and not reading and not self.rows("SELECT 1 FROM sqlite_master"):
            with self.change() as db:  # before write-ahead logging, so that the header is in the file itself
                for statement in SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
        elif application != APPLICATION_ID:
            raise InputError(f"{self.path}: not a file of judgments; name another with --judgments")
        elif version > VERSION:
            raise InputError(
                f"{self.path}: this file of judgments has version {version}; this Fontes reads {VERSION}: install a newer one"
            )
        elif (problem := self.rows("PRAGMA quick_check(1)")[0][0]) != "ok":
            raise self._damaged(problem)
        if not reading:
            self.rows("PRAGMA journal_mode = WAL")

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise SQLite's errors as FontesError, with a sentence for judges, which does not show the folder."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise FontesError(f"{self.path.name}: the file of judgments cannot be used ({error})") from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise InputError(f"{self.path}: not a file of judgments; name another with --judgments") from None
            raise self._damaged(error) from None

    def _damaged(self, problem: object) -> InputError:
        reason = str(problem).strip().splitlines()[-1]
        return InputError(f"{self.path.name}: the file of judgments is damaged ({reason}); use an undamaged copy")


class Judgment(NamedTuple):
    """A judge's current grade (0 to 3) of a document, its time in UTC, and the seconds spent on the document."""

    judge: str
    topic: str
    document: str
    grade: int
    time: str
    seconds: float


class JudgmentStore(Database):
    """Judgments of a file; topics and documents are named by their ids."""

    def judges(self) -> list[str]:
        """Names, in the order in which they were added."""
        return [name for (name,) in self.rows("SELECT name FROM judges ORDER BY rowid")]

    def add_judge(self, name: str) -> str:
        """Add a judge, or renew a judge's token; return the token, of which only a hash is stored."""
        if not NAME.fullmatch(name) or name.lower() in RESERVED or name.endswith("."):
            raise ParameterError(
                f"a judge cannot be called '{name[:60]}': a name has 1 to 40 letters, digits, spaces and .@-_, "
                f"begins with a letter or digit, and is not {' or '.join(RESERVED)}"
            )
        if (other := next((judge for judge in self.judges() if judge.lower() == name.lower()), name)) != name:
            raise ParameterError(f"there is a judge '{other}' already; '{name}' needs another name")
        token = secrets.token_urlsafe(24)
        with self.change() as db:
            db.execute(
                "INSERT INTO judges VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET token = excluded.token",
                (name, _hash(token), _now()),
            )
        return token

    def judge_of(self, token: str) -> str | None:
        """Name of the judge with this token, if any; tokens are compared in constant time."""
        hashed, name = _hash(token), None
        for judge, stored in self.rows("SELECT name, token FROM judges"):
            if hmac.compare_digest(stored, hashed):
                name = judge
        return name

    def topics(self) -> Topics:
        """Topics, in the order in which they were added."""
        return Topics(_TOPIC_ADAPTER.validate_json(topic) for (topic,) in self.rows("SELECT topic FROM topics ORDER BY place"))

    def add_topics(self, topics: Topics) -> None:
        """Add the topics that are new; if an existing topic has another text, raise InputError and add none."""
        existing = self.topics()
        for topic in topics.values():
            if topic.id in existing and existing[topic.id].text != topic.text:
                raise InputError(
                    f"topic '{topic.id}' is '{existing[topic.id].text[:200]}' in {self.path.name}, "
                    f"and '{topic.text[:200]}' here: give it another id, or judge into another file (--judgments)"
                )
        with self.change() as db:
            for topic in topics.values():
                if topic.id not in existing:
                    text = _TOPIC_ADAPTER.dump_json(topic).decode()
                    db.execute("INSERT INTO topics SELECT ?, 1 + count(*), ? FROM topics", (topic.id, text))

    def new_topic(self, topic: Topic) -> Topic:
        """Add a topic with the smallest free number as its id; return it with this id."""
        with self._lock:
            existing, number = self.topics(), 1
            while str(number) in existing:
                number += 1
            numbered = Topic(str(number), topic.text, topic.narrative, topic.description)
            self.add_topics(Topics([numbered]))
        return numbered

    def unpooled(self, fingerprint: str, pipeline: str, depth: int) -> Topics:
        """Topics whose pools lack the `depth` best documents of a pipeline over the index with this fingerprint."""
        query = "SELECT topic FROM pools WHERE fingerprint = ? AND pipeline = ? AND depth >= ?"
        pooled = {topic for (topic,) in self.rows(query, fingerprint, pipeline, depth)}
        return Topics(topic for topic in self.topics().values() if topic.id not in pooled)

    def add_pools(self, documents: Mapping[str, Iterable[str]], fingerprint: str, pipeline: str, depth: int) -> None:
        """Add documents of a pipeline to the pools, by topic; other arguments as for `unpooled`."""
        with self.change() as db:
            for topic, ids in documents.items():
                db.executemany("INSERT OR IGNORE INTO pool VALUES (?, ?)", ((topic, document) for document in ids))
                db.execute("INSERT OR REPLACE INTO pools VALUES (?, ?, ?, ?, ?)", (topic, fingerprint, pipeline, depth, _now()))

    def pool(self, topic: str) -> list[str]:
        """Ids of the documents to judge for a topic."""
        return [document for (document,) in self.rows("SELECT document FROM pool WHERE topic = ? ORDER BY document", topic)]

    def judge(self, judge: str, topic: str, document: str, grade: int, seconds: float = 0.0) -> None:
        """Store a grade, 0 to 3, in place of an earlier one, which `undo` restores; ParameterError for an unknown document."""
        query = "INSERT INTO judgments (judge, topic, document, grade, seconds, time) VALUES (?, ?, ?, ?, ?, ?)"
        self._store(query, (judge, topic, document, grade, seconds, _now()), topic, document)

    def undo(self, judge: str) -> tuple[str, str] | None:
        """Undo a judge's last judgment; return its topic and document, or None."""
        with self.change() as db:
            query = "SELECT number, topic, document FROM judgments WHERE judge = ? AND NOT undone ORDER BY number DESC LIMIT 1"
            row = db.execute(query, (judge,)).fetchone()
            if row is None:
                return None
            db.execute("UPDATE judgments SET undone = 1 WHERE number = ?", row[:1])
        return row[1], row[2]

    def judgments(self, judge: str | None = None, topic: str | None = None) -> list[Judgment]:
        """Current grades of one judge or all, for one topic or all, in the order in which they were given."""
        conditions = {name: value for name, value in (("judge", judge), ("topic", topic)) if value is not None}
        where = " AND ".join(f"{name} = ?" for name in conditions) or "1"
        query = f"SELECT judge, topic, document, grade, time, seconds FROM grades WHERE {where} ORDER BY number"
        return [Judgment(*row) for row in self.rows(query, *conditions.values())]

    def note(self, judge: str, topic: str, document: str, note: str) -> None:
        """Store or replace a note; raises ParameterError as `judge` does."""
        self._store(
            "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?)", (judge, topic, document, note, _now()), topic, document
        )

    def notes(self, topic: str | None = None) -> dict[tuple[str, str, str], str]:
        """Notes that are not empty, by judge, topic and document; of one topic or all."""
        rows = self.rows(
            "SELECT judge, topic, document, note FROM notes WHERE note != '' AND topic = coalesce(?, topic)", topic
        )
        return {(judge, topic_id, document): note for judge, topic_id, document, note in rows}

    def settle(self, judge: str, topic: str, document: str, grade: int | None) -> None:
        """Store the grade that settles a disagreement; None removes it. Raises ParameterError as `judge` does."""
        if grade is None:
            with self.change() as db:
                db.execute("DELETE FROM settled WHERE topic = ? AND document = ?", (topic, document))
            return
        values = (topic, document, grade, judge, _now())
        self._store("INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?)", values, topic, document)

    def settled(self) -> dict[tuple[str, str], tuple[int, str]]:
        """Settled grades and the judges who settled them, by topic and document."""
        rows = self.rows("SELECT topic, document, grade, judge FROM settled ORDER BY time")
        return {(topic, document): (grade, judge) for topic, document, grade, judge in rows}

    def set_evidence(self, judge: str, topic: str, groups: Sequence[Sequence[str]]) -> None:
        """Store or replace a judge's groups of relevant documents that are evidence together."""
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
        """Groups of evidence of a judge for a topic, each in the order of ids."""
        query = "SELECT number, document FROM evidence WHERE judge = ? AND topic = ? ORDER BY number, document"
        groups: dict[int, list[str]] = {}
        for number, document in self.rows(query, judge, topic):
            groups.setdefault(number, []).append(document)
        return list(groups.values())

    def _store(self, query: str, values: tuple[object, ...], topic: str, document: str) -> None:
        """Execute a statement; raise ParameterError if it violates a constraint of the tables."""
        try:
            with self.change() as db:
                db.execute(query, values)
        except sqlite3.IntegrityError as error:
            if "FOREIGN" not in str(error):
                raise ParameterError("a grade is 0, 1, 2 or 3") from None
            raise ParameterError(f"document '{document[:200]}' is not in the pool of topic '{topic[:200]}'") from None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
