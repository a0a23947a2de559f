"""Runs of postings: those of several workers, merged by terms, are what one worker would have made of all documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.small_collections import PROPERTY

from fontes.core import Strings
from fontes.index.inversion import Inverter, PostingRuns

TERMS = ["a", "aa", "a\0", "é", "東京", "prefix-of-some-length", "prefix-of-some-length-and-more", "𝒜", "zz"]
BAG = st.dictionaries(st.sampled_from(TERMS), st.sampled_from([1, 2, 127, 128, 20_000]), max_size=5)
Bags = Sequence[dict[str, int]]


class Numbers:
    """Terms in the order of first sight."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.known)

    def table(self) -> Strings:
        return Strings.of(self.known)


def arrays(bags: Bags, numbers: Numbers) -> tuple[Any, Any, Any]:
    terms = [numbers.known.setdefault(term, len(numbers.known)) for bag in bags for term in bag]
    counts = [count for bag in bags for count in bag.values()]
    bounds = np.cumsum([0, *map(len, bags)])
    return np.array(terms, dtype=np.int32), np.array(counts, dtype=np.int32), bounds


def merged(runs: PostingRuns, most: int) -> dict[str, list[tuple[int, int]]]:
    lists: dict[str, list[tuple[int, int]]] = {}
    for edges in runs.chunks(most):
        chunk = runs.merged(edges)
        text, at, start = chunk.terms.tobytes(), 0, 0
        postings = list(zip(*(part.tolist() for part in chunk.postings), strict=True))
        for size, df, cf in zip(chunk.term_sizes.tolist(), chunk.df.tolist(), chunk.cf.tolist(), strict=True):
            own = postings[start : start + df]
            term = text[at : at + size].decode()
            assert sum(tf for _, tf in own) == cf
            assert term not in lists
            lists[term] = own
            at, start = at + size, start + df
        assert (at, start) == (len(text), len(postings))
    return lists


@PROPERTY
@given(
    st.lists(st.lists(BAG, min_size=1, max_size=4), max_size=8),
    st.lists(st.integers(0, 2), min_size=8, max_size=8),
    st.sampled_from([1, 300, 1 << 30]),
    st.sampled_from([1, 2, 5, 1000]),
)
def test_runs_of_several_workers_are_merged_by_terms_and_documents(tmp_path_factory, batches, takers, memory, most):
    folder = tmp_path_factory.mktemp("runs")
    runs = PostingRuns(folder)
    workers = [Inverter(runs, Numbers(), memory) for _ in range(3)]
    expected: dict[str, list[tuple[int, int]]] = {}
    first = 0
    for batch, taker in zip(batches, takers, strict=False):
        for doc, bag in enumerate(batch, first):
            for term, count in bag.items():
                expected.setdefault(term, []).append((doc, count))
        workers[taker].append(first, *arrays(batch, workers[taker].vocabulary))
        first += len(batch)
    for worker in workers:
        worker.close()
    lists = merged(runs, most)
    assert lists == expected
    assert list(lists) == sorted(expected, key=str.encode)


def test_batches_that_came_in_another_order_are_put_in_theirs(tmp_path: Path) -> None:
    runs, numbers = PostingRuns(tmp_path), Numbers()
    worker = Inverter(runs, numbers, 1 << 30)
    worker.append(2, *arrays([{"b": 1}, {"a": 3}], numbers))
    worker.append(0, *arrays([{"a": 1, "b": 2}, {}], numbers))
    worker.close()
    assert merged(runs, 100) == {"a": [(0, 1), (3, 3)], "b": [(0, 2), (2, 1)]}


@pytest.mark.parametrize("most", [10, 100])
def test_chunks_are_of_about_the_size_that_is_wanted(tmp_path: Path, most: int) -> None:
    runs = PostingRuns(tmp_path)
    for worker in range(3):
        numbers = Numbers()
        inverter = Inverter(runs, numbers, 1 << 30)
        inverter.append(1000 * worker, *arrays([{f"t{n % 500}": 1} for n in range(1000)], numbers))
        inverter.close()
    sizes = [int(runs.merged(edges).df.sum()) for edges in runs.chunks(most)]
    assert sum(sizes) == 3000
    assert max(sizes) <= 2 * most + 6  # 6: the postings of one term
    assert len(sizes) < 3 * 3000 / most
