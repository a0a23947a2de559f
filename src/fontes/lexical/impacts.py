"""Impacts: the weights of an index's postings under one model, and the bounds by which the search prunes.

A model with a curve shares the packed lists of a segment, and the bounds stored with them. Weights and bounds of other models
are computed at their first use, for an index of many postings in a thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.depth import at_most
from ..core.errors import IndexFormatError
from ..core.threads import in_threads
from ..index.packed import NO_WEIGHTS, Bounds, Filled, PackedLists, bound_shapes, zeros
from ..index.packed_kernels import WINDOW, unpack
from ..index.packing import bound_terms, chunks, pack_in_memory
from ..storage.arrays import REMEDY, fixed
from ..storage.caches import Attached, Cached
from .curves import SAME_WEIGHTS, Curve
from .unions import unite
from .weighting import Postings, Statistics, Weighting, base_of, saturation_of

if TYPE_CHECKING:
    from ..index.postings import Searchable

MAX_MODELS = 4  # models whose impacts are kept per index
SPARSE = 2048  # documents per posting, above which lists are merged by sorting, not by marking documents in a bitmap
MANY_POSTINGS = 2_000_000  # least number of postings whose weights a thread computes
NO_CURVE = fixed(np.zeros(0, np.float64))
Unpacked = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # bounds, documents, weights
logger = logging.getLogger("fontes.lexical")


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
        curve = () if self.curve is None else (self.curve.saturation, self.curve.rest)
        return self.lists.weighted(self.weights, *curve)

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
        tables = fixed(self.lists.row_of), fixed(self.lists.starts)
        filled.ensure(terms, lambda terms: unpack(terms, self.idfs(terms), self.postings, *tables, docs, out))
        return unpacked


def impacts_of(index: Searchable, weighting: Weighting) -> Impacts:
    """Return the impacts of a model on an index, from memory or computed."""
    key = weighting.for_postings()  # a stage returns the same key each time, quickly found
    return _MODELS.of(index).get(key, lambda: _impacts(index, key))


def ready_impacts(index: Searchable, weighting: Weighting) -> Impacts | None:
    """Return the impacts of a model, unless that takes long: then a thread begins to compute them, and the result is None."""
    key = weighting.for_postings()
    if key in _MODELS.of(index) or _has_limits(index, key) or int(index.df.sum(dtype=np.int64)) < MANY_POSTINGS:
        return impacts_of(index, key)
    _THREADS.of(index).get(key, lambda: _in_thread(lambda: _complete(index, key)))
    return None


def _has_limits(index: Searchable, weighting: Weighting) -> bool:
    """Whether the bounds of an index are stored, and serve a model."""
    return getattr(base_of(index), "limits", None) is not None and saturation_of(weighting, Statistics.of(index)) is not None


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
    lists, base = _LISTS.of(base_of(index)), base_of(index)
    curve = Curve.of(index, weighting, lists)
    if curve is None:
        arrays = _weighted(index, weighting, lists)
        return Impacts(lists, None, arrays.pop("weights"), Bounds(NO_CURVE, NO_CURVE, **arrays), SAME_WEIGHTS)
    bounds = getattr(base, "limits", None) or _BOUNDS.of(base).get(weighting, lambda: _bounded(index, lists, curve))
    ratios = curve.ratios(bounds.saturation, bounds.rest)
    if ratios is None:
        bounds, ratios = _bounded(index, lists, curve), SAME_WEIGHTS
    return Impacts(lists, curve, NO_WEIGHTS, bounds, ratios)


def _lists(index: Searchable) -> PackedLists:
    lists: PackedLists | None = getattr(index, "packed", None)
    return pack_in_memory(index) if lists is None else lists


_LISTS = Attached("lists", _lists)
_BOUNDS: Attached[Searchable, Cached[Weighting, Bounds]] = Attached("bounds", lambda base: Cached(MAX_MODELS))
_MODELS: Attached[Searchable, Cached[Weighting, Impacts]] = Attached("impacts", lambda index: Cached(MAX_MODELS))
_THREADS: Attached[Searchable, Cached[Weighting, threading.Thread]] = Attached(
    "impact_threads", lambda index: Cached(MAX_MODELS)
)


def _weighted(index: Searchable, weighting: Weighting, lists: PackedLists) -> dict[str, NDArray[Any]]:
    """Return the weights of all postings and the arrays of `bound_shapes`."""
    arrays = zeros(bound_shapes(len(index.df), len(lists.starts), len(index)))
    all_weights = np.zeros(lists.bounds[-1], np.float32)

    def weigh(edges: tuple[int, int]) -> None:
        docs, weights = weighted_postings(index, weighting, np.arange(*edges))
        all_weights[lists.bounds[edges[0]] : lists.bounds[edges[1]]] = weights
        bound_terms(lists, arrays, docs, weights, *edges)

    in_threads(weigh, list(chunks(lists.bounds)))
    return {**arrays, "weights": all_weights}


def _bounded(index: Searchable, lists: PackedLists, curve: Curve) -> Bounds:
    """Return the bounds of a curve."""
    arrays, lengths = zeros(bound_shapes(len(index.df), len(lists.starts), len(index))), curve.function.lengths

    def bound(edges: tuple[int, int]) -> None:
        docs, tfs = base_of(index).postings(np.arange(*edges))
        bound_terms(lists, arrays, docs, curve.function.saturate(tfs, lengths[docs]), *edges)

    in_threads(bound, list(chunks(lists.bounds)))
    return Bounds(curve.saturation, curve.rest, **arrays)


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
