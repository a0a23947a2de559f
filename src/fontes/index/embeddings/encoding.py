"""The vectors of a segment's documents: encoded in blocks, quantized, and put in their place in one step."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.progress import Report
from ...storage.arrays import sync, write_array
from ...storage.artifact import commit, seal
from ...storage.hashes import hash_text
from ...storage.interrupts import uninterrupted
from .embeddings import DTYPES, KIND, Embeddings, find, latest
from .journal import JOURNAL, Column, Encoding

MAX_NORM = 1e15  # the length of a vector; inner products then stay within float32
HEADER = 128  # bytes before the numbers of a .npy file; numpy leaves room for the shape to grow
LEFT = ("norms", "scales", "counts", *JOURNAL)  # what is not needed when an encoding is complete

VectorsOfDocuments = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Job:
    """What is to be encoded for a segment.

    Args:
        fingerprint: The encoder's.
        encoder: What the encoder calls itself.
        settings: The text that makes the encoder again, or None.
        dim: The number of dimensions of its vectors.
        dtype: "float32", "float16" or "int8".
        ids: The ids of the documents.
        vectors: Gives the vectors of the documents from one ordinal up to another, and where those of each document start
            (int64, one entry more). It may report how many of them are done.
        precision: The precision that its models run in; None where nobody knows.
    """

    fingerprint: str
    encoder: str
    settings: str | None
    dim: int
    dtype: str
    ids: Sequence[str]
    vectors: Callable[[int, int, Report], VectorsOfDocuments]
    precision: str | None = None

    @property
    def name(self) -> str:
        """The name of its folder, without the number."""
        return f"{hash_text(self.fingerprint)[:16]}-{self.dtype}"


class VectorEncoding(Encoding[Embeddings]):
    """The vectors of a job.

    Args:
        job: What is to be encoded.
    """

    def __init__(self, job: Job) -> None:
        self.ids, self.place, self._job = job.ids, f"vectors-{job.name}", job
        self._facts: dict[str, Any] = {
            "encoder": job.encoder,
            "settings": job.settings,
            "fingerprint": job.fingerprint,
            "precision": job.precision,
            "dtype": job.dtype,
            "dim": job.dim,
            "documents": len(job.ids),
        }
        self.settings = {"version": KIND.version, **self._facts}
        self.columns = (
            Column("vectors.npy", np.dtype(DTYPES[job.dtype]).itemsize * job.dim, offset=HEADER),
            Column("norms", 4),
            Column("scales", 4 if job.dtype == "int8" else 0),
            Column("counts", 4, of_documents=True),
        )

    def existing(self, segment: Path) -> Embeddings | None:
        vectors = find(segment).get(self._job.name)
        return vectors if isinstance(vectors, Embeddings) else None

    def block(self, first: int, last: int, report: Report) -> tuple[NDArray[Any], ...]:
        vectors, bounds = self._job.vectors(first, last, report)
        return quantized(vectors, bounds, self._job, first, last)

    def finish(self, segment: Path, draft: Path, rows: int) -> Embeddings:
        """Older vectors of the same name go."""
        with (draft / "vectors.npy").open("r+b") as file:
            write_header(file, self._job.dtype, (rows, self._job.dim))
            sync(file)
        counts = np.fromfile(draft / "counts", "<u4")
        if np.any(counts != 1):
            bounds = np.zeros(len(counts) + 1, dtype=np.int64)
            np.cumsum(counts, out=bounds[1:])
            write_array(draft, "bounds", bounds)
        for name in ("norms", "scales") if self._job.dtype == "int8" else ("norms",):
            write_array(draft, name, np.fromfile(draft / name, "<f4"))
        seal(draft, KIND, self._facts, "*.npy")
        newest = latest(segment).get(self._job.name)
        number = 1 + int(newest.name.rpartition("-")[2]) if newest else 1
        folder = segment / f"vectors-{self._job.name}-{number}"
        with uninterrupted():
            commit(draft, folder)
            self._tidy(folder)
        return Embeddings(folder)

    def tidy(self, existing: Embeddings) -> None:
        self._tidy(existing.folder)

    def _tidy(self, folder: Path) -> None:
        """Removes the journal, and older vectors of the same name."""
        with contextlib.suppress(OSError):
            for name in LEFT:
                (folder / name).unlink(missing_ok=True)
            for other in folder.parent.glob(f"vectors-{self._job.name}-*"):
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, int]) -> None:
    """Writes the header of a .npy file of vectors, HEADER bytes.

    Args:
        file: The file, at its beginning.
        dtype: "float32", "float16" or "int8".
        shape: How many vectors, of how many dimensions.
    """
    npy.write_array_header_1_0(file, {"descr": DTYPES[dtype], "fortran_order": False, "shape": shape})


def quantized(
    vectors: NDArray[np.float32], bounds: NDArray[np.int64], job: Job, first: int, last: int
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.float32], NDArray[np.uint32]]:
    """A block in the numbers in which it is stored.

    int8 stores round(127 x / m) of a vector with the greatest magnitude m, and m / 127 as its scale.

    Args:
        vectors: (rows, dim), the vectors of the documents.
        bounds: Where those of each document start, one entry more.
        job: What they are for.
        first: The ordinal of the first document.
        last: The one after that of the last.

    Returns:
        Vectors of the job's dtype, (rows, dim); norms, (rows,); scales, (rows,), empty unless the dtype is int8; and how many
        vectors each document has.

    Raises:
        InputError: A vector is not finite, or too long.
        ParameterError: The encoder gave other vectors than it promised.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != job.dim or len(bounds) != last - first + 1 or bounds[-1] != len(vectors):
        raise ParameterError(
            f"{job.encoder} gave vectors of the shape {vectors.shape} for {last - first} documents; "
            f"it must give at least one of {job.dim} dimensions for each"
        )
    limit = np.float32(65504) if job.dtype == "float16" else np.float32(np.inf)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    bad = np.flatnonzero(~(lengths <= MAX_NORM) | (np.abs(vectors).max(axis=1, initial=0) > limit))
    if len(bad):
        doc_id = job.ids[first + int(np.searchsorted(bounds, bad[0], side="right")) - 1]
        raise InputError(
            f"document '{doc_id}': {job.encoder} gave a vector that {job.dtype} cannot hold, or that is not finite"
        )
    scales = np.zeros(0, np.float32)
    small: NDArray[Any] = vectors.astype(DTYPES[job.dtype]) if job.dtype != "int8" else vectors
    exact = small.astype(np.float64)
    if job.dtype == "int8":
        scales = np.abs(vectors).max(axis=1, initial=0) / np.float32(127)
        small = np.rint(np.divide(vectors, scales[:, None], out=np.zeros_like(vectors), where=scales[:, None] > 0))
        small = np.clip(small, -127, 127).astype(np.int8)
        exact = small * scales[:, None].astype(np.float64)
    norms = np.linalg.norm(exact, axis=1)
    above = np.nextafter(norms.astype(np.float32), np.float32(np.inf), dtype=np.float32)
    return small, np.where(norms > 0, above, np.float32(0)), scales, np.diff(bounds).astype(np.uint32)
