"""RaBitQ: vectors as codes of 1, 2 or 4 bits per dimension, with an unbiased estimator of inner products.

A vector is rotated by a fixed random rotation; its code is the grid vector that has the greatest cosine with it. For a rotated
vector r and its grid vector u, with odd coordinates, |r|² / <u, r> · <u, q> estimates the inner product with a rotated query q
without bias over rotations (Gao and Long, SIGMOD 2024; more bits: Gao et al., SIGMOD 2025). No centroid is subtracted.

The rotation is the one in the authors' library: four rounds of random signs, a Walsh-Hadamard transform of the first or the
last 2ᵖ coordinates, and a Kac step between the halves. It depends only on the number of dimensions, so all segments share it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from ...core.arrays import Bytes, Float32s, Float64s, Floats, Int8s, Int64s
from ...core.errors import ParameterError
from ...storage.compiled import inner, kernel

BITS = {"rabitq4": 4, "rabitq2": 2, "rabitq1": 1}
MULTIPLE = 64  # the number of dimensions of rotated vectors is a multiple of this
MIN_DIM = 8  # minimum number of dimensions: the estimator's error falls with its square root
ROUNDS = 4


def padded(dim: int) -> int:
    """Number of dimensions of a rotated vector: the next multiple of 64."""
    return -(-dim // MULTIPLE) * MULTIPLE


def check_dim(dtype: str, dim: int, encoder: str) -> None:
    """Raise ParameterError for vectors with too few dimensions for `dtype`."""
    if dtype in BITS and dim < MIN_DIM:
        raise ParameterError(
            f"{dtype} needs vectors of at least {MIN_DIM} dimensions; {encoder} has {dim}: "
            "store them as float32, float16 or int8"
        )


@lru_cache(8)
def signs_of(size: int) -> Float64s:
    """Return the random signs of each round, float64 (4, size), from the bits of SHAKE-256 of the size."""
    raw = hashlib.shake_256(f"fontes rabitq {size}".encode()).digest(ROUNDS * size // 8)
    bits: Bytes = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little").reshape(ROUNDS, size)
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)


def rotated(vectors: Floats) -> Float64s:
    """Rotate vectors, padded with zeros: float64 (rows, dim) to (rows, padded(dim))."""
    size = padded(vectors.shape[1])
    out = np.zeros((len(vectors), size), dtype=np.float64)
    out[:, : vectors.shape[1]] = vectors
    _rotate(out, signs_of(size), False)
    return out


def rotated_back(vectors: Floats, dim: int) -> Float32s:
    """Undo `rotated`: (rows, padded(dim)) to float32 (rows, dim)."""
    out = vectors.astype(np.float64)
    _rotate(out, signs_of(out.shape[1]), True)
    return out[:, :dim].astype(np.float32)


def encoded(vectors: Float32s, bits: int) -> tuple[Bytes, Float32s, Float64s]:
    """Encode finite vectors.

    Args:
        vectors: (rows, dim).
        bits: 1, 2 or 4.

    Returns:
        Packed codes, uint8 (rows, padded(dim) · bits / 8); factors, float32 (rows,); lengths of the decoded vectors, float64.
    """
    rows = rotated(vectors)
    codes = np.empty((len(rows), rows.shape[1] * bits // 8), dtype=np.uint8)
    factors, lengths = np.empty(len(rows), dtype=np.float32), np.empty(len(rows), dtype=np.float64)
    _encode(rows, bits, codes, factors, lengths)
    return codes, factors, lengths


def unpacked(codes: Bytes, bits: int) -> Int8s:
    """Return the grid vectors of packed codes: int8 (rows, dimensions), odd numbers from 1 - 2ᵇ to 2ᵇ - 1."""
    out = np.empty((len(codes), codes.shape[1] * 8 // bits), dtype=np.int8)
    _unpack(codes, bits, out)
    return out


@kernel()
def _rotate(rows: Float64s, signs: Float64s, back: bool) -> None:
    size, part = rows.shape[1], 1
    while 2 * part <= size:
        part *= 2
    for row in range(len(rows)):
        vector = rows[row]
        for step in range(ROUNDS):
            turn = ROUNDS - 1 - step if back else step
            start = 0 if turn % 2 == 0 else size - part
            if back:
                if part < size:
                    _kac(vector)
                _hadamard(vector[start : start + part])
            for i in range(size):
                vector[i] *= signs[turn, i]
            if not back:
                _hadamard(vector[start : start + part])
                if part < size:
                    _kac(vector)


@inner()
def _hadamard(vector: Float64s) -> None:
    """Apply the orthonormal Walsh-Hadamard transform, its own inverse, to 2ᵖ numbers in place."""
    width = 1
    while width < len(vector):
        for start in range(0, len(vector), 2 * width):
            for i in range(start, start + width):
                a, b = vector[i], vector[i + width]
                vector[i], vector[i + width] = a + b, a - b
        width *= 2
    factor = 1.0 / np.sqrt(np.float64(len(vector)))
    for i in range(len(vector)):
        vector[i] *= factor


@inner()
def _kac(vector: Float64s) -> None:
    """Replace the two halves by their orthonormal sums and differences in place; its own inverse."""
    half, factor = len(vector) // 2, np.sqrt(0.5)
    for i in range(half):
        a, b = vector[i], vector[i + half]
        vector[i], vector[i + half] = (a + b) * factor, (a - b) * factor


@kernel()
def _encode(rows: Float64s, bits: int, codes: Bytes, factors: Float32s, lengths: Float64s) -> None:
    size, width = rows.shape[1], codes.shape[1]
    levels = np.empty(size, np.int64)
    for row in range(len(rows)):
        vector, longest, squares = rows[row], 0.0, 0.0
        for i in range(size):
            longest = max(longest, abs(vector[i]))
        codes[row], factors[row], lengths[row] = 0, 0, 0
        if longest == 0:
            continue
        vector /= longest  # squares of tiny numbers would vanish
        levels[:] = 0
        if bits > 1:
            _nearest_levels(vector, (1 << (bits - 1)) - 1, levels)
        product, length = 0.0, 0.0
        for i in range(size):
            level = 2 * levels[i] + 1
            squares += vector[i] * vector[i]
            product += level * abs(vector[i])
            length += level * level
            code = (1 << (bits - 1)) + (levels[i] if vector[i] >= 0 else -1 - levels[i])
            codes[row, i % width] |= np.uint8(code << (bits * (i // width)))
        factors[row] = squares / product * longest
        lengths[row] = np.float64(factors[row]) * np.sqrt(length)


@inner()
def _nearest_levels(vector: Float64s, highest: int, levels: Int64s) -> None:
    """Set the levels, 0 to `highest`, for which the vector of 2 · level + 1 has the greatest cosine with the magnitudes.

    The best levels are floor(t · magnitude) for some t: all are tried, in the order of the t at which a level rises.
    """
    size, count, product, squares = len(vector), 0, 0.0, np.float64(len(vector))
    rises = np.empty(size * highest, np.float64)
    dimensions = np.empty(size * highest, np.int64)
    for i in range(size):
        product += abs(vector[i])
        if vector[i] != 0:
            for level in range(1, highest + 1):
                rises[count], dimensions[count] = level / abs(vector[i]), i
                count += 1
    order = np.argsort(rises[:count], kind="mergesort")
    best, best_steps = product * product / squares, 0
    for step in range(count):
        i = dimensions[order[step]]
        levels[i] += 1
        product += 2 * abs(vector[i])
        squares += 8.0 * levels[i]  # (2 l + 1)² - (2 l - 1)²
        cosine = product * product / squares
        if cosine > best:
            best, best_steps = cosine, step + 1
    levels[:] = 0
    for step in range(best_steps):
        levels[dimensions[order[step]]] += 1


@kernel()
def _unpack(codes: Bytes, bits: int, out: Int8s) -> None:
    width, mask = codes.shape[1], (1 << bits) - 1
    for row in range(len(codes)):
        for part in range(8 // bits):
            for j in range(width):
                out[row, part * width + j] = 2 * ((codes[row, j] >> (bits * part)) & mask) - mask
