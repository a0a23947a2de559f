"""HNSW graphs, linked and searched by products of int8 vectors (Malkov and Yashunin, TPAMI 2020, algorithms 1, 2, 4 and 5).

A filter applies during the walk: rows that do not pass lead to their neighbors, but are not returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Bools, Float32s, Int8s, Int16s, Int32s, Int64s
from ...core.strings import offsets_of
from ...core.work import thread_count
from ...index.embeddings.vectors import JoinedEmbeddings
from ...storage.arrays import fixed
from ...storage.compiled import compiled
from ...storage.pinned import buffer, pinned, view
from ...storage.threads import in_threads
from ..llvm import CACHE_LINE, prefetch
from ..results import Best
from .vectors import StoredVectors, best_of

BLOCK_VECTORS = 1 << 14  # vectors quantized at a time
QUERIES_PER_CALL = 32  # queries that a thread takes at a time
BATCH_ROWS = 1 << 9  # maximum number of rows that are linked at a time
LINKED_SHARE = 16  # at most one row for so many that are linked already
ROWS_PER_CALL = 32  # rows that a thread links at a time
EF_SEARCH = 256  # minimum of the default of efSearch
SEED = 7
LEVELS = 127  # of int8
MARGIN = 2.0  # about 5 standard deviations of the difference of two products: 5 · √2 / √12 of a level times the query's length
ALL_ROWS: Bools = fixed(np.zeros(0, np.bool_))  # in place of a mask
CODES, SCALES, NEIGHBORS, OFFSETS, STARTS = range(5)  # arrays of a graph
MARKS, CLOCK, HEAP, ROWS, PRODUCTS = range(5)  # arrays of a search
GraphArrays = tuple[Int8s, Float32s, Int32s, Int64s, Int64s]
PinnedArray = tuple[NDArray[np.generic], type[np.generic]]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """How many rows a search returns, and which.

    Args:
        min_count: Minimum number of rows, if the graph leads to enough rows.
        count: Maximum number of rows.
        visits: efSearch: number of the nearest rows that pass whose neighbors are visited; None: `count`, at least EF_SEARCH.
        allowed: bool (rows,): the rows that pass; None: all.
    """

    min_count: int
    count: int
    visits: int | None = None
    allowed: Bools | None = None

    def of_walk(self) -> tuple[int, int, int, Bools]:
        """Minimum and maximum number of rows that a walk returns, its efSearch, and its mask of rows."""
        visits = self.visits or max(self.count, EF_SEARCH)
        count = min(self.count, max(self.min_count, visits))
        return self.min_count, count, max(visits, count), ALL_ROWS if self.allowed is None else fixed(self.allowed)


class Walk(NamedTuple):
    """Arrays and limits that compiled searches of a graph read beside their queries.

    Attributes:
        graph: Addresses of the arrays of the graph.
        entry: The row at which a search begins.
        top: Its highest level.
        levels: Greatest whole number of a query's dimensions.
        visits: efSearch.
        min_count: Minimum number of rows.
        allowed: The rows that pass; ALL_ROWS: all.
        buffers: Addresses of the arrays of a search.
    """

    graph: Int64s
    entry: int
    top: int
    levels: int
    visits: int
    min_count: int
    allowed: Bools
    buffers: Int64s


class Graph:
    """A graph over the rows of some embeddings, with an int8 copy of them.

    Args:
        embeddings: The vectors.
        width: Greatest number of a row's neighbors on each level above 0; on level 0 there are at most twice as many.
        levels: int32 (rows,): the highest level of each row.
        neighbors: int32: the neighbors of each row, level by level; -1 follows the last neighbor of a level. None: a graph
            without links.

    Attributes:
        width: As above.
        levels: As above.
        neighbors: As above, int32.
        shape: Number of rows, and of dimensions.
        order: int64: the rows that are not zeros, from the highest level down, in an arbitrary order otherwise. Each search
            begins at the first one.
    """

    def __init__(self, embeddings: JoinedEmbeddings, width: int, levels: Int32s, neighbors: Int32s | None = None) -> None:
        self.shape = count, dim = len(embeddings), embeddings.dim
        self.width, self.levels, self._single = width, levels, embeddings.single
        self._levels = min(np.iinfo(np.int16).max, np.iinfo(np.int32).max // (LEVELS * dim))  # products fit into an int32
        codes, scales = _aligned((count, dim), np.int8), np.empty(count, np.float32)
        for start in range(0, count, BLOCK_VECTORS):
            rows = slice(start, min(start + BLOCK_VECTORS, count))
            _quantize(embeddings.decoded(rows), codes[rows], scales[rows])
        self.starts = np.concatenate([[0], width * np.arange(2, max(levels, default=0) + 3)])
        self.offsets = offsets_of(self.starts[levels + 1])
        self.neighbors = _aligned((int(self.offsets[-1]),), np.int32)
        self.neighbors[:] = -1 if neighbors is None else neighbors
        shuffled = np.random.default_rng(SEED).permutation(count)
        shuffled = shuffled[scales[shuffled] > 0]
        self.order = shuffled[np.argsort(-levels[shuffled], kind="stable")]
        entry = int(self.order[0]) if len(self.order) else 0
        self._arrays = (
            (codes, np.int8),
            (scales, np.float32),
            (self.neighbors, np.int32),
            (self.offsets, np.int64),
            (self.starts, np.int64),
        )
        self._graph = pinned(self._arrays), entry, int(levels[entry]) if count else 0
        self._buffers: list[tuple[Int64s, tuple[PinnedArray, ...]]] = []  # of finished searches, for reuse

    def link(self, effort: int) -> None:
        """Link the rows, batch by batch: first to rows of earlier batches, then these to them.

        The graph is the same with any number of threads.

        Args:
            effort: efConstruction: number of the nearest rows among which neighbors are chosen.
        """
        linked = min(1, len(self.order))
        while linked < len(self.order):
            rows = self.order[linked : linked + max(1, min(linked // LINKED_SHARE, BATCH_ROWS))]
            linked += len(rows)
            size = max(1, min(ROWS_PER_CALL, -(-len(rows) // thread_count())))

            def link_rows(start: int, rows: Int64s = rows, size: int = size) -> None:
                buffers = self._take_buffers()
                _link(rows[start : start + size], self.levels, *self._graph, self.shape[1], effort, ALL_ROWS, buffers[0])
                self._buffers.append(buffers)

            in_threads(link_rows, range(0, len(rows), size))
            for level in range(int(self.levels[rows].max()) + 1):
                self._link_back(rows[self.levels[rows] >= level], level)

    def _link_back(self, rows: Int64s, level: int) -> None:
        """Link the neighbors of rows on a level to these rows."""
        first, last = self.starts[level : level + 2]
        targets = self.neighbors[self.offsets[rows][:, None] + np.arange(first, last)]
        sources = np.repeat(rows, np.count_nonzero(targets >= 0, axis=1))
        targets = targets[targets >= 0].astype(np.int64)
        order = np.argsort(targets, kind="stable")
        targets, sources = targets[order], sources[order]
        bounds = np.flatnonzero(np.diff(targets, prepend=-1, append=-1))
        size = max(1, -(-(len(bounds) - 1) // thread_count()))

        def link_targets(start: int) -> None:
            _link_back(targets, sources, bounds[start : start + size + 1], self._graph[0], self.shape[1], level)

        in_threads(link_targets, range(0, len(bounds) - 1, size))

    def nearest(self, queries: Float32s, limits: WalkLimits) -> Int32s:
        """Return the nearest rows of each query, int32 (queries, count), best first by products of int8 vectors, then -1.

        Rows of zeros are omitted. If each document has one row, rows that are unlikely to be among the nearest `min_count` are
        omitted too: their product is below the product of row `min_count` by MARGIN errors of rounding.

        Args:
            queries: (queries, dimensions).
            limits: How many rows, and which.
        """
        min_count, count, ef, mask = limits.of_walk()
        out, min_count = np.full((len(queries), count), -1, dtype=np.int32), min_count if self._single else count

        def search(start: int) -> None:
            buffers, piece = self._take_buffers(), slice(start, start + QUERIES_PER_CALL)
            walk = Walk(*self._graph, self._levels, ef, min_count, mask, buffers[0])
            _search(queries[piece], walk, out[piece])
            self._buffers.append(buffers)

        in_threads(search, range(0, len(queries), QUERIES_PER_CALL))
        return out

    def best(self, queries: Float32s, limits: WalkLimits, stored: StoredVectors, k: int) -> tuple[list[Best], list[bool]]:
        """Score the `nearest` rows exactly: return the best `k` of each query, and whether it had `count` nearest rows.

        Args:
            queries: As in `nearest`.
            limits: As in `nearest`.
            stored: The vectors, one per document.
            k: Maximum number of documents per query.
        """
        size, (min_count, count, ef, mask) = len(queries), limits.of_walk()
        docs, scores = np.empty((size, min(k, count)), np.int32), np.empty((size, min(k, count)), np.float32)
        counts = np.empty((size, 2), np.int64)

        def search(start: int) -> None:
            buffers, piece = self._take_buffers(), slice(start, start + QUERIES_PER_CALL)
            walk = Walk(*self._graph, self._levels, ef, min_count, mask, buffers[0])
            _best(queries[piece], walk, count, stored, docs[piece], scores[piece], counts[piece])
            self._buffers.append(buffers)

        in_threads(search, range(0, size, QUERIES_PER_CALL))
        rankings = [(docs[i, :length], scores[i, :length]) for i, length in enumerate(counts[:, 0].tolist())]
        return rankings, [nearest == count for nearest in counts[:, 1].tolist()]

    def _take_buffers(self) -> tuple[Int64s, tuple[PinnedArray, ...]]:
        """Arrays of a search: marks of visited rows, the mark of the last search, a heap, and neighbors with products."""
        try:  # another thread may take the last ones
            return self._buffers.pop()
        except IndexError:
            count, width = self.shape[0], 2 * self.width
            marks, clock = (np.zeros(count, np.uint8), np.uint8), (np.zeros(1, np.uint8), np.uint8)
            heap = np.empty(count + 1, np.int64), np.int64
            rows, products = (np.empty(width, np.int64), np.int64), (np.empty(width, np.float32), np.float32)
            arrays = marks, clock, heap, rows, products
            return pinned(arrays), arrays


def drawn_levels(count: int, width: int) -> Int32s:
    """Levels of rows, int32 (count,): one row in `width` of each level is on the next one too."""
    draws = 1 - np.random.default_rng(SEED).random(count)
    return (-np.log(draws) / math.log(width)).astype(np.int32)


def _aligned(shape: tuple[int, ...], dtype: type[Scalar]) -> NDArray[Scalar]:
    """An empty array that starts at a line of the processor's cache, so that a row takes as few lines as possible."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return np.asarray(raw[start : start + size].view(dtype).reshape(shape))


@compiled()
def _quantize(vectors: Float32s, codes: Int8s, scales: Float32s) -> None:
    for row in range(len(vectors)):
        scales[row] = _round(vectors[row], LEVELS, codes[row])


@compiled()
def _round(vector: Float32s, levels: int, out: NDArray[np.signedinteger]) -> float:
    """Round a vector to whole numbers from -levels to levels, in `out`; return the scale that restores it."""
    largest = 0.0
    for x in vector:
        largest = max(largest, abs(np.float64(x)))
    factor = levels / largest if largest > 0 else 0.0
    for i in range(len(vector)):
        out[i] = np.rint(vector[i] * factor)
    return largest / levels


@compiled()
def _search(queries: Float32s, walk: Walk, out: Int32s) -> None:
    """Write the nearest rows of each query to `out`."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(walk.visits, np.int64)
    for i in range(len(queries)):
        _nearest(queries[i], walk, code, best, out[i])


@compiled()
def _best(
    queries: Float32s, walk: Walk, max_count: int, stored: StoredVectors, docs: Int32s, scores: Float32s, counts: Int64s
) -> None:
    """Write the best documents of each query and their exact scores; `counts` gets the number of documents and of rows."""
    code, best = np.empty(queries.shape[1], np.int16), np.empty(walk.visits, np.int64)
    rows, no_products = np.empty(max_count, np.int32), np.empty(0, np.float32)
    for i in range(len(queries)):
        row_count = _nearest(queries[i], walk, code, best, rows)
        nearest, exact = best_of(queries[i], stored, rows[:row_count], no_products, docs.shape[1])
        docs[i, : len(nearest)], scores[i, : len(nearest)] = nearest, exact
        counts[i, 0], counts[i, 1] = len(nearest), row_count


@compiled()
def _nearest(query: Float32s, walk: Walk, code: Int16s, best: Int64s, out: Int32s) -> int:
    """Write the nearest rows of a query to `out`, and return their number."""
    arrays, min_count = _arrays_of(walk.graph, len(query)), walk.min_count
    scales, starts = arrays[1], arrays[4]
    _round(query, walk.levels, code)
    row, product = _entry(code, arrays, walk.entry, walk.top, 0)
    count = _walk(code, arrays, row, product, starts[0], starts[1], walk.allowed, walk.buffers, best)
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
def _arrays_of(graph: Int64s, dim: int) -> GraphArrays:
    """Codes, scales, neighbors, offsets and starts of a graph."""
    scales, codes = view(graph, SCALES, np.float32), view(graph, CODES, np.int8)
    links = view(graph, NEIGHBORS, np.int32), view(graph, OFFSETS, np.int64), view(graph, STARTS, np.int64)
    return codes.reshape(len(scales), dim), scales, links[0], links[1], links[2]


@compiled()
def _walk(
    query: Int16s,
    arrays: GraphArrays,
    entry: int,
    product: float,
    first: int,
    last: int,
    allowed: Bools,
    buffers: Int64s,
    best: Int64s,
) -> int:
    """Fill `best`, a heap, with the keys of the nearest rows that pass, and return their number.

    The walk begins at the row `entry` and follows the neighbors from `first` to `last` of each row, those of a level.

    A key has the product, as an integer of the same order, in its upper 32 bits and the row in its lower 32 bits: greater keys
    are nearer. `heap` has the complements of the keys of rows whose neighbors are still to be visited, the nearest row first.
    """
    codes, scales, neighbors, offsets, _ = arrays
    marks, clock, heap = buffer(buffers, MARKS, np.uint8), buffer(buffers, CLOCK, np.uint8), buffer(buffers, HEAP, np.int64)
    rows, products = buffer(buffers, ROWS, np.int64), buffer(buffers, PRODUCTS, np.float32)
    bits = products.view(np.int32)
    clock[0] += 1
    if clock[0] == 0:  # all marks of a uint8 are used
        marks[:] = 0
        clock[0] = 1
    mark = clock[0]
    rows[0], products[0] = entry, product
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
        for i in range(offsets[row] + first, offsets[row] + last):
            neighbor = np.int64(neighbors[i])
            if neighbor < 0:
                break
            if marks[neighbor] != mark:
                marks[neighbor] = mark
                rows[fresh] = neighbor
                fresh += 1
                for line in range(0, codes.shape[1], CACHE_LINE):
                    prefetch(codes, neighbor, line)
        for i in range(fresh):
            products[i] = np.float32(_product(query, codes[rows[i]])) * scales[rows[i]]


@compiled()
def _entry(query: Int16s, arrays: GraphArrays, row: np.int64, top: int, lowest: int) -> tuple[np.int64, float]:
    """Descend from a row on the level `top` to one above `lowest` that is nearer than its neighbors; and its product."""
    codes, scales, neighbors, offsets, starts = arrays
    best = np.float32(_product(query, codes[row])) * scales[row]
    for level in range(top, lowest, -1):
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
def _link(
    rows: Int64s, levels: Int32s, graph: Int64s, entry: int, top: int, dim: int, effort: int, allowed: Bools, buffers: Int64s
) -> None:
    """Choose the neighbors of rows on each of their levels; no row has them as a neighbor yet."""
    arrays, links = _arrays_of(graph, dim), buffer(graph, NEIGHBORS, np.int32)
    codes, scales, _, offsets, starts = arrays
    code, best = np.empty(dim, np.int16), np.empty(effort, np.int64)
    number = np.empty(1, np.float32)
    bits = number.view(np.int32)
    for row in rows:
        for i in range(dim):
            code[i] = codes[row, i]
        nearest, product = _entry(code, arrays, entry, top, levels[row])
        for level in range(levels[row], -1, -1):
            first, last = starts[level], starts[level + 1]
            count = _walk(code, arrays, nearest, product, first, last, allowed, buffers, best)
            keys = np.sort(best[:count])[::-1]
            _choose(keys, row, codes, scales, links[offsets[row] + first : offsets[row] + last])
            nearest, bits[0] = keys[0] & 0xFFFFFFFF, _bits(keys[0] >> 32)
            product = number[0]


@compiled()
def _link_back(targets: Int64s, sources: Int64s, bounds: Int64s, graph: Int64s, dim: int, level: int) -> None:
    """Add `sources` to the neighbors of `targets`, grouped by these; of too many for a row, some are chosen again."""
    codes, scales, _, offsets, starts = _arrays_of(graph, dim)
    links, number = buffer(graph, NEIGHBORS, np.int32), np.empty(1, np.float32)
    bits = number.view(np.int32)
    for group in range(len(bounds) - 1):
        row, added = targets[bounds[group]], sources[bounds[group] : bounds[group + 1]]
        out, count = links[offsets[row] + starts[level] : offsets[row] + starts[level + 1]], 0
        while count < len(out) and out[count] >= 0:
            count += 1
        if count + len(added) <= len(out):
            out[count : count + len(added)] = added
            continue
        keys = np.empty(count + len(added), np.int64)
        for i in range(len(keys)):
            other = np.int64(out[i]) if i < count else added[i - count]
            number[0] = np.float32(_product(codes[row], codes[other])) * scales[other]
            keys[i] = _bits(np.int64(bits[0])) << 32 | other
        _choose(np.sort(keys)[::-1], row, codes, scales, out)


@compiled()
def _choose(keys: Int64s, row: int, codes: Int8s, scales: Float32s, out: Int32s) -> None:
    """Choose neighbors of a row in the order of `keys`: those that are nearer to it than to each one chosen before."""
    number, count = np.empty(1, np.float32), 0
    bits = number.view(np.int32)
    for key in keys:
        if count == len(out):
            break
        candidate = key & 0xFFFFFFFF
        bits[0] = _bits(key >> 32)
        limit, nearer = number[0] * scales[row], True
        for i in range(count):
            other = out[i]
            if np.float32(_product(codes[candidate], codes[other])) * scales[other] * scales[candidate] > limit:
                nearer = False
                break
        if nearer:
            out[count] = candidate
            count += 1
    out[count:] = -1


@compiled()
def _bits(number: int) -> int:
    """Convert the bits of a float32 to an integer of the same order, or back."""
    return number if number >= 0 else number ^ 0x7FFFFFFF


@compiled()
def _product(query: NDArray[np.signedinteger], code: Int8s) -> np.int32:
    total = np.int32(0)
    for i in range(len(query)):
        total = np.int32(total + np.int32(np.int32(query[i]) * np.int32(code[i])))  # Numba widens each operation
    return total


@compiled()
def _push(heap: Int64s, size: int, key: int) -> None:
    """Add a key to a heap of `size` keys, smallest first."""
    while size > 0 and heap[(size - 1) >> 1] > key:
        heap[size] = heap[(size - 1) >> 1]
        size = (size - 1) >> 1
    heap[size] = key


@compiled()
def _replace(heap: Int64s, size: int, key: int) -> None:
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
