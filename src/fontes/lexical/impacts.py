"""Impacts: the weights of an index's postings under one model, with the bounds that the search prunes by.

They are computed at the first use of a model. Those of a large index are kept in `impacts/` in the user's cache, which may be
deleted at any time; if it cannot be written, and inside `in_memory`, they stay in memory.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..core.stage import at_most
from ..core.threads import in_threads
from ..storage.arrays import REMEDY, fixed, header_type, write_array
from ..storage.artifact import Artifact, ArtifactKind
from ..storage.caches import Attached, Cached, DiskCache, weakly
from ..storage.hashes import block_sums, hash_text
from .kernel import BLOCK, DEPTHS, WINDOW, summarize
from .unions import unite
from .weighting import Postings, Statistics, Weighting

if TYPE_CHECKING:
    from ..index.postings import Searchable

CHUNK = 1 << 20  # postings weighted at a time
MAX_MODELS = 4  # models whose impacts are kept per index, in memory and on disk
SPARSE = 2048  # documents for a posting, above which lists are sorted together, not marked among all documents
LARGE = 2_000_000  # least number of postings for keeping impacts on disk
SHARE = 8  # an eighth of all postings is weighted term by term, before all are
CHAMPIONS = 4 * BLOCK  # greatest length of a champion list, at most the df of terms with rows
CACHE = DiskCache("impacts")
KIND = ArtifactKind("fontes-impacts", 4, "impacts", "they are worked out again when they are needed")


@dataclass(frozen=True)
class Lists:
    """Decoded postings of an index, shared by all models.

    Args:
        bounds: int64; term t has docs[bounds[t]:bounds[t+1]].
        docs: int32; document ordinals.
        places: uint16; positions of the documents in their windows, used to accumulate scores in half the bytes.
        row_of: int32; row of bounds of each term, -1 if its list is too short.
        starts: uint32, rows x (windows + 1); start of a term's postings of each window in its list.
    """

    bounds: NDArray[np.int64]
    docs: NDArray[np.int32]
    places: NDArray[np.uint16]
    row_of: NDArray[np.int32]
    starts: NDArray[np.uint32]

    @cached_property
    def of_terms(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Bounds and documents, for compiled loops."""
        return self.bounds, fixed(self.docs)


@dataclass(frozen=True)
class Impacts:
    """Weights of one model, and their bounds for pruning.

    Args:
        lists: The postings.
        weights: float32; weight of each posting.
        best: float32; greatest weight of each term.
        kth: float32, terms x DEPTHS; a weight that so many postings of the term reach, 0 where there are fewer.
        positive: Whether all weights of a term are above 0.
        rows: uint8, rows x blocks; block bounds of terms with long lists, as fractions of the greatest weight.
        champions: int32, rows x CHAMPIONS; the postings with the greatest weights, the greatest first, counted from the
            first of the term: all that have one of these weights, then -1 (champion lists; Manning, Raghavan and Schütze
            2008, section 7.1.3).
    """

    lists: Lists
    weights: NDArray[np.float32]
    best: NDArray[np.float32]
    kth: NDArray[np.float32]
    positive: NDArray[np.bool_]
    rows: NDArray[np.uint8]
    champions: NDArray[np.int32]

    @cached_property
    def postings(self) -> tuple[NDArray[Any], ...]:
        """The `lists` argument of the search."""
        return self.lists.bounds, fixed(self.lists.docs), fixed(self.lists.places), fixed(self.weights)

    @cached_property
    def limits(self) -> tuple[NDArray[Any], ...]:
        """The `bounds_of` argument of the search."""
        arrays = self.best, self.kth, self.positive, self.lists.row_of, self.rows, self.lists.starts
        return tuple(map(fixed, arrays))


_LOCK = threading.Lock()
_blocks: list[bool] = []  # the `lists` of open `in_memory` blocks


@contextlib.contextmanager
def in_memory(lists: bool = False) -> Iterator[None]:
    """Keep impacts computed in the block off the disk, for many models searched once, as in tuning.

    Applies to all threads of the process.

    Args:
        lists: Whether to keep the shared postings off the disk too, for a short-lived state of an index.
    """
    with _LOCK:
        _blocks.append(lists)
    try:
        yield
    finally:
        with _LOCK:
            _blocks.remove(lists)


def impacts_of(index: Searchable, weighting: Weighting, terms: NDArray[np.integer[Any]] | None = None) -> Impacts:
    """Return the impacts of a model on an index, from memory, the cache, or computed.

    Args:
        index: The index.
        weighting: The model.
        terms: The terms needed; None needs all. Only these are computed for a large index without impacts, so that the first
            queries after a change need not wait for all.
    """
    key, models = weighting.for_postings(), _MODELS.of(index)  # the same object each time from one stage: found at once
    if terms is not None and key not in models:
        part = _PARTS.of(index).get(key, lambda: _part(index, key))
        if part is not None and not part.is_large:
            return part.impacts(terms)
    return models.get(key, lambda: _impacts(index, key))


def whole_impacts(index: Searchable, weighting: Weighting) -> Impacts | None:
    """Return the impacts of a model on all terms; None where they are not there yet and take time to compute."""
    key, models = weighting.for_postings(), _MODELS.of(index)
    if key not in models and _PARTS.of(index).get(key, lambda: _part(index, key)) is not None:
        return None
    return models.get(key, lambda: _impacts(index, key))


def documents_of(index: Searchable, term: int) -> NDArray[np.int32]:
    """Return the ordinals of the documents with a term, ascending; without decoding where impacts have decoded all postings."""
    lists = _LISTS.get(index)
    if lists is None:
        return index.postings(np.array([term]))[0]
    return lists.docs[lists.bounds[term] : lists.bounds[term + 1]]


def decoded_lists(
    index: Searchable, terms: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return numbers of the terms' lists, and bounds and documents of lists; without decoding as of `documents_of`."""
    lists = _LISTS.get(index)
    if lists is not None:
        return terms, *lists.of_terms
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(index.df[terms], dtype=np.int64)])
    return np.arange(len(terms)), bounds, fixed(index.postings(terms)[0])


def documents_of_any(index: Searchable, terms: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Return the ordinals of the documents with one of some terms, ascending."""
    lists, postings = _LISTS.get(index), int(index.df[terms].sum(dtype=np.int64))
    if lists is None:
        return np.unique(index.postings(terms)[0])
    if postings * SPARSE < len(index):
        own = [lists.docs[lists.bounds[term] : lists.bounds[term + 1]] for term in terms.tolist()]
        return np.unique(np.concatenate([np.zeros(0, np.int32), *own]))
    docs = np.empty(min(postings, len(index)) + 1, dtype=np.int32)
    return docs[: unite(terms, lists.bounds, lists.docs, _no_marks(index), docs)]


def count_of_any(
    index: Searchable, terms: NDArray[np.integer[Any]], passed: NDArray[np.bool_] | None = None, up_to: int | None = None
) -> int:
    """Return the number of documents with one of some terms.

    Args:
        index: The index.
        terms: Numbers of the terms.
        passed: Whether each document is counted; None: all are.
        up_to: As of `Stage.count`. More documents than that with the most frequent term alone are not counted on.
    """
    if up_to is not None and len(terms):
        most = int(terms[index.df[terms].argmax()])
        if index.df[most] > up_to and (passed is None or np.count_nonzero(passed[documents_of(index, most)]) > up_to):
            return up_to + 1
    return at_most(_count_of_any(index, terms, passed), up_to)


def _count_of_any(index: Searchable, terms: NDArray[np.integer[Any]], passed: NDArray[np.bool_] | None) -> int:
    if passed is not None:
        return int(np.count_nonzero(passed[documents_of_any(index, terms)]))
    if len(terms) == 1:
        return int(index.df[terms[0]])
    lists = _LISTS.get(index)
    if lists is None:
        return len(documents_of_any(index, terms))
    return int(unite(terms, lists.bounds, lists.docs, _no_marks(index), np.zeros(0, np.int32)))


def _no_marks(index: Searchable) -> NDArray[np.uint64]:
    return np.zeros(-(-len(index) // 64), dtype=np.uint64)


def _impacts(index: Searchable, weighting: Weighting) -> Impacts:
    lists = _LISTS.of(index)
    shapes = _impact_shapes(index, lists)
    whole = _cached(index, _name(weighting), shapes, not _blocks, lambda: _weighted(index, weighting, lists))
    _PARTS.of(index).drop(weighting)  # what single terms needed is in memory of its own, and in the whole
    return Impacts(lists, **whole)


def _name(weighting: Weighting) -> str:
    return hash_text(repr((KIND.version, weighting)))[:16]


def _lists(index: Searchable) -> Lists:
    arrays = _cached(index, "lists", _list_shapes(index), not any(_blocks), lambda: _decoded(index))
    return Lists(_bounds(index), **arrays)


def _no_models(index: Searchable) -> Cached[Weighting, Impacts]:
    return Cached(MAX_MODELS)


class _Part:
    """Impacts of a model on an index, computed term by term."""

    def __init__(self, index: Searchable, weighting: Weighting) -> None:
        self._index, self._weighting, self._lock = index, weighting, threading.Lock()
        lists = Lists(_bounds(index), **_empty(_list_shapes(index)))
        lists.row_of[:] = _row_of(index)
        self._arrays = _empty(_impact_shapes(index, lists))
        self._impacts = Impacts(lists, **self._arrays)
        self._ready = np.zeros(len(index.df), dtype=np.bool_)
        self._weighted = 0

    @property
    def is_large(self) -> bool:
        """Whether so many postings are weighted that all should be."""
        return self._weighted * SHARE >= len(self._impacts.lists.docs)

    def impacts(self, terms: NDArray[np.integer[Any]]) -> Impacts:
        if self._ready[terms].all():
            return self._impacts
        with self._lock:
            for term in np.unique(terms[~self._ready[terms]]).tolist():
                _decode(self._index, self._impacts.lists, term, term + 1)
                _weight(self._index, self._weighting, self._impacts.lists, self._arrays, term, term + 1)
                self._ready[term] = True
                self._weighted += int(self._index.df[term])
        return self._impacts


def _part(index: Searchable, weighting: Weighting) -> _Part | None:
    """Impacts by term; None where all are present or quickly computed."""
    small = int(index.df.sum(dtype=np.int64)) < LARGE
    return None if small or _folder(index, _name(weighting)).exists() else _Part(weakly(index), weighting)


def _no_parts(index: Searchable) -> Cached[Weighting, _Part | None]:
    return Cached(MAX_MODELS)


_LISTS = Attached("lists", _lists)
_MODELS = Attached("impacts", _no_models)
_PARTS = Attached("impacts_of_terms", _no_parts)


def _bounds(index: Searchable) -> NDArray[np.int64]:
    bounds = np.zeros(len(index.df) + 1, dtype=np.int64)
    np.cumsum(index.df, out=bounds[1:])
    return bounds


def _rows(index: Searchable) -> NDArray[np.int64]:
    return np.flatnonzero(index.df > max(4 * BLOCK, len(index) // (8 * BLOCK)))


def _windows(index: Searchable) -> int:
    return -(-len(index) // WINDOW)


def _list_shapes(index: Searchable) -> dict[str, tuple[Any, tuple[int, ...]]]:
    rows = len(_rows(index))
    postings = int(index.df.sum(dtype=np.int64))
    return {
        "docs": (np.int32, (postings,)),
        "places": (np.uint16, (postings,)),
        "row_of": (np.int32, (len(index.df),)),
        "starts": (np.uint32, (rows, _windows(index) + 1)),
    }


def _impact_shapes(index: Searchable, lists: Lists) -> dict[str, tuple[Any, tuple[int, ...]]]:
    terms = len(index.df)
    return {
        "weights": (np.float32, (len(lists.docs),)),
        "best": (np.float32, (terms,)),
        "kth": (np.float32, (terms, len(DEPTHS))),
        "positive": (np.bool_, (terms,)),
        "rows": (np.uint8, (len(lists.starts), _windows(index) * (WINDOW // BLOCK))),
        "champions": (np.int32, (len(lists.starts), CHAMPIONS)),
    }


def _row_of(index: Searchable) -> NDArray[np.int32]:
    row_of = np.full(len(index.df), -1, dtype=np.int32)
    rows = _rows(index)
    row_of[rows] = np.arange(len(rows))
    return row_of


def _empty(shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    return {name: np.zeros(shape, dtype) for name, (dtype, shape) in shapes.items()}


def _decoded(index: Searchable) -> dict[str, NDArray[Any]]:
    arrays = {**_empty(_list_shapes(index)), "row_of": _row_of(index)}
    lists = Lists(_bounds(index), **arrays)
    in_threads(lambda edges: _decode(index, lists, *edges), list(chunks(lists.bounds)))
    return arrays


def _decode(index: Searchable, lists: Lists, first: int, last: int) -> None:
    bounds, docs = lists.bounds, lists.docs
    own = slice(bounds[first], bounds[last])
    docs[own] = index.postings(np.arange(first, last))[0]
    lists.places[own] = docs[own] % WINDOW
    edges = np.arange(_windows(index) + 1) * WINDOW
    for term in (first + np.flatnonzero(lists.row_of[first:last] >= 0)).tolist():
        lists.starts[lists.row_of[term]] = np.searchsorted(docs[bounds[term] : bounds[term + 1]], edges)


def _weighted(index: Searchable, weighting: Weighting, lists: Lists) -> dict[str, NDArray[Any]]:
    arrays = _empty(_impact_shapes(index, lists))
    in_threads(lambda edges: _weight(index, weighting, lists, arrays, *edges), list(chunks(lists.bounds)))
    return arrays


def _weight(
    index: Searchable, weighting: Weighting, lists: Lists, arrays: dict[str, NDArray[Any]], first: int, last: int
) -> None:
    """Fill in the weights and bounds of the terms from `first` to `last`."""
    weights = arrays["weights"]
    weights[lists.bounds[first] : lists.bounds[last]] = weighted_postings(index, weighting, np.arange(first, last))[1]
    rest = (arrays[name] for name in ("best", "kth", "positive", "rows"))
    summarize(first, last, lists.bounds, fixed(lists.docs), weights, fixed(lists.row_of), *rest)
    for term in (first + np.flatnonzero(lists.row_of[first:last] >= 0)).tolist():
        own, row = _champions(weights[lists.bounds[term] : lists.bounds[term + 1]]), arrays["champions"][lists.row_of[term]]
        row[: len(own)], row[len(own) :] = own, -1


def _champions(weights: NDArray[np.float32]) -> NDArray[np.intp]:
    """The postings whose weights are above the one at CHAMPIONS in descending order, which others may have, too."""
    least = np.partition(weights, len(weights) - CHAMPIONS)[len(weights) - CHAMPIONS]
    above = np.flatnonzero(weights > least)
    return above[np.argsort(-weights[above], kind="stable")]


def weighted_postings(
    index: Searchable, weighting: Weighting, terms: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the concatenated documents of the terms' postings, and their weights under a model.

    Raises:
        IndexFormatError: A weight is not finite.
    """
    postings = Postings.of(index, weighting, terms)
    weights = weighting.postings(Statistics.of(index), postings).astype(np.float32)
    if not np.isfinite(weights.sum(dtype=np.float64)):  # the search relies on finite weights
        raise IndexFormatError(f"the counts of {index!r} are damaged: they give weights that are not finite; {REMEDY}")
    return postings.docs, weights


def chunks(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about CHUNK postings each."""
    first, terms = 0, len(bounds) - 1
    while first < terms:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + CHUNK, side="right")) - 1)
        yield first, last
        first = last


def _cached(
    index: Searchable,
    name: str,
    shapes: dict[str, tuple[Any, tuple[int, ...]]],
    keep: bool,
    make: Callable[[], dict[str, NDArray[Any]]],
) -> dict[str, NDArray[Any]]:
    """Arrays of these types and shapes from the cache, or computed and stored there if `keep`."""
    folder, bounds = _folder(index, name), _bounds(index)
    with contextlib.suppress(IndexFormatError):
        return _stored(folder, bounds, shapes)
    arrays = make()
    if keep and int(index.df.sum(dtype=np.int64)) >= LARGE and index.is_sound:
        with contextlib.suppress(OSError, IndexFormatError):
            _store(folder, bounds, arrays)
            return _stored(folder, bounds, shapes)
    return arrays


def _folder(index: Searchable, name: str) -> Path:
    return CACHE.folder / index.fingerprint[:32] / name


def _stored(folder: Path, bounds: NDArray[np.int64], shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Arrays of a folder in the cache, verified because the search trusts them.

    Raises:
        IndexFormatError: They are damaged, belong to other postings, or have other types or shapes.
    """
    artifact = Artifact(folder, KIND)
    arrays = {name: artifact.arrays.array(name, header_type(dtype), *shape) for name, (dtype, shape) in shapes.items()}
    CACHE.use(folder.parent)
    if artifact.meta["sums"] != _sums(bounds, arrays):
        raise artifact.damaged(f"{folder} has other arrays than were written")
    return arrays


def _sums(bounds: NDArray[np.int64], arrays: dict[str, NDArray[Any]]) -> dict[str, list[int]]:
    return {name: block_sums(array) for name, array in {"": bounds, **arrays}.items()}


def _store(folder: Path, bounds: NDArray[np.int64], arrays: dict[str, NDArray[Any]]) -> None:
    """Write the arrays atomically, and remove the least recently used models."""

    def write(draft: Path) -> None:
        for key, array in arrays.items():
            write_array(draft, key, array)

    CACHE.put(folder, KIND, {"sums": _sums(bounds, arrays)}, write)
    models = [f for f in folder.parent.iterdir() if f.name != "lists" and not f.name.startswith(".")]
    for old in sorted(models, key=lambda f: f.stat().st_mtime)[:-MAX_MODELS]:
        shutil.rmtree(old, ignore_errors=True)
