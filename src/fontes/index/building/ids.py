"""The ids of a build: written as they come, and put in order by parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.strings import Strings
from ...storage.arrays import ByteWriter, NumberWriter, read_array, write_array
from ..tables import first_repeated, merged_orders

SORTING = 64  # bytes of memory that an id takes while it is put in order, besides its own


class IdWriter:
    """Writes doc_ids.

    Args:
        folder: Where the files go.
        memory: The bytes that ids may take before they are put in order by themselves, and the order goes to the disk.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        self._folder, self._memory = folder, memory
        self._bytes, self._bounds = ByteWriter(folder, "doc_ids.bytes"), NumberWriter(folder, "doc_ids.bounds")
        self._bounds.write(np.zeros(1, dtype=np.int64))
        self._pending: list[Strings] = []
        self._size, self._count, self._parts = 0, 0, 0

    def add(self, ids: Strings) -> None:
        """Appends ids."""
        self._bounds.write(self._bytes.length + ids.offsets[1:].astype(np.int64))
        self._bytes.write(ids.blob)
        self._pending.append(ids)
        self._size += len(ids.blob) + SORTING * len(ids)
        self._count += len(ids)
        if self._size >= self._memory:
            self._part().tofile(self._file(self._parts))
            self._parts += 1

    def close(self, repeated: bool) -> None:
        """Completes the files.

        Raises:
            InputError: An id occurs twice, unless ids may be `repeated`.
        """
        self._bytes.close()
        self._bounds.close()
        blob, bounds = (read_array(self._folder, f"doc_ids.{name}") for name in ("bytes", "bounds"))
        bounds = bounds.astype(np.int64) if not self._parts else _spooled(bounds, self._file("bounds"))
        parts: list[NDArray[np.uint32]] = [np.memmap(self._file(number), np.uint32, "r") for number in range(self._parts)]
        if self._pending:
            parts.append(self._part())
        order = merged_orders(blob, bounds, parts, self._file("merged") if self._parts else None)
        if not repeated and (place := first_repeated(blob, bounds, order)) >= 0:
            first, second = sorted((int(order[place]) + 1, int(order[place + 1]) + 1))
            one = Strings(blob, bounds)[first - 1]
            raise InputError(f"document id '{one}' occurs twice, as documents {first} and {second}; ids must be unique")
        write_array(self._folder, "doc_ids.order", order)

    def abandon(self) -> None:
        """Closes the files as they are."""
        self._bytes.abandon()
        self._bounds.abandon()

    def _part(self) -> NDArray[Any]:
        """The order of the pending ids, by their places among all."""
        sizes = np.concatenate([np.diff(ids.offsets) for ids in self._pending])
        offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        table = Strings(np.concatenate([ids.blob for ids in self._pending]), offsets)
        self._pending, self._size = [], 0
        return table.order + np.uint32(self._count - len(table))

    def _file(self, name: object) -> Path:
        return self._folder.parent / f"ids.{name}"


def _spooled(numbers: NDArray[Any], path: Path) -> NDArray[np.int64]:
    """The same numbers as int64, in a file."""
    copy = np.memmap(path, np.int64, "w+", shape=numbers.shape)
    for first in range(0, len(numbers), 1 << 16):
        copy[first : first + (1 << 16)] = numbers[first : first + (1 << 16)]
    return copy
