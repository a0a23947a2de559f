"""Learned sparse vectors: given term weights in place of texts."""

import numpy as np

from fontes import Index, Topic

DOCS = [
    {"_id": "a", "text": "A cat.", "vector": {"cat": 1.5, "##s": 0.25}},
    {"_id": "b", "text": "Dogs.", "vector": {"dog": 2, "##s": 0.5}},
    {"_id": "c", "text": "Nothing.", "vector": {}},
]


def test_a_score_is_the_dot_product_of_the_given_weights(tmp_path):
    index = Index.build(DOCS, tmp_path / "v.index", vectors="vector")
    index.check()
    ranking = index.learned_sparse().search(Topic("1", "", weights={"##s": 2.0, "cat": 1.0, "unknown": 9.0}))
    assert [(hit.id, hit.score) for hit in ranking] == [("a", 2.0), ("b", 1.0)]
    assert index.learned_sparse().explain(Topic("1", "", weights={"##s": 2.0, "cat": 1.0}), "a").value == 2.0
    assert index.doc("a").metadata["vector"] == DOCS[0]["vector"]


def test_random_vectors_rank_as_their_dot_products(tmp_path):
    draws = np.random.default_rng(3)
    weights = np.round(draws.gamma(0.3, 1.0, (3000, 40)), 2)
    docs = [
        {"_id": f"{i:04}", "text": "", "vector": {f"t{j}": float(w) for j, w in enumerate(row) if w}}
        for i, row in enumerate(weights)
    ]
    index = Index.build(docs, tmp_path / "v.index", vectors="vector")
    query = {f"t{j}": float(q) for j, q in enumerate(draws.gamma(1.0, 1.0, 40))}
    found = index.learned_sparse(k=50).search(Topic("1", "", weights=query), 50)
    products = weights @ np.array(list(query.values()))
    assert [hit.id for hit in found] == [f"{i:04}" for i in np.argsort(-products)[:50]]
    assert np.allclose(found.scores, np.sort(products)[::-1][:50], rtol=1e-6)
