"""Exact vector search: find candidates with a blocked matrix product, then rescore them in a fixed order of summation.

The last bits of a matrix product depend on the shapes of the matrices and the number of threads. The product therefore only
selects candidates: every document that could be among the best k, given an error bound. The scores of candidates are summed
again in float64 in one fixed order and rounded to float32 once, so that a run is the same for any batch, k and number of
threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.arrays import Bools, Float32s, Float64s, Int32s, Int64s, Ints, Numbers, UInt32s
from ...core.strings import Strings
from ...core.work import thread_count
from ...index.embeddings.rabitq import BITS
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings, SegmentEmbeddings, rows_of
from ...storage.arrays import fixed
from ...storage.compiled import compiled
from ...storage.threads import in_threads
from ..results import NO_RESULTS, Best
from .blas import single_threaded_blas
from .codes import multiply_codes, rounding_error
from .products import decoded, multiply, scored, without_float16

QUERIES = 512  # queries searched together
SCORES = 1 << 19  # scores of one matrix product; they fit into the processor's cache
NUMBERS = 1 << 20  # numbers of document vectors decoded at a time
FEW_QUERIES = 4  # for at most 4 queries, loading the vectors takes longer than multiplying them
MIN_BLOCK_ROWS, BLOCK_ROWS = 1 << 13, 1 << 15  # vectors per block for a few queries
THREAD_BLOCKS = 4  # blocks per thread, if they have MIN_BLOCK_ROWS vectors
THREAD_WORK = 1 << 22  # multiplications that are worth starting a thread
UNIT = 2.0**-24  # unit roundoff of float32
UNPACKED_DOCS = 1 << 14  # documents whose codes are unpacked together
LOOKAHEAD = 64  # products compared with the threshold at once
RESCORED_QUERIES = 64  # queries that a thread rescores at a time
RARE = 16  # if at most one document in 16 is allowed, all allowed documents are scored exactly

Candidates = tuple[Float64s, Int32s, Float32s, Int64s, Float64s]  # the fields of `VectorCandidates`
NO_PRODUCTS = NO_RESULTS[1]


class StoredVectors(NamedTuple):
    """The vectors of the only segment, for compiled code: none of RaBitQ.

    Attributes:
        vectors: float32, int8, or float16 viewed as uint16, (rows, dimensions).
        scales: As in `Embeddings`, as are norms and bounds.
        longest: The length of the longest vector.
        ranks: uint32 (documents,): the rank of each document's id in ascending order.
    """

    vectors: Numbers
    scales: Float32s
    norms: Float32s
    bounds: Int64s
    longest: float
    ranks: UInt32s

    @classmethod
    def of(cls, embeddings: JoinedEmbeddings, ids: Strings) -> StoredVectors | None:
        """Return the vectors; None for RaBitQ codes, several segments, or deletions."""
        if (segment := embeddings.whole) is None or segment.bits:
            return None
        vectors = without_float16(segment.vectors)
        return cls(vectors, segment.scales, segment.norms, segment.bounds, embeddings.longest, ids.rank)


def nearest(embeddings: JoinedEmbeddings, queries: Float32s, k: int, ids: Strings, allowed: Bools | None = None) -> list[Best]:
    """Return the `k` documents with the greatest inner products, and the products, for each query.

    Documents whose vectors are all zeros are omitted.

    Args:
        embeddings: The documents' vectors.
        queries: float32 (queries, dimensions).
        k: Maximum number of documents per query.
        ids: The documents' ids.
        allowed: bool (documents,), the documents to search; None: all.
    """
    queries = embeddings.coordinates(queries)
    docs = None if allowed is None else np.flatnonzero(allowed).astype(np.int32)
    if docs is not None and len(docs) * RARE <= embeddings.documents:
        return in_threads(lambda i: rescored(embeddings, queries[i], docs, k, ids), range(len(queries)))
    count = min(k, embeddings.documents if docs is None else len(docs))
    if not count:
        return [NO_RESULTS] * len(queries)
    batches = [queries[start : start + QUERIES] for start in range(0, len(queries), QUERIES)]
    return [best for batch in batches for best in VectorSearch(embeddings, batch, count, ids, allowed).run()]


def rescored(
    embeddings: JoinedEmbeddings, query: Float32s, docs: Int32s, k: int, ids: Strings, products: Float32s = NO_PRODUCTS
) -> Best:
    """Return the best `k` of `docs` with their exact scores, best first.

    Args:
        embeddings: The documents' vectors.
        query: The query vector, in the coordinates of `embeddings`.
        docs: Ordinals of documents.
        k: Maximum number of documents to return.
        ids: The documents' ids.
        products: float32 products of the query with `docs`, descending, if no vector is zeros; documents that cannot be
            among the best `k` by their products are not scored. Empty: all documents are scored.
    """
    best: Best
    if (stored := StoredVectors.of(embeddings, ids)) is None:
        docs = docs[: worth_rescoring(query, products, k, embeddings.longest)] if len(products) else docs
        best = _best_first(docs, exact(embeddings, query, docs), ids.rank, k)
    else:
        best = best_of(query, stored, docs, products, k)
    return best


def all_rescored(
    embeddings: JoinedEmbeddings, queries: Float32s, docs: Ints, k: int, ids: Strings, products: Float32s
) -> list[Best]:
    """`rescored` for each query with its row of `docs` and `products`, (queries, documents); rows of `docs` end with -1."""
    if (stored := StoredVectors.of(embeddings, ids)) is None:
        counts = np.count_nonzero(docs >= 0, axis=1)
        return [
            rescored(embeddings, query, candidates[:count].astype(np.int32), k, ids, approximate[:count])
            for query, candidates, approximate, count in zip(queries, docs, products, counts, strict=True)
        ]
    depth = min(k, docs.shape[1])
    best, scores = np.empty((len(queries), depth), np.int32), np.empty((len(queries), depth), np.float32)
    counts, rows = np.empty(len(queries), np.int64), docs.astype(np.int32, copy=False)

    def score(start: int) -> None:
        part = slice(start, start + RESCORED_QUERIES)
        _best_of_all(stored, queries[part], rows[part], products[part], best[part], scores[part], counts[part])

    in_threads(score, range(0, len(queries), RESCORED_QUERIES))
    return [(best[i, :count], scores[i, :count]) for i, count in enumerate(counts.tolist())]


def exact(embeddings: JoinedEmbeddings, query: Float32s, docs: Int32s) -> Float32s:
    """Exact scores, float32 (docs,): float64 products summed in one order; -inf for a document whose vectors are zeros.

    `query` is in the coordinates of `embeddings`. RaBitQ codes are scored as stored: the paper's estimator, for a query that is
    not quantized.
    """
    out = np.empty(len(docs), dtype=np.float32)
    query64 = query.astype(np.float64)
    for segment, rows, leaf_docs in embeddings.split(docs):
        stored = segment.embeddings
        scores = np.empty(len(leaf_docs), dtype=np.float32)
        if stored.bits:
            for start in range(0, len(leaf_docs), UNPACKED_DOCS):
                part = slice(start, start + UNPACKED_DOCS)
                _score_codes(query64, stored, leaf_docs[part].astype(np.int64), scores[part])
        else:
            vectors = without_float16(stored.vectors)
            scored(query64, vectors, stored.scales, stored.norms, stored.bounds, leaf_docs.astype(np.int32), scores)
        out[rows] = scores
    return out


def _score_codes(query: Float64s, embeddings: Embeddings, docs: Int64s, out: Float32s) -> None:
    """`scored` for RaBitQ codes; only the codes of `docs` are unpacked."""
    rows, starts = (docs, embeddings.bounds) if embeddings.single else rows_of(embeddings.bounds, docs)
    scored(query, embeddings.numbers(rows), embeddings.scales[rows], embeddings.norms[rows], starts, np.arange(len(docs)), out)


@dataclass(frozen=True)
class VectorBlock:
    """Documents `first` to `last` of a segment, scored together."""

    segment: SegmentEmbeddings
    first: int
    last: int


class VectorSearch:
    """Exact search for a batch of queries: threads take blocks of documents, and each collects its own candidates."""

    def __init__(self, embeddings: JoinedEmbeddings, queries: Float32s, k: int, ids: Strings, allowed: Bools | None) -> None:
        self._embeddings, self._queries, self._k, self._ids, self._allowed = embeddings, queries, k, ids, allowed
        self._few = len(queries) <= FEW_QUERIES
        longest, bits = embeddings.longest, BITS.get(embeddings.dtype, 1)
        self._errors = np.array([error_bound(query, longest) for query in queries])
        if self._few:
            self._errors += [rounding_error(query, longest, bits) for query in queries]

    def run(self) -> list[Best]:
        """Return the best k documents of each query."""
        work = len(self._embeddings) * len(self._queries) * self._embeddings.dim
        threads = max(1, min(thread_count(), work // THREAD_WORK))
        blocks = iter([block for segment in self._embeddings.shares for block in self._blocks(segment)])
        with nullcontext(True) if self._few else single_threaded_blas() as single_threaded:
            # A matrix product that cannot be limited to one thread uses several threads itself.
            candidates = in_threads(lambda _: self._collect(blocks), range(threads if single_threaded else 1))
        return in_threads(lambda query: self._best(query, candidates), range(len(self._queries)), limit=threads)

    def _blocks(self, segment: SegmentEmbeddings) -> Iterator[VectorBlock]:
        """Divide a segment into blocks whose decoded vectors and scores fit into the processor's cache."""
        embeddings = segment.embeddings
        if self._few:
            share = len(embeddings) // (THREAD_BLOCKS * thread_count())
            max_rows = min(BLOCK_ROWS, max(MIN_BLOCK_ROWS, share))
        else:
            max_rows = max(1, min(SCORES // len(self._queries), NUMBERS // max(1, embeddings.dim)))
        bounds, start, count = embeddings.bounds, 0, embeddings.documents
        while start < count:
            end = start + max_rows
            if len(bounds):
                end = int(np.searchsorted(bounds, bounds[start] + max_rows, side="right")) - 1
            end = min(max(end, start + 1), count)
            yield VectorBlock(segment, start, end)
            start = end

    def _collect(self, blocks: Iterator[VectorBlock]) -> VectorCandidates:
        """Collect the candidates of the blocks that this thread takes."""
        capacity = min(self._embeddings.documents, 4 * self._k + 1024)
        state = VectorCandidates.of(len(self._queries), capacity, self._errors)
        for block in blocks:
            scores, ordinals, bounds = self._products(block), self._ordinals(block), block.segment.embeddings.bounds
            if len(bounds):
                bounds = fixed(bounds[block.first : block.last + 1] - bounds[block.first])
            query = position = 0
            while True:
                query, position = _gather_all(scores, bounds, ordinals, query, position, self._k, state.arrays)
                if query == len(scores):
                    break
                # The buffer is full of candidates too close to separate: rescore them.
                docs = state.docs[query, : state.counts[query]]
                docs, best = rescored(self._embeddings, self._queries[query], docs, self._k, self._ids)
                state.docs[query, : len(docs)], state.values[query, : len(docs)] = docs, best
                state.counts[query] = len(docs)
                state.thresholds[query] = max(state.thresholds[query], float(best[-1]) - self._errors[query])
        return state

    def _products(self, block: VectorBlock) -> Float32s:
        """Inner products of the queries with the block's vectors; -inf for zero vectors."""
        embeddings = block.segment.embeddings
        start, end = embeddings.rows(block.first, block.last)
        if self._few:
            scores = np.empty((len(self._queries), end - start), dtype=np.float32)
            vectors, scales = embeddings.vectors[start:end], embeddings.scales[start:end]
            if embeddings.bits:
                multiply_codes(self._queries, vectors, scales, embeddings.bits, scores)
            else:
                multiply(self._queries, without_float16(vectors), scales, scores)
        else:
            scores = np.matmul(self._queries, decoded(embeddings, start, end).T)
        zeros = embeddings.zeros
        if len(zeros):
            scores[:, zeros[slice(*np.searchsorted(zeros, (start, end)))] - start] = -np.inf
        return scores

    def _ordinals(self, block: VectorBlock) -> Int32s:
        """Ordinals of the block's documents; -1 for documents that are deleted or not allowed."""
        ordinals = block.segment.leaf.ordinals[block.first : block.last]
        if self._allowed is not None:
            ordinals = np.where((ordinals >= 0) & self._allowed[ordinals], ordinals, np.int32(-1))
        return ordinals

    def _best(self, query: int, candidates: list[VectorCandidates]) -> Best:
        """Return the best k documents of a query from the candidates of all threads."""
        docs, values = (np.concatenate(arrays) for arrays in zip(*(part.of_query(query) for part in candidates), strict=True))
        if len(docs) > self._k:
            kth = np.partition(values, len(docs) - self._k)[len(docs) - self._k]
            threshold = max(np.float64(kth) - 2 * self._errors[query], *(part.thresholds[query] for part in candidates))
            docs = docs[values >= threshold]
        return rescored(self._embeddings, self._queries[query], docs, self._k, self._ids)


@dataclass(frozen=True)
class VectorCandidates:
    """Candidates of each query, in buffers of fixed capacity.

    Args:
        thresholds: float64 (queries,): documents with smaller products are not among the best k.
        docs: int32 (queries, capacity): the candidates.
        values: float32 (queries, capacity): their products.
        counts: int64 (queries,): number of candidates.
        errors: float64 (queries,): bound of the error of a product.
    """

    thresholds: Float64s
    docs: Int32s
    values: Float32s
    counts: Int64s
    errors: Float64s

    @classmethod
    def of(cls, queries: int, capacity: int, errors: Float64s) -> VectorCandidates:
        """Return empty buffers for `capacity` candidates of each query."""
        docs, values = np.empty((queries, capacity), np.int32), np.empty((queries, capacity), np.float32)
        return cls(np.full(queries, -np.inf), docs, values, np.zeros(queries, dtype=np.int64), errors)

    @property
    def arrays(self) -> Candidates:
        """All arrays, for compiled code."""
        return self.thresholds, self.docs, self.values, self.counts, self.errors

    def of_query(self, query: int) -> Best:
        """The candidates of a query, and their products."""
        count = self.counts[query]
        return self.docs[query, :count], self.values[query, :count]


@compiled()
def _gather_all(
    products: Float32s, bounds: Int64s, ordinals: Int32s, query: int, position: int, k: int, state: Candidates
) -> tuple[int, int]:
    """Run `_gather` for each query; return the query and position where a buffer was full, or the number of queries and 0."""
    while query < len(products):
        position = _gather(products[query], bounds, ordinals, position, query, k, state)
        if position < len(ordinals):
            return query, position
        query, position = query + 1, 0
    return query, position


@compiled()
def _gather(products: Float32s, bounds: Int64s, ordinals: Int32s, position: int, query: int, k: int, state: Candidates) -> int:
    """Append the documents from `position` on that reach the threshold; return the position where the buffer was full."""
    thresholds, docs, values, counts, _ = state
    capacity = docs.shape[1]
    threshold, filled = thresholds[query], counts[query]
    below = _below(threshold)
    while position < len(ordinals):
        if len(bounds) == 0 and position % LOOKAHEAD == 0 and position + LOOKAHEAD <= len(ordinals):
            reached = False
            for i in range(position, position + LOOKAHEAD):
                reached |= products[i] >= below
            if not reached:
                position += LOOKAHEAD
                continue
        score = -np.inf
        if len(bounds) == 0:
            score = products[position]
        else:
            for row in range(bounds[position], bounds[position + 1]):
                score = max(score, products[row])
        if score >= threshold and score > -np.inf and ordinals[position] >= 0:
            if filled == capacity:
                counts[query] = filled
                _shrink(query, k, state)
                threshold, filled = thresholds[query], counts[query]
                below = _below(threshold)
                if 4 * filled > 3 * capacity:
                    return position
                continue
            docs[query, filled] = ordinals[position]
            values[query, filled] = score
            filled += 1
        position += 1
    counts[query] = filled
    if filled > 2 * k + LOOKAHEAD:  # a threshold set early skips most of the later products
        _shrink(query, k, state)
    return position


@compiled()
def error_bound(query: Float32s, longest: float) -> float:
    """Upper bound of the difference between a document's score and its float32 product, summed in any order.

    n u / (1 - n u) |q| |d| (Higham 2002, section 3.1) for n dimensions, plus a few units for scaling, rounding
    and the rotation of queries and decoded vectors.
    """
    n, squares = len(query) + 8, 0.0
    for x in query:
        squares += np.float64(x) * np.float64(x)
    return n * UNIT / (1 - n * UNIT) * 1.0001 * math.sqrt(squares) * longest + n * 1e-37


@compiled()
def worth_rescoring(query: Float32s, products: Float32s, k: int, longest: float) -> int:
    """Number of leading documents, by descending `products`, that can be among the best `k`."""
    if len(products) <= k:
        return len(products)
    threshold, count = np.float64(products[k - 1]) - 2 * error_bound(query, longest), k
    while count < len(products) and products[count] >= threshold:
        count += 1
    return count


@compiled()
def best_of(query: Float32s, stored: StoredVectors, docs: Int32s, products: Float32s, k: int) -> Best:
    """`rescored` for the documents of one segment."""
    if len(products) > 0:
        docs = docs[: worth_rescoring(query, products, k, stored.longest)]
    scores = np.empty(len(docs), np.float32)
    scored(query.astype(np.float64), stored.vectors, stored.scales, stored.norms, stored.bounds, docs, scores)
    best: Best = _best_first(docs, scores, stored.ranks, k)
    return best


@compiled()
def _best_of_all(
    stored: StoredVectors, queries: Float32s, docs: Int32s, products: Float32s, best: Int32s, scores: Float32s, counts: Int64s
) -> None:
    """`best_of` for each query, whose row of `docs` may end with -1."""
    for i in range(len(queries)):
        count = docs.shape[1]
        while count > 0 and docs[i, count - 1] < 0:
            count -= 1
        candidates, approximate = docs[i, :count].astype(np.int32), products[i, :count]
        best_docs, best_scores = best_of(queries[i], stored, candidates, approximate, best.shape[1])
        counts[i] = len(best_docs)
        best[i, : len(best_docs)], scores[i, : len(best_docs)] = best_docs, best_scores


@compiled()
def _best_first(docs: Int32s, scores: Float32s, ranks: UInt32s, k: int) -> Best:
    """Return the best `k` documents with a score above -inf, best first, with their scores; see `order_keys`."""
    bits, keys, count = (scores + np.float32(0)).view(np.uint32), np.empty(len(docs), np.uint64), 0
    for i in range(len(docs)):
        ordered = ~bits[i] if bits[i] >> 31 else bits[i] | np.uint32(0x80000000)
        keys[i] = np.uint64(ordered) << np.uint64(32) | np.uint64(ranks[docs[i]])
        count += scores[i] > -np.inf
    order = np.argsort(keys)[::-1][: min(k, count)]
    return docs[order], scores[order]


@compiled()
def _below(threshold: float) -> np.float32:
    """A float32 no greater than the threshold, for comparing many products at once."""
    return np.float32(threshold - 1e-6 * abs(threshold) - 1e-37)


@compiled()
def _kth_greatest(values: Float32s, k: int) -> np.float32:
    """Return the kth greatest of the values, which are reordered (Hoare's selection); Numba takes long to compile partition."""
    first, last = 0, len(values) - 1
    while first < last:
        a, b, c = values[first], values[(first + last) // 2], values[last]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if k - 1 <= j:
            last = j
        elif k - 1 >= i:
            first = i
        else:
            break
    return np.float32(values[k - 1])


@compiled()
def _shrink(query: int, k: int, state: Candidates) -> None:
    """Drop candidates whose product is below the kth by more than twice the error: they cannot be among the best k."""
    thresholds, docs, values, counts, errors = state
    filled = counts[query]
    if filled <= k:
        return
    kth = _kth_greatest(values[query, :filled].copy(), k)
    threshold = max(thresholds[query], np.float64(kth) - 2 * errors[query])
    count = 0
    for i in range(filled):
        if values[query, i] >= threshold:
            docs[query, count] = docs[query, i]
            values[query, count] = values[query, i]
            count += 1
    thresholds[query] = threshold
    counts[query] = count
