"""File encodings: input is converted to UTF-8 for the formats."""

from __future__ import annotations

import codecs
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast

from ..core import InputError, ParameterError
from ..core.errors import InputWarning
from ..storage.compression import BUFFER, ChunkStream
from .alphabets import guessed, is_mostly_utf8, suggested
from .bad_records import BadRecords

UTF8, CP1252 = "utf-8", "cp1252"
ERRORS = ("strict", "replace")
BINARY = (b"PK\x03\x04", b"PAR1", *(bytes((0x80, version)) for version in range(2, 6)))
"""First bytes of workbooks, Parquet and pickles."""
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
XML_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([^"'>]*)""")
NO_CHARSETS = ("idna", "punycode")  # Python encodings that decode in quadratic time
UNUSUAL = {0x83, 0x88, 0x8D, 0x8F, 0x90, 0x98, 0x9D, 0xA0, 0xAC, 0xAD, 0xAF, 0xD7, 0xF7, 0xFE, 0xFF}
PROSE = frozenset(range(0x82, 0x100)) - UNUSUAL  # non-ASCII bytes usual in cp1252 texts
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
ESCAPED = re.compile("[\udc80-\udcff]+")


@dataclass(frozen=True)
class ReadingOptions:
    """Encoding, error treatment and fields for reading files.

    Args:
        encoding: Encoding of the files; None detects it.
        errors: Treatment of undecodable bytes: "strict" stops, "replace" puts U+FFFD.
        fields: Columns or keys that hold the id, title and text, as in `read_corpus`.
        groups: Whether the second column of TREC qrels names evidence sets.
        split: Of predictions of mteb: SUBSET/SPLIT, or one of the two; None for the only one.
        bad: Documents left out because they are bad.
    """

    encoding: str | None = None
    errors: str = ERRORS[0]
    fields: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)
    groups: bool = False
    split: str | None = None
    bad: BadRecords = field(default_factory=BadRecords, compare=False)

    def __post_init__(self) -> None:
        if self.encoding is not None:
            _codec_name(self.encoding)
        if self.errors not in ERRORS:
            raise ParameterError(f"errors must be {' or '.join(ERRORS)}, not {self.errors!r}")


_default: ContextVar[ReadingOptions] = ContextVar("reading", default=ReadingOptions())  # noqa: B039  (frozen)


@contextmanager
def reading_as(reading: ReadingOptions) -> Iterator[None]:
    """Set default reading settings within the block."""
    token = _default.set(reading)
    try:
        yield
    finally:
        _default.reset(token)


def reading_of(encoding: str | None = None, errors: str | None = None, **options: Any) -> ReadingOptions:
    """Return reading settings; None stands for the default that `reading_as` set. ParameterError for unknown values."""
    values = {"encoding": encoding, "errors": errors, **options}
    return replace(_default.get(), **{name: value for name, value in values.items() if value is not None})


def as_utf8(file: IO[bytes], name: str, reading: ReadingOptions) -> tuple[IO[bytes], str]:
    """Return a file converted to UTF-8, and its stored encoding.

    UTF-8, binary files and XML that declares its encoding are left alone. UTF-16 and UTF-32 are recognised by their byte order
    mark, UTF-16 also by its zeros, and cp1252, cp1250 and ISO 8859-2 by the letters in the first buffer, if it is no UTF-8; a
    warning names the detected encoding.

    Args:
        file: The file, at its beginning.
        name: File name for messages.
        reading: Encoding, or None to detect it, and error treatment.

    Raises:
        InputError: While reading, for undecodable bytes.
    """
    file = cast(io.BufferedReader, file if hasattr(file, "peek") else io.BufferedReader(cast(io.RawIOBase, file), BUFFER))
    start = file.peek(BUFFER)
    encoding = reading.encoding
    if start.startswith(BINARY) or (encoding is None and XML_ENCODING.match(start)):
        return file, UTF8
    if encoding is None:
        encoding = detected(start)
        if encoding not in (UTF8, *(by_mark for _, by_mark in MARKS)):
            warn(f"{name}: not UTF-8, so it is read as {encoding}; --encoding (in Python: encoding=) names another")
    else:
        encoding = _codec_name(encoding)
    if encoding == UTF8 and reading.errors == ERRORS[0]:
        return file, UTF8
    raw = cast(io.RawIOBase, _Decoded(file, name, encoding, reading.errors))
    return io.BufferedReader(raw, BUFFER), encoding


def detected(start: bytes) -> str:
    """Detect the encoding from the first bytes of a file; "utf-8" by default."""
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return encoding
    if len(start) >= 8 and (pairs := len(start[:1000]) // 2):
        zeros = start[0 : 2 * pairs : 2].count(0), start[1 : 2 * pairs : 2].count(0)
        if max(zeros) > 0.4 * pairs and min(zeros) < 0.05 * pairs:
            return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    try:
        codecs.getincrementaldecoder(UTF8)().decode(start)
    except UnicodeDecodeError:
        high = [byte for byte in start if byte >= 0x80]
        if len(high) > 1 and not is_mostly_utf8(start) and not CONTROL.search(start):
            name = guessed(start)
            return UTF8 if not name or (name == CP1252 and not PROSE.issuperset(high)) else name
    return UTF8


def remedy(content: bytes, failed: str = UTF8) -> str:
    """Return the advice for bytes that are not in the encoding `failed`."""
    other = suggested(content, failed)
    return f"--encoding NAME reads another encoding, such as {other}, and --errors replace puts U+FFFD in place of such bytes"


def warn(text: str) -> None:
    """Warn the user about an assumption made in reading a file."""
    warnings.warn(InputWarning(text), stacklevel=2)


def _codec_name(encoding: str) -> str:
    """Return Python's name of an encoding; ParameterError if unknown."""
    try:
        codec = codecs.lookup(encoding)
        if codec.name in NO_CHARSETS or not codec._is_text_encoding:
            raise LookupError
    except (LookupError, ValueError):
        raise ParameterError(f"there is no encoding '{encoding}'; there are utf-8, utf-16, cp1252, cp1250, …") from None
    return codec.name


class _Decoded(ChunkStream):
    """A file in another encoding, read as UTF-8."""

    def __init__(self, file: io.BufferedReader, name: str, encoding: str, errors: str) -> None:
        self._file, self._name, self._encoding, self._strict = file, name, encoding, errors == ERRORS[0]
        # An undecodable byte becomes a lone surrogate, counted and replaced afterwards.
        is_wide = encoding.startswith(("utf-16", "utf-32", "utf_16", "utf_32"))
        lenient = "replace" if is_wide else "surrogateescape"
        codec_errors = "strict" if self._strict else lenient
        self._decoder = codecs.getincrementaldecoder(encoding)(codec_errors)
        self._line, self._changed, self._first, self._last = 1, 0, 0, 0
        self._ended = False

    def next_chunk(self) -> bytes:
        content = b""
        while not content and not self._ended:
            content = self._decode_next()
        return content

    def _decode_next(self) -> bytes:
        chunk = self._file.read1(BUFFER)  # returns what is available, so that each line of a pipe is answered at once
        self._ended = not chunk
        try:
            text = self._decoder.decode(chunk, self._ended)
        except UnicodeDecodeError as error:
            encoded = error.object
            line = self._line + encoded[: error.start].decode(self._encoding, "replace").count("\n")
            byte = encoded[error.start : error.start + 1].hex()
            problem = f"the byte {byte} is not {self._encoding}; {remedy(encoded, self._encoding)}"
            raise InputError.at(self._name, line, problem) from None
        except UnicodeError as error:  # such as UTF-16 without a byte order mark
            raise InputError(f"{self._name}: not {self._encoding} ({error}); {remedy(chunk, self._encoding)}") from None
        if not self._strict:
            text = self._replaced(text)
        self._line += text.count("\n")
        if self._ended and self._changed:
            lines = f"{self._changed:,} line{'' if self._changed == 1 else 's'}, first in line {self._first:,}"
            warn(f"{self._name}: U+FFFD is in place of bytes that are not {self._encoding} in {lines}")
        return text.encode(UTF8, "surrogatepass")

    def _replaced(self, text: str) -> str:
        """Replace surrogates by U+FFFD, and count the affected lines."""
        pattern = ESCAPED if self._decoder.errors == "surrogateescape" else re.compile("\ufffd")
        line, offset = self._line, 0
        for match in pattern.finditer(text):
            line += text.count("\n", offset, match.start())
            offset = match.start()
            if line != self._last:
                self._first, self._last, self._changed = self._first or line, line, self._changed + 1
        return pattern.sub("\ufffd", text)
