"""MaxSim: for each token of a query the best similarity among a document's tokens, summed; compiled.

Each similarity is a float32 sum over the dimensions in their order, without fused operations, and the sum over the query's
tokens is a float64 one in their order, rounded to float32 once. So a score depends on the query and the document alone, not on
what else is scored beside it, nor on threads or processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 16  # queries are padded to a multiple of it, with zeros that are not summed: vectors of 16 float32 fill a register


def maxsim(query: NDArray[np.float32], vectors: NDArray[np.float32], bounds: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """The score of each document for a query (Khattab and Zaharia, SIGIR 2020, equation 3).

    Other threads run meanwhile.

    Args:
        query: One row a token, float32, (tokens, dim).
        vectors: The token vectors of the documents end to end, float32, (all tokens, dim).
        bounds: Document i has the rows bounds[i]:bounds[i+1]; one without a row gets -inf.

    Returns:
        One score a document, float32.
    """
    scores = np.empty(len(bounds) - 1, dtype=np.float32)
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    _maxsim(padded(query), len(query), vectors, np.asarray(bounds, dtype=np.int64), scores)
    return scores


def best_tokens(query: NDArray[np.float32], vectors: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """For each token of the query the place of the best token of one document, and their similarity; the first of equals."""
    columns = padded(query)
    places, best = np.zeros(columns.shape[1], dtype=np.int64), np.empty(columns.shape[1], dtype=np.float32)
    _best_tokens(columns, np.ascontiguousarray(vectors, dtype=np.float32), places, best)
    return places[: len(query)], best[: len(query)]


def interaction(
    similarities: NDArray[np.float32],
    tokens: int,
    codes: NDArray[np.integer[Any]],
    bounds: NDArray[np.int64],
    docs: NDArray[np.int64],
    least: float,
) -> NDArray[np.float32]:
    """MaxSim with each document token replaced by its centroid (Santhanam et al., CIKM 2022, "centroid interaction").

    Args:
        similarities: Of all centroids with the query's tokens, (centroids, padded tokens of the query), as `padded` pads.
        tokens: How many tokens the query has.
        codes: The centroid of each token of all documents.
        bounds: Document d has codes[bounds[d]:bounds[d+1]].
        docs: The documents to score.
        least: Tokens whose centroid is less similar than this to every token of the query are passed over.

    Returns:
        One score for each of `docs`, float32.
    """
    near = similarities[:, :tokens].max(axis=1) >= least
    scores = np.empty(len(docs), dtype=np.float32)
    _interaction(similarities, tokens, near, codes, bounds, docs, scores)
    return scores


def padded(query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors of a query as columns, (dim, tokens), with columns of zeros up to a multiple of 16."""
    columns = np.zeros((query.shape[1], -(-len(query) // LANES) * LANES), dtype=np.float32)
    columns[:, : len(query)] = query.T
    return columns


@njit(cache=True, nogil=True)
def _maxsim(query: Any, tokens: int, vectors: Any, bounds: Any, scores: Any) -> None:
    dim, width = query.shape
    best = np.empty(width, dtype=np.float32)
    sums = np.empty((4, width), dtype=np.float32)
    for i in range(len(scores)):
        last = bounds[i + 1] - 1
        best[:] = -np.inf
        for t in range(bounds[i], bounds[i + 1], 4):
            _four(query, dim, width, vectors, t, last, sums)
            for c in range(width):
                best[c] = max(best[c], sums[0, c], sums[1, c], sums[2, c], sums[3, c])
        total = 0.0
        for c in range(tokens):
            total += best[c]
        scores[i] = total


@njit(cache=True, nogil=True)
def _four(query: Any, dim: int, width: int, vectors: Any, t: int, last: int, sums: Any) -> None:
    """The similarities of the query's tokens with the rows t to t + 3, or with the last one where there are fewer."""
    sums[:] = 0
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    d0, d1, d2, d3 = vectors[t], vectors[min(t + 1, last)], vectors[min(t + 2, last)], vectors[min(t + 3, last)]
    for j in range(dim):
        row = query[j]
        x0, x1, x2, x3 = d0[j], d1[j], d2[j], d3[j]
        for c in range(width):
            s0[c] += x0 * row[c]
            s1[c] += x1 * row[c]
            s2[c] += x2 * row[c]
            s3[c] += x3 * row[c]


@njit(cache=True, nogil=True)
def _best_tokens(query: Any, vectors: Any, places: Any, best: Any) -> None:
    dim, width = query.shape
    sums = np.empty((4, width), dtype=np.float32)
    best[:] = -np.inf
    for t in range(0, len(vectors), 4):
        _four(query, dim, width, vectors, t, len(vectors) - 1, sums)
        for r in range(min(4, len(vectors) - t)):
            for c in range(width):
                if sums[r, c] > best[c]:
                    best[c], places[c] = sums[r, c], t + r


@njit(cache=True, nogil=True)
def _interaction(similarities: Any, tokens: int, near: Any, codes: Any, bounds: Any, docs: Any, scores: Any) -> None:
    width = similarities.shape[1]
    best = np.empty(width, dtype=np.float32)
    for i in range(len(docs)):
        best[:] = -1  # the least similarity of unit vectors
        for t in range(bounds[docs[i]], bounds[docs[i] + 1]):
            if near[codes[t]]:
                row = similarities[codes[t]]
                for c in range(width):
                    best[c] = max(best[c], row[c])
        total = 0.0
        for c in range(tokens):
            total += best[c]
        scores[i] = total
