"""Inversion: batches of documents become runs of postings, and runs the files of an inverted index."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.strings import Strings
from ..core.threads import Queue, Workers, in_order
from ..core.work import resources, thread_count, work
from ..storage.arrays import ByteWriter, NumberWriter
from ..text import Analyzer
from .batches import Batch, Contents
from .component import Building, Writer
from .kernels import MOST_BYTES, count_terms, invert, lower_bound, merge_runs, pack_postings

CHUNK = 1 << 19  # postings that are merged at a time
IDS = 8  # parts of the memory of a build, of which ids take one
KEPT = 4  # parts of a worker's memory, of which its vocabulary may have one when it begins another run
POSTING = 16  # bytes of memory that a posting takes at most until its run is complete
MERGED = 24  # bytes of memory that a posting takes at most while it is merged
TERM = 64  # bytes of memory that a term takes while terms are sorted
SAMPLES = 8  # terms of a run that are looked at for each chunk of postings
Postings: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]  # documents, term frequencies


class Numbered(Protocol):
    """Terms by number."""

    def __len__(self) -> int: ...

    def table(self) -> Strings:
        """All terms."""
        ...


@dataclass(frozen=True)
class Chunk:
    """Postings of some consecutive terms.

    Args:
        terms: The bytes of the terms.
        term_sizes: The bytes of each term.
        df: The postings of each term.
        cf: The occurrences of each term.
        postings: The postings, packed.
        sizes: The bytes of each term's.
    """

    terms: NDArray[np.uint8]
    term_sizes: NDArray[np.int64]
    df: NDArray[np.int64]
    cf: NDArray[np.int64]
    postings: NDArray[np.uint8]
    sizes: NDArray[np.int64]


class PostingRuns:
    """The runs of a build, in memory until one must go to the disk; then all do.

    A run has the arrays "terms" (bytes, end to end), "term_ends" (in "terms"), "ends" (of each term's postings), "docs" and
    "tfs" (int32). The arrays of all runs are end to end.
    """

    TYPES: ClassVar = {"terms": np.uint8, "term_ends": np.int64, "ends": np.int64, "docs": np.int32, "tfs": np.int32}

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._pending: list[dict[str, NDArray[Any]]] = []
        self._counts: list[int] = [0]  # terms up to each run
        self._ends = [0, 0]  # bytes of terms, and postings, of all runs
        self._spilled = False

    def append(self, run: dict[str, NDArray[Any]], spill: bool) -> None:
        """Appends a run, whose ends count from its own start; `spill` writes all runs to the disk."""
        with self._lock:
            run["term_ends"] += self._ends[0]
            run["ends"] += self._ends[1]
            self._ends = [self._ends[0] + len(run["terms"]), self._ends[1] + len(run["docs"])]
            self._counts.append(self._counts[-1] + len(run["ends"]))
            self._pending.append(run)
            if spill:
                self._spill()

    def chunks(self, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Edges of chunks of about `most` postings: of each run the first term, and the one after the last."""
        arrays = self.arrays()
        counts = np.array(self._counts, dtype=np.int64)
        splits = _splits(arrays, counts, most)
        before = counts[:-1]
        for split in splits:
            edges = np.empty_like(before)
            lower_bound(arrays["terms"], arrays["term_ends"], counts, split, edges)
            if np.any(edges > before):
                yield before, edges
            before = edges
        if np.any(counts[1:] > before):
            yield before, counts[1:]

    def merged(self, edges: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Chunk:
        """A chunk: the postings of all runs by terms."""
        first, last = edges
        a = self.arrays()
        terms = int(np.sum(last - first))
        postings = int(np.sum(_before(a["ends"], last) - _before(a["ends"], first)))
        size = int(np.sum(_before(a["term_ends"], last) - _before(a["term_ends"], first)))
        text, out = np.empty(size, np.uint8), np.empty(10 * postings, np.uint8)
        counts = np.empty((4, terms), dtype=np.int64)  # bytes of each term, df, cf, bytes of its postings
        filled, used, length = merge_runs(
            a["terms"], a["term_ends"], a["ends"], a["docs"], a["tfs"], first.copy(), last, text, counts, out
        )
        sizes, df, cf, packed = counts[:, :filled].copy()
        return Chunk(text[:used].copy(), sizes, df, cf, out[:length].copy(), packed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of all runs, after the last one was appended."""
        with self._lock:
            if self._spilled:
                if self._pending:
                    self._spill()
                if not hasattr(self, "_mapped"):
                    self._mapped = {
                        name: _readonly(
                            np.memmap(self._file(name), dtype, "r") if self._file(name).stat().st_size else np.empty(0, dtype)
                        )
                        for name, dtype in self.TYPES.items()
                    }
                return self._mapped
            if len(self._pending) != 1:
                whole = {}
                for name, dtype in self.TYPES.items():
                    whole[name] = np.concatenate([np.empty(0, dtype), *(run.pop(name) for run in self._pending)])
                self._pending = [whole]
            return {name: _readonly(array) for name, array in self._pending[0].items()}

    def _file(self, name: str) -> Path:
        return self._folder / f"runs.{name}"

    def _spill(self) -> None:
        self._spilled = True
        for name in self.TYPES:
            with self._file(name).open("ab") as file:
                for run in self._pending:
                    file.write(run[name].data)
        self._pending = []


class Inverter:
    """Turns documents of numbered terms into runs.

    Args:
        runs: Where the runs go.
        vocabulary: The terms.
        memory: Bytes that postings and vocabulary may take before they go to the disk.
    """

    def __init__(self, runs: PostingRuns, vocabulary: Numbered, memory: int) -> None:
        self.vocabulary = vocabulary
        self._runs = runs
        self._memory = memory
        self._pending: list[tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
        self._size = 0

    def append(
        self, first: int, terms: NDArray[np.int32], counts: NDArray[np.int32], bounds: NDArray[np.int64], more: int = 0
    ) -> bool:
        """Appends documents. Returns whether all went to the disk.

        Args:
            first: The ordinal of the first one.
            terms: The numbers of each document's terms, end to end, each term once.
            counts: The frequency of each, from 1.
            bounds: The offset of each document's first term, one entry more.
            more: Bytes that the vocabulary takes.
        """
        self._pending.append((first, terms, counts, bounds))
        self._size += len(terms)
        if POSTING * self._size + TERM * len(self.vocabulary) + more < self._memory:
            return False
        self.close(spill=True)
        return True

    def close(self, spill: bool = False) -> None:
        """Makes a run of the documents that are pending."""
        if not self._size:
            return
        self._pending.sort(key=lambda batch: batch[0])
        sizes = np.zeros(len(self.vocabulary), dtype=np.int64)
        for _, terms, _, _ in self._pending:
            sizes += np.bincount(terms, minlength=len(sizes))
        own = np.flatnonzero(sizes)
        table = self.vocabulary.table()
        table = table if len(own) == len(table) else table.reordered(own)
        order = own[table.order]
        ends = np.cumsum(sizes[order])
        cursor = np.zeros(len(sizes), dtype=np.int64)
        cursor[order] = ends - sizes[order]
        docs, tfs = np.empty(self._size, dtype=np.int32), np.empty(self._size, dtype=np.int32)
        for batch in self._pending:
            invert(*batch, cursor, docs, tfs)
        self._pending, self._size = [], 0
        ascending = table.reordered(table.order)
        run = {"terms": ascending.blob, "term_ends": ascending.offsets[1:].copy(), "ends": ends, "docs": docs, "tfs": tfs}
        self._runs.append(run, spill)


def chunks(df: NDArray[np.integer[Any]], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of terms with about `most` postings each."""
    ends = np.cumsum(df, dtype=np.int64)
    first = 0
    while first < len(df):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def _splits(arrays: dict[str, NDArray[Any]], counts: NDArray[np.int64], most: int) -> Sequence[NDArray[np.uint8]]:
    samples: list[tuple[bytes, int]] = []
    step = max(1, most // SAMPLES)
    for first, last in zip(counts[:-1].tolist(), counts[1:].tolist(), strict=True):
        ends = arrays["ends"][first:last]
        start = int(ends[0]) - 1 if len(ends) else 0
        places = np.searchsorted(ends, np.arange(start, int(ends[-1]) if len(ends) else 0, step), side="right")
        for place, weight in zip(*np.unique(places, return_counts=True), strict=True):
            low = int(arrays["term_ends"][first + place - 1]) if first + place else 0
            samples.append((arrays["terms"][low : int(arrays["term_ends"][first + place])].tobytes(), int(weight) * step))
    samples.sort()
    splits, total = [], 0
    for term, weight in samples:
        total += weight
        if total >= most:
            splits.append(np.frombuffer(term, dtype=np.uint8))
            total = 0
    return splits


def _before(ends: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(places > 0, ends[np.maximum(places, 1) - 1], 0) if len(ends) else np.zeros_like(places)


def _readonly(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only as a memory map is: compiled loops have one version for both."""
    array = array.view(np.ndarray)
    array.flags.writeable = False
    return array


class _Worker:
    """A vocabulary and the runs of the batches that one thread analyses."""

    def __init__(self, analyzer: Analyzer, runs: PostingRuns, memory: int) -> None:
        self._analyzer, self._memory = analyzer, memory
        self._vocabulary = analyzer.vocabulary()
        self._inverter = Inverter(runs, self._vocabulary, memory)
        self._scratch = np.zeros(0, dtype=np.int32)

    def add(self, first: int, contents: Contents | Sequence[Mapping[str, int]]) -> NDArray[np.int64]:
        terms, counts, bounds, lengths = self._counted(*contents) if isinstance(contents, tuple) else self._weighted(contents)
        spilled = self._inverter.append(first, terms, counts, bounds, self._vocabulary.nbytes)
        if spilled and self._vocabulary.nbytes > self._memory // KEPT:
            self._vocabulary = self._inverter.vocabulary = self._analyzer.vocabulary()
        return lengths

    def close(self) -> None:
        self._inverter.close()

    def _counted(self, text: NDArray[np.uint8], text_bounds: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Distinct terms of each text, their frequencies, their offsets, and the text lengths."""
        numbers, bounds = self._vocabulary.encode_table(text, text_bounds)
        if len(self._scratch) < len(self._vocabulary):
            self._scratch = np.zeros(2 * len(self._vocabulary), dtype=np.int32)
        terms, counts = np.empty_like(numbers), np.empty_like(numbers)
        term_bounds = count_terms(numbers, bounds, self._scratch, terms, counts)
        filled = int(term_bounds[-1])
        return terms[:filled].copy(), counts[:filled].copy(), term_bounds, np.diff(bounds)

    def _weighted(self, weights: Sequence[Mapping[str, int]]) -> tuple[NDArray[Any], ...]:
        terms = self._vocabulary.numbers([term for bag in weights for term in bag])
        counts = np.array([count for bag in weights for count in bag.values()], dtype=np.int32)
        bounds = np.zeros(len(weights) + 1, dtype=np.int64)
        np.cumsum([len(bag) for bag in weights], out=bounds[1:])
        return terms, counts, bounds, np.array([sum(bag.values()) for bag in weights], dtype=np.int64)


class ListsWriter:
    """Writes the files of an inverted index: terms, df, cf, postings, doc_lengths."""

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
        """Completes the files. Returns the counts of terms, postings and tokens."""
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
        folder: Where the files go; runs go beside it meanwhile.
        terms: The terms.
        memory: Bytes that postings may take before they are written to disk.
    """

    def __init__(self, folder: Path, terms: Strings, memory: int) -> None:
        self._lists = ListsWriter(folder)
        self._runs = PostingRuns(folder.parent)
        self._inverter = Inverter(self._runs, _Table(terms), memory)
        self._memory, self._count = memory, 0

    def append(
        self, terms: NDArray[np.int32], counts: NDArray[np.int32], term_bounds: NDArray[np.int64], lengths: NDArray[Any]
    ) -> None:
        """Appends documents, as `Inverter.append` takes them, and for each the sum of its counts."""
        self._inverter.append(self._count, terms, counts, term_bounds)
        self._lists.lengths(lengths)
        self._count += len(lengths)

    def close(self) -> dict[str, int]:
        """Merges the runs and completes the files. Returns the counts of terms, postings and tokens."""
        try:
            self._inverter.close()
            with work(threads=1, memory=self._memory), Workers() as workers:
                write_runs(self._runs, self._lists, workers)
            return self._lists.close()
        finally:
            self._lists.abandon()


class InvertedWriter(Writer):
    """Analyses batches of documents, several at a time, and writes their inverted index."""

    def __init__(self, building: Building) -> None:
        self._building, self._workers = building, building.workers
        self._runs, self._lists = PostingRuns(building.folder.parent), ListsWriter(building.folder)
        memory = resources().memory
        self._memory = (memory - memory // IDS) // building.workers.threads  # of each thread
        self._queue = Queue(self._workers, self._lists.lengths)
        self._idle: list[_Worker] = []
        self._closing: list[Callable[[], None]] = []

    def write(self, batch: Batch, first: int) -> None:
        self._queue.add(self._add, first, batch.contents)

    def finish(self) -> None:
        self._queue.close()
        self._closing = [self._workers.begin(worker.close) for worker in self._idle]

    def close(self) -> dict[str, int]:
        for wait in self._closing:
            wait()
        write_runs(self._runs, self._lists, self._workers)
        return self._lists.close()

    def abandon(self) -> None:
        self._lists.abandon()

    def _add(self, first: int, contents: Contents | Sequence[Mapping[str, int]]) -> NDArray[np.int64]:
        """Analyses a batch. Returns the documents' lengths."""
        try:
            worker = self._idle.pop()  # the last one to be idle, so that there are few vocabularies
        except IndexError:
            worker = _Worker(self._building.settings.analyzer, self._runs, self._memory)
        try:
            return worker.add(first, contents)
        finally:
            self._idle.append(worker)


def write_runs(runs: PostingRuns, lists: ListsWriter, workers: Workers) -> None:
    """Merges runs by terms into the files of an inverted index."""
    for chunk in workers.in_order(runs.merged, runs.chunks(_chunk_size(workers.threads))):
        lists.write(chunk)


def write_lists(
    folder: Path,
    terms: Strings,
    df: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    postings: Callable[[int, int], Postings],
) -> dict[str, int]:
    """Writes the files of an inverted index. Returns the counts of terms, postings and tokens.

    Args:
        folder: Where the files go.
        terms: The terms, in ascending order.
        df: The number of postings of each term, from 1.
        lengths: The sum of frequencies of each document.
        postings: Gives the postings of the terms from one number up to another, end to end.
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
        edges: Iterable[tuple[int, int]] = chunks(df, _chunk_size(thread_count()))
        for chunk in in_order(part, edges):
            lists.write(chunk)
        return lists.close()
    finally:
        lists.abandon()


def _chunk_size(threads: int) -> int:
    return max(1, min(CHUNK, resources().memory // (MERGED * (threads + 1))))


class _Table:
    def __init__(self, terms: Strings) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def table(self) -> Strings:
        return self._terms
