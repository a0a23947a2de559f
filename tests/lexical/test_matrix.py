"""The weights of an index as a sparse matrix: those of the formulas in numpy, and those that searches sum."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each

from fontes.index import Index

TEXTS = ["fire fire harbour", "harbour boat race boat boat", "fire boat", "", "storm harbour fire storm", "regatta"]
QUERY = "fire boat boat unknown"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    docs = [(f"d{n}", text) for n, text in enumerate(TEXTS[:4])]
    index = Index.build([*docs, ("gone", "fire storm")], tmp_path_factory.mktemp("m") / "x.index", analyzer="whitespace")
    index.add([(f"d{n}", text) for n, text in enumerate(TEXTS[4:], 4)])
    index.delete(["gone"])
    return index


def counts(index: Index) -> NDArray[np.float64]:
    """How often each document has each term."""
    return np.array([[TEXTS[int(doc_id[1:])].split().count(term) for term in index.terms] for doc_id in index.ids], dtype=float)


def test_the_matrix_of_tf_idf_has_rows_of_unit_length(index: Index) -> None:
    tf = counts(index)
    weights = tf * np.log(len(tf) / np.count_nonzero(tf, axis=0))
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    weights = np.divide(weights, length, out=np.zeros_like(weights), where=length > 0)
    matrix = index.tfidf().matrix()
    assert (matrix.shape, matrix.dtype, matrix.format) == ((6, len(index.terms)), np.float32, "csr")
    np.testing.assert_allclose(matrix.toarray(), weights, rtol=1e-6)


def test_the_matrix_of_bm25_is_the_formula_of_the_course(index: Index) -> None:
    tf, k1, b = counts(index), 1.2, 0.75
    length = tf.sum(axis=1, keepdims=True)
    idf = np.log(len(tf) / np.count_nonzero(tf, axis=0))
    weights = idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b * length / length.mean()))
    stage = index.bm25(variant="atire", k1=k1, b=b, k3=1.2)
    np.testing.assert_allclose(stage.matrix().toarray(), weights, rtol=1e-6)
    terms = list(index.terms)
    query = np.zeros(len(terms))
    query[terms.index("fire")], query[terms.index("boat")] = 2.2 * 1 / (1.2 + 1), 2.2 * 2 / (1.2 + 2)
    np.testing.assert_allclose(stage.vector(QUERY), query, rtol=1e-15)


@each(
    ("model", "options"),
    [
        ("tfidf", {}),
        ("tfidf", {"norm": None, "sublinear_tf": True, "smooth_idf": True}),
        ("bm25", {}),
        ("bm25", {"variant": "atire", "k1": 1.2, "b": 0.75, "k3": 1.2}),
        ("bm25", {"variant": "plus", "lengths": "lucene"}),
        ("ql", {}),
    ],
)
def test_the_product_with_the_vector_of_a_query_is_its_scores(index: Index, model: str, options: dict[str, Any]) -> None:
    stage = getattr(index, model)(**options)
    scores = (stage.matrix() @ stage.vector(QUERY)).astype(np.float32)
    ids = list(index.ids)
    ranking = stage.search(QUERY, 10)
    assert len(ranking) == 4
    assert {hit.id: np.float32(hit.score) for hit in ranking} == {hit.id: scores[ids.index(hit.id)] for hit in ranking}


def test_a_matrix_has_a_row_for_each_document_that_was_added(tmp_path: Any) -> None:
    index = Index.build([("a", "fire"), ("b", "boat")], tmp_path / "x.index", analyzer="whitespace")
    assert index.bm25().matrix().shape == (2, 2)
    index.add([("c", "storm")])
    assert index.bm25().matrix().shape == (3, 3)
