"""Caches: the user's cache folder, and values kept in memory."""

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

DEFAULT_MAX_BYTES = 20 << 30  # default maximum bytes of a cache
K = TypeVar("K")
V = TypeVar("V")
Owner = TypeVar("Owner")


def cache_folder() -> Path:
    """Return the user's cache folder of Fontes: FONTES_CACHE, or `fontes` in the system's cache folder.

    docs/concepts/index-on-disk.md lists its content. Indexes hold no caches, since they may come from untrusted sources.
    """
    if named := os.environ.get("FONTES_CACHE"):
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("fontes")


def cached_bytes() -> dict[str, int]:
    """Return the size of each entry of the user's cache folder, by path in alphabetical order."""
    with suppress(OSError):
        return {str(path): _size(path) for path in sorted(cache_folder().iterdir())}
    return {}


class DiskCache:
    """Cache folder whose entries appear atomically and are evicted in least-recently-used order.

    Entries may be deleted at any time; their modification times record their last use.

    Args:
        name: Folder name in `cache_folder`.
        limit: Maximum total size in bytes.
        entries: Glob pattern of the entries.
        at: Another folder; None for the one in `cache_folder`.
    """

    def __init__(self, name: str, limit: int = DEFAULT_MAX_BYTES, entries: str = "*", at: Path | None = None) -> None:
        self._name, self.limit, self._entries, self._at = name, limit, entries, at

    @property
    def folder(self) -> Path:
        """Path of the cache."""
        return cache_folder().absolute() / self._name if self._at is None else self._at

    def put(self, target: Path, kind: ArtifactKind, facts: Mapping[str, object], write: Callable[[Path], None]) -> None:
        """Write an artifact atomically, then evict entries over the limit.

        `target` is an entry or a folder in one, `facts` are the settings in the metadata, and `write` writes the files to a
        folder. Raises OSError if the cache cannot be written.
        """
        with staging(target) as draft:
            write(draft)
            seal(draft, kind, facts)
            commit(draft, target)
        self.trim()

    def use(self, entry: Path) -> None:
        """Mark an entry as used now."""
        with suppress(OSError):
            os.utime(entry)

    def trim(self, is_entry: Callable[[Path], object] = lambda path: not path.name.startswith(".")) -> None:
        """Evict least recently used entries until the rest fit; the latest always stays.

        `is_entry` tells which of the matching paths are entries.
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
    """JSON values by key in one small cache file called `name`; read and write errors are ignored."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def file(self) -> Path:
        """Path of the file."""
        return cache_folder() / self._name

    def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        return self._values().get(key)

    def note(self, key: str, value: object) -> None:
        """Set the value of a key atomically."""
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            draft = self.file.with_name(f"{self._name}.{os.getpid()}")
            draft.write_text(json.dumps({**self._values(), key: value}, indent=1), encoding="utf-8")
            draft.replace(self.file)

    def _values(self) -> dict[str, object]:
        try:
            values = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}


class _Entry(Generic[V]):
    __slots__ = ("lock", "size", "value")

    def __init__(self) -> None:
        self.size = 0
        self.lock: threading.Lock | None = threading.Lock()  # None once the value is set
        self.value: V | None = None


class Cached(Generic[K, V]):
    """Thread-safe LRU cache that makes each value once.

    A thread waits only for its own value.

    Args:
        limit: Maximum number of values, or of their sizes together; None keeps all. The latest value always stays.
        size: Size of a value, such as its bytes; None counts each as 1.
    """

    def __init__(self, limit: int | None = None, size: Callable[[V], int] | None = None) -> None:
        self.limit = limit
        self._size, self._total = size, 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._last: tuple[K, V] | None = None  # latest key and value, for a fast second lookup

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of `key`, calling `make` if absent. Errors of `make` propagate and nothing is stored."""
        last = self._last
        if last is not None and last[0] is key:
            return last[1]
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            while self._size is None and self.limit is not None and len(self._entries) > self.limit:
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
                    if self._size is not None:
                        self._weigh(key, entry, self._size)
        value = cast(V, entry.value)
        self._last = key, value
        return value

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self._last, self._total = None, 0

    def drop(self, key: K) -> None:
        """Remove the value of `key`."""
        with self._lock:
            entry = self._entries.pop(key, None)
            self._last = None
            self._total -= 0 if entry is None else entry.size

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        """Whether there is a value of `key`, which is not being made."""
        entry = self._entries.get(key)
        return entry is not None and entry.lock is None

    def _weigh(self, key: K, entry: _Entry[V], size: Callable[[V], int]) -> None:
        """Count the size of a new value, and evict the least recently used ones over the limit."""
        with self._lock:
            if self._entries.get(key) is not entry:
                return
            entry.size = size(cast(V, entry.value))
            self._total += entry.size
            limit = self._total if self.limit is None else self.limit
            for other_key in list(self._entries)[:-1] if self._total > limit else ():
                if other_key != key:
                    self._total -= self._entries.pop(other_key).size
                if self._total <= limit:
                    break

    def _forget(self, key: K, entry: _Entry[V]) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]


def weak_proxy(owner: Owner) -> Owner:
    """Return a weak proxy of an owner, to avoid reference cycles."""
    return owner if isinstance(owner, ProxyType) else proxy(owner)


class LazyAttribute(Generic[Owner, V]):
    """Thread-safe lazy value attached to objects of another module, freed with the object.

    Like `functools.cached_property`, but defined outside the object's class.

    Args:
        name: Name of the value, unique in Fontes for the objects of a class.
        make: Makes the value of an object.
    """

    def __init__(self, name: str, make: Callable[[Owner], V]) -> None:
        self._name = f"_lazy_{name}"
        self._make = make
        self._lock = threading.RLock()

    def get(self, owner: Owner) -> V | None:
        """Return the value of an object; None if there is none yet."""
        return cast("V | None", vars(owner).get(self._name))

    def of(self, owner: Owner) -> V:
        """Return the value of an object."""
        values: dict[str, object] = vars(owner)
        if self._name not in values:
            with self._lock:
                if self._name not in values:
                    values[self._name] = self._make(owner)
        return cast(V, values[self._name])
