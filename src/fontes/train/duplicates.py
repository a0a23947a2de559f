"""Duplicate texts: exact, normalised, and near by shared shingles; and near copies of a few texts among many."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..core.arrays import Int64s, Ints, UInt64s
from ..core.errors import ParameterError
from ..core.values import Topic

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHINGLE = 5  # characters
BATCH_SIZE = 1 << 11  # rows compared at once with all others
CACHED_TEXTS = 64  # a relevant document is compared with many others
WORD = re.compile(r"\w+")
SHARED = 4  # rare shingles that two texts must share to be compared
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Duplicate:
    """Two topics with equal or nearly equal text.

    Args:
        id: Later topic.
        of: Earlier topic.
        kind: "exact": equal characters; "normalised": equal ignoring case, white space and punctuation; "near": a `similarity`
            of at least the threshold.
        similarity: Jaccard similarity of the sets of shingles, 1 for exact and normalised.
    """

    id: str
    of: str
    kind: str
    similarity: float


def duplicates_of(topics: Sequence[Topic], near: float | None) -> list[Duplicate]:
    """Return all pairs of topics with equal or nearly equal text, each pair once; topic `id` comes after topic `of`.

    Normalisation applies NFKC and case folding and keeps letters and digits, with one space between words. The similarity is
    the exact Jaccard similarity of the sets of SHINGLE-character shingles of the normalised texts, for all pairs (method of
    Bayardo, Ma and Srikant 2007). Topics with turns are equal if all turns are equal; they are never near, since turns share
    history. `near` is the least similarity of near pairs; with None there are no near pairs.
    """
    check_near(near)
    pairs: list[Duplicate] = []
    groups: dict[str, list[int]] = {}
    for number, topic in enumerate(topics):
        groups.setdefault(normalised(topic), []).append(number)
    for members in groups.values():
        for i, later in enumerate(members):
            for earlier in members[:i]:
                kind = "exact" if full_text(topics[later]) == full_text(topics[earlier]) else "normalised"
                pairs.append(Duplicate(topics[later].id, topics[earlier].id, kind, 1.0))
    if near is not None:
        texts = {text: members for text, members in groups.items() if not topics[members[0]].turns}
        numbers = list(texts.values())
        for a, b, similarity in near_pairs(list(texts), near):
            for i, j in product(numbers[a], numbers[b]):
                later, earlier = max(i, j), min(i, j)
                pairs.append(Duplicate(topics[later].id, topics[earlier].id, "near", similarity))
    return pairs


def kind_of(first: str, second: str, near: float | None) -> str:
    """Return the `kind` of Duplicate of two texts, or "" if they differ; `near` as in `duplicates_of`."""
    if first == second:
        return "exact"
    first, second = _normal_form(first), _normal_form(second)
    if first == second:
        return "normalised"
    if near is None:
        return ""
    a, b = _shingles_of(first), _shingles_of(second)
    if min(len(a), len(b)) < near * max(len(a), len(b)) - 1e-9:
        return ""
    shared = len(a & b)
    return "near" if shared / (len(a) + len(b) - shared) >= near - 1e-12 else ""


@lru_cache(CACHED_TEXTS)
def _normal_form(text: str) -> str:
    return normalised(Topic("", text))


@lru_cache(CACHED_TEXTS)
def _shingles_of(text: str) -> frozenset[str]:
    return frozenset(text[i : i + SHINGLE] for i in range(max(1, len(text) - SHINGLE + 1)))


def check_near(near: float | None) -> None:
    """Raise ParameterError unless `near` is None, or above 0 and at most 1."""
    if near is not None and (isinstance(near, bool) or not isinstance(near, (int, float)) or not 0 < near <= 1):
        raise ParameterError(f"near, a Jaccard similarity, must be above 0 and at most 1, or None, not {near!r}")


def full_text(topic: Topic) -> str:
    """Return the text of a topic; with turns, the whole conversation."""
    return "\n".join([*(turn.text for turn in topic.turns[:-1]), topic.text]) if topic.turns else topic.text


def normalised(topic: Topic) -> str:
    """Return the text of a topic, case-folded and without punctuation; a text without letters and digits is only stripped."""
    parts = [unicodedata.normalize("NFKC", part).casefold() for part in full_text(topic).split("\n")]
    return "\n".join(" ".join(WORD.findall(part)) or part.strip() for part in parts)


def plain_text(text: str) -> str:
    """Return a text in one line as `normalised` does."""
    return normalised(Topic("", " ".join(text.split())))


def plain_topic(topic: Topic) -> str:
    """Return the text of a topic in one line as `normalised` does; with turns, the whole conversation."""
    return plain_text(full_text(topic))


def near_pairs(texts: Sequence[str], near: float) -> list[tuple[int, int, float]]:
    """Return (a, b, similarity), with a < b, of texts whose shingle sets have at least the similarity `near`.

    In such a pair, a set of n shingles shares at least ceil(near n) of them, hence one of any n - ceil(near n) + 1; with a set
    that is not smaller it shares ceil(2 near n / (1 + near)) (Xiao et al. 2008). Only texts that share one of their rarest
    shingles are compared.
    """
    from scipy.sparse import csr_array

    rows, sizes = _shingle_numbers(texts)
    if not len(sizes):
        return []
    width = int(rows.max()) + 1 if len(rows) else 1
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    sets = csr_array((np.ones(len(rows), dtype=np.int32), rows, bounds), shape=(len(texts), width))

    def rarest(part: float) -> csr_array:
        counts = sizes - np.ceil(part * sizes - 1e-9).astype(np.int64) + 1
        rare = np.arange(len(rows)) - np.repeat(bounds[:-1], sizes) < np.repeat(counts, sizes)
        ends = np.concatenate(([0], np.cumsum(np.minimum(counts, sizes))))
        return csr_array((np.ones(int(rare.sum()), dtype=np.int32), rows[rare], ends), shape=sets.shape)

    larger, smaller = rarest(near), rarest(2 * near / (1 + near)).T.tocsr()
    pairs: list[tuple[int, int, float]] = []
    for start in range(0, len(texts), BATCH_SIZE):
        candidates = (larger[start : start + BATCH_SIZE] @ smaller).tocoo()
        a, b = candidates.row + start, candidates.col
        is_ordered = (sizes[a] > sizes[b]) | ((sizes[a] == sizes[b]) & (a < b))
        candidate_pairs = is_ordered & (sizes[b] >= near * sizes[a] - 1e-9)
        pairs += _verify_pairs(sets, sizes, a[candidate_pairs], b[candidate_pairs], near)
    return sorted(pairs)


def _verify_pairs(sets: csr_array, sizes: Int64s, a: Ints, b: Ints, near: float) -> list[tuple[int, int, float]]:
    """Return the pairs of rows a[i] and b[i] of `sets` that have at least the similarity `near`."""
    pairs = []
    for start in range(0, len(a), BATCH_SIZE):
        left, right = a[start : start + BATCH_SIZE], b[start : start + BATCH_SIZE]
        shared = sets[left].multiply(sets[right]).sum(axis=1)
        similarity = shared / (sizes[left] + sizes[right] - shared)
        for i in np.flatnonzero(similarity >= near - 1e-12).tolist():
            low, high = sorted((int(left[i]), int(right[i])))
            pairs.append((low, high, float(similarity[i])))
    return pairs


def _shingle_numbers(texts: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the shingle sets, concatenated, as numbers that ascend with the frequency of shingles; and the set sizes."""
    numbers: dict[str, int] = {}
    rows: list[int] = []
    sizes = []
    for text in texts:
        shingles = _shingles_of(text)
        rows += [numbers.setdefault(shingle, len(numbers)) for shingle in sorted(shingles)]
        sizes.append(len(shingles))
    unranked = np.array(rows, dtype=np.int64)
    size = np.array(sizes, dtype=np.int64)
    if not len(unranked):
        return unranked, size
    frequency = np.bincount(unranked)
    rank = np.empty(len(frequency), dtype=np.int64)
    rank[np.lexsort((np.arange(len(frequency)), frequency))] = np.arange(len(frequency))
    ranked = rank[unranked]
    return ranked[np.lexsort((ranked, np.repeat(np.arange(len(size)), size)))], size


Hashes: TypeAlias = UInt64s


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
