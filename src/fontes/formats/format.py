"""Base class of file formats, their registry, and detection of the format of a file."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any, ClassVar, NamedTuple

from ..core import Doc, InputError, ParameterError, Qrels, Run, Topic, Topics
from ..core.registry import Registry
from ..storage.files import BOM, BUFFER, Source, is_gzip, plain_name
from .decoding import REMEDY, Reading, as_utf8, reading_of
from .packed import Packing
from .records import Fields

PICKLE = re.compile(rb"\x80[\x02-\x05]")
HEAD = 2000  # bytes by which a format is told
BLANK = 1 << 20  # bytes of blank lines after which no line is waited for


class FileKind(NamedTuple):
    """A kind of file: its name before the word "format", what such a file holds, and the format that is written unless told."""

    noun: str
    holds: str
    first: str


KINDS = {
    "corpus": FileKind("corpus", "documents", "jsonl"),
    "topics": FileKind("topic", "topics", "jsonl"),
    "qrels": FileKind("qrels", "judgments", "trec"),
    "run": FileKind("run", "rows", "trec"),
}


class Format:
    """A format of files: its name, how it is told from others, and how files of it are read and written.

    A subclass with a name registers itself: `class Jsonl(Format, name="jsonl")`. It reads and writes the kinds of files
    (corpus, topics, qrels, run) whose methods it has; the methods of this class only say what they take and give. A package
    of somebody else adds a format by the entry point group `fontes.formats`, which names the module of such a subclass.

    Attributes:
        name: The name of the format.
        endings: Endings of the names of its files, of which only such files are read from a folder of documents.
        named_fields: Whether the parts of its documents have names, so that `read_corpus(fields=…)` can choose others.
        has_cells: Whether metadata are cells, texts that may stand for numbers and dates; an index guesses the types.
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
        """Confidence that a file of this kind is of this format, from 0 (it is not) to 1.

        Our own say 0.9 for a name with their ending, 0.95 for content that no other format has, and less for the rest.
        Called for the kinds that the format reads. Of equals the first in alphabetical order counts.

        Args:
            kind: What the file holds: "corpus", "topics", "qrels" or "run".
            file: The file, of which name, head, start, first and value can be looked at without reading it.
        """
        return 0.9 if self.endings and file.plain.endswith(self.endings) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        """The documents of a file.

        Raises:
            InputError: Something cannot be read; the message names file and line.
        """
        raise NotImplementedError

    def pack_corpus(self, file: File, fields: Fields, size: int) -> Iterator[Packing] | None:
        """The documents of a file as bytes, for those who want many at once; None, as here: `read_corpus` reads them.

        Args:
            file: The file.
            fields: The names of the parts of documents.
            size: About how many bytes of the file each piece of work is.
        """
        return None

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        """Whether the documents of a file are its lines, each of which means the same without those before it.

        Such a file is cut into ranges of bytes that are read side by side. Here: no.

        Args:
            file: The file, of which the beginning can be looked at.
            fields: The names of the parts of documents.
        """
        return False

    def read_topics(self, file: File) -> Iterable[Topic]:
        """The topics of a file.

        Raises:
            InputError: Something cannot be read; the message names file and line.
        """
        raise NotImplementedError

    def read_qrels(self, file: File) -> Qrels:
        """The judgments of a file.

        Raises:
            InputError: Something cannot be read; the message names file and line.
        """
        raise NotImplementedError

    def read_run(self, file: File, topics: Topics) -> Run:
        """The run of a file, with `topics` first and then those that only the file has, without text."""
        raise NotImplementedError

    def write_corpus(self, docs: Iterable[Doc]) -> Iterable[bytes]:
        """The bytes of a file of these documents, in pieces."""
        raise NotImplementedError

    def write_topics(self, topics: Topics) -> Iterable[bytes]:
        """The bytes of a file of these topics, in pieces."""
        raise NotImplementedError

    def write_qrels(self, qrels: Qrels) -> Iterable[bytes]:
        """The bytes of a file of these judgments, in pieces."""
        raise NotImplementedError

    def write_run(self, run: Run, tag: str) -> Iterable[bytes]:
        """The bytes of a file of this run, in pieces; `tag` is a word that names it where there is a place for it."""
        raise NotImplementedError

    @classmethod
    def can(cls, verb: str, kind: str) -> bool:
        """Whether the format can "read" or "write" files of this kind."""
        method = f"{verb}_{kind}"
        return getattr(cls, method) is not getattr(Format, method)


class File(Source):
    """A file open for reading whose beginning can be looked at before it is read.

    Attributes:
        path: The path of the file inside the folder that is read, or its name.
        plain: The name in lower case, without .gz.
        folder: Whether the file is one of a folder.
        opening: The first line of the whole file, where this is a later piece of it; else nothing.
        encoding: The encoding that the file is stored in; what is read of it is UTF-8.
        reading: How it is read.
    """

    remedy = REMEDY

    def __init__(
        self, source: Source, path: str, folder: bool = False, opening: bytes = b"", reading: Reading | None = None
    ) -> None:
        self.reading = reading or reading_of()
        file, self.encoding = as_utf8(source.file, source.name, self.reading)
        super().__init__(source.name, file)
        self.path = path
        self.plain = plain_name(path)
        self.folder = folder
        self.opening = opening
        self._source = source

    @property
    def position(self) -> int:
        """Bytes read so far of the file as stored."""
        return self._source.position

    @cached_property
    def head(self) -> bytes:
        """The first lines, so many that two are not blank and that there are 2,000 bytes, where the file has them."""
        lines, filled, size = bytearray(), 0, 0
        for line in self.stored_lines():
            lines += line
            size += len(line) if (words := not line.isspace()) else 0
            filled += words
            if len(lines) >= HEAD and (filled > 1 or len(lines) - size > BLANK):
                break
        head = bytes(lines)
        self.file = io.BufferedReader(_Resumed(head, self.file), BUFFER)
        return head.removeprefix(BOM)

    @cached_property
    def start(self) -> str:
        """The head without white space before it; what is not UTF-8 is replaced."""
        return self.head.decode(errors="replace").lstrip()

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """The bytes of the file as they are stored, in any order; what comes from a pipe or is packed goes to disk first."""
        stored = self._source.file
        if stored.seekable() and not is_gzip(self.path):
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

    @cached_property
    def whole(self) -> str:
        """All of the file, which is then in memory.

        Raises:
            InputError: It is not UTF-8, or too long.
        """
        content = self.content()
        self.file = io.BytesIO(content)
        return Source(self.name, io.BytesIO(content)).text()

    @cached_property
    def first(self) -> Any:
        """The JSON value in the first line that is not blank, or None."""
        return _json(self.start.split("\n", 1)[0])

    @cached_property
    def value(self) -> Any:
        """The JSON value that the whole file is, if it begins as an object or a list, or None."""
        return _json(self.whole) if self.start.startswith(("{", "[")) else None


# Filled by the subclasses of Format, which the modules of this package and those of other packages define.
formats: Registry[type[Format]] = Registry("fontes.formats", "format")


def formats_for(verb: str, kind: str) -> dict[str, Format]:
    """The formats that can "read" or "write" a kind, by name: first the one that is written unless told, then by alphabet."""
    able = {name: form() for name, form in formats.items() if form.can(verb, kind)}
    return {name: able[name] for name in sorted(able, key=lambda name: (name != KINDS[kind].first, name))}


def format_named(name: str, verb: str, kind: str) -> Format:
    """The format of this name.

    Raises:
        ParameterError: Where it does not exist or cannot "read" or "write" this kind.
    """
    able = formats_for(verb, kind)
    if name not in able:
        what = f"{KINDS[kind].noun} format '{name}'{' to write' if verb == 'write' else ''}"
        raise ParameterError(f"there is no {what}; there are {', '.join(able)}")
    return able[name]


def sniffed(kind: str, file: File) -> Format:
    """The format that is most sure of the file.

    Raises:
        InputError: Where none is, and where there is nothing in the file.
    """
    able = formats_for("read", kind)
    _refuse_pickle(file)
    sure = {name: able[name].sniff(kind, file) for name in sorted(able)}
    best = max(sure, key=sure.__getitem__)
    if sure[best] > 0:
        return able[best]
    if not file.start:
        raise InputError(f"{file.name}: holds no {KINDS[kind].holds}")
    raise InputError(f"{file.name}: the format is not clear from the file; give format= one of {', '.join(able)}")


def _refuse_pickle(file: File) -> None:
    if not file.plain.endswith((".pkl", ".pickle")) and not PICKLE.match(file.head):
        return
    target = f"{file.plain.partition('.')[0]}.jsonl"
    line = f"import pandas; pandas.read_pickle({file.name!r}).to_json({target!r}, orient='records', lines=True)"
    why = "a pickle, which Fontes does not open: that runs whatever code is in it"
    raise InputError(f'{file.name}: {why}; if you trust it, make JSON lines of it: python -c "{line}"')


class _Resumed(io.RawIOBase):
    """The bytes of `head`, and then what is left to read of `rest`."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return int(self._rest.readinto1(buffer))
        size = min(len(buffer), len(self._head))
        buffer[:size] = self._head[:size]
        self._head = self._head[size:]
        return size


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
