"""A file of results that models computed, by key: scores of rerankers, answers of language models."""

from __future__ import annotations

import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ..core.errors import InputError

logger = logging.getLogger("fontes.neural")

DROPPED_FRACTION = 4  # the oldest 1/DROPPED_FRACTION of a full file is removed
WAIT = 30.0  # seconds to wait for another writer
BATCH_SIZE = 500  # keys per query
SCHEMA = "CREATE TABLE IF NOT EXISTS summed (key BLOB PRIMARY KEY, score BLOB NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True)
class KeyedFile:
    """A file of values by key (SQLite), safe for several processes to read and write at once.

    Each write is one transaction, so a killed process leaves the file intact, and each value has a CRC-32. A damaged file is
    renamed to NAME.damaged, or NAME.damaged-2 and so on if there is one, and replaced, which is logged.

    Args:
        path: The file.
        limit: Size in bytes above which the oldest quarter is removed; None keeps all.
        noun: Name of the values in messages.
        needed: Whether an unusable file is an error; otherwise it is logged, and nothing is stored.
    """

    path: Path
    limit: int | None = None
    noun: str = "scores"
    needed: bool = False

    def values(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values under these keys, without missing and damaged ones."""
        values: dict[bytes, bytes] = {}

        def select(file: sqlite3.Connection) -> None:
            for start in range(0, len(keys), BATCH_SIZE):
                batch = keys[start : start + BATCH_SIZE]
                rows = file.execute(f"SELECT key, score FROM summed WHERE key IN ({','.join('?' * len(batch))})", batch)
                values.update((key, value) for key, stored in rows if (value := _checked(key, stored)) is not None)

        self._with_file(select)
        return values

    def store(self, values: Mapping[bytes, bytes]) -> None:
        """Store values in one transaction; InputError if the file is needed and cannot be written."""
        now = int(time.time())
        rows = [(key, value + _checksum(key, value), now) for key, value in values.items()]

        def insert(file: sqlite3.Connection) -> None:
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.executemany("INSERT OR REPLACE INTO summed VALUES (?, ?, ?)", rows)
                if self.limit is not None and _size(file) > self.limit:
                    oldest = "SELECT key FROM summed ORDER BY time LIMIT (SELECT COUNT(*) FROM summed) / ?"
                    file.execute(f"DELETE FROM summed WHERE key IN ({oldest})", (DROPPED_FRACTION,))

        self._with_file(insert)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all keys and values in the order of the keys, without damaged ones."""
        keys: list[bytes] = []
        if self.path.exists():
            self._with_file(lambda file: keys.extend(key for (key,) in file.execute("SELECT key FROM summed ORDER BY key")))
        for start in range(0, len(keys), BATCH_SIZE):
            yield from sorted(self.values(keys[start : start + BATCH_SIZE]).items())

    def _with_file(self, work: Callable[[sqlite3.Connection], None]) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder; cache takes the path of a file, or True")
        problem: object = ""
        for _ in range(2):  # again with a new file if the first is damaged
            opened = self._identity()
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as file:
                    file.execute(SCHEMA)
                    work(file)
                return
            except (sqlite3.OperationalError, OSError) as error:
                self._unusable(getattr(error, "strerror", None) or error)
                return
            except sqlite3.DatabaseError as error:
                problem = error
                if self._identity() == opened:  # no other process has replaced it
                    self._set_aside(error)
        self._unusable(problem)

    def _identity(self) -> tuple[int, int] | None:
        """Return device and number of the file; None without a file."""
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_dev, state.st_ino

    def _set_aside(self, problem: sqlite3.DatabaseError) -> None:
        """Rename the damaged file to a name that no file has."""
        for number in count(1):
            damaged = self.path.with_name(f"{self.path.name}.damaged{f'-{number}' if number > 1 else ''}")
            try:
                damaged.touch(exist_ok=False)
                self.path.replace(damaged)
            except FileExistsError:
                continue
            except OSError as error:
                logger.warning("%s is damaged (%s), and cannot be renamed (%s)", self.path, problem, error.strerror or error)
            else:
                logger.warning("%s is damaged (%s) and is set aside as %s", self.path, problem, damaged.name)
            return

    def _unusable(self, reason: object) -> None:
        if self.needed:
            raise InputError(f"{self.path}: {self.noun} cannot be kept ({reason}); FONTES_CACHE names another folder")
        logger.warning("%s: %s are not kept (%s)", self.path, self.noun, reason)


def _size(file: sqlite3.Connection) -> int:
    pages, free, size = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size)


def _checksum(key: bytes, value: bytes) -> bytes:
    return zlib.crc32(key + value).to_bytes(4, "little")


def _checked(key: object, stored: object) -> bytes | None:
    """Return the value of a row; None if damaged."""
    if not (isinstance(key, bytes) and isinstance(stored, bytes) and len(stored) >= 4):
        return None
    value, checksum = stored[:-4], stored[-4:]
    return value if checksum == _checksum(key, value) else None
