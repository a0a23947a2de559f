"""Compressed files, recognised by their first bytes: gzip, bzip2, xz, Zstandard, and zip archives of one file."""

from __future__ import annotations

import gzip
import io
import re
import shlex
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ..core import InputError

BUFFER = 1 << 18
MAX_UNPACKED = 1 << 34  # bytes that an archive is unpacked to
MAX_RATIO = 100  # and times its own size, if that is more than `MAX_SMALL`
MAX_SMALL = 1 << 26
ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
SIGNATURES = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\0|\x5d\0\0[\0-\xff]{2}(?:\xff{8}|[\0-\xff]{5}\0{3})"),  # or its predecessor, .lzma
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # a frame, or a skippable one
    "zip": re.compile(rb"PK(?:\x03\x04|\x05\x06)"),
}
OFFICE = re.compile(rb"PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/|docProps/|xl/|word/|ppt/)", re.DOTALL)
OTHERS = {  # what is not read, and the command that unpacks it
    "compress": (re.compile(rb"\x1f[\x9d\xa0]"), "gzip -d {}"),
    "LZ4": (re.compile(rb"\x04\x22\x4d\x18"), "lz4 -d {}"),
    "lzip": (re.compile(rb"LZIP\x01"), "lzip -d {}"),
    "7-Zip": (re.compile(rb"7z\xbc\xaf\x27\x1c"), "7z x {}"),
    "RAR": (re.compile(rb"Rar!\x1a\x07"), "unrar x {}"),
    "tar": (re.compile(rb".{257}ustar", re.DOTALL), "tar -xf {}"),
}
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
ZSTD_CHUNK = 1 << 11  # compressed bytes at once; a block of 4 bytes may expand to 128 KiB
START = 1000  # bytes that tell what a file is
MAX_NAMES = 5  # names of files in a message


class Content(NamedTuple):
    """The content of a stored file.

    Attributes:
        file: The file, decompressed.
        is_compressed: Whether the file is stored in another form.
        member: Name inside its zip archive, or "".
    """

    file: IO[bytes]
    is_compressed: bool
    member: str = ""


@contextmanager
def decompressed(name: str, stored: IO[bytes]) -> Iterator[Content]:
    """Yield the content of a stored file; it is decompressed if its first bytes say so, whatever its name.

    Args:
        name: File name for messages.
        stored: The file, at its beginning.

    Raises:
        InputError: Here or while reading: it is damaged, cut off, an archive of several files, or of another kind.
    """
    with ExitStack() as stack:
        yield _content(name, stored, stack)


def compressing(name: str, stored: IO[bytes]) -> IO[bytes] | None:
    """Return a file that compresses into `stored`, as the ending of the name says; None for no such ending.

    Equal content gives equal bytes. Raises InputError for a zip archive, which is not written.
    """
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    file: Any = None
    if ending == ".gz":
        file = gzip.GzipFile(filename="", mode="wb", fileobj=stored, mtime=0, compresslevel=6)
    elif ending == ".bz2":
        import bz2

        file = bz2.BZ2File(stored, "wb")
    elif ending == ".xz":
        import lzma

        file = lzma.LZMAFile(stored, "wb")  # noqa: SIM115  (closed by the caller)
    elif ending == ".zst":
        import zstandard

        file = zstandard.ZstdCompressor().stream_writer(stored, closefd=False)
    elif ending:
        raise InputError(f"{name}: zip archives are read, not written; {', '.join(list(ENDINGS)[:-1])} are written")
    return cast("IO[bytes] | None", file)


def without_ending(name: str) -> str:
    """Return a file name without the ending of its compression."""
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def check_unpacked_size(
    archive: str, stored_size: int, size: int, remedy: str = "if you trust it, unpack it and give the folder"
) -> None:
    """Raise InputError if an archive of `stored_size` bytes is unpacked to too many bytes."""
    limit = min(MAX_UNPACKED, max(MAX_RATIO * stored_size, MAX_SMALL))
    if size > limit:
        reason = "the most that is unpacked" if limit == MAX_UNPACKED else f"for an archive of {stored_size:,} bytes"
        raise InputError(f"{archive}: its contents have more than {limit:,} bytes, {reason}; {remedy}")


def _content(name: str, stored: IO[bytes], stack: ExitStack, of_zip: bool = False) -> Content:
    file, start = _peek(stored)
    _refuse_others(name, start)
    method = _method(start)
    if method == "zip" and not of_zip and not OFFICE.match(start):
        archive, member = _open_zip(name, file, stack)
        return Content(_content(name, archive, stack, True).file, True, member)
    if method and method != "zip":
        raw = cast(io.RawIOBase, _Decompressed(name, method, _stream(method, file)))
        unpacked, start = _peek(cast(IO[bytes], stack.enter_context(io.BufferedReader(raw, BUFFER))))
        _refuse_others(name, start)
        if _method(start) and not OFFICE.match(start):
            raise InputError(f"{name}: compressed twice, by {_method(start)} and {method}; decompress it once")
        return Content(unpacked, True)
    expected = next((method for ending, method in ENDINGS.items() if name.endswith(ending)), "")
    if expected and not of_zip and CONTROL.search(start):
        raise InputError(f"{name}: the {expected} file is damaged (it does not begin as one); fetch it again")
    return Content(file, of_zip)


def _method(start: bytes) -> str:
    return next((method for method, signature in SIGNATURES.items() if signature.match(start)), "")


def _peek(stored: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """Return a file with a buffer, and its first bytes, which can still be read."""
    file: Any = stored if hasattr(stored, "peek") else io.BufferedReader(cast(io.RawIOBase, stored), BUFFER)
    return file, bytes(file.peek(START)[:START])


def _refuse_others(name: str, start: bytes) -> None:
    for other, (signature, command) in OTHERS.items():
        if signature.match(start):
            raise InputError(f"{name}: a file of {other}, which is not read; unpack it: {command.format(shlex.quote(name))}")


def _stream(method: str, file: IO[bytes]) -> io.RawIOBase | io.BufferedIOBase:
    if method == "gzip":
        return gzip.GzipFile(fileobj=file)
    if method == "bzip2":
        import bz2

        return bz2.BZ2File(file)
    if method == "xz":
        import lzma

        return lzma.LZMAFile(file)
    return _ZstdFrames(file)


def _open_zip(name: str, file: IO[bytes], stack: ExitStack) -> tuple[IO[bytes], str]:
    """Open the only file of a zip archive, whose content is limited by `check_unpacked_size`."""
    import zipfile

    if not file.seekable():
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (closed by the stack)
        shutil.copyfileobj(file, copy, BUFFER)
        file = cast(IO[bytes], copy)
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        members = [member for member in archive.infolist() if not member.is_dir() and _is_visible(member.filename)]
        content = stack.enter_context(archive.open(members[0])) if len(members) == 1 else None
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise InputError(f"{name}: the zip file is damaged ({error}); fetch it again") from None
    except (RuntimeError, NotImplementedError):  # a password, or a compression that Python does not support
        member = members[0].filename
        raise InputError(f"{name}: '{member}' has a password, or another compression; unpack it and give the file") from None
    if content is None:
        raise _not_one_file(name, [member.filename for member in members])
    check_unpacked_size(name, file.seek(0, io.SEEK_END), members[0].file_size)
    # A member is not read beyond the size that it declares.
    raw = cast(io.RawIOBase, _Decompressed(name, "zip", content))
    return cast(IO[bytes], io.BufferedReader(raw, BUFFER)), members[0].filename


def _not_one_file(name: str, members: list[str]) -> InputError:
    if not members:
        return InputError(f"{name}: a zip archive without files")
    names = ", ".join(members[:MAX_NAMES] + ["…"] * (len(members) > MAX_NAMES))
    problem = f"a zip archive of {len(members):,} files ({names}); unpack it, and give the folder or one of its files"
    if not Path(name).is_file():
        return InputError(f"{name}: {problem}")
    folder = without_ending(Path(name).name.lower())
    folder = f"{folder}-files" if Path(folder).is_file() else folder
    return InputError(f"{name}: {problem}: python -m zipfile -e {shlex.quote(name)} {shlex.quote(folder)}")


def _is_visible(name: str) -> bool:
    return not any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


class _Decompressed(io.RawIOBase):
    """A decompressed stream, whose errors name the file."""

    def __init__(self, name: str, method: str, stream: Any) -> None:
        self._name, self._method, self._stream = name, method, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._stream.readinto(buffer))
        except EOFError:
            raise InputError(f"{self._name}: the {self._method} file is cut off before its end; fetch it again") from None
        except Exception as error:
            if not _is_damage(error):
                raise
            raise InputError(f"{self._name}: the {self._method} file is damaged ({error})") from None


def _is_damage(error: Exception) -> bool:
    """Whether an error of a decompressor is about the content."""
    if isinstance(error, OSError):  # of bzip2 and gzip without a number
        return error.errno is None
    return isinstance(error, (ValueError, zlib.error)) or type(error).__name__ in ("LZMAError", "ZstdError", "BadZipFile")


class ChunkStream(io.RawIOBase):
    """A stream of bytes that are made in chunks."""

    _pending = memoryview(b"")

    def next_chunk(self) -> bytes:
        """Return some bytes; none at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._pending = self._pending or memoryview(self.next_chunk())
        size = min(len(buffer), len(self._pending))
        buffer[:size] = self._pending[:size]
        self._pending = self._pending[size:]
        return size


class _ZstdFrames(ChunkStream):
    """The content of all frames of a Zstandard file; EOFError if the last one is cut off."""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._file, self._decompressor = file, zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._input = b""

    def next_chunk(self) -> bytes:
        content = b""
        while not content and (chunk := self._input or self._file.read(ZSTD_CHUNK)):
            self._frame = self._frame or self._decompressor.decompressobj()
            content = self._frame.decompress(chunk)
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        if not content and self._frame is not None:
            raise EOFError
        return content
