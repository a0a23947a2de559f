"""Batches of texts to runs of postings, by several workers, each of which has a vocabulary of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...text import Analyzer
from ..kernels import count_terms
from .batches import Contents
from .runs import Inverter, PostingRuns

KEPT = 4  # parts of a worker's memory, of which its vocabulary may have one when it begins another run


class Inversion:
    """Takes batches, several at a time, and makes runs of them.

    Args:
        analyzer: Makes the terms.
        runs: Where the runs go.
        memory: The bytes that each worker may take before its postings go to the disk.
    """

    def __init__(self, analyzer: Analyzer, runs: PostingRuns, memory: int) -> None:
        self._analyzer, self._runs, self._memory = analyzer, runs, memory
        self._idle: list[_Worker] = []

    def add(self, first: int, contents: Contents | Sequence[Mapping[str, int]]) -> NDArray[np.int64]:
        """Takes a batch, of which the first document has the ordinal `first`, and gives the documents' lengths."""
        try:
            worker = self._idle.pop()  # the last one to be idle, so that there are few vocabularies
        except IndexError:
            worker = _Worker(self._analyzer, self._runs, self._memory)
        try:
            return worker.add(first, contents)
        finally:
            self._idle.append(worker)

    def closing(self) -> list[Callable[[], None]]:
        """What is still to do, side by side, when all batches are done."""
        return [worker.close for worker in self._idle]


class _Worker:
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
        """The terms of texts, how often each text has each, where those of each text start, and how many each has."""
        numbers, bounds = self._vocabulary.encode_table(text, text_bounds)
        if len(self._scratch) < len(self._vocabulary):
            self._scratch = np.zeros(2 * len(self._vocabulary), dtype=np.int32)
        terms, counts = np.empty_like(numbers), np.empty_like(numbers)
        term_bounds = count_terms(numbers, bounds, self._scratch, terms, counts)
        filled = int(term_bounds[-1])
        return terms[:filled].copy(), counts[:filled].copy(), term_bounds, np.diff(bounds)

    def _weighted(self, weights: Sequence[Mapping[str, int]]) -> tuple[NDArray[Any], ...]:
        """The same of terms with their frequencies."""
        terms = self._vocabulary.numbers([term for bag in weights for term in bag])
        counts = np.array([count for bag in weights for count in bag.values()], dtype=np.int32)
        bounds = np.zeros(len(weights) + 1, dtype=np.int64)
        np.cumsum([len(bag) for bag in weights], out=bounds[1:])
        return terms, counts, bounds, np.array([sum(bag.values()) for bag in weights], dtype=np.int64)
