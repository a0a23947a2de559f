"""Arrays on disk: numpy's own format, little-endian, without pickle, opened by memory map."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.errors import IndexFormatError

REMEDY = "restore it from a copy or build the index again"
# The headers that numpy writes. Its reader of them goes through `ast`, which threads of Python 3.11 cannot share.
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(rb"\{'descr': '([<|][bfiu][1248])', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n")


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Writes an array, little-endian, as NAME.npy; it is on the disk when this returns."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    with (folder / f"{name}.npy").open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)
        sync(file)


def read_array(folder: Path, name: str, remedy: str = REMEDY) -> NDArray[Any]:
    """Opens NAME.npy by memory map, read-only.

    Args:
        folder: Where the file is.
        name: Its name without the ending.
        remedy: What the error advises.

    Raises:
        IndexFormatError: The file is missing or damaged.
    """
    path = folder / f"{name}.npy"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a link may lead anywhere
            raise ValueError("it is no plain file")
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 2)
            header = HEADER.fullmatch(file.read(int.from_bytes(start[len(MAGIC) :], "little")))
            offset = file.tell()
        if not start.startswith(MAGIC) or header is None:
            raise ValueError("its header is not as it was written")
        dtype, shape = np.dtype(header[1].decode()), tuple(int(size) for size in header[2].split(b",") if size.strip())
        if 0 in shape:  # an empty file cannot be mapped
            return np.zeros(shape, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)
    except (OSError, ValueError, TypeError) as e:
        raise IndexFormatError(f"{path} is missing or damaged ({e}); {remedy}") from e


def smallest(array: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers in the smallest unsigned type that holds them all."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))


class ByteWriter:
    """Writes NAME.npy, an array of bytes, piece by piece.

    Attributes:
        length: The number of bytes written so far.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file = (folder / f"{name}.npy").open("wb")
        self.length = 0
        self._header()

    def write(self, data: bytes | NDArray[np.uint8]) -> None:
        """Appends bytes."""
        self._file.write(data.tobytes() if isinstance(data, np.ndarray) else data)
        self.length += len(data)

    def close(self) -> None:
        """Completes the file; it is on the disk when this returns."""
        self._file.seek(0)
        self._header()
        sync(self._file)
        self._file.close()

    def abandon(self) -> None:
        """Closes the file as it is."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _header(self) -> None:
        # numpy leaves room for the length to grow, so that the header keeps its size.
        npy.write_array_header_1_0(self._file, {"descr": "|u1", "fortran_order": False, "shape": (self.length,)})


def sync(file: IO[Any]) -> None:
    """Returns when what was written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Returns when the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
