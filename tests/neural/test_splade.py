"""SPLADE: vectors equal to those of sentence-transformers' SparseEncoder, and what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.tiny_models import docs, save_tokenizer, text, torch, transformers
from support.tiny_splade import CONFIGURATIONS, SIZE, VOCABULARY, dense, masked_lm, splade

import fontes as ft
from fontes.core.values import Doc
from fontes.neural import Splade
from fontes.neural.models import hub
from fontes.neural.models.compute import padded
from fontes.neural.sparse import model as of_model

sentence_transformers = pytest.importorskip("sentence_transformers")

from fontes.neural.models.masked import MaskedNetwork  # noqa: E402

DOCS = docs(7, 1, 30, 80, 12, 3)
TEXTS = [doc.text for doc in DOCS]
EXACT = {"precision": "float32", "device": "cpu"}
REAL = os.environ.get("FONTES_SPLADE", "")  # the folder of rasyosef/splade-tiny


def reference(folder: Path) -> object:
    return sentence_transformers.SparseEncoder(str(folder), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return splade(tmp_path_factory.mktemp("splade") / "m")


@each("activation", ["relu", "log1p_relu"])
@each("pooling", ["max", "sum"])
def test_vectors_are_those_of_sentence_transformers_with_each_pooling_and_activation(tmp_path, pooling, activation):
    folder = splade(tmp_path / "m", {"pooling_strategy": pooling, "activation_function": activation})
    expected = reference(folder).encode_document(TEXTS).to_dense().numpy()
    vectors = Splade(folder, **EXACT).encode_documents(DOCS)
    assert np.abs(dense(vectors) - expected).max() < 1e-4
    assert 0.1 < (expected > 0).mean() < 0.9


@each("kind", CONFIGURATIONS)
def test_any_masked_language_model_is_pooled_as_sentence_transformers_pools_it(tmp_path, kind):
    folder = masked_lm(tmp_path / "m", kind)
    encoder = Splade(folder, max_length=40, **EXACT)
    sparse = reference(folder)
    sparse.max_seq_length = 40
    assert np.abs(dense(encoder.encode_documents(DOCS)) - sparse.encode_document(TEXTS).to_dense().numpy()).max() < 1e-4
    assert np.abs(dense(encoder.encode_queries(TEXTS)) - sparse.encode_query(TEXTS).to_dense().numpy()).max() < 1e-4


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_logits_of_our_own_network_are_those_of_transformers(tmp_path, kind, tied):
    folder = masked_lm(tmp_path / "m", kind, tie_word_embeddings=tied)
    encoder = Splade(folder, max_length=40, **EXACT)
    network = encoder._model.prepared.module
    assert type(network.body) is MaskedNetwork
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids, mask = padded(encoder._model.ids(TEXTS, 40), 0, "cpu")
    with torch.inference_mode():
        expected = model(input_ids=ids, attention_mask=mask).logits[mask.bool()]
        hidden = network.body(ids, mask)[mask.bool()]
        assert torch.allclose(hidden @ network.head.weight.T + network.head.bias, expected, atol=1e-5)


def test_a_weight_is_the_greatest_logarithm_of_the_models_own_logits(folder):
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits = model(**tokenizer(TEXTS[0], return_tensors="pt")).logits[0].numpy()
    expected = np.log1p(np.maximum(logits, 0)).max(axis=0)
    (weights,) = Splade(folder, **EXACT).encode_queries(TEXTS[:1])
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    names = [*VOCABULARY, *(f"[{number}]" for number in range(len(VOCABULARY), SIZE))]
    assert weights == pytest.approx({names[n]: float(expected[n]) for n in np.flatnonzero(expected > 0)}, abs=1e-5)


def test_a_model_whose_head_cannot_be_detached_gives_the_same(folder, monkeypatch):
    whole = Splade(folder, **EXACT).encode_documents(DOCS)
    monkeypatch.setattr(of_model, "_detached_head", lambda module: None)
    monkeypatch.setattr("fontes.neural.models.masked.masked_network", lambda folder: None)
    for models in ("_recent", "_in_use"):
        monkeypatch.setattr(f"fontes.neural.models.hub.{models}", type(getattr(hub, models))())
    assert np.allclose(dense(Splade(folder, **EXACT).encode_documents(DOCS)), dense(whole), atol=1e-5)


def test_a_batch_changes_documents_by_rounding_alone_and_queries_not_at_all(folder):
    encoder = Splade(folder, **EXACT)
    together, queries = dense(encoder.encode_documents(DOCS)), dense(encoder.encode_queries(TEXTS))
    for number, doc in enumerate(DOCS):
        assert np.allclose(dense(encoder.encode_documents([doc]))[0], together[number], atol=1e-5)
        assert np.array_equal(dense(encoder.encode_queries([doc.text]))[0], queries[number])
    small = dense(Splade(folder, batch_size=1, **EXACT).encode_documents(DOCS))
    assert np.allclose(small, together, atol=1e-5)


def test_a_long_document_is_cut_at_max_length(folder):
    encoder = Splade(folder, **EXACT)
    assert encoder.length == 40
    long = text(80, 3)
    cut = " ".join(long.split()[:38])  # and two special tokens
    assert np.array_equal(dense(encoder.encode_queries([long])), dense(encoder.encode_queries([cut])))
    short = Splade(folder, max_length=10, **EXACT)
    assert np.array_equal(dense(short.encode_queries([long])), dense(encoder.encode_queries([" ".join(long.split()[:8])])))
    assert Splade(folder, max_length=64, **EXACT).length == 64


def test_a_text_without_a_word_has_no_terms(folder):
    vectors = Splade(folder, **EXACT).encode_documents([Doc("a", ""), Doc("b", "river"), Doc("c", " \n")])
    assert [len(vectors[i]) > 0 for i in range(3)] == [False, True, False]
    assert Splade(folder, **EXACT).encode_queries([]).bounds.tolist() == [0]
    assert len(Splade(folder, **EXACT).encode_documents([])) == 0


def test_prompts_and_the_number_of_terms_are_the_models_own(tmp_path):
    prompts = {"query": "deep water ", "document": "the river "}
    folder = splade(tmp_path / "m", settings={"prompts": prompts, "max_active_dims": 5})
    expected = reference(folder)
    encoder = Splade(folder, **EXACT)
    assert np.abs(dense(encoder.encode_documents(DOCS)) - expected.encode_document(TEXTS).to_dense().numpy()).max() < 1e-4
    assert np.abs(dense(encoder.encode_queries(TEXTS)) - expected.encode_query(TEXTS).to_dense().numpy()).max() < 1e-4
    assert np.diff(encoder.encode_documents(DOCS).bounds).tolist() == [5] * len(DOCS)
    plain = encoder.with_(document_terms=3, document_prompt="", query_terms=2)
    everything = dense(Splade(splade(tmp_path / "n"), **EXACT).encode_documents(DOCS))
    for kept, row in zip(dense(plain.encode_documents(DOCS)), everything, strict=True):
        assert np.allclose(np.sort(kept[kept > 0]), np.sort(row)[-3:], atol=1e-5)
    assert np.diff(plain.encode_queries(TEXTS).bounds).tolist() == [2] * len(DOCS)


def test_queries_of_a_router_get_static_weights_as_in_sentence_transformers(tmp_path):
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    transformer = Transformer(str(masked_lm(tmp_path / "mlm")), transformer_task="fill-mask", max_seq_length=40)
    tokenizer = save_tokenizer(tmp_path / "tokenizer", VOCABULARY)
    weights = torch.linspace(0, 2, len(VOCABULARY))
    static = SparseStaticEmbedding(tokenizer=tokenizer, weight=weights, frozen=True)
    pooling = SpladePooling("max", activation_function="log1p_relu")
    router = Router.for_query_document(query_modules=[static], document_modules=[transformer, pooling])
    sentence_transformers.SparseEncoder(modules=[router], device="cpu").save_pretrained(str(tmp_path / "m"))
    expected, encoder = reference(tmp_path / "m"), Splade(tmp_path / "m", **EXACT)
    assert np.abs(dense(encoder.encode_documents(DOCS)) - expected.encode_document(TEXTS).to_dense().numpy()).max() < 1e-4
    queries = ["water of the river river", "unknowable spring", ""]
    assert np.array_equal(
        dense(encoder.encode_queries(queries), len(VOCABULARY)), expected.encode_query(queries).to_dense().numpy()
    )
    assert encoder.encode_queries(["spring"])[0] == {"spring": pytest.approx(float(weights[VOCABULARY.index("spring")]))}


def test_the_fingerprint_names_what_changes_the_weights_of_documents(folder, tmp_path):
    encoder = Splade(folder, **EXACT)
    same = [{"precision": "bfloat16"}, {"batch_size": 3}, {"query_terms": 2}, {"query_prompt": "a "}, {"device": None}]
    assert {encoder.with_(**change).fingerprint for change in same} == {encoder.fingerprint}
    others = [{"max_length": 12}, {"document_terms": 2}, {"document_prompt": "a "}]
    assert len({encoder.fingerprint, *(encoder.with_(**change).fingerprint for change in others)}) == 4
    other = splade(tmp_path / "m", {"pooling_strategy": "sum"})
    assert Splade(other, **EXACT).fingerprint != encoder.fingerprint


def test_bfloat16_is_near(folder):
    exact, quick = (
        dense(Splade(folder, precision=name, device="cpu").encode_documents(DOCS)) for name in ("float32", "bfloat16")
    )
    assert np.abs(exact - quick).max() < 0.1
    assert Splade(folder, precision="bfloat16", device="cpu").chosen_precision == "bfloat16"


@pytest.mark.skipif(not REAL, reason="FONTES_SPLADE names no folder of splade-tiny")
def test_the_vectors_of_the_real_splade_tiny_are_those_of_sentence_transformers():
    sample = list(ft.read_corpus(Path(__file__).parents[2] / "docs" / "examples" / "springs" / "corpus.jsonl"))
    texts = [f"{doc.title} {doc.text}".strip() for doc in sample]
    encoder, expected = Splade(REAL, **EXACT), reference(Path(REAL))
    assert (
        np.abs(dense(encoder.encode_documents(sample), 30522) - expected.encode_document(texts).to_dense().numpy()).max() < 1e-4
    )
    queries = ["does vitamin D prevent flu?", "hot water from the ground"]
    assert (
        np.abs(dense(encoder.encode_queries(queries), 30522) - expected.encode_query(queries).to_dense().numpy()).max() < 1e-4
    )
    assert list(encoder.encode_queries(queries)[0])[:3] == ["vitamin", "flu", "d"]
