"""Stored vectors have names, which stages and runs carry, and may be searched by their first dimensions."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from support.hashed_encoder import Hashed, Parts, made_docs, queries
from support.static_models import model2vec, table

import fontes as ft
from fontes.core import ParameterError
from fontes.core.expression import pipeline
from fontes.neural.encoders.base import unit

DOCS = [
    {"id": "a", "text": "warm water rises in limestone"},
    {"id": "b", "text": "a geyser of water"},
    {"id": "c", "text": "the well"},
]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return model2vec(tmp_path / "static", {"normalize": True})


@pytest.fixture
def index(tmp_path: Path, model: str) -> ft.Index:
    made = ft.Index.build(DOCS, tmp_path / "x.index")
    made.encode(model, name="words")
    return made


def test_a_name_stands_for_the_encoder_in_pipelines_texts_and_runs(index: ft.Index, model: str, tmp_path: Path) -> None:
    dense = index.dense("words")
    assert dense({"1": "warm water"}) == index.dense(model)({"1": "warm water"})
    assert dense.text == 'dense("words")'
    again = pipeline('dense("words", algorithm="hnsw")', index)
    assert again.text == 'dense("words", algorithm="hnsw")'
    run = dense({"1": "warm water"})
    assert str(tmp_path) not in json.dumps({**run.provenance, "index": ""}, default=str)
    assert index.dense("words").key() == dense.key() is not None
    assert (dense >> index.mmr(0.9, encoder="words")).search("warm water")[0].id == "a"
    assert dense.with_(encoder__query_prompt="geyser ")({"1": "warm water"}) != run


def test_the_name_stays_with_added_merged_and_converted_vectors(index: ft.Index, model: str) -> None:
    index.add([{"id": "d", "text": "the springs rises"}])
    index.encode("words")
    index.encode("words", dtype="int8")
    assert [doc for doc in index.dense("words").search("rises").ids if doc == "d"]
    index.merge()
    assert {facts["name"] for facts in index.info()["vectors"]} == {"words"}
    assert index.dense("words", dtype="int8").search("warm water")[0].id == "a"
    index.check()
    digest = index.embeddings(ft.SentenceEncoder(model)).meta["digest"]
    index.encode("words", name="others")
    assert index.embeddings(ft.SentenceEncoder(model)).meta["digest"] == digest  # an approximate index need not be built again
    assert ft.Index.open(index.path).dense("others").search("warm water")[0].id == "a"


def test_vectors_that_were_stored_without_a_name_get_one(tmp_path: Path, model: str) -> None:
    index = ft.Index.build(DOCS, tmp_path / "y.index")
    index.encode(model)
    assert "name" not in index.info()["vectors"][0]
    index.encode(model, name="words")
    assert index.dense("words").search("warm water")[0].id == "a"


def test_another_folder_of_the_model_takes_the_place_of_a_lost_one(index: ft.Index, model: str, tmp_path: Path) -> None:
    moved = shutil.move(model, tmp_path / "moved")
    with pytest.raises(
        ft.core.InputError, match=r"the vectors 'words' is not at .*/static; fontes encode .* FOLDER --name words"
    ):
        ft.Index.open(index.path).dense("words").search("warm water")
    ft.Index.open(index.path).encode(str(moved), name="words")
    assert ft.Index.open(index.path).dense("words").search("warm water")[0].id == "a"


def test_names_are_told_apart(index: ft.Index, tmp_path: Path) -> None:
    other = model2vec(tmp_path / "other", {"normalize": True}, embeddings=table(columns=5))
    with pytest.raises(ParameterError, match=r"x\.index has .* under the name 'words'; give another name"):
        index.encode(other, name="words")
    index.encode(other, name="wide")
    assert {facts["name"]: facts["dim"] for facts in index.info()["vectors"]} == {"words": 3, "wide": 5}
    with pytest.raises(ParameterError, match=r"has no vectors with the name 'word'; did you mean 'words'"):
        index.dense("word").search("water")
    with pytest.raises(ParameterError, match="a name of vectors is letters, digits"):
        index.encode(other, name="a/b")
    index.encode(other, name="words", overwrite=True)
    assert {facts.get("name"): facts["dim"] for facts in index.info()["vectors"]} == {None: 3, "words": 5}


def test_the_command_line_names_vectors(tmp_path: Path, model: str, fontes: Any) -> None:
    ft.Index.build(DOCS, tmp_path / "x.index")
    path = str(tmp_path / "x.index")
    status, out, err = fontes("encode", path, model, "--name", "words")
    assert status == 0, err
    assert "words = sentence_encoder(" in fontes("info", path)[1].replace("\n", "")
    status, out, err = fontes("search", path, "warm water", "--pipeline", 'dense("words", dims=2)', "-k", "1", "--json")
    assert json.loads(out)["hits"][0]["id"] == "a", err
    ft.Index.open(path).add([{"id": "d", "text": "the well the"}])
    assert fontes("encode", path, "words")[0] == 0
    for options in (["--model", "dense"], ["--model", "hybrid", "--encoder", "words"]):
        status, out, err = fontes("search", path, "warm water", *options, "-k", "1", "--json")
        assert json.loads(out)["hits"][0]["id"] == "a", err


# First dimensions


def expected(encoder: Hashed, index: ft.Index, dims: int, text: str) -> dict[str, float]:
    docs = index.docs(index.ids.tolist())
    rows, query = encoder.encode_documents(docs)[:, :dims], encoder.encode_queries([text])[:, :dims]
    if encoder.similarity == "cosine":
        rows, query = unit(rows), unit(query)
    return {doc.id: float(score) for doc, score in zip(docs, rows @ query[0], strict=True) if score}


@pytest.mark.parametrize("encoder", [Hashed(), Hashed(length=None)], ids=["cosine", "dot"])
def test_the_first_dimensions_of_stored_vectors_score_as_if_they_had_been_stored(encoder: Hashed, tmp_path: Path) -> None:
    docs = made_docs()
    index = ft.Index.build(docs[:150], tmp_path / "x", analyzer="whitespace")
    index.add(docs[150:])
    index.encode(encoder)
    index.delete([index.ids[0]])
    dense = index.dense(encoder, dims=12)
    for text in list(queries().values())[:5]:
        found = {hit.id: hit.score for hit in dense.search(text, 2000)}
        wanted = expected(encoder, index, 12, text)
        assert found.keys() == wanted.keys()
        np.testing.assert_allclose([found[i] for i in wanted], list(wanted.values()), rtol=1e-5, atol=1e-6)
    run = dense(queries())
    alone = ft.Run.of(
        {
            topic: dict(zip(dense.search(text, 1000).ids, dense.search(text, 1000).scores, strict=True))
            for topic, text in queries().items()
        }
    )
    assert {t: run[t].ids for t in run} == {t: alone[t].ids for t in run}
    explained = dense.explain("w1 w2", run[next(iter(run))].ids[0])
    assert "dims=12" in str(explained)
    scores = dense.candidate_scores(run)
    assert np.array_equal(scores, run.scores)
    assert index.dense(encoder, dims=32)(queries()) == index.dense(encoder)(queries())


def test_first_dimensions_of_several_vectors_and_of_each_dtype(tmp_path: Path) -> None:
    index = ft.Index.build(made_docs(), tmp_path / "x", analyzer="whitespace")
    encoder = Parts(dim=24)
    index.encode(encoder)
    exact = index.dense(encoder, dims=16)("w1 w2 w3")
    for dtype, least in (("float16", 0.99), ("int8", 0.9), ("rabitq4", 0.6)):
        index.encode(encoder, dtype=dtype)
        cut = index.dense(encoder, dims=16, dtype=dtype)("w1 w2 w3")
        best = [set(next(iter(run.values())).ids[:20]) for run in (exact, cut)]
        assert len(best[0] & best[1]) / 20 >= least


def test_an_approximate_index_of_the_first_dimensions_is_one_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    index = ft.Index.build(made_docs(), tmp_path / "x", analyzer="whitespace")
    index.encode(Hashed())
    exact, walked = index.dense(Hashed(), dims=12), index.dense(Hashed(), "hnsw", dims=12, threads=1)
    assert walked.recall()["R@10"] > 0.9
    best = walked.search("w1 w2", 5)
    assert (
        dict(zip(best.ids, best.scores.tolist(), strict=True)).items()
        <= {hit.id: hit.score for hit in exact.search("w1 w2", 1000)}.items()
    )


def test_weights_and_token_vectors_have_names_too(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    from support.tiny_colbert import tiny_colbert
    from support.tiny_splade import splade

    from fontes.index.embeddings.weights import WEIGHTS
    from fontes.neural import encode_late
    from fontes.neural.late.store import TOKENS
    from fontes.neural.sparse import Splade
    from fontes.neural.stored import named_model

    index = ft.Index.build([("a", "the spring of a river"), ("b", "deep wells")], tmp_path / "z.index")
    index.encode(Splade(splade(tmp_path / "terms"), precision="float32"), name="terms")
    encode_late(index, tiny_colbert(tmp_path / "tokens"), name="tokens")
    index.add([("c", "a river runs to sea")])
    index.encode(named_model(index, WEIGHTS, "terms"))
    encode_late(index, named_model(index, TOKENS, "tokens"))
    for stage in (index.splade("terms"), index.late("tokens")):
        run = stage({"1": "a river"})
        assert len(run["1"]) >= 2
        assert stage.text in ('splade("terms")', 'late("tokens")')
    facts = ft.Index.open(index.path).info()
    assert (facts["weights"][0]["name"], facts["token_vectors"][0]["name"]) == ("terms", "tokens")
