"""Tickets: writes that were accepted before their commit, in a file of the index, where they survive a killed process."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import FontesError

FILE = ".writes.sqlite"
KEPT = 1_000  # finished tickets that can still be asked for
SCHEMA = """
CREATE TABLE IF NOT EXISTS writes (
    ticket INTEGER PRIMARY KEY AUTOINCREMENT,
    write TEXT NOT NULL,  -- as it was accepted
    effect TEXT,          -- what it writes, from before its commit; a write that is made again has the same effect
    outcome TEXT          -- after its commit
)
"""


class Tickets:
    """The tickets of one index. Every change is on the disk when its method returns.

    Args:
        path: The index.

    Raises:
        FontesError: Another server has them, or the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path / FILE, isolation_level=None, check_same_thread=False, timeout=0)
            for statement in (
                "PRAGMA locking_mode = EXCLUSIVE",
                "PRAGMA synchronous = FULL",
                "BEGIN EXCLUSIVE",
                SCHEMA,
                "COMMIT",
            ):
                self._db.execute(statement)
        except sqlite3.Error as error:
            raise FontesError(f"{path / FILE}: tickets of writes cannot be stored ({error})") from None

    def accept(self, write: Mapping[str, object]) -> int:
        """Store a write and return its ticket."""
        ticket = self._execute("INSERT INTO writes (write) VALUES (?)", [(json.dumps(write),)])
        assert ticket is not None
        return ticket

    def begin(self, effects: Mapping[int, Mapping[str, object]]) -> None:
        """Store the effects of writes that are about to be committed."""
        self._execute("UPDATE writes SET effect = ? WHERE ticket = ?", [(json.dumps(e), t) for t, e in effects.items()])

    def finish(self, outcomes: Mapping[int, Mapping[str, object]]) -> None:
        """Store the outcomes of writes, and forget old ones."""
        values = [(json.dumps(outcome), ticket) for ticket, outcome in outcomes.items()]
        self._execute("UPDATE writes SET write = '', effect = NULL, outcome = ? WHERE ticket = ?", values)
        if outcomes:
            self._execute("DELETE FROM writes WHERE outcome IS NOT NULL AND ticket <= ?", [(max(outcomes) - KEPT,)])

    def outcome(self, ticket: int) -> dict[str, object] | None:
        """Return the outcome of a write; {} for one that waits, None for an unknown ticket."""
        with self._lock:
            row = self._db.execute("SELECT outcome FROM writes WHERE ticket = ?", (ticket,)).fetchone()
        return None if row is None else json.loads(row[0] or "{}")

    def waiting(self) -> list[tuple[int, dict[str, Any], dict[str, Any] | None]]:
        """Return the writes without an outcome, in order: ticket, write, and effect if its commit may have begun."""
        with self._lock:
            rows = self._db.execute("SELECT ticket, write, effect FROM writes WHERE outcome IS NULL ORDER BY ticket").fetchall()
        return [(ticket, json.loads(write), effect and json.loads(effect)) for ticket, write, effect in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _execute(self, statement: str, rows: Sequence[tuple[object, ...]]) -> int | None:
        """Execute a statement for each row in one transaction; return the number of the last row inserted."""
        with self._lock:
            try:
                self._db.execute("BEGIN")
                cursor = self._db.cursor()
                for row in rows:
                    cursor.execute(statement, row)
                self._db.execute("COMMIT")
                return cursor.lastrowid
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise FontesError(f"the tickets of writes cannot be stored ({error}); nothing was changed") from None
