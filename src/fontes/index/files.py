"""The files of an index: arrays, the manifest, and building beside the old state until the new one is complete."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.errors import FontesError, IndexFormatError, InputError

FORMAT = "fontes-index"
VERSION = 1
MANIFEST = "manifest.json"
REMEDY = "restore it from a copy or build the index again"
SEGMENT = "segment"
# The headers that numpy writes. Its reader of them goes through `ast`, which threads of Python 3.11 cannot share.
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(rb"\{'descr': '([<|][bfiu][1248])', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n")
CACHE = "cache"  # what can be worked out again; it may be deleted at any time


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Writes an array, little-endian, as NAME.npy."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    with (folder / f"{name}.npy").open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)
        _sync(file)


class ByteWriter:
    """Writes NAME.npy, an array of bytes, piece by piece."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = (folder / f"{name}.npy").open("wb")
        self.length = 0
        self._header()

    def write(self, data: bytes | NDArray[np.uint8]) -> None:
        """Appends `data`."""
        self._file.write(data.tobytes() if isinstance(data, np.ndarray) else data)
        self.length += len(data)

    def close(self) -> None:
        """Completes the file."""
        self._file.seek(0)
        self._header()
        _sync(self._file)
        self._file.close()

    def abandon(self) -> None:
        """Closes the file as it is."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _header(self) -> None:
        # numpy leaves room for the length to grow, so that the header keeps its size.
        npy.write_array_header_1_0(self._file, {"descr": "|u1", "fortran_order": False, "shape": (self.length,)})


def read_array(folder: Path, name: str) -> NDArray[Any]:
    """Opens NAME.npy by memory map, read-only. Raises IndexFormatError where it is missing or damaged."""
    path = folder / f"{name}.npy"
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 2)
            header = HEADER.fullmatch(file.read(int.from_bytes(start[len(MAGIC) :], "little")))
            offset = file.tell()
        if not start.startswith(MAGIC) or header is None:
            raise ValueError("its header is not as it was written")
        dtype, shape = np.dtype(header[1].decode()), tuple(int(size) for size in header[2].split(b",") if size.strip())
        if 0 in shape:  # an empty file cannot be mapped
            return np.zeros(shape, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)
    except (OSError, ValueError, TypeError) as e:
        raise IndexFormatError(f"{path} is missing or damaged ({e}); {REMEDY}") from e


def smallest(array: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers in the smallest unsigned type that holds them all."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the index at `path`. Raises IndexFormatError where there is none that this version can read."""
    if not path.exists():
        raise IndexFormatError(f"{path} does not exist; fontes index CORPUS -o {path} makes an index")
    if not (path / MANIFEST).is_file():
        raise IndexFormatError(f"{path} is not an index: it has no {MANIFEST}; fontes index CORPUS -o DIR makes one")
    damaged = f"{path / MANIFEST} is damaged; {REMEDY}"
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        kind, version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise IndexFormatError(damaged) from e
    if kind != FORMAT:
        raise IndexFormatError(f"{path} is not an index of Fontes: its format is '{kind}'")
    if not isinstance(version, int):
        raise IndexFormatError(damaged)
    if version != VERSION:
        age = "newer" if version > VERSION else "older"
        remedy = "upgrade Fontes, or build the index again" if version > VERSION else "build the index again"
        raise IndexFormatError(
            f"{path} has the index format {version}, {age} than the {VERSION} that this Fontes reads; {remedy}"
        )
    try:
        sound = manifest["fingerprint"] == _fingerprint(manifest, manifest["segments"][0]["files"])
    except (KeyError, IndexError, TypeError) as e:
        raise IndexFormatError(damaged) from e
    if not sound:
        raise IndexFormatError(damaged)
    return dict(manifest)


def manifest_file(path: Path) -> tuple[int, int] | None:
    """What tells the manifest's file from one that replaces it; None where there is none."""
    try:
        facts = (path / MANIFEST).stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def check_sizes(path: Path, manifest: dict[str, Any]) -> None:
    """Raises IndexFormatError unless each file of the manifest is there in its full length."""
    for segment in manifest["segments"]:
        for name, expected in segment["files"].items():
            file = path / segment["name"] / name
            try:
                size: int | None = file.stat().st_size
            except OSError:
                size = None
            if size != expected["bytes"]:
                found = "is missing" if size is None else f"has {size} bytes instead of {expected['bytes']}"
                raise IndexFormatError(f"{path} is damaged: {file} {found}; {REMEDY}")


def check_digests(path: Path, manifest: dict[str, Any]) -> None:
    """Raises IndexFormatError unless each file of the manifest has the content that was written."""
    for segment in manifest["segments"]:
        for name, expected in segment["files"].items():
            file = path / segment["name"] / name
            try:
                changed = digest(file) != expected["sha256"]
            except OSError as e:
                raise IndexFormatError(f"{path} is damaged: {file} cannot be read ({e.strerror}); build the index again") from e
            if changed:
                raise IndexFormatError(f"{path} is damaged: {file} has changed; {REMEDY}")


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fingerprint(manifest: dict[str, Any], files: dict[str, Any]) -> str:
    """A digest of all that an index is made of."""
    facts = {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
    return hashlib.sha256(json.dumps([facts, files], sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def staging(path: Path, overwrite: bool) -> Iterator[Path]:
    """A folder beside `path` to build in; it is gone afterwards, whatever happens.

    What processes that were killed have left behind there is removed. Raises InputError where `path` is in the way, and
    FontesError where the disk is full or cannot be written.
    """
    _check_place(path, overwrite)
    given, path = path, path.absolute()
    folder = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as held:
            with _alone(path.parent):
                _remove_leftovers(path)
                folder = Path(tempfile.mkdtemp(prefix=_prefix(path), dir=path.parent))
                _lock(held.enter_context((folder / "lock").open("a")))
            yield folder
    except OSError as e:
        if getattr(e, "of_documents", False):
            raise
        raise FontesError(f"{given} cannot be written: {e.strerror or e}; nothing was changed") from e
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def commit(stage: Path, path: Path, segment: Path, manifest: dict[str, Any], overwrite: bool) -> None:
    """Makes the one finished `segment` in `stage` the content of the index at `path`, in one atomic step.

    `manifest` gets the segment's name and files. Whoever opens the index sees either the old or the new state. Raises
    InputError where an index has come to be there meanwhile that is not to be overwritten.
    """
    given, path = path, path.absolute()
    files = {f.name: {"bytes": f.stat().st_size, "sha256": digest(f)} for f in sorted(segment.iterdir())}
    fingerprint = _fingerprint(manifest, files)
    whole = stage / "index"
    whole.mkdir()
    whole.chmod(0o777 & ~_umask())
    with _alone(path.parent):
        _check_place(given, overwrite)
        name = _free_name(path, f"{SEGMENT}-{fingerprint[:16]}")
        complete = {**manifest, "fingerprint": fingerprint, "segments": [{"name": name, "files": files}]}
        segment.rename(whole / name)
        with (whole / MANIFEST).open("w", encoding="utf-8") as file:
            file.write(json.dumps(complete, indent=1, ensure_ascii=False) + "\n")
            _sync(file)
        _sync_folder(whole)
        if not (path / MANIFEST).exists():
            whole.rename(path)
        else:
            (whole / name).rename(path / name)
            _sync_folder(path)
            (whole / MANIFEST).replace(path / MANIFEST)
            for other in path.glob(f"{SEGMENT}-*"):
                if other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            shutil.rmtree(path / CACHE, ignore_errors=True)
        _sync_folder(path)
        _sync_folder(path.parent)


def _check_place(path: Path, overwrite: bool) -> None:
    if (path / MANIFEST).exists():
        if not overwrite:
            raise InputError(f"{path} is an index already; overwrite=True (--overwrite) replaces it")
    elif path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path} exists and is not an index; choose another place")


def _free_name(path: Path, name: str) -> str:
    """`name`, or with a number where the index has a folder of this name, perhaps a damaged one."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(free for free in names if not (path / free).exists())


def _prefix(path: Path) -> str:
    return f".{path.name}.building-"


def _remove_leftovers(path: Path) -> None:
    """Removes what killed builds of this index have left behind: folders whose lock nobody holds."""
    for left in path.parent.iterdir():
        if left.name.startswith(_prefix(path)):
            with contextlib.suppress(OSError), (left / "lock").open("a") as lock:
                _lock(lock)
                shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process or thread is in this part for the same folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock(file: Any) -> None:
    """Takes the lock of an open file, which goes when it is closed. Raises OSError where another holds it."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
