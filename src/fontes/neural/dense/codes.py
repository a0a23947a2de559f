"""Products of queries with packed RaBitQ codes, to find candidates."""

from __future__ import annotations

import math

import numpy as np

from ...core.arrays import Bytes, Float32s, Int16s
from ...storage.compiled import compiled

MIN_STEP = 1e-30  # between two levels of a rounded query
TWO, THREE, FOUR, SIX, FIFTEEN = map(np.int32, (2, 3, 4, 6, 15))


def multiply_codes(queries: Float32s, codes: Bytes, scales: Float32s, bits: int, out: Float32s) -> None:
    """Write the products of a few queries with all decoded vectors to `out`, exact up to `rounding_error`.

    Args:
        queries: float32 (queries, dimensions), rotated.
        codes: uint8 (rows, dimensions · bits / 8).
        scales: float32 (rows,).
        bits: 1, 2 or 4.
        out: float32 (queries, rows).
    """
    for query, row in zip(queries, out, strict=True):
        if bits == 1:
            _multiply_1(_byte_products(query), codes, scales, row)
            continue
        step = _step(query, bits)
        rounded = np.rint(query / step).astype(np.int16)
        multiply = _multiply_4 if bits == 4 else _multiply_2
        multiply(rounded, int(rounded.sum(dtype=np.int64)), step, codes, scales, row)


def rounding_error(query: Float32s, longest: float, bits: int) -> float:
    """Upper bound of the error of products with vectors of at most length `longest`, from rounding the query."""
    return 0.0 if bits == 1 else float(_step(query, bits)) * 0.501 * math.sqrt(len(query)) * longest


def _step(query: Float32s, bits: int) -> np.float32:
    """Step between two levels of a query rounded to int16, above 0, such that sums of products with codes fit into an int32."""
    levels = min(np.iinfo(np.int16).max, np.iinfo(np.int32).max // (len(query) << bits))
    return np.float32(max(float(np.abs(query).max()) / levels, MIN_STEP))


def _byte_products(query: Float32s) -> Float32s:
    """Products of the query with each value of each byte of 1-bit codes: float32 (bytes, 256)."""
    table = np.zeros((len(query) // 8, 1), dtype=np.float32)
    for part in query.reshape(8, -1):
        table = np.concatenate([table - part[:, None], table + part[:, None]], axis=1)
    return table


@compiled()
def _multiply_1(tables: Float32s, codes: Bytes, scales: Float32s, out: Float32s) -> None:
    step = len(codes) // 4
    flat, width = tables.reshape(tables.size), codes.shape[1]
    for i in range(step):
        s = t = u = v = np.float32(0)
        for j in range(width):
            offset = j << 8
            s += flat[offset + codes[i, j]]
            t += flat[offset + codes[i + step, j]]
            u += flat[offset + codes[i + 2 * step, j]]
            v += flat[offset + codes[i + 3 * step, j]]
        out[i], out[i + step], out[i + 2 * step], out[i + 3 * step] = s, t, u, v
    for i in range(4 * step, len(codes)):
        s = np.float32(0)
        for j in range(width):
            s += flat[(j << 8) + codes[i, j]]
        out[i] = s
    for i in range(len(scales)):
        out[i] *= scales[i]


@compiled()
def _multiply_2(query: Int16s, total: int, step: np.float32, codes: Bytes, scales: Float32s, out: Float32s) -> None:
    width = codes.shape[1]
    a, b, c, d = query[:width], query[width : 2 * width], query[2 * width : 3 * width], query[3 * width :]
    for i in range(len(codes)):
        code, s = codes[i], np.int32(0)
        for j in range(width):  # Numba widens each operation
            x = np.int32(code[j])
            s = np.int32(s + np.int32(np.int32(a[j]) * np.int32(x & THREE)))
            s = np.int32(s + np.int32(np.int32(b[j]) * np.int32(np.int32(x >> TWO) & THREE)))
            s = np.int32(s + np.int32(np.int32(c[j]) * np.int32(np.int32(x >> FOUR) & THREE)))
            s = np.int32(s + np.int32(np.int32(d[j]) * np.int32(x >> SIX)))
        out[i] = np.float32(2 * np.int64(s) - 3 * total) * step * scales[i]


@compiled()
def _multiply_4(query: Int16s, total: int, step: np.float32, codes: Bytes, scales: Float32s, out: Float32s) -> None:
    width = codes.shape[1]
    a, b = query[:width], query[width:]
    for i in range(len(codes)):
        code, s = codes[i], np.int32(0)
        for j in range(width):
            x = np.int32(code[j])
            s = np.int32(s + np.int32(np.int32(a[j]) * np.int32(x & FIFTEEN)))
            s = np.int32(s + np.int32(np.int32(b[j]) * np.int32(x >> FOUR)))
        out[i] = np.float32(2 * np.int64(s) - 15 * total) * step * scales[i]
