"""Topics that bring the weights of their terms."""

import numpy as np
import pytest
from support.each import each

from fontes.core import Topic
from fontes.index import Index


def test_a_negative_weight_lowers_and_a_weight_of_zero_does_nothing(index):
    plain = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0}), 5_000)}
    with_zero = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0, "w2": 0}), 5_000)}
    lowered = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0, "w2": -1.0}), 5_000)}
    assert with_zero == plain
    both = [doc for doc in plain if lowered[doc] != plain[doc]]
    assert both
    assert all(lowered[doc] < plain[doc] for doc in both)
    only = index.bm25(k=5_000).search(Topic("t", "", weights={"w2": -1.0}), 5_000)
    assert len(only) > 0
    assert all(hit.score < 0 for hit in only)


@pytest.mark.parametrize("weight", [0.5, 8.0, 9])
def test_k3_saturates_a_negative_weight_as_it_does_a_positive_one(index, weight):
    scores = []
    for sign in (1, -1):
        ranking = index.bm25(k3=8, k=5_000).search(Topic("t", "", weights={"w1": sign * weight}), 5_000)
        scores.append({hit.id: sign * hit.score for hit in ranking})
    assert scores[0] == scores[1]
    assert all(0 < score < np.inf for score in scores[0].values())


@each("weight", [1e-8, 1e-30, 1e-44, 1e-100, 1e-303, -1e-100])
def test_a_document_that_matches_with_a_tiny_weight_is_returned(index, weight):
    usual = index.bm25(k=5_000).search("w1", 5_000)
    found = index.bm25(k=5_000).search(Topic("t", "", weights={"w1": weight}), 5_000)
    assert sorted(found.ids) == sorted(usual.ids)


def test_weights_are_those_of_terms_as_the_analyzer_writes_them(tmp_path):
    foxes = Index.build([("1", "foxes"), ("2", "dog")], tmp_path / "x")
    assert foxes.bm25().search(Topic("t", "dog", weights={"fox": 1.0})).ids == ["1"]
    assert foxes.bm25().search(Topic("t", "dog", weights={"foxes": 1.0})).ids == []
    assert foxes.bm25().search(Topic("t", "dog", weights={})).ids == []
