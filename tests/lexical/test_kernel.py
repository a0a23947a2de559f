"""The compiled search on lists of its own, against plain sums; small enough to run interpreted (NUMBA_DISABLE_JIT=1)."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each

from fontes.index.columns import Filter
from fontes.index.packed import NO_CODES, NO_SATURATION, list_offsets
from fontes.index.packed_kernels import BINS, BLOCK, DEPTHS, WINDOW, pack, summarize
from fontes.lexical import kernel
from fontes.lexical.curves import SAME_WEIGHTS
from fontes.lexical.kernel import search_bag
from fontes.lexical.keys import SORTED, best_first, select, sort_keys
from fontes.lexical.parts import NO_WORDS
from fontes.storage.arrays import fixed

NO_PLACE_CODES, NO_WIDTHS = fixed(np.zeros(0, np.uint8)), fixed(np.zeros(3, np.int64))
NO_REST = fixed(np.zeros(0, np.int64)), fixed(np.zeros(0, np.int32)), fixed(np.zeros(0, np.float64))
DOCUMENTS = 2 * WINDOW + 700
DF = (1, 2, 9, 10, 11, 30, 99, 100, 101, 260, 400, 1000, 1001, 1, 40, 40)
LONG = 256  # postings above which a term has a row
BELOW, ZERO = len(DF) - 2, len(DF) - 1  # a term with weights below 0, one with weights of 0


@dataclass(frozen=True)
class Collection:
    """Postings, and what `summarize` makes of them."""

    bounds: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    row_of: NDArray[np.int32]
    best: NDArray[np.float32]
    kth: NDArray[np.uint16]
    positive: NDArray[np.bool_]
    rows: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    rank: NDArray[np.uint32]

    def of(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The documents and weights of a term."""
        own = slice(self.bounds[term], self.bounds[term + 1])
        return self.docs[own], self.weights[own]


@pytest.fixture(scope="module")
def collection() -> Collection:
    draws = np.random.default_rng(11)
    lists = [np.sort(draws.choice(DOCUMENTS, df, replace=False)) for df in DF]
    lists[0][:] = DOCUMENTS - 1  # the last document
    lists[13][:] = 0  # and the first
    lists[9] = np.arange(WINDOW - 130, WINDOW + 130)  # a list that stands close, across two windows
    # Weights like those of BM25, with repetitions; those of a term differ in scale from those of the next.
    weights = [np.round(draws.gamma(2.0, 1.0, df) + 0.01, 2) * 1.7 ** (term % 5) for term, df in enumerate(DF)]
    weights[BELOW] -= 2.0 * weights[BELOW].mean()
    weights[ZERO][3] = 0.0
    bounds = np.concatenate([[0], np.cumsum(DF)]).astype(np.int64)
    docs, flat = np.concatenate(lists).astype(np.int32), np.concatenate(weights).astype(np.float32)
    row_of = np.full(len(DF), -1, dtype=np.int32)
    long = np.flatnonzero(np.array(DF) > LONG)
    row_of[long] = np.arange(len(long))
    windows = -(-DOCUMENTS // WINDOW)
    starts = np.array([np.searchsorted(lists[term], np.arange(windows + 1) * WINDOW) for term in long], dtype=np.uint32)
    best, kth = np.zeros(len(DF), np.float32), np.zeros((len(DF), len(DEPTHS)), np.uint16)
    positive, rows = np.zeros(len(DF), np.bool_), np.zeros((len(long), windows * (WINDOW // BLOCK)), np.uint8)
    for first, last in ((0, 7), (7, len(DF))):  # in parts, as threads do
        summarize(first, last, bounds, fixed(docs), flat, fixed(row_of), best, kth, positive, rows)
    rank = draws.permutation(DOCUMENTS).astype(np.uint32)
    return Collection(bounds, docs, flat, row_of, best, kth, positive, rows, starts, rank)


def test_the_greatest_weight_of_a_term_is_known_and_whether_all_are_above_zero(collection: Collection) -> None:
    for term in range(len(DF)):
        _, weights = collection.of(term)
        assert collection.best[term] == weights.max()
        assert collection.positive[term] == (weights.min() > 0)
    assert not collection.positive[BELOW]
    assert not collection.positive[ZERO]


def test_the_kth_best_weight_is_reached_by_k_postings_and_is_close_to_the_true_one(collection: Collection) -> None:
    for term in range(len(DF)):
        _, weights = collection.of(term)
        for depth, k in enumerate(DEPTHS):
            bound = collection.kth[term, depth] * (float(collection.best[term]) / (BINS - 1)) * (1 - 1e-6)
            if len(weights) < k or not collection.positive[term]:
                assert bound == 0
                continue
            true = np.sort(weights)[-k]
            assert true - 1.01 * weights.max() / (BINS - 1) <= bound <= true


def test_the_bound_of_a_block_is_its_greatest_weight_in_parts_of_the_best_rounded_up(collection: Collection) -> None:
    for term in np.flatnonzero(collection.row_of >= 0):
        docs, weights = collection.of(term)
        bounds = np.zeros(collection.rows.shape[1])
        np.maximum.at(bounds, docs // BLOCK, np.ceil(weights * (255 / float(weights.max()))))
        assert np.array_equal(collection.rows[collection.row_of[term]], np.minimum(bounds, 255))


def plain(collection: Collection, bag: dict[int, float], k: int, allowed: Any = None) -> list[tuple[float, int]]:
    """The k best (score, place of the id) of all documents or of the allowed ones, by sums over whole columns."""
    sums, hit = np.zeros(DOCUMENTS), np.zeros(DOCUMENTS, dtype=bool)
    for term, query_weight in sorted(bag.items()):
        docs, weights = collection.of(term)
        sums[docs] += query_weight * weights.astype(np.float64)
        hit[docs] = True
    hit &= True if allowed is None else allowed
    every = [(float(np.float32(sums[doc])), int(collection.rank[doc])) for doc in np.flatnonzero(hit)]
    return sorted(every, reverse=True)[:k]


def packed_of(c: Collection) -> tuple[NDArray[Any], ...]:
    """Bounds, offsets, documents and places of the lists, which have no codes."""
    offsets, long = list_offsets(c.bounds, c.row_of), int(np.diff(c.bounds)[c.row_of >= 0].sum())
    docs, places, starts = np.zeros(len(c.docs) - long, np.uint32), np.zeros(long, np.uint16), np.zeros_like(c.starts)
    no_codes, no_place_codes = np.zeros(0, np.uint16), np.zeros(0, np.uint8)
    inputs = map(fixed, (c.bounds, c.docs, np.zeros(len(c.docs), np.uint16), c.row_of, offsets, NO_WIDTHS))
    pack(*inputs, (docs, no_codes, places, no_place_codes), starts)
    own = np.unique(c.row_of[c.row_of >= 0])
    assert np.array_equal(starts[own], c.starts[own])
    return tuple(map(fixed, (c.bounds, offsets, docs, NO_CODES, places, NO_PLACE_CODES, NO_WIDTHS)))


def results(
    collection: Collection,
    bags: list[dict[int, float]],
    k: int,
    thresholds: bool = True,
    allowed: Any = NO_WORDS,
    candidates: NDArray[np.int32] | None = None,
    clauses_from: int | None = None,
) -> list[list[tuple[float, int]]]:
    """The same of the compiled search, with the k-th best weights or without, of the types that an index has: compiled once.

    Args:
        collection: The postings.
        bags: Query weights by term.
        k: Greatest number of documents.
        thresholds: Whether the k-th best weights are used.
        allowed: A mask.
        candidates: Documents that are looked up, instead of a mask.
        clauses_from: The first term that is given as a clause, with documents and weights of its own.
    """
    from fontes.lexical.lookup import search_few

    c, depth = collection, next((i for i, depth in enumerate(DEPTHS) if k <= depth and thresholds), -1)
    limits = *map(fixed, (c.best, c.kth, c.positive, c.row_of, c.rows, c.starts)), SAME_WEIGHTS
    postings = *packed_of(c), fixed(c.weights), NO_SATURATION, NO_REST
    ids, found = (fixed(c.rank), fixed(np.argsort(c.rank).astype(np.uint32))), []
    for weighted in bags:
        ordered = sorted((term, weight) for term, weight in weighted.items() if clauses_from is None or term < clauses_from)
        terms, weights = np.array([term for term, _ in ordered], dtype=np.int64), np.array([weight for _, weight in ordered])
        bag = terms, weights, np.ones(len(terms)), postings, limits, postings[1][terms]
        clauses: Any = None
        if clauses_from is not None:
            others = sorted(set(weighted) - set(terms.tolist()))
            lists = [c.of(term) for term in others] or [(np.zeros(0, np.int32), np.zeros(0, np.float32))]
            docs, own = map(np.concatenate, zip(*lists, strict=True))
            bounds = np.cumsum([0, *(len(docs) for docs, _ in lists[: len(others)])])
            clauses = bounds, fixed(docs), fixed(own), np.array([weighted[term] for term in others]), bounds[:-1].copy()
        counts, scores = np.zeros(1, dtype=np.int64), np.zeros((1, k), dtype=np.float32)
        docs, keys = np.zeros((1, k), dtype=np.int32), np.zeros((1, k if k > SORTED else 0), dtype=np.uint64)
        rows = counts, docs, scores, keys
        if candidates is None:
            search_bag(bag, clauses, allowed, ids, k, depth, np.float32(0), rows)
        else:
            search_few(bag, clauses, candidates, False, ids, k, rows)
        if k > SORTED:
            keys.sort(axis=1)
            best_first(keys, counts, ids[1], docs[0], scores[0])
        size = int(counts[0])
        found.append([(float(s), int(c.rank[d])) for s, d in zip(scores[0, :size], docs[0, :size], strict=True)])
    return found


@each("k", [1, 10, SORTED + 1, 1000])
@each("share", [0.0, 0.001, 0.1, 0.9, 1.0])
def test_the_best_k_of_allowed_documents_are_those_of_plain_sums(collection: Collection, k: int, share: float) -> None:
    draws = np.random.default_rng(k)
    mask = draws.random(DOCUMENTS) < share
    mask[5_000:9_000] = False  # whole blocks, and most of a window
    where = Filter("some", mask)
    bags: list[dict[int, float]] = [{}, {0: 1.0}, {13: 2.0}, {0: 0.5, 13: 0.25, 12: 1.0}, {9: -1.0, 4: 3.0, 11: 0.1}]
    for _ in range(6):
        terms = draws.choice(BELOW, draws.integers(1, 9), replace=False)
        bags.append({int(term): float(draws.integers(1, 8)) / 4 for term in terms})
    expected = [plain(collection, bag, k, mask) for bag in bags]
    for clauses_from in (None, 0, 5):
        assert results(collection, bags, k, False, where.words, None, clauses_from) == expected
        assert results(collection, bags, k, False, NO_WORDS, where.docs, clauses_from) == expected


@each("k", [1, 7, 10, 11, 100, SORTED, SORTED + 1, 1000, 1500])
def test_the_best_k_are_those_of_plain_sums(collection: Collection, k: int) -> None:
    draws = np.random.default_rng(k)
    bags: list[dict[int, float]] = [{}, {0: 1.0}, {13: 2.0}, {0: 0.5, 13: 0.25, 12: 1.0}, {9: 1.0}, {9: 1.0, 4: 3.0, 11: 0.1}]
    for _ in range(8):
        terms = draws.choice(BELOW, draws.integers(1, 9), replace=False)
        bags.append({int(term): float(draws.integers(1, 8)) / 4 * 1000.0 ** draws.integers(-1, 2) for term in terms})
    for clauses_from in (None, 0, 8):
        assert results(collection, bags, k, clauses_from=clauses_from) == [plain(collection, bag, k) for bag in bags]


@pytest.mark.parametrize("k", [3, 100, 3000])
def test_scores_of_any_sign_are_sums_over_every_document_that_has_a_term(collection: Collection, k: int) -> None:
    bags = [{BELOW: 1.0}, {ZERO: 1.0}, {2: -1.0}, {2: 1.0, 11: -0.5, 12: 0.25}, {BELOW: -1.0, 10: 1.0}, {5: 1e-30}, {9: -1e-60}]
    bags.append({9: -1e-60, 11: 1e-60})  # scores of -0.0 and 0.0 are equal
    for clauses_from in (None, 0, 9):
        assert results(collection, bags, k, clauses_from=clauses_from) == [plain(collection, bag, k) for bag in bags]


def test_many_equal_scores_are_told_apart_by_the_ids_alone(collection: Collection) -> None:
    equal = Collection(**{**vars(collection), "weights": np.full(len(collection.weights), 1.5, dtype=np.float32)})
    arrays = [np.zeros_like(array) for array in (equal.best, equal.kth, equal.positive, equal.rows)]
    summarize(0, len(DF), equal.bounds, fixed(equal.docs), equal.weights, fixed(equal.row_of), *arrays)
    equal = Collection(**{**vars(equal), **dict(zip(("best", "kth", "positive", "rows"), arrays, strict=True))})
    for k in (1, 10, 300):
        bags = [{12: 1.0}, {11: 1.0, 12: 1.0}, {9: 2.0, 10: 1.0, 2: 0.25}]
        assert results(equal, bags, k) == [plain(equal, bag, k) for bag in bags]


@each(("high", "thresholds"), [(0, True), (2 * WINDOW, True), (WINDOW + 640, True), (0, False)])
@each("k", [10, 100])
def test_what_cannot_be_among_the_best_by_its_bounds_is_not_looked_at(k: int, high: int, thresholds: bool) -> None:
    """Weights that grow after the bounds are made would be seen if they were looked at."""
    docs = np.concatenate([np.arange(100) + high, np.arange(300) + WINDOW])  # 100 that are good, 300 that are not
    weights = np.concatenate([np.full(100, 4.0), np.full(300, 3.9)]).astype(np.float32)
    order = np.argsort(docs)
    docs, weights, low = docs[order].astype(np.int32), weights[order], weights[order] < 4
    bounds, row_of = np.array([0, 400]), np.zeros(1, np.int32)
    best, kth, positive = np.zeros(1, np.float32), np.zeros((1, len(DEPTHS)), np.uint16), np.zeros(1, np.bool_)
    rows = np.zeros((1, 3 * WINDOW // BLOCK), np.uint8)
    summarize(0, 1, bounds, fixed(docs), weights, fixed(row_of), best, kth, positive, rows)
    starts = np.searchsorted(docs, np.arange(4) * WINDOW).astype(np.uint32)[None, :]
    rank = np.arange(3 * WINDOW, dtype=np.uint32)
    grown = np.where(low, 1e6, weights).astype(np.float32)
    made = Collection(bounds, docs, grown, row_of, best, kth, positive, rows, starts, rank)
    assert results(made, [{0: 2.0}], k, thresholds) == [[(8.0, doc) for doc in range(high + 99, high + 99 - k, -1)]]


@pytest.mark.parametrize("long", [False, True], ids=["bounds of lists", "bounds of rows"])
def test_a_bound_that_rounding_makes_less_than_the_score_does_not_hide_the_document(long: bool) -> None:
    """Bounds are sums of float32, scores are sums of float64 that are rounded once."""
    draws, terms, good, best_doc = np.random.default_rng(5), 40, 7, 2 * WINDOW + 9
    zero = np.float32(0)
    while True:
        weights, query = draws.gamma(2.0, 1.0, terms).astype(np.float32), draws.random(terms) + 0.1
        score = np.float32(np.sum(query * weights.astype(np.float64)))
        below, bound = np.nextafter(score, zero), zero
        for weight, query_weight in zip(weights, query, strict=True):
            bound += np.float32(query_weight * weight / 255) * np.float32(255) if long else weight * np.float32(query_weight)
        if bound < below:
            break
    docs = np.array([*[best_doc] * terms, good], dtype=np.int32)  # the last term is of the other document
    bounds, row_of = np.arange(terms + 2), np.full(terms + 1, -1, dtype=np.int32)
    row_of[:terms] = np.arange(terms) if long else -1
    best, kth = np.zeros(terms + 1, np.float32), np.zeros((terms + 1, len(DEPTHS)), np.uint16)
    positive, rows = np.zeros(terms + 1, np.bool_), np.zeros((terms, 3 * WINDOW // BLOCK), np.uint8)
    flat = np.append(weights, below)
    summarize(0, terms + 1, bounds, fixed(docs), flat, fixed(row_of), best, kth, positive, rows)
    starts = np.tile(np.array([0, 0, 0, 1], dtype=np.uint32), (terms, 1))
    rank = np.arange(3 * WINDOW, dtype=np.uint32)
    made = Collection(bounds, docs, flat, row_of, best, kth, positive, rows, starts, rank)
    bag = {**dict(enumerate(query.tolist())), terms: 1.0}
    assert results(made, [bag], 1) == [[(float(score), best_doc)]]
    assert results(made, [bag], 2) == [[(float(score), best_doc), (float(below), good)]]


def interpreted(function: Any) -> Any:
    """The function without its compiler, so that nothing is compiled for the sake of one test."""
    return getattr(function, "py_func", function)


def test_galloping_ends_at_the_first_document_that_is_not_before_the_one_sought() -> None:
    docs = np.array([3, 5, 6, 9, 14, 15, 21, 22, 23, 40, 41, 99], dtype=np.int32)
    for at in range(len(docs)):
        for end in range(at + 1, len(docs) + 1):
            for doc in range(int(docs[at]) + 1, 101):
                assert interpreted(kernel._skip)(docs, at, end, doc) == bisect.bisect_left(docs.tolist(), doc, at, end)


def test_selecting_moves_the_greatest_keys_to_the_front_with_the_least_of_them_last() -> None:
    draws = np.random.default_rng(2)
    for size in (1, 2, 3, 7, 60):
        for k in (1, 2, 3, 7, 20, 60):
            keys: Any = draws.permutation(1000)[:size].astype(np.uint64) << np.uint64(54)
            best = sorted(keys.tolist())[-k:]
            assert interpreted(select)(keys, size, k) == len(best)
            assert sorted(keys[: len(best)].tolist()) == best
            if size >= k:
                assert keys[k - 1] == best[0]


def test_the_six_highest_bits_tell_which_bit_is_set() -> None:
    for bit in range(64):
        assert kernel.BIT[(int(kernel.DEBRUIJN) << bit & (1 << 64) - 1) >> 58] == bit


@each("size", [1, 2, 3, 10, 200])
@each("order", ["drawn", "ascending", "descending"])
def test_the_greatest_keys_are_moved_to_the_front_and_the_least_of_them_stands_last(size: int, order: str) -> None:
    drawn = np.random.default_rng(size).permutation(1000)[:size].astype(np.uint64)
    keys = {"drawn": drawn, "ascending": np.sort(drawn), "descending": np.sort(drawn)[::-1].copy()}[order]
    for k in {1, 2, size // 2 + 1, size, size + 5}:
        own, expected = keys.copy(), np.sort(keys)[::-1][:k]
        assert select(own, size, k) == len(expected)
        assert np.array_equal(np.sort(own[: len(expected)])[::-1], expected)
        assert k > size or own[k - 1] == expected[-1]
        assert np.array_equal(np.sort(own), np.sort(keys))


@each("size", [0, 1, 2, 3, SORTED])
@each("order", ["drawn", "ascending", "descending"])
def test_keys_are_sorted_in_descending_order_and_those_after_them_are_left(size: int, order: str) -> None:
    drawn = np.random.default_rng(size).permutation(10_000)[:size].astype(np.uint64) << np.uint64(40)
    keys = {"drawn": drawn, "ascending": np.sort(drawn), "descending": np.sort(drawn)[::-1]}[order]
    rest = np.array([9, 11, 10], dtype=np.uint64)
    whole = np.concatenate([keys, rest])
    sort_keys(whole, size)
    assert np.array_equal(whole, np.concatenate([np.sort(keys)[::-1], rest]))
