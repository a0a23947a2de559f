"""CIFF, the Common Index File Format (Lin et al., 2020): an inverted index as Protobuf messages, without documents."""

from __future__ import annotations

import io
import re
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from ..core import Doc, InputError
from ..core.arrays import Bools, Int32s, Int64s, Ints
from ..core.errors import needs_extra
from ..core.strings import Strings, concatenated
from ..storage.arrays import is_utf8
from ..storage.files import InputFile
from .corpus import Corpus, IterableCorpus
from .format import File, Format
from .records import Fields

START = re.compile(rb"[\x02-\xff][\x01-\x7f]?\x08\x01\x10")  # header length, version, number of postings lists
VERSION = 1
MAX_INT32 = 0x7FFFFFFF  # maximum of a docid, a frequency, a length, and the bytes of a message
MAX_HEADER = 1 << 20  # bytes
PIECE = 1 << 22  # bytes of a message read at once
POSTINGS = 1 << 20  # postings held at a time, more for a term that has more
RECORDS = 1 << 18  # terms or documents held at a time
LENGTH_TOLERANCE = 0.01  # relative tolerance of the mean length, which some tools write with few digits


class Ciff(Format, name="ciff"):
    """An inverted index as Protobuf messages, from which `Index.build` makes an index."""

    endings = (".ciff",)

    def sniff(self, kind: str, file: File) -> float:
        return 0.95 if START.match(file.head) else super().sniff(kind, file)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        raise InputError(
            f"{file.name}: holds an inverted index in CIFF and no documents; "
            f"fontes index {shlex.quote(file.name)} -o INDEX makes an index of it"
        )


def ciff_file(documents: Corpus | IterableCorpus) -> str | Path | None:
    """Return the path if `documents` is a CIFF file, else None; InputError for several such files or a folder."""
    if not isinstance(documents, Corpus) or all(form.name != Ciff.name for _, form in documents.pieces):
        return None
    piece = documents.pieces[0][0]
    if len(documents.pieces) > 1 or piece.of_folder:
        raise InputError(f"{documents.path}: an index is made of one CIFF file, not of several, not of a folder; name the file")
    return piece.path


@dataclass(frozen=True)
class Header:
    """First message of a CIFF file; names and order of the fields are the format's."""

    version: int = 0
    num_postings_lists: int = 0
    num_docs: int = 0
    total_postings_lists: int = 0
    total_docs: int = 0
    total_terms_in_collection: int = 0
    average_doclength: float = 0.0
    description: str = ""


def header_of(facts: Mapping[str, Any]) -> Header:
    """Return the header stored in an index's manifest; raises ValueError for other fields, or values of other types."""
    header = {name: value for name, value in facts.items() if name != "surplus"}
    types = {field.name: type(field.default) for field in fields(Header)}
    sound = header.keys() == types.keys() and type(facts["surplus"]) in (int, type(None))
    if not sound or any(type(value) not in (types[name], *[int] * (types[name] is float)) for name, value in header.items()):
        raise ValueError(f"{facts}")
    return Header(**header)


@cache
def messages() -> Any:
    """Return the classes of the format's messages, and of their errors; MissingExtraError without protobuf.

    Numbers are int64 where the format says int32, and texts bytes where it says string: the bytes are the same, and errors can
    name numbers out of range and texts that are not UTF-8. A docid is the distance from the previous one.
    """
    with needs_extra("ciff", "a CIFF file", "protobuf"):
        from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
    kinds = descriptor_pb2.FieldDescriptorProto
    types = {int: kinds.TYPE_INT64, float: kinds.TYPE_DOUBLE, str: kinds.TYPE_STRING, bytes: kinds.TYPE_BYTES}
    layout: dict[str, dict[str, Any]] = {
        "Header": {field.name: type(field.default) for field in fields(Header)},
        "Posting": {"docid": int, "tf": int},
        "PostingsList": {"term": bytes, "df": int, "cf": int, "postings": "Posting"},
        "DocRecord": {"docid": int, "collection_docid": bytes, "doclength": int},
    }
    file = descriptor_pb2.FileDescriptorProto(name="ciff.proto", package="ciff", syntax="proto3")
    for name, members in layout.items():
        described = file.message_type.add(name=name)
        for number, (member, kind) in enumerate(members.items(), 1):
            field = described.field.add(name=member, number=number, label=kinds.LABEL_OPTIONAL)
            if isinstance(kind, str):
                field.label, field.type, field.type_name = kinds.LABEL_REPEATED, kinds.TYPE_MESSAGE, f".ciff.{kind}"
            else:
                field.type = types[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ciff.{name}")) for name in layout}
    return SimpleNamespace(DecodeError=message.DecodeError, **classes)


class CiffReader:
    """Content of a CIFF file, read once, in the order header, `lists`, `records`; InputError if it is unsound."""

    def __init__(self, source: InputFile) -> None:
        self.name, self._file = source.name, source.file
        self.header = self._header()
        self._present = np.zeros(self.header.num_docs, dtype=np.bool_)  # documents that have a posting
        self._cf = self._length = self._filled = 0  # sums of frequencies and of lengths, and documents with a length

    def lists(self) -> Iterator[tuple[Strings, Int64s, Int32s, Int32s]]:
        """Yield batches of terms in the order of the file, with their df and their concatenated docs and tfs."""
        noun, start, total = "postings list", 0, self.header.num_postings_lists
        while start < total:
            texts: list[bytes] = []
            numbers, gaps, tfs = array("q"), array("q"), array("q")
            while start + len(texts) < total and len(texts) < RECORDS and len(gaps) < POSTINGS:
                message = self._parsed(messages().PostingsList, noun, start + len(texts), total)
                for posting in message.postings:
                    gaps.append(posting.docid)
                    tfs.append(posting.tf)
                texts.append(message.term)
                numbers.extend((message.df, message.cf, len(gaps)))
            terms, (df, cf, ends) = self._texts(texts, noun, start, "a term"), np.array(numbers, np.int64).reshape(-1, 3).T
            counts = np.diff(ends, prepend=0)
            self._check(noun, start, terms, counts == 0, "it has no postings")
            docs, all_tfs = self._postings(noun, start, terms, ends, np.array(gaps, np.int64), np.array(tfs, np.int64))
            totals = np.add.reduceat(all_tfs, ends - counts)
            self._check(noun, start, terms, terms.offsets[1:] == terms.offsets[:-1], "it has no term")
            self._check(noun, start, terms, df != counts, "its df is {:,}, but it has {:,} postings", df, counts)
            self._check(noun, start, terms, cf != totals, "its cf is {:,}, but its frequencies add up to {:,}", cf, totals)
            self._cf += int(cf.sum())
            start += len(terms)
            yield terms, counts, docs.astype(np.int32), all_tfs.astype(np.int32)

    def records(self) -> Iterator[tuple[Strings, Int64s]]:
        """Yield batches of ids and lengths of documents in the order of their ordinals."""
        noun, start, total = "document", 0, self.header.num_docs
        while start < total:
            stop = min(total, start + RECORDS)
            batch = [self._parsed(messages().DocRecord, noun, number, total) for number in range(start, stop)]
            ids = self._texts([record.collection_docid for record in batch], noun, start, "an id")
            docids, lengths = (np.array([getattr(r, name) for r in batch], np.int64) for name in ("docid", "doclength"))
            expected = np.arange(start, stop)
            ascend = "its docid is {:,}, not {:,}; docids ascend from 0 without a gap"
            self._check(noun, start, ids, docids != expected, ascend, docids, expected)
            self._check(noun, start, ids, ids.offsets[1:] == ids.offsets[:-1], "it has no collection_docid")
            self._check(noun, start, ids, (lengths < 0) | (lengths > MAX_INT32), "its doclength is {:,}", lengths)
            unknown = np.flatnonzero((lengths == 0) & self._present[expected])
            if len(unknown):
                self._fail(f"document '{ids[unknown[0]]}' has postings and no length; every document needs its doclength")
            self._length += int(lengths.sum())
            self._filled += int(np.count_nonzero(lengths))
            start = stop
            yield ids, lengths
        if self._file.read(1):
            self._fail(f"it goes on after the {total:,} documents that its header counts")

    def surplus(self) -> int | None:
        """Number of tokens beyond the sum of the lengths; None if the tokens are the sum of all frequencies."""
        header = self.header
        total = header.total_terms_in_collection
        if header.total_docs != header.num_docs:  # the totals are of another collection
            return 0
        if total == self._cf:
            return None
        is_complete = header.num_postings_lists >= header.total_postings_lists
        if total != self._length and (is_complete or total < self._cf):
            self._fail(
                f"its header counts {total:,} terms in the collection, but the frequencies of its postings add up to "
                f"{self._cf:,}, and the lengths of its documents to {self._length:,}"
            )
        return total - self._length

    def check_mean(self) -> None:
        """Raise InputError unless the header's mean length is the mean of all documents, or of the documents with terms."""
        header = self.header
        total = header.total_terms_in_collection
        means = [total / n for n in (header.total_docs, self._filled) if n]
        if means and not any(abs(header.average_doclength - mean) <= LENGTH_TOLERANCE * mean for mean in means):
            self._fail(
                f"its header has an average_doclength of {header.average_doclength:g}, but {total:,} terms in "
                f"{header.total_docs:,} documents"
            )

    def _header(self) -> Header:
        size = self._size()
        if not size or size > MAX_HEADER:
            self._fail("is no CIFF file: it does not begin with a header")
        content = self._read(size)
        if len(content) < size:
            self._fail("is no CIFF file: its header is cut off")
        message = _decoded(messages().Header, content)
        if message is None:
            self._fail("is no CIFF file: in its header: it is no message of Protobuf")
        header = Header(**{field.name: getattr(message, field.name) for field in fields(Header)})
        for name, value in list(asdict(header).items())[:6]:
            if value < 0 or (value > MAX_INT32 and name != "total_terms_in_collection"):
                self._fail(f"is no CIFF file: in its header: its {name} is {value}")
        if header.version != VERSION:
            self._fail(f"is no CIFF file: its header names the version {header.version}, and only {VERSION} is known")
        if header.total_docs < header.num_docs:
            self._fail(f"its header counts {header.num_docs:,} documents of a collection of {header.total_docs:,}")
        if not header.num_docs:
            self._fail("holds no documents")
        return header

    def _parsed(self, message: Callable[[], object], noun: str, number: int, total: int) -> Any:
        """Read the next message, of an item counted from 0."""
        size = self._size()
        content = self._read(size) if size is not None and size <= MAX_INT32 else b""
        if size is None or len(content) < size <= MAX_INT32:
            self._fail(f"it ends after {number:,} of {total:,} {noun}s; it is cut off; fetch or write it again")
        parsed = _decoded(message, content) if size <= MAX_INT32 else None
        if parsed is None:
            self._fail(f"{noun} {number + 1:,}: it is no message of Protobuf, or not one of a {noun}")
        return parsed

    def _size(self) -> int | None:
        """Read the length of a message; None at the end of the file."""
        size = shift = 0
        while shift < 35 and (byte := self._file.read(1)):
            size |= (byte[0] & 127) << shift
            shift += 7
            if byte[0] < 128:
                return size
        return MAX_INT32 + 1 if shift == 35 else None

    def _read(self, size: int) -> bytes:
        """Read in pieces, since a length may be wrong."""
        pieces = []
        while size and (piece := self._file.read(min(size, PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _texts(self, texts: list[bytes], noun: str, first: int, description: str) -> Strings:
        blob, bounds = concatenated(texts)
        if not is_utf8(blob, bounds):
            self._fail(f"{description} among the {noun}s {first + 1:,} to {first + len(texts):,} is not UTF-8")
        return Strings(blob, bounds)

    def _postings(
        self, noun: str, first: int, terms: Strings, ends: Int64s, gaps: Int64s, tfs: Int64s
    ) -> tuple[Int64s, Int64s]:
        """Return the checked docs and tfs of lists that end at `ends`."""
        counts = np.diff(ends, prepend=0)
        starts = ends - counts
        least = np.ones(len(gaps), np.int64)
        least[starts] = 0
        sums = np.cumsum(gaps)  # sums after a gap that is out of range are not looked at
        docs = sums - np.repeat(sums[starts] - gaps[starts], counts)
        misplaced = (gaps < least) | (gaps > MAX_INT32)
        beyond = docs >= self.header.num_docs
        wrong = misplaced | beyond | (tfs < 1) | (tfs > MAX_INT32)
        if wrong.any():
            i = int(np.argmax(wrong))
            number = int(np.searchsorted(ends, i, side="right"))
            if misplaced[i]:
                before = docs[i - 1] if least[i] else -1
                problem = f"its docids do not ascend: after {before:,} comes one with the gap {gaps[i]:,}"
            elif beyond[i]:
                problem = f"it has the docid {docs[i]:,}, but the header counts {self.header.num_docs:,} documents, from 0"
            else:
                problem = f"the docid {docs[i]:,} has the frequency {tfs[i]:,}"
            self._fail_at(noun, first + number, terms[number], problem)
        self._present[docs] = True
        return docs, tfs

    def _check(self, noun: str, first: int, texts: Strings, wrong: Bools, problem: str, *numbers: Int64s) -> None:
        if wrong.any():
            i = int(np.argmax(wrong))
            text = "" if noun == "document" else texts[i]
            self._fail_at(noun, first + i, text, problem.format(*(values[i] for values in numbers)))

    def _fail_at(self, noun: str, number: int, text: str, problem: str) -> NoReturn:
        label = f" ('{text}')" if text else ""
        self._fail(f"{noun} {number + 1:,}{label}: {problem}")

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self.name}: {problem}")


def _decoded(message: Callable[[], Any], content: bytes) -> Any:
    """Return the parsed message; None if the bytes are no message of Protobuf."""
    parsed = message()
    try:
        parsed.ParseFromString(content)
    except messages().DecodeError:
        return None
    return parsed


def encoded(items: Iterable[object]) -> bytes:
    """Return messages, each after its length."""
    from google.protobuf.proto import serialize_length_prefixed

    out = io.BytesIO()
    for message in items:
        serialize_length_prefixed(message, out)
    return out.getvalue()


def term_messages(terms: Iterable[str], df: Ints, cf: Ints, docs: Ints, tfs: Ints) -> Iterator[Any]:
    """Yield the messages of terms with their concatenated docs and tfs."""
    ends = np.cumsum(df)
    gaps = np.diff(docs.astype(np.int64), prepend=0)
    gaps[ends[:-1]] = docs[ends[:-1]]
    pairs = zip(gaps.tolist(), tfs.tolist(), strict=True)
    for term, count, total in zip(terms, df.tolist(), cf.tolist(), strict=True):
        message = messages().PostingsList(term=term.encode(), df=count, cf=total)
        add = message.postings.add
        for gap, tf in islice(pairs, count):
            posting = add()
            posting.docid, posting.tf = gap, tf
        yield message


def record_messages(ids: Iterable[str], first: int, lengths: Ints) -> Iterator[Any]:
    """Yield the messages of documents with docids from `first`."""
    record = messages().DocRecord
    for docid, (name, length) in enumerate(zip(ids, lengths.tolist(), strict=True), first):
        yield record(docid=docid, collection_docid=name.encode(), doclength=length)
