"""Encoders: their vectors are those of the libraries, alone and in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each
from support.pairs import every_other
from support.tiny_models import CONFIGURATIONS, docs, tiny

from fontes import ChunkedEncoder, Doc, SentenceEncoder, TransformerEncoder
from fontes.core.values import text_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fontes.neural.models.bert import Bert  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def plain(folder: str) -> tuple[Any, Any]:
    return transformers.AutoModel.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(folder)


def recomputed(folder: str, given: Doc, pooling: str, length: int, **more: Any) -> NDArray[np.float32]:
    """The vector of one document with transformers and nothing else."""
    model, tokenizer = plain(folder)
    inputs = tokenizer(text_of(given), return_tensors="pt", truncation=True, max_length=length, return_token_type_ids=False)
    if "longformer" in type(model).__name__.lower():
        more["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
        more["global_attention_mask"][:, 0] = 1
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    with torch.inference_mode():
        hidden = model(**inputs, **more).last_hidden_state[0]
    found: NDArray[np.float32] = {"cls": hidden[0], "mean": hidden.mean(0), "max": hidden.amax(0)}[pooling].numpy()
    return found


@pytest.mark.parametrize(
    ("kind", "pooling"), every_other(["bert", "roberta", "distilbert", "longformer", "t5"], ["cls", "mean", "max"])
)
def test_vectors_are_those_of_transformers(kind: str, pooling: str) -> None:
    folder = tiny(kind)
    encoder = TransformerEncoder(folder, pooling, normalize=False, precision="float32", batch_size=2)
    given = docs(3, 70, 20, 41, 0, 20)
    found = encoder.encode_documents(given)
    assert found.dtype == np.float32
    assert found.shape == (6, encoder.dim)
    for row, doc in zip(found, given, strict=True):
        np.testing.assert_allclose(row, recomputed(folder, doc, pooling, 400), atol=1e-4)


@each("kind", ["bert", "roberta"])
def test_bert_and_roberta_run_on_our_own_network(kind: str) -> None:
    encoder = TransformerEncoder(tiny(kind), normalize=False, precision="float32")
    given = docs(3, 70, 20)
    for row, doc in zip(encoder.encode_documents(given), given, strict=True):
        np.testing.assert_allclose(row, recomputed(tiny(kind), doc, "mean", 400), atol=1e-5)
    assert type(encoder._model.prepared.module) is Bert
    assert type(TransformerEncoder(tiny("bert"), attention="favor+")._model.prepared.module) is not Bert


@each("kind", [*CONFIGURATIONS, "favor+"])
def test_a_text_has_the_same_vector_alone_and_in_a_batch(kind: str) -> None:
    folder, attention = (tiny("bert"), "favor+") if kind == "favor+" else (tiny(kind), "model")
    given = docs(3, 70, 20, 41, 5, 14, 30, 8, 100)
    encoder = TransformerEncoder(folder, precision="float32", attention=attention, batch_size=1000)
    together = encoder.encode_documents(given)
    alone = np.concatenate([encoder.encode_documents([doc]) for doc in reversed(given)])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_bert_reads_as_much_as_it_has_positions_for() -> None:
    folder = tiny("bert")
    encoder = TransformerEncoder(folder, normalize=False, precision="float32")
    assert encoder.length == 512
    given = docs(900)
    np.testing.assert_allclose(encoder.encode_documents(given)[0], recomputed(folder, given[0], "mean", 512), atol=1e-4)
    short = TransformerEncoder(folder, max_length=20, normalize=False, precision="float32")
    np.testing.assert_allclose(short.encode_documents(given)[0], recomputed(folder, given[0], "mean", 20), atol=1e-4)


@each(("kind", "length"), [("roberta", 401), ("longformer", 513), ("nystromformer", 512), ("reformer", 256)])
def test_the_limit_of_a_model_is_what_its_positions_allow(kind: str, length: int) -> None:
    encoder = TransformerEncoder(tiny(kind), precision="float32")
    assert encoder.length == length
    assert np.isfinite(encoder.encode_documents(docs(800, 3))).all()


# Nyströmformer


def nystrom_by_transformers(folder: str, given: Doc, segment: int) -> NDArray[np.float32]:
    """With transformers' own approximation, set to segments of the text's length; it takes no padding and so no mask."""
    model, tokenizer = plain(folder)
    inputs = tokenizer(text_of(given), return_tensors="pt")["input_ids"]
    for part in model.modules():
        if hasattr(part, "num_landmarks"):
            part.seq_len = segment or part.num_landmarks
    with torch.inference_mode():
        found: NDArray[np.float32] = model(input_ids=inputs).last_hidden_state[0].mean(0).numpy()
    return found


def test_nystroemformer_runs_the_approximation_of_transformers() -> None:
    folder = tiny("nystromformer")
    encoder = TransformerEncoder(folder, normalize=False, precision="float32")
    given = docs(62, 126, 6, 70)  # 64 and 128 tokens: multiples of the 8 landmarks; 8: as many; 72 pads the batch
    found = encoder.encode_documents(given)
    for i, tokens in ((0, 64), (1, 128), (3, 72)):
        np.testing.assert_allclose(found[i], nystrom_by_transformers(folder, given[i], tokens), atol=1e-4)
        assert np.abs(found[i] - nystrom_by_transformers(folder, given[i], 0)).max() > 1e-2  # full attention
    np.testing.assert_allclose(found[2], nystrom_by_transformers(folder, given[2], 0), atol=1e-4)


def test_a_sentence_encoder_of_a_nystroemformer_runs_its_approximation_too() -> None:
    folder = tiny("nystromformer")
    encoder = SentenceEncoder(folder, normalize=False, precision="float32")  # a plain folder: pooled by the mean
    given = docs(62, 126, 6, 70, 33, 7)
    found = encoder.encode_documents(given)
    for i, tokens in ((0, 64), (1, 128), (2, 0), (3, 72)):
        np.testing.assert_allclose(found[i], nystrom_by_transformers(folder, given[i], tokens), atol=1e-4)
    same = TransformerEncoder(folder, normalize=False, precision="float32").encode_documents(given)
    np.testing.assert_allclose(found, same, atol=1e-4)
    alone = np.concatenate([encoder.encode_documents([doc]) for doc in given])
    np.testing.assert_allclose(found, alone, atol=1e-4)
    half = SentenceEncoder(folder, precision="bfloat16").encode_documents(given)
    assert np.sum(half * found / np.linalg.norm(found, axis=1, keepdims=True), axis=1).min() > 0.99


def test_nystroems_segments_are_the_texts_own_whatever_its_length() -> None:
    from fontes.neural.encoders.networks import _segments

    mask = torch.zeros(2, 12, dtype=torch.bool)
    mask[0, :10], mask[1, :8] = True, True
    means = _segments(mask, 4)[:, 0]
    np.testing.assert_allclose(means.sum(-1), 1, atol=1e-6)
    assert (means > 0).sum(-1).tolist() == [[2, 3, 2, 3], [2, 2, 2, 2]]
    assert (means > 0).sum(1).tolist() == [[1] * 10 + [0] * 2, [1] * 8 + [0] * 4]


def largest_matrix(encoder: TransformerEncoder, words: int) -> int:
    """The most numbers in a result of a matrix product while a text is encoded."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Products(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and "bmm" in str(function):
                self.most = max(self.most, result.numel())
            return result

    with Products() as seen:
        encoder.encode_documents(docs(words))
    return seen.most


@pytest.mark.parametrize(("kind", "attention"), [("nystromformer", "model"), ("bert", "favor+")])
def test_the_cost_of_linear_attention_grows_with_the_length_not_its_square(kind: str, attention: str) -> None:
    encoder = TransformerEncoder(tiny(kind), precision="float32", attention=attention, features=16)
    encoder.encode_documents(docs(10))
    assert largest_matrix(encoder, 398) == pytest.approx(2 * largest_matrix(encoder, 198), rel=0.02)


# Reformer


def reformer_by_transformers(folder: str, given: Doc) -> NDArray[np.float32]:
    model, tokenizer = plain(folder)
    model.config.num_buckets = None
    for part in model.modules():
        if hasattr(part, "hash_seed"):
            part.hash_seed, part.num_buckets = 0, None
    inputs = tokenizer(text_of(given), return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        found: NDArray[np.float32] = model(**inputs, use_cache=False).last_hidden_state[0].mean(0).numpy()
    return found


def test_reformer_is_that_of_transformers_with_fresh_buckets_and_a_fixed_seed() -> None:
    folder = tiny("reformer")
    encoder = TransformerEncoder(folder, normalize=False, precision="float32")
    assert encoder.dim == 64  # twice its hidden size: both streams
    given = docs(100, 30, 5, 250, 14, 15)
    state = torch.random.get_rng_state()
    found = encoder.encode_documents(given)
    assert torch.equal(state, torch.random.get_rng_state())
    for row, doc in zip(found, given, strict=True):
        np.testing.assert_allclose(row, reformer_by_transformers(folder, doc), atol=1e-4)


# Performer


def test_the_error_of_favor_shrinks_with_the_number_of_features() -> None:
    from fontes.neural.encoders.networks import favor, orthogonal_features

    torch.manual_seed(0)
    query, key, value = (torch.randn(3, 4, 60, 16) / 2 for _ in range(3))
    mask = torch.ones(3, 60, dtype=torch.bool)
    mask[1, 40:] = False
    scores = (query @ key.transpose(-1, -2) / 4).masked_fill(~mask[:, None, None, :], float("-inf"))
    exact = torch.softmax(scores, -1) @ value
    errors = [
        float(
            np.mean([(favor(query, key, value, mask, orthogonal_features(m, 16, s)) - exact).square().mean() for s in range(4)])
        )
        for m in (16, 128, 1024, 8192)
    ]
    assert errors[0] > 4 * errors[1] > 16 * errors[2] > 64 * errors[3]  # in theory the one over the number: 8
    assert errors[3] < 1e-2 * float(exact.square().mean())


def test_the_features_of_favor_are_orthogonal_and_as_long_as_random_ones() -> None:
    from fontes.neural.encoders.networks import orthogonal_features

    omega = orthogonal_features(40, 16)
    assert omega.shape == (40, 16)
    products = omega[:16] @ omega[:16].T
    np.testing.assert_allclose(products - torch.diag(products.diag()), 0, atol=1e-4)
    many = orthogonal_features(4096, 16)
    assert float(many.square().sum(1).mean()) == pytest.approx(16, rel=0.03)
    assert torch.equal(many, orthogonal_features(4096, 16))


def test_a_bert_runs_as_a_performer_and_comes_near_to_itself() -> None:
    given = docs(60, 100)
    exact = TransformerEncoder(tiny("bert"), precision="float32").encode_documents(given)
    near = TransformerEncoder(tiny("bert"), precision="float32", attention="favor+", features=4096).encode_documents(given)
    far = TransformerEncoder(tiny("bert"), precision="float32", attention="favor+", features=4).encode_documents(given)
    assert np.sum(exact * near, axis=1).min() > 0.95
    assert np.sum(exact * far, axis=1).min() < np.sum(exact * near, axis=1).min()


# Errors and identity


def test_lone_surrogates_are_read_as_replacement_characters() -> None:
    for encoder in (TransformerEncoder(tiny("bert")), SentenceEncoder(tiny("bert"))):
        found, wanted = encoder.encode_queries(["the \ud800 river", "the \ufffd river"])
        assert found.tolist() == wanted.tolist()


def test_the_fingerprint_changes_with_whatever_changes_documents_and_nothing_else() -> None:
    base = TransformerEncoder(tiny("bert"))
    same = [{"query_prompt": "q: "}, {"batch_size": 7}, {"precision": "float32"}, {"device": "cpu"}, {"features": 99}]
    other = [{"pooling": "cls"}, {"max_length": 9}, {"document_prompt": "d: "}, {"normalize": False}, {"attention": "favor+"}]
    assert {TransformerEncoder(tiny("bert"), **changes).fingerprint for changes in same} == {base.fingerprint}  # type: ignore[arg-type]
    prints = {TransformerEncoder(tiny("bert"), **changes).fingerprint for changes in other}  # type: ignore[arg-type]
    prints |= {TransformerEncoder(tiny("roberta")).fingerprint, SentenceEncoder(tiny("bert")).fingerprint}
    assert len(prints | {base.fingerprint}) == 8
    assert all(len(one) == 32 for one in prints)


def test_prompts_come_before_titles_and_texts() -> None:
    encoder = TransformerEncoder(tiny("bert"), query_prompt="the ", document_prompt="of ", precision="float32")
    bare = TransformerEncoder(tiny("bert"), precision="float32")
    found = encoder.encode_documents([Doc("1", "river", "deep"), Doc("2", "river ", " ")])
    np.testing.assert_allclose(found, bare.encode_queries(["of deep river", "of river"]), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(["sea"]), bare.encode_queries(["the sea"]), atol=1e-6)


def test_nothing_to_encode_gives_no_vectors() -> None:
    for encoder in (TransformerEncoder(tiny("bert")), ChunkedEncoder(TransformerEncoder(tiny("bert")), pooling="mean")):
        assert encoder.encode_documents([]).shape == (0, 32)
        assert encoder.encode_queries([]).shape == (0, 32)


def test_16_bit_precisions_run_in_each_architecture() -> None:
    given = docs(20, 70)
    for kind in CONFIGURATIONS:
        found = TransformerEncoder(tiny(kind), precision="bfloat16").encode_documents(given)
        assert found.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
