"""Base class and registry of file formats, and format detection."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any, ClassVar, NamedTuple, TypeVar

from ..core import Doc, InputError, ParameterError, Qrels, Run, Topic, Topics
from ..core.registry import Registry
from ..storage.compression import BUFFER
from ..storage.files import BOM, InputFile, plain_name
from .decoding import ReadingOptions, as_utf8, reading_of, remedy
from .packed import Packing
from .records import Fields, MissingPartError

Row = TypeVar("Row")

PICKLE = re.compile(rb"\x80[\x02-\x05]")
HEAD_SIZE = 2000  # minimum number of bytes read to detect a format
MAX_BLANK = 1 << 20  # maximum number of bytes of leading blank lines


class FileKind(NamedTuple):
    """A kind of file: its name, its contents, and the default format for writing it."""

    noun: str
    holds: str
    first: str


KINDS = {
    "corpus": FileKind("corpus", "documents", "jsonl"),
    "topics": FileKind("topic", "topics", "jsonl"),
    "qrels": FileKind("qrels", "judgments", "trec"),
    "run": FileKind("run", "rows", "trec"),
}


LAST_RESORT = 0.01  # confidence of a format that reports what is wrong with a file


class Format:
    """Base class of file formats: detection, reading and writing.

    Subclassing with a name registers the format: `class Jsonl(Format, name="jsonl")`. A format reads and writes the kinds of
    files (corpus, topics, qrels, run) for which it defines methods; the methods of this class only document the interface.
    Another package adds a format by an entry point of the group `fontes.formats`: `memo = "acme.formats:Memo"`.

    Attributes:
        name: Format name.
        endings: File name endings; from a folder of documents, only files with these are read.
        named_fields: Whether parts of documents or topics have names, so that `fields=…` of `read_corpus` and `read_topics`
            applies; for other formats it is an error.
        has_cells: Whether metadata are table cells, texts for numbers or dates; an index infers the types.
    """

    name: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    named_fields: ClassVar[bool] = False
    has_cells: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            cls.name = name
            formats.add(name, cls)

    def sniff(self, kind: str, file: File) -> float:
        """Confidence that a file is of this format, from 0 (certainly not) to 1.

        Built-in formats return 0.9 for a name with their ending, 0.95 for content unique to them, and less otherwise. Called
        only for kinds that the format reads. Ties go to the first format in alphabetical order.

        Args:
            kind: Kind of file: "corpus", "topics", "qrels" or "run".
            file: The file, whose name, head, start, first and value can be inspected without consuming it.
        """
        return 0.9 if self.endings and file.plain.endswith(self.endings) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        """Yield the documents of a file; InputError gives file and line."""
        raise NotImplementedError

    def pack_corpus(self, file: File, fields: Fields, size: int) -> Iterator[Packing] | None:
        """Yield deferred packing work for batches of documents; None (default) to use `read_corpus`.

        Args:
            file: The file.
            fields: Names of the document parts.
            size: Approximate bytes of the file per piece of work.
        """
        return None

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        """Whether each line is an independent document, so that byte ranges can be read in parallel (default no).

        Args:
            file: The file, whose beginning can be inspected.
            fields: Names of the document parts.
        """
        return False

    def sample(self, file: File) -> list[dict[str, Any]]:
        """Return the first records of a file, if they have named fields, by which an id is chosen (default none)."""
        return []

    def read_topics(self, file: File) -> Iterable[Topic]:
        """Return the topics of a file; InputError gives file and line."""
        raise NotImplementedError

    def read_qrels(self, file: File) -> Qrels:
        """Return the judgments of a file; InputError gives file and line."""
        raise NotImplementedError

    def read_run(self, file: File, topics: Topics) -> Run:
        """Return the run of a file: `topics` first, then the topics found only in the file, without text."""
        raise NotImplementedError

    def write_corpus(self, docs: Iterable[Doc]) -> Iterable[bytes]:
        """Yield the file's bytes for these documents."""
        raise NotImplementedError

    def write_topics(self, topics: Topics) -> Iterable[bytes]:
        """Yield the file's bytes for these topics."""
        raise NotImplementedError

    def write_qrels(self, qrels: Qrels) -> Iterable[bytes]:
        """Yield the file's bytes for these judgments."""
        raise NotImplementedError

    def write_run(self, run: Run, tag: str) -> Iterable[bytes]:
        """Yield the file's bytes for this run; `tag` is its one-word name, if the format has a place for it."""
        raise NotImplementedError

    @classmethod
    def can(cls, verb: str, kind: str) -> bool:
        """Whether the format can "read" or "write" files of this kind."""
        method = f"{verb}_{kind}"
        return getattr(cls, method) is not getattr(Format, method)


class File(InputFile):
    """A file open for reading, whose beginning can be inspected first.

    Attributes:
        path: Path inside the folder being read, or file name.
        plain: Name in lower case, without the ending of its compression; inside a zip archive, the name there.
        folder: Whether the file belongs to a folder.
        opening: First line of the whole file if this is a later piece, else empty.
        encoding: Encoding as stored; the content read is UTF-8.
        reading: Settings for reading it.
    """

    def __init__(
        self, source: InputFile, path: str, folder: bool = False, opening: bytes = b"", reading: ReadingOptions | None = None
    ) -> None:
        self.reading = reading or reading_of()
        file, self.encoding = as_utf8(source.file, source.name, self.reading)
        super().__init__(source.name, file, None, source.member, source.is_compressed)
        self.remedy = remedy
        self.path = path
        self.plain = plain_name(source.member or path)
        self.folder = folder
        self.opening = opening
        self._source = source

    @property
    def position(self) -> int:
        """Bytes read so far, as stored."""
        return self._source.position

    @cached_property
    def head(self) -> bytes:
        """First lines: at least two that are not blank and 2,000 bytes, if the file has them."""
        lines, filled_lines, filled_size = bytearray(), 0, 0
        for line in self.stored_lines():
            lines += line
            if not line.isspace():
                filled_lines += 1
                filled_size += len(line)
            if len(lines) >= HEAD_SIZE and (filled_lines > 1 or len(lines) - filled_size > MAX_BLANK):
                break
        head = bytes(lines)
        self.file = io.BufferedReader(_WithHead(head, self.file), BUFFER)
        return head.removeprefix(BOM)

    @cached_property
    def start(self) -> str:
        """The head without leading white space; invalid UTF-8 is replaced."""
        return self.head.decode(errors="replace").lstrip()

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """The stored bytes with random access; pipes and compressed files are first copied to disk."""
        stored = self._source.file
        if stored.seekable() and not self.is_compressed:
            stored.seek(0)
            yield stored
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(self.file, copy, BUFFER)
            copy.seek(0)
            yield copy

    @property
    def leading(self) -> bytes:
        """The first line that is not blank, with its end."""
        return next((line for line in io.BytesIO(self.head) if not line.isspace()), b"")

    def docs(
        self, rows: Iterable[tuple[int, Row]], make: Callable[[int, Row], Doc], sample: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[Doc]:
        """Yield the document that `make` makes of each (number, row); bad ones are left out as `reading.bad` allows.

        `sample` are the first records, for the advice of an error.
        """
        for number, row in rows:
            try:
                doc = make(number, row)
            except MissingPartError as error:
                self.reading.bad.skip(error.advised(sample))
            except InputError as error:
                self.reading.bad.skip(error)
            else:
                yield doc

    @cached_property
    def full_text(self) -> str:
        """The whole file in memory; InputError if it is not UTF-8, or too long."""
        content = self.content()
        self.file = io.BytesIO(content)
        return InputFile(self.name, io.BytesIO(content)).text()

    @cached_property
    def first(self) -> Any:
        """The JSON value in the first line that is not blank, or None."""
        return json_or_none(self.start.split("\n", 1)[0])

    @cached_property
    def value(self) -> Any:
        """The whole file as a JSON value if it begins like an object or a list, else None."""
        return json_or_none(self.full_text) if self.start.startswith(("{", "[")) else None


FORMATS = {
    "beir": "fontes.formats.columns:Beir",
    "canard": "fontes.formats.canard:Canard",
    "cast": "fontes.formats.cast:Cast",
    "checkthat": "fontes.formats.checkthat:CheckThat",
    "ciff": "fontes.formats.ciff:Ciff",
    "claims": "fontes.formats.claims:ClaimsFormat",
    "csv": "fontes.formats.csv:Csv",
    "ikat": "fontes.formats.ikat:Ikat",
    "json": "fontes.formats.json:Json",
    "jsonl": "fontes.formats.jsonl:Jsonl",
    "kilt": "fontes.formats.kilt:Kilt",
    "lines": "fontes.formats.lines:Lines",
    "msmarco": "fontes.formats.columns:MsMarco",
    "parquet": "fontes.formats.sheets:Parquet",
    "text": "fontes.formats.text:Text",
    "trec": "fontes.formats.trec:Trec",
    "tsv": "fontes.formats.csv:Tsv",
    "wapo": "fontes.formats.wapo:WashingtonPost",
    "xlsx": "fontes.formats.sheets:Xlsx",
    "xml": "fontes.formats.xml:Xml",
}
formats: Registry[type[Format]] = Registry("fontes.formats", "format", FORMATS)


def formats_for(verb: str, kind: str) -> dict[str, Format]:
    """Formats that can "read" or "write" a kind, by name: the default for writing first, then alphabetical."""
    supported = {name: form() for name, form in formats.items() if form.can(verb, kind)}
    return {name: supported[name] for name in sorted(supported, key=lambda name: (name != KINDS[kind].first, name))}


def format_named(name: str, verb: str, kind: str) -> Format:
    """Return the format of this name; ParameterError if it cannot "read" or "write" this kind."""
    supported = formats_for(verb, kind)
    if name not in supported:
        missing = f"{KINDS[kind].noun} format '{name}'{' to write' if verb == 'write' else ''}"
        raise ParameterError(f"there is no {missing}; there are {', '.join(supported)}")
    return supported[name]


def sniffed(kind: str, file: File) -> Format:
    """Return the format with the highest confidence; InputError if none fits, or the file is empty."""
    supported = formats_for("read", kind)
    _refuse_pickle(file)
    confidences = {name: supported[name].sniff(kind, file) for name in sorted(supported)}
    best = max(confidences, key=confidences.__getitem__)
    if confidences[best] > 0:
        return supported[best]
    if not file.start:
        raise InputError(f"{file.name}: holds no {KINDS[kind].holds}")
    for other, contents in (("qrels", "judgments"), ("run", "a run")):
        if other != kind and any(form.sniff(other, file) > LAST_RESORT for form in formats_for("read", other).values()):
            raise InputError(f"{file.name}: holds {contents}, not {KINDS[kind].holds}")
    names = ", ".join(supported)
    raise InputError(f"{file.name}: the format is not clear from the file; give format= (--format) one of {names}")


def _refuse_pickle(file: File) -> None:
    if not file.plain.endswith((".pkl", ".pickle")) and not PICKLE.match(file.head):
        return
    target = f"{file.plain.partition('.')[0]}.jsonl"
    command = f"import pandas; pandas.read_pickle({file.name!r}).to_json({target!r}, orient='records', lines=True)"
    problem = "a pickle, which Fontes does not open: that runs whatever code is in it"
    raise InputError(f'{file.name}: {problem}; if you trust it, make JSON lines of it: python -c "{command}"')


class _WithHead(io.RawIOBase):
    """A file whose first bytes, `head`, were already read."""

    def __init__(self, head: bytes, file: Any) -> None:
        self._head = memoryview(head)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return int(self._file.readinto1(buffer))
        size = min(len(buffer), len(self._head))
        buffer[:size] = self._head[:size]
        self._head = self._head[size:]
        return size


def json_or_none(text: str) -> object:
    """Return a text as a JSON value, None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
