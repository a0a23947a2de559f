"""The file of judgments: SQLite, with each change on disk before it is answered, and one server at a time."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from ...core.errors import FontesError, InputError
from ...storage.files import as_path
from ...storage.locks import locked

APPLICATION = 0x464E_544A  # "FNTJ", in the header of the file
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


class JudgmentsFile:
    """The file, open. Threads take turns at it.

    Args:
        path: Where it is; it is made where there is none.
        reading: Whether it is read alone, beside a server that writes it.

    Raises:
        InputError: It is another kind of file, damaged, or of a newer version; or there is none, to read.
        FontesError: Another server has it.
    """

    def __init__(self, path: str | Path, reading: bool = False) -> None:
        self.path = as_path(path)
        self._turn = threading.RLock()
        self._closing = contextlib.ExitStack()
        try:
            if reading and not self.path.is_file():
                raise InputError(f"{path}: there is no such file; fontes judge INDEX --judgments FILE begins one")
            if not reading:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666))
                self._closing.enter_context(locked(self.path, FontesError(f"{path}: another server has this file open")))
            with self._failing():
                self._db = self._connected(reading)
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
        """Lets go of the file."""
        with self._turn:
            self._closing.close()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """A change, which is on disk, whole, when the block ends; or not at all, when it raises."""
        with self._turn, self._failing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._turn, self._failing():
            return self._db.execute(query, values).fetchall()

    def _connected(self, reading: bool) -> sqlite3.Connection:
        address = self.path.absolute().as_uri() + ("?mode=ro" if reading else "")
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        self._closing.callback(db.close)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _check(self, reading: bool) -> None:
        """Begins an empty file; raises InputError for one that is of another kind."""
        (application,), (version,) = self.rows("PRAGMA application_id") + self.rows("PRAGMA user_version")
        if not application and not version and not reading and not self.rows("SELECT 1 FROM sqlite_master"):
            with self.change() as db:  # before write-ahead logging, so that the header of the file itself says what it is
                for statement in SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")
        elif application != APPLICATION:
            raise InputError(f"{self.path}: this is no file of judgments; name another with --judgments")
        elif version > VERSION:
            raise InputError(
                f"{self.path}: this file of judgments has version {version}; this Fontes reads {VERSION}: take a newer one"
            )
        elif (problem := self.rows("PRAGMA quick_check(1)")[0][0]) != "ok":
            raise self._damaged(problem)
        if not reading:
            self.rows("PRAGMA journal_mode = WAL")

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """SQLite's errors as sentences, which judges may read: without the folder."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise FontesError(f"{self.path.name}: the file of judgments cannot be used ({error})") from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise InputError(f"{self.path}: this is no file of judgments; name another with --judgments") from None
            raise self._damaged(error) from None

    def _damaged(self, why: object) -> InputError:
        first = str(why).strip().splitlines()[-1]
        return InputError(f"{self.path.name}: the file of judgments is damaged ({first}); take a copy of it that is whole")
