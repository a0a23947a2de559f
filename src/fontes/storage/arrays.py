"""Arrays on disk: numpy's own format, little-endian, without pickle, opened by memory map."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import re
import stat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..core.strings import Strings

UNSIGNED = ("|u1", "<u2", "<u4", "<u8")  # the types of `smallest`
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


def read_array(
    folder: Path,
    name: str,
    remedy: str = REMEDY,
    *,
    dtype: str | tuple[str, ...] | None = None,
    shape: tuple[int | None, ...] | None = None,
) -> NDArray[Any]:
    """Opens NAME.npy by memory map, read-only. Its header must account for each byte of the file.

    Args:
        folder: The folder.
        name: The file's name without its ending.
        remedy: Advice of the error.
        dtype: Type in the header, or several of which it must be one; None for any.
        shape: Lengths, None in it for any; None for any shape.

    Raises:
        IndexFormatError: The file is missing or damaged, or has another type or shape.
    """
    path = folder / f"{name}.npy"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a link may lead anywhere
            raise ValueError("it is no plain file")
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 2)
            header = HEADER.fullmatch(file.read(int.from_bytes(start[len(MAGIC) :], "little")))
            if not start.startswith(MAGIC) or header is None:
                raise ValueError("its header is not as it was written")
            kind, sizes = header[1].decode(), tuple(int(size) for size in header[2].split(b",") if size.strip())
            stored, values = np.dtype(kind), os.fstat(file.fileno()).st_size - file.tell()
            if math.prod(sizes) * stored.itemsize != values:
                raise ValueError(f"its header promises other values than the {values:,} bytes that it has")
            if dtype is not None and kind not in ((dtype,) if isinstance(dtype, str) else dtype):
                raise ValueError(f"it has values of the type {kind}")
            if shape is not None and not _fits(sizes, shape):
                raise ValueError(f"it has the shape {sizes}")
            if not values:  # an empty file cannot be mapped
                return np.zeros(sizes, dtype=stored)
            return np.memmap(file, dtype=stored, mode="r", offset=file.tell(), shape=sizes).view(np.ndarray)
    except (OSError, ValueError, TypeError, OverflowError) as e:
        raise IndexFormatError(f"{path} is missing or damaged ({e}); {remedy}") from e


def _fits(sizes: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(sizes) == len(shape) and all(one in (None, size) for size, one in zip(sizes, shape, strict=True))


class Arrays:
    """The arrays of a folder. All methods raise IndexFormatError where a file is missing, damaged or not as it must be.

    Args:
        folder: The folder.
        remedy: Advice of errors.
    """

    def __init__(self, folder: Path, remedy: str = REMEDY) -> None:
        self._folder, self._remedy = folder, remedy

    def array(self, name: str, dtype: str | tuple[str, ...], *shape: int | None) -> NDArray[Any]:
        """The array NAME.npy, by memory map; see `read_array`."""
        return read_array(self._folder, name, self._remedy, dtype=dtype, shape=shape)

    def bounds(self, name: str, end: int, parts: int | None = None, dtype: str | tuple[str, ...] = UNSIGNED) -> NDArray[Any]:
        """Offsets of parts in NAME.npy: from 0, never falling, to `end`.

        Args:
            name: The name.
            end: End of the last part.
            parts: Number of parts; None for any.
            dtype: Type, or several of which it must be one.
        """
        bounds = self.array(name, dtype, None if parts is None else parts + 1)
        if not rises(bounds, end):
            raise self.damaged(name, f"it does not rise from 0 to {end:,}")
        return bounds

    def numbers(self, name: str, below: int, dtype: str | tuple[str, ...], *shape: int | None) -> NDArray[Any]:
        """The array NAME.npy of whole numbers from 0 up to `below`; each is read."""
        numbers = self.array(name, dtype, *shape)
        if not within(numbers, below):
            raise self.damaged(name, f"it has numbers that are not from 0 up to {below:,}")
        return numbers

    def strings(self, name: str, count: int | None = None, *, ordered: bool) -> Strings:
        """The table of strings in NAME.bytes, NAME.bounds and, unless they are `ordered` already, NAME.order.

        Args:
            name: The name.
            count: Number of strings; None for any.
            ordered: Whether they ascend.
        """
        blob = self.array(f"{name}.bytes", "|u1", None)
        bounds = self.bounds(f"{name}.bounds", len(blob), count)
        if not is_utf8(blob, bounds):
            raise self.damaged(f"{name}.bytes", "it is not UTF-8")
        count = len(bounds) - 1
        if ordered:
            return Strings(blob, bounds, np.arange(count, dtype=np.uint32))
        order = self.numbers(f"{name}.order", count, "<u4", count)
        twice = self.damaged(f"{name}.order", "it has a number twice")
        if int(order.sum(dtype=np.uint64)) != count * (count - 1) // 2:
            raise twice
        return _StoredStrings(blob, bounds, order, twice)

    def check_sum(self, name: str, array: NDArray[Any], expected: int | None, what: str) -> None:
        """Raises IndexFormatError unless the opened array adds up to `expected`; None is not checked."""
        if expected is not None and (total := int(array.sum(dtype=np.uint64))) != expected:
            raise self.damaged(name, f"it adds up to {total:,} {what}, not {expected:,}")

    def damaged(self, name: str, problem: str) -> IndexFormatError:
        """An error about NAME.npy."""
        return IndexFormatError(f"{self._folder / name}.npy is damaged: {problem}; {self._remedy}")


class _StoredStrings(Strings):
    """A table of strings whose stored order is checked when it is first used: ranks index arrays in compiled loops.

    Args:
        blob: See `Strings`.
        offsets: See `Strings`.
        order: See `Strings`; numbers from 0 up to their count.
        twice: Error to raise where the order has a number twice.
    """

    __slots__ = ("_twice",)

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[Any], order: NDArray[np.uint32], twice: Exception) -> None:
        super().__init__(blob, offsets, order)
        self._twice: Exception | None = twice

    @property
    def order(self) -> NDArray[np.uint32]:
        """See `Strings.order`."""
        order = super().order
        if self._twice is not None:
            if not is_permutation(order):
                raise self._twice
            self._twice = None
        return order


class OpenArrays(Arrays):
    """Arrays of a folder that fit a pattern: opened at once, so that the folder may go, and checked on access."""

    def __init__(self, folder: Path, pattern: str) -> None:
        super().__init__(folder)
        names = sorted(path.name.removesuffix(".npy") for path in folder.glob(f"{pattern}.npy"))
        self._opened = {name: read_array(folder, name) for name in names}

    def __contains__(self, name: object) -> bool:
        return name in self._opened

    def array(self, name: str, dtype: str | tuple[str, ...], *shape: int | None) -> NDArray[Any]:
        """See `Arrays.array`."""
        if (array := self._opened.get(name)) is None:
            return super().array(name, dtype, *shape)
        if (kind := header_type(array.dtype)) not in ((dtype,) if isinstance(dtype, str) else dtype):
            raise self.damaged(name, f"it has values of the type {kind}")
        if not _fits(array.shape, shape):
            raise self.damaged(name, f"it has the shape {array.shape}")
        return array


def header_type(dtype: Any) -> str:
    """A numpy type as headers name it."""
    return str(np.dtype(dtype).newbyteorder("<").str)


def rises(bounds: NDArray[Any], end: int) -> bool:
    """Whether bounds begin with 0, never fall, and end with `end`."""
    return len(bounds) > 0 and int(bounds[0]) == 0 and int(bounds[-1]) == end and bool(np.all(bounds[1:] >= bounds[:-1]))


def within(numbers: NDArray[Any], below: int) -> bool:
    """Whether all numbers are from 0 up to `below`."""
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < below)


def is_permutation(numbers: NDArray[Any]) -> bool:
    """Whether whole numbers are those from 0 up to their count, each once."""
    there = np.zeros(len(numbers), dtype=np.bool_)
    if within(numbers, len(numbers)):
        there[numbers] = True
    return bool(there.all())


def is_utf8(blob: NDArray[np.uint8], bounds: NDArray[Any]) -> bool:
    """Whether bytes are texts in UTF-8, each from one of `bounds` to the next.

    Only bytes above 127 are decoded; all but the first of a character must follow another such byte.
    """
    if not len(blob) or int(blob.max()) < 128:
        return True
    high = np.flatnonzero(blob > 127)
    letters = blob[high]
    try:
        codecs.utf_8_decode(letters.data, "strict", True)
    except UnicodeDecodeError:
        return False
    inner = high[(letters & 0xC0) == 0x80]
    starts = bounds[: np.searchsorted(bounds, len(blob))]
    return bool(np.all(blob[inner - 1] > 127)) and not np.any((blob[starts] & 0xC0) == 0x80)


def smallest(array: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the smallest unsigned type that holds them all."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))


class ByteWriter:
    """Writes NAME.npy, an array of bytes, piece by piece; `length` is the number of bytes so far."""

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


class NumberWriter:
    """Writes NAME.npy, whole numbers from 0 up, piece by piece, in the smallest unsigned type that holds them all.

    Args:
        folder: The folder.
        name: The file's name without its ending.
        width: Numbers in a row; None for an array of one dimension.
    """

    def __init__(self, folder: Path, name: str, width: int | None = None) -> None:
        self._path = folder / f"{name}.npy"
        self._width = width
        self._type: np.dtype[Any] = np.dtype(np.uint8)
        self._count = 0
        self._file = self._path.open("wb+")
        self._header()

    def write(self, numbers: NDArray[Any]) -> None:
        """Appends numbers, or rows of them."""
        fit = smallest(numbers).dtype
        if fit.itemsize > self._type.itemsize:
            self._widen(fit)
        self._file.write(np.ascontiguousarray(numbers, dtype=self._type.newbyteorder("<")).reshape(-1).view(np.uint8).data)
        self._count += len(numbers)

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

    def _widen(self, to: np.dtype[Any]) -> None:
        """Rewrites the file in a wider type."""
        old, before = self._file, self._type
        start = self._start
        wider = self._path.with_suffix(".wider")
        self._type, self._file = to, wider.open("wb+")
        self._header()
        old.seek(start)
        while piece := old.read(before.itemsize << 16):
            self._file.write(np.frombuffer(piece, before.newbyteorder("<")).astype(to.newbyteorder("<")).data)
        old.close()
        wider.replace(self._path)

    def _header(self) -> None:
        shape = (self._count,) if self._width is None else (self._count, self._width)
        descr = npy.dtype_to_descr(self._type.newbyteorder("<"))
        npy.write_array_header_1_0(self._file, {"descr": descr, "fortran_order": False, "shape": shape})
        self._start = self._file.tell()


def sync(file: IO[Any]) -> None:
    """Flushes an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flushes the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
