"""Products of queries with packed RaBitQ codes, to find candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...storage.compiled import compiled


def multiply_codes(
    queries: NDArray[np.float32], codes: NDArray[np.uint8], scales: NDArray[np.float32], bits: int, out: NDArray[np.float32]
) -> None:
    """Write the float32 products of a few queries with all decoded vectors to `out`.

    Args:
        queries: (queries, dimensions), rotated.
        codes: (rows, dimensions · bits / 8).
        scales: (rows,).
        bits: 1, 2 or 4.
        out: (queries, rows).
    """
    for query, row in zip(queries, out, strict=True):
        if bits == 4:
            _multiply_4(query, codes, scales, row)
        elif bits == 2:
            _multiply_2(query, codes, scales, row)
        else:
            _multiply_1(_tables(query), codes, scales, row)


def _tables(query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Products with each byte of 1-bit codes: float32 (bytes, 256)."""
    table = np.zeros((len(query) // 8, 1), dtype=np.float32)
    for part in query.reshape(8, -1):
        table = np.concatenate([table - part[:, None], table + part[:, None]], axis=1)
    return table


@compiled()
def _multiply_1(tables: Any, codes: Any, scales: Any, out: Any) -> None:
    step = len(codes) // 4
    flat, width = tables.reshape(tables.size), codes.shape[1]
    for i in range(step):
        s = t = u = v = np.float32(0)
        for j in range(width):
            at = j << 8
            s += flat[at + codes[i, j]]
            t += flat[at + codes[i + step, j]]
            u += flat[at + codes[i + 2 * step, j]]
            v += flat[at + codes[i + 3 * step, j]]
        out[i], out[i + step], out[i + 2 * step], out[i + 3 * step] = s, t, u, v
    for i in range(4 * step, len(codes)):
        s = np.float32(0)
        for j in range(width):
            s += flat[(j << 8) + codes[i, j]]
        out[i] = s
    for i in range(len(scales)):
        out[i] *= scales[i]


@compiled(fastmath={"reassoc", "contract"})
def _multiply_2(query: Any, codes: Any, scales: Any, out: Any) -> None:
    width = codes.shape[1]
    a, b, c, d = query[:width], query[width : 2 * width], query[2 * width : 3 * width], query[3 * width :]
    for i in range(len(codes)):
        code, s = codes[i], np.float32(0)
        for j in range(width):
            x = np.int32(code[j])
            s += a[j] * np.float32(np.int32(2 * (x & 3) - 3))
            s += b[j] * np.float32(np.int32(2 * (x >> 2 & 3) - 3))
            s += c[j] * np.float32(np.int32(2 * (x >> 4 & 3) - 3))
            s += d[j] * np.float32(np.int32(2 * (x >> 6) - 3))
        out[i] = s * scales[i]


@compiled(fastmath={"reassoc", "contract"})
def _multiply_4(query: Any, codes: Any, scales: Any, out: Any) -> None:
    width = codes.shape[1]
    a, b = query[:width], query[width:]
    for i in range(len(codes)):
        code, s = codes[i], np.float32(0)
        for j in range(width):
            x = np.int32(code[j])
            s += a[j] * np.float32(np.int32(2 * (x & 15) - 15))
            s += b[j] * np.float32(np.int32(2 * (x >> 4) - 15))
        out[i] = s * scales[i]
