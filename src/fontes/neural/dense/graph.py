"""Search in an HNSW graph by products of int8 vectors (Malkov and Yashunin, TPAMI 2020, algorithms 2 and 5).

A filter applies during the walk: rows that do not pass lead to their neighbors, but are not returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.threads import in_threads
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings
from ...storage.arrays import fixed
from ...storage.compiled import compiled
from ...storage.pinned import buffer, pinned, view
from ..llvm import cgutils, intrinsic, ir, types
from .vectors import Best, best_of, without_float16

BLOCK_VECTORS = 1 << 14  # vectors quantized at a time
QUERIES_PER_CALL = 32  # queries that a thread takes at a time
LEVELS = 127  # of int8
MARGIN = 2.0  # about 5 standard deviations of the difference of two products: 5 · √2 / √12 of a level times the query's length
LINE = 64  # bytes of a line of the processor's cache
ALL_ROWS: NDArray[np.bool_] = fixed(np.zeros(0, np.bool_))  # in place of a mask
CODES, SCALES, NEIGHBORS, OFFSETS, STARTS = range(5)  # arrays of a graph
MARKS, CLOCK, HEAP, ROWS, PRODUCTS = range(5)  # arrays of a search


class Graph:
    """A graph over the rows of some embeddings, with an int8 copy of them.

    Args:
        embeddings: The vectors.
        neighbors: int32: the neighbors of each row, level by level; -1 follows the last neighbor of a level.
        offsets: (rows + 1,): the start of each row's neighbors.
        starts: The start of each level within the neighbors of a row.
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
        codes, scales = _aligned((count, dim), np.int8), np.empty(count, np.float32)
        for start in range(0, count, BLOCK_VECTORS):
            rows = slice(start, min(start + BLOCK_VECTORS, count))
            _quantize(embeddings.decoded(rows), codes[rows], scales[rows])
        links = _aligned(neighbors.shape, np.int32)
        links[:] = neighbors
        self._arrays = (codes, np.int8), (scales, np.float32), (links, np.int32), *_int64(offsets, starts)
        self._graph = pinned(self._arrays), entry, top
        self._width, self._single = int(starts[1]), embeddings.single
        self._buffers: list[tuple[NDArray[np.int64], Any]] = []  # of finished searches, for reuse

    def nearest(
        self, queries: NDArray[np.float32], min_count: int, count: int, visits: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]:
        """Return the nearest rows of each query, int32 (queries, count), best first by products of int8 vectors, then -1.

        Rows of zeros are omitted. If each document has one row, rows that are unlikely to be among the nearest `min_count` are
        omitted too: their product is below the product of row `min_count` by MARGIN errors of rounding.

        Args:
            queries: (queries, dimensions).
            min_count: Minimum number of rows, if the graph leads to enough rows.
            count: Maximum number of rows.
            visits: efSearch, at least `count`: number of the nearest rows that pass whose neighbors are visited.
            allowed: bool (rows,): the rows that pass; None: all.
        """
        out, ef = np.full((len(queries), count), -1, dtype=np.int32), max(visits, count)
        mask, min_count = ALL_ROWS if allowed is None else fixed(allowed), min_count if self._single else count

        def search(start: int) -> None:
            buffers, piece = self._take_buffers(), slice(start, start + QUERIES_PER_CALL)
            _search(queries[piece], *self._graph, self._levels, ef, min_count, mask, buffers[0], out[piece])
            self._buffers.append(buffers)

        in_threads(search, range(0, len(queries), QUERIES_PER_CALL))
        return out

    def best(
        self,
        queries: NDArray[np.float32],
        min_count: int,
        count: int,
        visits: int,
        allowed: NDArray[np.bool_] | None,
        embeddings: Embeddings,
        ranks: NDArray[np.uint32],
        longest: float,
        k: int,
    ) -> tuple[list[Best], list[bool]]:
        """Score the `nearest` rows exactly: return the best `k` of each query, and whether it had `count` nearest rows.

        Args:
            queries: As in `nearest`, as are the four following parameters.
            embeddings: The vectors of the only segment, without deletions: one per document, and no RaBitQ codes.
            ranks: uint32 (documents,): the rank of each document's id in ascending order.
            longest: The length of the longest vector.
            k: Maximum number of documents per query.
        """
        size, ef, mask = len(queries), max(visits, count), ALL_ROWS if allowed is None else fixed(allowed)
        docs, scores = np.empty((size, min(k, count)), np.int32), np.empty((size, min(k, count)), np.float32)
        counts = np.empty((size, 2), np.int64)
        vectors = without_float16(embeddings.vectors), embeddings.scales, embeddings.norms, embeddings.bounds, longest, ranks

        def search(start: int) -> None:
            buffers, piece = self._take_buffers(), slice(start, start + QUERIES_PER_CALL)
            walk = *self._graph, self._levels, ef, count, min_count, mask, buffers[0]
            _best(queries[piece], *walk, *vectors, docs[piece], scores[piece], counts[piece])
            self._buffers.append(buffers)

        in_threads(search, range(0, size, QUERIES_PER_CALL))
        rankings = [(docs[i, :length], scores[i, :length]) for i, length in enumerate(counts[:, 0].tolist())]
        return rankings, [nearest == count for nearest in counts[:, 1].tolist()]

    def _take_buffers(self) -> tuple[NDArray[np.int64], Any]:
        """Arrays of a search: marks of visited rows, the mark of the last search, a heap, and neighbors with products."""
        try:  # another thread may take the last ones
            return self._buffers.pop()
        except IndexError:
            count, width = self.shape[0], max(1, self._width)
            marks, clock = (np.zeros(count, np.uint8), np.uint8), (np.zeros(1, np.uint8), np.uint8)
            heap = np.empty(count + 1, np.int64), np.int64
            rows, products = (np.empty(width, np.int64), np.int64), (np.empty(width, np.float32), np.float32)
            arrays = marks, clock, heap, rows, products
            return pinned(arrays), arrays


def _int64(*arrays: NDArray[np.integer[Any]]) -> Iterator[tuple[NDArray[np.int64], type[np.int64]]]:
    return ((np.ascontiguousarray(array, np.int64), np.int64) for array in arrays)


def _aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty array that starts at a line of the processor's cache, so that a row takes as few lines as possible."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return np.asarray(raw[start : start + size].view(dtype).reshape(shape))


def _prefetch(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask the processor to load the cache line of `array[row, column]`."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, byte, word = signature.args[0], ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = cgutils.get_item_pointer(
            target, builder, kind, target.make_array(kind)(target, builder, arguments[0]), arguments[1:]
        )
        function = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])  # data to read, into all caches
        return target.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


@compiled()
def _quantize(vectors: Any, codes: Any, scales: Any) -> None:
    for row in range(len(vectors)):
        scales[row] = _round(vectors[row], LEVELS, codes[row])


@compiled()
def _round(vector: Any, levels: int, out: Any) -> float:
    """Round a vector to whole numbers from -levels to levels, in `out`; return the scale that restores it."""
    largest = 0.0
    for x in vector:
        largest = max(largest, abs(np.float64(x)))
    factor = levels / largest if largest > 0 else 0.0
    for i in range(len(vector)):
        out[i] = np.rint(vector[i] * factor)
    return largest / levels


@compiled()
def _search(
    queries: Any,
    graph: Any,
    entry: int,
    top: int,
    levels: int,
    visits: int,
    min_count: int,
    allowed: Any,
    buffers: Any,
    out: Any,
) -> None:
    """Write the nearest rows of each query to `out`."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(visits, np.int64)
    for i in range(len(queries)):
        _nearest(queries[i], graph, entry, top, levels, min_count, allowed, buffers, code, best, out[i])


@compiled()
def _best(
    queries: Any,
    graph: Any,
    entry: int,
    top: int,
    levels: int,
    visits: int,
    max_count: int,
    min_count: int,
    allowed: Any,
    buffers: Any,
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
    """Write the best documents of each query and their exact scores; `counts` gets the number of documents and of rows."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(visits, np.int64)
    rows, no_products = np.empty(max_count, np.int32), np.empty(0, np.float32)
    for i in range(len(queries)):
        row_count = _nearest(queries[i], graph, entry, top, levels, min_count, allowed, buffers, code, best, rows)
        nearest, exact = best_of(
            queries[i], vectors, scales, norms, bounds, rows[:row_count], no_products, longest, ranks, docs.shape[1]
        )
        docs[i, : len(nearest)], scores[i, : len(nearest)] = nearest, exact
        counts[i, 0], counts[i, 1] = len(nearest), row_count


@compiled()
def _nearest(
    query: Any,
    graph: Any,
    entry: int,
    top: int,
    levels: int,
    min_count: int,
    allowed: Any,
    buffers: Any,
    code: Any,
    best: Any,
    out: Any,
) -> int:
    """Write the nearest rows of a query to `out`, and return their number."""
    scales, codes = view(graph, SCALES, np.float32), view(graph, CODES, np.int8)
    links = view(graph, NEIGHBORS, np.int32), view(graph, OFFSETS, np.int64), view(graph, STARTS, np.int64)
    arrays = codes.reshape(len(scales), len(query)), scales, links[0], links[1], links[2], entry, top
    neighbors = buffer(buffers, ROWS, np.int64), buffer(buffers, PRODUCTS, np.float32)
    views = (
        buffer(buffers, MARKS, np.uint8),
        buffer(buffers, CLOCK, np.uint8),
        buffer(buffers, HEAP, np.int64),
        neighbors[0],
        neighbors[1],
    )
    _round(query, levels, code)
    count = _walk(code, arrays, allowed, views, best)
    keys, products = np.sort(best[:count])[::-1], np.empty(count, np.float32)
    ordered, squares, row_count = products.view(np.int32), 0.0, 0
    for x in code:
        squares += np.float64(x) * np.float64(x)
    for j in range(min(count, len(out))):
        row = keys[j] & 0xFFFFFFFF
        ordered[j] = _bits(keys[j] >> 32)
        if j >= min_count and products[j] < products[min_count - 1] - MARGIN * scales[row] * math.sqrt(squares):
            break
        out[j], row_count = row, j + 1
    return row_count


@compiled()
def _walk(query: Any, arrays: Any, allowed: Any, buffers: Any, best: Any) -> int:
    """Fill `best`, a heap, with the keys of the nearest rows that pass, and return their number.

    A key has the product, as an integer of the same order, in its upper 32 bits and the row in its lower 32 bits: greater keys
    are nearer. `heap` has the complements of the keys of rows whose neighbors are still to be visited, the nearest row first.
    """
    codes, scales, neighbors, offsets, starts, _, _ = arrays
    marks, clock, heap, rows, products = buffers
    bits = products.view(np.int32)
    clock[0] += 1
    if clock[0] == 0:  # all marks of a uint8 are used
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
            neighbor = np.int64(neighbors[i])
            if neighbor < 0:
                break
            if marks[neighbor] != mark:
                marks[neighbor] = mark
                rows[fresh] = neighbor
                fresh += 1
                for line in range(0, codes.shape[1], LINE):
                    prefetch(codes, neighbor, line)
        for i in range(fresh):
            products[i] = np.float32(_product(query, codes[rows[i]])) * scales[rows[i]]


@compiled()
def _entry(query: Any, arrays: Any) -> Any:
    """Descend the upper levels to a row that is nearer than its neighbors; return the row and its product."""
    codes, scales, neighbors, offsets, starts, row, top = arrays
    best = np.float32(_product(query, codes[row])) * scales[row]
    for level in range(top, 0, -1):
        last = np.int64(-1)
        while row != last:
            last = row
            for i in range(offsets[last] + starts[level], offsets[last] + starts[level + 1]):
                neighbor = np.int64(neighbors[i])
                if neighbor < 0:
                    break
                product = np.float32(_product(query, codes[neighbor])) * scales[neighbor]
                if product > best:
                    row, best = neighbor, product
    return row, best


@compiled()
def _bits(number: int) -> int:
    """Convert the bits of a float32 to an integer of the same order, or back."""
    return number if number >= 0 else number ^ 0x7FFFFFFF


@compiled()
def _product(query: Any, code: Any) -> Any:
    total = np.int32(0)
    for i in range(len(query)):
        total = np.int32(total + np.int32(np.int32(query[i]) * np.int32(code[i])))  # Numba widens each operation
    return total


@compiled()
def _push(heap: Any, size: int, key: int) -> None:
    """Add a key to a heap of `size` keys, smallest first."""
    while size > 0 and heap[(size - 1) >> 1] > key:
        heap[size] = heap[(size - 1) >> 1]
        size = (size - 1) >> 1
    heap[size] = key


@compiled()
def _replace(heap: Any, size: int, key: int) -> None:
    """Replace the first key of a heap of `size` keys."""
    parent, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[parent] = heap[child]
        parent, child = child, 2 * child + 1
    heap[parent] = key
