"""Tables of many strings, such as document ids and terms, in two arrays."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .arrays import Bytes, Int64s, Ints, UInt32s

SEARCHES_BEFORE_HEADS = 64  # searches of a table before its heads are collected
HEAD = 16  # every HEAD-th string is a head, in memory for binary search
SURROGATE = re.compile("[\ud800-\udfff]")


class Strings(Sequence[str]):
    """An immutable sequence of strings: concatenated UTF-8 and offsets.

    Args:
        blob: uint8, concatenated bytes of all strings.
        offsets: Whole numbers, (strings + 1,): start of each string in `blob`, and the end of the last.
        order: uint32, (strings,): positions in ascending order of the bytes (and so of the code points), if known already.
        check: Validates `order` at its first use.
    """

    __slots__ = ("_check", "_finds", "_heads", "_order", "_rank", "blob", "offsets")

    def __init__(
        self,
        blob: Bytes,
        offsets: Ints,
        order: UInt32s | None = None,
        check: Callable[[UInt32s], None] | None = None,
    ) -> None:
        self.blob, self.offsets = blob, offsets
        self._order, self._check = order, check
        self._rank: UInt32s | None = None
        self._finds = 0
        self._heads: list[bytes] = []  # every HEAD-th string, ascending, once many were searched

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Return a table of `strings`. Lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
        return cls(*concatenated(encoded(list(strings))))

    @property
    def order(self) -> UInt32s:
        """Positions of the strings in ascending order."""
        if self._order is None:
            self._order = _sorted_positions(self.blob, self.offsets)
        if self._check is not None:
            self._check(self._order)
            self._check = None
        self._order.flags.writeable = False  # as in a memory map: compiled loops have one version for both
        return self._order

    @property
    def rank(self) -> UInt32s:
        """Position of each string in `order`."""
        if self._rank is None:
            rank = np.empty(len(self), dtype=np.uint32)
            rank[self.order] = np.arange(len(self), dtype=np.uint32)
            rank.flags.writeable = False
            self._rank = rank
        return self._rank

    def find(self, string: str) -> int:
        """Return the position of `string`, or -1."""
        target = utf8(string)
        order = self.order
        low, high = 0, len(order)
        self._finds += 1
        if self._finds > SEARCHES_BEFORE_HEADS:
            if not self._heads:
                self._heads = [self._bytes(position) for position in order[::HEAD].tolist()]
            head = bisect_left(self._heads, target)
            low, high = max(0, (head - 1) * HEAD), min(high, head * HEAD + 1)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(order.item(middle)) < target:
                low = middle + 1
            else:
                high = middle
        if low < len(order) and self._bytes(order.item(low)) == target:
            return order.item(low)
        return -1

    def take(self, positions: Ints) -> list[str]:
        """Return the strings at `positions`, which count from 0 up."""
        if len(positions) * 2 > len(self):
            table = self.tolist()
            return [table[p] for p in positions.tolist()]
        blob, offsets = self.blob.data, self.offsets.data  # whose items are faster than an array's
        return [blob[offsets[p] : offsets[p + 1]].tobytes().decode() for p in positions.tolist()]

    def reordered(self, indices: Ints) -> Strings:
        """Return a table of the strings at these positions, in this order."""
        lengths = np.diff(self.offsets).astype(np.int64)[indices]
        offsets = offsets_of(lengths)
        shift = self.offsets[:-1].astype(np.int64)[indices] - offsets[:-1]
        return Strings(self.blob[np.arange(offsets[-1]) + np.repeat(shift, lengths)], offsets)

    def ascending(self) -> Strings:
        """Return the table with the order of strings that are known to ascend."""
        return Strings(self.blob, self.offsets, np.arange(len(self), dtype=np.uint32))

    def tolist(self) -> list[str]:
        """Return all strings as a list."""
        text = self.blob.tobytes()
        bounds = self.offsets.tolist()
        if text.isascii():  # slices of one string are faster than a decoding for each
            ascii_text = text.decode("ascii")
            return [ascii_text[a:b] for a, b in itertools.pairwise(bounds)]
        return [text[a:b].decode() for a, b in itertools.pairwise(bounds)]

    def _bytes(self, position: int) -> bytes:
        return self.blob[self.offsets.item(position) : self.offsets.item(position + 1)].tobytes()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return self.take(np.arange(*position.indices(len(self))))
        if not -len(self) <= position < len(self):
            raise IndexError(position)
        return self._bytes(position % len(self)).decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.find(string) >= 0

    def __repr__(self) -> str:
        return f"Strings({len(self)})"


def offsets_of(sizes: Sequence[int] | NDArray[np.integer | np.bool_]) -> Int64s:
    """Return the start of each of consecutive pieces of these sizes, and the end of the last."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=offsets[1:])
    return offsets


def concatenated(texts: Sequence[bytes]) -> tuple[Bytes, Int64s]:
    """Return concatenated texts, uint8, and their offsets, (texts + 1,)."""
    return np.frombuffer(b"".join(texts), dtype=np.uint8), offsets_of(np.fromiter(map(len, texts), np.int64, len(texts)))


def encoded(strings: Sequence[str]) -> list[bytes]:
    """Encode strings as `utf8` does."""
    try:
        return [string.encode() for string in strings]
    except UnicodeEncodeError:
        return [utf8(string) for string in strings]


def utf8(string: str) -> bytes:
    """Encode `string` as UTF-8, each lone surrogate as U+FFFD."""
    try:
        return string.encode()
    except UnicodeEncodeError:
        return encodable(string).encode()


def encodable(string: str) -> str:
    """Replace each lone surrogate by U+FFFD, keeping the length; spaCy and tokenizers refuse surrogates."""
    return SURROGATE.sub("\ufffd", string)


def _sorted_positions(blob: Bytes, offsets: Ints) -> UInt32s:
    """Sorted positions: by leading bytes as big-endian numbers, ties by the following ones."""
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    if not len(lengths):
        return np.zeros(0, dtype=np.uint32)
    words = min(-(-int(lengths.max()) // 8), 3)
    heads = np.minimum(lengths, 8 * words)
    padded = np.zeros((len(lengths), 8 * words), dtype=np.uint8)
    columns = np.arange(heads.sum()) - np.repeat(np.cumsum(heads) - heads, heads)
    padded[np.repeat(np.arange(len(lengths)), heads), columns] = blob[np.repeat(starts, heads) + columns]
    keys = padded.view(">u8").astype(np.uint64)
    order = np.lexsort((lengths, *keys.T[::-1]))
    if lengths.max() > 8 * words:
        changes = np.flatnonzero(np.any(np.diff(keys[order], axis=0) != 0, axis=1)) + 1
        edges = np.concatenate([[0], changes, [len(order)]])
        has_long = np.maximum.reduceat(lengths[order], edges[:-1]) > 8 * words
        for i in np.flatnonzero(has_long & (np.diff(edges) > 1)).tolist():
            group = order[edges[i] : edges[i + 1]].tolist()
            group.sort(key=lambda p: blob[starts[p] : starts[p] + lengths[p]].tobytes())
            order[edges[i] : edges[i + 1]] = group
    return order.astype(np.uint32)
