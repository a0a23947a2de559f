"""Estimates of MaxSim in integers, by which a search chooses the documents that get exact scores; compiled.

An estimate depends on the similarities of the query with the centroids and on the document only, not on threads or processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.arrays import Bytes, Float32s, Int16s, Int32s, Int64s, Ints, UInt32s
from ...storage.compiled import compiled
from ..llvm import cgutils, function_of, has_feature, instruction, intrinsic, ir, pointer_at, splat, types
from .maxsim import LANES
from .residual import Codec

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.types import Type
    from numba.core.typing.context import BaseContext as Context

LEVELS = 255  # of a similarity from -1 to 1 in centroid interaction
TABLE_LANES = 32  # tables of levels are padded to a multiple of 32 tokens
ROWS = 4  # rows of a document multiplied at a time by 32 tokens of a query; twice as many by 16
ONE = (1 << 15) - 1  # the integer of 1 in a query's vector
BYTES = 256
MARGIN = 10  # levels, a similarity of 0.1: how much less similar the centroids of estimated tokens may be
REGISTERS = {"avx512bw": ("avx512.pmaddw.d.512", 16), "avx2": ("avx2.pmadd.wd", 8)}  # and their sums of two products


def levels_of(similarities: Float32s, tokens: int, threshold: float) -> Bytes:
    """Round similarities to 255 levels, uint8 (centroids, tokens padded to a multiple of 32); see `interaction`.

    Args:
        similarities: Similarities of all centroids with the query's tokens, float32 (centroids, padded tokens).
        tokens: Number of tokens of the query.
        threshold: A centroid that is less similar to every token of the query gets level 0, that of the similarity -1.
    """
    levels = np.zeros((len(similarities), -(-tokens // TABLE_LANES) * TABLE_LANES), dtype=np.uint8)
    _round(similarities, tokens, np.float32(threshold), levels)
    return levels


def interaction(levels: Bytes, tokens: int, codes: Ints, bounds: Int64s, docs: Int64s) -> Int64s:
    """MaxSim with each document token replaced by its centroid (Santhanam et al., CIKM 2022, "centroid interaction").

    Args:
        levels: Levels of similarities; see `levels_of`.
        tokens: Number of tokens of the query.
        codes: Centroid of each token of all documents.
        bounds: Document d has codes[bounds[d]:bounds[d+1]].
        docs: Documents to score.

    Returns:
        Sums of levels, int64 (docs,).
    """
    sums = np.empty(len(docs), dtype=np.int64)
    _interaction(levels, tokens, codes, bounds, np.asarray(docs, dtype=np.int64), sums)
    return sums


@dataclass(frozen=True)
class Estimator:
    """Estimates of a query's MaxSim with compressed documents.

    A token is its centroid plus its residual, not divided by their length. Tokens count whose centroid is, for a token of the
    query, less than MARGIN less similar than the document's nearest centroid.

    Args:
        tokens: Number of tokens of the query.
        levels: Levels of the centroids' similarities; see `levels_of`.
        columns: Vectors of the query, int16 (pairs of dimensions, padded tokens, 2).
        similarities: Similarities of all centroids with the query's tokens, int32 (centroids, padded tokens).
        values: Values of the pairs of dimensions in a byte of a residual, two int16 as uint32 (pairs in a byte, 256).
        unit: The integer of similarity 1.
    """

    tokens: int
    levels: Bytes
    columns: Int16s
    similarities: Int32s
    values: UInt32s
    unit: int

    @classmethod
    def of(cls, codec: Codec, query: Float32s, similarities: Float32s, levels: Bytes) -> Estimator:
        """Round a query's vectors, its similarities with all centroids (centroids, padded tokens), and the buckets' values."""
        per_byte, greatest = 8 // codec.nbits, float(np.abs(codec.weights).max())
        # A sum of the products of a unit vector must fit into 32 bits, and a bucket's value into 16.
        one = int(min(0.9 * 2**16 / (1 + math.sqrt(query.shape[1]) * greatest), ONE / max(1, greatest)))
        buckets = (np.arange(BYTES)[:, None] >> (np.arange(per_byte) * codec.nbits)) & ((1 << codec.nbits) - 1)
        values = np.rint(codec.weights * one).astype(np.int16)[buckets].view(np.uint32)
        columns = np.zeros((codec.width * per_byte, similarities.shape[1]), dtype=np.int16)
        columns[: query.shape[1], : len(query)] = np.rint(np.clip(query.T, -1, 1) * ONE)
        columns = np.ascontiguousarray(columns.reshape(len(columns) // 2, 2, -1).transpose(0, 2, 1))
        rounded = np.rint(similarities * np.float32(one * ONE)).astype(np.int32)
        return cls(len(query), levels, columns, rounded, np.ascontiguousarray(values.T), one * ONE)

    def scores(self, codes: Ints, residuals: Bytes, bounds: Int64s, docs: Int64s) -> Int64s:
        """Estimates in units of `unit`, int64 (docs,): document d has codes and residuals bounds[d]:bounds[d+1]."""
        scores, docs = np.empty(len(docs), dtype=np.int64), np.asarray(docs, dtype=np.int64)
        query = self.levels, self.similarities, self.columns, self.values
        _estimate(query, self.tokens, residuals, codes, bounds, docs, scores)
        return scores


def _greatest(context: Context, levels: Type, column: Type, codes: Type, first: Type, last: Type, best: Type) -> object:
    """Write the greatest levels of the centroids `codes[first:last]` in TABLE_LANES columns from `column` on to `best`."""

    def emit(_: object, builder: IRBuilder, table: Value, column: Value, codes: Value, *rest: Value) -> None:
        first, last, out = rest
        width, lanes = cgutils.unpack_tuple(builder, table.shape)[1], ir.VectorType(ir.IntType(8), TABLE_LANES)
        greatest = cgutils.alloca_once_value(builder, ir.Constant(lanes, [0] * TABLE_LANES))
        with cgutils.for_range(builder, builder.sub(last, first)) as loop:
            code = builder.zext(builder.load(builder.gep(codes.data, [builder.add(first, loop.index)])), width.type)
            row = builder.load(pointer_at(builder, table.data, builder.add(builder.mul(code, width), column), lanes), align=1)
            nearer = builder.icmp_unsigned(">", row, builder.load(greatest))
            builder.store(builder.select(nearer, row, builder.load(greatest)), greatest)
        builder.store(builder.load(greatest), pointer_at(builder, out.data, column, lanes), align=1)

    return instruction(types.void(levels, types.intp, codes, types.intp, types.intp, best), emit)


def _not_below(context: Context, levels: Type, column: Type, code: Type, least: Type) -> object:
    """Whether a centroid has a level in the TABLE_LANES columns from `column` on that is not below that of `least`, uint8."""

    def emit(_: object, builder: IRBuilder, table: Value, column: Value, code: Value, floor: Value) -> Value:
        width, lanes = cgutils.unpack_tuple(builder, table.shape)[1], ir.VectorType(ir.IntType(8), TABLE_LANES)
        row = builder.load(pointer_at(builder, table.data, builder.add(builder.mul(code, width), column), lanes), align=1)
        least = builder.load(pointer_at(builder, floor.data, column, lanes), align=1)
        any_lane = builder.bitcast(builder.icmp_unsigned(">=", row, least), ir.IntType(TABLE_LANES))
        return builder.zext(builder.icmp_unsigned("!=", any_lane, any_lane.type(0)), width.type)

    return instruction(types.intp(levels, types.intp, types.intp, least), emit)


def _tile(lanes: int, rows_per_tile: int) -> Value:
    """Instruction that estimates the similarities of `lanes` tokens of the query with `rows_per_tile` rows."""

    def estimate(
        context: Context, similarities: Type, columns: Type, column: Type, values: Type, residuals: Type, codes: Type,
        rows: Type, first: Type, last: Type, best: Type,
    ) -> object:  # fmt: skip
        """Raise `best`, int32, to the similarities of `rows_per_tile` tokens, `rows[first]` to at most `rows[last]`.

        The sums stay in registers, and a byte of a residual becomes the values of its dimensions by a table.
        """

        def emit(_: object, builder: IRBuilder, *arguments: Value) -> None:
            near, query, column, table, packed, numbers, chosen, first, last, out = arguments
            width, pairs, per_byte, size = (
                cgutils.unpack_tuple(builder, array.shape)[axis]
                for array, axis in ((near, 1), (query, 0), (table, 0), (packed, 1))
            )
            sums, word = ir.VectorType(ir.IntType(32), lanes), width.type
            packed_rows, totals = [], []
            for r in range(rows_per_tile):
                index = builder.add(first, word(r))
                index = builder.select(builder.icmp_signed("<", index, last), index, last)
                row = builder.load(builder.gep(chosen.data, [index]))
                code = builder.zext(builder.load(builder.gep(numbers.data, [row])), word)
                base = pointer_at(builder, near.data, builder.add(builder.mul(code, width), column), sums)
                packed_rows.append(builder.gep(packed.data, [builder.mul(row, size)]))
                totals.append(cgutils.alloca_once_value(builder, builder.load(base, align=4)))
            with (
                cgutils.for_range(builder, builder.udiv(pairs, per_byte)) as byte,
                cgutils.for_range(builder, per_byte) as pair,
            ):
                row_of_query = builder.add(builder.mul(byte.index, per_byte), pair.index)
                start = builder.mul(builder.add(builder.mul(row_of_query, width), column), word(2))
                kind = ir.VectorType(ir.IntType(16), 2 * lanes)
                tokens = builder.load(pointer_at(builder, query.data, start, kind), align=2)
                of_pair = builder.gep(table.data, [builder.mul(pair.index, word(BYTES))])
                for row, total in zip(packed_rows, totals, strict=True):
                    number = builder.zext(builder.load(builder.gep(row, [byte.index])), word)
                    value = builder.load(builder.gep(of_pair, [number]))
                    builder.store(_add_products(builder, builder.load(total), value, tokens), total)
            best = pointer_at(builder, out.data, column, sums)
            for total in totals:
                value, greatest = builder.load(total), builder.load(best, align=4)
                builder.store(builder.select(builder.icmp_signed(">", value, greatest), value, greatest), best, align=4)

        arrays = (similarities, columns, types.intp, values, residuals, codes, rows, types.intp, types.intp, best)
        return instruction(types.void(*arrays), emit)

    return intrinsic(estimate)


def _add_products(builder: IRBuilder, sums: Value, pair: Value, tokens: Value) -> Value:
    """Add to each sum, int32, the products of the pair, two int16 in 32 bits, with the two int16 of its token."""
    lanes, half = sums.type.count, ir.IntType(16)
    name, size = next((REGISTERS[feature] for feature in REGISTERS if has_feature(feature)), ("", lanes))
    added = []
    for start in range(0, lanes, size):
        total, pairs = _part(builder, sums, start, size), _part(builder, tokens, 2 * start, 2 * size)
        if name:
            kind = ir.VectorType(half, 2 * size)
            add = function_of(builder, f"llvm.x86.{name}", total.type, [kind] * 2)
            products = [builder.call(add, [builder.bitcast(splat(builder, pair, size), kind), pairs])]
        else:
            products = []
            for i, value in enumerate((builder.trunc(pair, half), builder.trunc(builder.lshr(pair, pair.type(16)), half))):
                every_second = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(i, 2 * size, 2)))
                factor = builder.sext(builder.shuffle_vector(pairs, pairs, every_second), total.type)
                products.append(builder.mul(factor, splat(builder, builder.sext(value, ir.IntType(32)), size)))
        for product in products:
            total = builder.add(total, product)
        added.append(total)
    while len(added) > 1:
        added = [_joined(builder, *added[i : i + 2]) for i in range(0, len(added), 2)]
    return added[0]


def _part(builder: IRBuilder, vector: Value, start: int, size: int) -> Value:
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(start, start + size)))
    return builder.shuffle_vector(vector, vector, numbers)


def _joined(builder: IRBuilder, a: Value, b: Value) -> Value:
    size = 2 * a.type.count
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(size))))


_most_similar = intrinsic(_greatest)
_is_near = intrinsic(_not_below)
_estimate_16 = _tile(LANES, 2 * ROWS)
_estimate_32 = _tile(2 * LANES, ROWS)


@compiled()
def _round(similarities: Float32s, tokens: int, threshold: np.float32, levels: Bytes) -> None:
    for i in range(len(similarities)):
        greatest = similarities[i, 0]
        for t in range(tokens):
            greatest = max(greatest, similarities[i, t])
        if greatest >= threshold:
            for t in range(tokens):
                level = np.int32((similarities[i, t] + np.float32(1)) * np.float32(LEVELS / 2) + np.float32(0.5))
                levels[i, t] = min(max(level, np.int32(0)), np.int32(LEVELS))


@compiled()
def _interaction(levels: Bytes, tokens: int, codes: Ints, bounds: Int64s, docs: Int64s, sums: Int64s) -> None:
    best = np.empty(levels.shape[1], np.uint8)
    for i in range(len(docs)):
        _greatest_levels(levels, codes, bounds, docs[i], best)
        total = 0
        for c in range(tokens):
            total += best[c]
        sums[i] = total


@compiled()
def _estimate(
    query: tuple[Bytes, Int32s, Int16s, UInt32s],
    tokens: int,
    residuals: Bytes,
    codes: Ints,
    bounds: Int64s,
    docs: Int64s,
    scores: Int64s,
) -> None:
    levels, similarities, columns, values = query
    width = similarities.shape[1]
    least, best = np.empty(levels.shape[1], np.uint8), np.empty(width, np.int32)
    rows = np.empty(_longest(bounds, docs), np.int64)
    for i in range(len(docs)):
        _greatest_levels(levels, codes, bounds, docs[i], least)
        for c in range(len(least)):
            least[c] = max(least[c], MARGIN) - MARGIN if c < tokens else LEVELS
        count = 0
        for row in range(bounds[docs[i]], bounds[docs[i] + 1]):  # without a branch, which would be mispredicted
            rows[count] = row
            near = 0
            for column in range(0, levels.shape[1], TABLE_LANES):
                near |= _is_near(levels, column, np.int64(codes[row]), least)
            count += near
        best[:] = -(1 << 31)
        for column in range(0, width - LANES, 2 * LANES):
            for first in range(0, count, ROWS):
                _estimate_32(similarities, columns, column, values, residuals, codes, rows, first, count - 1, best)
        if width % (2 * LANES):
            for first in range(0, count, 2 * ROWS):
                _estimate_16(similarities, columns, width - LANES, values, residuals, codes, rows, first, count - 1, best)
        total = 0
        for c in range(tokens):
            total += best[c]
        scores[i] = total


@compiled()
def _greatest_levels(levels: Bytes, codes: Ints, bounds: Int64s, doc: int, best: Bytes) -> None:
    for column in range(0, levels.shape[1], TABLE_LANES):
        _most_similar(levels, column, codes, bounds[doc], bounds[doc + 1], best)


@compiled()
def _longest(bounds: Int64s, docs: Int64s) -> int:
    """Number of tokens of the longest of the documents, and one more."""
    longest = 0
    for doc in docs:
        longest = max(longest, bounds[doc + 1] - bounds[doc])
    return longest + 1
