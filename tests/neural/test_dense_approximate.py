"""Approximate dense retrieval: its recall is measured, its index is kept, and its scores are exact."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.hashed_encoder import Hashed, Parts, made_docs, queries

from fontes.index import Index
from fontes.neural.dense import ann
from fontes.neural.dense.graph import WalkLimits
from fontes.neural.dense.vectors import worth_rescoring


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    made = Index.build(made_docs(), tmp_path_factory.mktemp("dense") / "x", analyzer="whitespace")
    made.encode(Hashed())
    return made


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    """A cache in which no test before has built anything."""
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("algorithm", ["hnsw", "IVF16,Flat", "PCA16,IVF4,PQ4x4", "Flat", "annoy:20"])
def test_approximate_search_caches_its_index_and_gives_exact_scores(index, own_cache, algorithm, caplog):
    if algorithm.startswith("annoy"):
        pytest.importorskip("annoy")
    index = Index.open(index.path)  # which keeps no approximate index of another test
    names = {file.name for file in index.path.rglob("*")}
    dense = index.dense(Hashed(), algorithm=algorithm, k=20, threads=1)  # with more a graph may be another one
    with caplog.at_level(logging.WARNING, "fontes.neural"):
        run = dense(queries())
    assert f"{algorithm} over 700 vectors" in caplog.text
    facts = run.provenance["approximate"]
    assert not run.provenance["exact"]
    assert facts["recall"] == dense.recall()
    whole = index.dense(Hashed(), k=1000)(queries())
    scores = whole.to_dict()
    for topic, ranking in run.items():
        assert all(scores[topic][hit.id] == hit.score for hit in ranking)
        places = [whole[topic].ids.index(hit.id) for hit in ranking]
        assert places == sorted(places)
    caplog.clear()
    again = Index.open(index.path)
    assert again.dense(Hashed(), algorithm=algorithm, k=20)(queries()) == run
    assert caplog.text == ""  # it was not built again
    assert [stored["algorithm"] for stored in again.info()["vectors"][0]["approximate"]] == [algorithm]
    stored = next(own_cache.rglob("index"))
    first = stored.read_bytes()
    stored.write_bytes(first[:100])
    anew = Index.open(index.path).dense(Hashed(), algorithm=algorithm, k=20, threads=1)
    assert anew(queries()) == run
    assert stored.read_bytes() == first
    again.check()
    assert {file.name for file in index.path.rglob("*")} == names  # an index brings no file that FAISS or Annoy reads


@pytest.mark.parametrize(("algorithm", "linked"), [("PCA8,HNSW8", 3), ("IVF4,Flat", 1)])
def test_a_graph_of_faiss_is_linked_by_as_many_threads_as_search(tmp_path, own_cache, monkeypatch, algorithm, linked):
    threads: list[int | None] = []
    held = ann.faiss_threads
    monkeypatch.setattr(ann, "faiss_threads", lambda count: threads.append(count) or held(count))
    index = Index.build(made_docs(200), tmp_path / "x")
    index.encode(Hashed())
    index.dense(Hashed(), algorithm=algorithm, threads=3).search("w1")
    assert threads[0] == linked


def test_one_query_is_answered_as_in_a_run(index, tmp_path):
    several = Index.build(made_docs(), tmp_path / "x")
    several.encode(Parts())
    for searched, encoder in ((index, Hashed()), (several, Parts())):
        for algorithm in ("flat", "hnsw", "IVF16,Flat", "PCA16,IVF4,PQ4x4"):
            dense = searched.dense(encoder, algorithm=algorithm, k=30)
            run = (dense % 7)(queries(6))
            for topic, text in queries(6).items():
                ranking = dense.search(text, 7)
                assert ranking.ids == run[topic].ids
                assert ranking.scores.tobytes() == run[topic].scores.tobytes()
            assert ranking.topic.text == text
            assert ranking.docs()[0].id == ranking.ids[0]
            assert dense.search(" ").ids == []
            assert len(dense.search(text, 50)) == 30


def test_a_stage_that_has_searched_sees_vectors_that_are_stored_later(tmp_path):
    index = Index.build(made_docs(), tmp_path / "x")
    index.encode(Hashed(), dtype="int8")
    for algorithm in ("flat", "hnsw"):
        dense = index.dense(Hashed(), algorithm=algorithm)
        dense.search("w1 w2")
        dense.search("w1 w2")
    index.encode(Hashed(), dtype="float32")  # more exact ones
    expected = Index.open(tmp_path / "x").dense(Hashed(), dtype="float32").search("w1 w2")
    for algorithm in ("flat", "hnsw"):
        assert dense.with_(algorithm=algorithm).search("w1 w2").scores.tobytes() == expected.scores.tobytes()
    assert dense.search("w1 w2").scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("algorithm", ["Flat", "IVF1,Flat", "hnsw"])
def test_documents_with_equal_products_in_the_graph_are_ordered_by_exact_scores(tmp_path, algorithm):
    """Of the rows that come back, those that may be among the best get their exact scores: not the first k alone."""
    count, dim, k = 90, 64, 10
    draw = np.random.default_rng(1)
    base = draw.standard_normal(dim)
    table = (base + 1e-6 * draw.standard_normal((count, dim))).astype(np.float32)

    class Near(Hashed):
        def encode_documents(self, docs):
            return table[[int(doc.text) for doc in docs]]

        def encode_queries(self, texts):
            return np.tile(base.astype(np.float32), (len(texts), 1))

    index = Index.build([(f"d{n}", str(n)) for n in range(count)], tmp_path / "x")
    index.encode(Near(dim))
    scores = (table.astype(np.float64) @ base.astype(np.float32).astype(np.float64)).astype(np.float32)
    best = sorted(((score, f"d{n}") for n, score in enumerate(scores)), reverse=True)[:k]
    ranking = index.dense(Near(dim), algorithm=algorithm, k=k).search("x", k)
    assert [(score, doc_id) for doc_id, score, _ in ranking] == best


def test_only_rows_that_can_be_among_the_best_are_scored_again(index):
    longest = index.embeddings(Hashed()).longest
    query = Hashed().encode_queries(["w1 w2"])[0]
    # 2 n u |q| |d| with n = 32 + 4, u = 2^-24, |q| = |d| = 1: 4.3e-6
    products = np.array([0.9, 0.5, 0.5 - 4e-6, 0.5 - 5e-6, 0.1], dtype=np.float32)
    assert [worth_rescoring(query, products, k, longest) for k in (1, 2, 3, 4, 5, 9)] == [1, 3, 4, 4, 5, 5]


def test_a_folder_cache_in_an_index_is_not_read(tmp_path, own_cache, monkeypatch):
    index = Index.build(made_docs(100), tmp_path / "x")
    index.encode(Hashed())
    index.dense(Hashed(), algorithm="Flat").search("w1")
    shutil.copytree(own_cache / "approximate", tmp_path / "x" / "cache")
    shutil.rmtree(own_cache)
    monkeypatch.setattr("fontes.neural.dense.ann.Faiss.load", lambda *a: pytest.fail("a file of the index was read"))
    opened = Index.open(tmp_path / "x")
    opened.dense(Hashed(), algorithm="Flat").search("w1")
    assert len(list(own_cache.rglob("index"))) == 1


def test_an_approximate_index_of_other_vectors_or_settings_is_another_one(tmp_path, own_cache):
    for name, dim, algorithm in (("a", 8, "hnsw"), ("a", 8, "Flat"), ("b", 8, "Flat"), ("c", 16, "Flat")):
        index = Index.build(made_docs(100 if name == "a" else 99), tmp_path / name, overwrite=True, drop_vectors=True)
        index.encode(Hashed(dim=dim))
        index.dense(Hashed(dim=dim), algorithm=algorithm).search("w1")
    assert len(list(own_cache.rglob("index"))) == 4


def test_an_approximate_index_over_damaged_vectors_is_not_kept(tmp_path, own_cache):
    index = Index.build(made_docs(100), tmp_path / "x")
    index.encode(Hashed())
    file = next(index.path.rglob("vectors.npy"))
    content = file.read_bytes()
    file.write_bytes(content[:-4] + b"\0\0\0\0")  # of the size that the metadata say
    Index.open(tmp_path / "x").dense(Hashed(), algorithm="Flat").search("w1")
    assert not list(own_cache.rglob("index"))
    file.write_bytes(content)
    Index.open(tmp_path / "x").dense(Hashed(), algorithm="Flat").search("w1")
    assert len(list(own_cache.rglob("index"))) == 1


def test_the_approximate_indexes_used_longest_ago_go(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr("fontes.neural.dense.ann.CACHE.limit", 1)
    for count in (100, 90):
        index = Index.build(made_docs(count), tmp_path / str(count))
        index.encode(Hashed())
        index.dense(Hashed(), algorithm="Flat").search("w1")
        for folder in (own_cache / "approximate").iterdir():
            os.utime(folder, (count, count))
    assert len(list(own_cache.rglob("index"))) == 1


@pytest.mark.parametrize(("algorithm", "dtype"), [("IVF64,Flat", "float32"), ("annoy:1", "float32"), ("IVF64,Flat", "int8")])
def test_the_recall_is_the_share_of_the_best_by_plain_products_that_the_search_finds(tmp_path, own_cache, algorithm, dtype):
    if algorithm.startswith("annoy"):
        pytest.importorskip("annoy")
    docs = made_docs(900, longest=20)
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace")
    index.encode(Hashed(), dtype=dtype)
    dense = index.dense(Hashed(), algorithm=algorithm, dtype=dtype)
    # 200 documents from the first to the last, their first 12 words, and products in float64 of what is stored.
    texts = [" ".join(docs[int(place)][1].split()[:12]) for place in np.linspace(0, 899, 200).astype(int)]
    folder = next(index.path.glob("segment-*/vectors-*"))
    stored = np.load(folder / "vectors.npy").astype(np.float64)
    if dtype == "int8":
        stored = stored * np.load(folder / "scales.npy")[:, None].astype(np.float64)
    products = Hashed().encode_queries(texts).astype(np.float64) @ stored.T
    expected = {}
    for depth in (10, 100):
        best = [{docs[i][0] for i in np.argsort(-row, kind="stable")[:depth]} for row in products]
        hits = [set(dense.search(text, depth).ids) for text in texts]
        expected[f"R@{depth}"] = np.mean([len(a & b) / depth for a, b in zip(best, hits, strict=True)])
    recall = dense.recall()
    assert recall["R@10"] == pytest.approx(expected["R@10"], abs=1e-3)  # equal products may go either way
    assert recall["R@100"] == pytest.approx(expected["R@100"], abs=1e-3)
    assert recall["R@100"] < 0.95
    assert abs(recall["R@10"] - recall["R@100"]) > 0.005  # so that one cannot stand for the other
    assert dense("w1").provenance["approximate"]["recall"] == recall


@pytest.mark.slow
def test_a_rotation_for_product_quantization_is_deterministic_and_gives_no_warning(tmp_path, monkeypatch, capfd):
    encoder = Hashed(dim=8)
    runs, files = [], []
    for name in ("a", "b"):
        monkeypatch.setenv("FONTES_CACHE", str(tmp_path / f"cache-{name}"))
        index = Index.build(made_docs(300), tmp_path / name)
        index.encode(encoder)
        runs.append(index.dense(encoder, algorithm="OPQ2,IVF8,PQ2x4", k=10)(queries(10)))
        files.append(next((tmp_path / f"cache-{name}").rglob("index")).read_bytes())
    assert runs[0] == runs[1]
    assert files[0] == files[1]
    assert "WARNING" not in "".join(capfd.readouterr())


def test_more_visited_lists_find_more(index):
    dense = index.dense(Hashed(), algorithm="IVF64,Flat", k=10)
    recalls = [dense.with_(nprobe=lists).recall()["R@10"] for lists in (1, 8, 64)]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[2] == 1.0


@pytest.mark.parametrize("trees", [1, 3, 50])
def test_annoy_searches_a_forest_of_as_many_trees_as_are_asked_for(index, own_cache, trees):
    annoy = pytest.importorskip("annoy")
    vectors = np.load(next(index.path.glob("segment-*/vectors-*/vectors.npy")))
    forest = annoy.AnnoyIndex(32, "angular")
    forest.set_seed(7)
    for row, vector in enumerate(vectors):
        forest.add_item(row, vector)
    forest.build(trees, 1)
    opened = Index.open(index.path)  # which keeps no forest of another test
    run = opened.dense(Hashed(), algorithm=f"annoy:{trees}", k=10)(queries())
    for topic, text in queries().items():
        query = Hashed().encode_queries([text])[0]
        rows = forest.get_nns_by_vector(query, 100)  # the candidates of a search for 10, of which the best 10 stay
        products = {index.ids[row]: float(vectors[row].astype(np.float64) @ query.astype(np.float64)) for row in rows}
        best = sorted(products, key=lambda doc: (-np.float32(products[doc]), doc), reverse=False)[:10]
        assert set(run[topic].ids) == set(best)
        assert [hit.score for hit in run[topic]] == pytest.approx(sorted(products.values(), reverse=True)[:10], abs=1e-6)
    stored = annoy.AnnoyIndex(32, "angular")
    stored.load(str(next(own_cache.rglob("index"))))
    assert stored.get_n_trees() == trees


@pytest.mark.slow
def test_more_of_annoys_trees_find_more(index, own_cache):
    pytest.importorskip("annoy")
    recalls = [index.dense(Hashed(), algorithm=f"annoy:{trees}").recall()["R@100"] for trees in (1, 4, 64)]
    assert recalls == sorted(recalls)
    assert recalls[2] - recalls[0] > 0.2


@pytest.mark.slow
def test_an_approximate_search_of_several_vectors_a_document_gives_documents_once(index):
    encoder = Parts(dim=24)
    index.encode(encoder)
    run = index.dense(encoder, algorithm="hnsw", k=15)(queries())
    exact = index.dense(encoder, k=15)(queries())
    assert all(len(set(run[t].ids)) == 15 for t in run)
    assert np.mean([len(set(run[t].ids) & set(exact[t].ids)) / 15 for t in run]) > 0.9


def test_an_index_that_cannot_be_written_keeps_its_approximate_index_in_memory(tmp_path, monkeypatch):
    def refuse(**_: object) -> str:
        raise OSError(30, "Read-only file system")

    index = Index.build(made_docs(100), tmp_path / "x")
    index.encode(Hashed())
    monkeypatch.setattr("fontes.storage.artifact.tempfile.mkdtemp", refuse)
    dense = index.dense(Hashed(), algorithm="hnsw")
    assert dense(queries()) == dense(queries())
    assert "hnsw" in index.embeddings(Hashed()).searchers


def test_an_ivf_index_visits_enough_lists_for_k(index):
    dense = index.dense(Hashed(), algorithm="IVF64,Flat", k=200)
    found, whole = dense(queries()), index.dense(Hashed(), k=200)(queries())
    assert all(len(found[topic]) == 200 for topic in found)
    assert np.mean([len(set(found[t].ids) & set(whole[t].ids)) / 200 for t in whole]) > 0.95


@pytest.mark.slow
def test_ef_search_below_the_number_of_rows_that_are_taken_looks_at_fewer(tmp_path, own_cache):
    index = Index.build(made_docs(900, longest=20), tmp_path / "x")
    index.encode(Hashed())
    dense, exact = index.dense(Hashed(), algorithm="hnsw", k=5), index.dense(Hashed(), k=5)
    embeddings = index.embeddings(Hashed())
    vectors = Hashed().encode_queries(list(queries().values()))
    nearest = dense._searcher(embeddings)
    for ef_search, taken in ((1, 5), (5, 5), (40, 40), (100, 100), (300, 100)):
        assert nearest.candidates(vectors, WalkLimits(5, 100, ef_search))[1].shape == (len(vectors), taken)

    def share(ef_search: int) -> float:
        runs = dense.with_(ef_search=ef_search)(queries()), exact(queries())
        return float(np.mean([len({*runs[0][t].ids} & {*runs[1][t].ids}) / 5 for t in queries()]))

    assert share(1) < share(20) <= share(400)
    assert share(400) == 1


def test_the_text_of_an_encoder_is_made_once_for_many_searches(tmp_path):
    texts = []

    @dataclass(frozen=True, repr=False)
    class Named(Hashed):
        fingerprint = "3" * 32

        def __repr__(self):
            texts.append(self)
            return "Named()"

    index = Index.build(made_docs(200), tmp_path / "x")
    index.encode(Named())
    dense = index.dense(Named(), algorithm="hnsw")
    dense.search("w1")
    texts.clear()
    for query in ("w1", "w2", "w3"):
        dense.search(query)
    assert not texts
