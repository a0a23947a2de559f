"""Numbers for distinct byte strings: a hash table in numpy arrays, filled by a compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.compiled import kernel


class Interner:
    """Gives each distinct byte string a number, counted from 0 in the order of first sight."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, dtype=np.int32)
        self._hashes = np.empty(1 << 11, dtype=np.uint64)
        self._bounds = np.zeros((1 << 11) + 1, dtype=np.int64)
        self._blob = np.empty(1 << 15, dtype=np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def intern(self, text: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of the strings text[starts[i]:ends[i]], int32; new strings get the next numbers."""
        numbers = np.empty(len(starts), dtype=np.int32)
        done = 0
        while True:
            done, self._count = _intern(
                text, starts, ends, done, numbers, self._slots, self._hashes, self._bounds, self._blob, self._count
            )
            if done == len(starts):
                return numbers
            self._grow(int(ends[done] - starts[done]))

    def strings(self, first: int) -> list[bytes]:
        """The strings with the numbers from `first` up."""
        bounds = self._bounds[first : self._count + 1].tolist()
        blob = self._blob[: bounds[-1]].tobytes() if bounds else b""
        return [blob[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]

    def _grow(self, needed: int) -> None:
        if self._count >= len(self._hashes):
            size = 2 * len(self._hashes)
            self._hashes = np.resize(self._hashes, size)
            self._bounds = np.resize(self._bounds, size + 1)
            self._slots = np.full(2 * size, -1, dtype=np.int32)
            _rehash(self._slots, self._hashes, self._count)
        if self._bounds[self._count] + needed > len(self._blob):
            self._blob = np.resize(self._blob, 2 * (len(self._blob) + needed))


@kernel(steps=lambda text, starts, ends, *rest: int((ends - starts).sum()))
def _intern(
    text: Any, starts: Any, ends: Any, done: int, numbers: Any, slots: Any, hashes: Any, bounds: Any, blob: Any, count: int
) -> tuple[int, int]:
    """Numbers from `done` on, until the strings end or the table is full: (how many are done, how many are distinct)."""
    mask = len(slots) - 1
    for i in range(done, len(starts)):
        start, end = starts[i], ends[i]
        hashed = np.uint64(0xCBF29CE484222325)  # FNV-1a
        for at in range(start, end):
            hashed = (hashed ^ np.uint64(text[at])) * np.uint64(0x100000001B3)
        hashed ^= hashed >> np.uint64(29)
        slot = np.int64(hashed) & mask
        while True:
            number = slots[slot]
            if number < 0:
                if count >= len(hashes) or bounds[count] + end - start > len(blob):
                    return i, count
                for at in range(start, end):
                    blob[bounds[count] + at - start] = text[at]
                slots[slot], hashes[count], bounds[count + 1] = count, hashed, bounds[count] + end - start
                number = count
                count += 1
                break
            if hashes[number] == hashed and bounds[number + 1] - bounds[number] == end - start:
                same = True
                for at in range(start, end):
                    if blob[bounds[number] + at - start] != text[at]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + 1) & mask
        numbers[i] = number
    return len(starts), count


@kernel()
def _rehash(slots: Any, hashes: Any, count: int) -> None:
    mask = len(slots) - 1
    for number in range(count):
        slot = np.int64(hashes[number]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
