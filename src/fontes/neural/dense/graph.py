"""Search in an HNSW graph by products of int8 vectors (Malkov and Yashunin, TPAMI 2020, algorithms 2 and 5).

A filter applies on the way: rows that do not pass lead on to their neighbors, and are not returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.threads import in_threads
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings
from ...storage.compiled import compiled
from ...storage.pinned import pinned, view
from ..llvm import cgutils, intrinsic, ir, types
from .vectors import Best, best_of, readable

BLOCK = 1 << 14  # vectors quantized at a time
PIECE = 32  # queries that a thread takes at a time
LEVELS = 127  # of int8
MARGIN = 2.0  # about 5 standard deviations of the difference of two products: 5 · √2 / √12 of a level times the query's length
LINE = 64  # bytes of a line of the processor's cache
EVERY: NDArray[np.bool_] = np.zeros(0, np.bool_)
NO_PRODUCTS: NDArray[np.float32] = np.zeros(0, np.float32)
CODES, SCALES, NEIGHBORS, OFFSETS, STARTS = range(5)  # arrays of a graph
MARKS, CLOCK, HEAP, ROWS, PRODUCTS = range(5)  # arrays of a search


class Graph:
    """A graph over the rows of some embeddings, with an int8 copy of them.

    Args:
        embeddings: The vectors.
        neighbors: int32, level by level for each row, -1 after the last one of a level.
        offsets: (rows + 1,): where the neighbors of each row begin.
        starts: Where each level begins in the neighbors of a row.
        entry: The row where each search begins.
        top: The level of `entry`.
    """

    def __init__(
        self,
        embeddings: JoinedEmbeddings,
        neighbors: NDArray[np.int32],
        offsets: NDArray[np.integer[Any]],
        starts: NDArray[np.integer[Any]],
        entry: int,
        top: int,
    ) -> None:
        self.shape = count, dim = len(embeddings), embeddings.dim
        self._levels = min(np.iinfo(np.int16).max, np.iinfo(np.int32).max // (LEVELS * dim))  # products fit into an int32
        codes, scales, links = _aligned((count, dim), np.int8), np.empty(count, np.float32), _aligned(neighbors.shape, np.int32)
        for first in range(0, count, BLOCK):
            rows = slice(first, min(first + BLOCK, count))
            _quantize(embeddings.decoded(rows), codes[rows], scales[rows])
        links[:] = neighbors
        self._arrays = (codes, np.int8), (scales, np.float32), (links, np.int32), *_integers(offsets, starts)
        self._graph = pinned(self._arrays), entry, top
        self._width, self._single = int(starts[1]), embeddings.single
        self._spaces: list[tuple[NDArray[np.int64], Any]] = []  # of searches that have ended

    def nearest(
        self, queries: NDArray[np.float32], least: int, count: int, visits: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]:
        """Return the nearest rows of each query, best first by products of int8 vectors; -1 for missing ones.

        Rows of zeros are left out. Where each document has one row, so are those that are hardly among the nearest `least`:
        whose product is below that of the last one of these by MARGIN errors of rounding.

        Args:
            queries: (queries, dimensions).
            least: Number of rows that are returned at least, where the graph leads to so many.
            count: Number of rows that are returned at most.
            visits: efSearch, at least `count`: as many of the nearest rows that pass are followed to their neighbors.
            allowed: (rows,): the rows that pass; None: all.
        """
        out, most = np.full((len(queries), count), -1, dtype=np.int32), max(visits, count)
        passing, least = EVERY if allowed is None else allowed, least if self._single else count

        def search(first: int) -> None:
            space, piece = self._space(), slice(first, first + PIECE)
            _search(queries[piece], *self._graph, self._levels, most, least, passing, space[0], out[piece])
            self._spaces.append(space)

        in_threads(search, range(0, len(queries), PIECE))
        return out

    def best(
        self,
        queries: NDArray[np.float32],
        least: int,
        count: int,
        visits: int,
        allowed: NDArray[np.bool_] | None,
        embeddings: Embeddings,
        ranks: NDArray[np.uint32],
        longest: float,
        k: int,
    ) -> tuple[list[Best], list[bool]]:
        """Score the `nearest` rows exactly: return the best `k` of each query, and whether it had all `count` of them.

        Args:
            queries: As in `nearest`, as are the four that follow.
            embeddings: The vectors of the only segment, without deletions, one for each document, and no RaBitQ codes.
            ranks: The positions of the documents' ids in ascending order.
            longest: The length of the longest vector.
            k: Maximum number of documents for each query.
        """
        size, most, passing = len(queries), max(visits, count), EVERY if allowed is None else allowed
        docs, scores = np.empty((size, min(k, count)), np.int32), np.empty((size, min(k, count)), np.float32)
        counts = np.empty((size, 2), np.int64)
        vectors = readable(embeddings.vectors), embeddings.scales, embeddings.norms, embeddings.bounds, longest, ranks

        def search(first: int) -> None:
            space, piece = self._space(), slice(first, first + PIECE)
            walk = *self._graph, self._levels, most, count, least, passing, space[0]
            _best(queries[piece], *walk, *vectors, docs[piece], scores[piece], counts[piece])
            self._spaces.append(space)

        in_threads(search, range(0, size, PIECE))
        rankings = [(docs[i, :size], scores[i, :size]) for i, size in enumerate(counts[:, 0].tolist())]
        return rankings, [near == count for near in counts[:, 1].tolist()]

    def _space(self) -> tuple[NDArray[np.int64], Any]:
        """Marks of rows that a search has met, the mark of the last search, a heap, and rows and products of neighbors."""
        try:  # another thread may take the last one
            return self._spaces.pop()
        except IndexError:
            count, width = self.shape[0], max(1, self._width)
            marks, heap = (np.zeros(count, np.uint8), np.uint8), (np.empty(count + 1, np.int64), np.int64)
            near = (np.empty(width, np.int64), np.int64), (np.empty(width, np.float32), np.float32)
            arrays = marks, (np.zeros(1, np.uint8), np.uint8), heap, *near
            return pinned(arrays), arrays


def _integers(*arrays: NDArray[np.integer[Any]]) -> Iterator[tuple[NDArray[np.int64], type[np.int64]]]:
    return ((np.ascontiguousarray(array, np.int64), np.int64) for array in arrays)


def _aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array that begins with a line of the cache, so that a row has no more lines than it needs."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    return np.asarray(raw[first : first + size].view(dtype).reshape(shape))


def _prefetch(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask the processor to load the cache line of a number soon."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, byte, word = signature.args[0], ir.IntType(8).as_pointer(), ir.IntType(32)
        place = cgutils.get_item_pointer(
            target, builder, kind, target.make_array(kind)(target, builder, arguments[0]), arguments[1:]
        )
        function = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(place, byte), word(0), word(3), word(1)])  # to read, into all caches, data
        return target.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


@compiled()
def _quantize(vectors: Any, codes: Any, scales: Any) -> None:
    for row in range(len(vectors)):
        scales[row] = _rounded(vectors[row], LEVELS, codes[row])


@compiled()
def _rounded(vector: Any, levels: int, out: Any) -> float:
    """Write whole numbers from -levels to levels in proportion to a vector; return the factor that was divided by."""
    most = 0.0
    for x in vector:
        most = max(most, abs(np.float64(x)))
    factor = levels / most if most > 0 else 0.0
    for i in range(len(vector)):
        out[i] = np.rint(vector[i] * factor)
    return most / levels


@compiled()
def _search(
    queries: Any, graph: Any, entry: int, top: int, levels: int, visits: int, least: int, allowed: Any, space: Any, out: Any
) -> None:
    """Write the nearest rows of each query to `out`."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(visits, np.int64)
    for i in range(len(queries)):
        _nearest(queries[i], graph, entry, top, levels, least, allowed, space, code, best, out[i])


@compiled()
def _best(
    queries: Any,
    graph: Any,
    entry: int,
    top: int,
    levels: int,
    visits: int,
    most: int,
    least: int,
    allowed: Any,
    space: Any,
    vectors: Any,
    scales: Any,
    norms: Any,
    bounds: Any,
    longest: float,
    ranks: Any,
    docs: Any,
    scores: Any,
    counts: Any,
) -> None:
    """Write the best documents of each query, with exact scores, and the numbers of these and of the nearest rows."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(visits, np.int64)
    rows = np.empty(most, np.int32)
    for i in range(len(queries)):
        near = _nearest(queries[i], graph, entry, top, levels, least, allowed, space, code, best, rows)
        nearest, exact = best_of(
            queries[i], vectors, scales, norms, bounds, rows[:near], NO_PRODUCTS, longest, ranks, docs.shape[1]
        )
        docs[i, : len(nearest)], scores[i, : len(nearest)] = nearest, exact
        counts[i, 0], counts[i, 1] = len(nearest), near


@compiled()
def _nearest(
    query: Any,
    graph: Any,
    entry: int,
    top: int,
    levels: int,
    least: int,
    allowed: Any,
    space: Any,
    code: Any,
    best: Any,
    out: Any,
) -> int:
    """Write the nearest rows of a query to `out`, and return their number."""
    scales, codes = view(graph, SCALES, np.float32), view(graph, CODES, np.int8)
    links = view(graph, NEIGHBORS, np.int32), view(graph, OFFSETS, np.int64), view(graph, STARTS, np.int64)
    arrays = codes.reshape(len(scales), len(query)), scales, links[0], links[1], links[2], entry, top
    near = view(space, ROWS, np.int64), view(space, PRODUCTS, np.float32)
    buffers = view(space, MARKS, np.uint8), view(space, CLOCK, np.uint8), view(space, HEAP, np.int64), near[0], near[1]
    _rounded(query, levels, code)
    count = _walk(code, arrays, allowed, buffers, best)
    keys, products = np.sort(best[:count])[::-1], np.empty(count, np.float32)
    ordered, squares, kept = products.view(np.int32), 0.0, 0
    for x in code:
        squares += np.float64(x) * np.float64(x)
    for j in range(min(count, len(out))):
        row = keys[j] & 0xFFFFFFFF
        ordered[j] = _bits(keys[j] >> 32)
        if j >= least and products[j] < products[least - 1] - MARGIN * scales[row] * math.sqrt(squares):
            break
        out[j], kept = row, j + 1
    return kept


@compiled()
def _walk(query: Any, arrays: Any, allowed: Any, space: Any, best: Any) -> int:
    """Fill `best`, a heap, with the keys of the nearest rows that pass, and return their number.

    A key is the product, as an integer in the same order, above the row: greater keys are nearer. `heap` has the complements
    of the keys of rows whose neighbors are still to be looked at, the nearest first.
    """
    codes, scales, neighbors, offsets, starts, _, _ = arrays
    marks, clock, heap, rows, products = space
    bits = products.view(np.int32)
    clock[0] += 1
    if clock[0] == 0:  # all marks are used
        marks[:] = 0
        clock[0] = 1
    mark = clock[0]
    rows[0], products[0] = _entry(query, arrays)
    marks[rows[0]] = mark
    fresh, size, count = 1, 0, 0
    while True:
        for i in range(fresh):
            key = _bits(np.int64(bits[i])) << 32 | rows[i]
            if count == len(best) and key < best[0]:
                continue
            _push(heap, size, ~key)
            size += 1
            if scales[rows[i]] > 0 and (len(allowed) == 0 or allowed[rows[i]]):
                if count < len(best):
                    _push(best, count, key)
                    count += 1
                else:
                    _replace(best, count, key)
        if size == 0 or (count == len(best) and ~heap[0] < best[0]):
            return count
        row = ~heap[0] & 0xFFFFFFFF
        size -= 1
        _replace(heap, size, heap[size])
        fresh = 0
        for i in range(offsets[row], offsets[row] + starts[1]):
            near = np.int64(neighbors[i])
            if near < 0:
                break
            if marks[near] != mark:
                marks[near] = mark
                rows[fresh] = near
                fresh += 1
                for line in range(0, codes.shape[1], LINE):
                    prefetch(codes, near, line)
        for i in range(fresh):
            products[i] = np.float32(_product(query, codes[rows[i]])) * scales[rows[i]]


@compiled()
def _entry(query: Any, arrays: Any) -> Any:
    """Descend the upper levels to the row that is nearer than its neighbors; return it and its product."""
    codes, scales, neighbors, offsets, starts, row, top = arrays
    best = np.float32(_product(query, codes[row])) * scales[row]
    for level in range(top, 0, -1):
        last = np.int64(-1)
        while row != last:
            last = row
            for i in range(offsets[last] + starts[level], offsets[last] + starts[level + 1]):
                near = np.int64(neighbors[i])
                if near < 0:
                    break
                product = np.float32(_product(query, codes[near])) * scales[near]
                if product > best:
                    row, best = near, product
    return row, best


@compiled()
def _bits(number: int) -> int:
    """The bits of a float32 as an integer of the same order, or back."""
    return number if number >= 0 else number ^ 0x7FFFFFFF


@compiled()
def _product(query: Any, code: Any) -> Any:
    total = np.int32(0)
    for i in range(len(query)):
        total = np.int32(total + np.int32(np.int32(query[i]) * np.int32(code[i])))  # Numba widens each operation
    return total


@compiled()
def _push(heap: Any, size: int, key: int) -> None:
    """Add a key to a heap, the least first, of `size` keys."""
    while size > 0 and heap[(size - 1) >> 1] > key:
        heap[size] = heap[(size - 1) >> 1]
        size = (size - 1) >> 1
    heap[size] = key


@compiled()
def _replace(heap: Any, size: int, key: int) -> None:
    """Replace the first key of a heap of `size` keys."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = key
