"""Estimates of MaxSim in integers, by which a search chooses the documents that get exact scores; compiled.

An estimate depends on the similarities of the query with the centroids and on the document only, not on threads or processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...storage.compiled import compiled
from ..llvm import cgutils, has_feature, intrinsic, ir, types
from .maxsim import LANES
from .residual import Codec

LEVELS = 255  # of a similarity from -1 to 1 in centroid interaction
TABLE_LANES = 32  # tables of levels are padded to a multiple of 32 tokens
ROWS = 4  # rows of a document multiplied at a time by 32 tokens of a query; twice as many by 16
ONE = (1 << 15) - 1  # the integer of 1 in a query's vector
BYTES = 256
MARGIN = 10  # levels, a similarity of 0.1: how much less similar the centroids of estimated tokens may be
REGISTERS = {"avx512bw": ("avx512.pmaddw.d.512", 16), "avx2": ("avx2.pmadd.wd", 8)}  # and their sums of two products


def levels_of(similarities: NDArray[np.float32], tokens: int, threshold: float) -> NDArray[np.uint8]:
    """Round similarities to 255 levels, uint8 (centroids, tokens padded to a multiple of 32); see `interaction`.

    Args:
        similarities: Similarities of all centroids with the query's tokens, float32 (centroids, padded tokens).
        tokens: Number of tokens of the query.
        threshold: A centroid that is less similar to every token of the query gets level 0, that of the similarity -1.
    """
    levels = np.zeros((len(similarities), -(-tokens // TABLE_LANES) * TABLE_LANES), dtype=np.uint8)
    _round(similarities, tokens, np.float32(threshold), levels)
    return levels


def interaction(
    levels: NDArray[np.uint8], tokens: int, codes: NDArray[np.integer[Any]], bounds: NDArray[np.int64], docs: NDArray[np.int64]
) -> NDArray[np.int64]:
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
    levels: NDArray[np.uint8]
    columns: NDArray[np.int16]
    similarities: NDArray[np.int32]
    values: NDArray[np.uint32]
    unit: int

    @classmethod
    def of(
        cls, codec: Codec, query: NDArray[np.float32], similarities: NDArray[np.float32], levels: NDArray[np.uint8]
    ) -> Estimator:
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

    def scores(
        self,
        codes: NDArray[np.integer[Any]],
        residuals: NDArray[np.uint8],
        bounds: NDArray[np.int64],
        docs: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Estimates in units of `unit`, int64 (docs,): document d has codes and residuals bounds[d]:bounds[d+1]."""
        scores, docs = np.empty(len(docs), dtype=np.int64), np.asarray(docs, dtype=np.int64)
        query = self.levels, self.similarities, self.columns, self.values
        _estimate(query, self.tokens, residuals, codes, bounds, docs, scores)
        return scores


def _greatest(context: Any, levels: Any, column: Any, codes: Any, first: Any, last: Any, best: Any) -> Any:
    """Write the greatest levels of the centroids `codes[first:last]` in TABLE_LANES columns from `column` on to `best`."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [target.make_array(signature.args[i])(target, builder, arguments[i]) for i in (0, 2, 5)]
        table, numbers, out = [array.data for array in arrays]
        width, column, (first, last) = cgutils.unpack_tuple(builder, arrays[0].shape)[1], arguments[1], arguments[3:5]
        lanes = ir.VectorType(ir.IntType(8), TABLE_LANES)
        greatest = cgutils.alloca_once_value(builder, ir.Constant(lanes, [0] * TABLE_LANES))
        with cgutils.for_range(builder, builder.sub(last, first)) as loop:
            code = builder.zext(builder.load(builder.gep(numbers, [builder.add(first, loop.index)])), width.type)
            row = builder.load(_at(builder, table, builder.add(builder.mul(code, width), column), lanes), align=1)
            nearer = builder.icmp_unsigned(">", row, builder.load(greatest))
            builder.store(builder.select(nearer, row, builder.load(greatest)), greatest)
        builder.store(builder.load(greatest), _at(builder, out, column, lanes), align=1)
        return target.get_dummy_value()

    return types.void(levels, types.intp, codes, types.intp, types.intp, best), generate


def _not_below(context: Any, levels: Any, column: Any, code: Any, least: Any) -> Any:
    """Whether a centroid has a level in the TABLE_LANES columns from `column` on that is not below that of `least`, uint8."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, floor = [target.make_array(signature.args[i])(target, builder, arguments[i]) for i in (0, 3)]
        width, lanes = cgutils.unpack_tuple(builder, table.shape)[1], ir.VectorType(ir.IntType(8), TABLE_LANES)
        column, code = arguments[1:3]
        row = builder.load(_at(builder, table.data, builder.add(builder.mul(code, width), column), lanes), align=1)
        least = builder.load(_at(builder, floor.data, column, lanes), align=1)
        any_lane = builder.bitcast(builder.icmp_unsigned(">=", row, least), ir.IntType(TABLE_LANES))
        return builder.zext(builder.icmp_unsigned("!=", any_lane, any_lane.type(0)), width.type)

    return types.intp(levels, types.intp, types.intp, least), generate


def _tile(lanes: int, rows_per_tile: int) -> Any:
    """Instruction that estimates the similarities of `lanes` tokens of the query with `rows_per_tile` rows."""

    def estimate(
        context: Any, similarities: Any, columns: Any, column: Any, values: Any, residuals: Any, codes: Any,
        rows: Any, first: Any, last: Any, best: Any,
    ) -> Any:  # fmt: skip
        """Raise `best`, int32, to the similarities of `rows_per_tile` tokens, `rows[first]` to at most `rows[last]`.

        The sums stay in registers, and a byte of a residual becomes the values of its dimensions by a table.
        """

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arguments_of_arrays = (0, 1, 3, 4, 5, 6, 9)
            arrays = [target.make_array(signature.args[i])(target, builder, arguments[i]) for i in arguments_of_arrays]
            shapes = [cgutils.unpack_tuple(builder, array.shape) for array in arrays]
            near, query, table, packed, numbers, chosen, out = [array.data for array in arrays]
            (_, width), pairs, per_byte, size = shapes[0], shapes[1][0], shapes[2][0], shapes[3][1]
            column, first, last = (arguments[i] for i in (2, 7, 8))
            sums, word = ir.VectorType(ir.IntType(32), lanes), width.type
            packed_rows, totals = [], []
            for r in range(rows_per_tile):
                index = builder.add(first, word(r))
                index = builder.select(builder.icmp_signed("<", index, last), index, last)
                row = builder.load(builder.gep(chosen, [index]))
                code = builder.zext(builder.load(builder.gep(numbers, [row])), word)
                base = _at(builder, near, builder.add(builder.mul(code, width), column), sums)
                packed_rows.append(builder.gep(packed, [builder.mul(row, size)]))
                totals.append(cgutils.alloca_once_value(builder, builder.load(base, align=4)))
            with (
                cgutils.for_range(builder, builder.udiv(pairs, per_byte)) as byte,
                cgutils.for_range(builder, per_byte) as pair,
            ):
                row_of_query = builder.add(builder.mul(byte.index, per_byte), pair.index)
                start = builder.mul(builder.add(builder.mul(row_of_query, width), column), word(2))
                tokens = builder.load(_at(builder, query, start, ir.VectorType(ir.IntType(16), 2 * lanes)), align=2)
                of_pair = builder.gep(table, [builder.mul(pair.index, word(BYTES))])
                for row, total in zip(packed_rows, totals, strict=True):
                    number = builder.zext(builder.load(builder.gep(row, [byte.index])), word)
                    value = builder.load(builder.gep(of_pair, [number]))
                    builder.store(_add_products(builder, builder.load(total), value, tokens), total)
            best = _at(builder, out, column, sums)
            for total in totals:
                value, greatest = builder.load(total), builder.load(best, align=4)
                builder.store(builder.select(builder.icmp_signed(">", value, greatest), value, greatest), best, align=4)
            return target.get_dummy_value()

        arrays = (similarities, columns, types.intp, values, residuals, codes, rows, types.intp, types.intp, best)
        return types.void(*arrays), generate

    return intrinsic(estimate)


def _add_products(builder: Any, sums: Any, pair: Any, tokens: Any) -> Any:
    """Add to each sum, int32, the products of the pair, two int16 in 32 bits, with the two int16 of its token."""
    lanes, half = sums.type.count, ir.IntType(16)
    name, size = next((REGISTERS[feature] for feature in REGISTERS if has_feature(feature)), ("", lanes))
    added = []
    for start in range(0, lanes, size):
        total, pairs = _part(builder, sums, start, size), _part(builder, tokens, 2 * start, 2 * size)
        if name:
            kinds = ir.VectorType(half, 2 * size), total.type
            add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kinds[1], [kinds[0]] * 2), f"llvm.x86.{name}")
            products = [builder.call(add, [builder.bitcast(_splat(builder, pair, size), kinds[0]), pairs])]
        else:
            products = []
            for i, value in enumerate((builder.trunc(pair, half), builder.trunc(builder.lshr(pair, pair.type(16)), half))):
                every_second = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(i, 2 * size, 2)))
                factor = builder.sext(builder.shuffle_vector(pairs, pairs, every_second), total.type)
                products.append(builder.mul(factor, _splat(builder, builder.sext(value, ir.IntType(32)), size)))
        for product in products:
            total = builder.add(total, product)
        added.append(total)
    while len(added) > 1:
        added = [_joined(builder, *added[i : i + 2]) for i in range(0, len(added), 2)]
    return added[0]


def _at(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    """A vector with the value in all lanes."""
    kind, numbers = ir.VectorType(value.type, lanes), ir.VectorType(ir.IntType(32), lanes)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(single, single, ir.Constant(numbers, [0] * lanes))


def _part(builder: Any, vector: Any, start: int, size: int) -> Any:
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(start, start + size)))
    return builder.shuffle_vector(vector, vector, numbers)


def _joined(builder: Any, a: Any, b: Any) -> Any:
    size = 2 * a.type.count
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(size))))


_most_similar: Any = intrinsic(_greatest)
_is_near: Any = intrinsic(_not_below)
_estimate_16: Any = _tile(LANES, 2 * ROWS)
_estimate_32: Any = _tile(2 * LANES, ROWS)


@compiled()
def _round(similarities: Any, tokens: int, threshold: Any, levels: Any) -> None:
    for i in range(len(similarities)):
        greatest = similarities[i, 0]
        for t in range(tokens):
            greatest = max(greatest, similarities[i, t])
        if greatest >= threshold:
            for t in range(tokens):
                level = np.int32((similarities[i, t] + np.float32(1)) * np.float32(LEVELS / 2) + np.float32(0.5))
                levels[i, t] = min(max(level, 0), LEVELS)


@compiled()
def _interaction(levels: Any, tokens: int, codes: Any, bounds: Any, docs: Any, sums: Any) -> None:
    best = np.empty(levels.shape[1], np.uint8)
    for i in range(len(docs)):
        _greatest_levels(levels, codes, bounds, docs[i], best)
        total = 0
        for c in range(tokens):
            total += best[c]
        sums[i] = total


@compiled()
def _estimate(query: Any, tokens: int, residuals: Any, codes: Any, bounds: Any, docs: Any, scores: Any) -> None:
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
def _greatest_levels(levels: Any, codes: Any, bounds: Any, doc: int, best: Any) -> None:
    for column in range(0, levels.shape[1], TABLE_LANES):
        _most_similar(levels, column, codes, bounds[doc], bounds[doc + 1], best)


@compiled()
def _longest(bounds: Any, docs: Any) -> int:
    """Number of tokens of the longest of the documents, and one more."""
    longest = 0
    for doc in docs:
        longest = max(longest, bounds[doc + 1] - bounds[doc])
    return longest + 1
