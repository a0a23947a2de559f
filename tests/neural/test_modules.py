"""Models of several modules give the vectors and scores of sentence-transformers, or are refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

pytest.importorskip("sentence_transformers")

import torch
from sentence_transformers.sentence_transformer import modules as parts
from support.runtimes import by_sentence_transformers
from support.saved_models import WIDTH, change, decoder, head, save_modules, save_pairs, sentence_transformers, transformer
from support.static_models import WORDS as STATIC_WORDS, table, words
from support.tiny_models import text

import fontes as ft
from fontes.neural.models import hub

TEXTS = ["the spring", "", text(60), "deep ground", "river unknown é", text(9)]
DOCS = [ft.Doc(f"{n}", one) for n, one in enumerate(TEXTS)]
PAIRS = [("the spring", text(7)), ("sea", ""), (text(3), text(70)), (text(20, 2), "river"), ("wells", "unknown é")]


def theirs(folder: Path) -> Any:
    with hub.quiet():
        return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


def ours(folder: Path, **settings: Any) -> ft.SentenceEncoder:
    return ft.SentenceEncoder(folder, **{"precision": "float32", "device": "cpu", "normalize": False, **settings})


def check_vectors(folder: Path, **settings: Any) -> bool:
    """Compare vectors of queries and documents with sentence-transformers, and return whether it runs the model."""
    encoder, model = ours(folder, **settings), theirs(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), model.encode_query(TEXTS), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_documents(DOCS), model.encode_document(TEXTS), atol=1e-5)
    assert encoder.dim == model.encode_query(["a"]).shape[1]
    return by_sentence_transformers(encoder)


ACTIVATIONS = [torch.nn.Tanh(), torch.nn.GELU(), torch.nn.SiLU(), torch.nn.ReLU(), torch.nn.LeakyReLU(), torch.nn.Sigmoid()]


@each("activation", ACTIVATIONS)
def test_dense_layers_of_each_activation_behind_the_pooling(activation: Any, tmp_path: Path) -> None:
    dense = parts.Dense(WIDTH, 12, activation_function=activation)
    modules = [transformer(tmp_path / "m"), parts.Pooling(WIDTH, "mean"), dense, parts.Dropout(0.4), parts.LayerNorm(12)]
    folder = save_modules(
        tmp_path / "m", [*modules, parts.Dense(12, 12, use_residual=True), parts.Dense(12, 9, use_residual=True)]
    )
    assert not check_vectors(folder)


def test_a_dense_layer_before_the_pooling(tmp_path: Path) -> None:
    tokens = parts.Dense(WIDTH, 8, module_input_name="token_embeddings")
    modules = [transformer(tmp_path / "m"), tokens, parts.Pooling(8, ("mean", "max")), parts.Normalize()]
    assert not check_vectors(save_modules(tmp_path / "m", modules))


def test_modules_of_other_kinds_run_by_sentence_transformers(tmp_path: Path) -> None:
    modules = [transformer(tmp_path / "m"), parts.CNN(WIDTH, 6), parts.Pooling(18, "max")]
    assert check_vectors(save_modules(tmp_path / "m", modules))


def test_an_activation_with_parameters_runs_by_sentence_transformers(tmp_path: Path) -> None:
    dense = parts.Dense(WIDTH, 12, activation_function=torch.nn.PReLU())
    folder = save_modules(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH, "cls"), dense])
    assert check_vectors(folder)


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_a_text_without_tokens_has_the_vector_of_sentence_transformers(kind: str, tmp_path: Path) -> None:
    pooling = parts.Pooling(WIDTH, ("mean", "lasttoken"))
    folder = save_modules(tmp_path / "m", [transformer(tmp_path / "m", kind), pooling])
    change(folder / "tokenizer.json", post_processor=None)  # no special tokens
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(["the spring", ""]), theirs(folder).encode(["the spring", ""]), atol=1e-5)
    assert not encoder.encode_queries(["", ""]).any()  # where sentence-transformers fails
    assert not by_sentence_transformers(encoder)


# Routers


def test_a_router_after_pooling_has_routes_for_queries_and_documents(tmp_path: Path) -> None:
    routes = {task: [parts.Dense(WIDTH, 10), parts.Normalize()] for task in ("query", "document")}
    router = parts.Router(routes, default_route="document")
    folder = save_modules(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH), router])
    assert not check_vectors(folder)
    encoder = ours(folder)
    assert np.abs(encoder.encode_queries(TEXTS) - encoder.encode_documents(DOCS)).max() > 0.1
    assert encoder._model.routes["query"].prepared is encoder._model.routes["document"].prepared  # type: ignore[union-attr]


def test_a_router_of_a_model_with_modules_of_other_kinds_has_its_routes_too(tmp_path: Path) -> None:
    router = parts.Router.for_query_document([parts.Dense(18, 10)], [parts.Dense(18, 10)])
    modules = [transformer(tmp_path / "m"), parts.CNN(WIDTH, 6), parts.Pooling(18, "max"), router]
    assert check_vectors(save_modules(tmp_path / "m", modules))


def test_a_router_may_have_a_transformer_and_static_embeddings(tmp_path: Path) -> None:
    static = parts.StaticEmbedding(words(), embedding_weights=table(columns=WIDTH))
    router = parts.Router.for_query_document([static], [transformer(tmp_path / "m"), parts.Pooling(WIDTH)])
    folder = save_modules(tmp_path / "m", [router, parts.Normalize()], prompts={"query": "warm ", "document": "deep "})
    assert not check_vectors(folder)
    assert STATIC_WORDS


def test_two_transformers_in_a_router_each_have_their_own_length(tmp_path: Path) -> None:
    queries = [transformer(tmp_path / "q", "bert", max_seq_length=12), parts.Pooling(WIDTH, "cls")]
    documents = [transformer(tmp_path / "d", "bert", max_seq_length=40), parts.Pooling(WIDTH)]
    folder = save_modules(tmp_path / "m", [parts.Router.for_query_document(queries, documents)])
    assert not check_vectors(folder)
    assert ours(folder).length == 40


def test_routes_by_mappings_of_task_and_modality(tmp_path: Path) -> None:
    routes = {"a": [parts.Dense(WIDTH, 10)], "b": [parts.Dense(WIDTH, 10)]}
    router = parts.Router(routes, route_mappings={("query", "text"): "a", (None, None): "b"})
    folder = save_modules(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH), router])
    assert not check_vectors(folder)


# Prompts


def test_prompts_are_chosen_by_name(tmp_path: Path) -> None:
    prompts = {"query": "the ", "sts": "of ", "document": "deep ", "empty": ""}
    folder = save_modules(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH)], prompts=prompts)
    model = theirs(folder)
    named = ours(folder, query_prompt_name="sts", document_prompt_name="empty")
    np.testing.assert_allclose(named.encode_queries(TEXTS), model.encode(TEXTS, prompt_name="sts"), atol=1e-5)
    np.testing.assert_allclose(named.encode_documents(DOCS), model.encode(TEXTS, prompt_name="empty"), atol=1e-5)
    assert not check_vectors(folder)
    assert named.fingerprint != ours(folder).fingerprint == ours(folder, query_prompt_name="sts").fingerprint


# Dimensions


def encoder_of_32(folder: Path, **settings: Any) -> Path:
    modules = [transformer(folder), parts.Pooling(WIDTH), parts.Dense(WIDTH, 32), parts.Normalize()]
    return save_modules(folder, modules, **settings)


@pytest.mark.parametrize("normalize", [False, True])
def test_truncate_dim_keeps_the_first_dimensions_and_then_normalizes(normalize: bool, tmp_path: Path) -> None:
    folder = encoder_of_32(tmp_path / "m", truncate_dim=8)
    encoder, expected = ours(folder, normalize=normalize), theirs(folder).encode(TEXTS, normalize_embeddings=normalize)
    assert expected.shape == (6, 8)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), expected, atol=1e-5)
    assert (encoder.dim, by_sentence_transformers(encoder)) == (8, False)
    chosen = ours(folder, dims=20, normalize=normalize)
    expected = theirs(folder).encode(TEXTS, normalize_embeddings=normalize, truncate_dim=20)
    np.testing.assert_allclose(chosen.encode_documents(DOCS), expected, atol=1e-5)
    fingerprints = {encoder.fingerprint, chosen.fingerprint}
    (folder / "config_sentence_transformers.json").unlink()
    assert len(fingerprints | {ours(folder, normalize=normalize).fingerprint}) == 3


def test_truncate_dim_of_models_that_run_otherwise(tmp_path: Path) -> None:
    lstm = [transformer(tmp_path / "m"), parts.CNN(WIDTH, 6), parts.Pooling(18, "max")]
    assert check_vectors(save_modules(tmp_path / "m", lstm, truncate_dim=5))
    static = [parts.StaticEmbedding(words(), embedding_weights=table(columns=16))]
    folder = save_modules(tmp_path / "s", static, truncate_dim=5)
    assert not check_vectors(folder)
    assert ours(folder, dims=7).encode_queries(["warm"]).shape == (1, 7)
    bow = parts.BoW(vocab=["the", "spring", "river", "sea"])
    folder = save_modules(tmp_path / "b", [bow, parts.Dense(4, 16)], truncate_dim=5)
    assert check_vectors(folder)


# Cross-encoders


def check_scores(folder: Path, **settings: Any) -> bool:
    """Compare logits and scores with sentence-transformers, and return whether it runs the model."""
    with hub.quiet():
        model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu", **settings)
    options = {"show_progress_bar": False, **{name: value for name, value in settings.items() if name.startswith("prompt")}}
    logits = model.predict(PAIRS, activation_fn=torch.nn.Identity(), **options)
    np.testing.assert_allclose(reranker.scores(PAIRS), logits, atol=1e-5)
    assert np.ptp(logits) > 0.05
    activated = model.predict(PAIRS, **options)
    np.testing.assert_allclose(reranker.with_(score="model").scores(PAIRS), activated, atol=1e-5)
    return by_sentence_transformers(reranker)


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_a_modular_cross_encoder_of_dense_and_normalizing_layers(kind: str, tmp_path: Path) -> None:
    layers = [parts.Dense(WIDTH, WIDTH, activation_function=torch.nn.GELU()), parts.LayerNorm(WIDTH), head()]
    folder = save_pairs(tmp_path / "m", [transformer(tmp_path / "m", kind), parts.Pooling(WIDTH, "cls"), *layers])
    assert json.loads((folder / "config.json").read_text())["architectures"] == [
        {"bert": "BertModel"}.get(kind, "ModernBertModel")
    ]
    assert not check_scores(folder)
    with hub.quiet():
        expected = sentence_transformers.CrossEncoder(str(folder), device="cpu", max_length=20).predict(
            PAIRS, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
    short = ft.CrossEncoder(folder, precision="float32", device="cpu", max_length=20)
    np.testing.assert_allclose(short.scores(PAIRS), expected, atol=1e-5)


@each("activation", [torch.nn.Sigmoid(), torch.nn.Tanh(), torch.nn.Identity(), torch.nn.Softplus()])
def test_the_default_activation_of_a_model_is_the_one_of_its_settings(activation: Any, tmp_path: Path) -> None:
    modules = [transformer(tmp_path / "m"), parts.Pooling(WIDTH), head(activation=torch.nn.Tanh())]
    assert not check_scores(save_pairs(tmp_path / "m", modules, activation_fn=activation))


def test_prompts_of_a_cross_encoder(tmp_path: Path) -> None:
    modules = [transformer(tmp_path / "m"), parts.Pooling(WIDTH), head()]
    prompts = {"web": "the ground ", "sts": "river "}
    folder = save_pairs(tmp_path / "m", modules, prompts=prompts, default_prompt_name="web")
    assert not check_scores(folder)
    assert not check_scores(folder, prompt_name="sts")
    assert not check_scores(folder, prompt="deep ")
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu")
    assert np.abs(reranker.scores(PAIRS) - reranker.with_(prompt="").scores(PAIRS)).max() > 1e-3


@pytest.mark.parametrize("false_token", ["no", None])
def test_a_decoder_scores_by_the_logit_of_a_token(false_token: str | None, tmp_path: Path) -> None:
    folder = save_pairs(tmp_path / "m", decoder(tmp_path / "m", false_token), prompts={"judge": "of the sea"})
    assert check_scores(folder)
    assert check_scores(folder, prompt_name="judge")


def test_two_labels_of_a_modular_cross_encoder(tmp_path: Path) -> None:
    two = parts.Dense(WIDTH, 2, activation_function=torch.nn.Identity(), module_output_name="scores")
    folder = save_pairs(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH), two])
    with hub.quiet():
        both = sentence_transformers.CrossEncoder(str(folder), device="cpu").predict(PAIRS, show_progress_bar=False)
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu")
    np.testing.assert_allclose(reranker.scores(PAIRS), both[:, 1] - both[:, 0], atol=1e-5)


def test_logits_need_no_activation(tmp_path: Path) -> None:
    folder = save_pairs(tmp_path / "m", [transformer(tmp_path / "m"), parts.Pooling(WIDTH), head()])
    change(folder / "config_sentence_transformers.json", activation_fn="torch.hub.get_dir")
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu")
    assert reranker.scores(PAIRS).shape == (5,)
