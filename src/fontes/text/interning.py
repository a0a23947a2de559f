"""Numbers of distinct byte strings: a hash table in numpy arrays, filled by a compiled kernel."""

from __future__ import annotations

import numpy as np

from ..core.arrays import Bytes, Int32s, Int64s, UInt64s
from ..core.strings import Strings
from ..storage.arrays import fixed
from ..storage.compiled import inner, kernel

INITIAL_CAPACITY = 1 << 11  # strings
MAX_INLINE_LENGTH = 7  # bytes of the longest string stored in its key itself, with its length in the highest byte


class Interner:
    """Numbers distinct byte strings from 0 in order of first occurrence."""

    def __init__(self) -> None:
        self._keys = np.zeros(2 * INITIAL_CAPACITY, dtype=np.uint64)  # key of the string in each slot
        self._slots = np.full(2 * INITIAL_CAPACITY, -1, dtype=np.int32)
        self._bounds = np.zeros(INITIAL_CAPACITY + 1, dtype=np.int64)
        self._blob = np.empty(16 * INITIAL_CAPACITY, dtype=np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory of the table in bytes."""
        return self._keys.nbytes + self._slots.nbytes + self._bounds.nbytes + self._blob.nbytes

    def intern(self, text: Bytes, starts: Int32s, ends: Int32s) -> Int32s:
        """Return the numbers, int32, of the strings text[starts[i]:ends[i]], adding new strings."""
        text, numbers = fixed(text), np.empty(len(starts), dtype=np.int32)
        first = 0
        while True:
            first, self._count = _intern(
                text, starts, ends, first, numbers, self._keys, self._slots, self._bounds, self._blob, self._count
            )
            if first == len(starts):
                return numbers
            self._grow(int(ends[first] - starts[first]))

    def table(self, first: int = 0) -> Strings:
        """Return the strings with numbers from `first` on."""
        bounds = self._bounds[first : self._count + 1]
        return Strings(self._blob[bounds[0] : bounds[-1]].copy(), bounds - bounds[0])

    def _grow(self, needed: int) -> None:
        """Make room for one more string of `needed` bytes."""
        if self._count >= len(self._bounds) - 1:
            keys, slots = self._keys, self._slots
            self._bounds = np.resize(self._bounds, 2 * self._count + 1)
            self._keys, self._slots = np.zeros(2 * len(keys), np.uint64), np.full(2 * len(slots), -1, np.int32)
            _rehash(keys, slots, self._keys, self._slots)
        if self._bounds[self._count] + needed > len(self._blob):
            self._blob = np.resize(self._blob, 2 * (len(self._blob) + needed))


@kernel(steps=lambda text, starts, ends, *rest: int((ends - starts).sum()))
def _intern(
    text: Bytes, starts: Int32s, ends: Int32s, first: int, numbers: Int32s, keys: UInt64s, slots: Int32s, bounds: Int64s,
    blob: Bytes, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Number the strings from `first` on until the table is full.

    Returns:
        The index of the first string without a number, and the number of distinct strings.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(first, len(starts)):
        start, end = starts[i], ends[i]
        length = end - start
        key = np.uint64(0)
        if length <= MAX_INLINE_LENGTH:
            for j in range(length):
                key |= np.uint64(text[start + j]) << np.uint64(8 * j)
            key |= np.uint64(length) << np.uint64(56)
        else:
            key = np.uint64(0xCBF29CE484222325)  # FNV-1a
            for j in range(start, end):
                key = (key ^ np.uint64(text[j])) * np.uint64(0x100000001B3)
            key |= np.uint64(0xFF) << np.uint64(56)
        slot = np.int64(_mix(key) & mask)
        while True:
            number = slots[slot]
            if number < 0:
                if count >= len(bounds) - 1 or bounds[count] + length > len(blob):
                    return i, count
                for j in range(length):
                    blob[bounds[count] + j] = text[start + j]
                slots[slot], keys[slot], bounds[count + 1] = count, key, bounds[count] + length
                number = count
                count += 1
                break
            if keys[slot] == key:
                same = length <= MAX_INLINE_LENGTH or bounds[number + 1] - bounds[number] == length
                if same and length > MAX_INLINE_LENGTH:
                    for j in range(length):
                        if blob[bounds[number] + j] != text[start + j]:
                            same = False
                            break
                if same:
                    break
            slot = np.int64(np.uint64(slot + 1) & mask)
        numbers[i] = number
    return len(starts), count


@kernel(steps=lambda keys, slots, *rest: 4 * len(slots))
def _rehash(keys: UInt64s, slots: Int32s, to_keys: UInt64s, to_slots: Int32s) -> None:
    mask = np.uint64(len(to_slots) - 1)
    for old in range(len(slots)):
        if slots[old] >= 0:
            slot = np.int64(_mix(keys[old]) & mask)
            while to_slots[slot] >= 0:
                slot = np.int64(np.uint64(slot + 1) & mask)
            to_keys[slot], to_slots[slot] = keys[old], slots[old]


@inner(inline="always")
def _mix(key: np.uint64) -> np.uint64:
    """Mix all bits of a key into its lowest bits."""
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(32))
