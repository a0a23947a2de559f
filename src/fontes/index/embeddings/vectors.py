"""Vectors of a segment's documents by memory map, and the vectors of several segments, joined."""

from __future__ import annotations

import contextlib
import copy
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import AnyArray, Bools, Float32s, Float64s, Indices, Int64s, Ints
from ...core.errors import IndexFormatError, ParameterError
from ...core.strings import offsets_of
from ...storage.arrays import fixed
from ...storage.artifact import Artifact, ArtifactKind, facts_of
from ...storage.caches import Cached, LazyAttribute, cache_folder
from ...storage.hashes import hash_json
from ..segment import Leaf, Segment, located
from . import rabitq
from .rabitq import BITS

REMEDY = "encode again with overwrite=True (fontes encode --overwrite)"
KIND = ArtifactKind("fontes-vectors", 1, "vectors", REMEDY)
FOLDER = re.compile(r"(vectors-[0-9a-f]{16}-(?:float32|float16|int8|rabitq[124]))-(\d+)")
CHUNK_ROWS = 1 << 14  # rows checked or cut at a time
CUTS = 4  # numbers of dimensions whose vectors are kept in memory
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1", **dict.fromkeys(BITS, "|u1")}  # the most exact first
DTYPE_NAMES = "float32, float16, int8, rabitq4, rabitq2 or rabitq1"
FACTS = ("encoder", "settings", "fingerprint", "precision", "dtype", "dim")  # in the metadata
SCALED = ("int8", *BITS)  # dtypes with a factor for each vector


def width_of(dtype: str, dim: int) -> int:
    """Number of values stored for a vector of `dim` dimensions."""
    return rabitq.padded(dim) * BITS[dtype] // 8 if dtype in BITS else dim


class Embeddings:
    """The vectors of a segment's documents by one encoder.

    Attributes:
        folder: The folder.
        meta: Metadata: encoder, settings, fingerprint, dtype, dim, documents, files, digest.
        fingerprint: Fingerprint of the encoder.
        encoder: Text of the encoder.
        dtype: "float32", "float16", "int8", or "rabitq4", "rabitq2" or "rabitq1".
        documents: Number of documents.
        dim: Number of dimensions.
        bits: Bits per dimension of RaBitQ codes; 0 for other dtypes.
        vectors: (rows, dim), of the dtype, by memory map; for RaBitQ packed codes, uint8 (rows, bytes).
        scales: float32, (rows,): factors of int8 vectors and RaBitQ codes; empty for other dtypes.
        norms: float32, (rows,): lengths, rounded up; 0 for a vector of zeros.
        bounds: int64: document i has the rows bounds[i]:bounds[i + 1]; empty if each document has one row.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifact = artifact = Artifact(folder, KIND)
        self.meta = artifact.meta
        self.fingerprint = artifact.fact("fingerprint", str)
        self.encoder = artifact.fact("encoder", str)
        self.dtype = artifact.fact("dtype", str)
        self.documents = artifact.fact("documents", int)
        if self.dtype not in DTYPES:
            raise artifact.damaged(f"{folder} has vectors of the unknown type {self.dtype!r}")
        self.bits = BITS.get(self.dtype, 0)
        arrays, self.dim = artifact.arrays, artifact.fact("dim", int)
        self.vectors = fixed(arrays.array("vectors", DTYPES[self.dtype], None, width_of(self.dtype, self.dim)))
        rows = len(self.vectors)
        self.norms: Float32s = fixed(arrays.array("norms", "<f4", rows))
        self.scales: Float32s = fixed(arrays.array("scales", "<f4", rows) if self.dtype in SCALED else np.zeros(0, np.float32))
        self.bounds: Int64s = fixed(
            arrays.bounds("bounds", rows, self.documents, "<i8") if "bounds" in artifact else np.zeros(0, np.int64)
        )
        if self.single and rows != self.documents:
            raise arrays.damaged("vectors", f"it has {rows:,} vectors of {self.documents:,} documents")

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def zeros(self) -> Indices:
        """Rows of zeros."""
        return np.flatnonzero(self.norms == 0)

    @property
    def single(self) -> bool:
        """Whether each document has one vector."""
        return not len(self.bounds)

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """First row of the documents from `first` to `last`, and the one after their last."""
        return (first, last) if self.single else (int(self.bounds[first]), int(self.bounds[last]))

    def numbers(self, rows: slice | Ints) -> AnyArray:
        """Return these rows without their scales; RaBitQ codes as int8, rotated."""
        return rabitq.unpacked(self.vectors[rows], self.bits) if self.bits else self.vectors[rows]

    def decoded(self, rows: slice | Ints) -> Float32s:
        """These rows as float32."""
        if self.bits:
            return rabitq.rotated_back(self.numbers(rows) * self.scales[rows, None].astype(np.float64), self.dim)
        vectors = np.asarray(self.vectors[rows], dtype=np.float32)
        return vectors * self.scales[rows, None] if len(self.scales) else vectors

    def cut(self, dims: int, unit: bool) -> Embeddings:
        """Return the first `dims` dimensions of all vectors, in memory as float32; with `unit` scaled to length 1."""
        vectors = np.empty((len(self), dims), dtype=np.float32)
        norms = np.empty(len(self), dtype=np.float32)
        for first in range(0, len(self), CHUNK_ROWS):
            rows = slice(first, first + CHUNK_ROWS)
            leading = self.decoded(rows)[:, :dims]
            if unit:
                lengths = np.linalg.norm(leading.astype(np.float64), axis=1, keepdims=True)
                leading = (leading / np.where(lengths > 0, lengths, 1)).astype(np.float32)
            vectors[rows], norms[rows] = leading, norms_above(np.linalg.norm(leading.astype(np.float64), axis=1))
        leading_dims = copy.copy(self)
        vars(leading_dims).pop("zeros", None)  # a vector may be zeros in its first dimensions alone
        leading_dims.vectors, leading_dims.norms = fixed(vectors), fixed(norms)
        leading_dims.scales, leading_dims.bits = fixed(np.zeros(0, np.float32)), 0
        leading_dims.dtype, leading_dims.dim = "float32", dims
        digest = hash_json([self.meta["digest"], dims, unit])
        leading_dims.meta = {**self.meta, "dtype": "float32", "dim": dims, "digest": digest}
        return leading_dims

    def check(self, deep: bool = False) -> None:
        """Read every file; `deep` also compares norms with vectors. Raises IndexFormatError for a damaged one."""
        self._artifact.check()
        for first in range(0, len(self) if deep else 0, CHUNK_ROWS):
            rows = slice(first, first + CHUNK_ROWS)
            exact = self.numbers(rows).astype(np.float64)
            if len(self.scales):
                exact *= self.scales[rows, None]
            norms = np.linalg.norm(exact, axis=1)
            if not np.allclose(self.norms[rows], norms, rtol=1e-6, atol=1e-40):
                raise self.damaged("its norms do not fit its vectors")

    def damaged(self, problem: str) -> IndexFormatError:
        """Return an error about the vectors."""
        return self._artifact.damaged(f"{self.folder} is damaged: {problem}")

    def info(self) -> dict[str, Any]:
        """Encoder, fingerprint, dtype, dimensions, counts, bytes."""
        return {**facts_of(self.meta, FACTS), "vectors": len(self), "bytes": self._artifact.bytes}


def norms_above(lengths: Float64s) -> Float32s:
    """Lengths rounded up to float32; 0 stays 0."""
    above = np.nextafter(lengths.astype(np.float32), np.float32(np.inf), dtype=np.float32)
    return np.where(lengths > 0, above, np.float32(0))


def latest(segment: Path) -> dict[str, Path]:
    """Return the folder of the newest vectors of each name."""
    numbers: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(segment):
            if match := FOLDER.fullmatch(entry.name):
                numbers[match[1]] = max(int(match[2]), numbers.get(match[1], 0))
    return {name: segment / f"{name}-{number}" for name, number in sorted(numbers.items())}


def _cut_vectors(segment: Segment) -> Cached[tuple[str, int, bool], Embeddings]:
    return Cached(CUTS)


_CUT_VECTORS = LazyAttribute("cut_vectors", _cut_vectors)  # by digest of the whole vectors, dimensions, and whether of length 1


@dataclass(frozen=True, eq=False)
class SegmentEmbeddings:
    """Vectors of the living documents of a segment.

    Args:
        leaf: The segment.
        embeddings: The vectors of all its documents, deleted ones too.

    Raises:
        IndexFormatError: They are of another number of documents.
    """

    leaf: Leaf
    embeddings: Embeddings

    def __post_init__(self) -> None:
        if self.embeddings.documents != self.leaf.segment.documents:
            raise self.embeddings.damaged(f"of {self.embeddings.documents:,} documents, not {self.leaf.segment.documents:,}")

    @cached_property
    def rows(self) -> Int64s | None:
        """Rows of the living documents, ascending; None if these are all rows."""
        if self.leaf.dead is None:
            return None
        return self.leaf.live if self.embeddings.single else rows_of(self.embeddings.bounds, self.leaf.live)[0]

    @property
    def chosen(self) -> slice | Int64s:
        """Index that selects the rows of the living documents from an array."""
        return slice(None) if self.rows is None else self.rows

    def __len__(self) -> int:
        return len(self.embeddings) if self.rows is None else len(self.rows)

    def cut(self, dims: int, unit: bool) -> SegmentEmbeddings:
        """Return the first `dims` dimensions; see `Embeddings.cut`. Other states with the segment share them."""
        key = str(self.embeddings.meta["digest"]), dims, unit
        cut = _CUT_VECTORS.of(self.leaf.segment).get(key, lambda: self.embeddings.cut(dims, unit))
        return SegmentEmbeddings(self.leaf, cut)

    @property
    def counts(self) -> Int64s:
        """Number of vectors of each living document."""
        if self.embeddings.single:
            return np.ones(self.leaf.documents, dtype=np.int64)
        return np.diff(self.embeddings.bounds)[self.leaf.live]


class JoinedEmbeddings:
    """Vectors of the living documents of a state by one encoder, in one dtype, without a copy of the matrices.

    Args:
        shares: The vectors of each segment.
        facts: Encoder, settings, fingerprint, dtype and dim if there are no segments.

    Attributes:
        documents: Number of documents.
        dtype: "float32", "float16", "int8", "rabitq4", "rabitq2" or "rabitq1".
        dim: Number of dimensions.
        searchers: Open approximate indexes, by the name of the search.

    Raises:
        IndexFormatError: They have different dimensions.
    """

    def __init__(self, shares: Sequence[SegmentEmbeddings], facts: dict[str, Any] | None = None) -> None:
        self.shares = tuple(shares)
        for share in shares:
            if share.embeddings.dim != shares[0].embeddings.dim:
                raise share.embeddings.damaged(f"of {share.embeddings.dim} dimensions, not {shares[0].embeddings.dim}")
        facts = dict(shares[0].embeddings.meta) if shares else dict(facts or {})
        self.documents = sum(share.leaf.documents for share in shares)
        self.dtype: str = facts["dtype"]
        self.dim: int = facts["dim"]
        self.fingerprint: str = facts["fingerprint"]
        self.encoder: str = facts["encoder"]
        for share in shares:
            if (share.embeddings.dtype, share.embeddings.dim) != (self.dtype, self.dim):
                raise share.embeddings.damaged(f"its vectors differ in form from those of {shares[0].embeddings.folder}")
        self._facts = facts_of(facts, FACTS)
        self.searchers: Cached[str, Any] = Cached()
        self._cuts: Cached[tuple[int, bool], JoinedEmbeddings] = Cached(CUTS)

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def _rows(self) -> int:
        return sum(map(len, self.shares))

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Encoder, settings, fingerprint, dtype, dim, documents; and a digest of the vectors and of the deletions."""
        return {**self._facts, "documents": self.documents, "digest": self._digest}

    @cached_property
    def single(self) -> bool:
        """Whether each document has one vector."""
        return not len(self.bounds)

    @cached_property
    def bounds(self) -> Int64s:
        """Document i has the rows bounds[i]:bounds[i + 1]; empty if each document has one row."""
        if self.whole is not None:
            return self.whole.bounds
        if all(share.embeddings.single for share in self.shares):
            return np.zeros(0, dtype=np.int64)
        counts = np.concatenate([share.counts for share in self.shares])
        return np.zeros(0, dtype=np.int64) if np.all(counts == 1) else offsets_of(counts)

    @cached_property
    def norms(self) -> Float32s:
        """Length of each row, rounded up; 0 for a vector of zeros."""
        if self.whole is not None:
            return self.whole.norms
        empty = np.zeros(0, dtype=np.float32)
        return np.concatenate([empty, *(share.embeddings.norms[share.chosen] for share in self.shares)])

    @cached_property
    def longest(self) -> float:
        """Length of the longest vector."""
        return float(self.norms.max(initial=0))

    @cached_property
    def with_zeros(self) -> bool:
        """Whether a vector is zeros."""
        return any(len(share.embeddings.zeros) for share in self.shares)

    @property
    def cache(self) -> Path:
        """The user's cache folder for approximate indexes of the vectors, which may be deleted at any time."""
        return cache_folder() / "approximate" / str(self.meta["digest"])[:32]

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """First row of the documents from `first` to `last`, and the one after their last."""
        return (first, last) if self.single else (int(self.bounds[first]), int(self.bounds[last]))

    def rows_that_pass(self, mask: Bools) -> Bools:
        """bool, (rows,): whether the document of each row passes; `mask` is bool, (documents,)."""
        return mask if self.single else np.repeat(mask, np.diff(self.bounds))

    def decoded(self, rows: slice | Ints) -> Float32s:
        """These rows as float32."""
        if self.whole is not None:
            return self.whole.decoded(rows)
        numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        vectors = np.empty((len(numbers), self.dim), dtype=np.float32)
        first = 0
        for share in self.shares:
            indices = np.flatnonzero((numbers >= first) & (numbers < first + len(share)))
            if len(indices):
                local = numbers[indices] - first
                vectors[indices] = share.embeddings.decoded(local if share.rows is None else share.rows[local])
            first += len(share)
        return vectors

    def coordinates(self, queries: Float32s) -> Float32s:
        """Return queries, (queries, dim), in the coordinates of the stored vectors: rotated for RaBitQ codes."""
        return rabitq.rotated(queries).astype(np.float32) if self.dtype in BITS else queries

    def split(self, docs: Ints) -> Iterator[tuple[SegmentEmbeddings, slice | Indices, AnyArray]]:
        """Yield for each segment with any of these documents its share, their indices in `docs`, their positions in it."""
        if self.whole is not None:
            yield self.shares[0], slice(None), docs
            return
        for number, rows, leaf_docs in located([share.leaf for share in self.shares], docs):
            yield self.shares[number], rows, leaf_docs

    def cut(self, dims: int, unit: bool) -> JoinedEmbeddings:
        """Return the first `dims` dimensions of the vectors, with `unit` scaled to length 1 again; kept in memory.

        Raises:
            ParameterError: The vectors have fewer dimensions.
        """
        if dims == self.dim:
            return self
        if dims > self.dim:
            raise ParameterError(f"dims is {dims}, but the stored vectors have {self.dim} dimensions only")
        facts = {**self._facts, "dtype": "float32", "dim": dims}
        return self._cuts.get((dims, unit), lambda: JoinedEmbeddings([share.cut(dims, unit) for share in self.shares], facts))

    def check(self) -> None:
        """Read every file; raise IndexFormatError if one is damaged."""
        for share in self.shares:
            share.embeddings.check()

    def info(self) -> dict[str, Any]:
        """Encoder, fingerprint, dtype, dimensions, counts, bytes."""
        size = sum(share.embeddings.info()["bytes"] for share in self.shares)
        return {**self._facts, "documents": self.documents, "vectors": len(self), "bytes": size}

    @cached_property
    def whole(self) -> Embeddings | None:
        """Vectors of the only segment if it has no deletions; otherwise None."""
        is_whole = len(self.shares) == 1 and self.shares[0].leaf.dead is None
        return self.shares[0].embeddings if is_whole else None

    @cached_property
    def _digest(self) -> str:
        if self.whole is not None:
            return str(self.whole.meta["digest"])
        return hash_json([[share.embeddings.meta["digest"], share.leaf.state] for share in self.shares])


def rows_of(bounds: Int64s, docs: Ints) -> tuple[Int64s, Int64s]:
    """Return the concatenated rows of these documents, and the offset of each document's first row among them.

    Document i has the rows bounds[i]:bounds[i + 1].
    """
    sizes = bounds[docs + 1] - bounds[docs]
    starts = offsets_of(sizes)
    return np.arange(starts[-1]) + np.repeat(bounds[docs] - starts[:-1], sizes), starts
