"""Search by weighted bags of terms: by compiled loops, or by numpy while these are loaded or weights are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise, starmap

import numpy as np

from ..core.arrays import Float32s, Float64s, Int32s, Int64s, Ints
from ..core.strings import offsets_of
from ..index.columns import Filter
from ..index.parts import Part, Searchable
from ..storage.compiled import affordable, is_loaded, load
from .direct import Bags, Direct
from .impacts import impacts_of, weighted_postings
from .merging import Ranked, Results
from .parts import Parts, living_df, numbers_in, part_filter
from .weighting import Idfs, Statistics, Weighting, saturation_of

POSTINGS_PER_STEP = 10  # postings that numpy sums in the time of one Python step
WEIGHTS_PER_STEP = 1  # postings whose weights and bounds are computed in the time of one step
SUMS_PER_STEP = 400  # sums that numpy scans in the time of one step
CALL_STEPS = 250  # steps in the time of all calls of numpy for one topic


def bags_of(parts: Parts, weighting: Weighting, topics: Sequence[Mapping[str, float]]) -> Bags:
    """Return the query weights of topics.

    Args:
        parts: The parts that are searched.
        weighting: The model.
        topics: Count of each term of each topic, or its weight.
    """
    bags = list(map(sorted, topics))
    terms = list(chain.from_iterable(bags))
    counts = np.array([topic[term] for topic, bag in zip(topics, bags, strict=True) for term in bag], dtype=np.float64)
    numbers = numbers_in(parts, terms)
    df = living_df(parts, terms, numbers)
    present = df > 0
    bounds = offsets_of(present)[[0, *accumulate(map(len, bags))]]
    numbers, df, counts = numbers[:, present], df[present], counts[present]
    if weighting.weighs_terms_alone or len(bags) == 1:
        weights = weighting.query(counts)
    else:
        weights = np.concatenate([np.zeros(0), *(weighting.query(counts[a:b]) for a, b in pairwise(bounds.tolist()))])
    return Bags(bounds, numbers, df, weights)


def search_bags(searched: Searchable, weighting: Weighting, bags: Bags, k: int, where: Filter | None = None) -> Results:
    """Return the number of results of each topic, and their documents, as ordinals in the index, and scores end to end.

    Args:
        searched: The index, or other lists of its documents.
        weighting: The model.
        bags: Query weights of each topic, for the parts of the index.
        k: Greatest number of documents per topic.
        where: The documents that may be returned; None: all.
    """
    topics, k = len(bags.bounds) - 1, min(k, len(searched) if where is None else where.count)
    if not k or not len(bags.weights):
        return np.zeros(topics, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    steps = int(bags.df.sum()) // POSTINGS_PER_STEP + topics * (
        len(searched) // SUMS_PER_STEP + CALL_STEPS * len(searched.parts)
    )
    if not is_loaded():
        if affordable(steps):
            return _scan_topics(searched, weighting, bags, k, where)
        load()
    direct = Direct.of(searched, weighting)
    if direct is None and steps > sum(int(part.df.sum(dtype=np.int64)) for part in searched.parts) // WEIGHTS_PER_STEP:
        direct = Direct.of(searched, weighting, wait=True)
    return _scan_topics(searched, weighting, bags, k, where) if direct is None else direct.bags(bags, k, where)


def scores_of(searched: Searchable, weighting: Weighting, bags: Bags, topic: int, ordinals: Ints) -> Float32s:
    """Return the scores of some documents for a topic; 0 for documents that do not match."""
    sums, terms = np.zeros(len(ordinals), dtype=np.float64), slice(*bags.bounds[topic : topic + 2].tolist())
    for part, numbers in zip(searched.parts, bags.numbers[:, terms], strict=True):
        present, (rows, docs) = numbers >= 0, part.located(ordinals)
        bounds, all_docs, weights = impacts_of(part, weighting).unpacked(numbers[present])
        for term, query_weight in zip(numbers[present].tolist(), bags.weights[terms][present], strict=True):
            of_term = slice(bounds[term], bounds[term + 1])
            postings = np.searchsorted(all_docs[of_term], docs)
            matching = np.flatnonzero(postings < of_term.stop - of_term.start)
            matching = matching[all_docs[of_term][postings[matching]] == docs[matching]]
            sums[rows[matching]] += query_weight * weights[of_term][postings[matching]]
    return sums.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0


def _scan_topics(searched: Searchable, weighting: Weighting, bags: Bags, k: int, where: Filter | None) -> Results:
    """Return the results of `search_bags` without compiled code, by summing all postings; for a process with few queries."""
    parts = searched.parts
    filters, rankings = None if where is None else part_filter(parts, where).filters, list[Ranked]()

    def sums(terms: slice, number: int) -> tuple[Int32s, Float64s]:
        part = parts[number]
        totals, passed = np.zeros(len(part), dtype=np.float64), np.zeros(len(part), dtype=np.bool_)
        lists = term_lists(searched, parts[number], weighting, bags.numbers[number, terms], bags.df[terms])
        for query_weight, (docs, weights) in zip(bags.weights[terms], lists, strict=True):
            totals[docs] += query_weight * weights
            passed[docs] = True
        if filters is not None:
            passed &= filters[number].mask
        elif part.dead is not None:
            passed &= ~part.dead
        docs = np.flatnonzero(passed).astype(np.int32)
        return docs, totals[docs]

    for terms in starmap(slice, pairwise(bags.bounds.tolist())):
        rankings.append(best_of_sums(parts, (sums(terms, number) for number in range(len(parts))), k))
    docs, scores = map(np.concatenate, zip(*rankings, strict=True))
    return np.array([len(ranking) for ranking, _ in rankings], np.int64), docs, scores


def term_lists(
    searched: Searchable, part: Part, weighting: Weighting, numbers: Int64s, df: Int64s
) -> Iterator[tuple[Int32s, Float32s]]:
    """Yield the documents of a part with each term, and their weights.

    Args:
        searched: The index, or other lists of its documents.
        part: A part of it.
        weighting: The model.
        numbers: Numbers of the terms in the part, -1 for none.
        df: As in `Bags`.
    """
    function = saturation_of(weighting, Statistics.of(part))
    idfs = None if function is None else Idfs.of(searched.whole, weighting, function.idf)(df)
    for i, term in enumerate(numbers.tolist()):
        if term < 0:
            yield np.zeros(0, np.int32), np.zeros(0, np.float32)
        elif function is None or idfs is None:
            yield weighted_postings(part, weighting, np.array([term]))
        else:
            docs, tf = part.postings(np.array([term]))
            yield docs, (idfs[i] * function.saturate(tf, function.lengths[docs])).astype(np.float32)


def best_of_sums(parts: Parts, sums: Iterable[tuple[Int32s, Float64s]], k: int) -> Ranked:
    """Return the best documents by sums of their weights, as ordinals in the index, and their scores.

    `sums` has documents of each part and their sums.
    """
    hits: list[tuple[float, str, int]] = []
    for part, (docs, totals) in zip(parts, sums, strict=True):
        scores = totals.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
        if len(docs) > k:
            best = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
            docs, scores = docs[best], scores[best]
        hits += zip(scores.tolist(), part.ids.take(docs), part.ordinals(docs).tolist(), strict=True)
    best_hits = sorted(hits, reverse=True)[:k]
    return np.array([doc for *_, doc in best_hits], np.int32), np.array([score for score, *_ in best_hits], np.float32)
