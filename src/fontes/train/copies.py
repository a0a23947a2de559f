"""Near copies of a few texts among many, in one pass over the many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ..core.arrays import Int64s, UInt64s
from .duplicates import SHINGLE, check_near

Hashes: TypeAlias = UInt64s
SHARED = 4  # rare shingles that two texts must share to be compared
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class CopySearch:
    """Finds the texts that a text is equal or nearly equal to, as `leakage` defines it, by hashes of their shingles.

    Texts are normalised, as by `plain_text`, and near if the Jaccard similarity of their sets of shingles is at least `near`.
    In such a pair, a set of n shingles shares at least ceil(near n) of them, hence s of any n - ceil(near n) + s (Bayardo, Ma
    and Srikant 2007); these are the rarest. Shingles that none of the few has come first, so their number alone dismisses most
    texts. Time and memory are linear in the length of the texts.

    Args:
        texts: The few texts, by key; empty ones are not searched.
        near: Least similarity; None: 1.
    """

    def __init__(self, texts: Mapping[str, str], near: float | None) -> None:
        check_near(near)
        self._near = 1.0 if near is None else near
        keys: dict[str, list[str]] = {}
        for key, text in texts.items():
            if text:
                keys.setdefault(text, []).append(key)
        self._keys = list(keys.values())
        hashed = [_shingle_hashes(text) for text in keys]
        self._known, frequency = np.unique(np.concatenate([*hashed, np.empty(0, np.uint64)]), return_counts=True)
        self._number = np.empty(len(self._known), dtype=np.int64)  # ascending with the frequency
        self._number[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
        self._sets = [self._numbers(hashes) for hashes in hashed]
        self._marked = np.zeros(len(self._known), dtype=bool)  # of the text that is searched
        postings: dict[int, list[int]] = {}
        for position, numbers in enumerate(self._sets):
            for number in numbers[: self._prefix(len(numbers), SHARED)].tolist():
                postings.setdefault(number, []).append(position)
        self._postings = {number: np.array(positions) for number, positions in postings.items()}

    def __call__(self, text: str) -> dict[str, float]:
        """Return the similarity of each of the few texts of which `text` is a near copy, by key."""
        if not text or not self._sets:
            return {}
        hashes = _shingle_hashes(text)
        size, numbers = len(hashes), self._numbers(hashes)
        shared = min(SHARED, self._least_shared(size))
        prefix = max(0, self._prefix(size, shared) - (size - len(numbers)))
        lists = [self._postings[number] for number in numbers[:prefix].tolist() if number in self._postings]
        if not lists:
            return {}
        positions, counts = np.unique(np.concatenate(lists), return_counts=True)
        similarities: dict[str, float] = {}
        self._marked[numbers] = True
        least, most = self._near * size - 1e-9, size / self._near + 1e-9
        for position in positions[counts >= shared].tolist():
            candidate = self._sets[position]
            if not least <= len(candidate) <= most:
                continue
            common = int(np.count_nonzero(self._marked[candidate]))
            similarity = common / (len(candidate) + size - common)
            if similarity >= self._near - 1e-12:
                similarities |= dict.fromkeys(self._keys[position], similarity)
        self._marked[numbers] = False
        return similarities

    def _numbers(self, hashes: Hashes) -> Int64s:
        """Return the numbers of the known hashes, the rarest first."""
        places = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        return np.sort(self._number[places[self._known[places] == hashes]])

    def _least_shared(self, size: int) -> int:
        return math.ceil(self._near * size - 1e-9)

    def _prefix(self, size: int, shared: int) -> int:
        """Number of first shingles of a set of this size, of which a near copy shares at least `shared`."""
        return size - self._least_shared(size) + shared


def _shingle_hashes(text: str) -> Hashes:
    """Return the distinct hashes of the shingles of a text, sorted; a text shorter than a shingle is one."""
    codes = np.frombuffer(text.ljust(SHINGLE, "\0").encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    hashes = np.zeros(len(codes) - SHINGLE + 1, dtype=np.uint64)
    for start in range(SHINGLE):
        hashes = hashes * MULTIPLIER + codes[start : start + len(hashes)]  # modulo 2^64
    return np.unique(hashes)
