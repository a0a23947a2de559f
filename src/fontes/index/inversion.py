"""Inversion: batches of documents to runs of postings, and runs to the files of an inverted index."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..core.arrays import AnyArray, Bytes, Int32s, Int64s, Ints
from ..core.strings import Strings, offsets_of
from ..core.work import resources, thread_count, work
from ..storage.arrays import ByteWriter, NumberWriter, fixed, read_array
from ..storage.threads import Queue, Workers, in_order
from .batches import Batch, Contents
from .component import Building, Writer, components
from .kernels import count_terms, invert, lower_bound, merge_runs
from .packing import Arrays as PackedArrays, PackedWriter, Postings, TfLengthCodes
from .payload_kernels import invert_rows, merge_rows
from .payloads import Occurrences, Payload, PayloadWriter, Rows

if TYPE_CHECKING:
    from ..text.vocabulary import Vocabulary
    from .settings import IndexSettings

CHUNK_POSTINGS = 1 << 18  # postings merged at a time
ID_SHARE = 8  # ids may take 1/ID_SHARE of the memory of a build
VOCABULARY_SHARE = 4  # a worker reuses its vocabulary for the next run if it takes up to 1/VOCABULARY_SHARE of its memory
POSTING_BYTES = 16  # maximum memory of a posting until its run is complete
MERGED_BYTES = 40  # maximum memory of a posting while it is merged
PAYLOAD_BYTES = 12  # maximum memory of a posting's row, besides twice its bytes
BLOCK_BYTES = 8  # maximum further memory of a posting with a payload while runs are merged
TERM_BYTES = 64  # memory of a term while terms are sorted
SAMPLES = 8  # terms of a run sampled for each chunk of postings
NO_POSTINGS = np.empty(0, np.int32), np.empty(0, np.int32)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Chunk:
    """Postings of some consecutive terms.

    Args:
        terms: Concatenated bytes of the terms.
        term_sizes: Bytes of each term.
        df: Postings of each term.
        cf: Occurrences of each term.
        postings: The postings, end to end; none once they are packed.
        packed: The packed postings.
        payloads: Rows of the postings and bytes of each term's rows, by payload component.
        tables: Further arrays of these terms, by payload component.
    """

    terms: Bytes
    term_sizes: Int64s
    df: Int64s
    cf: Int64s
    postings: Postings
    packed: PackedArrays = field(default_factory=dict)
    payloads: Mapping[str, Rows] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Ints]] = field(default_factory=dict)


class PostingRuns:
    """The runs of a build, in memory until one is spilled to disk, which spills all.

    A run has the arrays "terms" (concatenated bytes), "term_ends" (in "terms"), "ends" (of each term's postings), "docs" and
    "tfs" (int32); and for each payload component "rows-NAME" (bytes) and "row_ends-NAME" (of each term's rows). The arrays of
    all runs are concatenated.

    Args:
        folder: Folder for runs that do not stay in memory.
        payloads: Names of the payload components.
    """

    TYPES: ClassVar[dict[str, type[np.generic]]] = {
        "terms": np.uint8,
        "term_ends": np.int64,
        "ends": np.int64,
        "docs": np.int32,
        "tfs": np.int32,
    }
    PARTS: ClassVar = {"term_ends": "terms", "ends": "docs"}  # from arrays of ends to the arrays that they divide

    def __init__(self, folder: Path, payloads: Sequence[str] = ()) -> None:
        self._folder, self._payloads = folder, payloads
        self._types = {**self.TYPES, **{f"rows-{name}": np.uint8 for name in payloads}}
        self._types |= {f"row_ends-{name}": np.int64 for name in payloads}
        self._parts = {**self.PARTS, **{f"row_ends-{name}": f"rows-{name}" for name in payloads}}
        self._lock = threading.Lock()
        self._pending: list[dict[str, AnyArray]] = []
        self._counts: list[int] = [0]  # number of terms before each run
        self._ends = dict.fromkeys(self._parts, 0)  # total lengths of the divided arrays
        self._spilled = False
        self._mapped: dict[str, AnyArray] | None = None

    def append(self, run: dict[str, AnyArray], spill: bool) -> None:
        """Append a run, whose ends count from its own start; `spill` writes all runs to disk."""
        with self._lock:
            for ends, part in self._parts.items():
                run[ends] += self._ends[ends]
                self._ends[ends] += len(run[part])
            self._counts.append(self._counts[-1] + len(run["ends"]))
            self._pending.append(run)
            if spill:
                self._spill()

    def chunks(self, size: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield the edges of chunks of about `size` postings: each run's first term, and the term after its last."""
        arrays = self.arrays()
        counts = np.array(self._counts, dtype=np.int64)
        splits = _splits(arrays, counts, size)
        firsts = counts[:-1]
        for split in splits:
            lasts = np.empty_like(firsts)
            lower_bound(arrays["terms"], arrays["term_ends"], counts, split, lasts)
            if np.any(lasts > firsts):
                yield firsts, lasts
            firsts = lasts
        if np.any(counts[1:] > firsts):
            yield firsts, counts[1:]

    def merged(self, edges: tuple[Int64s, Int64s]) -> Chunk:
        """Merge the postings of all runs between these edges by terms."""
        first, last = edges
        arrays = self.arrays()
        terms = int(np.sum(last - first))
        postings = int(np.sum(_starts(arrays["ends"], last) - _starts(arrays["ends"], first)))
        size = int(np.sum(_starts(arrays["term_ends"], last) - _starts(arrays["term_ends"], first)))
        text, (docs, tfs) = np.empty(size, np.uint8), np.empty((2, postings), np.int32)
        counts = np.empty((3, terms), dtype=np.int64)  # bytes of each term, df, cf
        blocks = np.empty((2, postings if self._payloads else 0), dtype=np.int32)  # run and size of each block of postings
        inputs = (arrays[name] for name in ("terms", "term_ends", "ends", "docs", "tfs"))
        filled, used = merge_runs(*inputs, first.copy(), last, text, counts, docs, tfs, blocks)
        term_sizes, df, cf = counts[:, :filled].copy()
        rows = {name: self._merged_rows(name, edges, blocks, df) for name in self._payloads}
        return Chunk(text[:used].copy(), term_sizes, df, cf, (docs, tfs), payloads=rows)

    def part(self, edges: tuple[int, int]) -> Postings:
        """Return the postings between two edges of `parts`, those of one run after those of another."""
        arrays = self.arrays()
        return arrays["docs"][slice(*edges)], arrays["tfs"][slice(*edges)]

    def parts(self) -> list[tuple[int, int]]:
        """Return the edges of parts of about CHUNK_POSTINGS postings."""
        size = len(self.arrays()["docs"])
        return [(first, min(size, first + CHUNK_POSTINGS)) for first in range(0, size, CHUNK_POSTINGS)]

    def row_size(self) -> int:
        """Mean bytes of a posting's payloads."""
        return sum(size for ends, size in self._ends.items() if ends not in self.PARTS) // max(1, self._ends["ends"])

    def _merged_rows(self, name: str, edges: tuple[Int64s, Int64s], blocks: Int32s, df: Int64s) -> Rows:
        arrays = self.arrays()
        starts, ends = (_starts(arrays[f"row_ends-{name}"], indices) for indices in edges)
        rows, sizes = np.empty(int(np.sum(ends - starts)), np.uint8), np.empty(len(df), np.int64)
        merge_rows(arrays[f"rows-{name}"], starts, *blocks, df, rows, sizes)
        return rows, sizes

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays of all runs, after the last one was appended."""
        with self._lock:
            if self._spilled:
                if self._pending:
                    self._spill()
                if self._mapped is None:
                    self._mapped = {name: self._map(name, dtype) for name, dtype in self._types.items()}
                return self._mapped
            if len(self._pending) != 1:
                joined = {}
                for name, dtype in self._types.items():
                    joined[name] = np.concatenate([np.empty(0, dtype), *(run.pop(name) for run in self._pending)])
                self._pending = [joined]
            return {name: fixed(array) for name, array in self._pending[0].items()}

    def _file(self, name: str) -> Path:
        return self._folder / f"runs.{name}"

    def _map(self, name: str, dtype: type[np.generic]) -> AnyArray:
        file = self._file(name)
        return fixed(np.memmap(file, dtype, "r") if file.stat().st_size else np.empty(0, dtype))

    def _spill(self) -> None:
        self._spilled = True
        for name in self._types:
            with self._file(name).open("ab") as file:
                for run in self._pending:
                    file.write(run[name].data)
        self._pending = []


class _PendingBatch(NamedTuple):
    """Documents of a run to come; the fields are the parameters of `Inverter.append`."""

    first: int
    terms: Int32s
    counts: Int32s
    bounds: Int64s
    payloads: Mapping[str, Rows]


class Inverter:
    """Makes runs of documents of numbered terms; all runs are spilled when postings and vocabulary take `memory` bytes."""

    def __init__(self, runs: PostingRuns, vocabulary: Vocabulary | Strings, memory: int) -> None:
        self.vocabulary = vocabulary
        self._runs, self._memory = runs, memory
        self._pending: list[_PendingBatch] = []
        self._size, self._bytes = 0, 0  # number of pending postings, memory of their payloads

    def append(
        self,
        first: int,
        terms: Int32s,
        counts: Int32s,
        bounds: Int64s,
        extra_bytes: int = 0,
        payloads: Mapping[str, Rows] | None = None,
    ) -> bool:
        """Append documents. Return whether all runs were spilled to disk.

        Args:
            first: Ordinal of the first document.
            terms: Term numbers of all documents, concatenated; each term once per document.
            counts: Frequency of each, from 1.
            bounds: Offset of each document's first term, and the end of the last.
            extra_bytes: Memory of the vocabulary besides TERM_BYTES for each term.
            payloads: Rows of the terms and bytes of each row, by payload component.
        """
        payloads = payloads or {}
        self._pending.append(_PendingBatch(first, terms, counts, bounds, payloads))
        self._size += len(terms)
        self._bytes += sum(2 * len(rows) + PAYLOAD_BYTES * len(sizes) for rows, sizes in payloads.values())
        if POSTING_BYTES * self._size + self._bytes + TERM_BYTES * len(self.vocabulary) + extra_bytes < self._memory:
            return False
        self.close(spill=True)
        return True

    def close(self, spill: bool = False) -> None:
        """Make a run of the pending documents."""
        if not self._size:
            return
        self._pending.sort(key=lambda batch: batch.first)
        sizes = np.zeros(len(self.vocabulary), dtype=np.int64)
        for batch in self._pending:
            sizes += np.bincount(batch.terms, minlength=len(sizes))
        used = np.flatnonzero(sizes)
        table = self.vocabulary if isinstance(self.vocabulary, Strings) else self.vocabulary.table()
        table = table if len(used) == len(table) else table.reordered(used)
        order = used[table.order]
        ends, cursor = _layout(sizes, order)
        docs, tfs = np.empty(self._size, dtype=np.int32), np.empty(self._size, dtype=np.int32)
        for batch in self._pending:
            invert(batch.first, batch.terms, batch.counts, batch.bounds, cursor, docs, tfs)
        ascending = table.reordered(table.order)
        run = {"terms": ascending.blob, "term_ends": ascending.offsets[1:].copy(), "ends": ends, "docs": docs, "tfs": tfs}
        for name in self._pending[0].payloads:
            run[f"rows-{name}"], run[f"row_ends-{name}"] = self._inverted_rows(name, order)
        self._pending, self._size, self._bytes = [], 0, 0
        self._runs.append(run, spill)

    def _inverted_rows(self, name: str, order: Ints) -> tuple[Bytes, Int64s]:
        """Rows of the pending documents, by terms in this order, and the end of each term's rows."""
        sizes = np.zeros(len(self.vocabulary), dtype=np.int64)
        for batch in self._pending:
            sizes += np.bincount(batch.terms, batch.payloads[name][1], len(sizes)).astype(np.int64)
        ends, cursor = _layout(sizes, order)
        rows = np.empty(int(sizes.sum()), dtype=np.uint8)
        for batch in self._pending:
            invert_rows(batch.terms, batch.payloads[name][0], cursor, rows)
        return rows, ends


def _layout(sizes: Int64s, order: Ints) -> tuple[Int64s, Int64s]:
    """Lay out terms in this order: return their ends in the order, and the start of each by its number."""
    ends = np.cumsum(sizes[order])
    starts = np.zeros(len(sizes), dtype=np.int64)
    starts[order] = ends - sizes[order]
    return ends, starts


def chunks(df: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about `size` postings each."""
    ends = np.cumsum(df, dtype=np.int64)
    first = 0
    while first < len(df):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + size, side="right")))
        yield first, last
        first = last


def _splits(arrays: dict[str, AnyArray], counts: Int64s, size: int) -> Sequence[Bytes]:
    """Return terms, ascending, that divide the postings of all runs into chunks of about `size`, from samples of the terms."""
    samples: list[tuple[bytes, int]] = []
    step = max(1, size // SAMPLES)
    for first, last in zip(counts[:-1].tolist(), counts[1:].tolist(), strict=True):
        ends = arrays["ends"][first:last]
        start = int(ends[0]) - 1 if len(ends) else 0
        indices = np.searchsorted(ends, np.arange(start, int(ends[-1]) if len(ends) else 0, step), side="right")
        for index, weight in zip(*np.unique(indices, return_counts=True), strict=True):
            low = int(arrays["term_ends"][first + index - 1]) if first + index else 0
            samples.append((arrays["terms"][low : int(arrays["term_ends"][first + index])].tobytes(), int(weight) * step))
    samples.sort()
    splits, total = [], 0
    for term, weight in samples:
        total += weight
        if total >= size:
            splits.append(np.frombuffer(term, dtype=np.uint8))
            total = 0
    return splits


def _starts(ends: Int64s, indices: Int64s) -> Int64s:
    """Return the starts of the parts with these indices, from the ends of all parts."""
    return np.where(indices > 0, ends[np.maximum(indices, 1) - 1], 0) if len(ends) else np.zeros_like(indices)


class _Analysed(NamedTuple):
    lengths: Int64s  # of the documents
    payloads: Mapping[str, Ints] = MappingProxyType({})  # data of the documents, by payload component


class _Worker:
    """Analyses and inverts batches of documents with its own vocabulary."""

    def __init__(self, settings: IndexSettings, payloads: Sequence[Payload[object]], runs: PostingRuns, memory: int) -> None:
        self._analyzer = settings.analyzer
        self._fields, self._has_positions = len(settings.fields), settings.positions
        self._payloads, self._memory = payloads, memory
        self._vocabulary = self._analyzer.vocabulary()
        self._inverter = Inverter(runs, self._vocabulary, memory)
        self._scratch = np.zeros(0, dtype=np.int32)

    def add(self, first: int, contents: Contents | Sequence[Mapping[str, int]]) -> _Analysed:
        rows: Mapping[str, Rows] = {}
        if not isinstance(contents, tuple):
            terms, counts, bounds, lengths = self._read_weights(contents)
            analysed = _Analysed(lengths)
        elif self._payloads:
            occurrences = self._find_occurrences(*contents)
            terms, counts, bounds = occurrences.terms, occurrences.counts, occurrences.term_bounds
            rows = {payload.name: payload.packed(occurrences) for payload in self._payloads}
            document_data = {payload.name: payload.of_documents(occurrences) for payload in self._payloads}
            analysed = _Analysed(occurrences.lengths.sum(axis=1), document_data)
        else:
            numbers, text_bounds = self._vocabulary.encode_table(*contents)
            terms, counts, bounds = self._count(numbers, text_bounds)
            analysed = _Analysed(np.diff(text_bounds))
        spilled = self._inverter.append(first, terms, counts, bounds, self._vocabulary.nbytes, rows)
        if spilled and self._vocabulary.nbytes > self._memory // VOCABULARY_SHARE:
            self._vocabulary = self._inverter.vocabulary = self._analyzer.vocabulary()
        return analysed

    def close(self) -> None:
        self._inverter.close()

    def _count(self, numbers: Int32s, bounds: Int64s) -> tuple[Int32s, Int32s, Int64s]:
        """Return the distinct terms of each text, their frequencies, and the offsets of each text's terms."""
        if len(self._scratch) < len(self._vocabulary):
            self._scratch = np.zeros(2 * len(self._vocabulary), dtype=np.int32)
        terms, counts = np.empty_like(numbers), np.empty_like(numbers)
        term_bounds = count_terms(numbers, bounds, self._scratch, terms, counts)
        filled = int(term_bounds[-1])
        return terms[:filled].copy(), counts[:filled].copy(), term_bounds

    def _find_occurrences(self, text: Bytes, text_bounds: Int64s) -> Occurrences:
        positions, spans = np.zeros(0, np.int32), np.zeros(0, np.int64)
        if self._has_positions:
            numbers, bounds, positions, spans = self._vocabulary.encode_positions(text, text_bounds)
        else:
            numbers, bounds = self._vocabulary.encode_table(text, text_bounds)
        postings = self._count(numbers, np.ascontiguousarray(bounds[:: self._fields]))
        slots = np.empty(len(self._vocabulary), dtype=np.int32)
        return Occurrences(numbers, bounds, positions, spans.reshape(-1, self._fields), *postings, self._fields, slots)

    def _read_weights(self, weights: Sequence[Mapping[str, int]]) -> tuple[Int32s, Int32s, Int64s, Int64s]:
        terms = self._vocabulary.numbers([term for bag in weights for term in bag])
        counts = np.array([count for bag in weights for count in bag.values()], dtype=np.int32)
        lengths = np.array([sum(bag.values()) for bag in weights], dtype=np.int64)
        return terms, counts, offsets_of([len(bag) for bag in weights]), lengths


class ListsWriter:
    """Writes the files of an inverted index: doc_lengths, then terms, df, cf and postings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._terms = ByteWriter(folder, "terms.bytes")
        names = ("terms.bounds", "df", "cf", "doc_lengths")
        self._bounds, self._df, self._cf, self._lengths = (NumberWriter(folder, name) for name in names)
        self._postings: PackedWriter | None = None
        self._counts = {"terms": 0, "postings": 0, "tokens": 0}
        self._bounds.write(np.zeros(1, dtype=np.int64))

    def lengths(self, lengths: Ints) -> None:
        """Append the lengths of documents: the sums of their frequencies."""
        self._lengths.write(lengths)

    def begin(self, parts: Sequence[Item], postings: Callable[[Item], Postings]) -> None:
        """Count the postings to come, which `postings` returns for each of some parts, after the last lengths."""
        self._lengths.close()
        lengths = read_array(self._folder, "doc_lengths")
        self._postings = PackedWriter(self._folder, TfLengthCodes.counted(lengths, parts, postings))

    def packed(self, chunk: Chunk) -> Chunk:
        """Return a chunk for `write`; may be called in any thread."""
        assert self._postings is not None
        return replace(chunk, postings=NO_POSTINGS, packed=self._postings.packed(chunk.df, chunk.postings))

    def write(self, chunk: Chunk) -> None:
        """Append terms and their postings."""
        assert self._postings is not None
        self._bounds.write(self._terms.length + np.cumsum(chunk.term_sizes))
        self._df.write(chunk.df)
        self._cf.write(chunk.cf)
        self._terms.write(chunk.terms)
        self._postings.write(len(chunk.df), chunk.packed)
        for name, count in (("terms", len(chunk.df)), ("postings", chunk.df.sum()), ("tokens", chunk.cf.sum())):
            self._counts[name] += int(count)

    def close(self) -> dict[str, int]:
        """Complete the files. Return the counts of terms, postings and tokens."""
        assert self._postings is not None
        for file in (self._terms, self._bounds, self._df, self._cf, self._postings):
            file.close()
        return self._counts

    def abandon(self) -> None:
        """Close unfinished files."""
        for file in (self._terms, self._bounds, self._df, self._cf, self._lengths, self._postings):
            if file is not None:
                file.abandon()


class PostingsWriter:
    """Writes documents of numbered terms as an inverted index in `folder`; spills runs beside it above `memory` bytes."""

    def __init__(self, folder: Path, terms: Strings, memory: int) -> None:
        self._lists = ListsWriter(folder)
        self._runs = PostingRuns(folder.parent)
        self._inverter = Inverter(self._runs, terms, memory)
        self._memory, self._count = memory, 0

    def append(self, terms: Int32s, counts: Int32s, term_bounds: Int64s, lengths: Ints) -> None:
        """Append documents as for `Inverter.append`; `lengths` is the sum of each document's counts."""
        self._inverter.append(self._count, terms, counts, term_bounds)
        self._lists.lengths(lengths)
        self._count += len(lengths)

    def close(self) -> dict[str, int]:
        """Merge the runs and complete the files. Return the counts of terms, postings and tokens."""
        try:
            self._inverter.close()
            with work(threads=1, memory=self._memory), Workers() as workers:
                write_runs(self._runs, self._lists, workers)
            return self._lists.close()
        finally:
            self._lists.abandon()


class InvertedWriter(Writer):
    """Analyses batches of documents in several threads, and writes their inverted index and the payloads of its postings."""

    def __init__(self, building: Building) -> None:
        self._building, self._workers = building, building.workers
        further = (components[name] for name in building.settings.components)
        self._payloads = [component for component in further if isinstance(component, Payload)]
        self._runs = PostingRuns(building.folder.parent, [payload.name for payload in self._payloads])
        self._lists = ListsWriter(building.folder)
        fields = len(building.settings.fields)
        self._writers = {payload.name: payload.payload_writer(building.folder, fields) for payload in self._payloads}
        memory = resources().memory
        self._memory = (memory - memory // ID_SHARE) // building.workers.threads  # of each thread
        self._queue = Queue(self._workers, self._write_documents)
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
        write_runs(self._runs, self._lists, self._workers, self._writers)
        for writer in self._writers.values():
            writer.close()
        return self._lists.close()

    def abandon(self) -> None:
        self._lists.abandon()
        for writer in self._writers.values():
            writer.abandon()

    def _write_documents(self, analysed: _Analysed) -> None:
        self._lists.lengths(analysed.lengths)
        for name, numbers in analysed.payloads.items():
            self._writers[name].documents(numbers)

    def _add(self, first: int, contents: Contents | Sequence[Mapping[str, int]]) -> _Analysed:
        try:
            worker = self._idle.pop()  # the worker used last, so that few vocabularies grow
        except IndexError:
            worker = _Worker(self._building.settings, self._payloads, self._runs, self._memory)
        try:
            return worker.add(first, contents)
        finally:
            self._idle.append(worker)


def write_runs(
    runs: PostingRuns, lists: ListsWriter, workers: Workers, payloads: Mapping[str, PayloadWriter] | None = None
) -> None:
    """Merge runs by terms into the files of an inverted index and of its payloads."""
    writers = payloads or {}

    def merged(edges: tuple[Int64s, Int64s]) -> Chunk:
        chunk = lists.packed(runs.merged(edges))
        tables = {name: writer.tables(chunk.payloads[name], chunk.df) for name, writer in writers.items()}
        return replace(chunk, tables=tables) if tables else chunk

    lists.begin(runs.parts(), runs.part)
    payload_bytes = BLOCK_BYTES + runs.row_size() if writers else 0
    payload_bytes += sum(writer.memory for writer in writers.values())
    for chunk in workers.in_order(merged, runs.chunks(chunk_size(workers.threads, payload_bytes))):
        lists.write(chunk)
        for name, writer in writers.items():
            writer.write(chunk.payloads[name], chunk.tables[name])


def write_lists(
    folder: Path,
    terms: Strings,
    df: Ints,
    lengths: Ints,
    postings: Callable[[int, int], Postings],
) -> dict[str, int]:
    """Write the files of an inverted index. Return the counts of terms, postings and tokens.

    Args:
        folder: Folder of the files.
        terms: The terms, in ascending order.
        df: Number of postings of each term, from 1.
        lengths: Sum of frequencies of each document.
        postings: Returns the concatenated postings of a range of term numbers.
    """

    def packed_chunk(edges: tuple[int, int]) -> Chunk:
        first, last = edges
        docs, tfs = postings(first, last)
        chunk_df = np.asarray(df[first:last], dtype=np.int64)
        cf = np.add.reduceat(tfs, np.cumsum(chunk_df) - chunk_df, dtype=np.int64)
        offsets = terms.offsets[first : last + 1].astype(np.int64)
        return lists.packed(Chunk(terms.blob[offsets[0] : offsets[-1]], np.diff(offsets), chunk_df, cf, (docs, tfs)))

    lists, parts = ListsWriter(folder), list(chunks(df, chunk_size(thread_count())))
    try:
        lists.lengths(lengths)
        lists.begin(parts, lambda edges: postings(*edges))
        for chunk in in_order(packed_chunk, parts):
            lists.write(chunk)
        return lists.close()
    finally:
        lists.abandon()


def chunk_size(threads: int, payload_bytes: int = 0) -> int:
    """Number of postings merged at a time, each with `payload_bytes` bytes of memory besides its own."""
    return max(1, min(CHUNK_POSTINGS, resources().memory // ((MERGED_BYTES + payload_bytes) * (threads + 1))))
