"""The inverted index of a segment in bounded memory: documents become inverted blocks, which are merged at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.strings import Strings
from ..storage.arrays import ByteWriter, read_array, smallest, write_array
from ..text import Analyzer, Vocabulary
from .inverted import chunks
from .kernels import MOST_BYTES, count_terms, gather, invert, pack_postings

CHUNK = 1 << 22  # postings that are merged at a time
POSTING = 24  # bytes of memory that a posting takes at the most before it is written
Postings: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Numbered(Protocol):
    """Terms by number."""

    terms: list[str]
    """All that there are so far."""


class PostingsWriter:
    """Turns documents of numbered terms into the files of the inverted index: terms, df, cf, postings, doc_lengths.

    Args:
        folder: Where the files go; blocks of postings go beside it for the time being.
        vocabulary: The terms.
        memory: The bytes that postings may take before they are written to disk.
    """

    def __init__(self, folder: Path, vocabulary: Numbered, memory: int) -> None:
        self._folder = folder
        self._vocabulary = vocabulary
        self._table = Strings.of([])  # the terms, as of the last block
        self._most = max(1, memory // POSTING)
        self._lengths: list[NDArray[np.int64]] = []
        self._pending: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
        self._pending_size = 0
        self._pending_first = 0  # the number of the first document that is pending
        self._blocks: list[InvertedBlock] = []

    def append(
        self, terms: NDArray[np.int32], counts: NDArray[np.int32], term_bounds: NDArray[np.int64], lengths: NDArray[Any]
    ) -> None:
        """Appends documents.

        Args:
            terms: The numbers of the terms of all documents, those of each end to end, each term once.
            counts: How often the document has the term, from 1.
            term_bounds: Where those of each document start, one entry more.
            lengths: For each document the sum of its counts.
        """
        self._pending.append((terms, counts, term_bounds))
        self._pending_size += len(terms)
        self._lengths.append(lengths.astype(np.int64))
        if self._pending_size >= self._most:
            self._blocks.append(self._invert().spilled(self._folder.parent, len(self._blocks)))

    def close(self) -> dict[str, int]:
        """Merges the blocks and writes the files."""
        blocks = [*self._blocks, self._invert()]
        order = blocks[-1].order
        df = np.zeros(len(order), dtype=np.int64)
        for block in blocks:
            df[: len(block.order)] += np.diff(block.bounds)[block.places]
        order = order[df[order] > 0]  # the words of n-grams may stand in no document by themselves
        df = df[order]

        def postings(first: int, last: int) -> Postings:
            return _merged(blocks, order[first:last], df[first:last])

        lengths = np.concatenate([*self._lengths, np.zeros(0, dtype=np.int64)])
        return write_lists(self._folder, self._table.reordered(order), df, lengths, postings)

    def _invert(self) -> InvertedBlock:
        """The pending documents as a block."""
        self._table = Strings.of(self._vocabulary.terms)
        order = self._table.order.astype(np.int32)
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=np.int32)
        sizes = np.zeros(len(order), dtype=np.int64)
        for numbers, _, _ in self._pending:
            sizes += np.bincount(numbers, minlength=len(order))
        bounds = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(sizes[order], out=bounds[1:])
        docs, tfs = np.empty(self._pending_size, dtype=np.int32), np.empty(self._pending_size, dtype=np.int32)
        cursor = bounds[:-1].copy()
        for numbers, counts, term_bounds in self._pending:
            invert(numbers, counts, term_bounds, self._pending_first, places, cursor, docs, tfs)
            self._pending_first += len(term_bounds) - 1
        self._pending, self._pending_size = [], 0
        return InvertedBlock(order, places, bounds, docs, tfs)


class TextPostings(PostingsWriter):
    """The same of texts, whose terms an analyzer makes, or of terms with weights.

    Args:
        folder: Where the files go.
        analyzer: Makes the terms.
        memory: The bytes that postings may take before they are written to disk.
    """

    def __init__(self, folder: Path, analyzer: Analyzer, memory: int) -> None:
        self._analyzed: Vocabulary = analyzer.vocabulary()
        super().__init__(folder, self._analyzed, memory)

    def add(self, texts: Sequence[bytes]) -> None:
        """Appends documents."""
        numbers, bounds = self._analyzed.encode_bytes(texts)
        terms, counts = np.empty_like(numbers), np.empty_like(numbers)
        scratch = np.zeros(len(self._analyzed.terms), dtype=np.int32)
        term_bounds = count_terms(numbers, bounds, scratch, terms, counts)
        filled = int(term_bounds[-1])
        self.append(terms[:filled].copy(), counts[:filled].copy(), term_bounds, np.diff(bounds))

    def add_weights(self, weights: Sequence[Mapping[str, int]]) -> None:
        """Appends documents as terms with their frequencies."""
        terms = self._analyzed.numbers([term for bag in weights for term in bag])
        counts = np.array([count for bag in weights for count in bag.values()], dtype=np.int32)
        bounds = np.zeros(len(weights) + 1, dtype=np.int64)
        np.cumsum([len(bag) for bag in weights], out=bounds[1:])
        self.append(terms, counts, bounds, np.array([sum(bag.values()) for bag in weights]))


@dataclass(frozen=True)
class InvertedBlock:
    """The postings of some consecutive documents, by terms in ascending order.

    Args:
        order: int32: the numbers of the terms in the vocabulary, in ascending order of the terms.
        places: int32: the inverse of `order`.
        bounds: int64: the postings of the term order[i] are at bounds[i]:bounds[i + 1].
        docs: int32: the ordinal of each posting's document.
        tfs: int32: the term frequency of each posting.
    """

    order: NDArray[np.int32]
    places: NDArray[np.int32]
    bounds: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.int32]

    def spilled(self, folder: Path, number: int) -> InvertedBlock:
        """The same block, its postings on disk."""
        arrays = {}
        for name in ("bounds", "docs", "tfs"):
            write_array(folder, f"block{number}.{name}", getattr(self, name))
            arrays[name] = read_array(folder, f"block{number}.{name}")
        return InvertedBlock(self.order, self.places, **arrays)


def write_lists(
    folder: Path,
    terms: Strings,
    df: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    postings: Callable[[int, int], Postings],
    *,
    memory: int | None = None,
    threads: int = 1,
) -> dict[str, int]:
    """Writes the files of an inverted index: terms, df, cf, postings, doc_lengths.

    Args:
        folder: Where the files go.
        terms: The terms, in ascending order.
        df: For each term how many postings it has, from 1.
        lengths: For each document the sum of its frequencies.
        postings: Gives the postings of the terms from one number up to another, end to end: documents and frequencies.
        memory: The bytes that postings may take; None: as many as CHUNK postings do.
        threads: How many ranges of terms are worked out side by side.

    Returns:
        The counts of terms, postings and tokens.
    """
    cf = np.zeros(len(df), dtype=np.int64)
    byte_bounds = np.zeros(len(df) + 1, dtype=np.int64)

    def part(edges: tuple[int, int]) -> tuple[int, int, NDArray[np.uint8]]:
        first, last = edges
        docs, tfs = postings(first, last)
        bounds = np.zeros(last - first + 1, dtype=np.int64)
        np.cumsum(df[first:last], out=bounds[1:])
        out = np.empty(MOST_BYTES * len(docs), dtype=np.uint8)
        length = pack_postings(bounds, docs, tfs, out, byte_bounds[first : last + 1], cf[first:last])
        return first, last, out[:length].copy()

    most = CHUNK if memory is None else max(1, min(CHUNK, memory // (POSTING * (threads + 1))))
    file = ByteWriter(folder, "postings")
    try:
        for first, last, packed in in_order(part, chunks(df, most), threads):
            byte_bounds[first + 1 : last + 1] += file.length
            file.write(packed)
        file.close()
    finally:
        file.abandon()
    write_array(folder, "postings.bounds", smallest(byte_bounds))
    write_array(folder, "terms.bytes", terms.blob)
    write_array(folder, "terms.bounds", smallest(terms.offsets))
    write_array(folder, "df", smallest(df))
    write_array(folder, "cf", smallest(cf))
    write_array(folder, "doc_lengths", smallest(lengths))
    return {"terms": len(df), "postings": int(df.sum(dtype=np.int64)), "tokens": int(cf.sum())}


def in_order(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """What a function gives for each item, in order; so many calls run side by side, and none runs far ahead."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def _merged(blocks: list[InvertedBlock], terms: NDArray[np.int32], df: NDArray[np.int64]) -> Postings:
    """The postings of `terms` from all blocks: documents and frequencies."""
    bounds = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum(df, out=bounds[1:])
    docs, tfs = np.empty(bounds[-1], dtype=np.int32), np.empty(bounds[-1], dtype=np.int32)
    cursor = bounds[:-1].copy()
    for block in blocks:
        places = np.full(len(terms), -1, dtype=np.int32)
        known = terms < len(block.order)  # a later term is not in this block
        places[known] = block.places[terms[known]]
        gather(block.bounds, block.docs, block.tfs, places, cursor, docs, tfs)
    return docs, tfs
