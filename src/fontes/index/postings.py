"""The files of an inverted index, written chunk by chunk: terms, df, cf, postings, doc_lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.strings import Strings
from ..core.threads import Queue, Workers, in_order
from ..core.work import resources, thread_count, work
from ..storage.arrays import ByteWriter, NumberWriter
from .building.batches import Batch
from .building.inversion import Inversion
from .building.runs import Chunk, Inverter, PostingRuns
from .component import Building, Writer
from .inverted import chunks
from .kernels import MOST_BYTES, pack_postings

CHUNK = 1 << 19  # postings that are merged at a time
IDS = 8  # parts of the memory of a build, of which ids take one
MERGED = 24  # bytes of memory that a posting takes while it is merged, at the most
Postings: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]


class ListsWriter:
    """Writes the files of an inverted index.

    Args:
        folder: Where they go.
    """

    def __init__(self, folder: Path) -> None:
        self._terms, self._postings = ByteWriter(folder, "terms.bytes"), ByteWriter(folder, "postings")
        names = ("terms.bounds", "postings.bounds", "df", "cf", "doc_lengths")
        self._term_bounds, self._bounds, self._df, self._cf, self._lengths = (NumberWriter(folder, name) for name in names)
        self._counts = {"terms": 0, "postings": 0, "tokens": 0}
        for bounds in (self._term_bounds, self._bounds):
            bounds.write(np.zeros(1, dtype=np.int64))

    def lengths(self, lengths: NDArray[np.integer[Any]]) -> None:
        """Appends the lengths of documents: the sums of their frequencies."""
        self._lengths.write(lengths)

    def write(self, chunk: Chunk) -> None:
        """Appends terms and their postings."""
        self._term_bounds.write(self._terms.length + np.cumsum(chunk.term_sizes))
        self._bounds.write(self._postings.length + np.cumsum(chunk.sizes))
        self._df.write(chunk.df)
        self._cf.write(chunk.cf)
        self._terms.write(chunk.terms)
        self._postings.write(chunk.postings)
        for name, count in (("terms", len(chunk.df)), ("postings", chunk.df.sum()), ("tokens", chunk.cf.sum())):
            self._counts[name] += int(count)

    def close(self) -> dict[str, int]:
        """Completes the files; returns the counts of terms, postings and tokens."""
        for file in self._files():
            file.close()
        return self._counts

    def abandon(self) -> None:
        """Closes the files as they are."""
        for file in self._files():
            file.abandon()

    def _files(self) -> tuple[ByteWriter | NumberWriter, ...]:
        return self._terms, self._postings, self._term_bounds, self._bounds, self._df, self._cf, self._lengths


class PostingsWriter:
    """Turns documents of numbered terms into the files of an inverted index.

    Args:
        folder: Where the files go; runs of postings go beside it for the time being.
        terms: The terms.
        memory: The bytes that postings may take before they are written to disk.
    """

    def __init__(self, folder: Path, terms: Strings, memory: int) -> None:
        self._lists = ListsWriter(folder)
        self._runs = PostingRuns(folder.parent)
        self._inverter = Inverter(self._runs, _Table(terms), memory)
        self._memory, self._count = memory, 0

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
        self._inverter.append(self._count, terms, counts, term_bounds)
        self._lists.lengths(lengths)
        self._count += len(lengths)

    def close(self) -> dict[str, int]:
        """Merges the runs and completes the files; returns the counts of terms, postings and tokens."""
        try:
            self._inverter.close()
            with work(threads=1, memory=self._memory), Workers() as workers:
                write_runs(self._runs, self._lists, workers)
            return self._lists.close()
        finally:
            self._lists.abandon()


class InvertedWriter(Writer):
    """Analyses batches of documents, several at a time, and writes their inverted index.

    Args:
        building: The build.
    """

    def __init__(self, building: Building) -> None:
        self._workers, memory = building.workers, resources().memory
        self._runs, self._lists = PostingRuns(building.folder.parent), ListsWriter(building.folder)
        share = (memory - memory // IDS) // self._workers.threads
        self._inversion = Inversion(building.settings.analyzer, self._runs, share)
        self._queue = Queue(self._workers, self._lists.lengths)
        self._closing: list[Callable[[], None]] = []

    def write(self, batch: Batch, first: int) -> None:
        self._queue.add(self._inversion.add, first, batch.contents)

    def finish(self) -> None:
        self._queue.close()
        self._closing = [self._workers.begin(close) for close in self._inversion.closing()]

    def close(self) -> dict[str, int]:
        for wait in self._closing:
            wait()
        write_runs(self._runs, self._lists, self._workers)
        return self._lists.close()

    def abandon(self) -> None:
        self._lists.abandon()


def write_runs(runs: PostingRuns, lists: ListsWriter, workers: Workers) -> None:
    """Merges runs by terms into an inverted index.

    Args:
        runs: The runs.
        lists: The files.
        workers: Who does the work.
    """
    for chunk in workers.in_order(runs.merged, runs.chunks(_most(workers.threads))):
        lists.write(chunk)


def write_lists(
    folder: Path,
    terms: Strings,
    df: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    postings: Callable[[int, int], Postings],
) -> dict[str, int]:
    """Writes the files of an inverted index: terms, df, cf, postings, doc_lengths.

    Args:
        folder: Where the files go.
        terms: The terms, in ascending order.
        df: For each term how many postings it has, from 1.
        lengths: For each document the sum of its frequencies.
        postings: Gives the postings of the terms from one number up to another, end to end: documents and frequencies.

    Returns:
        The counts of terms, postings and tokens.
    """

    def part(edges: tuple[int, int]) -> Chunk:
        first, last = edges
        own = np.asarray(df[first:last], dtype=np.int64)
        docs, tfs = postings(first, last)
        bounds, byte_bounds = np.zeros(last - first + 1, dtype=np.int64), np.zeros(last - first + 1, dtype=np.int64)
        np.cumsum(own, out=bounds[1:])
        cf, out = np.zeros(last - first, dtype=np.int64), np.empty(MOST_BYTES * len(docs), dtype=np.uint8)
        length = pack_postings(bounds, docs, tfs, out, byte_bounds, cf)
        offsets = terms.offsets[first : last + 1].astype(np.int64)
        text = terms.blob[offsets[0] : offsets[-1]]
        return Chunk(text, np.diff(offsets), own, cf, out[:length].copy(), np.diff(byte_bounds))

    lists = ListsWriter(folder)
    try:
        lists.lengths(lengths)
        edges: Iterable[tuple[int, int]] = chunks(df, _most(thread_count()))
        for chunk in in_order(part, edges):
            lists.write(chunk)
        return lists.close()
    finally:
        lists.abandon()


def _most(threads: int) -> int:
    """Number of postings that are merged at a time."""
    return max(1, min(CHUNK, resources().memory // (MERGED * (threads + 1))))


class _Table:
    """Terms of which there are no others."""

    def __init__(self, terms: Strings) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def table(self) -> Strings:
        return self._terms
