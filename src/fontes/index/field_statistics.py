"""The component of field statistics: the frequency of each posting's term in each field, and the lengths of fields."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..core.progress import ProgressCallback
from ..core.threads import in_threads
from ..storage.arrays import REMEDY, UNSIGNED, fixed
from . import postings
from .build import MAX_FIELDS
from .component import components
from .inversion import chunks
from .payload_kernels import MAX_BYTES, count_frequencies, pack_frequencies, unpack_frequencies
from .payload_lists import RowLists, bytes_of, merge_payload
from .payloads import Occurrences, Payload, PayloadWriter, Rows
from .postings import JoinedLists, PostingLists

if TYPE_CHECKING:
    from .segment import Leaf, Segment
    from .state import State

Integers = NDArray[np.integer[Any]]


class FieldStatistics(Protocol):
    """Statistics of the fields of documents, for terms numbered as in the postings beside them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields."""
        ...

    @property
    def lengths(self) -> Integers:
        """(documents, fields): terms of each field."""
        ...

    @property
    def tokens(self) -> Integers:
        """(fields,): terms of each field in all documents."""
        ...

    @property
    def df(self) -> Integers:
        """(terms, fields): documents with the term in the field."""
        ...

    @property
    def cf(self) -> Integers:
        """(terms, fields): occurrences of the term in the field."""
        ...

    def frequencies(self, terms: Integers) -> NDArray[np.int32]:
        """Return the frequencies by field of these terms' postings, concatenated in their order: (postings, fields).

        Raises:
            IndexFormatError: The bytes do not fit the postings.
        """
        ...


class FieldLists(RowLists):
    """The field statistics of a segment, as `FieldStatistics`.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    names: tuple[str, ...] = ()

    def __init__(self, folder: Path, lists: PostingLists) -> None:
        super().__init__(folder, FIELDS.name, lists)
        self.lengths = self.arrays.array("fields.lengths", UNSIGNED, lists.documents, None)
        width = self.lengths.shape[1]
        self._bits = _bits(width)
        self.df, self.cf = (self.arrays.array(f"fields.{name}", UNSIGNED, len(lists.df), width) for name in ("df", "cf"))
        if not 1 <= width <= MAX_FIELDS or np.any(self.df > lists.df[:, None]) or np.any(self.df > self.cf):
            raise self.arrays.damaged("fields.df", "it has counts that cannot be")
        for name, array in (("cf", self.cf), ("lengths", self.lengths)):
            self.arrays.check_sum(f"fields.{name}", array, int(lists.cf.sum(dtype=np.uint64)), "tokens")

    def named(self, names: tuple[str, ...]) -> FieldLists:
        """Return the statistics with the names of the fields."""
        copied = copy(self)
        copied.names = names
        return copied

    @cached_property
    def tokens(self) -> Integers:
        return np.asarray(self.lengths.sum(axis=0, dtype=np.int64))

    def frequencies(self, terms: Integers) -> NDArray[np.int32]:
        starts, ends, df = self.spans(terms)
        out = np.zeros((int(df.sum()), self.lengths.shape[1]), dtype=np.int32)
        if len(out) and not unpack_frequencies(fixed(self.rows), starts, ends, df, self._bits, out):
            raise self.damaged()
        return out

    def counted(self, dead: NDArray[np.bool_], terms: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return df and cf by field of some terms over the `dead` documents."""
        df, cf = (np.zeros((len(terms), self.lengths.shape[1]), dtype=np.int64) for _ in range(2))
        counts = self.lists.df[terms].astype(np.int64)

        def count_chunk(edges: tuple[int, int]) -> None:
            rows = slice(*edges)
            docs, _ = self.lists.postings(terms[rows])
            deleted = self.frequencies(terms[rows]) * dead[docs][:, None]
            count_frequencies(deleted, counts[rows], df[rows], cf[rows])

        in_threads(count_chunk, list(chunks(counts, postings.CHUNK_POSTINGS // 4)))
        return df, cf

    def check(self) -> None:
        """Raise IndexFormatError unless the statistics fit the postings."""
        lengths = np.zeros((self.lists.documents, self.lengths.shape[1]), dtype=np.int64)
        for first, last in chunks(self.lists.df, postings.CHUNK_POSTINGS):
            terms = np.arange(first, last)
            docs, tfs = self.lists.postings(terms)
            frequencies = self.frequencies(terms)
            if not np.array_equal(frequencies.sum(axis=1, dtype=np.int64), tfs):
                raise self.arrays.damaged("fields.rows", "the frequencies by field do not add up to those of the postings")
            for name, array in zip(("df", "cf"), _counts(frequencies, self.lists.df[first:last]), strict=True):
                if not np.array_equal(array, getattr(self, name)[first:last]):
                    raise self.arrays.damaged(f"fields.{name}", "it does not fit the frequencies by field")
            for field in range(lengths.shape[1]):
                lengths[:, field] += np.bincount(docs, frequencies[:, field], len(lengths)).astype(np.int64)
        if not np.array_equal(lengths, self.lengths):
            raise self.arrays.damaged("fields.lengths", "it does not fit the frequencies by field")


class JoinedFields:
    """The field statistics of the living documents of several leaves, as `FieldStatistics`.

    Args:
        lists: The joined postings.
        parts: The field statistics of each leaf.
        names: The fields.
    """

    def __init__(self, lists: JoinedLists, parts: Sequence[FieldLists], names: tuple[str, ...]) -> None:
        self._lists, self._parts, self.names = lists, parts, names
        self._width = len(names)
        if any(part.lengths.shape[1] != self._width for part in parts):
            raise IndexFormatError(
                f"{parts[0].folder.parent} is damaged: its segments have several numbers of fields; {REMEDY}"
            )

    @cached_property
    def lengths(self) -> Integers:
        live_lengths = [part.lengths[leaf.live] for part, leaf in zip(self._parts, self._lists.leaves, strict=True)]
        return np.concatenate([np.zeros((0, self._width), np.uint8), *live_lengths])

    @cached_property
    def tokens(self) -> Integers:
        return np.asarray(self.lengths.sum(axis=0, dtype=np.int64))

    @cached_property
    def df(self) -> Integers:
        return self._counts[0]

    @cached_property
    def cf(self) -> Integers:
        return self._counts[1]

    @cached_property
    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        df, cf = (np.zeros((len(self._lists.df), self._width), dtype=np.int64) for _ in range(2))
        for part, leaf, numbers in zip(self._parts, self._lists.leaves, self._lists.numbers, strict=True):
            present = np.flatnonzero(numbers >= 0)
            df[present] += part.df[numbers[present]]
            cf[present] += part.cf[numbers[present]]
            if leaf.deletions is not None:
                terms = np.asarray(leaf.deletions.terms, dtype=np.int64)
                part_numbers = np.full(len(part.df), -1, dtype=np.int64)
                part_numbers[numbers[present]] = present
                deleted = part.counted(leaf.deletions.dead, terms)
                living = part_numbers[terms] >= 0  # terms that living documents have
                df[part_numbers[terms[living]]] -= deleted[0][living]
                cf[part_numbers[terms[living]]] -= deleted[1][living]
        return df, cf

    def frequencies(self, terms: Integers) -> NDArray[np.int32]:
        counts = self._lists.df[terms].astype(np.int64)
        cursor = np.cumsum(counts) - counts
        ends = cursor + counts
        out = np.zeros((int(counts.sum()), self._width), dtype=np.int32)
        for part, leaf, part_numbers in zip(self._parts, self._lists.leaves, self._lists.numbers, strict=True):
            present = np.flatnonzero(part_numbers[terms] >= 0)
            part_terms = part_numbers[terms][present]
            rows, row_terms = part.frequencies(part_terms), np.repeat(present, part.lists.df[part_terms])
            if leaf.dead is not None:
                alive = leaf.ordinals[part.lists.postings(part_terms)[0]] >= 0
                rows, row_terms = rows[alive], row_terms[alive]
            sizes = np.bincount(row_terms, minlength=len(counts))
            if np.any(cursor + sizes > ends):
                raise IndexFormatError(f"{leaf.segment.folder} is damaged: deletions do not fit the postings; {REMEDY}")
            out[cursor[row_terms] + np.arange(len(row_terms)) - (np.cumsum(sizes) - sizes)[row_terms]] = rows
            cursor += sizes
        return out


class NumberedFields:
    """`FieldStatistics` of documents under other term numbers.

    Args:
        statistics: The statistics of the documents.
        numbers: For each term its number in `statistics`; -1 for none.
    """

    def __init__(self, statistics: FieldStatistics, numbers: Integers) -> None:
        self._statistics, self._numbers = statistics, numbers
        self.names, self.lengths, self.tokens = statistics.names, statistics.lengths, statistics.tokens

    @cached_property
    def df(self) -> Integers:
        return self._of_terms(self._statistics.df)

    @cached_property
    def cf(self) -> Integers:
        return self._of_terms(self._statistics.cf)

    def frequencies(self, terms: Integers) -> NDArray[np.int32]:
        numbers = self._numbers[terms]
        return self._statistics.frequencies(numbers[numbers >= 0])

    def _of_terms(self, counts: Integers) -> Integers:
        present = self._numbers >= 0
        numbered = np.zeros((len(present), len(self.names)), dtype=np.int64)
        numbered[present] = counts[self._numbers[present]]
        return numbered


class Fields(Payload[FieldLists], name="fields"):
    """Frequencies by field of each posting."""

    def open(self, segment: Segment) -> FieldLists:
        return FieldLists(segment.folder, segment.lists)

    def join(self, leaves: Sequence[Leaf], parts: Sequence[FieldLists], facts: dict[str, Any]) -> FieldStatistics:
        """Join field statistics over the living documents; `facts` has their "postings" and the "names" of the fields."""
        lists, names = facts["postings"], facts["names"]
        return JoinedFields(lists, parts, names) if isinstance(lists, JoinedLists) else parts[0].named(names)

    def packed(self, occurrences: Occurrences) -> Rows:
        width, count = occurrences.fields, len(occurrences.numbers)
        field_numbers = np.tile(np.arange(width, dtype=np.int32), len(occurrences.lengths))
        fields = occurrences.by_posting(np.repeat(field_numbers, np.diff(occurrences.bounds)))
        # A row has at most one number per field, of which no more than the posting's tokens are above 0; a 0 takes one byte.
        out = np.empty(MAX_BYTES * count + width * len(occurrences.terms), dtype=np.uint8)
        sizes = np.empty(len(occurrences.terms), dtype=np.int32)
        length = pack_frequencies(fields, occurrences.counts, width, _bits(width), out, sizes)
        return out[:length].copy(), sizes

    def of_documents(self, occurrences: Occurrences) -> Integers:
        return occurrences.lengths

    def payload_writer(self, folder: Path, fields: int) -> PayloadWriter:
        def tables(data: NDArray[np.uint8], bounds: NDArray[np.int64], df: NDArray[np.int64]) -> tuple[Integers, Integers]:
            frequencies = np.zeros((int(df.sum()), fields), dtype=np.int32)
            if not unpack_frequencies(fixed(data), bounds[:-1], bounds[1:], df, _bits(fields), frequencies):
                raise IndexFormatError(f"the frequencies by field of a segment do not fit its postings; {REMEDY}")
            return _counts(frequencies, df)

        return PayloadWriter(folder, self.name, "lengths", {"df": fields, "cf": fields}, tables, fields, 4 * fields)

    def merge(self, leaves: Sequence[Leaf], folder: Path, progress: ProgressCallback) -> dict[str, int]:
        parts = [self.of(leaf.segment) for leaf in leaves]
        writer = self.payload_writer(folder, parts[0].lengths.shape[1])
        for part, leaf in zip(parts, leaves, strict=True):
            writer.documents(part.lengths[leaf.live])
        merge_payload(leaves, parts, writer)
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            self.of(leaf.segment).check()

    def facts(self, state: State) -> dict[str, Any]:
        size = bytes_of(self.name, state)
        return {"separate": {"bytes": size, "bytes_per_posting": size / max(1, state.count("postings"))}}


FIELDS: Fields = components["fields"]  # type: ignore[assignment]


def _bits(fields: int) -> int:
    return (fields - 1).bit_length()


def _counts(frequencies: NDArray[np.int32], df: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    field_df, field_cf = (np.zeros((len(df), frequencies.shape[1]), dtype=np.int64) for _ in range(2))
    count_frequencies(frequencies, df.astype(np.int64), field_df, field_cf)
    return field_df, field_cf
