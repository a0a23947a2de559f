"""On-disk cache of scores, keyed by model, settings, query and document."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..storage.caches import cache_folder

logger = logging.getLogger("fontes.neural")

LIMIT = 256 * 2**20  # bytes, about five million scores
DROPPED = 4  # a full file loses its oldest 1/DROPPED
WAIT = 30.0  # seconds to wait for another writer
ASKED = 500  # keys per query
SCHEMA = "CREATE TABLE IF NOT EXISTS summed (key BLOB PRIMARY KEY, score BLOB NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True)
class ScoreFile:
    """A file of scores (SQLite), safe for several processes to read and write at once.

    Each write is one transaction, so a killed process leaves the file intact. Above `limit` bytes the oldest quarter is
    removed. A damaged file is renamed to NAME.damaged and replaced. If the folder is not writable, nothing is kept. All three
    are logged.
    """

    path: Path
    limit: int = LIMIT

    def read(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Return the scores under these keys, float32; NaN if missing or damaged."""
        scores: dict[bytes, float] = {}

        def select(file: sqlite3.Connection) -> None:
            for at in range(0, len(keys), ASKED):
                some = keys[at : at + ASKED]
                rows = file.execute(f"SELECT key, score FROM summed WHERE key IN ({','.join('?' * len(some))})", some)
                scores.update((key, score) for key, stored in rows if (score := _unpacked(key, stored)) is not None)

        self._with_file(select)
        return np.array([scores.get(key, np.nan) for key in keys], dtype=np.float32)

    def write(self, keys: Sequence[bytes], scores: NDArray[np.float32]) -> None:
        """Store scores, except NaN."""
        now = int(time.time())
        rows = [(key, _packed(key, score), now) for key, score in zip(keys, scores.tolist(), strict=True) if np.isfinite(score)]

        def insert(file: sqlite3.Connection) -> None:
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.executemany("INSERT OR REPLACE INTO summed VALUES (?, ?, ?)", rows)
                if self._size(file) > self.limit:
                    oldest = "SELECT key FROM summed ORDER BY time LIMIT (SELECT COUNT(*) FROM summed) / ?"
                    file.execute(f"DELETE FROM summed WHERE key IN ({oldest})", (DROPPED,))

        self._with_file(insert)

    @staticmethod
    def _size(file: sqlite3.Connection) -> int:
        pages, free, size = (
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _with_file(self, work: Callable[[sqlite3.Connection], None]) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder; cache takes the path of a file, or True")
        for again in (True, False):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as file:
                    file.execute(SCHEMA)
                    work(file)
                return
            except sqlite3.OperationalError as error:
                logger.warning("%s: scores are not kept (%s)", self.path, error)
                return
            except sqlite3.DatabaseError as error:
                aside = self.path.with_name(f"{self.path.name}.damaged")
                logger.warning("%s is damaged (%s) and is set aside as %s", self.path, error, aside.name)
                with suppress(OSError):
                    self.path.replace(aside)
                if not again:
                    return
            except OSError as error:
                logger.warning("%s: scores are not kept (%s)", self.path, error.strerror or error)
                return


def _packed(key: bytes, score: float) -> bytes:
    value = struct.pack("<f", score)
    return value + struct.pack("<I", zlib.crc32(key + value))


def _unpacked(key: bytes, stored: object) -> float | None:
    """Return the score of a row; None if damaged."""
    if (
        not isinstance(stored, bytes)
        or len(stored) != 8
        or zlib.crc32(key + stored[:4]) != int.from_bytes(stored[4:], "little")
    ):
        return None
    return float(struct.unpack("<f", stored[:4])[0])


def default_file() -> Path:
    """Path of `scores.sqlite` in the user's cache folder."""
    return cache_folder() / "scores.sqlite"


def pair_keys(model: str, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
    """Return a 16-byte key (BLAKE2b) of model, query and document for each pair."""
    return list(_keys(model, pairs))


def _keys(model: str, pairs: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    hashed: dict[str, bytes] = {}
    for pair in pairs:
        for text in pair:
            if text not in hashed:
                hashed[text] = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        yield hashlib.blake2b(hashed[pair[0]] + hashed[pair[1]] + model.encode(), digest_size=16).digest()
