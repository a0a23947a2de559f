"""Vectors of a segment's documents, by memory map."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from .files import digest, read_array

FORMAT = "fontes-vectors"
VERSION = 1
META = "vectors.json"
FOLDER = re.compile(r"vectors-([0-9a-f]{16}-(?:float32|float16|int8))-(\d+)")
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
REMEDY = "encode again with overwrite=True (fontes encode --overwrite)"


class Embeddings:
    """The vectors of a segment's documents by one encoder.

    vectors   (rows, dim), float32, float16 or int8, by memory map
    scales    float32, a row; int8 only: what the numbers of a row are multiplied by; else empty
    norms     float32, a row: its length, rounded up; 0 for a vector of zeros
    bounds    int64: document i has the rows bounds[i]:bounds[i + 1]; empty where each document has one

    Raises IndexFormatError where a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta = _meta(folder)
        for name, expected in self.meta["files"].items():
            file = folder / name
            if not file.is_file() or file.stat().st_size != expected["bytes"]:
                raise IndexFormatError(f"{file} is missing or damaged; {REMEDY}")
        self.fingerprint: str = self.meta["fingerprint"]
        self.encoder: str = self.meta["encoder"]
        self.dtype: str = self.meta["dtype"]
        self.documents: int = self.meta["documents"]
        names = [name.removesuffix(".npy") for name in self.meta["files"]]
        self.vectors, self.norms = (fixed(read_array(folder, name)) for name in ("vectors", "norms"))
        self.scales: NDArray[np.float32] = fixed(read_array(folder, "scales") if "scales" in names else np.zeros(0, np.float32))
        self.bounds: NDArray[np.int64] = fixed(read_array(folder, "bounds") if "bounds" in names else np.zeros(0, np.int64))
        self.memory: dict[Any, Any] = {}  # what searches have opened

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Of each vector."""
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
        found = np.asarray(self.vectors[rows], dtype=np.float32)
        return found * self.scales[rows, None] if len(self.scales) else found

    def check(self) -> None:
        """Reads every file. Raises IndexFormatError where anything is not as it was written or does not fit together."""
        for name, expected in self.meta["files"].items():
            if digest(self.folder / name) != expected["sha256"]:
                raise IndexFormatError(f"{self.folder / name} has changed; {REMEDY}")
        rows = self.documents if self.single else int(self.bounds[-1])
        sides = [len(self.norms), *([len(self.scales)] if self.dtype == "int8" else [])]
        if self.vectors.shape != (rows, self.meta["dim"]) or any(size != rows for size in sides):
            raise IndexFormatError(f"the files of {self.folder} do not fit together; {REMEDY}")

    def info(self) -> dict[str, Any]:
        """What there is: encoder, fingerprint, dtype, dimensions, counts, bytes."""
        facts = {key: self.meta[key] for key in ("encoder", "settings", "fingerprint", "dtype", "dim")}
        size = sum(file["bytes"] for file in self.meta["files"].values())
        return {**facts, "vectors": len(self), "bytes": size}


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, not to be written; compiled code has one version for those that can be and one for those that cannot."""
    view = array.view()
    view.flags.writeable = False
    return view


def find(segment: Path) -> dict[str, Embeddings | IndexFormatError]:
    """All vectors of a segment, by the name of their job; for damaged ones the error."""
    found: dict[str, Embeddings | IndexFormatError] = {}
    for name, folder in latest(segment).items():
        try:
            found[name] = Embeddings(folder)
        except IndexFormatError as error:
            if folder.exists():  # else it has just been replaced
                found[name] = error
            elif name in (newer := latest(segment)):
                found[name] = Embeddings(newer[name])
    return found


def meta_digest(facts: dict[str, Any], files: dict[str, Any]) -> str:
    """The digest of a set of vectors, from its facts and its files' digests."""
    return hashlib.sha256(json.dumps([facts, files], sort_keys=True).encode()).hexdigest()


def latest(segment: Path) -> dict[str, Path]:
    """The newest vectors of each name."""
    numbers: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(segment):
            if match := FOLDER.fullmatch(entry.name):
                numbers[match[1]] = max(int(match[2]), numbers.get(match[1], 0))
    return {name: segment / f"vectors-{name}-{number}" for name, number in sorted(numbers.items())}


def _meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
        facts = {key: value for key, value in meta.items() if key not in ("files", "digest")}
        sound = meta["format"] == FORMAT and meta["digest"] == meta_digest(facts, meta["files"])
        version = meta["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise IndexFormatError(f"{folder / META} is missing or damaged; {REMEDY}") from e
    if not sound:
        raise IndexFormatError(f"{folder / META} is damaged; {REMEDY}")
    if version != VERSION:
        raise IndexFormatError(f"{folder} has vectors of the format {version}; this Fontes reads {VERSION}; {REMEDY}")
    return meta
