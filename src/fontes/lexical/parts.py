"""Search of an index part by part, with the weights that the whole index gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.stage import at_most
from ..core.strings import offsets_of
from ..index.columns import Filter
from ..index.segment import Part
from ..storage.compiled import affordable, is_loaded, load
from .impacts import count_of_any, documents_of_any, impacts_of
from .kernel import search
from .merging import Merge, part_filter
from .searching import CALL_STEPS, NO_WORDS, POSTINGS_PER_STEP, RESULTS, SUMS_PER_STEP, Results, depth_of, in_ranges
from .weighting import Idfs, Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.state import State

Bags = list[tuple[NDArray[np.int64], NDArray[np.float64]]]  # numbers among all terms of a batch, query weights


def numbers_in(parts: Sequence[Part], terms: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each term in each part, (parts, terms); -1 for a term that it lacks."""
    return np.array([part.numbers(terms) for part in parts]).reshape(len(parts), len(terms))


def search_parts(
    index: State,
    parts: Sequence[Part],
    weighting: Weighting,
    topics: Sequence[Mapping[str, float]],
    k: int,
    where: Filter | None,
) -> Results:
    """Return the number of results of each topic, and their documents, as ordinals in the index, and scores end to end.

    Args:
        index: The index.
        parts: Its parts.
        weighting: The model.
        topics: Count of each term of each topic, or its weight.
        k: Greatest number of documents per topic.
        where: The documents that may be returned; None: all.
    """
    k = min(k, len(index) if where is None else where.count)
    names = sorted({term for topic in topics for term in topic})
    if not k or not names:
        return np.zeros(len(topics), np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    numbers = numbers_in(parts, names)
    df = np.sum([part.living_df(row) for part, row in zip(parts, numbers, strict=True)], axis=0)
    number_of = {name: i for i, name in enumerate(names) if df[i]}
    bags: Bags = []
    for topic in topics:
        rows = sorted(number_of[term] for term in topic if term in number_of)
        weights = weighting.query(np.array([topic[names[i]] for i in rows], dtype=np.float64))
        bags.append((np.array(rows, dtype=np.int64), weights))
    saturation = saturation_of(weighting, Statistics.of(parts[0]))
    assert saturation is not None
    idfs, step = Idfs.of(index, weighting, saturation.idf)(df), max(1, RESULTS // k)
    if not is_loaded():
        postings = sum(int(df[rows].sum()) for rows, _ in bags)
        steps = len(index) // SUMS_PER_STEP + CALL_STEPS * len(parts)
        if affordable(postings // POSTINGS_PER_STEP + len(bags) * steps):
            rankings = [_scan(parts, weighting, (numbers, idfs), bag, k, where) for bag in bags]
            docs, scores = map(np.concatenate, zip(*rankings, strict=True))
            return np.array([len(ranking) for ranking, _ in rankings], np.int64), docs, scores
        load()
    firsts = range(0, len(bags), step)
    portions = [_search(index, parts, weighting, (numbers, idfs), bags[first : first + step], k, where) for first in firsts]
    if len(portions) == 1:
        return portions[0]
    counts, docs, scores = map(np.concatenate, zip(*portions, strict=True))
    return counts, docs, scores


def _search(
    index: State,
    parts: Sequence[Part],
    weighting: Weighting,
    terms: tuple[NDArray[np.int64], NDArray[np.float64]],
    bags: Bags,
    k: int,
    where: Filter | None,
) -> Results:
    """Return the results of `search_parts` for some topics; `terms` are numbers in each part, and idfs."""
    merge, (numbers, idfs) = Merge.of(index), terms
    part_counts, docs, scores, keys = merge.buffers(k, len(bags))
    masks = None if where is None else part_filter(parts, where)
    for i, part in enumerate(parts):
        if masks is not None:
            allowed, depth = masks.of_parts[i].words, -1
        else:
            deletions = part.leaf.deletions
            allowed = NO_WORDS if deletions is None else part.leaf.living
            depth = depth_of(k + (0 if deletions is None else deletions.documents))
        of_part = [(rows[present], weights[present]) for rows, weights in bags for present in (numbers[i][rows] >= 0,)]
        bounds = offsets_of([len(rows) for rows, _ in of_part])
        all_rows, all_weights = (np.concatenate(column) for column in zip(*of_part, strict=True))
        part_numbers = numbers[i][all_rows].astype(np.int32)
        impacts = impacts_of(part, weighting)
        part_idfs = idfs[all_rows] if impacts.curve is not None else np.ones(len(all_rows))
        topics, ids = (bounds, part_numbers, all_weights, part_idfs), (part.ids.rank, part.ids.order)
        first = i * len(bags)

        def find(a: int, b: int, first: int = first, inputs: tuple[Any, ...] = (topics, impacts, allowed, ids, depth)) -> None:
            topics, impacts, allowed, ids, depth = inputs
            span = slice(first + a, first + b)
            portion = part_counts[span], docs[span], scores[span], keys[span]
            search(a, b, topics, impacts.postings, impacts.limits, allowed, ids, k, depth, portion)

        in_ranges(find, len(bags))
    return merge.best_of_topics(part_counts, keys, k)


def _scan(
    parts: Sequence[Part],
    weighting: Weighting,
    terms: tuple[NDArray[np.int64], NDArray[np.float64]],
    bag: tuple[NDArray[np.int64], NDArray[np.float64]],
    k: int,
    where: Filter | None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the result of one topic without compiled code, by summing all postings; for a process with few queries."""
    (numbers, idfs), hits = terms, list[tuple[float, str, int]]()
    masks = None if where is None else part_filter(parts, where).masks
    for i, part in enumerate(parts):
        function = saturation_of(weighting, Statistics.of(part))
        assert function is not None
        sums, passed = np.zeros(len(part), dtype=np.float64), np.zeros(len(part), dtype=np.bool_)
        for term, query_weight in zip(*bag, strict=True):
            if (number := numbers[i, term]) >= 0:
                docs, tf = part.postings(np.array([number]))
                weights = idfs[term] * function.saturate(tf, function.lengths[docs])
                sums[docs] += query_weight * weights.astype(np.float32)
                passed[docs] = True
        if masks is not None:
            passed &= masks[i]
        elif part.leaf.dead is not None:
            passed &= ~part.leaf.dead
        docs = np.flatnonzero(passed).astype(np.int32)
        scores = sums[docs].astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
        if len(docs) > k:
            best = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
            docs, scores = docs[best], scores[best]
        hits += zip(scores.tolist(), part.ids.take(docs), part.ordinals(docs).tolist(), strict=True)
    best_hits = sorted(hits, reverse=True)[:k]
    return np.array([doc for *_, doc in best_hits], np.int32), np.array([score for score, *_ in best_hits], np.float32)


def documents_in_parts(parts: Sequence[Part], terms: Sequence[str], where: Filter | None) -> NDArray[np.int32]:
    """Return the ordinals of the documents with at least one of some terms that pass a filter, ascending."""
    part_ordinals = []
    for part, numbers in zip(parts, numbers_in(parts, terms), strict=True):
        docs = documents_of_any(part, numbers[numbers >= 0])
        if part.leaf.dead is not None:
            docs = docs[~part.leaf.dead[docs]]
        part_ordinals.append(part.ordinals(docs))
    ordinals = np.concatenate([part_ordinals[i] for i in np.argsort([part.leaf.first for part in parts]).tolist()])
    return ordinals if where is None else ordinals[where.mask[ordinals]]


def count_in_parts(parts: Sequence[Part], numbers: NDArray[np.int64], where: Filter | None, up_to: int | None) -> int:
    """Return the number of documents with at least one of some terms that pass a filter; see `Stage.count`.

    `numbers` are those of the terms in each part, (parts, terms), -1 for none.
    """
    masks, count = None if where is None else part_filter(parts, where).masks, 0
    for i, part in enumerate(parts):
        dead = part.leaf.dead
        passed = masks[i] if masks is not None else None if dead is None else ~dead
        count += count_of_any(part, numbers[i][numbers[i] >= 0], passed, up_to)
        if up_to is not None and count > up_to:
            break
    return at_most(count, up_to)
