"""Files, plain or compressed, local or remote, and standard streams; reads report a position, writes are atomic."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from ..core import InputError
from ..core.errors import FontesError
from .compression import BUFFER, compressing, decompressed, without_ending
from .remote import address_of, open_at
from .system import replace, uninterrupted

STANDARD = "-"
MAX_PIECE = 1 << 26  # maximum bytes read at once: a line, a document, a table row, a file that is one value
BOM = b"\xef\xbb\xbf"


def convert_first(content: bytes) -> str:
    """Advice for bytes that are not UTF-8 in a file whose encoding cannot be named."""
    return "convert the file first"


class InputFile:
    """File open for reading.

    Args:
        name: Name for messages.
        file: Decompressed bytes.
        stored: File as stored, perhaps compressed, which tells the position; None for standard input.
        member: Name inside its zip archive, or "".
        is_compressed: Whether the file is stored in another form.

    Attributes:
        remedy: Advice for bytes that are not UTF-8.
    """

    def __init__(
        self, name: str, file: IO[bytes], stored: IO[bytes] | None = None, member: str = "", is_compressed: bool = False
    ) -> None:
        self.name = name
        self.file = file
        self.member = member
        self.is_compressed = is_compressed
        self.remedy: Callable[[bytes], str] = convert_first
        self._stored = stored

    @property
    def position(self) -> int:
        """Bytes read of the stored (compressed) file; 0 for standard input."""
        return self._stored.tell() if self._stored and not self._stored.closed else 0

    def lines(self) -> Iterator[bytes]:
        """Yield lines with their ends, without a UTF-8 byte order mark; InputError for one longer than `MAX_PIECE`."""
        lines = self.stored_lines()
        for first in lines:
            yield first.removeprefix(BOM)
            break
        yield from lines

    def stored_lines(self) -> Iterator[bytes]:
        """Yield lines like `lines`, with the byte order mark."""
        read = functools.partial(self.file.readline, MAX_PIECE + 1)
        for number, line in enumerate(iter(read, b""), 1):
            if len(line) > MAX_PIECE:
                check_length(len(line), self.name, "line", number)
            yield line

    def decoded(self) -> Iterator[str]:
        """Yield lines as text, with their ends; InputError for one that is not UTF-8."""
        for number, line in enumerate(self.lines(), 1):
            yield decode(line, self.name, number, self.remedy)

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield (line number from 1, line without its end) of non-blank lines; raises as `decoded`."""
        for number, line in enumerate(self.decoded(), 1):
            if not line.isspace():
                yield number, line.rstrip("\r\n")

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield blocks of about `size` bytes that end at line ends, without a byte order mark; raises as `lines`."""
        pending: list[bytes] = []  # pieces of a line that spans several reads, joined once
        length, line = 0, 1
        block = self.file.read(size + len(BOM)).removeprefix(BOM)
        while block:
            end = block.rfind(b"\n") + 1
            check_length(length + (block.find(b"\n") + 1 if end else len(block)), self.name, "line", line)
            if end:
                yield b"".join([*pending, block[:end]])
                line += block.count(b"\n")
                pending, length = [], 0
            pending.append(block[end:])
            length += len(block) - end
            block = self.file.read(size)
        if length:
            yield b"".join(pending)

    def content(self) -> bytes:
        """Return the whole file, without a byte order mark; InputError if it is longer than `MAX_PIECE`."""
        content = self.file.read(MAX_PIECE + 1)
        check_length(len(content), self.name, "file")
        return content.removeprefix(BOM)

    def text(self) -> str:
        """Return the whole file as text; InputError if it is longer than `MAX_PIECE`, or not UTF-8."""
        content = self.content()
        try:
            return content.decode()
        except UnicodeDecodeError:
            return "".join(decode(line, self.name, number, self.remedy) for number, line in enumerate(io.BytesIO(content), 1))


def check_length(length: int, name: str, noun: str, line: int | None = None) -> None:
    """Raise InputError if a piece of a file, such as a "line", is longer than `MAX_PIECE`; `line` is its first line, if any."""
    if length > MAX_PIECE:
        location = name if line is None else f"{name}, line {line}"
        raise InputError(
            f"{location}: the {noun} is longer than {MAX_PIECE:,} bytes, the maximum that is read in one piece; split it"
        )


@contextmanager
def reading(path: str | Path, start: int = 0, end: int | None = None) -> Iterator[InputFile]:
    """Open a file for reading.

    Args:
        path: Path or address; gzip, bzip2, xz, Zstandard and zip are recognised and decompressed; "-" is standard input.
        start: Offset of the first byte.
        end: Offset after the last byte; None for the end of the file. A byte range is not decompressed.

    Raises:
        InputError: The file is missing or unreadable, or its compression is damaged or unknown.
        MissingExtraError: The driver of an address is not installed.
    """
    name = address_of(path) or str(path)
    try:
        if name == STANDARD:
            with decompressed("standard input", sys.stdin.buffer) as content:
                yield InputFile("standard input", content.file, None, content.member, content.is_compressed)
            return
        with _open_stored(path) as stored:
            if start or end is not None:
                piece = _ByteRange(stored, start, end)
                yield InputFile(
                    f"{name} from byte {start:,}" if start else name, io.BufferedReader(piece, BUFFER), cast(IO[bytes], piece)
                )
            else:
                with decompressed(name, stored) as content:
                    yield InputFile(name, content.file, stored, content.member, content.is_compressed)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except BrokenPipeError:
        raise  # from output that the caller writes meanwhile
    except OSError as error:
        shown = "standard input" if name == STANDARD else name
        raise InputError(f"{shown}: cannot be read ({error.strerror or error})") from None


def write(path: str | Path, chunks: Iterable[bytes]) -> None:
    """Write a file atomically; devices and pipes are written directly.

    Args:
        path: Path, compressed reproducibly if it ends in .gz, .bz2, .xz or .zst; "-" is standard output.
        chunks: Content in order.

    Raises:
        InputError: The file cannot be written.
        BrokenPipeError: The pipe behind standard output is closed.
    """
    name = str(path)
    if name == STANDARD:
        _write_chunks(chunks, sys.stdout.buffer, name)
        return
    target = Path(os.path.realpath(as_path(path)))
    direct = target.exists() and not stat.S_ISREG(target.stat().st_mode)
    output = target if direct else target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        _write(name, output, chunks)
        if not direct:
            with _write_errors(name), uninterrupted(target):
                replace(output, target)
    except BaseException:
        if not direct:
            with contextlib.suppress(OSError), uninterrupted():
                output.unlink()
        raise


def decode(line: bytes, path: object, number: int, remedy: Callable[[bytes], str] = convert_first) -> str:
    """Decode a line; InputError names the file and the line number if it is not UTF-8, and ends with `remedy(line)`."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError.at(path, number, f"not UTF-8 (byte {error.start + 1} of the line); {remedy(line)}") from None


def as_path(path: str | Path) -> Path:
    """Return the path, whether or not it exists; InputError if it contains NUL or a lone surrogate, or is too long."""
    try:
        os.lstat(path)
    except ValueError as error:
        raise InputError(f"{path}: no file can have this name ({error})") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{path}: no file can have this name ({error.strerror})") from None
    return Path(path)


def plain_name(path: str | Path) -> str:
    """Return the file name in lower case, without the ending of its compression, such as .gz."""
    return without_ending(_file_name(path).lower())


def _file_name(path: str | Path) -> str:
    address = address_of(path)
    return Path(path).name if address is None else address.partition("?")[0].rpartition("/")[2]


def _open_stored(path: str | Path) -> IO[bytes]:
    address = address_of(path)
    if address is not None:
        return io.BufferedReader(open_at(address), BUFFER)
    return as_path(path).open("rb", buffering=BUFFER)


class _ByteRange(io.RawIOBase):
    """Bytes `start` to `end` of a file; positions count from `start`."""

    def __init__(self, file: IO[bytes], start: int, end: int | None) -> None:
        self._file = file
        self._remaining = sys.maxsize if end is None else end - start
        self._position = 0
        file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), self._remaining))
        buffer[: len(piece)] = piece
        self._remaining -= len(piece)
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._position


def _write(name: str, path: Path, chunks: Iterable[bytes]) -> None:
    with _write_errors(name):
        stored = path.open("wb", buffering=BUFFER)
    try:
        file = compressing(name, stored)
        if file is not None:
            _write_chunks(chunks, cast(BinaryIO, file), name)
            with _write_errors(name):
                file.close()
        else:
            _write_chunks(chunks, stored, name)
    finally:
        with _write_errors(name):
            stored.close()


def _write_chunks(chunks: Iterable[bytes], file: BinaryIO, name: str) -> None:
    """Write chunks; an OSError of writing becomes an InputError, errors of the producer propagate."""
    for chunk in chunks:
        try:
            file.write(chunk)
        except OSError as error:
            raise _write_error(name, error) from None
    with _write_errors(name):
        file.flush()


@contextmanager
def _write_errors(name: str) -> Iterator[None]:
    """Turn an OSError of the block into the error of `_write_error`."""
    try:
        yield
    except OSError as error:
        raise _write_error(name, error) from None


def _write_error(name: str, error: OSError) -> Exception:
    """Return the error to raise for an OSError of writing: InputError, or itself for a closed pipe of standard output."""
    if name == STANDARD and isinstance(error, BrokenPipeError):
        return error
    return InputError(f"{'standard output' if name == STANDARD else name}: cannot be written ({error.strerror or error})")


def links_in(path: Path) -> Iterator[Path]:
    """Yield the symbolic links at and below a path; none if the path does not exist."""
    if path.is_symlink():
        yield path
        return
    for name, folders, files in os.walk(path):
        yield from (entry for entry in (Path(name) / inner for inner in sorted([*folders, *files])) if entry.is_symlink())


def refuse_links(path: Path) -> None:
    """Raise FontesError if a path is or contains a symbolic link; call it before writing or removing."""
    if link := next(links_in(path), None):
        raise FontesError(f"{link} is a link, which may lead anywhere; remove it. Nothing was changed")
