"""Exact vector search: find candidates with a blocked matrix product, then rescore them in a fixed order of summation.

The last bits of a matrix product depend on the shapes of the matrices and the number of threads. The product therefore only
selects candidates: every document that could be among the best k, given an error bound. Their scores are summed again in
float64 in one fixed order and rounded to float32 once, so that a run is the same for any batch, k and number of threads.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.strings import Strings
from ...core.threads import in_threads
from ...core.work import thread_count
from ...index.embeddings.rabitq import BITS
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings, SegmentEmbeddings, rows_of
from ...storage.compiled import compiled
from ..llvm import intrinsic, ir, types
from .codes import multiply_codes, rounding_error

STREAMS = 4  # memory streams that a thread reads at a time; a single one leaves a third of the bandwidth unused


def decoded(embeddings: Embeddings, first: int, last: int) -> NDArray[np.float32]:
    """Rows `first` to `last` as float32, RaBitQ codes rotated; rows stored as float32 are not copied."""
    if embeddings.dtype == "float32":
        return embeddings.vectors[first:last]
    numbers = readable(embeddings.numbers(slice(first, last)))
    out = np.empty(numbers.shape, dtype=np.float32)
    _decode(numbers, embeddings.scales[first:last], out)
    return out


def readable(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors for compiled code, which has no float16: float16 is viewed as uint16."""
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


def _single(context: Any, value: Any) -> Any:
    """Convert a stored number to float32: a float32, an int8, or the bits of a finite float16 as uint16."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (number,), wide = arguments, ir.FloatType()
        if value == types.float32:
            return number
        if value == types.int8:
            return builder.sitofp(number, wide)
        triple, _, features = target.codegen().magic_tuple()
        if "+f16c" in features.split(",") or triple.startswith(("aarch64", "arm64")):
            return builder.fpext(builder.bitcast(number, ir.HalfType()), wide)
        # Shift the bits to their places and correct the exponent by a product.
        word: Any = ir.IntType(32)
        bits = builder.zext(number, word)
        magnitude = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        sign = builder.shl(builder.and_(bits, word(0x8000)), word(16))
        return builder.fmul(builder.bitcast(builder.or_(magnitude, sign), wide), ir.Constant(wide, 2.0**112))

    return types.float32(value), generate


single: Any = intrinsic(_single)


@compiled()
def _multiply(queries: Any, vectors: Any, scales: Any, out: Any) -> None:
    """Write the float32 products of a few queries with all vectors to `out`."""
    step = len(vectors) // STREAMS
    for query in range(len(queries)):
        row = out[query]
        for i in range(step):
            a, b, c, d = _dot_four(queries[query], vectors[i], vectors[i + step], vectors[i + 2 * step], vectors[i + 3 * step])
            row[i], row[i + step], row[i + 2 * step], row[i + 3 * step] = a, b, c, d
        for i in range(STREAMS * step, len(vectors)):
            row[i] = _dot_four(queries[query], vectors[i], vectors[i], vectors[i], vectors[i])[0]
        for i in range(len(scales)):
            row[i] *= scales[i]


@compiled(fastmath={"reassoc", "contract"})
def _dot_four(query: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    s = t = u = v = np.float32(0)
    for i in range(len(query)):
        x = query[i]
        s += x * single(a[i])
        t += x * single(b[i])
        u += x * single(c[i])
        v += x * single(d[i])
    return s, t, u, v


@compiled()
def _decode(vectors: Any, scales: Any, out: Any) -> None:
    for row in range(len(vectors)):
        for i in range(vectors.shape[1]):
            out[row, i] = single(vectors[row, i])
        if len(scales) > 0:
            for i in range(vectors.shape[1]):
                out[row, i] *= scales[row]


@compiled()
def scored(query: Any, vectors: Any, scales: Any, norms: Any, bounds: Any, docs: Any, out: Any) -> None:
    """Write the exact score of each document of a segment to `out`: float64 sums; -inf where all vectors are zeros."""
    for i in range(len(docs)):
        first, last = docs[i], docs[i] + 1
        if len(bounds) > 0:
            first, last = bounds[docs[i]], bounds[docs[i] + 1]
        best = -np.inf
        for row in range(first, last):
            if norms[row] > 0:
                scale = np.float64(scales[row]) if len(scales) > 0 else 1.0
                best = max(best, scale * _dot(query, vectors[row]))
        out[i] = best


@compiled()
def _dot(query: Any, vector: Any) -> float:
    """Inner product in eight partial sums of every eighth term. Products of two float32 are exact in float64."""
    a = b = c = d = e = f = g = h = 0.0
    whole = len(query) - len(query) % 8
    for i in range(0, whole, 8):
        a += query[i] * np.float64(single(vector[i]))
        b += query[i + 1] * np.float64(single(vector[i + 1]))
        c += query[i + 2] * np.float64(single(vector[i + 2]))
        d += query[i + 3] * np.float64(single(vector[i + 3]))
        e += query[i + 4] * np.float64(single(vector[i + 4]))
        f += query[i + 5] * np.float64(single(vector[i + 5]))
        g += query[i + 6] * np.float64(single(vector[i + 6]))
        h += query[i + 7] * np.float64(single(vector[i + 7]))
    for i in range(whole, len(query)):
        a += query[i] * np.float64(single(vector[i]))
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


QUERIES = 512  # queries searched together
SCORES = 1 << 19  # scores of one matrix product; they fit into the processor's cache
NUMBERS = 1 << 20  # numbers of document vectors decoded at a time
FEW = 4  # up to so many queries, loading the vectors takes longer than multiplying them
PIECE = 1 << 13  # vectors per block for a few queries
SHARE = 1 << 22  # multiplications per thread that are worth starting it
UNIT = 2.0**-24  # unit roundoff of float32
UNPACKED = 1 << 14  # documents whose codes are unpacked together
LOOK = 64  # products compared with the threshold at once
RESCORED = 64  # queries that a thread rescores at a time
RARE = 16  # where at most one document in 16 is allowed, all allowed documents are scored

Best = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents and scores of a query, best first
NO_PRODUCTS: NDArray[np.float32] = np.zeros(0, np.float32)
NOTHING: Best = np.zeros(0, np.int32), NO_PRODUCTS


def nearest(
    embeddings: JoinedEmbeddings,
    queries: NDArray[np.float32],
    k: int,
    ids: Strings,
    allowed: NDArray[np.bool_] | None = None,
) -> list[Best]:
    """Return the `k` documents with the greatest inner products, and the products, for each query.

    Documents whose vectors are all zeros are left out.

    Args:
        embeddings: The documents' vectors.
        queries: float32 (queries, dimensions).
        k: Maximum number of documents per query.
        ids: The documents' ids.
        allowed: bool (documents,): the documents to search; None searches all.
    """
    queries = embeddings.coordinates(queries)
    chosen = None if allowed is None else np.flatnonzero(allowed).astype(np.int32)
    if chosen is not None and len(chosen) * RARE <= embeddings.documents:
        return in_threads(lambda i: rescored(embeddings, queries[i], chosen, k, ids), range(len(queries)))
    count = min(k, embeddings.documents if chosen is None else len(chosen))
    if not count:
        return [NOTHING] * len(queries)
    batches = [queries[first : first + QUERIES] for first in range(0, len(queries), QUERIES)]
    return [best for batch in batches for best in Search(embeddings, batch, count, ids, allowed).run()]


def rescored(
    embeddings: JoinedEmbeddings,
    query: NDArray[np.float32],
    docs: NDArray[np.int32],
    k: int,
    ids: Strings,
    products: NDArray[np.float32] = NO_PRODUCTS,
) -> Best:
    """Return the best `k` of `docs` with their exact scores, best first.

    Args:
        embeddings: The documents' vectors.
        query: The query vector, in the coordinates of `embeddings`.
        docs: Ordinals of documents.
        k: Maximum number of documents to return.
        ids: The documents' ids.
        products: Float32 products of the query with `docs`, descending, where no vector is zeros; documents that cannot be
            among the best `k` by these are not scored.
    """
    best: Best
    if (whole := embeddings.whole) is None or whole.bits:
        docs = docs[: worth_rescoring(query, products, k, embeddings.longest)] if len(products) else docs
        best = _best_first(docs, exact(embeddings, query, docs), ids.rank, k)
    else:
        vectors, longest = readable(whole.vectors), embeddings.longest
        best = best_of(query, vectors, whole.scales, whole.norms, whole.bounds, docs, products, longest, ids.rank, k)
    return best


def all_rescored(
    embeddings: JoinedEmbeddings,
    queries: NDArray[np.float32],
    docs: NDArray[np.integer[Any]],
    k: int,
    ids: Strings,
    products: NDArray[np.float32],
) -> list[Best]:
    """`rescored` for each query with its documents, (queries, documents), of which missing ones at the end are -1."""
    if (whole := embeddings.whole) is None or whole.bits:
        counts = np.count_nonzero(docs >= 0, axis=1)
        return [
            rescored(embeddings, query, candidates[:count].astype(np.int32), k, ids, approximate[:count])
            for query, candidates, approximate, count in zip(queries, docs, products, counts, strict=True)
        ]
    vectors, longest, most = readable(whole.vectors), embeddings.longest, min(k, docs.shape[1])
    best, scores = np.empty((len(queries), most), np.int32), np.empty((len(queries), most), np.float32)
    counts = np.empty(len(queries), np.int64)

    def score(first: int) -> None:
        part = slice(first, first + RESCORED)
        arrays = queries[part], docs[part], products[part], best[part], scores[part], counts[part]
        _best_of_all(vectors, whole.scales, whole.norms, whole.bounds, longest, ids.rank, *arrays)

    in_threads(score, range(0, len(queries), RESCORED))
    return [(best[i, :count], scores[i, :count]) for i, count in enumerate(counts.tolist())]


def exact(embeddings: JoinedEmbeddings, query: NDArray[np.float32], docs: NDArray[np.int32]) -> NDArray[np.float32]:
    """Exact scores: float64 products summed in one order and rounded once; -inf for a document whose vectors are zeros.

    `query` is in the coordinates of `embeddings`. RaBitQ codes are scored as they are stored: the paper's estimator, of a query
    that is not quantized.
    """
    out, wide = np.empty(len(docs), dtype=np.float32), query.astype(np.float64)
    for share, rows, leaf_docs in embeddings.split(docs):
        stored = share.embeddings
        scores = np.empty(len(leaf_docs), dtype=np.float32)
        if stored.bits:
            for first in range(0, len(leaf_docs), UNPACKED):
                part = slice(first, first + UNPACKED)
                _score_codes(wide, stored, leaf_docs[part].astype(np.int64), scores[part])
        else:
            scored(
                wide, readable(stored.vectors), stored.scales, stored.norms, stored.bounds, leaf_docs.astype(np.int64), scores
            )
        out[rows] = scores
    return out


def _score_codes(query: NDArray[np.float64], embeddings: Embeddings, docs: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """`scored` for RaBitQ codes, of which only those of `docs` are unpacked."""
    rows, starts = (docs, embeddings.bounds) if embeddings.single else rows_of(embeddings.bounds, docs)
    scored(query, embeddings.numbers(rows), embeddings.scales[rows], embeddings.norms[rows], starts, np.arange(len(docs)), out)


@dataclass(frozen=True)
class VectorBlock:
    """Documents `first` to `last` of a segment, scored together."""

    share: SegmentEmbeddings
    first: int
    last: int


class Search:
    """Exact search for a batch of queries: threads take blocks of documents, and each collects its own candidates."""

    def __init__(
        self,
        embeddings: JoinedEmbeddings,
        queries: NDArray[np.float32],
        k: int,
        ids: Strings,
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        self._embeddings, self._queries, self._k, self._ids, self._allowed = embeddings, queries, k, ids, allowed
        self._few = len(queries) <= FEW
        longest, bits = embeddings.longest, BITS.get(embeddings.dtype, 1)
        self._errors = np.array([error_bound(query, longest) for query in queries])
        if self._few:
            self._errors += [rounding_error(query, longest, bits) for query in queries]

    def run(self) -> list[Best]:
        """Return the best k documents of each query."""
        work = len(self._embeddings) * len(self._queries) * self._embeddings.dim
        threads = max(1, min(thread_count(), work // SHARE))
        blocks = iter([block for share in self._embeddings.shares for block in self._blocks(share)])
        with contextlib.nullcontext(True) if self._few else _single_threaded_blas() as single_threaded:
            # A matrix product that cannot be limited to one thread uses several itself.
            parts = in_threads(lambda _: self._collected(blocks), range(threads if single_threaded else 1))
        return in_threads(lambda query: self._best(query, parts), range(len(self._queries)), limit=threads)

    def _blocks(self, share: SegmentEmbeddings) -> Iterator[VectorBlock]:
        """Divide a segment into blocks whose decoded vectors and scores fit into the processor's cache."""
        embeddings = share.embeddings
        most = PIECE if self._few else max(1, min(SCORES // len(self._queries), NUMBERS // max(1, embeddings.dim)))
        bounds, first, count = embeddings.bounds, 0, embeddings.documents
        while first < count:
            last = first + most if not len(bounds) else int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
            last = min(max(last, first + 1), count)
            yield VectorBlock(share, first, last)
            first = last

    def _collected(self, blocks: Iterator[VectorBlock]) -> VectorCandidates:
        """Collect the candidates of the blocks that this thread takes."""
        state = VectorCandidates.of(
            len(self._queries), self._k, min(self._embeddings.documents, 4 * self._k + 1024), self._errors
        )
        for block in blocks:
            scores, ordinals, bounds = self._products(block), self._ordinals(block), block.share.embeddings.bounds
            if len(bounds):
                bounds = bounds[block.first : block.last + 1] - bounds[block.first]
            query = at = 0
            while True:
                query, at = _gather_all(scores, bounds, ordinals, query, at, self._k, state.arrays)
                if query == len(scores):
                    break
                # The buffer is full of candidates too close to separate: rescore them.
                docs = state.docs[query, : state.counts[query]]
                docs, best = rescored(self._embeddings, self._queries[query], docs, self._k, self._ids)
                state.docs[query, : len(docs)], state.values[query, : len(docs)] = docs, best
                state.counts[query] = len(docs)
                state.least[query] = max(state.least[query], float(best[-1]) - self._errors[query])
        return state

    def _products(self, block: VectorBlock) -> NDArray[np.float32]:
        """Inner products of the queries with the block's vectors; -inf for zero vectors."""
        embeddings = block.share.embeddings
        a, b = embeddings.rows(block.first, block.last)
        if self._few:
            scores = np.empty((len(self._queries), b - a), dtype=np.float32)
            if embeddings.bits:
                multiply_codes(self._queries, embeddings.vectors[a:b], embeddings.scales[a:b], embeddings.bits, scores)
            else:
                _multiply(self._queries, readable(embeddings.vectors)[a:b], embeddings.scales[a:b], scores)
        else:
            scores = np.matmul(self._queries, decoded(embeddings, a, b).T)
        zeros = embeddings.zeros
        if len(zeros):
            scores[:, zeros[slice(*np.searchsorted(zeros, (a, b)))] - a] = -np.inf
        return scores

    def _ordinals(self, block: VectorBlock) -> NDArray[np.int32]:
        """Ordinals of the block's documents; -1 for deleted and disallowed ones."""
        ordinals = block.share.leaf.ordinals[block.first : block.last]
        if self._allowed is not None:
            ordinals = np.where((ordinals >= 0) & self._allowed[ordinals], ordinals, np.int32(-1))
        return ordinals

    def _best(self, query: int, parts: list[VectorCandidates]) -> Best:
        """Return the best k documents of a query from the candidates of all threads."""
        docs, values = (np.concatenate(column) for column in zip(*(part.of_query(query) for part in parts), strict=True))
        if len(docs) > self._k:
            kth = np.partition(values, len(docs) - self._k)[len(docs) - self._k]
            docs = docs[values >= max(np.float64(kth) - 2 * self._errors[query], *(part.least[query] for part in parts))]
        return rescored(self._embeddings, self._queries[query], docs, self._k, self._ids)


@dataclass(frozen=True)
class VectorCandidates:
    """Candidates of each query: its threshold, a buffer of documents with products, their number, and the error bound."""

    least: NDArray[np.float64]
    docs: NDArray[np.int32]
    values: NDArray[np.float32]
    counts: NDArray[np.int64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, queries: int, k: int, capacity: int, errors: NDArray[np.float64]) -> VectorCandidates:
        """Return empty buffers of `capacity` places each."""
        least, counts = np.full(queries, -np.inf), np.zeros(queries, dtype=np.int64)
        return cls(least, np.empty((queries, capacity), np.int32), np.empty((queries, capacity), np.float32), counts, errors)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays, for compiled code."""
        return self.least, self.docs, self.values, self.counts, self.errors

    def of_query(self, query: int) -> Best:
        """The candidates of a query, and their products."""
        count = self.counts[query]
        return self.docs[query, :count], self.values[query, :count]


class _BlasLimit:
    """Number of searches that limit BLAS to one thread, and the limit to lift after the last one."""

    lock = threading.Lock()
    searches = 0
    limit: Any = None


@contextlib.contextmanager
def _single_threaded_blas() -> Iterator[bool]:
    """Limit matrix products to one thread; yield False if threadpoolctl is not installed."""
    controller = _controller()
    if controller is None:
        yield False
        return
    with _BlasLimit.lock:
        _BlasLimit.searches += 1
        if _BlasLimit.searches == 1:
            _BlasLimit.limit = controller.limit(limits=1, user_api="blas")
    try:
        yield True
    finally:
        with _BlasLimit.lock:
            _BlasLimit.searches -= 1
            if not _BlasLimit.searches:
                _BlasLimit.limit.restore_original_limits()


@lru_cache(1)
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:
        return None
    return ThreadpoolController()


@compiled()
def _gather_all(products: Any, bounds: Any, ordinals: Any, query: int, at: int, k: int, state: Any) -> Any:
    """Run `_gather` for each query; return the query and place where a buffer was full, or the number of queries and 0."""
    while query < len(products):
        at = _gather(products[query], bounds, ordinals, at, query, k, state)
        if at < len(ordinals):
            return query, at
        query, at = query + 1, 0
    return query, at


@compiled()
def _gather(products: Any, bounds: Any, ordinals: Any, at: int, query: int, k: int, state: Any) -> int:
    """Append the documents from `at` on that reach the threshold; return the place where the buffer was full."""
    least, docs, values, counts, _ = state
    capacity = docs.shape[1]
    threshold, filled = least[query], counts[query]
    below = _below(threshold)
    while at < len(ordinals):
        if len(bounds) == 0 and at % LOOK == 0 and at + LOOK <= len(ordinals):
            reached = False
            for i in range(at, at + LOOK):
                reached |= products[i] >= below
            if not reached:
                at += LOOK
                continue
        score = -np.inf
        if len(bounds) == 0:
            score = products[at]
        else:
            for row in range(bounds[at], bounds[at + 1]):
                score = max(score, products[row])
        if score >= threshold and score > -np.inf and ordinals[at] >= 0:
            if filled == capacity:
                counts[query] = filled
                _shrink(query, k, state)
                threshold, filled = least[query], counts[query]
                below = _below(threshold)
                if 4 * filled > 3 * capacity:
                    return at
                continue
            docs[query, filled] = ordinals[at]
            values[query, filled] = score
            filled += 1
        at += 1
    counts[query] = filled
    if filled > 2 * k + LOOK:  # a threshold set early skips most of the later products
        _shrink(query, k, state)
    return at


@compiled()
def error_bound(query: Any, longest: float) -> float:
    """Upper bound of the difference between a document's score and its float32 product, summed in any order.

    n u / (1 - n u) |q| |d| (Higham 2002, section 3.1) for n dimensions, plus a few units for scaling, rounding
    and the rotation of queries and decoded vectors.
    """
    n, squares = len(query) + 8, 0.0
    for x in query:
        squares += np.float64(x) * np.float64(x)
    return n * UNIT / (1 - n * UNIT) * 1.0001 * math.sqrt(squares) * longest + n * 1e-37


@compiled()
def worth_rescoring(query: Any, products: Any, k: int, longest: float) -> int:
    """Number of leading documents, by descending `products`, that can be among the best `k`."""
    if len(products) <= k:
        return len(products)
    least, count = np.float64(products[k - 1]) - 2 * error_bound(query, longest), k
    while count < len(products) and products[count] >= least:
        count += 1
    return count


@compiled()
def best_of(
    query: Any, vectors: Any, scales: Any, norms: Any, bounds: Any, docs: Any, products: Any, longest: float, ranks: Any, k: int
) -> Any:
    """`rescored` for the documents of one segment."""
    if len(products) > 0:
        docs = docs[: worth_rescoring(query, products, k, longest)]
    scores = np.empty(len(docs), np.float32)
    scored(query.astype(np.float64), vectors, scales, norms, bounds, docs, scores)
    return _best_first(docs, scores, ranks, k)


@compiled()
def _best_of_all(
    vectors: Any,
    scales: Any,
    norms: Any,
    bounds: Any,
    longest: float,
    ranks: Any,
    queries: Any,
    docs: Any,
    products: Any,
    best: Any,
    scores: Any,
    counts: Any,
) -> None:
    """`best_of` for each query; -1 ends its documents."""
    for i in range(len(queries)):
        count = docs.shape[1]
        while count > 0 and docs[i, count - 1] < 0:
            count -= 1
        candidates, approximate = docs[i, :count].astype(np.int32), products[i, :count]
        best_docs, best_scores = best_of(
            queries[i], vectors, scales, norms, bounds, candidates, approximate, longest, ranks, best.shape[1]
        )
        counts[i] = len(best_docs)
        best[i, : len(best_docs)], scores[i, : len(best_docs)] = best_docs, best_scores


@compiled()
def _best_first(docs: Any, scores: Any, ranks: Any, k: int) -> Any:
    """Return the best `k` documents with a score above -inf, best first, with their scores; see `order_keys`."""
    bits, keys, count = (scores + np.float32(0)).view(np.uint32), np.empty(len(docs), np.uint64), 0
    for i in range(len(docs)):
        ordered = ~bits[i] if bits[i] >> 31 else bits[i] | np.uint32(0x80000000)
        keys[i] = np.uint64(ordered) << np.uint64(32) | np.uint64(ranks[docs[i]])
        count += scores[i] > -np.inf
    place = np.argsort(keys)[::-1][: min(k, count)]
    return docs[place], scores[place]


@compiled()
def _below(threshold: Any) -> Any:
    """A float32 no greater than the threshold, to compare many products at once."""
    return np.float32(threshold - 1e-6 * abs(threshold) - 1e-37)


@compiled()
def _shrink(query: int, k: int, state: Any) -> None:
    """Drop candidates that cannot be among the best k: those below the kth by more than twice the error."""
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
