"""Tables of many strings, such as document ids and terms, in two arrays."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

FINDS = 64  # searches of a table before HEAD matters
HEAD = 16  # strings from one that is kept for searches to the next
SURROGATE = re.compile("[\ud800-\udfff]")


class Strings(Sequence[str]):
    """An immutable sequence of strings: concatenated UTF-8 and offsets.

    Args:
        blob: uint8, the bytes of all strings.
        offsets: Whole numbers, (strings + 1,): start of each string, and the end of the last.
        order: uint32, (strings,): positions in ascending order of the bytes (and so of the code points), if known already.
    """

    __slots__ = ("_blob", "_finds", "_heads", "_offsets", "_order", "_rank")

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[Any], order: NDArray[np.uint32] | None = None) -> None:
        self._blob = blob
        self._offsets = offsets
        self._order = order
        self._rank: NDArray[np.uint32] | None = None
        self._finds = 0
        self._heads: list[bytes] = []  # every HEAD-th string, ascending, once many were searched

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Return a table of `strings`. Lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
        encoded = [utf8(s) for s in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    @property
    def blob(self) -> NDArray[np.uint8]:
        """Concatenated bytes of all strings."""
        return self._blob

    @property
    def offsets(self) -> NDArray[Any]:
        """Start of each string in `blob`, and the end of the last."""
        return self._offsets

    @property
    def order(self) -> NDArray[np.uint32]:
        """Positions of the strings in ascending order."""
        if self._order is None:
            self._order = _sorted_places(self._blob, self._offsets)
        self._order.flags.writeable = False  # as of a memory map: compiled loops have one version for both
        return self._order

    @property
    def rank(self) -> NDArray[np.uint32]:
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
        if self._finds > FINDS:
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

    def take(self, positions: NDArray[Any]) -> list[str]:
        """Return the strings at `positions`, which count from 0 up."""
        if len(positions) * 2 > len(self):
            table = self.tolist()
            return [table[p] for p in positions.tolist()]
        starts, ends = self._offsets[positions].tolist(), self._offsets[positions + 1].tolist()
        return [self._blob[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)]

    def reordered(self, indices: NDArray[Any]) -> Strings:
        """Return a table of the strings at these positions, in this order."""
        lengths = np.diff(self._offsets).astype(np.int64)[indices]
        offsets = np.zeros(len(indices) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        shift = self._offsets[:-1].astype(np.int64)[indices] - offsets[:-1]
        return Strings(self._blob[np.arange(offsets[-1]) + np.repeat(shift, lengths)], offsets)

    def tolist(self) -> list[str]:
        """Return all strings as a list."""
        text = self._blob.tobytes()
        bounds = self._offsets.tolist()
        if text.isascii():
            ascii_text = text.decode("ascii")
            return [ascii_text[a:b] for a, b in itertools.pairwise(bounds)]
        return [text[a:b].decode() for a, b in itertools.pairwise(bounds)]

    def _bytes(self, position: int) -> bytes:
        return self._blob[self._offsets.item(position) : self._offsets.item(position + 1)].tobytes()

    def __len__(self) -> int:
        return len(self._offsets) - 1

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


def utf8(string: str) -> bytes:
    """Encode `string` as UTF-8, each lone surrogate as U+FFFD."""
    try:
        return string.encode()
    except UnicodeEncodeError:
        return encodable(string).encode()


def encodable(string: str) -> str:
    """Replace each lone surrogate by U+FFFD, keeping the length; spaCy and tokenizers refuse surrogates."""
    return SURROGATE.sub("\ufffd", string)


def _sorted_places(blob: NDArray[np.uint8], offsets: NDArray[Any]) -> NDArray[np.uint32]:
    """Sorted positions: by leading bytes as big-endian numbers, ties by the following ones."""
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    if not len(lengths):
        return np.zeros(0, dtype=np.uint32)
    words = min(-(-int(lengths.max()) // 8), 3)
    heads = np.minimum(lengths, 8 * words)
    padded = np.zeros((len(lengths), 8 * words), dtype=np.uint8)
    place = np.arange(heads.sum()) - np.repeat(np.cumsum(heads) - heads, heads)
    padded[np.repeat(np.arange(len(lengths)), heads), place] = blob[np.repeat(starts, heads) + place]
    keys = padded.view(">u8").astype(np.uint64)
    order = np.lexsort((lengths, *keys.T[::-1]))
    if lengths.max() > 8 * words:
        changes = np.flatnonzero(np.any(np.diff(keys[order], axis=0) != 0, axis=1)) + 1
        edges = np.concatenate([[0], changes, [len(order)]])
        long_ones = np.maximum.reduceat(lengths[order], edges[:-1]) > 8 * words
        for i in np.flatnonzero(long_ones & (np.diff(edges) > 1)).tolist():
            group = order[edges[i] : edges[i + 1]].tolist()
            group.sort(key=lambda p: blob[starts[p] : starts[p] + lengths[p]].tobytes())
            order[edges[i] : edges[i + 1]] = group
    return order.astype(np.uint32)
