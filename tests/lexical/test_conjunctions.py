"""The loops of conjunctions against plain sums: optional and excluded clauses, other lists, filters, many results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fontes.index import Index
from fontes.lexical.conjunctions import search_all, search_weighed
from fontes.lexical.impacts import impacts_of
from fontes.lexical.kernel import SORTED
from fontes.lexical.packed import Codes
from fontes.storage.arrays import fixed

DOCUMENTS = 400
NONE = np.zeros(0, np.int64)


def lists_of(draw: np.random.Generator, sizes: list[int]) -> tuple[list[dict[int, float]], tuple[NDArray[np.generic], ...]]:
    """Lists of random documents and weights, and their arrays: bounds, documents, weights. All have documents 0 and 399."""
    own = [np.union1d(draw.choice(DOCUMENTS, size, replace=False), [0, DOCUMENTS - 1]).astype(np.int32) for size in sizes]
    weights = [draw.normal(size=len(docs)).astype(np.float32) for docs in own]
    arrays = np.cumsum([0, *map(len, own)]), fixed(np.concatenate(own)), fixed(np.concatenate(weights))
    return [dict(zip(d.tolist(), w.tolist(), strict=True)) for d, w in zip(own, weights, strict=True)], arrays


@pytest.mark.parametrize("k", [1, 7, SORTED, SORTED + 1])
@pytest.mark.parametrize(
    ("numbers", "required", "excluded"),
    [
        ([0, 1, 2], [0, 1, 2], []),
        ([0, 1, 2], [2], []),
        ([0, 1, 2], [1, 2], [3]),
        ([3, 2, 1, 0], [1, 3], [4, -1]),
        ([0, -1, -2, 4], [1, 3], []),
        ([-3, 4, -2], [0, 1], [-1, 3]),
        ([4, 4], [0], [-2]),
    ],
)
def test_documents_and_scores_are_those_of_plain_sums(
    numbers: list[int], required: list[int], excluded: list[int], k: int
) -> None:
    draw = np.random.default_rng(k)
    (own, lists), (others, other) = lists_of(draw, [150, 120, 90, 8, 300]), lists_of(draw, [25, 60, 200])
    query_weights = draw.normal(size=len(numbers))
    ranks = draw.permutation(DOCUMENTS).astype(np.uint32)
    allowed = draw.random(DOCUMENTS) < 0.8
    for mask in (np.zeros(0, np.bool_), allowed):
        every = [own[number] if number >= 0 else others[~number] for number in numbers]
        out = [own[number] if number >= 0 else others[~number] for number in excluded]
        matching = [
            doc
            for doc in range(DOCUMENTS)
            if all(doc in every[i] for i in required) and not any(doc in one for one in out) and (not len(mask) or mask[doc])
        ]
        scores = {
            doc: np.float32(sum(weight * one[doc] for weight, one in zip(query_weights, every, strict=True) if doc in one))
            for doc in matching
        }
        best = sorted(matching, key=lambda doc: (-scores[doc], -int(ranks[doc])))
        ids = fixed(ranks), fixed(np.argsort(ranks).astype(np.uint32))
        found, values, keys = np.zeros(k, np.int32), np.zeros(k, np.float32), np.zeros(DOCUMENTS, np.uint64)
        clauses = np.array(numbers), query_weights, np.array(required), np.array(excluded) if excluded else NONE
        size = search_all(*clauses, lists, other, fixed(mask), ids, k, (found, values, keys))
        assert size == len(matching) > 0
        if k <= SORTED:
            count = min(k, size)
            assert found[:count].tolist() == best[:count]
            assert values[:count].tolist() == [float(scores[doc]) for doc in best[:count]]
        else:
            order = np.sort(keys[:size])[::-1] & np.uint64(0xFFFFFFFF)
            assert np.argsort(ranks)[order.astype(np.int64)].tolist() == best


def test_weights_of_a_clause_are_those_of_the_formula_and_finite() -> None:
    docs, tf = np.array([1, 4, 7], dtype=np.int32), np.array([1, 5, 2], dtype=np.int32)
    lengths, ranks = np.arange(10, dtype=np.float64), np.arange(10, dtype=np.uint32)
    results = np.zeros(3, np.int32), np.zeros(3, np.float32), np.zeros(0, np.uint64)
    idf, factor, k1, delta, constant, b, mean = 1.5, 2.2, 1.2, 0.25, 0.25, 0.75, 4.5
    parameters, ids = (idf, factor, k1, delta, constant, b, mean), (fixed(ranks), fixed(ranks))
    assert search_weighed(docs, tf, lengths, parameters, -2.0, ids, 3, results) == 3
    expected = [
        np.float32(-2.0 * np.float32(idf * (factor * f / (f + k1 * (constant + b * lengths[doc] / mean)) + delta)))
        for doc, f in zip(docs, tf, strict=True)
    ]
    order = np.argsort(-np.array(expected), kind="stable")
    assert results[0].tolist() == docs[order].tolist()
    assert results[1].tolist() == [float(expected[i]) for i in order]
    infinite = (np.inf, *parameters[1:])
    assert search_weighed(docs, tf, lengths, infinite, 1.0, ids, 3, results) == 0


def test_codes_are_of_the_most_frequent_pairs_that_a_table_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.lexical.packed.PAIRS", 12)  # tf of 0 to 3 for each of three lengths
    lengths = np.array([5, 9, 5, 7, 9], dtype=np.int32)
    codes = Codes(lengths)
    docs, tf = np.array([0, 2, 0, 1, 3, 3, 4, 1], dtype=np.int32), np.array([1, 1, 2, 3, 4, 3, 3, 3], dtype=np.int32)
    codes.count(docs, tf)
    pairs = list(zip(*codes.pairs.tolist(), strict=True))
    assert pairs[0] == (0, 0)
    assert pairs[1] == (3, 9)  # three postings
    assert set(pairs[2:]) == {(1, 5), (2, 5), (3, 7)}
    assert pairs[2] == (1, 5)  # two
    assert [pairs[code] for code in codes.of(docs, tf).tolist()] == [
        (1, 5),
        (1, 5),
        (2, 5),
        (3, 9),
        (0, 0),  # tf 4 has no cell
        (3, 7),
        (3, 9),
        (3, 9),
    ]
    assert codes.covered == 7 / 8


def test_postings_have_weights_of_their_own_where_few_have_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build([("a", "tea tea milk"), ("b", "tea"), ("c", "milk")], tmp_path / "i")
    expected = index.bm25()({"1": "tea milk"})
    monkeypatch.setattr("fontes.lexical.packed.PAIRS", 1)  # no tf has a cell
    again = Index.open(index.path)
    found = impacts_of(again, again.bm25().weighting)
    assert found.curve is None
    assert len(found.weights) == found.lists.bounds[-1] == 4
    assert again.bm25()({"1": "tea milk"}) == expected
