"""Files at addresses, such as "s3://bucket/key" or "https://host/file", read and written with fsspec."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..core.errors import FontesError, InputError, MissingExtraError

ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://")
DRIVERS = {  # by scheme: the library that reads it, and the extra that installs it
    "s3": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"),
    "gcs": ("gcsfs", "gcs"),
    "http": ("aiohttp", "http"),
    "https": ("aiohttp", "http"),
    "hf": ("huggingface_hub", "hf"),
}
OF_PATH = re.compile(rf"({'|'.join(DRIVERS)}):/(?=[^/])")  # an address shortened by `Path`
BLOCK_BYTES = 1 << 23  # bytes fetched at a time
REFUSED = (401, 403)  # HTTP status codes without access


@dataclass(frozen=True)
class RemoteObject:
    """Object at an address.

    Args:
        size: Size in bytes; None if unknown.
        is_folder: Whether it is a folder or key prefix.
        stamp: Version information of the store, if any.
    """

    size: int | None
    is_folder: bool
    stamp: str


def address_of(path: str | Path) -> str | None:
    """Return a path's address, even if shortened by `Path`; None for a local path."""
    text = str(path)
    if isinstance(path, Path):
        return OF_PATH.sub(r"\1://", text) if OF_PATH.match(text) else None
    return text if ADDRESS.match(text) else None


def look_up_address(address: str) -> RemoteObject:
    """Look up an address; raises as `open_at`."""
    system, path = _filesystem(address)
    with reaching(address):
        facts = system.info(path)
        is_folder = facts["type"] == "directory"
        stamp = [facts.get(name) for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "blob_id", "size")]
        return RemoteObject(None if is_folder else facts.get("size"), is_folder, repr([str(fact) for fact in stamp if fact]))


def files_below(address: str) -> list[tuple[str, str, int]]:
    """List files below a folder as (relative path, address, size in bytes), sorted by path; InputError if it cannot be read."""
    system, path = _filesystem(address)
    with reaching(address):
        files = system.find(path, detail=True)
    start = len(path.rstrip("/")) + 1
    listing = sorted((name[start:], system.unstrip_protocol(name), facts.get("size") or 0) for name, facts in files.items())
    return [file for file in listing if file[0] and not file[0].endswith("/")]


def open_at(address: str) -> io.RawIOBase:
    """Open the file at an address for reading.

    Raises:
        InputError: It is missing or cannot be read, also on later reads.
        MissingExtraError: The driver is not installed.
    """
    system, path = _filesystem(address)
    with reaching(address):
        return _RemoteFile(address, system.open(path, "rb", block_size=BLOCK_BYTES))


def fetch(address: str, path: Path) -> None:
    """Copy the file at an address to a local path; raises as `open_at`."""
    system, remote_path = _filesystem(address)
    with reaching(address):
        system.get_file(remote_path, str(path))


def put(path: Path, address: str) -> None:
    """Copy a local file to an address; FontesError if it cannot be written."""
    system, remote_path = _filesystem(address)
    with reaching(address, "written"):
        system.put_file(str(path), remote_path)


def remove(address: str) -> None:
    """Remove the file at an address; FontesError if it cannot be removed."""
    system, path = _filesystem(address)
    with reaching(address, "removed"):
        system.rm_file(path)


@contextmanager
def reaching(address: str, participle: str = "read") -> Iterator[None]:
    """Turn driver errors into an InputError of one sentence; `participle` is the past participle of the failed operation."""
    try:
        yield
    except FontesError:
        raise
    except Exception as caught:  # each driver has its own errors
        error = _driver_error(caught)
        if isinstance(error, FileNotFoundError):
            raise InputError(f"{address}: there is no such file or folder") from None
        response = getattr(error, "response", None)
        kind, status = type(error).__name__, getattr(error, "status", getattr(response, "status_code", None))
        message = " ".join(str(error).split()) or kind
        if isinstance(error, PermissionError) or "Credentials" in kind or status in REFUSED:
            scheme = address.partition(":")[0]
            library = DRIVERS.get(scheme, ("its driver", ""))[0]
            raise InputError(f"{address}: no access ({message}); set up the credentials as {library} reads them") from None
        if status == 404:
            raise InputError(f"{address}: there is no such file or folder") from None
        raise InputError(f"{address}: cannot be {participle} ({message})") from None


def _driver_error(error: Exception) -> BaseException:
    """Return the cause of an error of the HTTP driver, which reports every error as a missing file; else the error."""
    cause = error.__cause__
    return cause if cause is not None and type(cause).__module__.startswith("aiohttp") else error


class _RemoteFile(io.RawIOBase):
    """fsspec file whose driver errors become one-sentence messages."""

    def __init__(self, address: str, file: IO[bytes]) -> None:
        self._address, self._stream = address, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def readinto(self, buffer: Any) -> int:
        with reaching(self._address):
            piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int, whence: int = 0) -> int:
        with reaching(self._address):
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            with reaching(self._address):
                self._stream.close()
        super().close()


def _filesystem(address: str) -> tuple[Any, str]:
    scheme = address.partition(":")[0]
    library, extra = DRIVERS.get(scheme, ("fsspec", "ray"))
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(address)
    except ImportError:
        raise MissingExtraError.of(library, extra, f"reading {address}") from None
    except ValueError as error:
        raise InputError(f"{address}: cannot be read ({error})") from None
    system.invalidate_cache()
    return system, path
