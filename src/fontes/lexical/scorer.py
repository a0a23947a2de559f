"""Posting weights of one model on one index, worked out for each term when it is first asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.run import Run
from ..core.values import Topics
from .kernel import search
from .weightings import Statistics, Weighting

if TYPE_CHECKING:
    from ..index import Index

CHUNK = 1 << 20  # postings that are weighted at a time
TOPICS = 1 << 21  # results that are held at a time before they are packed
KEPT = 4  # models whose weights an index keeps in memory


class Scorer:
    """The weights of an index's postings under one model. Safe to share between threads."""

    def __init__(self, index: Index, weighting: Weighting) -> None:
        self.index = index
        self.weighting = weighting
        self.statistics = Statistics(index)
        self._lock = threading.Lock()
        self._bounds = np.zeros(len(index.df) + 1, dtype=np.int64)
        np.cumsum(index.df, out=self._bounds[1:])
        # Memory of these is taken by the system only where terms have been weighted.
        self._docs = np.empty(self._bounds[-1], dtype=np.int32)
        self._weights = np.empty(self._bounds[-1], dtype=np.float64)
        self._known = np.zeros(len(index.df), dtype=bool)

    @classmethod
    def of(cls, index: Index, weighting: Weighting) -> Scorer:
        """The scorer of this model; an index keeps the last few."""
        scorer = index.scorers.pop(weighting, None) or cls(index, weighting)
        index.scorers[weighting] = scorer
        while len(index.scorers) > KEPT:
            index.scorers.pop(next(iter(index.scorers)))
        return scorer

    def run(self, topics: Topics, bags: list[dict[int, float]], k: int, threads: int) -> Run:
        """The best `k` documents for each topic, whose terms (positions in the index) and query weights are in `bags`."""
        sizes = np.array([len(bag) for bag in bags], dtype=np.int64)
        bounds = np.zeros(len(bags) + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        terms = np.array([term for bag in bags for term in sorted(bag)], dtype=np.int32)
        weights = np.array([bag[term] for bag in bags for term in sorted(bag)], dtype=np.float64)
        self._weigh(np.unique(terms))
        k = max(1, min(k, len(self.index)))
        step = max(1, TOPICS // k)
        packed = [
            self._search((bounds, terms, weights), first, min(first + step, len(bags)), k, threads)
            for first in range(0, len(bags), step)
        ]
        counts = np.concatenate([p[2] for p in packed]) if packed else np.zeros(0, dtype=np.int64)
        run_bounds = np.zeros(len(bags) + 1, dtype=np.int64)
        np.cumsum(counts, out=run_bounds[1:])
        docs = np.concatenate([p[0] for p in packed]) if packed else np.zeros(0, dtype=np.int32)
        scores = np.concatenate([p[1] for p in packed]) if packed else np.zeros(0, dtype=np.float32)
        return Run(topics, self.index.ids, run_bounds, docs, scores, documents=self.index)

    def _search(
        self,
        topics: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
        first: int,
        last: int,
        k: int,
        threads: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
        """The documents, scores and counts of the topics from `first` to `last`, split among threads."""
        docs = np.empty((last - first, k), dtype=np.int32)
        scores = np.empty((last - first, k), dtype=np.float32)
        counts = np.zeros(last - first, dtype=np.int64)
        postings = (self._bounds, self._docs, self._weights)
        ids = (self.index.ids.rank, self.index.ids.order)
        threads = max(1, min(threads, last - first))
        edges = np.linspace(first, last, threads + 1).astype(int).tolist()

        def part(a: int, b: int) -> None:
            rows = slice(a - first, b - first)
            search(a, b, topics, postings, ids, k, (docs[rows], scores[rows], counts[rows]))

        if threads == 1:
            part(first, last)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, edges[:-1], edges[1:]))
        filled = np.arange(k) < counts[:, None]
        return docs[filled], scores[filled], counts

    def _weigh(self, terms: NDArray[np.int32]) -> None:
        """Works out the weights of those terms (in ascending order) that have none yet."""
        with self._lock:
            new = terms[~self._known[terms]]
            ends = np.cumsum(self.index.df[new], dtype=np.int64)
            first = 0
            while first < len(new):
                before = int(ends[first - 1]) if first else 0
                last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
                self._weigh_chunk(new[first:last])
                first = last

    def _weigh_chunk(self, terms: NDArray[np.int32]) -> None:
        docs, tfs = self.index.postings(terms)
        sizes = self.index.df[terms].astype(np.int64)
        df = np.repeat(sizes, sizes).astype(np.float64)
        weights = self.weighting.postings(self.statistics, tfs.astype(np.float64), docs, df)
        starts = np.cumsum(sizes) - sizes
        for term, start, size in zip(terms.tolist(), starts.tolist(), sizes.tolist(), strict=True):
            to = int(self._bounds[term])
            self._docs[to : to + size] = docs[start : start + size]
            self._weights[to : to + size] = weights[start : start + size]
        self._known[terms] = True
