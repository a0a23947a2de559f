"""Vectors of a segment's documents, by memory map."""

from __future__ import annotations

import contextlib
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError
from ...storage.artifact import Artifact, ArtifactKind

REMEDY = "encode again with overwrite=True (fontes encode --overwrite)"
KIND = ArtifactKind("fontes-vectors", 1, "vectors", REMEDY)
FOLDER = re.compile(r"(vectors-[0-9a-f]{16}-(?:float32|float16|int8))-(\d+)")
ROWS = 1 << 14  # that are looked at together
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}


class Embeddings:
    """The vectors of a segment's documents by one encoder.

    Attributes:
        folder: Where they are.
        meta: Their metadata: encoder, settings, fingerprint, dtype, dim, documents, files, digest.
        fingerprint: The encoder's.
        encoder: What the encoder calls itself.
        dtype: "float32", "float16" or "int8".
        documents: How many documents there are.
        vectors: (rows, dim), of the dtype, by memory map.
        scales: float32, one a row, for int8 only: what the numbers of a row are multiplied by; else empty.
        norms: float32, one a row: its length, rounded up; 0 for a vector of zeros.
        bounds: int64: document i has the rows bounds[i]:bounds[i + 1]; empty where each document has one.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifact = stored = Artifact(folder, KIND)
        self.meta = stored.meta
        self.fingerprint = stored.fact("fingerprint", str)
        self.encoder = stored.fact("encoder", str)
        self.dtype = stored.fact("dtype", str)
        self.documents = stored.fact("documents", int)
        if self.dtype not in DTYPES:
            raise stored.damaged(f"{folder} has vectors of the type {self.dtype!r}, which there is not")
        arrays, dim = stored.arrays, stored.fact("dim", int)
        self.vectors = fixed(arrays.array("vectors", DTYPES[self.dtype], None, dim))
        rows = len(self.vectors)
        self.norms: NDArray[np.float32] = fixed(arrays.array("norms", "<f4", rows))
        self.scales: NDArray[np.float32] = fixed(
            arrays.array("scales", "<f4", rows) if self.dtype == "int8" else np.zeros(0, np.float32)
        )
        self.bounds: NDArray[np.int64] = fixed(
            arrays.bounds("bounds", rows, self.documents, "<i8") if "bounds" in stored else np.zeros(0, np.int64)
        )
        if self.single and rows != self.documents:
            raise arrays.damaged("vectors", f"it has {rows:,} vectors of {self.documents:,} documents")

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def zeros(self) -> NDArray[np.intp]:
        """The rows of the vectors that are zeros."""
        return np.flatnonzero(self.norms == 0)

    @property
    def dim(self) -> int:
        """The number of dimensions of each vector."""
        return int(self.vectors.shape[1])

    @property
    def single(self) -> bool:
        """Whether each document has one vector."""
        return not len(self.bounds)

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """The first row of the documents from `first` to `last`, and the one after their last."""
        return (first, last) if self.single else (int(self.bounds[first]), int(self.bounds[last]))

    def decoded(self, rows: slice | NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """These rows as float32."""
        vectors = np.asarray(self.vectors[rows], dtype=np.float32)
        return vectors * self.scales[rows, None] if len(self.scales) else vectors

    def check(self, deep: bool = False) -> None:
        """Reads every file; `deep` compares norms with vectors as well.

        Raises:
            IndexFormatError: Where anything is not as it was written or does not fit together.
        """
        self._artifact.check()
        for first in range(0, len(self) if deep else 0, ROWS):
            rows = slice(first, first + ROWS)
            exact = self.vectors[rows].astype(np.float64)
            if self.dtype == "int8":
                exact *= self.scales[rows, None]
            norms = np.linalg.norm(exact, axis=1)
            if not np.allclose(self.norms[rows], norms, rtol=1e-6, atol=1e-40):
                raise self.damaged("its norms do not fit its vectors")

    def damaged(self, problem: str) -> IndexFormatError:
        """The error for a problem."""
        return self._artifact.damaged(f"{self.folder} is damaged: {problem}")

    def info(self) -> dict[str, Any]:
        """What there is: encoder, fingerprint, dtype, dimensions, counts, bytes."""
        facts = {key: self.meta.get(key) for key in ("encoder", "settings", "fingerprint", "precision", "dtype", "dim")}
        return {**facts, "vectors": len(self), "bytes": self._artifact.bytes}


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, not to be written; compiled code has one version for those that can be and one for those that cannot."""
    view = array.view()
    view.flags.writeable = False
    return view


def latest(segment: Path) -> dict[str, Path]:
    """Folders of the newest vectors of each name."""
    numbers: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(segment):
            if match := FOLDER.fullmatch(entry.name):
                numbers[match[1]] = max(int(match[2]), numbers.get(match[1], 0))
    return {name: segment / f"{name}-{number}" for name, number in sorted(numbers.items())}
