"""Compression of token vectors: the nearest centroid, and the residual in 1, 2 or 4 bits per dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.arrays import Bytes, Float32s, Floats, Int32s, Ints
from ...core.errors import ParameterError
from ...storage.arrays import Arrays, write_array
from ...storage.compiled import compiled

NBITS = (1, 2, 4)
DEFAULT_NBITS = 4  # loses one in fifty of the best 10 documents by whole vectors
WHOLE_NBITS = (16, 32)  # bits of uncompressed vectors
ITERATIONS = 4  # of k-means, as in ColBERTv2
ROUNDS = 200  # maximum rounds of fitting buckets
SAMPLE = 64  # vectors per centroid in k-means
HELD_OUT = 0.05  # share of the sample that is used to fit buckets, as in ColBERTv2
CHUNK_VECTORS = 1 << 13  # vectors processed at a time
SIMILARITIES = 1 << 25  # similarities with centroids in memory at a time
SEED = 20220710


@dataclass(frozen=True)
class Codec:
    """Codec of unit vectors: centroid numbers and packed residuals (Santhanam et al., NAACL 2022, section 3.3).

    A vector takes 4 bytes for its centroid and dim · nbits / 8 for its residual.

    Args:
        centroids: Vectors of unit length, float32 (centroids, dim).
        cutoffs: Boundaries between the buckets of a residual, float32 (2^nbits - 1,).
        weights: Value of each bucket, float32 (2^nbits,).
    """

    centroids: Float32s
    cutoffs: Float32s
    weights: Float32s

    @property
    def nbits(self) -> int:
        """Bits per dimension; 0 without residuals."""
        return len(self.weights).bit_length() - 1

    @property
    def width(self) -> int:
        """Bytes of a packed residual."""
        return -(-int(self.centroids.shape[1]) * self.nbits // 8)

    @classmethod
    def fitted(cls, centroids: Float32s, sample: Float32s, nbits: int) -> Codec:
        """Fit buckets of least squared error to the residuals of a held-out part of the sample; nbits=0: no buckets."""
        order = np.random.default_rng(SEED).permutation(len(sample))
        held_out = sample[order[: max(1, min(50_000, int(HELD_OUT * len(sample))))]]
        residuals = held_out - centroids[nearest(centroids, held_out)]
        cutoffs, weights = fit_buckets(residuals, 1 << nbits)
        return cls(centroids, cutoffs, weights)

    def compress(self, vectors: Float32s, codes: Int32s) -> Bytes:
        """Pack the residuals of vectors: uint8 (vectors, dim · nbits / 8), the first dimension in the lowest bits."""
        per_byte, width = 8 // self.nbits, self.width
        buckets = np.zeros((len(vectors), width * per_byte), dtype=np.uint8)
        for start in range(0, len(vectors), CHUNK_VECTORS):
            rows = slice(start, start + CHUNK_VECTORS)
            # As in torch.bucketize, a value on a boundary belongs to the bucket below it.
            residuals = vectors[rows] - self.centroids[codes[rows]]
            buckets[rows, : vectors.shape[1]] = np.searchsorted(self.cutoffs, residuals, side="left")
        shifted = buckets.reshape(len(vectors), width, per_byte) << (np.arange(per_byte, dtype=np.uint8) * self.nbits)
        packed: Bytes = np.bitwise_or.reduce(shifted, axis=2)
        return packed

    def decompress(self, codes: Ints, packed: Bytes) -> Float32s:
        """Approximate vectors of unit length, float32 (vectors, dim): centroid plus residual."""
        vectors = np.empty((len(codes), self.centroids.shape[1]), dtype=np.float32)
        _decompress(self.centroids, self.weights, self.nbits, codes, packed, vectors)
        return vectors

    def save(self, folder: Path) -> None:
        for name in ("centroids", "cutoffs", "weights"):
            write_array(folder, name, getattr(self, name))

    @classmethod
    def load(cls, arrays: Arrays, count: int, dim: int, nbits: int) -> Codec:
        """Load `count` centroids of `dim` dimensions, and their buckets; raise IndexFormatError for damaged files."""
        buckets = 1 << nbits
        return cls(
            arrays.array("centroids", "<f4", count, dim),
            arrays.array("cutoffs", "<f4", buckets - 1),
            arrays.array("weights", "<f4", buckets),
        )


def fit_buckets(values: Floats, count: int) -> tuple[Float32s, Float32s]:
    """Boundaries between `count` buckets, and the value of each bucket, with the least squared error of `values`.

    Lloyd's algorithm (IEEE Transactions on Information Theory, 1982), starting from buckets of equal size. ColBERTv2 uses
    these, with which four bits lose three times as much.
    """
    values = np.sort(values, axis=None).astype(np.float64)
    sums = np.concatenate([[0], np.cumsum(values)])
    weights = np.quantile(values, (np.arange(count) + 0.5) / count)
    for _ in range(ROUNDS):
        edges = np.concatenate([[0], np.searchsorted(values, (weights[1:] + weights[:-1]) / 2, side="right"), [len(values)]])
        sizes = np.diff(edges)
        means = np.where(sizes > 0, np.diff(sums[edges]) / np.maximum(1, sizes), weights)
        if np.array_equal(means, weights):
            break
        weights = means
    return ((weights[1:] + weights[:-1]) / 2).astype(np.float32), weights.astype(np.float32)


def check_nbits(nbits: int) -> None:
    """Raise ParameterError unless `nbits` is 1, 2, 4 (compressed), 16 or 32 (whole)."""
    if nbits not in (*NBITS, *WHOLE_NBITS):
        raise ParameterError(f"nbits is 1, 2 or 4 for residuals, 16 or 32 for whole vectors, not {nbits!r}")


def centroids_for(tokens: float) -> int:
    """Number of centroids for a number of tokens: four times its square root, as a power of two."""
    return int(2 ** max(0, round(math.log2(4 * math.sqrt(max(1.0, tokens))))))


def kmeans(vectors: Float32s, count: int) -> Float32s:
    """Centroids of unit length by spherical k-means with a fixed seed; at most as many as vectors.

    A centroid that loses all its vectors stays in place.
    """
    rows = np.random.default_rng(SEED).choice(len(vectors), min(count, len(vectors)), replace=False)
    centroids = vectors[np.sort(rows)].copy()
    for _ in range(ITERATIONS):
        sums = np.zeros_like(centroids)
        codes = nearest(centroids, vectors)
        _add_rows(sums, codes, vectors)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centroids = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centroids).astype(np.float32)
    return centroids


def nearest(centroids: Float32s, vectors: Float32s) -> Int32s:
    """Index of the centroid with the greatest dot product for each vector, int32."""
    codes = np.empty(len(vectors), dtype=np.int32)
    transposed = np.ascontiguousarray(centroids.T)
    step = max(1, min(CHUNK_VECTORS, SIMILARITIES // len(centroids)))
    for start in range(0, len(vectors), step):
        codes[start : start + step] = np.argmax(vectors[start : start + step] @ transposed, axis=1)
    return codes


@compiled()
def _add_rows(sums: Float32s, codes: Int32s, vectors: Float32s) -> None:
    for i in range(len(codes)):
        for j in range(vectors.shape[1]):
            sums[codes[i], j] += vectors[i, j]


@compiled()
def _decompress(centroids: Float32s, weights: Float32s, nbits: int, codes: Ints, packed: Bytes, vectors: Float32s) -> None:
    per_byte, mask = 8 // nbits, (1 << nbits) - 1
    values = np.empty((per_byte, 256), dtype=np.float32)  # value of each dimension of a byte, by the byte
    for byte in range(256):
        for r in range(per_byte):
            values[r, byte] = weights[(byte >> (r * nbits)) & mask]
    if nbits == 4:
        _add_halves(centroids, values[0], values[1], codes, packed, vectors)
    else:
        for i in range(len(codes)):
            centroid, packed_bytes, vector = centroids[codes[i]], packed[i], vectors[i]
            for r in range(per_byte):
                byte_values = values[r]
                for w in range((len(vector) - r + per_byte - 1) // per_byte):
                    vector[per_byte * w + r] = centroid[per_byte * w + r] + byte_values[packed_bytes[w]]
    _to_unit(vectors)


@compiled()
def _add_halves(centroids: Float32s, low: Float32s, high: Float32s, codes: Ints, packed: Bytes, vectors: Float32s) -> None:
    """Write centroids plus residuals of two dimensions per byte: three times as fast as the general loop."""
    dim = vectors.shape[1]
    for i in range(len(codes)):
        centroid, packed_bytes, vector = centroids[codes[i]], packed[i], vectors[i]
        for w in range(dim // 2):
            vector[2 * w] = centroid[2 * w] + low[packed_bytes[w]]
            vector[2 * w + 1] = centroid[2 * w + 1] + high[packed_bytes[w]]
        if dim % 2:
            vector[dim - 1] = centroid[dim - 1] + low[packed_bytes[dim // 2]]


@compiled(error_model="numpy")  # without a check at each division
def _to_unit(vectors: Float32s) -> None:
    dim = vectors.shape[1]
    for i in range(len(vectors)):
        vector = vectors[i]
        a = b = c = d = np.float32(0)  # four independent sums, since each addition waits for the previous one
        for j in range(0, dim - dim % 4, 4):
            a += vector[j] * vector[j]
            b += vector[j + 1] * vector[j + 1]
            c += vector[j + 2] * vector[j + 2]
            d += vector[j + 3] * vector[j + 3]
        for j in range(dim - dim % 4, dim):
            a += vector[j] * vector[j]
        length = np.sqrt((a + b) + (c + d))
        if length > 0:
            for j in range(dim):
                vector[j] /= length
