"""Pools: weighted lists that are built while an index is searched, as input of the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.arrays import fixed
from .kernel import BLOCK, DEPTHS, WINDOW, pack, summarize
from .packed import NO_CODES, NO_PLACE_CODES, NO_REST, NO_SATURATION, NO_WIDTHS, SAME_WEIGHTS, long_lists, offsets_of


@dataclass(frozen=True, eq=False)
class PooledLists:
    """Some lists of a pool as input of the search; its arrays hold other lists as well.

    Args:
        numbers: int32; numbers of the lists.
        postings: The `lists` argument of the search.
        limits: The `bounds_of` argument of the search.
    """

    numbers: NDArray[np.int32]
    postings: tuple[Any, ...]
    limits: tuple[NDArray[Any], ...]


class ImpactPool:
    """Growing collection of weighted lists, with the bounds by which the search prunes.

    Args:
        documents: Number of documents.

    Attributes:
        nbytes: Size in bytes.
    """

    def __init__(self, documents: int) -> None:
        self._documents, self._windows = documents, -(-documents // WINDOW)
        types = (np.int64, np.int64, np.uint32, np.uint16, np.float32)  # bounds, offsets, docs, places, weights
        self._lists = _GrowingArrays([((), dtype) for dtype in types])
        self._lists.append([np.zeros(int(not i), dtype) for i, dtype in enumerate(types)])  # bounds begin with 0
        self._terms = _GrowingArrays([((), np.float32), ((len(DEPTHS),), np.uint16), ((), np.bool_), ((), np.int32)])
        self._rows = _GrowingArrays([((self._windows * (WINDOW // BLOCK),), np.uint8), ((self._windows + 1,), np.uint32)])
        self._update()

    def add(self, bounds: NDArray[np.int64], docs: NDArray[np.int32], weights: NDArray[np.float32]) -> int:
        """Add lists; return the number of the first.

        Args:
            bounds: Start of each list, and the end of the last.
            docs: Documents of the lists, ascending in each.
            weights: Weights of the documents.
        """
        lists = len(bounds) - 1
        sizes = np.diff(bounds)
        long = long_lists(sizes, self._documents)
        row_of = np.full(lists, -1, dtype=np.int32)
        row_of[long] = np.arange(len(long))
        best, kth = np.zeros(lists, dtype=np.float32), np.zeros((lists, len(DEPTHS)), dtype=np.uint16)
        positive, rows = np.zeros(lists, dtype=np.bool_), np.zeros((len(long), self._rows.width(0)), dtype=np.uint8)
        summarize(0, lists, bounds, fixed(docs), weights, fixed(row_of), best, kth, positive, rows)
        offsets, long_size = offsets_of(bounds, row_of), int(sizes[long].sum())
        short_size = int(bounds[-1]) - long_size
        packed_docs, places = np.empty(short_size, np.uint32), np.empty(long_size, np.uint16)
        starts = np.empty((len(long), self._windows + 1), dtype=np.uint32)
        inputs = (fixed(array) for array in (bounds, docs, np.zeros(0, np.uint16), row_of, offsets, NO_WIDTHS))
        pack(*inputs, (packed_docs, np.zeros(0, np.uint16), places, np.zeros(0, np.uint8)), starts)
        _, _, docs_before, places_before, postings_before = self._lists.sizes
        offsets += np.where(row_of < 0, docs_before, places_before)
        row_of[long] += self._rows.sizes[0]
        first = self._terms.sizes[0]
        self._lists.append([bounds[1:] + postings_before, offsets, packed_docs, places, weights])
        self._terms.append([best, kth, positive, row_of])
        self._rows.append([rows, starts])
        self._update()
        return first

    def lists(self, numbers: NDArray[np.int32]) -> PooledLists:
        """Return lists by number as input of the search."""
        return PooledLists(numbers, self._postings, self._limits)

    def _update(self) -> None:
        """Set the attributes to the arrays as they are now."""
        lists = tuple(map(fixed, self._lists.arrays))
        bounds, offsets, docs, places, weights = lists
        arrays = docs, NO_CODES, places, NO_PLACE_CODES, NO_WIDTHS
        self._postings: tuple[Any, ...] = bounds, offsets, *arrays, weights, NO_SATURATION, NO_REST
        self._limits: tuple[NDArray[Any], ...] = (*map(fixed, (*self._terms.arrays, *self._rows.arrays)), SAME_WEIGHTS)
        self.nbytes = sum(array.nbytes for array in (*lists, *self._limits))


class _GrowingArrays:
    """Arrays that grow at their ends; earlier views stay valid."""

    def __init__(self, kinds: list[tuple[tuple[int, ...], Any]]) -> None:
        self._buffers: list[NDArray[Any]] = [np.zeros((0, *shape), dtype) for shape, dtype in kinds]
        self.sizes = [0] * len(kinds)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(buffer[:size] for buffer, size in zip(self._buffers, self.sizes, strict=True))

    def width(self, number: int) -> int:
        return int(self._buffers[number].shape[1])

    def append(self, arrays: list[NDArray[Any]]) -> None:
        for i, array in enumerate(arrays):
            size, buffer = self.sizes[i], self._buffers[i]
            if size + len(array) > len(buffer):
                larger = np.empty((2 * (size + len(array)), *buffer.shape[1:]), buffer.dtype)
                larger[:size] = buffer[:size]
                self._buffers[i] = buffer = larger
            buffer[size : size + len(array)] = array
            self.sizes[i] = size + len(array)
