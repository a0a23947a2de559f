"""Compiled products of query vectors with stored vectors: float32 products to find candidates, and exact scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Float64s, Int32s, Int64s, Numbers
from ...index.embeddings.vectors import Embeddings
from ...storage.compiled import compiled
from ..llvm import CACHE_LINE, cgutils, function_of, instruction, intrinsic, ir, pointer_at, prefetch, types

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Type as LLVMType, Value
    from numba.core.types import Array, Type
    from numba.core.typing.context import BaseContext as Context

AHEAD = 4  # documents whose vectors are loaded before they are scored
PARTS = 8  # partial sums of a score
STREAMS = 4  # memory streams that a thread reads at a time; one stream leaves a third of the bandwidth unused


def decoded(embeddings: Embeddings, first: int, last: int) -> Float32s:
    """Rows `first` to `last` as float32, with RaBitQ codes still rotated; rows stored as float32 are not copied."""
    if embeddings.dtype == "float32":
        return embeddings.vectors[first:last]
    numbers = without_float16(embeddings.numbers(slice(first, last)))
    out = np.empty(numbers.shape, dtype=np.float32)
    _decode(numbers, embeddings.scales[first:last], out)
    return out


def without_float16(vectors: Numbers) -> Numbers:
    """Vectors for compiled code, which does not support float16: float16 is viewed as uint16."""
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


def _widened(target: Any, builder: IRBuilder, kind: Type, number: Value, lanes: int = 0) -> Value:
    """Convert a float32, int8 or the bits of a finite float16 as uint16, or a vector of `lanes` of them, to float32."""

    def of(element: LLVMType) -> LLVMType:
        return ir.VectorType(element, lanes) if lanes else element

    def constant(element: LLVMType, value: float) -> Value:
        return ir.Constant(of(element), [value] * lanes if lanes else value)

    if kind == types.float32:
        return number
    if kind == types.int8:
        return builder.sitofp(number, of(ir.FloatType()))
    triple, _, features = target.codegen().magic_tuple()
    if "+f16c" in features.split(",") or triple.startswith(("aarch64", "arm64")):
        return builder.fpext(builder.bitcast(number, of(ir.HalfType())), of(ir.FloatType()))
    # Shift the bits to their places in a float32 and correct the exponent by a product.
    word = ir.IntType(32)
    bits = builder.zext(number, of(word))
    magnitude = builder.shl(builder.and_(bits, constant(word, 0x7FFF)), constant(word, 13))
    sign = builder.shl(builder.and_(bits, constant(word, 0x8000)), constant(word, 16))
    return builder.fmul(builder.bitcast(builder.or_(magnitude, sign), of(ir.FloatType())), constant(ir.FloatType(), 2.0**112))


def _to_float32(context: Context, value: Type) -> object:
    """Convert a stored number to float32; see `_widened`."""
    return instruction(types.float32(value), lambda target, builder, number: _widened(target, builder, value, number))


to_float32 = intrinsic(_to_float32)


def _sums(context: Context, query: Array, vector: Array, sums: Array) -> object:
    """Write eight partial sums of products to `sums`, each of every eighth term, without the last terms, fewer than eight.

    Products of two float32 are exact in float64, so that a fused multiply-add gives the same as a product and a sum.
    """

    def emit(target: Any, builder: IRBuilder, *arrays: Value) -> None:
        numbers = ir.VectorType(target.get_value_type(vector.dtype), PARTS)
        wide = ir.VectorType(ir.DoubleType(), PARTS)
        fused = function_of(builder, f"llvm.fma.v{PARTS}f64", wide, [wide] * 3)
        total = cgutils.alloca_once_value(builder, ir.Constant(wide, [0.0] * PARTS))
        (size,) = cgutils.unpack_tuple(builder, arrays[0].shape)
        with cgutils.for_range(builder, builder.udiv(size, ir.Constant(size.type, PARTS))) as loop:
            index = builder.mul(loop.index, ir.Constant(size.type, PARTS))
            terms = builder.load(pointer_at(builder, arrays[0].data, index, wide), align=8)
            stored = builder.load(pointer_at(builder, arrays[1].data, index, numbers), align=1)
            others = builder.fpext(_widened(target, builder, vector.dtype, stored, PARTS), wide)
            builder.store(builder.call(fused, [terms, others, builder.load(total)]), total)
        builder.store(builder.load(total), pointer_at(builder, arrays[2].data, ir.Constant(size.type, 0), wide), align=8)

    return instruction(types.void(query, vector, sums), emit)


_partial_sums = intrinsic(_sums)


@compiled(fastmath={"reassoc", "contract"})
def multiply(queries: Float32s, vectors: Numbers, scales: Float32s, out: Float32s) -> None:
    """Write the float32 products of a few queries with all vectors to `out`."""
    step = len(vectors) // STREAMS  # references of rows as arrays of their own would be counted, which takes as long
    for query in range(len(queries)):
        row = out[query]
        for i in range(step):
            s = t = u = v = np.float32(0)
            for j in range(vectors.shape[1]):
                x = queries[query, j]
                s += x * to_float32(vectors[i, j])
                t += x * to_float32(vectors[i + step, j])
                u += x * to_float32(vectors[i + 2 * step, j])
                v += x * to_float32(vectors[i + 3 * step, j])
            row[i], row[i + step], row[i + 2 * step], row[i + 3 * step] = s, t, u, v
        for i in range(STREAMS * step, len(vectors)):
            s = np.float32(0)
            for j in range(vectors.shape[1]):
                s += queries[query, j] * to_float32(vectors[i, j])
            row[i] = s
        for i in range(len(scales)):
            row[i] *= scales[i]


@compiled()
def _decode(vectors: Numbers, scales: Float32s, out: Float32s) -> None:
    for row in range(len(vectors)):
        for i in range(vectors.shape[1]):
            out[row, i] = to_float32(vectors[row, i])
        if len(scales) > 0:
            for i in range(vectors.shape[1]):
                out[row, i] *= scales[row]


@compiled()
def scored(
    query: Float64s, vectors: Numbers, scales: Float32s, norms: Float32s, bounds: Int64s, docs: Int32s, out: Float32s
) -> None:
    """Write the exact scores of documents of a segment to `out`: float64 sums, or -inf if all vectors are zeros."""
    sums = np.empty(PARTS, np.float64)
    for i in range(len(docs)):
        if len(bounds) == 0 and i + AHEAD < len(docs):
            for j in range(0, vectors.shape[1], CACHE_LINE // vectors.itemsize):
                prefetch(vectors, docs[i + AHEAD], j)
        first, last = docs[i], docs[i] + 1
        if len(bounds) > 0:
            first, last = bounds[docs[i]], bounds[docs[i] + 1]
        best = -np.inf
        for row in range(first, last):
            if norms[row] > 0:
                scale = np.float64(scales[row]) if len(scales) > 0 else 1.0
                best = max(best, scale * _dot(query, vectors[row], sums))
        out[i] = best


@compiled()
def _dot(query: Float64s, vector: Numbers, sums: Float64s) -> np.float64:
    """Inner product in eight partial sums, each of every eighth term, for which there is room in `sums`."""
    _partial_sums(query, vector, sums)
    a, b, c, d, e, f, g, h = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]
    for i in range(len(query) - len(query) % PARTS, len(query)):
        a += query[i] * np.float64(to_float32(vector[i]))
    return np.float64(((a + b) + (c + d)) + ((e + f) + (g + h)))
