"""Disk cache of runs, keyed by everything that they depend on."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..core import InputError, Run, Strings, Topic, Topics, Turn
from ..core.values import Documents
from ..storage.caches import DiskCache
from ..storage.files import write
from ..storage.hashes import hash_json
from .provenance import installed, processor, topic_facts

LIMIT = 2 << 30  # bytes; the least recently used runs are deleted first
LAYOUT = 1  # version of the file format
OURS = re.compile(r"\.?[0-9a-f]{64}\.npz(\..+\.tmp)?")  # runs, and temporary files of killed processes
DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, IndexError, MemoryError, OverflowError, struct.error),
    *(RecursionError, NotImplementedError, zipfile.BadZipFile, zlib.error),
)


class Cache:
    """A folder of runs, one .npz file each (no pickle), named by a hash of everything that the run depends on.

    A damaged file counts as missing and is written again. Writes are atomic, so processes may share a folder.
    """

    def __init__(self, folder: str | Path | None = None, limit: int = LIMIT) -> None:
        """Open the cache, by default `runs` in the user's caches; it need not exist yet. `limit` is in bytes."""
        self._named = folder is not None
        self._disk = DiskCache("runs", limit, "[0-9a-f][0-9a-f]/*", None if folder is None else Path(folder))
        self.folder = self._disk.folder
        self._written = False

    @classmethod
    def of(cls, value: bool | str | os.PathLike[str]) -> Cache | None:
        """Return the user's cache for True, the cache in a folder for its path, None for False."""
        if isinstance(value, bool):
            return cls() if value else None
        return cls(Path(value))

    def load(self, key: str, topics: Topics, documents: Mapping[str, Documents]) -> Run | None:
        """Return the run under a key, with its documents by fingerprint, or None if missing."""
        path = self._path(key)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                facts = json.loads(stored["facts"].tobytes())
                if facts["key"] != key:
                    return None
                source = None if facts["documents"] is None else documents[facts["documents"]]
                own = topics if facts["topics"] is None else Topics(map(_topic, facts["topics"]))
                ids = Strings(stored["blob"], stored["offsets"])
                run = Run(
                    own,
                    ids,
                    stored["bounds"],
                    stored["codes"],
                    stored["scores"],
                    documents=source,
                    provenance=facts["provenance"],
                )
        except DAMAGE:
            return None
        if not _is_sound(run):
            return None
        self._disk.use(path)
        return run

    def store(self, key: str, run: Run, topics: Topics) -> None:
        """Store a run under a key.

        Raises:
            InputError: The named folder cannot be written to; for the user's folder there is only a warning.
        """
        used, codes = np.unique(run.codes, return_inverse=True)
        ids = run.ids.reordered(used)
        facts = {
            "key": key,
            "topics": None if run.topics is topics else [topic_facts(t) for t in run.topics.values()],
            "documents": getattr(run.documents, "fingerprint", None),
            "provenance": dict(run.provenance),
        }
        if run.documents is not None and facts["documents"] is None:
            return
        file = io.BytesIO()
        np.savez(
            file,
            facts=np.frombuffer(json.dumps(facts, default=str).encode(), dtype=np.uint8),
            bounds=run.bounds,
            codes=codes.astype(np.int32),
            scores=run.scores,
            blob=ids.blob,
            offsets=ids.offsets,
        )
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, [file.getvalue()])
            self._written = True
        except (OSError, InputError) as error:
            if self._named:
                raise InputError(f"the cache cannot be written ({error}); give another folder, or cache=False") from None
            warnings.warn(f"runs are not kept: {error}; FONTES_CACHE names another folder", stacklevel=2)

    def trim(self) -> None:
        """Delete the least recently used runs beyond the limit."""
        if self._written:
            self._disk.trim(lambda path: OURS.fullmatch(path.name))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


def key_of(topics: str, stages: list[str]) -> str:
    """Return the key of a run, from the hash of its topics and the keys of its stages."""
    return hash_json([LAYOUT, _code(), topics, stages])


def _topic(facts: dict[str, Any]) -> Topic:
    turns = tuple(Turn(*turn) for turn in facts["turns"])
    origin = None if facts["origin"] is None else _topic(facts["origin"])
    return Topic(**{**facts, "turns": turns, "origin": origin})


@cache
def _code() -> list[Any]:
    """Versions of Fontes and libraries, Fontes' files, and the processor."""
    package = Path(__file__).parent.parent
    files = sorted(package.glob("*/**/*.py"))
    states = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    return [version("fontes"), states, installed(), processor()]


def _is_sound(run: Run) -> bool:
    bounds = run.bounds
    return bool(
        len(bounds) == len(run.topics) + 1
        and bounds[0] == 0
        and bounds[-1] == len(run.codes) == len(run.scores)
        and np.all(np.diff(bounds) >= 0)
        and (not len(run.codes) or (run.codes.min() >= 0 and run.codes.max() < len(run.ids)))
    )
