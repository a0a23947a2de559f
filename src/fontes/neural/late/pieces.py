"""Work on documents divided by their tokens, for threads to share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


def in_threads(part: Callable[[int, int], object], edges: Sequence[int], threads: int) -> None:
    """Calls `part` with each pair of neighbouring edges."""
    if threads == 1 or len(edges) <= 2:
        for first, last in itertools.pairwise(edges):
            part(first, last)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, edges[:-1], edges[1:]))


def edges_of(tokens: NDArray[np.integer[Any]], most: int) -> list[int]:
    """Edges that divide documents with so many tokens into parts of about `most` tokens."""
    ends = np.cumsum(tokens)
    inner = np.searchsorted(ends, np.arange(most, ends[-1] if len(ends) else 0, most))
    edges: list[int] = np.unique([0, *inner, len(tokens)]).tolist()
    return edges
