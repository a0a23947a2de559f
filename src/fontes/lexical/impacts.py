"""Impacts: the weights of an index's postings under one model, and the bounds by which the search prunes.

Impacts are computed at the first use of a model. Those of a large index are stored in `impacts/` in the user's cache, which may
be deleted at any time. If the cache cannot be written, and inside `in_memory`, they stay in memory.
"""

from __future__ import annotations

import contextlib
import logging
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
from ..storage.caches import Attached, Cached, DiskCache
from ..storage.hashes import block_sums, hash_text
from . import packed
from .kernel import BLOCK, DEPTHS, WINDOW, pack, summarize
from .packed import NO_WEIGHTS, SAME_WEIGHTS, Codes, Curve, Filled, PackedLists, long_lists
from .unions import unite
from .weighting import Postings, Statistics, Weighting, base_of

if TYPE_CHECKING:
    from ..index.postings import Searchable

CHUNK_POSTINGS = 1 << 20  # postings weighted at a time
MAX_MODELS = 4  # models whose impacts are kept per index, in memory and on disk
SPARSE = 2048  # documents per posting, above which lists are merged by sorting, not by marking documents in a bitmap
MIN_STORED_POSTINGS = 2_000_000  # least number of postings for storing impacts on disk
CHAMPIONS = 4 * BLOCK  # greatest length of a champion list, at most the df of terms with rows
Shapes = dict[str, tuple[Any, tuple[int | None, ...]]]
Unpacked = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # bounds, documents, weights
logger = logging.getLogger("fontes.lexical")
CACHE = DiskCache("impacts")
KIND = ArtifactKind("fontes-impacts", 7, "impacts", "they are worked out again when they are needed")


@dataclass(frozen=True, eq=False)
class Bounds:
    """Greatest weights of terms and of blocks of documents, by which the search prunes; of one segment, in all its states.

    Args:
        saturation: float64; the curve by code with which the bounds were made, empty without one; see `packed.Curve`.
        rest: float64; the curve of the rest of the postings.
        best: float32; greatest weight of each term, without its idf if there is a curve.
        kth: uint16, (terms, DEPTHS); bin of a weight that this many postings of the term reach; 0 if it has fewer.
        positive: Whether all weights of a term are above 0.
        rows: uint8, (rows, blocks); block bounds of terms with long lists, as fractions of the greatest weight.
        champions: int32, (rows, CHAMPIONS); documents by descending weight, all of each weight in the row, then
            -1 (champion lists; Manning, Raghavan and Schütze 2008, section 7.1.3).
        champion_weights: float64; weights of the champions, without idf if there is a curve.
        cuts: float64, (rows,); greatest weight of the documents that are not among the champions; 0 if all are.
    """

    saturation: NDArray[np.float64]
    rest: NDArray[np.float64]
    best: NDArray[np.float32]
    kth: NDArray[np.uint16]
    positive: NDArray[np.bool_]
    rows: NDArray[np.uint8]
    champions: NDArray[np.int32]
    champion_weights: NDArray[np.float64]
    cuts: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Impacts:
    """Weights of one model, and their bounds for pruning.

    Args:
        lists: The postings.
        curve: The weights as a function of tf and length; None for a model of another form.
        weights: float32; weight of each posting; empty if there is a curve.
        bounds: The bounds.
        ratios: float64, (2,); greatest and least ratio of a weight to the one with which the bounds were made.
    """

    lists: PackedLists
    curve: Curve | None
    weights: NDArray[np.float32]
    bounds: Bounds
    ratios: NDArray[np.float64]

    def idfs(self, terms: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the idf of each of some terms; 1 if postings have weights."""
        return np.ones(len(terms)) if self.curve is None else self.curve.idfs(terms)

    @cached_property
    def postings(self) -> tuple[Any, ...]:
        """The `lists` argument of the search."""
        return self.lists.with_weights(self.weights, self.curve)

    @cached_property
    def limits(self) -> tuple[NDArray[Any], ...]:
        """The `bounds_of` argument of the search."""
        bounds = self.bounds
        arrays = (bounds.best, bounds.kth, bounds.positive, self.lists.row_of, bounds.rows, self.lists.starts, self.ratios)
        return tuple(fixed(array) for array in arrays)

    @cached_property
    def _unpacked(self) -> tuple[Filled, NDArray[np.int32], NDArray[np.float32], Unpacked]:
        filled, docs = self.lists.documents
        weights = self.weights
        if self.curve is not None:
            filled, weights = Filled(len(filled.ready)), np.zeros(len(docs), dtype=np.float32)
        return filled, docs, weights, (self.lists.bounds, fixed(docs), fixed(weights))

    def unpacked(self, terms: NDArray[np.integer[Any]]) -> Unpacked:
        """Return the bounds, documents and weights of all postings, filled in for these terms; only these take memory."""
        filled, docs, weights, unpacked = self._unpacked
        out = NO_WEIGHTS if self.curve is None else weights
        filled.ensure(terms, lambda terms: self.lists.unpack(terms, self.curve, self.idfs(terms), docs, out))
        return unpacked


_LOCK = threading.Lock()
_blocks: list[bool] = []  # the `lists` of open `in_memory` blocks


@contextlib.contextmanager
def in_memory(lists: bool = False) -> Iterator[None]:
    """Do not store impacts computed in the block on disk; for many models that search once, as in tuning.

    Applies to all threads of the process.

    Args:
        lists: Whether the packed lists are not stored either, for a short-lived state of an index.
    """
    with _LOCK:
        _blocks.append(lists)
    try:
        yield
    finally:
        with _LOCK:
            _blocks.remove(lists)


def impacts_of(index: Searchable, weighting: Weighting) -> Impacts:
    """Return the impacts of a model on an index, from memory, from the cache on disk, or computed."""
    key = weighting.for_postings()  # a stage returns the same key each time, quickly found
    return _MODELS.of(index).get(key, lambda: _impacts(index, key))


def ready_impacts(index: Searchable, weighting: Weighting) -> Impacts | None:
    """Return the impacts of a model, unless that takes long: then a thread begins to compute them, and the result is None."""
    key, models, base = weighting.for_postings(), _MODELS.of(index), base_of(index)
    is_quick = key in models or key in _BOUNDS.of(base) or int(base.df.sum(dtype=np.int64)) < MIN_STORED_POSTINGS
    if is_quick or _folder(base, _name(key)).exists():
        return impacts_of(index, key)
    _THREADS.of(index).get(key, lambda: _in_thread(lambda: _complete(index, key)))
    return None


def _in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, name="fontes-impacts")
    thread.start()
    return thread


def _complete(index: Searchable, weighting: Weighting) -> None:
    """Compute all impacts before other threads can wait for them."""
    try:
        impacts = _impacts(index, weighting)
        _MODELS.of(index).get(weighting, lambda: impacts)
    except Exception:  # as at the end of a process; a search that meets the problem reports it
        logger.debug("impacts could not be computed", exc_info=True)


def documents_of(index: Searchable, term: int) -> NDArray[np.int32]:
    """Return the ordinals of the documents with a term, ascending; from the packed lists if they are in memory."""
    lists = _LISTS.get(base_of(index))
    if lists is None:
        return index.postings(np.array([term]))[0]
    bounds, docs = lists.unpacked(np.array([term]))
    return docs[bounds[term] : bounds[term + 1]]


def decoded_lists(
    index: Searchable, terms: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return the numbers of the terms' lists, and the bounds and documents of lists; see `documents_of`."""
    lists = _LISTS.get(base_of(index))
    if lists is not None:
        return terms, *lists.unpacked(terms)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(index.df[terms], dtype=np.int64)])
    return np.arange(len(terms)), bounds, fixed(index.postings(terms)[0])


def documents_of_any(index: Searchable, terms: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Return the ordinals of the documents with at least one of some terms, ascending."""
    lists, postings = _LISTS.get(base_of(index)), int(index.df[terms].sum(dtype=np.int64))
    if lists is None:
        return np.unique(index.postings(terms)[0])
    if postings * SPARSE < len(index):
        bounds, all_docs = lists.unpacked(terms)
        term_docs = [all_docs[bounds[term] : bounds[term + 1]] for term in terms.tolist()]
        return np.unique(np.concatenate([np.zeros(0, np.int32), *term_docs]))
    docs = np.empty(min(postings, len(index)) + 1, dtype=np.int32)
    return docs[: unite(terms, *lists.unweighted, WINDOW, _empty_bitmap(index), docs)]


def count_of_any(
    index: Searchable, terms: NDArray[np.integer[Any]], passed: NDArray[np.bool_] | None = None, up_to: int | None = None
) -> int:
    """Return the number of documents with at least one of some terms.

    Args:
        index: The index.
        terms: Numbers of the terms.
        passed: Whether each document is counted; None: all are.
        up_to: As in `Stage.count`. If the most frequent term alone has more documents, no others are counted.
    """
    if up_to is not None and len(terms):
        most_frequent = int(terms[index.df[terms].argmax()])
        if index.df[most_frequent] > up_to and (
            passed is None or np.count_nonzero(passed[documents_of(index, most_frequent)]) > up_to
        ):
            return up_to + 1
    return at_most(_count_of_any(index, terms, passed), up_to)


def _count_of_any(index: Searchable, terms: NDArray[np.integer[Any]], passed: NDArray[np.bool_] | None) -> int:
    if passed is not None:
        return int(np.count_nonzero(passed[documents_of_any(index, terms)]))
    if len(terms) == 1:
        return int(index.df[terms[0]])
    lists = _LISTS.get(base_of(index))
    if lists is None:
        return len(documents_of_any(index, terms))
    return int(unite(terms, *lists.unweighted, WINDOW, _empty_bitmap(index), np.zeros(0, np.int32)))


def _empty_bitmap(index: Searchable) -> NDArray[np.uint64]:
    """Return an empty bitmap of documents."""
    return np.zeros(-(-len(index) // 64), dtype=np.uint64)


def _impacts(index: Searchable, weighting: Weighting) -> Impacts:
    lists = _LISTS.of(base_of(index))
    curve = Curve.of(index, weighting, lists)
    if curve is None:
        shapes = _bound_shapes(index, lists, None) | {"weights": (np.float32, (int(lists.bounds[-1]),))}
        arrays = _load_or_make(index, _name(weighting), shapes, not _blocks, lambda: _weighted(index, weighting, lists))
        impacts = Impacts(lists, None, arrays.pop("weights"), Bounds(**arrays), SAME_WEIGHTS)
    else:
        bounds = _BOUNDS.of(base_of(index)).get(weighting, lambda: _bounded(index, weighting, lists, curve))
        ratios = curve.ratios(bounds.saturation, bounds.rest)
        if ratios is None:
            bounds, ratios = Bounds(**_bound(index, lists, curve)), SAME_WEIGHTS
        impacts = Impacts(lists, curve, NO_WEIGHTS, bounds, ratios)
    return impacts


def _bounded(index: Searchable, weighting: Weighting, lists: PackedLists, curve: Curve) -> Bounds:
    """Return the bounds of a curve, from the cache on disk, where they may be of another state, or computed."""
    shapes, base = _bound_shapes(index, lists, curve), base_of(index)
    return Bounds(**_load_or_make(base, _name(weighting), shapes, not _blocks, lambda: _bound(index, lists, curve)))


def _name(weighting: Weighting) -> str:
    """Name of a model's folder in the cache."""
    return hash_text(repr((KIND.version, weighting)))[:16]


def _lists(index: Searchable) -> PackedLists:
    arrays = _load_or_make(index, "lists", _list_shapes(index), not any(_blocks), lambda: _packed(index))
    return PackedLists(_bounds(index), _row_of(index), **arrays)


_LISTS = Attached("lists", _lists)
_BOUNDS: Attached[Searchable, Cached[Weighting, Bounds]] = Attached("bounds", lambda base: Cached(MAX_MODELS))
_MODELS: Attached[Searchable, Cached[Weighting, Impacts]] = Attached("impacts", lambda index: Cached(MAX_MODELS))
_THREADS: Attached[Searchable, Cached[Weighting, threading.Thread]] = Attached(
    "impact_threads", lambda index: Cached(MAX_MODELS)
)


def _bounds(index: Searchable) -> NDArray[np.int64]:
    bounds = np.zeros(len(index.df) + 1, dtype=np.int64)
    np.cumsum(index.df, out=bounds[1:])
    return bounds


def _windows(index: Searchable) -> int:
    return -(-len(index) // WINDOW)


def _list_shapes(index: Searchable) -> Shapes:
    rows, df = long_lists(index.df, len(index)), index.df
    long = int(df[rows].sum(dtype=np.int64))
    short = int(df.sum(dtype=np.int64)) - long
    return {
        "docs": (np.uint32, (short,)),
        "codes": (np.uint16, (None,)),
        "places": (np.uint16, (long,)),
        "place_codes": (np.uint8, (None,)),
        "widths": (np.int64, (3,)),
        "starts": (np.uint32, (len(rows), _windows(index) + 1)),
        "pairs": (np.int32, (2, None)),
        "rest": (np.int32, (4, None)),
    }


def _bound_shapes(index: Searchable, lists: PackedLists, curve: Curve | None) -> Shapes:
    terms, rows = len(index.df), len(lists.starts)
    return {
        "saturation": (np.float64, (0 if curve is None else len(curve.saturation),)),
        "rest": (np.float64, (0 if curve is None else len(curve.rest),)),
        "best": (np.float32, (terms,)),
        "kth": (np.uint16, (terms, len(DEPTHS))),
        "positive": (np.bool_, (terms,)),
        "rows": (np.uint8, (rows, _windows(index) * (WINDOW // BLOCK))),
        "champions": (np.int32, (rows, CHAMPIONS)),
        "champion_weights": (np.float64, (rows, CHAMPIONS)),
        "cuts": (np.float64, (rows,)),
    }


def _row_of(index: Searchable) -> NDArray[np.int32]:
    """Return the row of block bounds of each term, -1 for none."""
    row_of = np.full(len(index.df), -1, dtype=np.int32)
    rows = long_lists(index.df, len(index))
    row_of[rows] = np.arange(len(rows))
    return row_of


def _empty(shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Return arrays of zeros; dimensions that are None are 0."""
    return {name: np.zeros([size or 0 for size in shape], dtype) for name, (dtype, shape) in shapes.items()}


def _packed(index: Searchable) -> dict[str, NDArray[Any]]:
    """Return the arrays of `PackedLists`, except bounds and rows."""
    arrays, bounds = _empty(_list_shapes(index)), _bounds(index)
    parts, codes = list(chunks(bounds)), None
    if len(index) and index.lengths.max() <= packed.MAX_CODED_LENGTH:
        counted = Codes(index.lengths)
        in_threads(lambda edges: counted.count(*index.postings(np.arange(*edges))), parts)
        if counted.covered >= packed.MIN_CODED:
            codes, arrays["pairs"], arrays["widths"] = counted, counted.pairs, counted.widths
            _, has_rest, width = arrays["widths"].tolist()
            arrays["codes"] = np.empty(has_rest * len(arrays["docs"]), dtype=np.uint16)
            arrays["place_codes"] = np.empty(width * len(arrays["places"]), dtype=np.uint8)
    lists = PackedLists(bounds, _row_of(index), **arrays)
    rest = in_threads(lambda edges: _pack(index, lists, edges[0], edges[1], codes), parts)
    return {**arrays, "rest": np.concatenate([arrays["rest"], *rest], axis=1)}


def _pack(index: Searchable, lists: PackedLists, first: int, last: int, codes: Codes | None = None) -> NDArray[np.int32]:
    """Fill in the lists of the terms from `first` to `last` (excluded); return their `rest`."""
    docs, tfs = index.postings(np.arange(first, last))
    bounds = lists.bounds[first : last + 1] - lists.bounds[first]
    posting_codes = np.zeros(0, np.uint16) if codes is None else codes.of(docs, tfs)
    inputs = bounds, docs, posting_codes, lists.row_of[first:last], lists.offsets[first:last], lists.widths
    pack(*map(fixed, inputs), lists.postings, lists.starts)
    rest = np.flatnonzero(posting_codes == 0)
    terms = first + np.searchsorted(bounds, rest, side="right") - 1
    return np.stack([terms, docs[rest], tfs[rest], index.lengths[docs[rest]]]).astype(np.int32)


def _weighted(index: Searchable, weighting: Weighting, lists: PackedLists) -> dict[str, NDArray[Any]]:
    """Return the weights of all postings and the arrays of `Bounds`."""
    arrays, weights = _empty(_bound_shapes(index, lists, None)), np.zeros(lists.bounds[-1], np.float32)
    in_threads(lambda edges: _weigh(index, weighting, lists, arrays, weights, *edges), list(chunks(lists.bounds)))
    return {**arrays, "weights": weights}


def _weigh(
    index: Searchable,
    weighting: Weighting,
    lists: PackedLists,
    arrays: dict[str, NDArray[Any]],
    all_weights: NDArray[np.float32],
    first: int,
    last: int,
) -> None:
    """Fill in the weights and bounds of the terms from `first` to `last` (excluded)."""
    docs, weights = weighted_postings(index, weighting, np.arange(first, last))
    all_weights[lists.bounds[first] : lists.bounds[last]] = weights
    _summarize(lists, arrays, docs, weights, first, last)


def _bound(index: Searchable, lists: PackedLists, curve: Curve) -> dict[str, NDArray[Any]]:
    """Return the arrays of `Bounds` of a curve."""
    arrays, lengths = _empty(_bound_shapes(index, lists, curve)), curve.function.lengths
    arrays["saturation"], arrays["rest"] = curve.saturation, curve.rest

    def bound(edges: tuple[int, int]) -> None:
        docs, tfs = base_of(index).postings(np.arange(*edges))
        _summarize(lists, arrays, docs, curve.function.saturate(tfs, lengths[docs]), *edges)

    in_threads(bound, list(chunks(lists.bounds)))
    return arrays


def _summarize(
    lists: PackedLists, arrays: dict[str, NDArray[Any]], docs: NDArray[np.int32], weights: NDArray[Any], first: int, last: int
) -> None:
    """Fill in the bounds of the terms from `first` to `last` (excluded), whose postings have these documents and weights."""
    bounds, row_of = lists.bounds[first : last + 1] - lists.bounds[first], lists.row_of[first:last]
    term_arrays = (arrays[name][first:last] for name in ("best", "kth", "positive"))
    float_weights = weights.astype(np.float32, copy=False)
    summarize(0, last - first, bounds, fixed(docs), float_weights, fixed(row_of), *term_arrays, arrays["rows"])
    for term in np.flatnonzero(row_of >= 0).tolist():
        rows, row = slice(bounds[term], bounds[term + 1]), row_of[term]
        champions, arrays["cuts"][row] = _champions(weights[rows])
        best = bounds[term] + champions
        for name, values, none in (("champions", docs, -1), ("champion_weights", weights, 0)):
            arrays[name][row, : len(best)], arrays[name][row, len(best) :] = values[best], none


def _champions(weights: NDArray[Any]) -> tuple[NDArray[np.intp], float]:
    """Return the postings, by descending weight, that weigh more than the one of rank CHAMPIONS, and the weight of that one."""
    cut = max(0, len(weights) - CHAMPIONS)
    threshold = np.partition(weights, cut)[cut]
    above = np.flatnonzero(weights > threshold)
    return above[np.argsort(-weights[above], kind="stable")], float(threshold)


def weighted_postings(
    index: Searchable, weighting: Weighting, terms: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the documents of the terms' postings, end to end, and their weights under a model.

    Raises:
        IndexFormatError: A weight is not finite.
    """
    postings = Postings.of(index, weighting, terms)
    weights = weighting.postings(Statistics.of(index), postings).astype(np.float32)
    if not np.isfinite(weights.sum(dtype=np.float64)):  # the search relies on finite weights
        raise weights_not_finite(index)
    return postings.docs, weights


def weights_not_finite(index: Searchable) -> IndexFormatError:
    """Return the error for damaged counts."""
    return IndexFormatError(f"the counts of {index!r} are damaged: they give weights that are not finite; {REMEDY}")


def chunks(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about CHUNK_POSTINGS postings each."""
    first, terms = 0, len(bounds) - 1
    while first < terms:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + CHUNK_POSTINGS, side="right")) - 1)
        yield first, last
        first = last


def _load_or_make(
    index: Searchable,
    name: str,
    shapes: Shapes,
    keep: bool,
    make: Callable[[], dict[str, NDArray[Any]]],
) -> dict[str, NDArray[Any]]:
    """Return arrays of these types and shapes from the cache on disk, or computed, and then stored there if `keep`."""
    folder, bounds = _folder(index, name), _bounds(index)
    with contextlib.suppress(IndexFormatError):
        return _load(folder, bounds, shapes)
    arrays = make()
    if keep and int(index.df.sum(dtype=np.int64)) >= MIN_STORED_POSTINGS and index.is_sound:
        with contextlib.suppress(OSError, IndexFormatError):
            _store(folder, bounds, arrays)
            return _load(folder, bounds, shapes)
    return arrays


def _folder(index: Searchable, name: str) -> Path:
    return CACHE.folder / index.fingerprint[:32] / name


def _load(folder: Path, bounds: NDArray[np.int64], shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a folder in the cache, verified because the search trusts them.

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
