"""Measures what reordering documents by recursive graph bisection gives (Dhulipala et al., KDD 2016).

    python bench/reorder.py INDEX queries.jsonl --work DIR

The documents of INDEX are indexed as they come, in a random order, and in the order that bisection makes of them; then the same
topics are searched in all three, in turns, one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, table
from numba import njit

from fontes import Index, Topic, Topics

DEPTHS = (10, 100, 1000)
ITERATIONS = 20
LEAST = 16  # documents that are not divided further


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("topics", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    source = Index.open(given.index)
    texts = [json.loads(line)["text"] for line in given.topics.read_text(encoding="utf-8").splitlines()]
    topics = Topics(Topic(str(i), text) for i, text in enumerate(texts))
    start = time.perf_counter()
    bisected = bisect(source)
    print(f"{machine()}; bisection of {len(source):,} documents took {time.perf_counter() - start:.0f} s")
    orders = {
        "as they come": np.arange(len(source)),
        "random": np.random.default_rng(1).permutation(len(source)),
        "bisection": bisected,
    }
    indexes = {name: reordered(source, order, given.work / name.replace(" ", "-")) for name, order in orders.items()}
    sizes = {name: next(index.path.rglob("postings.npy")).stat().st_size / 1e6 for name, index in indexes.items()}
    rows = {name: [f"{size:.1f}"] for name, size in sizes.items()}
    for k in DEPTHS:
        seconds: dict[str, list[float]] = {name: [] for name in indexes}
        for _ in range(given.runs + 1):
            for name, index in indexes.items():
                start = time.perf_counter()
                index.bm25(k=k, threads=1)(topics)
                seconds[name].append((time.perf_counter() - start) / len(topics))
        for name, some in seconds.items():
            rows[name].append(f"{1000 * statistics.median(some[1:]):.3f}")
    table("Orders", ["documents", "postings, MB", *(f"k={k}, ms a topic" for k in DEPTHS)], [[n, *r] for n, r in rows.items()])


def reordered(source: Index, order: Any, path: Path) -> Index:
    """The same documents in another order."""
    if not path.exists():
        Index.build(source.docs(source.ids.take(order)), path, analyzer=source.analyzer, fields=source.fields)
    return Index.open(path)


def bisect(index: Index) -> Any:
    """An order in which documents with the same terms are near each other."""
    docs, _ = index.postings(np.arange(len(index.terms)))
    terms = np.repeat(np.arange(len(index.terms), dtype=np.int32), index.df)[np.argsort(docs, kind="stable")]
    bounds = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(np.bincount(docs, minlength=len(index)), out=bounds[1:])
    order, gains = np.arange(len(index)), np.zeros(len(index))
    sides, moves = np.zeros((2, len(index.terms)), dtype=np.int64), np.zeros((2, len(index.terms)))
    ranges = [(0, len(index))]
    while ranges:
        first, last = ranges.pop()
        if last - first > LEAST:
            middle = (first + last) // 2
            for _ in range(ITERATIONS):
                weigh(first, middle, last, order, bounds, terms, sides, moves, gains)
                if not swap(first, middle, last, order, gains):
                    break
            ranges += [(first, middle), (middle, last)]
    return order


@njit
def weigh(first: int, middle: int, last: int, order: Any, bounds: Any, terms: Any, sides: Any, moves: Any, gains: Any) -> None:
    """For each document of the range what its move to the other half saves, in bits (the paper's equation 1)."""
    for place in range(first, last):
        for at in range(bounds[order[place]], bounds[order[place] + 1]):
            sides[:, terms[at]] = 0
    for place in range(first, last):
        for at in range(bounds[order[place]], bounds[order[place] + 1]):
            sides[int(place >= middle), terms[at]] += 1
    sizes = (middle - first, last - middle)
    for place in range(first, last):
        side = int(place >= middle)
        for at in range(bounds[order[place]], bounds[order[place] + 1]):
            term = terms[at]
            here, there = sides[side, term], sides[1 - side, term]
            now = cost(here, sizes[side]) + cost(there, sizes[1 - side])
            moves[side, term] = now - cost(here - 1, sizes[side]) - cost(there + 1, sizes[1 - side])
    for place in range(first, last):
        gain = 0.0
        for at in range(bounds[order[place]], bounds[order[place] + 1]):
            gain += moves[int(place >= middle), terms[at]]
        gains[order[place]] = gain


@njit
def cost(degree: int, size: int) -> float:
    return degree * np.log2(size / (degree + 1))


def swap(first: int, middle: int, last: int, order: Any, gains: Any) -> bool:
    """Exchanges the pairs of documents whose exchange saves something; whether there were any."""
    left, right = order[first:middle], order[middle:last]
    left[:] = left[np.argsort(-gains[left], kind="stable")]
    right[:] = right[np.argsort(-gains[right], kind="stable")]
    count = int(np.count_nonzero(gains[left] + gains[right][: len(left)] > 0))
    left[:count], right[:count] = right[:count].copy(), left[:count].copy()
    return count > 0


if __name__ == "__main__":
    main()
