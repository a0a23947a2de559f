"""Inner products with stored vectors, compiled: quick ones in float32, and exact ones, summed in one order.

Numba knows no float16; its bits are widened by the processor's own instruction where there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...index.embeddings.vectors import Embeddings
from ...storage.compiled import compiled
from ..llvm import intrinsic, ir, types

STREAMS = 4  # places of the memory that one thread reads at a time: one alone leaves a third of its bandwidth unused


def quick(queries: NDArray[np.float32], embeddings: Embeddings, first: int, last: int) -> NDArray[np.float32]:
    """The products of a few queries with the rows from `first` to `last`, in float32."""
    out = np.empty((len(queries), last - first), dtype=np.float32)
    _quick(queries, readable(embeddings.vectors)[first:last], embeddings.scales[first:last], out)
    return out


def decoded(embeddings: Embeddings, first: int, last: int) -> NDArray[np.float32]:
    """The rows from `first` to `last` as float32; those that are stored so are not copied."""
    if embeddings.dtype == "float32":
        return embeddings.vectors[first:last]
    out = np.empty((last - first, embeddings.dim), dtype=np.float32)
    _decode(readable(embeddings.vectors)[first:last], embeddings.scales[first:last], out)
    return out


def exact_products(
    query: NDArray[np.float64], embeddings: Embeddings, docs: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    """The score of each of a segment's documents: float64 products summed in one order, rounded once; -inf where all are zeros.

    Args:
        query: The query.
        embeddings: The vectors of a segment.
        docs: The places of documents in the segment.
        out: Gets a score for each.
    """
    scored(query, readable(embeddings.vectors), embeddings.scales, embeddings.norms, embeddings.bounds, docs, out)


def readable(vectors: NDArray[Any]) -> NDArray[Any]:
    """The vectors for compiled code, which knows no float16: their bits."""
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


def _single(context: Any, value: Any) -> Any:
    """A stored number as float32: a float32 itself, an int8, or a finite float16 that is given as its bits, uint16."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (number,), wide = arguments, ir.FloatType()
        if value == types.float32:
            return number
        if value == types.int8:
            return builder.sitofp(number, wide)
        triple, _, features = target.codegen().magic_tuple()
        if "+f16c" in features.split(",") or triple.startswith(("aarch64", "arm64")):
            return builder.fpext(builder.bitcast(number, ir.HalfType()), wide)
        # The bits moved to their places, and the exponent corrected by a product.
        word: Any = ir.IntType(32)
        bits = builder.zext(number, word)
        magnitude = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        sign = builder.shl(builder.and_(bits, word(0x8000)), word(16))
        return builder.fmul(builder.bitcast(builder.or_(magnitude, sign), wide), ir.Constant(wide, 2.0**112))

    return types.float32(value), generate


single: Any = intrinsic(_single)


@compiled()
def _quick(queries: Any, vectors: Any, scales: Any, out: Any) -> None:
    step = len(vectors) // STREAMS
    for query in range(len(queries)):
        row = out[query]
        for i in range(step):
            a, b, c, d = _four(queries[query], vectors[i], vectors[i + step], vectors[i + 2 * step], vectors[i + 3 * step])
            row[i], row[i + step], row[i + 2 * step], row[i + 3 * step] = a, b, c, d
        for i in range(STREAMS * step, len(vectors)):
            row[i] = _four(queries[query], vectors[i], vectors[i], vectors[i], vectors[i])[0]
        for i in range(len(scales)):
            row[i] *= scales[i]


@compiled(fastmath={"reassoc", "contract"})
def _four(query: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
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
    """`exact_products`, compiled."""
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
    """The inner product in eight sums of every eighth term. Products of two float32 are exact in float64."""
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
