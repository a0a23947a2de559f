"""The files of an index: arrays, the manifest, and building beside the old state until the new one is complete."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
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
SEGMENT = "segment"
CACHE = "cache"  # what can be worked out again; it may be deleted at any time


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Writes an array, little-endian, as NAME.npy."""
    with (folder / f"{name}.npy").open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")), allow_pickle=False)
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
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
            start = file.tell()
        if 0 in shape:  # an empty file cannot be mapped
            return np.zeros(shape, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape).view(np.ndarray)
    except (OSError, ValueError) as e:
        raise IndexFormatError(f"{path} is missing or damaged ({e}); restore it from a copy or build the index again") from e


def smallest(array: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers in the smallest unsigned type that holds them all."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the index at `path`. Raises IndexFormatError where there is none that this version can read."""
    if not path.exists():
        raise IndexFormatError(f"{path} does not exist; fontes index CORPUS -o {path} makes an index")
    if not (path / MANIFEST).is_file():
        raise IndexFormatError(f"{path} is not an index: it has no {MANIFEST}; fontes index CORPUS -o DIR makes one")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        kind, version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError) as e:
        raise IndexFormatError(f"{path / MANIFEST} is damaged; restore it from a copy or build the index again") from e
    if kind != FORMAT:
        raise IndexFormatError(f"{path} is not an index of Fontes: its format is '{kind}'")
    if version != VERSION:
        age = "newer" if version > VERSION else "older"
        remedy = "upgrade Fontes, or build the index again" if version > VERSION else "build the index again"
        raise IndexFormatError(
            f"{path} has the index format {version}, {age} than the {VERSION} that this Fontes reads; {remedy}"
        )
    return dict(manifest)


def check_sizes(path: Path, manifest: dict[str, Any]) -> None:
    """Raises IndexFormatError unless each file of the manifest is there in its full length."""
    for segment in manifest["segments"]:
        for name, expected in segment["files"].items():
            file = path / segment["name"] / name
            size = file.stat().st_size if file.is_file() else None
            if size != expected["bytes"]:
                found = "is missing" if size is None else f"has {size} bytes instead of {expected['bytes']}"
                raise IndexFormatError(f"{path} is damaged: {file} {found}; restore it from a copy or build the index again")


def check_digests(path: Path, manifest: dict[str, Any]) -> None:
    """Raises IndexFormatError unless each file of the manifest has the content that was written."""
    for segment in manifest["segments"]:
        for name, expected in segment["files"].items():
            if digest(path / segment["name"] / name) != expected["sha256"]:
                file = path / segment["name"] / name
                raise IndexFormatError(
                    f"{path} is damaged: {file} has changed; restore it from a copy or build the index again"
                )


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def staging(path: Path, overwrite: bool) -> Iterator[Path]:
    """A folder beside `path` to build in; it is gone afterwards, whatever happens.

    What processes that were killed have left behind there is removed. Raises InputError where `path` is in the way, and
    FontesError where the disk is full or cannot be written.
    """
    if path.exists() and not (path / MANIFEST).exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path} exists and is not an index; choose another place")
    if (path / MANIFEST).exists() and not overwrite:
        raise InputError(f"{path} is an index already; overwrite=True (--overwrite) replaces it")
    given, path = path, path.absolute()
    prefix = f".{path.name}.building-"
    folder = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{prefix}*"):
            with (left / "lock").open("a") if left.is_dir() else contextlib.nullcontext() as lock:
                if lock is not None and _locked(lock):
                    shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
        with (folder / "lock").open("a") as lock:
            _locked(lock)
            yield folder
    except OSError as e:
        raise FontesError(f"{given} cannot be written: {e.strerror or e}; nothing was changed") from e
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def commit(stage: Path, path: Path, segment: Path, manifest: dict[str, Any]) -> None:
    """Makes the one finished `segment` in `stage` the content of the index at `path`, in one atomic step.

    `manifest` gets the segment's name and files. Whoever opens the index sees either the old or the new state.
    """
    path = path.absolute()
    files = {f.name: {"bytes": f.stat().st_size, "sha256": digest(f)} for f in sorted(segment.iterdir())}
    fingerprint = hashlib.sha256(json.dumps([manifest, files], sort_keys=True).encode()).hexdigest()
    name = f"{SEGMENT}-{fingerprint[:16]}"
    manifest = {**manifest, "fingerprint": fingerprint, "segments": [{"name": name, "files": files}]}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    whole = stage / "index"
    whole.mkdir()
    segment.rename(whole / name)
    with (whole / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(text)
        _sync(file)
    _sync_folder(whole)
    whole.chmod(0o777 & ~_umask())
    if not (path / MANIFEST).exists():
        whole.rename(path)
    else:
        if not (path / name).exists():
            (whole / name).rename(path / name)
        _sync_folder(path)
        (whole / MANIFEST).replace(path / MANIFEST)
        for other in path.glob(f"{SEGMENT}-*"):
            if other.name != name:
                shutil.rmtree(other, ignore_errors=True)
        shutil.rmtree(path / CACHE, ignore_errors=True)
    _sync_folder(path)
    _sync_folder(path.parent)


def _locked(file: Any) -> bool:
    """Whether this process now holds the lock on an open file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
