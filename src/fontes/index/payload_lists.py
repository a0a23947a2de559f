"""Payloads of the postings of segments: read from disk, and merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.arrays import Int64s, Ints
from ..core.errors import IndexFormatError
from ..core.work import thread_count
from ..storage.arrays import Arrays
from ..storage.threads import in_order
from .component import Described
from .inversion import chunk_size, chunks
from .payload_kernels import append_rows
from .payloads import PayloadWriter, Rows
from .postings import JoinedLists, PostingLists
from .segment import Leaf


class RowLists:
    """The rows of a segment's postings, in a folder.

    `name` is the component's, `lists` the segment's inverted index. Raises IndexFormatError if a file is missing or damaged.
    """

    def __init__(self, folder: Path, name: str, lists: PostingLists) -> None:
        self.folder, self.name, self.lists = folder, name, lists
        self.arrays = Arrays(folder)
        self.rows = self.arrays.array(f"{name}.rows", "|u1", None)
        self.bounds = self.arrays.bounds(f"{name}.bounds", len(self.rows), len(lists.df))
        if np.any(lists.df > self.bounds[1:] - self.bounds[:-1]):  # a row takes at least a byte
            raise self.arrays.damaged(f"{name}.bounds", "a term has fewer bytes than postings")

    def spans(self, terms: Ints) -> tuple[Int64s, Int64s, Int64s]:
        """Return start and end of each term's bytes, and its number of rows."""
        starts, ends, df = (a[terms].astype(np.int64) for a in (self.bounds[:-1], self.bounds[1:], self.lists.df))
        return starts, ends, df

    def damaged(self) -> IndexFormatError:
        """Return an error about the rows."""
        return self.arrays.damaged(f"{self.name}.rows", "its bytes do not fit the postings")


def merged_rows(lists: JoinedLists, parts: Sequence[RowLists], first: int, last: int) -> Rows:
    """Merge the rows of the living documents' postings for a range of terms: the rows, and the bytes of each term.

    Raises IndexFormatError if the bytes do not fit the postings.
    """
    sizes = np.zeros(last - first, dtype=np.int64)
    part_rows = []
    for part, numbers in zip(parts, lists.numbers, strict=True):
        indices = np.flatnonzero(numbers[first:last] >= 0)
        terms = numbers[first:last][indices]
        starts, ends, df = part.spans(terms)
        sizes[indices] += ends - starts
        part_rows.append((indices, terms, starts, ends, df))
    begins = np.cumsum(sizes) - sizes
    cursor, out = begins.copy(), np.empty(int(sizes.sum()), dtype=np.uint8)
    for part, leaf, (indices, terms, starts, ends, df) in zip(parts, lists.leaves, part_rows, strict=True):
        alive = np.zeros(0, dtype=np.bool_)
        if leaf.dead is not None:
            alive = leaf.ordinals[part.lists.postings(terms)[0]] >= 0
            if not len(alive):
                continue
        if not append_rows(part.rows, starts, ends, df, alive, indices, cursor, out):
            raise part.damaged()
    used = cursor - begins
    if not np.array_equal(used, sizes):
        out = out[np.arange(len(out)) - np.repeat(begins, sizes) < np.repeat(used, sizes)]
    return out, used


def merge_payload(leaves: Sequence[Leaf], parts: Sequence[RowLists], writer: PayloadWriter) -> None:
    """Write the payloads of the living documents of several segments; the data of documents are written already.

    Raises IndexFormatError if a segment is damaged.
    """
    lists = JoinedLists([leaf.segment.lists for leaf in leaves], leaves)
    payload_bytes = writer.memory + 2 * sum(len(part.rows) for part in parts) // max(1, int(lists.df.sum()))

    def merged(edges: tuple[int, int]) -> tuple[Rows, Sequence[Ints]]:
        first, last = edges
        rows = merged_rows(lists, parts, first, last)
        return rows, writer.tables(rows, lists.df[first:last].astype(np.int64))

    try:
        for rows, tables in in_order(merged, chunks(lists.df, chunk_size(thread_count(), payload_bytes))):
            writer.write(rows, tables)
        writer.close()
    finally:
        writer.abandon()


def bytes_of(name: str, state: Described) -> int:
    """Bytes of a component's files in a state."""
    files = [file for segment in state.manifest["segments"] for file in segment["files"].items()]
    return sum(facts["bytes"] for file, facts in files if file.startswith(f"{name}."))
