"""Caches: the one folder of the user's for what can be worked out again, and values that are kept in memory."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from weakref import ProxyType, proxy

from .artifact import ArtifactKind, commit, seal, staging

LIMIT = 20 << 30  # bytes of a cache, unless it says otherwise
K = TypeVar("K")
V = TypeVar("V")
Owner = TypeVar("Owner")


def cache_folder() -> Path:
    """The folder of the user's where Fontes keeps what can be worked out again.

    It is FONTES_CACHE where that is set, and else `fontes` in the system's folder for caches. Its content is listed in
    docs/concepts/index-on-disk.md. None of it is kept in an index, which may come from a stranger.
    """
    if named := os.environ.get("FONTES_CACHE"):
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("fontes")


class DiskCache:
    """A folder of the user's caches, whose entries are files or folders that appear whole.

    An entry may be deleted at any time. Those used longest ago go first; their dates say when they were used.

    Args:
        name: Name of the folder in `cache_folder`.
        limit: Bytes that its entries may take together.
        entries: Pattern of the entries' paths in the folder.
        at: Another folder; None: the one in `cache_folder`.
    """

    def __init__(self, name: str, limit: int = LIMIT, entries: str = "*", at: Path | None = None) -> None:
        self._name, self.limit, self._entries, self._at = name, limit, entries, at

    @property
    def folder(self) -> Path:
        """Its path."""
        return cache_folder().absolute() / self._name if self._at is None else self._at

    def put(self, place: Path, kind: ArtifactKind, facts: Mapping[str, Any], write: Callable[[Path], None]) -> None:
        """Writes an artifact, whole or not at all, and drops what the cache has no room for.

        Args:
            place: Its folder: an entry, or a folder in one.
            kind: Its kind.
            facts: What its metadata say.
            write: Writes its files to a folder.

        Raises:
            OSError: The cache cannot be written.
        """
        with staging(place) as draft:
            write(draft)
            seal(draft, kind, facts)
            commit(draft, place)
        self.trim()

    def use(self, entry: Path) -> None:
        """Notes that an entry is used now."""
        with suppress(OSError):
            os.utime(entry)

    def trim(self, is_entry: Callable[[Path], object] = lambda path: not path.name.startswith(".")) -> None:
        """Deletes the entries used longest ago until the rest fit. The one used last stays, whatever its size.

        Args:
            is_entry: Whether a path belongs to the cache.
        """
        with suppress(OSError):
            paths = [path for path in self.folder.glob(self._entries) if is_entry(path)]
            dated = sorted((path.stat().st_mtime_ns, path) for path in paths)
            sizes = {path: _size(path) for _, path in dated}
            total = sum(sizes.values())
            for _, path in dated[:-1]:
                if total > self.limit:
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
                    total -= sizes[path]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


class Notes:
    """JSON values by key in one small file of the user's caches; one that cannot be read or written is no error.

    Args:
        name: The name of the file.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def file(self) -> Path:
        """Its path."""
        return cache_folder() / self._name

    def get(self, key: str) -> Any:
        """The value under a key; None where there is none."""
        return self._values().get(key)

    def note(self, key: str, value: Any) -> None:
        """Puts a value under a key, in one step."""
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            draft = self.file.with_name(f"{self._name}.{os.getpid()}")
            draft.write_text(json.dumps({**self._values(), key: value}, indent=1), encoding="utf-8")
            draft.replace(self.file)

    def _values(self) -> dict[str, Any]:
        try:
            values = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}


class _Entry(Generic[V]):
    """A value that is being made, or is there."""

    __slots__ = ("lock", "value")

    def __init__(self) -> None:
        self.lock: threading.Lock | None = threading.Lock()  # None once the value is there
        self.value: V | None = None


class Cached(Generic[K, V]):
    """Values by key, each made once, of which those used last are kept. Threads may share it.

    A thread that asks for a value that another one is making waits for it; one that asks for another value does not.

    Args:
        limit: How many values are kept at most; None keeps all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._last: tuple[K, V] | None = None  # what was asked for last, which the same key gets without looking

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value under `key`, which `make` makes where there is none. What `make` raises is raised, and nothing is kept."""
        last = self._last
        if last is not None and last[0] is key:
            return last[1]
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            while self.limit is not None and len(self._entries) > self.limit:
                self._entries.popitem(last=False)
            lock = entry.lock
        if lock is not None:
            with lock:
                if entry.lock is not None:
                    try:
                        entry.value = make()
                    except BaseException:
                        self._forget(key, entry)
                        raise
                    entry.lock = None
        value = cast(V, entry.value)
        self._last = key, value
        return value

    def clear(self) -> None:
        """Forgets all values."""
        with self._lock:
            self._entries.clear()
            self._last = None

    def drop(self, key: K) -> None:
        """Forgets the value under `key`."""
        with self._lock:
            self._entries.pop(key, None)
            self._last = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        last = self._last
        return (last is not None and last[0] is key) or key in self._entries

    def _forget(self, key: K, entry: _Entry[V]) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]


def weakly(owner: Owner) -> Owner:
    """A proxy that does not keep its owner alive, for what the owner keeps of itself: a circle would outlive it for long."""
    return owner if isinstance(owner, ProxyType) else proxy(owner)


class Attached(Generic[Owner, V]):
    """A value that belongs to each object of another module, made when it is first asked for and gone with the object.

    It is to a class of another room what `functools.cached_property` is to one's own. Threads may share it.

    Args:
        name: What the value is called, once in Fontes for the objects of a class.
        make: Makes the value of an object.
    """

    def __init__(self, name: str, make: Callable[[Owner], V]) -> None:
        self._name = f"_attached_{name}"
        self._make = make
        self._lock = threading.RLock()

    def of(self, owner: Owner) -> V:
        """The value of this object."""
        values: dict[str, Any] = vars(owner)
        if self._name not in values:
            with self._lock:
                if self._name not in values:
                    values[self._name] = self._make(owner)
        return cast(V, values[self._name])
