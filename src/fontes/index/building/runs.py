"""Runs of postings: what a worker makes of some documents, by terms in ascending order, in memory or on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.strings import Strings
from .kernels import invert, lower_bound, merge_runs

POSTING = 16  # bytes of memory that a posting takes until its run is made, at the most
TERM = 64  # the same for each term, while they are sorted
SAMPLES = 8  # of a run's terms for each chunk of postings


class Numbered(Protocol):
    """Terms by number."""

    def __len__(self) -> int:
        """How many terms there are."""
        ...

    def table(self) -> Strings:
        """The terms."""
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
    """The runs of a build. They stay in memory until one has to go to the disk; then all do.

    A run has the arrays "terms" (bytes, end to end), "term_ends" (in "terms"), "ends" (of each term's postings), "docs" and
    "tfs" (int32); those of all runs stand end to end.

    Args:
        folder: Where the files go.
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
        """Appends a run, whose numbers count from its own start; with `spill` it goes to the disk, and the others, too."""
        with self._lock:
            run["term_ends"] += self._ends[0]
            run["ends"] += self._ends[1]
            self._ends = [self._ends[0] + len(run["terms"]), self._ends[1] + len(run["docs"])]
            self._counts.append(self._counts[-1] + len(run["ends"]))
            self._pending.append(run)
            if spill:
                self._spill()

    def chunks(self, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Edges between which the runs' terms make chunks of about `most` postings: the first term of each run, and its end."""
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
        """The postings of a chunk, those of all runs by terms."""
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
        """The arrays of all runs, which are complete."""
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
        memory: The bytes that postings, and what else is told of, may take before they go to the disk.
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
        """Appends documents.

        Args:
            first: The ordinal of the first one.
            terms: The numbers of the terms of all documents, those of each end to end, each term once.
            counts: How often the document has the term, from 1.
            bounds: Where those of each document start, one entry more.
            more: The bytes that the vocabulary takes.

        Returns:
            Whether all that there was has gone to the disk.
        """
        self._pending.append((first, terms, counts, bounds))
        self._size += len(terms)
        if POSTING * self._size + TERM * len(self.vocabulary) + more < self._memory:
            return False
        self.close(spill=True)
        return True

    def close(self, spill: bool = False) -> None:
        """Makes a run of what is pending."""
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


def _splits(arrays: dict[str, NDArray[Any]], counts: NDArray[np.int64], most: int) -> Sequence[NDArray[np.uint8]]:
    """Terms that part those of all runs so that between two there are about `most` postings."""
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
    """The end of what stands before each place."""
    return np.where(places > 0, ends[np.maximum(places, 1) - 1], 0) if len(ends) else np.zeros_like(places)


def _readonly(array: NDArray[Any]) -> NDArray[Any]:
    """The array read-only, as those by memory map are, so that one version of the compiled loops serves both."""
    array = array.view(np.ndarray)
    array.flags.writeable = False
    return array
