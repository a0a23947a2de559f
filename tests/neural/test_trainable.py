"""Encoders as models that are trained: their vectors, their gradients, and the folders that they are saved to."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.paired_words import one_thread  # noqa: F401
from support.tiny_models import CONFIGURATIONS, docs, tiny

from fontes import SentenceEncoder, TransformerEncoder
from fontes.core.values import text_of
from fontes.neural.encoders.trainable import trainable
from fontes.neural.models import hub

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

KINDS = [*CONFIGURATIONS, "favor+"]
PLAIN = ("bert", "roberta", "distilbert", "t5")
GIVEN = docs(3, 70, 20, 41, 5, 14, 30, 8, 100)
TEXTS = [text_of(doc) for doc in GIVEN]


def encoder(kind: str, **more: Any) -> TransformerEncoder:
    if kind == "favor+":
        return TransformerEncoder(tiny("bert"), precision="float32", attention="favor+", features=16, **more)
    return TransformerEncoder(tiny(kind), precision="float32", **more)


def vectors(model: Any, texts: list[str], prompt: str = "") -> Any:
    """What the model gives in training, with gradients."""
    return model(model.preprocess(texts, prompt=prompt or None))["sentence_embedding"]


def alone(folder: Path) -> Any:
    """The model of a folder by sentence-transformers and nothing else."""
    with hub.quiet():
        return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


@each("kind", KINDS)
def test_a_saved_model_gives_the_vectors_of_the_trained_one(kind: str, tmp_path: Path) -> None:
    given = encoder(kind, query_prompt="the ", document_prompt="of deep ", pooling="mean", max_length=90)
    model = trainable(given)
    documents, queries = (model.encode(TEXTS, prompt_name=name) for name in ("document", "query"))
    np.testing.assert_allclose(given.encode_documents(GIVEN), documents, atol=1e-5)
    np.testing.assert_allclose(given.encode_queries(TEXTS), queries, atol=1e-5)
    with hub.quiet():
        model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    saved = SentenceEncoder(str(tmp_path / "model"), precision="float32")
    assert (saved.length, saved.dim) == (90, given.dim)
    np.testing.assert_allclose(saved.encode_documents(GIVEN), documents, atol=1e-5)
    np.testing.assert_allclose(saved.encode_queries(TEXTS), queries, atol=1e-5)
    types = [module["type"] for module in json.loads((tmp_path / "model" / "modules.json").read_text())]
    assert all(name.startswith("sentence_transformers.") for name in types)
    assert (tmp_path / "model" / "fontes.json").exists() == (kind not in PLAIN)
    if kind in PLAIN:
        theirs = alone(tmp_path / "model")
        np.testing.assert_allclose(theirs.encode(TEXTS, prompt_name="document"), documents, atol=1e-5)
        np.testing.assert_allclose(theirs.encode(TEXTS, prompt_name="query"), queries, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "longformer", "favor+"])
def test_what_was_saved_is_trained_again_as_it_was(kind: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with hub.quiet():
        trainable(encoder(kind, query_prompt="the ", pooling="cls")).save_pretrained(str(first), create_model_card=False)
        trainable(SentenceEncoder(first, document_prompt="of ")).save_pretrained(str(second), create_model_card=False)
    once, twice = (SentenceEncoder(folder, precision="float32") for folder in (first, second))
    np.testing.assert_allclose(twice.encode_queries(TEXTS), once.encode_queries(TEXTS), atol=1e-5)
    bare = twice.with_(document_prompt="").encode_documents(GIVEN)
    np.testing.assert_allclose(bare, once.encode_documents(GIVEN), atol=1e-5)
    assert np.abs(twice.encode_documents(GIVEN) - bare).max() > 1e-3
    assert [path.name for path in second.iterdir()].count("fontes.json") == (kind not in PLAIN)


@each("kind", KINDS)
def test_in_training_a_text_has_the_same_vector_alone_and_in_a_batch(kind: str) -> None:
    model = trainable(encoder(kind), dropout=0.0).train()
    together = vectors(model, TEXTS)
    one_by_one = torch.cat([vectors(model, [text]) for text in TEXTS])
    np.testing.assert_allclose(together.detach(), one_by_one.detach(), atol=1e-5)
    np.testing.assert_allclose(together.detach(), encoder(kind).encode_documents(GIVEN), atol=1e-5)


@each("kind", KINDS)
def test_gradients_flow_into_every_parameter_but_that_of_the_unused_pooler(kind: str) -> None:
    model = trainable(encoder(kind), dropout=0.0).train()
    weights = torch.randn(len(TEXTS), model.get_embedding_dimension(), generator=torch.Generator().manual_seed(0))
    (vectors(model, TEXTS) * weights).sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert all("pooler" in name for name in without)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def gradients(module: Any, hidden: Any) -> dict[str, Any]:
    module.zero_grad()
    weights = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    (hidden * weights).sum().backward()
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def assert_like_transformers(kind: str, tokens: int, prepare: Any, **inputs: Any) -> None:
    """The last hidden states and the gradients of one text are those of transformers itself."""
    ids = torch.randint(5, 23, (1, tokens), generator=torch.Generator().manual_seed(0))
    ones = torch.ones_like(ids)
    ours = trainable(encoder(kind), dropout=0.0).train()[0].model
    theirs = transformers.AutoModel.from_pretrained(tiny(kind)).train()
    for part in theirs.modules():
        prepare(part)
    hidden = theirs(input_ids=ids, **inputs).last_hidden_state
    expected = gradients(theirs, hidden)
    found = ours(input_ids=ids, attention_mask=ones).last_hidden_state
    np.testing.assert_allclose(found.detach(), hidden.detach(), atol=1e-4)
    ours_by_name = gradients(ours, found)
    assert ours_by_name.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(ours_by_name[name], gradient, atol=2e-3, rtol=2e-3, err_msg=name)


def without_dropout(part: Any) -> None:
    for name, value in list(vars(part).items()):
        if "dropout" in name and isinstance(value, float):
            setattr(part, name, 0.0)
    if isinstance(part, torch.nn.Dropout):
        part.p = 0.0


def test_the_gradients_of_nystroemformer_are_those_of_transformers() -> None:
    def prepare(part: Any) -> None:
        without_dropout(part)
        if hasattr(part, "num_landmarks"):
            part.seq_len = 128

    assert_like_transformers("nystromformer", 128, prepare)


def test_longformers_gradients_are_those_of_transformers() -> None:
    everywhere = torch.zeros(1, 64, dtype=torch.long)
    everywhere[:, 0] = 1
    assert_like_transformers("longformer", 64, without_dropout, global_attention_mask=everywhere)


def test_reformer_has_the_gradients_of_its_reversible_layers() -> None:
    from fontes.neural.encoders.networks import buckets

    def prepare(part: Any) -> None:
        without_dropout(part)
        if hasattr(part, "hash_seed"):
            part.hash_seed, part.num_buckets = 0, buckets(256, part.config)

    assert_like_transformers("reformer", 256, prepare, use_cache=False)


@each("kind", ["bert", "nystromformer", "longformer", "reformer", "favor+"])
def test_dropout_follows_the_state_of_the_random_numbers(kind: str) -> None:
    model = trainable(encoder(kind), dropout=0.2).train()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second = vectors(model, TEXTS), vectors(model, TEXTS)
    assert float((first - second).detach().abs().max()) > 1e-3
    torch.set_rng_state(state)
    assert torch.equal(first, vectors(model, TEXTS))
    assert torch.equal(second, vectors(model, TEXTS))


@each("kind", ["bert", "t5", "longformer", "reformer"])
def test_dropout_is_set_in_all_layers_and_not_in_the_configuration(kind: str) -> None:
    model = trainable(encoder(kind), dropout=0.0).train()
    assert torch.equal(vectors(model, TEXTS), vectors(model, TEXTS))
    before = transformers.AutoConfig.from_pretrained(tiny(kind)).to_dict()
    after = model[0].model.config.to_dict()
    assert {name: after[name] for name in before if "dropout" in name} == {
        name: value for name, value in before.items() if "dropout" in name
    }


@pytest.mark.parametrize("kind", ["nystromformer", "favor+"])
def test_approximate_attention_keeps_its_digits_under_autocast(kind: str) -> None:
    model = trainable(encoder(kind), dropout=0.0).train()
    exact = vectors(model, TEXTS).detach()
    with torch.autocast("cpu", torch.bfloat16):
        near = vectors(model, TEXTS).detach().float()
    assert float((exact * near).sum(dim=1).min()) > 0.99


def test_the_fingerprint_of_a_model_counts_what_its_attention_is(tmp_path: Path) -> None:
    with hub.quiet():
        trainable(encoder("favor+")).save_pretrained(str(tmp_path / "model"), create_model_card=False)
    before = SentenceEncoder(tmp_path / "model").fingerprint
    (tmp_path / "model" / "fontes.json").write_text('{"attention": "favor+", "features": 17}')
    assert SentenceEncoder(tmp_path / "model").fingerprint != before
