"""CIFF, the Common Index File Format (Lin et al., 2020): reading and writing an inverted index as Protobuf messages."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.progress import Progress, ProgressCallback
from ..core.strings import Strings, offsets_of
from ..core.work import resources
from ..storage.arrays import ByteWriter, is_utf8, read_array
from ..storage.files import InputFile, reading
from . import ciff_kernels as kernels
from .inversion import Postings, chunks, write_lists
from .tables import IdWriter, concatenate_tables

if TYPE_CHECKING:
    from .state import State

VERSION = 1
VARINT, DOUBLE, TEXT = 0, 1, 2  # kinds of values in Protobuf
BUFFER = 1 << 22  # bytes read at a time, more for a longer message
MAX_HEADER = 1 << 20  # bytes
LENGTH_TOLERANCE = 0.01  # relative tolerance of the mean length, which some tools write with few digits
POSTINGS = 1 << 20  # postings written at a time, more for a term that has more
RECORDS = 1 << 18  # documents written at a time

PROBLEMS = {
    kernels.NO_MESSAGE: "it is no message of Protobuf, or not one of a {noun}",
    kernels.NOT_ASCENDING: "its docids do not ascend: after {first:,} comes one with the gap {second:,}",
    kernels.BEYOND: "it has the docid {first:,}, but the header counts {documents:,} documents, from 0",
    kernels.TF: "the docid {first:,} has the frequency {second:,}",
}


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

    @classmethod
    def parse(cls, message: NDArray[np.uint8]) -> Header:
        """Parse a message; raises ValueError if it is no header."""
        names, offset = [field.name for field in fields(cls)], 0
        values: dict[str, Any] = {}
        while offset < len(message):
            tag, value, end, offset = map(int, kernels.field(message, offset, len(message)))
            if offset < 0:
                raise ValueError("it is cut off, or no message of Protobuf")
            if not 1 <= tag >> 3 <= len(names):
                continue
            name = names[(tag >> 3) - 1]
            if tag & 7 != {"average_doclength": DOUBLE, "description": TEXT}.get(name, VARINT):
                raise ValueError(f"its field {name} has a value of another kind")
            if tag & 7 == VARINT:
                values[name] = value
            else:
                piece = message[value:end].tobytes()
                values[name] = piece.decode() if name == "description" else struct.unpack("<d", piece)[0]
        for name in names[:6]:
            if values.get(name, 0) < 0:
                raise ValueError(f"its {name} is {values[name]}")
        return cls(**values)

    def message(self) -> bytes:
        """Return the message, preceded by its length."""
        content = b""
        for number, (name, value) in enumerate(asdict(self).items(), 1):
            if not value:
                continue
            if name == "average_doclength":
                content += varint(number << 3 | DOUBLE) + struct.pack("<d", value)
            elif name == "description":
                text = value.encode(errors="replace")
                content += varint(number << 3 | TEXT) + varint(len(text)) + text
            else:
                content += varint(number << 3 | VARINT) + varint(value)
        return varint(len(content)) + content


def varint(value: int) -> bytes:
    """Encode a number from 0 up as in Protobuf: seven bits per byte, low bits first, the high bit set on all but the last."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def header_of(facts: Mapping[str, Any]) -> Header:
    """Return the header stored in an index's manifest; raises ValueError for other fields, or values of other types."""
    header = {name: value for name, value in facts.items() if name != "surplus"}
    types = {field.name: type(field.default) for field in fields(Header)}
    sound = header.keys() == types.keys() and type(facts["surplus"]) in (int, type(None))
    if not sound or any(type(value) not in (types[name], *[int] * (types[name] is float)) for name, value in header.items()):
        raise ValueError(f"{facts}")
    return Header(**header)


class CiffReader:
    """Content of a CIFF file, read once, in the order header, `lists`, `records`; InputError if it is unsound."""

    def __init__(self, source: InputFile) -> None:
        self.name = source.name
        self._file = source.file
        self._bytes: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)  # read but not parsed yet
        self.header = self._header()
        self._present = np.zeros(self.header.num_docs, dtype=np.bool_)
        self._cf = self._length = self._filled = 0  # sums of frequencies and of lengths, and documents with a length

    def lists(self) -> Iterator[tuple[Strings, NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]]:
        """Yield batches of terms in the order of the file, with their df and their concatenated docs and tfs."""
        noun = "postings list"
        for first, terms, (df, cf, ends, totals), docs, tfs in self._messages(noun, self.header.num_postings_lists):
            counts = np.diff(ends, prepend=0)
            self._check(noun, first, terms, terms.offsets[1:] == terms.offsets[:-1], "it has no term")
            self._check(noun, first, terms, counts == 0, "it has no postings")
            self._check(noun, first, terms, df != counts, "its df is {:,}, but it has {:,} postings", df, counts)
            self._check(noun, first, terms, cf != totals, "its cf is {:,}, but its frequencies add up to {:,}", cf, totals)
            self._cf += int(cf.sum())
            yield terms, counts, docs, tfs

    def records(self) -> Iterator[tuple[Strings, NDArray[np.int64]]]:
        """Yield batches of ids and lengths of documents in the order of their ordinals."""
        noun, total = "document", self.header.num_docs
        for first, ids, (docids, lengths, _, _), _, _ in self._messages(noun, total):
            expected = np.arange(first, first + len(ids))
            ascend = "its docid is {:,}, not {:,}; docids ascend from 0 without a gap"
            self._check(noun, first, ids, docids != expected, ascend, docids, expected)
            self._check(noun, first, ids, ids.offsets[1:] == ids.offsets[:-1], "it has no collection_docid")
            wrong = (lengths < 0) | (lengths > kernels.MAX_INT32)
            self._check(noun, first, ids, wrong, "its doclength is {:,}", lengths)
            unknown = np.flatnonzero((lengths == 0) & self._present[expected])
            if len(unknown):
                self._fail(f"document '{ids[unknown[0]]}' has postings and no length; every document needs its doclength")
            self._length += int(lengths.sum())
            self._filled += int(np.count_nonzero(lengths))
            yield ids, lengths.copy()
        if len(self._bytes) or self._more(1):
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
        self._more(1)
        start, end = self._message()
        if start < 0 or not 0 < end - start <= MAX_HEADER:
            self._fail("is no CIFF file: it does not begin with a header")
        if not self._more(end):
            self._fail("is no CIFF file: its header is cut off")
        try:
            header = Header.parse(self._bytes[start:end])
        except ValueError as error:
            self._fail(f"is no CIFF file: in its header: {error}")
        if header.version != VERSION:
            self._fail(f"is no CIFF file: its header names the version {header.version}, and there is {VERSION} alone")
        if header.total_docs < header.num_docs:
            self._fail(f"its header counts {header.num_docs:,} documents of a collection of {header.total_docs:,}")
        if not header.num_docs:
            self._fail("holds no documents")
        self._bytes = self._bytes[end:]
        return header

    def _messages(self, noun: str, total: int) -> Iterator[tuple[int, Strings, NDArray[np.int64], Any, Any]]:
        """Yield batches of messages: the number of the first, the texts, the numbers from `parse_messages`, docs and tfs."""
        start = 0
        tags, text = (kernels.RECORDS, "an id") if noun == "document" else (kernels.LISTS, "a term")
        while start < total:
            parsed = kernels.parse_messages(self._bytes, total - start, tags, self._present)
            used, (blob, bounds), numbers, docs, tfs, (problem, text_bytes, first, second) = parsed
            count = len(bounds) - 1
            if not is_utf8(blob, bounds):
                self._fail(f"{text} among the {noun}s {start + 1:,} to {start + count:,} is not UTF-8")
            if count:
                yield start, Strings(blob, bounds), numbers, docs, tfs
            start += count
            if problem != kernels.SOUND:
                description = PROBLEMS[problem].format(noun=noun, first=first, second=second, documents=self.header.num_docs)
                term = "" if problem == kernels.NO_MESSAGE else text_bytes.tobytes().decode(errors="replace")
                self._fail_at(noun, start, term, description)
            self._bytes = self._bytes[used:]
            if not count and not self._more(max(self._message()[1], len(self._bytes) + 1)):
                self._fail(f"it ends after {start:,} of {total:,} {noun}s; it is cut off; fetch or write it again")

    def _message(self) -> tuple[int, int]:
        start, end = kernels.message_bounds(self._bytes, 0, len(self._bytes))
        return int(start), int(end)

    def _more(self, length: int) -> bool:
        """Read until `length` bytes are available; False if the file is shorter."""
        pieces, size = [self._bytes.tobytes()], len(self._bytes)
        while size < length and (piece := self._file.read(BUFFER)):
            pieces.append(piece)
            size += len(piece)
        if len(pieces) > 1:
            self._bytes = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        return size >= length

    def _check(
        self, noun: str, first: int, texts: Strings, wrong: NDArray[np.bool_], problem: str, *numbers: NDArray[np.int64]
    ) -> None:
        if wrong.any():
            i = int(np.argmax(wrong))
            text = "" if noun == "document" else texts[i]
            self._fail_at(noun, first + i, text, problem.format(*(values[i] for values in numbers)))

    def _fail_at(self, noun: str, number: int, text: str, problem: str) -> NoReturn:
        label = f" ('{text}')" if text else ""
        self._fail(f"{noun} {number + 1:,}{label}: {problem}")

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self.name}: {problem}")


def ciff_segment(path: str | Path, folder: Path, *, progress: ProgressCallback) -> tuple[dict[str, int], dict[str, Any]]:
    """Write the files of one segment: ids, terms, postings and the lengths in the file, but no texts.

    Postings are spooled to disk beside the segment while they are read; the terms and the longest list are in memory.

    Returns:
        The counts of documents, terms, postings and tokens; and the facts about the file for the manifest.
    """
    start = time.perf_counter()
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    spools, ids = [ByteWriter(folder.parent, name) for name in ("docs", "tfs")], IdWriter(folder, resources().memory)
    tables, dfs, lengths = [Strings.of([])], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    try:
        with reading(path) as source:
            reader = CiffReader(source)
            for table, df, *postings in reader.lists():
                for spool, values in zip(spools, postings, strict=True):
                    spool.write(values.view(np.uint8))
                tables.append(table)
                dfs.append(df)
                part = min(1.0, source.position / size) if size else None
                progress(Progress("reading", len(df), None, time.perf_counter() - start, part=part))
            for table, table_lengths in reader.records():
                ids.add(table)
                lengths.append(table_lengths)
            facts = {**asdict(reader.header), "surplus": reader.surplus()}
            reader.check_mean()
        for spool in spools:
            spool.close()
        terms = concatenate_tables(tables)
        order = _order(terms, reader.name)
        try:
            ids.close(repeated=False)
        except InputError as error:
            raise InputError(f"{reader.name}: {error}") from None
    finally:
        for spool in spools:
            spool.abandon()
        ids.abandon()
    df = np.concatenate(dfs)
    bounds = offsets_of(df)
    docs, tfs = (read_array(folder.parent, name).view("<i4") for name in ("docs", "tfs"))

    def spooled(first: int, last: int) -> Postings:
        if order is None:
            rows = slice(int(bounds[first]), int(bounds[last]))
            return docs[rows], tfs[rows]
        lists = order[first:last]
        counts = df[lists]
        indices = np.arange(counts.sum()) + np.repeat(bounds[lists] - (np.cumsum(counts) - counts), counts)
        return docs[indices], tfs[indices]

    ordered, counts = (terms, df) if order is None else (terms.reordered(order), df[order])
    written = write_lists(folder, ordered, counts, np.concatenate(lengths), spooled)
    return {"documents": reader.header.num_docs, **written}, facts


def _order(terms: Strings, name: str) -> NDArray[np.uint32] | None:
    """Numbers of the terms in ascending order; None if they ascend already. Java tools sort terms by UTF-16."""
    if kernels.first_unordered(terms.blob, terms.offsets) < 0:
        return None
    java = [term.encode("utf-16-be") for term in terms]
    wrong = next((number for number, (first, second) in enumerate(pairwise(java), 1) if first >= second), None)
    if wrong is None:
        return terms.order
    previous, term = terms[wrong - 1], terms[wrong]
    problem = (
        f"comes twice, as {wrong:,} and {wrong + 1:,}" if previous == term else f"({wrong + 1:,}) comes after '{previous}'"
    )
    raise InputError(f"{name}: the postings list of '{term}' {problem}; they must be in the order of their terms")


def ciff_messages(state: State, description: str | None) -> Iterator[bytes]:
    """Yield the bytes of a CIFF file of the living documents, in pieces; None as description describes the index."""
    yield _header(state, _default_description(state) if description is None else description).message()
    terms, starts = state.terms.blob, state.terms.offsets
    for first, last in chunks(state.df, POSTINGS):
        df, cf = (counts[first:last].astype(np.int64) for counts in (state.df, state.cf))
        docs, tfs = state.postings(np.arange(first, last))
        yield kernels.write_lists(terms, starts[first : last + 1].astype(np.int64), df, cf, docs, tfs).tobytes()
    ids, bounds = state.ids.blob, state.ids.offsets
    for first in range(0, len(state), RECORDS):
        last = min(len(state), first + RECORDS)
        lengths = state.lengths[first:last].astype(np.int64)
        yield kernels.write_records(ids, bounds[first : last + 1].astype(np.int64), first, lengths).tobytes()


def _default_description(state: State) -> str:
    if state.ciff is not None:
        return header_of(state.ciff).description
    analyzer = state.manifest["analyzer"]
    words, stemmer = len(analyzer["stopwords"]), analyzer["stemmer"] or "none"
    steps = f"tokenizer {analyzer['tokenizer']}, {words} stop words, stemmer {stemmer}"
    return f"{state.name}: Fontes {state.manifest['fontes']}; {', '.join(state.fields)}; {steps}"


def _header(state: State, description: str) -> Header:
    """Header with the counts of an index; with the totals of the collection if the index is of a part of it."""
    documents, terms, tokens = len(state), len(state.terms), state.tokens
    mean = tokens / documents if documents else 0.0
    header = Header(VERSION, terms, documents, terms, documents, tokens, mean, description)
    if state.ciff is None:
        return header
    original = header_of(state.ciff)
    if (documents, terms) == (original.num_docs, original.num_postings_lists):
        return replace(original, description=description)
    total = terms + original.total_postings_lists - original.num_postings_lists
    header = replace(header, total_postings_lists=max(terms, total))
    if original.total_docs == original.num_docs:
        return header
    total_terms, mean = original.total_terms_in_collection, original.average_doclength
    return replace(header, total_docs=original.total_docs, total_terms_in_collection=total_terms, average_doclength=mean)
