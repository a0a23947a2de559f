"""Approximate dense retrieval: its recall is measured, its index is kept, and its scores are exact."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from support.hashed_encoder import Hashed, Parts, made_docs, queries

from fontes.core import ParameterError
from fontes.index import Index


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    made = Index.build(made_docs(), tmp_path_factory.mktemp("dense") / "x", analyzer="whitespace")
    made.encode(Hashed())
    return made


@pytest.mark.parametrize("algorithm", ["hnsw", "IVF16,Flat", "PCA16,IVF4,PQ4x4", "Flat", "annoy:20"])
def test_an_approximate_search_measures_its_recall_keeps_its_index_and_gives_exact_scores(tmp_path, algorithm, caplog):
    if algorithm.startswith("annoy"):
        pytest.importorskip("annoy")
    index = Index.build(made_docs(), tmp_path / "x")
    index.encode(Hashed())
    dense = index.dense(Hashed(), algorithm=algorithm, k=20)
    with caplog.at_level(logging.WARNING, "fontes.neural"):
        run = dense(queries())
    assert f"{algorithm} over 700 vectors" in caplog.text
    facts = run.provenance["approximate"]
    assert not run.provenance["exact"]
    assert 0.5 < facts["recall"]["R@10"] <= 1
    assert facts["recall"] == dense.recall()
    whole = index.dense(Hashed(), k=1000)(queries())
    scores = whole.to_dict()
    for topic, ranking in run.items():
        assert all(scores[topic][hit.id] == hit.score for hit in ranking)
        places = [whole[topic].ids.index(hit.id) for hit in ranking]
        assert places == sorted(places)
    caplog.clear()
    again = Index.open(tmp_path / "x")
    assert again.dense(Hashed(), algorithm=algorithm, k=20)(queries()) == run
    assert caplog.text == ""  # it was not built again
    assert [kept["algorithm"] for kept in again.info()["vectors"][0]["approximate"]] == [algorithm]
    kept = next((tmp_path / "x" / "cache").rglob("index"))
    first = kept.read_bytes()
    kept.write_bytes(first[:100])
    assert Index.open(tmp_path / "x").dense(Hashed(), algorithm=algorithm, k=20)(queries()) == run  # built anew, and the same
    assert kept.read_bytes() == first
    again.check()


def test_a_rotation_for_product_quantization_is_the_same_each_time_and_trained_without_a_warning(tmp_path, capfd):
    encoder = Hashed(dim=8)
    runs = []
    for name in ("a", "b"):
        index = Index.build(made_docs(300), tmp_path / name)
        index.encode(encoder)
        runs.append(index.dense(encoder, algorithm="OPQ2,IVF8,PQ2x4", k=10)(queries(10)))
    assert runs[0] == runs[1]
    first, second = ((tmp_path / name / "cache").rglob("index") for name in ("a", "b"))
    assert next(first).read_bytes() == next(second).read_bytes()
    assert "WARNING" not in "".join(capfd.readouterr())


def test_more_effort_finds_more(index):
    dense = index.dense(Hashed(), algorithm="IVF64,Flat", k=10)
    recalls = [dense.with_(effort=effort).recall()["R@10"] for effort in (1, 8, 64)]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[2] == 1.0


def test_annoy_gives_the_cosine_of_its_distance(index):
    annoy = pytest.importorskip("annoy")
    forest = annoy.AnnoyIndex(32, "angular")
    made = index.embeddings(Hashed()).vectors
    for row, vector in enumerate(made):
        forest.add_item(row, vector)
    forest.set_seed(7)
    forest.build(50)
    run = index.dense(Hashed(), algorithm="annoy:50", k=10)(queries())
    for topic, text in queries().items():
        rows, distances = forest.get_nns_by_vector(Hashed().encode_queries([text])[0], 10, include_distances=True)
        cosines = {index.ids[row]: 1 - distance**2 / 2 for row, distance in zip(rows, distances, strict=True)}
        products = made @ Hashed().encode_queries([text])[0]
        exact = {index.ids[row]: float(product) for row, product in enumerate(products)}
        assert len(run[topic]) == 10
        assert {hit.id: hit.score for hit in run[topic]} == pytest.approx({i: exact[i] for i in run[topic].ids}, abs=1e-5)
        assert cosines == pytest.approx({i: exact[i] for i in cosines}, abs=1e-5)
        assert len(set(cosines) & set(run[topic].ids)) >= 5


def test_annoy_refuses_vectors_that_have_not_length_1(index):
    pytest.importorskip("annoy")
    index.encode(Hashed(length=None))
    with pytest.raises(ParameterError, match="length 1"):
        index.dense(Hashed(length=None), algorithm="annoy:5").search("w1")


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
