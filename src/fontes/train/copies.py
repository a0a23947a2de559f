"""Near copies of a few texts among many, in one pass over the many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .duplicates import SHINGLE, check_near

Hashes: TypeAlias = NDArray[np.uint64]
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class CopySearch:
    """Finds the texts that a text is equal or nearly equal to, as `leakage` defines it, by hashes of their shingles.

    Texts are normalised, as by `plain_text`, and near if the Jaccard similarity of their sets of shingles is at least `near`.
    In such a pair, a set of n shingles shares at least ceil(near n) of them, hence one of any n - ceil(near n) + 1 (Bayardo, Ma
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
        self._shared = np.zeros(len(self._known), dtype=bool)  # of the text that is searched
        self._postings: dict[int, list[int]] = {}
        for position, numbers in enumerate(self._sets):
            for number in numbers[: self._prefix(len(numbers))].tolist():
                self._postings.setdefault(number, []).append(position)

    def __call__(self, text: str) -> dict[str, float]:
        """Return the similarity of each of the few texts of which `text` is a near copy, by key."""
        if not text or not self._sets:
            return {}
        hashes = _shingle_hashes(text)
        size, numbers = len(hashes), self._numbers(hashes)
        prefix = max(0, self._prefix(size) - (size - len(numbers)))
        candidates = {position for number in numbers[:prefix].tolist() for position in self._postings.get(number, ())}
        similarities: dict[str, float] = {}
        self._shared[numbers] = True
        least, most = self._near * size - 1e-9, size / self._near + 1e-9
        for position in candidates:
            candidate = self._sets[position]
            if not least <= len(candidate) <= most:
                continue
            shared = int(np.count_nonzero(self._shared[candidate]))
            similarity = shared / (len(candidate) + size - shared)
            if similarity >= self._near - 1e-12:
                similarities |= dict.fromkeys(self._keys[position], similarity)
        self._shared[numbers] = False
        return similarities

    def _numbers(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the numbers of the known hashes, the rarest first."""
        places = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        return np.sort(self._number[places[self._known[places] == hashes]])

    def _prefix(self, size: int) -> int:
        return size - math.ceil(self._near * size - 1e-9) + 1


def _shingle_hashes(text: str) -> Hashes:
    """Return the distinct hashes of the shingles of a text, sorted; a text shorter than a shingle is one."""
    codes = np.frombuffer(text.ljust(SHINGLE, "\0").encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    hashes = np.zeros(len(codes) - SHINGLE + 1, dtype=np.uint64)
    for start in range(SHINGLE):
        hashes = hashes * MULTIPLIER + codes[start : start + len(hashes)]  # modulo 2^64
    return np.unique(hashes)
