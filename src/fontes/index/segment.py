"""A segment of an index, opened: ids, lengths, terms, postings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..core.strings import Strings
from ..storage.arrays import read_array
from .documents import DocumentStore
from .kernels import unpack_postings

CHUNK = 1 << 22  # postings that are checked at a time


class Segment:
    """The arrays of one segment, by memory map.

    Attributes:
        ids: The document ids, in the order of the documents.
        lengths: Unsigned, one a document: its terms.
        terms: The terms, in ascending order.
        df: Unsigned, one a term: the documents with it.
        cf: Unsigned, one a term: its occurrences.
        store: The documents' texts.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ids = Strings(
            read_array(folder, "doc_ids.bytes"), read_array(folder, "doc_ids.bounds"), read_array(folder, "doc_ids.order")
        )
        self.lengths = read_array(folder, "doc_lengths")
        self.terms = Strings(
            read_array(folder, "terms.bytes"), bounds := read_array(folder, "terms.bounds"), _in_order(len(bounds) - 1)
        )
        self.df = read_array(folder, "df")
        self.cf = read_array(folder, "cf")
        self.store = DocumentStore(folder)
        self._postings = read_array(folder, "postings")
        self._bounds = read_array(folder, "postings.bounds")

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms with these numbers, end to end: the documents' ordinals, and term frequencies, both int32.

        Raises:
            IndexFormatError: The bytes are not the postings of the terms.
        """
        size = int(self.df[terms].sum(dtype=np.int64))
        docs, tfs = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        if not unpack_postings(self._postings, self._bounds, self.df, len(self.ids), terms, docs, tfs):
            raise IndexFormatError(f"{self._folder} is damaged: its postings do not fit its terms; build the index again")
        return docs, tfs

    def check(self) -> None:
        """Raises IndexFormatError unless all parts fit together."""

        def sound(condition: bool, what: str) -> None:
            if not condition:
                raise IndexFormatError(f"{self._folder} is damaged: {what}; restore it from a copy or build the index again")

        ids = [self.ids[int(i)] for i in self.ids.order]
        sound(all(a < b for a, b in pairwise(ids)), "its document ids are not in order")
        terms = self.terms.tolist()
        sound(all(a < b for a, b in pairwise(terms)), "its terms are not in order")
        lengths = np.zeros(len(self.ids), dtype=np.int64)
        ends = np.cumsum(self.df, dtype=np.int64)
        first = 0
        while first < len(terms):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
            numbers = np.arange(first, last)
            docs, tfs = self.postings(numbers)
            term_of = np.repeat(numbers, self.df[first:last])
            sound(
                np.array_equal(np.bincount(term_of - first, tfs, last - first), self.cf[first:last]),
                "the counts of its terms do not fit their postings",
            )
            lengths += np.bincount(docs, tfs, len(ids)).astype(np.int64)
            first = last
        sound(np.array_equal(lengths, self.lengths), "the lengths of its documents do not fit their postings")
        self.store.check()


def _in_order(count: int) -> NDArray[np.uint32]:
    return np.arange(count, dtype=np.uint32)
