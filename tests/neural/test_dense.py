"""Dense retrieval: exact whatever the shapes, and errors that name what is at fault."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from support.hashed_encoder import Hashed, Parts, made_docs, queries
from support.pairs import every_other

from fontes.core import Topic, Topics
from fontes.core.values import Doc
from fontes.index import Index
from fontes.index.embeddings import encoding
from fontes.neural.dense import vectors


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    made = Index.build(made_docs(), tmp_path_factory.mktemp("dense") / "x", analyzer="whitespace")
    made.encode(Hashed())
    return made


def expected(index: Index, encoder: Hashed, query: str, k: int) -> list[tuple[str, np.float32]]:
    """By definition: the inner products in float64, rounded, in the one order."""
    docs = index.docs(index.ids.tolist())
    found = encoder.encode_documents(docs).astype(np.float64) @ encoder.encode_queries([query])[0].astype(np.float64)
    return sorted(((np.float32(s), doc.id) for s, doc in zip(found, docs, strict=True)), reverse=True)[:k]


def test_the_best_documents_have_the_greatest_inner_products(index):
    for query in list(queries().values())[:10]:
        ranking = index.dense(Hashed(), k=25).search(query, 25)
        assert [(score, doc_id) for doc_id, score, _ in ranking] == expected(index, Hashed(), query, 25)


@pytest.mark.parametrize(
    ("encoder", "dtype"),
    every_other(
        [Hashed(), Hashed(dim=37), Hashed(length=None), Parts(dim=24)], ["float32", "float16", "int8", "rabitq1", "rabitq4"]
    ),
)
def test_batch_threads_and_k_do_not_change_a_single_bit_of_a_run(index, encoder, dtype, monkeypatch):
    index.encode(encoder, dtype=dtype)
    dense = index.dense(encoder, k=1000, dtype=dtype)
    run = dense(queries())
    assert run == dense.with_(threads=1)(queries())
    assert run == dense.with_(threads=3)(queries())
    for topic, text in queries().items():
        alone = dense({topic: text})
        assert alone[topic].ids == run[topic].ids
        assert alone[topic].scores.tobytes() == run[topic].scores.tobytes()
    for k in (1, 10, 100):
        assert (dense % k)(queries()) == run.top(k)
    monkeypatch.setattr(vectors, "SCORES", 1 << 10)
    monkeypatch.setattr(vectors, "QUERIES", 7)
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 64)
    monkeypatch.setattr(vectors, "THREAD_WORK", 1)  # so that threads share these few
    for threads in (1, 2, 3):
        assert dense.with_(threads=threads)(queries()) == run
        assert (
            dense.with_(threads=threads).search("w1 w2", 1000).scores.tobytes() == dense.search("w1 w2", 1000).scores.tobytes()
        )
    assert (dense % 10)(queries()) == run.top(10)


@pytest.mark.slow
def test_products_meet_a_threshold_before_the_candidate_buffer_is_full():
    products = np.random.default_rng(2).standard_normal((3, 4000)).astype(np.float32)
    state = vectors.VectorCandidates.of(3, 5000, np.zeros(3))
    bounds, ordinals = np.zeros(0, np.int64), np.arange(4000, dtype=np.int32)
    for first in range(0, 4000, 1000):
        block = products[:, first : first + 1000]
        vectors._gather_all(block, bounds, ordinals[first : first + 1000], 0, 0, 10, state.arrays)
    for query in range(3):
        docs, values = state.of_query(query)
        assert len(docs) < 100
        assert set(np.argsort(-products[query])[:10]) <= set(docs.tolist())
        assert values.tolist() == products[query, docs].tolist()


def test_the_kth_greatest_product_is_that_of_sorting():
    draws = np.random.default_rng(3)
    for size in (1, 2, 3, 7, 60):
        for _ in range(20):
            products = draws.integers(0, size, size).astype(np.float32)
            k = int(draws.integers(1, size + 1))
            assert vectors._kth_greatest(products.copy(), k) == np.sort(products)[-k]


def test_documents_within_the_error_of_matrix_products_are_ordered_by_exact_scores(tmp_path):
    # Thousands of documents within one rounding error of each other, more than the buffer of candidates holds.
    count, dim, k = 9_000, 64, 10
    draw = np.random.default_rng(1)
    base = draw.standard_normal(dim)
    table = (base + 1e-7 * draw.standard_normal((count, dim))).astype(np.float32)

    @dataclass(frozen=True)
    class Near(Hashed):
        def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
            return table[[int(doc.text) for doc in docs]]

        def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
            return np.tile(base.astype(np.float32), (len(texts), 1))

    near = Index.build([(f"d{n}", str(n)) for n in range(count)], tmp_path / "x")
    near.encode(Near(dim))
    scores = (table.astype(np.float64) @ base.astype(np.float32).astype(np.float64)).astype(np.float32)
    best = sorted(((score, f"d{n}") for n, score in enumerate(scores)), reverse=True)[:k]
    ranking = near.dense(Near(dim), k=k).search("x", k)
    assert [(score, doc_id) for doc_id, score, _ in ranking] == best
    assert len(np.unique(scores)) < count // 100  # ties in abundance


def test_equal_documents_are_ordered_by_id_descending(tmp_path):
    index = Index.build([(f"d{n}", "same words") for n in range(5_000)], tmp_path / "x")
    index.encode(Hashed())
    found = index.dense(Hashed(), k=7).search("words", 7)
    assert found.ids == sorted((f"d{n}" for n in range(5_000)), reverse=True)[:7]
    assert len(set(found.scores)) == 1


def test_the_error_bound_holds_for_the_products_of_this_machine():
    draw = np.random.default_rng(2)
    for dim in (3, 64, 384, 1024):
        a, b = (draw.standard_normal((50, dim)).astype(np.float32) for _ in range(2))
        true = a.astype(np.float64) @ b.astype(np.float64).T
        n = dim + 4
        bound = (
            n
            * vectors.UNIT
            / (1 - n * vectors.UNIT)
            * np.outer(*(np.linalg.norm(x.astype(np.float64), axis=1) for x in (a, b)))
        )
        assert np.all(np.abs((a @ b.T).astype(np.float64) - true) <= bound)


def test_a_document_with_several_vectors_has_the_greatest_of_their_scores(index):
    encoder = Parts(dim=24)
    index.encode(encoder, dtype="float32")
    docs = index.docs(index.ids.tolist())
    table, bounds = encoder.encode_documents_parts(docs)
    for query in list(queries().values())[:5]:
        products = table.astype(np.float64) @ encoder.encode_queries([query])[0].astype(np.float64)
        best = [np.float32(products[a:b].max()) for a, b in itertools.pairwise(bounds)]
        ranked = sorted(((s, doc.id) for s, doc in zip(best, docs, strict=True)), reverse=True)[:30]
        found = index.dense(encoder, dtype="float32").search(query, 30)
        assert [(score, doc_id) for doc_id, score, _ in found] == ranked


def test_a_document_without_words_and_a_query_without_words_find_nothing(tmp_path):
    index = Index.build([("a", "red fox"), ("b", ""), ("c", "blue whale")], tmp_path / "x")
    index.encode(Hashed())
    dense = index.dense(Hashed())
    assert sorted(dense.search("red", 10).ids) == ["a", "c"]
    run = dense({"1": "  ", "2": "fox", "3": ""})
    assert [len(run[t]) for t in run] == [0, 2, 0]
    assert dense({}).rows == 0
    assert len(dense({"1": ""})["1"]) == 0


def test_an_index_without_documents_can_be_encoded_and_searched(tmp_path):
    index = Index.build([], tmp_path / "x")
    index.encode(Hashed())
    assert len(index.dense(Hashed()).search("fox", 5)) == 0
    index.check()


def test_a_rewritten_topic_is_searched_by_its_text(index):
    topic = Topic("1", "w1 w2", weights={"w3": 1.0}, origin=Topic("1", "w9"))
    assert index.dense(Hashed())(Topics([topic]))["1"].ids == index.dense(Hashed()).search("w1 w2", 1000).ids


def test_a_query_is_encoded_by_itself_and_once(index):
    asked: list[list[str]] = []

    @dataclass(frozen=True)
    class Listed(Hashed):
        fingerprint = Hashed().fingerprint

        def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
            asked.append(list(texts))
            return Hashed().encode_queries(texts)

    dense = index.dense(Listed())
    dense({"1": "w1", "2": "w2", "3": "w1"})
    dense.with_(k=5)({"1": "w2", "2": "w3"})
    assert asked == [["w1"], ["w2"], ["w3"]]


def test_runs_with_an_encoder_of_ones_own_are_not_kept(index):
    assert index.dense(Hashed()).key() is None


def test_an_explanation_has_the_score_of_the_run(index):
    for encoder in (Hashed(), Parts(dim=24)):
        index.encode(encoder)
        for dtype in ("float32", "int8"):
            index.encode(encoder, dtype=dtype)
            dense = index.dense(encoder, dtype=dtype)
            hit = dense.search("w1 w2 w3", 5)[3]
            explanation = dense.explain("w1 w2 w3", hit.id)
            assert explanation.value == hit.score
            length_of_query, length, cosine = (part.value for part in explanation.parts[:3])
            assert length_of_query * length * cosine == pytest.approx(hit.score)
    assert "number of the nearest" in str(explanation)
    assert dense.explain("", hit.id).value == 0


def test_hybrids_weight_and_sum_lexical_and_dense_scores(index):
    bm25, dense = index.bm25(), index.dense(Hashed())
    hybrid = bm25 % 100 + 0.3 * (dense % 100)
    run, a, b = hybrid(queries()), (bm25 % 100)(queries()), (dense % 100)(queries())
    for topic in run:
        scores: dict[str, float] = {}
        for hit in a[topic]:
            scores[hit.id] = hit.score
        for hit in b[topic]:
            scores[hit.id] = scores.get(hit.id, 0.0) + 0.3 * hit.score
        assert {hit.id: hit.score for hit in run[topic]} == {d: float(np.float32(s)) for d, s in scores.items()}
    first = hybrid.search("w1 w2", 1)[0]
    assert hybrid.explain("w1 w2", first.id).value == pytest.approx(first.score)


def test_k_is_pushed_down_and_tuning_makes_copies(index):
    dense = index.dense(Hashed())
    assert (dense % 10) == dense.with_(k=10)
    assert dense % 5000 == dense.with_(k=5000)
    assert (dense % 10) % 5000 == dense % 10
    assert dense.with_(algorithm="hnsw") == index.dense(Hashed(), algorithm="hnsw")
    assert dataclasses.replace(dense, k=3).k == 3
    assert repr(index.dense(Hashed(), algorithm="hnsw", ef_search=64)).endswith('algorithm="hnsw", ef_search=64)')


def test_the_vectors_of_a_run_are_named_in_its_provenance(index):
    run = index.dense(Hashed())(queries())
    assert run.provenance["exact"]
    assert run.provenance["encoder"] == Hashed().fingerprint
    assert run.provenance["vectors"] == index.embeddings(Hashed()).meta["digest"]


def test_a_block_of_int8_keeps_127_steps_of_the_greatest_magnitude():
    job = encoding.SegmentEncodingJob("f", "e", None, 3, "int8", ["a", "b"], lambda *_: (np.zeros((0, 3)), np.zeros(1)))
    given = np.array([[1.0, -0.5, 0.004], [0, 0, 0]], np.float32)
    kept, norms, scales, counts = encoding.quantized(given, np.arange(3), job, 0, 2)
    assert kept.tolist() == [[127, -64, 1], [0, 0, 0]]
    assert scales[0] == np.float32(1 / 127)
    assert norms[1] == 0
    assert counts.tolist() == [1, 1]
