"""Impacts: the weights of an index's postings under one model, and the bounds by which the search prunes.

A model with a curve shares the packed lists of a segment, and the bounds stored with them. Weights and bounds of other models
are computed at their first use, for an index of many postings in a thread.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import AnyArray, Bools, Float32s, Float64s, Int32s, Int64s, Ints, UInt64s
from ..core.errors import IndexFormatError
from ..core.searches import at_most
from ..index.packed import NO_WEIGHTS, Bounds, LazyRows, PackedLists, bound_shapes, zeros
from ..index.packed_kernels import WINDOW, unpack
from ..index.packing import bound_terms, chunks
from ..index.parts import Part
from ..index.postings import SegmentLists
from ..storage.arrays import REMEDY, fixed
from ..storage.caches import Cached, LazyAttribute
from ..storage.threads import in_threads
from .curves import SAME_WEIGHTS, ScoreTable
from .lists import unite
from .weighting import Postings, Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.packed_kernels import Lists

MAX_MODELS = 4  # models whose impacts are kept per index
SPARSE = 2048  # documents per posting, above which lists are merged by sorting, not by marking documents in a bitmap
MANY_POSTINGS = 2_000_000  # least number of postings whose weights a thread computes
NO_CURVE = fixed(np.zeros(0, np.float64))
Unpacked = tuple[Int64s, Int32s, Float32s]  # bounds, documents, weights
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
    curve: ScoreTable | None
    weights: Float32s
    bounds: Bounds
    ratios: Float64s

    def idfs(self, terms: Ints) -> Float64s:
        """Return the idf of each of some terms; 1 if postings have weights."""
        return np.ones(len(terms)) if self.curve is None else self.curve.idfs(terms)

    @cached_property
    def postings(self) -> Lists:
        """The `lists` argument of the search."""
        curve = () if self.curve is None else (self.curve.saturation, self.curve.rest)
        return self.lists.weighted(self.weights, *curve)

    @cached_property
    def limits(self) -> tuple[NDArray[np.generic], ...]:
        """The `bounds_of` argument of the search."""
        bounds = self.bounds
        arrays = (bounds.best, bounds.kth, bounds.positive, self.lists.row_of, bounds.rows, self.lists.starts, self.ratios)
        return tuple(fixed(array) for array in arrays)

    @cached_property
    def _unpacked(self) -> tuple[LazyRows, Int32s, Float32s, Unpacked]:
        filled, docs = self.lists.documents
        weights = self.weights
        if self.curve is not None:
            filled, weights = LazyRows(len(filled.ready)), np.zeros(len(docs), dtype=np.float32)
        return filled, docs, weights, (self.lists.bounds, fixed(docs), fixed(weights))

    def unpacked(self, terms: Ints) -> Unpacked:
        """Return the bounds, documents and weights of all postings, filled in for these terms; only these take memory."""
        filled, docs, weights, unpacked = self._unpacked
        out = NO_WEIGHTS if self.curve is None else weights
        packed = self.postings, fixed(self.lists.row_of), fixed(self.lists.starts)
        filled.ensure(terms, lambda terms: unpack(terms, self.idfs(terms), packed, docs, out))
        return unpacked


def impacts_of(part: Part, weighting: Weighting) -> Impacts:
    """Return the impacts of a model on a part, from memory or computed."""
    key = weighting.cache_key()  # a stage returns the same key each time, quickly found
    if (thread := _THREADS.of(part).get(key)) is not None and thread.is_alive():
        thread.join()
    return _MODELS.of(part).get(key, lambda: _impacts(part, key))


def ready_impacts(part: Part, weighting: Weighting) -> Impacts | None:
    """Return the impacts of a model, unless that takes long: then a thread begins to compute them, and the result is None."""
    key = weighting.cache_key()
    if key in _MODELS.of(part) or _has_limits(part, key) or int(part.df.sum(dtype=np.int64)) < MANY_POSTINGS:
        return impacts_of(part, key)
    thread = threading.Thread(target=_complete, args=(part, key), name="fontes-impacts")
    if _THREADS.of(part).setdefault(key, thread) is thread:
        thread.start()
    return None


def _has_limits(part: Part, weighting: Weighting) -> bool:
    """Whether the bounds of an index are stored, and serve a model."""
    return part.lists.limits is not None and saturation_of(weighting, Statistics.of(part)) is not None


def _complete(part: Part, weighting: Weighting) -> None:
    """Compute all impacts before other threads can wait for them."""
    try:
        impacts = _impacts(part, weighting)
        _MODELS.of(part).get(weighting, lambda: impacts)
        del _THREADS.of(part)[weighting]
    except Exception:  # as at the end of a process; a search that meets the problem reports it
        logger.debug("impacts could not be computed", exc_info=True)


def documents_of(part: Part, term: int) -> Int32s:
    """Return the ordinals of the documents with a term, ascending; from the packed lists if they are in memory."""
    lists = read_lists(part)
    if lists is None:
        return part.postings(np.array([term]))[0]
    bounds, docs = lists.unpacked(np.array([term]))
    return docs[bounds[term] : bounds[term + 1]]


def decoded_lists(part: Part, terms: Int64s) -> tuple[Int64s, Int64s, Int32s]:
    """Return the numbers of the terms' lists, and the bounds and documents of lists; see `documents_of`."""
    lists = read_lists(part)
    if lists is not None:
        return terms, *lists.unpacked(terms)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(part.df[terms], dtype=np.int64)])
    return np.arange(len(terms)), bounds, fixed(part.postings(terms)[0])


def documents_of_any(part: Part, terms: Ints) -> Int32s:
    """Return the ordinals of the documents with at least one of some terms, ascending."""
    lists, postings = read_lists(part), int(part.df[terms].sum(dtype=np.int64))
    if lists is None:
        return _distinct(part.postings(terms)[0])
    if postings * SPARSE < len(part):
        bounds, all_docs = lists.unpacked(terms)
        term_docs = [all_docs[bounds[term] : bounds[term + 1]] for term in terms.tolist()]
        return _distinct(np.concatenate([np.zeros(0, np.int32), *term_docs]))
    docs = np.empty(min(postings, len(part)) + 1, dtype=np.int32)
    return docs[: unite(terms, lists.unweighted, WINDOW, _empty_bitmap(part), docs)]


def _distinct(docs: Int32s) -> Int32s:
    """As `np.unique`, which imports `numpy.ma`: that takes longer than the search of a process for one query."""
    docs = np.sort(docs)
    is_first = np.ones(len(docs), dtype=np.bool_)
    is_first[1:] = docs[1:] != docs[:-1]
    return docs[is_first]


def count_of_any(part: Part, terms: Ints, passed: Bools | None = None, up_to: int | None = None) -> int:
    """Return the number of documents with at least one of some terms.

    Args:
        part: The part.
        terms: Numbers of the terms.
        passed: Whether each document is counted; None: all are.
        up_to: As in `Stage.count`. If the most frequent term alone has more documents, no others are counted.
    """
    if up_to is not None and len(terms):
        most_frequent = int(terms[part.df[terms].argmax()])
        if part.df[most_frequent] > up_to and (
            passed is None or np.count_nonzero(passed[documents_of(part, most_frequent)]) > up_to
        ):
            return up_to + 1
    return at_most(_count_of_any(part, terms, passed), up_to)


def _count_of_any(part: Part, terms: Ints, passed: Bools | None) -> int:
    if passed is not None:
        return int(np.count_nonzero(passed[documents_of_any(part, terms)]))
    if len(terms) == 1:
        return int(part.df[terms[0]])
    lists = read_lists(part)
    if lists is None:
        return len(documents_of_any(part, terms))
    return int(unite(terms, lists.unweighted, WINDOW, _empty_bitmap(part), np.zeros(0, np.int32)))


def _empty_bitmap(part: Part) -> UInt64s:
    """Return an empty bitmap of documents."""
    return np.zeros(-(-len(part) // 64), dtype=np.uint64)


def _impacts(part: Part, weighting: Weighting) -> Impacts:
    lists = part.lists.packed
    curve = ScoreTable.of(part, weighting, lists)
    if curve is None:
        arrays = _weighted(part, weighting, lists)
        return Impacts(lists, None, arrays.pop("weights"), Bounds(NO_CURVE, NO_CURVE, **arrays), SAME_WEIGHTS)
    bounds = part.lists.limits or _BOUNDS.of(part.lists).get(weighting, lambda: _bounded(part, lists, curve))
    ratios = curve.ratios(bounds.saturation, bounds.rest)
    if ratios is None:
        bounds, ratios = _bounded(part, lists, curve), SAME_WEIGHTS
    return Impacts(lists, curve, NO_WEIGHTS, bounds, ratios)


def read_lists(part: Part) -> PackedLists | None:
    """Return the packed postings of a part if they were read already."""
    return vars(part.lists).get("packed")


_BOUNDS: LazyAttribute[SegmentLists, Cached[Weighting, Bounds]] = LazyAttribute("bounds", lambda lists: Cached(MAX_MODELS))
_MODELS: LazyAttribute[Part, Cached[Weighting, Impacts]] = LazyAttribute("impacts", lambda part: Cached(MAX_MODELS))
_THREADS: LazyAttribute[Part, dict[Weighting, threading.Thread]] = LazyAttribute(
    "impact_threads", lambda part: {}
)  # that failed, too


def _weighted(part: Part, weighting: Weighting, lists: PackedLists) -> dict[str, AnyArray]:
    """Return the weights of all postings and the arrays of `bound_shapes`."""
    arrays = zeros(bound_shapes(len(part.df), len(lists.starts), len(part)))
    all_weights = np.zeros(lists.bounds[-1], np.float32)

    def weigh(edges: tuple[int, int]) -> None:
        docs, weights = weighted_postings(part, weighting, np.arange(*edges))
        all_weights[lists.bounds[edges[0]] : lists.bounds[edges[1]]] = weights
        bound_terms(lists, arrays, docs, weights, *edges)

    in_threads(weigh, list(chunks(lists.bounds)))
    return {**arrays, "weights": all_weights}


def _bounded(part: Part, lists: PackedLists, curve: ScoreTable) -> Bounds:
    """Return the bounds of a curve."""
    arrays, lengths = zeros(bound_shapes(len(part.df), len(lists.starts), len(part))), curve.function.lengths

    def bound(edges: tuple[int, int]) -> None:
        docs, tfs = part.postings(np.arange(*edges))
        bound_terms(lists, arrays, docs, curve.function.saturate(tfs, lengths[docs]), *edges)

    in_threads(bound, list(chunks(lists.bounds)))
    return Bounds(curve.saturation, curve.rest, **arrays)


def weighted_postings(part: Part, weighting: Weighting, terms: Ints) -> tuple[Int32s, Float32s]:
    """Return the documents of the terms' postings, end to end, and their weights under a model.

    Raises:
        IndexFormatError: A weight is not finite.
    """
    postings = Postings.of(part, weighting, terms)
    with np.errstate(divide="ignore", invalid="ignore"):  # terms that only deleted documents have
        weights = weighting.postings(Statistics.of(part), postings).astype(np.float32)
    if part.dead is not None:
        weights[part.dead[postings.docs] & ~np.isfinite(weights)] = 0
    if not np.isfinite(weights.sum(dtype=np.float64)):  # the search relies on finite weights
        raise weights_not_finite(part)
    return postings.docs, weights


def weights_not_finite(part: Part) -> IndexFormatError:
    """Return the error for damaged counts."""
    return IndexFormatError(f"the counts of {part!r} are damaged: they give weights that are not finite; {REMEDY}")
