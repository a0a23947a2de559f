"""SHA-256 (hexadecimal) of files, texts and JSON values; CRC-32 of arrays."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .threads import in_threads

BLOCK_BYTES = 1 << 22  # bytes covered by one checksum


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file; OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_json(value: object) -> str:
    """Return the SHA-256 of a JSON value, independent of key order."""
    return hash_text(json.dumps(value, ensure_ascii=True, sort_keys=True))


def block_sums(array: NDArray[np.generic]) -> list[int]:
    """Return the CRC-32 of each block of BLOCK_BYTES bytes of an array, computed in parallel."""
    values = array.reshape(-1).view(np.uint8)
    blocks = [values[first : first + BLOCK_BYTES].data for first in range(0, len(values), BLOCK_BYTES)]
    return in_threads(zlib.crc32, blocks)
