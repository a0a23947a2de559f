"""From bags of weighted terms to a run: the compiled search over batches of topics, in threads."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.run import Run
from ..core.values import Topics
from .impacts import impacts_of
from .kernel import DEPTHS, search
from .weightings import Weighting

if TYPE_CHECKING:
    from ..index import Index

RESULTS = 1 << 21  # that are held at a time before they are packed


def search_topics(
    index: Index, weighting: Weighting, topics: Topics, bags: list[dict[int, float]], k: int, threads: int
) -> Run:
    """The best `k` documents of an index for each topic.

    `bags` has for each topic its terms (positions in the index) with their query weights.
    """
    bounds = _running_sum([len(bag) for bag in bags])
    sorted_bags = [sorted(bag.items()) for bag in bags]
    terms = np.array([term for bag in sorted_bags for term, _ in bag], dtype=np.int32)
    weights = np.array([weight for bag in sorted_bags for _, weight in bag], dtype=np.float64)
    k = min(k, len(index))
    found = []
    if k and len(terms):
        step = max(1, RESULTS // k)
        for first in range(0, len(bags), step):
            last = min(first + step, len(bags))
            found.append(_found(index, weighting, (bounds, terms, weights), first, last, k, threads))
    else:
        found.append((np.zeros(len(bags), np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)))
    counts, docs, scores = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
    provenance = {"index": str(index.path), "fingerprint": index.fingerprint}
    return Run(topics, index.ids, _running_sum(counts.tolist()), docs, scores, documents=index, provenance=provenance)


def _running_sum(sizes: list[int]) -> NDArray[np.int64]:
    return np.array([0, *itertools.accumulate(sizes)], dtype=np.int64)


def _found(
    index: Index, weighting: Weighting, topics: tuple[Any, Any, Any], first: int, last: int, k: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """For the topics from `first` to `last` the counts of results, and their documents and scores end to end."""
    impacts = impacts_of(index, weighting)
    lists = (impacts.lists.bounds, impacts.lists.docs, impacts.weights)
    limits = (impacts.best, impacts.kth, impacts.positive, impacts.lists.row_of, impacts.rows, impacts.lists.starts)
    depth = next((i for i, kept in enumerate(DEPTHS) if k <= kept), -1)
    keys = np.zeros((last - first, k), dtype=np.uint64)
    counts = np.zeros(last - first, dtype=np.int64)

    def part(a: int, b: int) -> None:
        rows = slice(a - first, b - first)
        search(a, b, topics, lists, limits, index.ids.rank, k, depth, (keys[rows], counts[rows]))

    threads = min(threads, last - first)
    if threads == 1:
        part(first, last)
    else:
        # Small pieces keep all threads busy to the end.
        edges = np.linspace(first, last, min(8 * threads, last - first) + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, edges[:-1], edges[1:]))
    keys.sort(axis=1)
    best_first = keys[:, ::-1]
    if counts.min() < k:
        best_first = best_first[np.arange(k) < counts[:, None]]
    halves = best_first.astype("<u8").reshape(-1).view("<u4")  # of each key: the place of the id, the bits of the score
    bits = halves[1::2]
    scores = np.where(bits >> 31, bits & np.uint32(0x7FFFFFFF), ~bits).view(np.float32)
    return counts, index.ids.order[halves[::2]].view(np.int32), scores
