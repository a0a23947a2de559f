"""Exact search in vectors: candidates by a blocked matrix product with an error bound, then scores summed in one fixed order.

A matrix product's last bits change with the shapes of the matrices and the number of threads. So it only finds candidates:
all documents that could be among the best k, given how far the product can be from the true value. Their scores are summed
again in float64, in one order, and rounded to float32 once; these are the scores of the run, whatever the batch, k and threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...core.run import order_keys
from ...core.strings import Strings
from ...index.attached.embeddings import Embeddings
from ...index.attached.joined_embeddings import JoinedEmbeddings, Share

QUERIES = 256  # that are searched together
SCORES = 1 << 23  # of a matrix product
NUMBERS = 1 << 24  # of the documents' vectors that are held decoded
FEW = 4  # queries for which loading the vectors takes longer than multiplying them
PIECE = 1 << 13  # of the vectors that a thread then takes at a time
UNIT = 2.0**-24  # of rounding in float32
RARE = 16  # where fewer than one document in so many is allowed, each of them gets its score

T = TypeVar("T")
Best = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents and scores of a query, in the one order


def nearest(
    embeddings: JoinedEmbeddings,
    queries: NDArray[np.float32],
    k: int,
    ids: Strings,
    threads: int | None,
    allowed: NDArray[np.bool_] | None = None,
) -> list[Best]:
    """For each query the `k` documents with the greatest inner product, and the products.

    Documents whose vectors are zeros are left out; a document with several vectors has the greatest product of them.

    Args:
        embeddings: The documents' vectors.
        queries: One a row.
        k: How many documents a query gets at most.
        ids: The documents' ids.
        threads: How many threads search; it bounds those of the matrix product too where threadpoolctl is installed.
        allowed: For each document whether it may be among them; None allows all.
    """
    chosen = None if allowed is None else np.flatnonzero(allowed).astype(np.int32)
    if chosen is not None and len(chosen) * RARE <= embeddings.documents:
        parts = _in_threads(
            lambda a, b: [rescored(embeddings, query, chosen, k, ids) for query in queries[a:b]], threads, len(queries)
        )
        return [best for part in parts for best in part]
    count = min(k, embeddings.documents if chosen is None else len(chosen))
    with _blas(threads):
        batches = [queries[first : first + QUERIES] for first in range(0, len(queries), QUERIES)]
        return [best for batch in batches for best in Search(embeddings, batch, count, ids, allowed).run(threads)]


def rescored(
    embeddings: JoinedEmbeddings, query: NDArray[np.float32], docs: NDArray[np.int32], k: int, ids: Strings
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best `k` of `docs` in the one order, with their exact scores."""
    scores = exact(embeddings, query, docs)
    there = scores > -np.inf
    docs, scores = docs[there], scores[there]
    keys = order_keys(scores, ids.rank[docs])
    place = np.argsort(keys)[::-1][:k]
    return docs[place], scores[place]


def exact(embeddings: JoinedEmbeddings, query: NDArray[np.float32], docs: NDArray[np.int32]) -> NDArray[np.float32]:
    """The score of each document: float64 products summed in one order, rounded once. -inf for a document of zeros alone."""
    out = np.empty(len(docs), dtype=np.float32)
    wide = query.astype(np.float64)
    for share, here, places in embeddings.split(docs):
        own = share.embeddings
        parts = _readable(own.vectors), own.dtype == "float16", own.scales, own.norms, own.bounds
        scores = np.empty(len(places), dtype=np.float32)
        _rescore(wide, parts, places.astype(np.int32), scores)
        out[here] = scores
    return out


def _readable(vectors: NDArray[Any]) -> NDArray[Any]:
    """The vectors for compiled code, which knows no float16: their bits."""
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


class Search:
    """The exact search of some queries: a buffer of candidates for each, and what a candidate must reach."""

    def __init__(
        self,
        embeddings: JoinedEmbeddings,
        queries: NDArray[np.float32],
        k: int,
        ids: Strings,
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        self._embeddings, self._queries, self._k, self._ids, self._allowed = embeddings, queries, k, ids, allowed
        room = min(embeddings.documents, 4 * k + 1024)
        self._least = np.full(len(queries), -np.inf)
        self._docs = np.zeros((len(queries), room), dtype=np.int32)
        self._values = np.zeros((len(queries), room), dtype=np.float32)
        self._counts = np.zeros(len(queries), dtype=np.int64)
        self._errors = self._error_bounds()

    def run(self, threads: int | None) -> list[Best]:
        """The best k documents of each query."""
        if not self._k:
            return [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * len(self._queries)
        for share in self._embeddings.shares:
            for first, last in self._blocks(share.embeddings):
                products = self._products(share.embeddings, first, last, threads)
                ordinals = self._ordinals(share, first, last)
                _in_threads(partial(self._collect, share, products, ordinals, first), threads, len(self._queries))
        return [best for part in _in_threads(self._best, threads, len(self._queries)) for best in part]

    def _error_bounds(self) -> NDArray[np.float64]:
        """For each query how far a product in float32, summed in any order, can be from the score.

        n u / (1 - n u) |q| |d| (Higham 2002, section 3.1), with n the dimensions, and some units more for scaling and rounding.
        """
        n = self._embeddings.dim + 4
        longest = float(self._embeddings.norms.max(initial=0))
        lengths = np.linalg.norm(self._queries.astype(np.float64), axis=1)
        return np.asarray(n * UNIT / (1 - n * UNIT) * 1.0001 * lengths * longest + n * 1e-37)

    def _blocks(self, embeddings: Embeddings) -> Iterator[tuple[int, int]]:
        """Ranges of a segment's documents whose vectors, and whose products with all queries, are held at a time."""
        most = max(1, min(SCORES // len(self._queries), NUMBERS // max(1, embeddings.dim)))
        bounds, first, count = embeddings.bounds, 0, embeddings.documents
        while first < count:
            last = first + most if not len(bounds) else int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
            last = min(max(last, first + 1), count)
            yield first, last
            first = last

    def _products(self, embeddings: Embeddings, first: int, last: int, threads: int | None) -> NDArray[np.float32]:
        """The inner products of the queries with the vectors of these documents; -inf with those of zeros."""
        a, b = embeddings.rows(first, last)
        products: NDArray[np.float32]
        if len(self._queries) <= FEW:
            products = np.empty((len(self._queries), b - a), dtype=np.float32)
            rows = _readable(embeddings.vectors)[a:b], embeddings.dtype == "float16", embeddings.scales[a:b]
            _in_threads(
                lambda i, j: _multiply(self._queries, *rows, PIECE * i, PIECE * j, products), threads, -(-(b - a) // PIECE)
            )
        else:
            products = np.matmul(self._queries, _decoded(embeddings, a, b).T)
        zeros = np.flatnonzero(embeddings.norms[a:b] == 0)
        if len(zeros):
            products[:, zeros] = -np.inf
        return products

    def _ordinals(self, share: Share, first: int, last: int) -> NDArray[np.int32]:
        """The ordinals of these documents of a segment, -1 for those that are deleted or not allowed."""
        ordinals = share.leaf.ordinals[first:last]
        if self._allowed is not None:
            ordinals = np.where((ordinals >= 0) & self._allowed[ordinals], ordinals, np.int32(-1))
        return ordinals

    def _collect(
        self, share: Share, products: NDArray[np.float32], ordinals: NDArray[np.int32], first: int, a: int, b: int
    ) -> None:
        """Takes the documents of a block that may be among the best into the buffers of the queries from `a` to `b`."""
        bounds = share.embeddings.bounds
        if len(bounds):
            bounds = bounds[first : first + len(ordinals) + 1] - bounds[first]
        state = (self._least, self._docs, self._values, self._counts, self._errors)
        for query in range(a, b):
            at = 0
            while (at := _gather(products[query], bounds, ordinals, at, query, self._k, state)) < len(ordinals):
                # So many are so close that only their scores tell them apart.
                docs, scores = self._rescored(query)
                self._docs[query, : len(docs)], self._values[query, : len(docs)] = docs, scores
                self._counts[query] = len(docs)
                self._least[query] = max(self._least[query], float(scores[-1]) - self._errors[query])

    def _best(self, a: int, b: int) -> list[Best]:
        for query in range(a, b):
            _shrink(query, self._k, (self._least, self._docs, self._values, self._counts, self._errors))
        return [self._rescored(query) for query in range(a, b)]

    def _rescored(self, query: int) -> Best:
        docs = self._docs[query, : self._counts[query]]
        return rescored(self._embeddings, self._queries[query], docs, self._k, self._ids)


def _decoded(embeddings: Embeddings, first: int, last: int) -> NDArray[np.float32]:
    """These rows of a segment as float32."""
    if embeddings.dtype != "float16":
        return embeddings.decoded(slice(first, last))
    rows = np.empty((last - first, embeddings.dim), dtype=np.float32)
    _widen(_readable(embeddings.vectors)[first:last].reshape(-1), rows.reshape(-1))
    return rows


def _in_threads(part: Callable[[int, int], T], threads: int | None, count: int) -> list[T]:
    """What `part` gives for ranges of `count` things, in their order."""
    if threads == 1 or count == 1:
        return [part(0, count)]
    edges = np.linspace(0, count, min(16, count) + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(part, edges[:-1], edges[1:]))


@contextlib.contextmanager
def _blas(threads: int | None) -> Iterator[None]:
    controller = _controller() if threads else None
    with controller.limit(limits=threads, user_api="blas") if controller else contextlib.nullcontext():
        yield


@lru_cache(1)
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:
        return None
    return ThreadpoolController()


@njit(cache=True, nogil=True)
def _gather(products: Any, bounds: Any, ordinals: Any, at: int, query: int, k: int, state: Any) -> int:
    """Appends the documents from `at` on that reach what they must; returns where it stopped because the buffer is full."""
    least, docs, values, counts, _ = state
    room = docs.shape[1]
    threshold, filled = least[query], counts[query]
    while at < len(ordinals):
        score = -np.inf
        if len(bounds) == 0:
            score = products[at]
        else:
            for row in range(bounds[at], bounds[at + 1]):
                score = max(score, products[row])
        if score >= threshold and score > -np.inf and ordinals[at] >= 0:
            if filled == room:
                counts[query] = filled
                _shrink(query, k, state)
                threshold, filled = least[query], counts[query]
                if 4 * filled > 3 * room:
                    return at
                continue
            docs[query, filled] = ordinals[at]
            values[query, filled] = score
            filled += 1
        at += 1
    counts[query] = filled
    return at


@njit(cache=True, nogil=True)
def _shrink(query: int, k: int, state: Any) -> None:
    """Drops the candidates that cannot be among the best k: k others are above them by twice the error."""
    least, docs, values, counts, errors = state
    filled = counts[query]
    if filled <= k:
        return
    kth = np.partition(values[query, :filled], filled - k)[filled - k]
    threshold = max(least[query], np.float64(kth) - 2 * errors[query])
    kept = 0
    for i in range(filled):
        if values[query, i] >= threshold:
            docs[query, kept] = docs[query, i]
            values[query, kept] = values[query, i]
            kept += 1
    least[query] = threshold
    counts[query] = kept


@njit(cache=True, nogil=True)
def _multiply(queries: Any, vectors: Any, halves: bool, scales: Any, first: int, last: int, out: Any) -> None:
    """The products of the queries with the vectors of some rows, in float32."""
    wide = np.empty(vectors.shape[1], dtype=np.float32)
    for row in range(first, min(last, len(vectors))):
        if halves:
            _widen(vectors[row], wide)
        for query in range(len(queries)):
            product = _quick_dot(queries[query], wide) if halves else _quick_dot(queries[query], vectors[row])
            out[query, row] = product * scales[row] if len(scales) > 0 else product


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _quick_dot(query: Any, vector: Any) -> Any:
    total = np.float32(0)
    for i in range(len(query)):
        total += query[i] * np.float32(vector[i])
    return total


@njit(cache=True, nogil=True)
def _widen(halves: Any, wide: Any) -> None:
    """float16, given as its bits, to float32: the bits moved to their places, and the exponent corrected by a product."""
    bits = wide.view(np.uint32)
    for i in range(len(halves)):
        half = np.uint32(halves[i])
        bits[i] = (half & np.uint32(0x7FFF)) << np.uint32(13) | (half & np.uint32(0x8000)) << np.uint32(16)
    for i in range(len(halves)):
        wide[i] *= np.float32(2.0**112)


@njit(cache=True, nogil=True)
def _rescore(query: Any, parts: Any, docs: Any, out: Any) -> None:
    vectors, halves, scales, norms, bounds = parts
    wide = np.empty(vectors.shape[1], dtype=np.float32)
    for i in range(len(docs)):
        doc = docs[i]
        first, last = doc, doc + 1
        if len(bounds) > 0:
            first, last = bounds[doc], bounds[doc + 1]
        best = -np.inf
        for row in range(first, last):
            if norms[row] > 0:
                scale = np.float64(scales[row]) if len(scales) > 0 else 1.0
                if halves:
                    _widen(vectors[row], wide)
                    best = max(best, _dot(query, wide))
                else:
                    best = max(best, scale * _dot(query, vectors[row]))
        out[i] = best


@njit(cache=True, nogil=True)
def _dot(query: Any, vector: Any) -> float:
    """The inner product in eight sums of every eighth term. Products of two float32 are exact in float64."""
    a = b = c = d = e = f = g = h = 0.0
    whole = len(query) - len(query) % 8
    for i in range(0, whole, 8):
        a += query[i] * np.float64(vector[i])
        b += query[i + 1] * np.float64(vector[i + 1])
        c += query[i + 2] * np.float64(vector[i + 2])
        d += query[i + 3] * np.float64(vector[i + 3])
        e += query[i + 4] * np.float64(vector[i + 4])
        f += query[i + 5] * np.float64(vector[i + 5])
        g += query[i + 6] * np.float64(vector[i + 6])
        h += query[i + 7] * np.float64(vector[i + 7])
    for i in range(whole, len(query)):
        a += query[i] * np.float64(vector[i])
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
