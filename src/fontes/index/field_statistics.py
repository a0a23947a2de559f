"""The component of field statistics: the frequency of each posting's term in each field, and the lengths of fields."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Bytes, Int32s, Int64s, Ints
from ..core.errors import IndexFormatError
from ..storage.arrays import REMEDY, UNSIGNED, fixed
from . import postings
from .component import Described, components
from .inversion import chunks
from .payload_kernels import MAX_BYTES, count_frequencies, pack_frequencies, unpack_frequencies
from .payload_lists import RowLists, bytes_of, merge_payload
from .payloads import Occurrences, Payload, PayloadWriter, Rows
from .postings import PostingLists
from .settings import MAX_FIELDS

if TYPE_CHECKING:
    from .segment import Leaf, Segment


class FieldLists(RowLists):
    """The field statistics of a segment's documents, deleted ones too, for terms numbered as in its postings.

    Attributes:
        lengths: Unsigned, (documents, fields): terms of each field.
        df: Unsigned, (terms, fields): documents with the term in the field.
        cf: Unsigned, (terms, fields): occurrences of the term in the field.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

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

    def frequencies(self, terms: Ints) -> Int32s:
        """Return the frequencies by field of these terms' postings, concatenated in their order: (postings, fields).

        Raises:
            IndexFormatError: The bytes do not fit the postings.
        """
        starts, ends, df = self.spans(terms)
        out = np.zeros((int(df.sum()), self.lengths.shape[1]), dtype=np.int32)
        if len(out) and not unpack_frequencies(fixed(self.rows), starts, ends, df, self._bits, out):
            raise self.damaged()
        return out

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


class Fields(Payload[FieldLists], name="fields"):
    """Frequencies by field of each posting."""

    def open(self, segment: Segment) -> FieldLists:
        return FieldLists(segment.folder, segment.lists)

    def packed(self, occurrences: Occurrences) -> Rows:
        width, count = occurrences.fields, len(occurrences.numbers)
        field_numbers = np.tile(np.arange(width, dtype=np.int32), len(occurrences.lengths))
        fields = occurrences.by_posting(np.repeat(field_numbers, np.diff(occurrences.bounds)))
        # A row has at most one number per field, of which no more than the posting's tokens are above 0; a 0 takes one byte.
        out = np.empty(MAX_BYTES * count + width * len(occurrences.terms), dtype=np.uint8)
        sizes = np.empty(len(occurrences.terms), dtype=np.int32)
        length = pack_frequencies(fields, occurrences.counts, width, _bits(width), out, sizes)
        return out[:length].copy(), sizes

    def of_documents(self, occurrences: Occurrences) -> Ints:
        return occurrences.lengths

    def payload_writer(self, folder: Path, fields: int) -> PayloadWriter:
        def tables(data: Bytes, bounds: Int64s, df: Int64s) -> tuple[Ints, Ints]:
            frequencies = np.zeros((int(df.sum()), fields), dtype=np.int32)
            if not unpack_frequencies(fixed(data), bounds[:-1], bounds[1:], df, _bits(fields), frequencies):
                raise IndexFormatError(f"the frequencies by field of a segment do not fit its postings; {REMEDY}")
            return _counts(frequencies, df)

        return PayloadWriter(folder, self.name, "lengths", {"df": fields, "cf": fields}, tables, fields, 4 * fields)

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        parts = [self.of(leaf.segment) for leaf in leaves]
        writer = self.payload_writer(folder, parts[0].lengths.shape[1])
        for part, leaf in zip(parts, leaves, strict=True):
            writer.documents(part.lengths[leaf.live])
        merge_payload(leaves, parts, writer)
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            self.of(leaf.segment).check()

    def facts(self, state: Described) -> dict[str, object]:
        size = bytes_of(self.name, state)
        return {"separate": {"bytes": size, "bytes_per_posting": size / max(1, state.count("postings"))}}


FIELDS: Fields = components["fields"]


def _bits(fields: int) -> int:
    return (fields - 1).bit_length()


def _counts(frequencies: Int32s, df: Ints) -> tuple[Int64s, Int64s]:
    field_df, field_cf = (np.zeros((len(df), frequencies.shape[1]), dtype=np.int64) for _ in range(2))
    count_frequencies(frequencies, df.astype(np.int64), field_df, field_cf)
    return field_df, field_cf
