"""Arrays on disk: memory-mapped, little-endian .npy files without pickle."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import re
import stat
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.arrays import AnyArray, Bytes, Ints, Scalar
from ..core.errors import IndexFormatError
from ..core.strings import Strings

UNSIGNED = ("|u1", "<u2", "<u4", "<u8")  # types that `smallest` returns
REMEDY = "restore it from a copy or build the index again"
# Headers as numpy writes them. Its own reader uses `ast`, which threads of Python 3.11 cannot share.
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(rb"\{'descr': '([<|][bfiu][1248])', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n")


def fixed(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a contiguous, read-only view, of the type of a memory map, so that loops are compiled once for both."""
    array = np.ascontiguousarray(array).view(np.ndarray)
    array.flags.writeable = False
    return array


def write_array(folder: Path, name: str, array: NDArray[np.generic]) -> None:
    """Write an array as little-endian NAME.npy."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    with (folder / f"{name}.npy").open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)


def read_array(
    folder: Path,
    name: str,
    remedy: str = REMEDY,
    *,
    dtype: str | tuple[str, ...] | None = None,
    shape: tuple[int | None, ...] | None = None,
) -> AnyArray:
    """Open NAME.npy as a read-only memory map.

    Args:
        folder: Folder of the file.
        name: File name without its ending.
        remedy: Advice in error messages.
        dtype: Expected type, or accepted types; None accepts any.
        shape: Expected shape, in which None accepts any length; None accepts any shape.

    Raises:
        IndexFormatError: The file is missing, damaged, of the wrong length, type or shape.
    """
    path = folder / f"{name}.npy"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a link may lead anywhere
            raise ValueError("it is no plain file")
        with path.open("rb") as file:
            prefix = file.read(len(MAGIC) + 2)
            header = HEADER.fullmatch(file.read(int.from_bytes(prefix[len(MAGIC) :], "little")))
            if not prefix.startswith(MAGIC) or header is None:
                raise ValueError("its header is invalid")
            descr, file_shape = header[1].decode(), tuple(int(size) for size in header[2].split(b",") if size.strip())
            file_dtype, nbytes = np.dtype(descr), os.fstat(file.fileno()).st_size - file.tell()
            if math.prod(file_shape) * file_dtype.itemsize != nbytes:
                raise ValueError(f"its header does not fit its {nbytes:,} bytes of values")
            if dtype is not None and descr not in ((dtype,) if isinstance(dtype, str) else dtype):
                raise ValueError(f"it has values of the type {descr}")
            if shape is not None and not _fits(file_shape, shape):
                raise ValueError(f"it has the shape {file_shape}")
            if not nbytes:  # an empty file cannot be mapped
                return np.zeros(file_shape, dtype=file_dtype)
            return np.memmap(file, dtype=file_dtype, mode="r", offset=file.tell(), shape=file_shape).view(np.ndarray)
    except OSError as e:
        raise unreadable(path, e, f"is missing or damaged ({e}); {remedy}") from e
    except (ValueError, TypeError, OverflowError) as e:
        raise IndexFormatError(f"{path} is missing or damaged ({e}); {remedy}") from e


def unreadable(path: Path, error: OSError, problem: str) -> IndexFormatError:
    """Return the error for a file that cannot be read; `problem` says so of one that is not merely forbidden."""
    if isinstance(error, PermissionError):
        problem = f"cannot be read: {error.strerror}; let this user read it and the folders above it"
    return IndexFormatError(f"{path} {problem}")


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(length in (None, size) for size, length in zip(shape, expected, strict=True))


class Arrays:
    """Arrays of a folder; every method raises IndexFormatError, which ends with `remedy`, for a missing or invalid file."""

    def __init__(self, folder: Path, remedy: str = REMEDY) -> None:
        self._folder, self._remedy = folder, remedy

    def array(self, name: str, dtype: str | tuple[str, ...], *shape: int | None) -> AnyArray:
        """Open NAME.npy as a memory map; see `read_array`."""
        return read_array(self._folder, name, self._remedy, dtype=dtype, shape=shape)

    def bounds(self, name: str, end: int, parts: int | None = None, dtype: str | tuple[str, ...] = UNSIGNED) -> AnyArray:
        """Read the offsets of `parts` parts (None: any number) from NAME.npy: non-decreasing, from 0 to `end`."""
        bounds = self.array(name, dtype, None if parts is None else parts + 1)
        if not rises(bounds, end):
            raise self.damaged(name, f"it does not rise from 0 to {end:,}")
        return bounds

    def numbers(self, name: str, below: int, dtype: str | tuple[str, ...], *shape: int | None) -> AnyArray:
        """Read NAME.npy and check that all its integers are in [0, `below`)."""
        numbers = self.array(name, dtype, *shape)
        if not within(numbers, below):
            raise self.damaged(name, f"it has numbers that are not from 0 up to {below:,}")
        return numbers

    def strings(self, name: str, count: int | None = None, *, ordered: bool) -> Strings:
        """Open the table of `count` strings (None: any) in NAME.bytes, NAME.bounds and, unless `ordered`, NAME.order."""
        blob = self.array(f"{name}.bytes", "|u1", None)
        bounds = self.bounds(f"{name}.bounds", len(blob), count)
        if not is_utf8(blob, bounds):
            raise self.damaged(f"{name}.bytes", "it is not UTF-8")
        count = len(bounds) - 1
        if ordered:
            return Strings(blob, bounds).ascending()
        order = self.numbers(f"{name}.order", count, "<u4", count)
        repeated = self.damaged(f"{name}.order", "it has a number twice")
        if int(order.sum(dtype=np.uint64)) != count * (count - 1) // 2:
            raise repeated
        # The order is checked before compiled loops index by it.
        return Strings(blob, bounds, order, partial(_check_order, repeated))

    def check_sum(self, name: str, array: Ints, expected: int | None, noun: str) -> None:
        """Raise IndexFormatError unless the array sums to `expected`; None skips the check."""
        if expected is not None and (total := int(array.sum(dtype=np.uint64))) != expected:
            raise self.damaged(name, f"it adds up to {total:,} {noun}, not {expected:,}")

    def damaged(self, name: str, problem: str) -> IndexFormatError:
        """Return an error about NAME.npy."""
        return IndexFormatError(f"{self._folder / name}.npy is damaged: {problem}; {self._remedy}")


class OpenArrays(Arrays):
    """Arrays matching a pattern, opened at once so that the folder may be deleted; checked on access."""

    def __init__(self, folder: Path, pattern: str) -> None:
        super().__init__(folder)
        names = sorted(path.name.removesuffix(".npy") for path in folder.glob(f"{pattern}.npy"))
        self._opened = {name: read_array(folder, name) for name in names}

    def __contains__(self, name: object) -> bool:
        return name in self._opened

    def array(self, name: str, dtype: str | tuple[str, ...], *shape: int | None) -> AnyArray:
        """See `Arrays.array`."""
        if (array := self._opened.get(name)) is None:
            return super().array(name, dtype, *shape)
        if (kind := header_type(array.dtype)) not in ((dtype,) if isinstance(dtype, str) else dtype):
            raise self.damaged(name, f"it has values of the type {kind}")
        if not _fits(array.shape, shape):
            raise self.damaged(name, f"it has the shape {array.shape}")
        return array


def header_type(dtype: Any) -> str:
    """Return the name of a numpy type as used in .npy headers."""
    return str(np.dtype(dtype).newbyteorder("<").str)


def rises(bounds: Ints, end: int) -> bool:
    """Whether bounds start at 0, never decrease, and end at `end`."""
    return len(bounds) > 0 and int(bounds[0]) == 0 and int(bounds[-1]) == end and bool(np.all(bounds[1:] >= bounds[:-1]))


def within(numbers: Ints, below: int) -> bool:
    """Whether all numbers are in [0, `below`)."""
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < below)


def is_permutation(numbers: Ints) -> bool:
    """Whether integers are a permutation of 0 to n-1."""
    present = np.zeros(len(numbers), dtype=np.bool_)
    if within(numbers, len(numbers)):
        present[numbers] = True
    return bool(present.all())


def _check_order(error: Exception, order: Ints) -> None:
    if not is_permutation(order):
        raise error


def is_utf8(blob: Bytes, bounds: Ints) -> bool:
    """Whether each slice of bytes between consecutive `bounds` is valid UTF-8; only non-ASCII bytes are decoded."""
    if not len(blob) or int(blob.max()) < 128:
        return True
    high_indices = np.flatnonzero(blob > 127)
    high_bytes = blob[high_indices]
    try:
        codecs.utf_8_decode(high_bytes.data, "strict", True)
    except UnicodeDecodeError:
        return False
    continuations = high_indices[(high_bytes & 0xC0) == 0x80]
    starts = bounds[: np.searchsorted(bounds, len(blob))]
    return bool(np.all(blob[continuations - 1] > 127)) and not np.any((blob[starts] & 0xC0) == 0x80)


def smallest(array: Ints) -> Ints:
    """Convert integers to the smallest unsigned type that holds them."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))


class _ArrayWriter(ABC):
    """Base of the writers of NAME.npy, whose header is written again at the end."""

    _file: BinaryIO

    def close(self) -> None:
        """Complete the file."""
        self._file.seek(0)
        self._header()
        self._file.close()

    def abandon(self) -> None:
        """Close the incomplete file."""
        with contextlib.suppress(OSError):
            self._file.close()

    @abstractmethod
    def _header(self) -> None: ...


class ByteWriter(_ArrayWriter):
    """Incremental writer of a byte array NAME.npy; `length` is the number of bytes so far."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = (folder / f"{name}.npy").open("wb")
        self.length = 0
        self._header()

    def write(self, data: bytes | Bytes) -> None:
        """Append bytes."""
        self._file.write(data.tobytes() if isinstance(data, np.ndarray) else data)
        self.length += len(data)

    def _header(self) -> None:
        # numpy pads the header, so that it keeps its size when the length grows.
        npy.write_array_header_1_0(self._file, {"descr": "|u1", "fortran_order": False, "shape": (self.length,)})


class NumberWriter(_ArrayWriter):
    """Incremental writer of non-negative integers to NAME.npy, in the smallest unsigned type.

    `width` is the row length; None for a one-dimensional array.
    """

    def __init__(self, folder: Path, name: str, width: int | None = None) -> None:
        self._path = folder / f"{name}.npy"
        self._width = width
        self._type: np.dtype[np.integer] = np.dtype(np.uint8)
        self._count = 0
        self._file = self._path.open("wb+")
        self._header()

    def write(self, numbers: Ints) -> None:
        """Append numbers or rows."""
        fit = smallest(numbers).dtype
        if fit.itemsize > self._type.itemsize:
            self._widen(fit)
        self._file.write(np.ascontiguousarray(numbers, dtype=self._type.newbyteorder("<")).reshape(-1).view(np.uint8).data)
        self._count += len(numbers)

    def _widen(self, new_type: np.dtype[np.integer]) -> None:
        old_file, old_type = self._file, self._type
        start = self._start
        wide_path = self._path.with_suffix(".wider")
        self._type, self._file = new_type, wide_path.open("wb+")
        self._header()
        old_file.seek(start)
        while piece := old_file.read(old_type.itemsize << 16):
            self._file.write(np.frombuffer(piece, old_type.newbyteorder("<")).astype(new_type.newbyteorder("<")).data)
        old_file.close()
        wide_path.replace(self._path)

    def _header(self) -> None:
        shape = (self._count,) if self._width is None else (self._count, self._width)
        descr = npy.dtype_to_descr(self._type.newbyteorder("<"))
        npy.write_array_header_1_0(self._file, {"descr": descr, "fortran_order": False, "shape": shape})
        self._start = self._file.tell()


def sync(file: IO[bytes] | IO[str]) -> None:
    """Flush an open file to disk."""
    file.flush()
    os.fsync(file.fileno())
