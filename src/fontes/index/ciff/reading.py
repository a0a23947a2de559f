"""Reading CIFF: a header, then postings lists, then documents, each checked, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...storage.arrays import is_utf8
from ...storage.files import Source
from . import kernels
from .header import VERSION, Header

BUFFER = 1 << 22  # bytes that are looked at together, more where a postings list has more
HEADER = 1 << 20  # bytes that a header has at the most
CUT = "it is cut off; fetch or write it again"
NO_CIFF = "is no CIFF file"
SLACK = 0.01  # of the mean length, which some write with few digits


class Lists(NamedTuple):
    """Some postings lists.

    Args:
        blob: uint8: the bytes of their terms, end to end.
        bounds: int64: where each term begins therein, one entry more.
        df: int64: how many postings each has.
        docs: int32: the ordinals of the documents of all, ascending in each.
        tfs: int32: their frequencies.
    """

    blob: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    df: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.int32]


class Records(NamedTuple):
    """Some documents.

    Args:
        blob: uint8: the bytes of their ids, end to end.
        bounds: int64: where each id begins therein, one entry more.
        lengths: int64: how many terms each has.
    """

    blob: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    lengths: NDArray[np.int64]


class CiffReader:
    """The content of a CIFF file, which is read once: the header, then `lists`, then `records`, all of each.

    Attributes:
        name: The file's, for messages.
        header: Its header.

    Raises:
        InputError: It is no CIFF file, or one of another version; so in all methods for what is damaged or does not fit.
    """

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._window = _Window(source)
        self.header = self._header()
        self._present = np.zeros(self.header.num_docs, dtype=np.bool_)
        self._cf = self._length = self._filled = 0  # the sums of frequencies and of lengths, and documents with a length

    def lists(self) -> Iterator[Lists]:
        """The postings lists; whether the terms are in order is for the caller to see, who has them all."""
        done, count, window = 0, self.header.num_postings_lists, self._window
        while done < count:
            parsed = kernels.parse_lists(window.bytes, count - done, self._present)
            used, blob, bounds, df, cf, docs, tfs, (problem, term, one, other) = parsed
            done += len(df)
            if not is_utf8(blob, bounds):
                self._fail(f"a term among the postings lists {done - len(df) + 1:,} to {done:,} is not UTF-8")
            if problem != kernels.NOTHING:
                named = f" ('{term.tobytes().decode(errors='replace')}')" if len(term) else ""
                self._fail(f"postings list {done + 1:,}{named}: {self._of_list(problem, one, other)}")
            self._cf += int(cf.sum())
            if len(df):
                window.drop(used)
                yield Lists(blob, bounds, df, docs, tfs)
            else:
                self._more(f"after {done:,} of {count:,} postings lists")

    def records(self) -> Iterator[Records]:
        """The documents, in the order of their ordinals."""
        done, count, window = 0, self.header.num_docs, self._window
        while done < count:
            used, blob, bounds, lengths, problem, one = kernels.parse_records(window.bytes, count - done, done)
            place = f"document {done + len(lengths) + 1:,}"
            if not is_utf8(blob, bounds):
                self._fail(f"an id among the documents {done + 1:,} to {done + len(lengths):,} is not UTF-8")
            unknown = np.flatnonzero((lengths == 0) & self._present[done : done + len(lengths)])
            if len(unknown):
                doc_id = bytes(blob[bounds[unknown[0]] : bounds[unknown[0] + 1]]).decode()
                self._fail(f"document '{doc_id}' has postings and no length; every document needs its doclength")
            if problem != kernels.NOTHING:
                self._fail(f"{place}: {self._of_record(problem, one, done + len(lengths))}")
            done += len(lengths)
            self._length += int(lengths.sum())
            self._filled += int(np.count_nonzero(lengths))
            if len(lengths):
                window.drop(used)
                yield Records(blob, bounds, lengths)
            else:
                self._more(f"after {done:,} of {count:,} documents")
        if len(window.bytes) or window.more(1):
            self._fail(f"it goes on after the {count:,} documents that its header counts")

    def surplus(self) -> int | None:
        """How the tokens of the documents that were read come from what is stored of them.

        Returns:
            None where they are the sum of all frequencies; else what is to be added to the sum of the lengths.
        """
        header = self.header
        total, documents = header.total_terms_in_collection, header.total_docs
        if documents != header.num_docs:  # the totals are of another collection
            return 0
        if total == self._cf:
            return None
        whole = header.num_postings_lists >= header.total_postings_lists
        if total != self._length and (whole or total < self._cf):
            self._fail(
                f"its header counts {total:,} terms in the collection, but the frequencies of its postings add up to "
                f"{self._cf:,}, and the lengths of its documents to {self._length:,}"
            )
        return total - self._length

    def check_mean(self) -> None:
        """Raises InputError unless the mean length of the header is that of all documents, or of those with a term."""
        header = self.header
        total = header.total_terms_in_collection
        means = [total / n for n in (header.total_docs, self._filled) if n]
        if means and not any(abs(header.average_doclength - mean) <= SLACK * mean for mean in means):
            self._fail(
                f"its header has an average_doclength of {header.average_doclength:g}, but {total:,} terms in "
                f"{header.total_docs:,} documents"
            )

    def _header(self) -> Header:
        window = self._window
        start, end = map(int, kernels.message_end(window.bytes, 0, len(window.bytes)))
        if start < 0 or not 0 < end - start <= HEADER:
            self._fail_as_ciff("it does not begin with a header")
        window.more(end)
        if len(window.bytes) < end:
            self._fail_as_ciff("its header is cut off")
        try:
            header = Header.parse(window.bytes[start:end].tobytes())
        except ValueError as error:
            self._fail_as_ciff(f"in its header: {error}")
        if header.version != VERSION:
            self._fail_as_ciff(f"its header names the version {header.version}, and there is {VERSION} alone")
        if header.total_docs < header.num_docs:
            self._fail(f"its header counts {header.num_docs:,} documents of a collection of {header.total_docs:,}")
        if not header.num_docs:
            self._fail("holds no documents")
        window.drop(end)
        return header

    def _more(self, place: str) -> None:
        """Reads on until the next message is whole."""
        window = self._window
        _, end = map(int, kernels.message_end(window.bytes, 0, len(window.bytes)))
        if not window.more(max(end, len(window.bytes) + 1)):
            self._fail(f"it ends {place}; {CUT}")

    def _of_list(self, problem: int, one: int, other: int) -> str:
        """What is wrong with a postings list."""
        match problem:
            case kernels.NO_TERM:
                return "it has no term"
            case kernels.NO_POSTINGS:
                return "it has no postings"
            case kernels.DF:
                return f"its df is {one:,}, but it has {other:,} postings"
            case kernels.CF:
                return f"its cf is {one:,}, but its frequencies add up to {other:,}"
            case kernels.NOT_ASCENDING:
                return f"its docids do not ascend: after {one:,} comes one with the gap {other:,}"
            case kernels.BEYOND:
                return f"it has the docid {one:,}, but the header counts {self.header.num_docs:,} documents, from 0"
            case kernels.TF:
                return f"the docid {one:,} has the frequency {other:,}"
        return "it is no message of Protobuf, or not one of a postings list"

    @staticmethod
    def _of_record(problem: int, one: int, expected: int) -> str:
        """What is wrong with a document."""
        match problem:
            case kernels.DOCID:
                return f"its docid is {one:,}, not {expected:,}; docids ascend from 0 without a gap"
            case kernels.NO_ID:
                return "it has no collection_docid"
            case kernels.LENGTH:
                return f"its doclength is {one:,}"
        return "it is no message of Protobuf, or not one of a document"

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"{self.name}: {problem}")

    def _fail_as_ciff(self, problem: str) -> NoReturn:
        raise InputError(f"{self.name}: {NO_CIFF}: {problem}")


class _Window:
    """The bytes of a file that have been read and not been used.

    Attributes:
        bytes: uint8: these.
    """

    def __init__(self, source: Source) -> None:
        self._file = source.file
        self.bytes: NDArray[Any] = np.zeros(0, dtype=np.uint8)
        self.more(1)

    def drop(self, used: int) -> None:
        """Leaves out bytes at the beginning."""
        self.bytes = self.bytes[used:]

    def more(self, length: int) -> bool:
        """Reads until there are so many bytes, and some that come after them. False where there are not so many."""
        pieces = [self.bytes.tobytes()]
        read = len(self.bytes)
        while read < length and (piece := self._file.read(BUFFER)):
            pieces.append(piece)
            read += len(piece)
        if len(pieces) > 1:
            self.bytes = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        return read >= length
