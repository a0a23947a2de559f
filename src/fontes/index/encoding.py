"""Encoding the documents of a segment: in blocks, resumed after a kill, committed in one step."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.errors import FontesError, InputError, ParameterError
from ..core.progress import Progress, Report
from ..storage.arrays import sync, write_array
from ..storage.artifact import commit, drafting, seal
from ..storage.hashes import hash_text
from ..storage.interrupts import uninterrupted
from .embeddings import DTYPES, KIND, Embeddings, find, latest

BLOCK = 512  # documents that are encoded and committed to the journal together
MOST = 1e15  # the length of a vector; inner products then stay within float32
HEADER = 128  # bytes before the numbers of a .npy file; numpy leaves room for the shape to grow
PARTS = ("vectors.npy", "norms", "scales", "counts")  # of an encoding under way
JOURNAL = (*PARTS[1:], "journal", "settings.json")  # what is not needed when it is complete

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
    """

    fingerprint: str
    encoder: str
    settings: str | None
    dim: int
    dtype: str
    ids: Sequence[str]
    vectors: Callable[[int, int, Report], VectorsOfDocuments]

    @property
    def name(self) -> str:
        """The name of its folder, without the number."""
        return f"{hash_text(self.fingerprint)[:16]}-{self.dtype}"


def store_vectors(segment: Path, job: Job, overwrite: bool, progress: Report) -> Embeddings:
    """Encodes the documents of a segment and stores their vectors there, unless they are there already.

    After each block its vectors are on the disk and in a journal; an encoding that was killed, or that filled the disk, goes
    on after the last block that is in the journal.
    """
    busy = FontesError(f"{segment.parent} is being encoded by another process with the same encoder; wait for it")
    with contextlib.ExitStack() as stack:
        try:
            draft = stack.enter_context(drafting(segment / f"vectors-{job.name}", busy))
        except OSError as e:
            raise FontesError(f"{segment.parent}: vectors cannot be written: {e.strerror}; nothing was changed") from e
        existing = find(segment).get(job.name)
        if isinstance(existing, Embeddings) and not overwrite:
            shutil.rmtree(draft, ignore_errors=True)
            _tidy(existing.folder, job)
            return existing
        return _encoded(segment, draft, job, progress)


def _encoded(segment: Path, draft: Path, job: Job, progress: Report) -> Embeddings:
    count = len(job.ids)
    with _writing(segment, None, count):
        journal = Journal(draft, job)
    try:
        before, start = journal.documents, time.perf_counter()

        def report(done: float) -> None:
            part = done / count if count else 1.0
            progress(Progress("encoding", int(done), count, time.perf_counter() - start, part=part, before=before))

        while journal.documents < count:
            first, last = journal.documents, min(journal.documents + BLOCK, count)
            vectors, bounds = job.vectors(first, last, _within(first, last, report))
            block = quantized(vectors, bounds, job, first, last)
            with _writing(segment, journal, count):
                journal.append(*block)
            report(journal.documents)
        with _writing(segment, journal, count):
            folder = journal.finish(segment)
    finally:
        journal.close()
    return Embeddings(folder)


def _within(first: int, last: int, report: Callable[[float], None]) -> Report:
    """The report of a block's encoding, as documents done of all."""
    return lambda progress: report(first + (progress.fraction or 0.0) * (last - first))


@contextlib.contextmanager
def _writing(segment: Path, journal: Journal | None, count: int) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if not segment.exists():
            raise FontesError(f"{segment.parent} was replaced by another index meanwhile; encode that one") from e
        done = journal.documents if journal else 0
        raise FontesError(
            f"{segment.parent}: vectors cannot be written: {e.strerror or e}; {done:,} of {count:,} documents are encoded and "
            "kept, and encoding again goes on after them"
        ) from e


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
    bad = np.flatnonzero(~(lengths <= MOST) | (np.abs(vectors).max(axis=1, initial=0) > limit))
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


class Journal:
    """An encoding under way: a folder with the vectors so far, and a line for each block that is safely on the disk."""

    def __init__(self, draft: Path, job: Job) -> None:
        self._draft, self._job = draft, job
        self._settings: dict[str, Any] = {
            "encoder": job.encoder,
            "settings": job.settings,
            "fingerprint": job.fingerprint,
            "dtype": job.dtype,
            "dim": job.dim,
            "documents": len(job.ids),
        }
        self._identity = {"version": KIND.version, **self._settings}
        blocks = self._sound_blocks()
        self.documents, self._rows = (sum(block[i] for block in blocks) for i in (0, 1))
        if not blocks:
            (draft / "settings.json").write_text(json.dumps(self._identity), encoding="utf-8")
        sizes = self._sizes(self.documents, self._rows)
        sizes["vectors.npy"] += HEADER
        sizes["journal"] = sum(len(json.dumps(block)) + 1 for block in blocks)
        self._files: dict[str, IO[bytes]] = {}
        for name, size in sizes.items():
            self._files[name] = (draft / name).open("r+b" if blocks else "w+b")
            self._files[name].truncate(size)
            self._files[name].seek(size)
        self._header()

    def append(
        self, vectors: NDArray[Any], norms: NDArray[np.float32], scales: NDArray[np.float32], counts: NDArray[np.uint32]
    ) -> None:
        """Adds a block: it is on the disk when this returns, or else not there at all."""
        check = 0
        for name, array in zip(PARTS, (vectors, norms, scales, counts), strict=True):
            raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            self._files[name].write(raw)
            sync(self._files[name])
            check = zlib.crc32(raw, check)
        self._files["journal"].write((json.dumps([len(counts), len(vectors), check]) + "\n").encode())
        sync(self._files["journal"])
        self.documents += len(counts)
        self._rows += len(vectors)

    def finish(self, segment: Path) -> Path:
        """Completes the files and puts the folder in its place, in one step; older vectors of the same name go."""
        self._header()
        draft = self._draft
        counts = np.fromfile(draft / "counts", "<u4")
        if np.any(counts != 1):
            bounds = np.zeros(len(counts) + 1, dtype=np.int64)
            np.cumsum(counts, out=bounds[1:])
            write_array(draft, "bounds", bounds)
        for name in ("norms", "scales") if self._job.dtype == "int8" else ("norms",):
            write_array(draft, name, np.fromfile(draft / name, "<f4"))
        seal(draft, KIND, self._settings, "*.npy")
        newest = latest(segment).get(self._job.name)
        number = 1 + int(newest.name.rpartition("-")[2]) if newest else 1
        folder = segment / f"vectors-{self._job.name}-{number}"
        with uninterrupted():
            commit(draft, folder)
            _tidy(folder, self._job)
        return folder

    def close(self) -> None:
        """Closes the files as they are."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()

    def _header(self) -> None:
        file = self._files["vectors.npy"]
        file.seek(0)
        shape = (self._rows, self._job.dim)
        npy.write_array_header_1_0(file, {"descr": DTYPES[self._job.dtype], "fortran_order": False, "shape": shape})
        sync(file)
        file.seek(0, os.SEEK_END)

    def _sizes(self, documents: int, rows: int) -> dict[str, int]:
        """The bytes that so many documents and rows take in each of PARTS."""
        width = np.dtype(DTYPES[self._job.dtype]).itemsize * self._job.dim
        return dict(zip(PARTS, (rows * width, 4 * rows, 4 * rows * (self._job.dtype == "int8"), 4 * documents), strict=True))

    def _sound_blocks(self) -> list[list[int]]:
        """The blocks [documents, rows, checksum] of an earlier run of the same job that are whole on the disk."""
        blocks: list[list[int]] = []
        with contextlib.suppress(OSError, ValueError, TypeError), contextlib.ExitStack() as stack:
            settings = json.loads((self._draft / "settings.json").read_text(encoding="utf-8"))
            named = {"encoder": None, "settings": None}
            if settings | named != self._identity | named:
                return []
            lines = (self._draft / "journal").read_bytes().split(b"\n")[:-1]
            files = {name: stack.enter_context((self._draft / name).open("rb")) for name in PARTS}
            files["vectors.npy"].seek(HEADER)
            for documents, rows, expected in map(json.loads, lines):
                check = 0
                for name, size in self._sizes(documents, rows).items():
                    check = zlib.crc32(files[name].read(size), check)
                if check != expected:
                    break
                blocks.append([documents, rows, expected])
        return blocks


def _tidy(folder: Path, job: Job) -> None:
    """Removes what is no longer needed: the journal, and older vectors of the same name."""
    with contextlib.suppress(OSError):
        for name in JOURNAL:
            (folder / name).unlink(missing_ok=True)
        for other in folder.parent.glob(f"vectors-{job.name}-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
