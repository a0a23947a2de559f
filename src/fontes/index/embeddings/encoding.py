"""The component of vectors: encoded in blocks, quantized, committed, and merged."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...core.arrays import AnyArray, Float32s, Int64s, UInt32s
from ...core.errors import IndexFormatError, InputError, ParameterError
from ...core.strings import offsets_of
from ...core.values import Doc
from ...storage.arrays import write_array
from ...storage.artifact import commit, read_settings, seal, settings
from ...storage.system import uninterrupted
from ..component import Described, components
from ..segment import Leaf, Segment
from .encoded import EncodedComponent, EncodingJob
from .journal import JOURNAL, ColumnFile, Encoding
from .rabitq import BITS, check_dim, encoded
from .vectors import (
    DTYPE_NAMES,
    DTYPES,
    KIND,
    SCALED,
    Embeddings,
    JoinedEmbeddings,
    SegmentEmbeddings,
    latest,
    norms_above,
    width_of,
)

CHUNK_VALUES = 1 << 24  # values of vectors copied at a time
MAX_NORM = 1e15  # maximum length of a vector, so that inner products stay within float32
HEADER = 128  # bytes before the values of a .npy file, with space for any shape
DRAFT_FILES = ("norms", "scales", "counts", *JOURNAL)  # files of a draft that a complete encoding does not need

VectorsOfDocuments = tuple[Float32s, Int64s]


@dataclass(frozen=True)
class SegmentEncodingJob:
    """The encoding of a segment by an encoder.

    Args:
        fingerprint: Fingerprint of the encoder.
        encoder: Text of the encoder, for messages.
        settings: Text from which the encoder can be made again, or None.
        dim: Number of dimensions.
        dtype: "float32", "float16", "int8", "rabitq4", "rabitq2" or "rabitq1".
        ids: Document ids.
        vectors: Returns the vectors of the documents from one position up to another, and the offset of each document's first
            vector, int64, with one more entry for the end. It may report progress.
        precision: Precision of the encoder's models; None if it is unknown.
    """

    fingerprint: str
    encoder: str
    settings: str | None
    dim: int
    dtype: str
    ids: Sequence[str]
    vectors: Callable[[int, int], VectorsOfDocuments]
    precision: str | None = None

    @property
    def name(self) -> str:
        """Name of the folder, without the number."""
        return VECTORS.name_of(self.fingerprint, self.dtype)


class VectorEncoding(Encoding[Embeddings]):
    """Vectors of a job's documents."""

    def __init__(self, job: SegmentEncodingJob) -> None:
        self.ids, self.folder_name, self._job = job.ids, job.name, job
        self._facts: dict[str, object] = {
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
            ColumnFile("vectors.npy", np.dtype(DTYPES[job.dtype]).itemsize * width_of(job.dtype, job.dim), offset=HEADER),
            ColumnFile("norms", 4),
            ColumnFile("scales", 4 if job.dtype in SCALED else 0),
            ColumnFile("counts", 4, of_documents=True),
        )

    def existing(self, segment: Path) -> Embeddings | None:
        with contextlib.suppress(IndexFormatError, KeyError):
            return Embeddings(latest(segment)[self._job.name])
        return None

    def block(self, first: int, last: int) -> tuple[NDArray[np.generic], ...]:
        vectors, bounds = self._job.vectors(first, last)
        return quantized(vectors, bounds, self._job, first, last)

    def finish(self, segment: Path, draft: Path, rows: int) -> Embeddings:
        with (draft / "vectors.npy").open("r+b") as file:
            write_header(file, self._job.dtype, (rows, self._job.dim))
        counts = np.fromfile(draft / "counts", "<u4")
        if np.any(counts != 1):
            write_array(draft, "bounds", offsets_of(counts))
        for name in ("norms", "scales") if self._job.dtype in SCALED else ("norms",):
            write_array(draft, name, np.fromfile(draft / name, "<f4"))
        seal(draft, KIND, self._facts, "*.npy")
        newest = latest(segment).get(self._job.name)
        number = 1 + int(newest.name.rpartition("-")[2]) if newest else 1
        folder = segment / f"{self._job.name}-{number}"
        with uninterrupted():
            commit(draft, folder)
            self._tidy(folder)
        return Embeddings(folder)

    def tidy(self, existing: Embeddings) -> None:
        self._tidy(existing.folder)

    def _tidy(self, folder: Path) -> None:
        """Remove the journal, and older vectors of the same name."""
        with contextlib.suppress(OSError):
            for name in DRAFT_FILES:
                (folder / name).unlink(missing_ok=True)
            for older in folder.parent.glob(f"{self._job.name}-*"):
                if older != folder:
                    shutil.rmtree(older, ignore_errors=True)


class Vectors(EncodedComponent[Embeddings, JoinedEmbeddings], name="vectors"):
    """Vectors of documents by dense encoders, in folders NAME-ENCODER-DTYPE-NUMBER, where the highest number counts."""

    kind = KIND
    noun = "vectors"
    forms = tuple(DTYPES)
    remedy = "index.encode(encoder), or fontes encode {path} MODEL, makes them"

    def folders(self, segment: Path) -> dict[str, Path]:
        return latest(segment)

    def label(self, form: object) -> str:
        return f"{form} vectors" if form else "vectors"

    def described(self, meta: dict[str, Any]) -> str:
        return f"{meta['encoder']} ({meta['dtype']}, fingerprint {meta['fingerprint'][:8]})"

    def load(self, folder: Path, segment: Segment) -> Embeddings:
        vectors = Embeddings(folder)
        if vectors.documents != segment.documents:
            raise vectors.damaged(f"of {vectors.documents:,} documents, not {segment.documents:,}")
        return vectors

    def join(self, leaves: Sequence[Leaf], parts: Sequence[Embeddings], facts: dict[str, object]) -> JoinedEmbeddings:
        shares = [SegmentEmbeddings(leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
        return JoinedEmbeddings(shares, {**facts, "dtype": facts.get("form") or "float32"})

    def chosen_forms(self, form: object, stored: Sequence[object]) -> Sequence[object]:
        if form not in (None, *DTYPES):
            raise ParameterError(f"dtype must be {DTYPE_NAMES}, not {form!r}")
        return (form,) if form else stored or ("float32",)

    def source(self, parts: dict[str, Embeddings], fingerprint: str, form: object) -> Embeddings | None:
        return None if form == "float32" else parts.get(self.name_of(fingerprint, "float32"))

    def encoding(
        self, encoder: Any, job: EncodingJob, form: Any, precision: str | None, source: Embeddings | None
    ) -> Callable[[Segment], VectorEncoding]:
        check_dim(form, encoder.dim, repr(encoder))
        make_job = partial(
            SegmentEncodingJob, encoder.fingerprint, repr(encoder), job.settings, encoder.dim, form, precision=precision
        )
        if source is None:
            return partial(vector_encoding, make_job, job.vectors)
        return lambda segment: VectorEncoding(make_job(ids=segment.ids.tolist(), vectors=_decoder(source)))

    def write_merged(self, leaves: Sequence[Leaf], parts: Sequence[Embeddings], segment: Path) -> None:
        joined, first = self.join(leaves, parts, {}), parts[0]
        folder = segment / f"{self.name_of(first.fingerprint, first.dtype)}-1"
        folder.mkdir()
        with (folder / "vectors.npy").open("wb") as file:
            write_header(file, first.dtype, (len(joined), first.dim))
            for share in joined.shares:
                for rows in _pieces(share, max(1, CHUNK_VALUES // max(1, first.dim))):
                    file.write(np.ascontiguousarray(share.embeddings.vectors[rows]).tobytes())
        write_array(folder, "norms", joined.norms)
        if first.dtype in SCALED:
            write_array(folder, "scales", np.concatenate([share.embeddings.scales[share.chosen] for share in joined.shares]))
        if not joined.single:
            write_array(folder, "bounds", joined.bounds)
        seal(folder, KIND, {**settings(first.meta), "documents": joined.documents}, "*.npy")

    def facts(self, state: Described) -> dict[str, object]:
        vectors = []
        for leaves, parts in state.vectors.sound(self).values():
            joined = self.join(leaves, parts, {})
            approximate = [facts for folder in sorted(joined.cache.glob("[!.]*")) if (facts := read_settings(folder))]
            vectors.append({**joined.info(), "approximate": approximate})
        return {"vectors": vectors}


VECTORS: Vectors = components["vectors"]


def vector_encoding(
    job: Callable[..., SegmentEncodingJob],
    vectors: Callable[[Sequence[Doc]], VectorsOfDocuments],
    segment: Segment,
) -> VectorEncoding:
    """Return the encoding of a segment's documents as vectors; `job` makes a `SegmentEncodingJob` from `ids` and `vectors`."""
    return VectorEncoding(job(ids=segment.ids.tolist(), vectors=lambda first, last: vectors(segment.docs(first, last))))


def _decoder(source: Embeddings) -> Callable[[int, int], VectorsOfDocuments]:
    """Return a function that decodes stored vectors, in place of an encoder; see `Job.vectors`."""

    def vectors(first: int, last: int) -> VectorsOfDocuments:
        a, b = source.rows(first, last)
        bounds = np.arange(last - first + 1) if source.single else source.bounds[first : last + 1] - a
        return source.decoded(slice(a, b)), bounds

    return vectors


def _pieces(share: SegmentEmbeddings, size: int) -> Iterator[slice | Int64s]:
    """Yield the rows of the living documents, `size` at a time."""
    for first in range(0, len(share), size):
        rows = slice(first, min(first + size, len(share)))
        yield rows if share.rows is None else share.rows[rows]


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, int]) -> None:
    """Write the header of a .npy file of vectors, HEADER bytes; `shape` is (rows, dim)."""
    shape = shape[0], width_of(dtype, shape[1])
    npy.write_array_header_1_0(file, {"descr": DTYPES[dtype], "fortran_order": False, "shape": shape})


def quantized(
    vectors: Float32s, bounds: Int64s, job: SegmentEncodingJob, first: int, last: int
) -> tuple[AnyArray, Float32s, Float32s, UInt32s]:
    """Quantize the vectors of the documents from `first` up to `last` for storage.

    int8 stores round(127 x / m) for a vector x with the greatest magnitude m, and m / 127 as its scale; for codes see `rabitq`.

    Args:
        vectors: (rows, dim).
        bounds: Offset of each document's first row, and the end of the last.
        job: The job.
        first: Position of the first document.
        last: Position after the last document.

    Returns:
        Vectors of the job's dtype, (rows, dim), or packed codes, (rows, bytes); norms, (rows,); scales, (rows,), empty for a
        dtype without them; and the number of vectors of each document.

    Raises:
        InputError: A vector is not finite, or too long.
        ParameterError: The encoder returned vectors of a wrong shape.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != job.dim or len(bounds) != last - first + 1 or bounds[-1] != len(vectors):
        raise ParameterError(
            f"{job.encoder} returned vectors of the shape {vectors.shape} for {last - first} documents; "
            f"it must return at least one of {job.dim} dimensions for each"
        )
    limit = np.float32(65504) if job.dtype == "float16" else np.float32(np.inf)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    bad = np.flatnonzero(~(lengths <= MAX_NORM) | (np.abs(vectors).max(axis=1, initial=0) > limit))
    if len(bad):
        doc_id = job.ids[first + int(np.searchsorted(bounds, bad[0], side="right")) - 1]
        raise InputError(
            f"document '{doc_id}': {job.encoder} returned a vector that {job.dtype} cannot hold, or that is not finite"
        )
    scales = np.zeros(0, np.float32)
    stored: AnyArray = vectors
    if job.dtype in BITS:
        stored, scales, norms = encoded(vectors, BITS[job.dtype])
    elif job.dtype == "int8":
        scales = np.abs(vectors).max(axis=1, initial=0) / np.float32(127)
        stored = np.rint(np.divide(vectors, scales[:, None], out=np.zeros_like(vectors), where=scales[:, None] > 0))
        stored = np.clip(stored, -127, 127).astype(np.int8)
        norms = np.linalg.norm(stored * scales[:, None].astype(np.float64), axis=1)
    else:
        stored = vectors.astype(DTYPES[job.dtype])
        norms = np.linalg.norm(stored.astype(np.float64), axis=1)
    return stored, norms_above(norms), scales, np.diff(bounds).astype(np.uint32)
