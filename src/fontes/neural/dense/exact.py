"""Exact vector search; a few queries in few vectors use numpy, which takes less time than loading compiled code."""

from __future__ import annotations

import numpy as np

from ...core.arrays import Bools, Float32s, Float64s, Ints
from ...core.ranking import order_keys
from ...core.strings import Strings
from ...index.embeddings.rabitq import BITS
from ...index.embeddings.vectors import Embeddings, JoinedEmbeddings
from ...storage.compiled import affordable
from ..results import Best

RATE = 64  # products of two numbers that numpy computes in a microsecond
BLOCK_VECTORS = 1 << 12  # vectors multiplied at a time
LANES = 8  # partial sums, as in `products._dot`


def nearest(embeddings: JoinedEmbeddings, queries: Float32s, k: int, ids: Strings, allowed: Bools | None = None) -> list[Best]:
    """Return the `k` documents with the greatest inner products, and the products, for each query; see `vectors.nearest`."""
    supported = embeddings.dtype not in BITS and embeddings.single
    if supported and affordable(len(queries) * len(embeddings) * embeddings.dim // RATE):
        return few_nearest(embeddings, queries, k, ids, allowed)
    from . import vectors

    return vectors.nearest(embeddings, queries, k, ids, allowed)


def few_nearest(embeddings: JoinedEmbeddings, queries: Float32s, k: int, ids: Strings, allowed: Bools | None) -> list[Best]:
    """`vectors.nearest` by numpy, with equal results, for one vector per document and no RaBitQ codes."""
    docs = np.arange(embeddings.documents, dtype=np.int32) if allowed is None else np.flatnonzero(allowed).astype(np.int32)
    scores = np.empty((len(queries), len(docs)), np.float32)
    for segment, rows, leaf_docs in embeddings.split(docs):
        scores[:, rows] = _scores(queries.astype(np.float64), segment.embeddings, leaf_docs)
    rankings = []
    for row in scores:
        order = np.argsort(order_keys(row, ids.rank[docs]))[::-1][: min(k, np.count_nonzero(row > -np.inf))]
        rankings.append((docs[order], row[order]))
    return rankings


def _scores(queries: Float64s, embeddings: Embeddings, docs: Ints) -> Float32s:
    """Scores of documents of a segment, float32 (queries, docs), summed in the order of `products.scored`."""
    scores = np.empty((len(queries), len(docs)))
    aligned = embeddings.dim - embeddings.dim % LANES
    for start in range(0, len(docs), BLOCK_VECTORS):
        block = slice(start, start + BLOCK_VECTORS)
        rows = np.asarray(embeddings.vectors[docs[block]], np.float64)
        for query, out in zip(queries, scores[:, block], strict=True):
            products = rows * query
            sums = np.zeros((len(rows), LANES))
            for lane in range(0, aligned, LANES):
                sums += products[:, lane : lane + LANES]
            for column in range(aligned, embeddings.dim):
                sums[:, 0] += products[:, column]
            a, b, c, d, e, f, g, h = sums.T
            out[:] = ((a + b) + (c + d)) + ((e + f) + (g + h))
    if len(embeddings.scales):
        scores *= embeddings.scales[docs].astype(np.float64)
    scores[:, embeddings.norms[docs] == 0] = -np.inf
    with np.errstate(over="ignore"):  # as in compiled code
        return scores.astype(np.float32)
