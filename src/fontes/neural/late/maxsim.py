"""MaxSim: the sum, over a query's tokens, of the best similarity of a document's tokens; compiled.

A similarity is a float32 sum over the dimensions in order; each product is added with one rounding (fused multiply-add). The
sum over the query's tokens is taken in order in float64 and rounded to float32 once. A score therefore depends on the query
and the document only, not on the batch, threads or processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.arrays import Float32s, Int64s, Ints
from ...core.errors import ParameterError
from ...storage.compiled import compiled
from ..llvm import cgutils, function_of, instruction, intrinsic, ir, pointer_at, splat, types

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.types import Type
    from numba.core.typing.context import BaseContext as Context

LANES = 16  # queries are padded to a multiple of 16 tokens: 16 float32 fill a vector register
ROWS_PER_TILE = 6  # rows of a document multiplied at a time: 6 times 16 sums fit into the registers of any processor


def maxsim(query: Float32s, vectors: Float32s, bounds: Ints) -> Float32s:
    """Score each document for a query (Khattab and Zaharia, SIGIR 2020, equation 3). Releases the GIL.

    Args:
        query: float32 (tokens, dim).
        vectors: Concatenated token vectors of the documents, float32 (all tokens, dim).
        bounds: Document i has the rows bounds[i]:bounds[i+1]; a document without rows gets -inf.

    Returns:
        float32 (documents,).
    """
    scores = np.empty(len(bounds) - 1, dtype=np.float32)
    vectors = _checked(query, vectors)
    _maxsim(padded(query), len(query), vectors, np.asarray(bounds, dtype=np.int64), scores)
    return scores


def best_tokens(query: Float32s, vectors: Float32s) -> tuple[Int64s, Float32s]:
    """Index of the document's best token for each token of the query (the first of equals), and their similarity."""
    columns, vectors = padded(query), _checked(query, vectors)
    tokens, best = np.zeros(columns.shape[1], dtype=np.int64), np.empty(columns.shape[1], dtype=np.float32)
    _best_tokens(columns, vectors, tokens, best)
    return tokens[: len(query)], best[: len(query)]


def products(columns: Float32s, vectors: Float32s, out: Float32s) -> None:
    """Write the similarities of vectors, float32 (vectors, dim), with a query's `padded` tokens to `out` (vectors, tokens)."""
    _products(columns, np.ascontiguousarray(vectors, dtype=np.float32), out)


def padded(query: Float32s) -> Float32s:
    """Vectors of a query as columns, float32 (dim, tokens), padded with columns of zeros to a multiple of 16."""
    columns = np.zeros((query.shape[1], -(-len(query) // LANES) * LANES), dtype=np.float32)
    columns[:, : len(query)] = query.T
    return columns


def _checked(query: Float32s, vectors: Float32s) -> Float32s:
    """Contiguous document vectors; raises ParameterError unless they have the query's dimensions."""
    if query.shape[1] != vectors.shape[1]:
        raise ParameterError(f"the query's vectors have {query.shape[1]} dimensions, the documents' have {vectors.shape[1]}")
    return np.ascontiguousarray(vectors, dtype=np.float32)


@compiled()
def _maxsim(query: Float32s, tokens: int, vectors: Float32s, bounds: Int64s, scores: Float32s) -> None:
    width = query.shape[1]
    best = np.empty(width, dtype=np.float32)
    sums = np.empty((ROWS_PER_TILE, width), dtype=np.float32)
    for i in range(len(scores)):
        last = bounds[i + 1] - 1
        best[:] = -np.inf
        for t in range(bounds[i], bounds[i + 1], ROWS_PER_TILE):
            for column in range(0, width, LANES):
                _multiply(query, column, vectors, t, last, sums)
            for r in range(ROWS_PER_TILE):
                for c in range(width):
                    best[c] = max(best[c], sums[r, c])
        total = 0.0
        for c in range(tokens):
            total += best[c]
        scores[i] = total


@compiled()
def _products(query: Float32s, vectors: Float32s, out: Float32s) -> None:
    width, sums = query.shape[1], np.empty((ROWS_PER_TILE, query.shape[1]), dtype=np.float32)
    for t in range(0, len(vectors), ROWS_PER_TILE):
        for column in range(0, width, LANES):
            _multiply(query, column, vectors, t, len(vectors) - 1, sums)
        for r in range(min(ROWS_PER_TILE, len(vectors) - t)):
            for c in range(width):
                out[t + r, c] = sums[r, c]


@compiled()
def _best_tokens(query: Float32s, vectors: Float32s, tokens: Int64s, best: Float32s) -> None:
    width = query.shape[1]
    sums = np.empty((ROWS_PER_TILE, width), dtype=np.float32)
    best[:] = -np.inf
    for t in range(0, len(vectors), ROWS_PER_TILE):
        for column in range(0, width, LANES):
            _multiply(query, column, vectors, t, len(vectors) - 1, sums)
        for r in range(min(ROWS_PER_TILE, len(vectors) - t)):
            for c in range(width):
                if sums[r, c] > best[c]:
                    best[c], tokens[c] = sums[r, c], t + r


def _columns(context: Context, query: Type, column: Type, vectors: Type, first: Type, last: Type, sums: Type) -> object:
    """Write the similarities of the LANES query tokens from `column` on with the ROWS_PER_TILE rows from `first` on to `sums`.

    Rows after `last` are read as row `last`. The sums stay in registers; a loop in Numba would load and store them at each
    dimension.
    """

    def emit(_: object, builder: IRBuilder, query: Value, column: Value, vectors: Value, *rest: Value) -> None:
        first, last, out = rest
        (dim, width), (_rows, size) = (cgutils.unpack_tuple(builder, array.shape) for array in (query, vectors))
        lanes, number = ir.VectorType(ir.FloatType(), LANES), first.type
        fused = function_of(builder, f"llvm.fma.v{LANES}f32", lanes, [lanes] * 3)
        rows, totals = [], []
        for r in range(ROWS_PER_TILE):
            row = builder.add(first, number(r))
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            rows.append(builder.gep(vectors.data, [builder.mul(row, size)]))
            totals.append(cgutils.alloca_once_value(builder, ir.Constant(lanes, [0.0] * LANES)))
        with cgutils.for_range(builder, dim) as loop:
            offset = builder.add(builder.mul(loop.index, width), column)
            tokens = builder.load(pointer_at(builder, query.data, offset, lanes), align=4)
            for row, total in zip(rows, totals, strict=True):
                value = splat(builder, builder.load(builder.gep(row, [loop.index])), LANES)
                builder.store(builder.call(fused, [value, tokens, builder.load(total)]), total)
        for r, total in enumerate(totals):
            offset = builder.add(builder.mul(number(r), width), column)
            builder.store(builder.load(total), pointer_at(builder, out.data, offset, lanes), align=4)

    return instruction(types.void(query, types.intp, vectors, types.intp, types.intp, sums), emit)


_multiply = intrinsic(_columns)
