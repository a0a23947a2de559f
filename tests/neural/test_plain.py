"""Models that run from their files alone give what sentence-transformers gives on the same files; the others are left to it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.runtimes import by_sentence_transformers
from support.tiny_models import MARKS, SIZES, WORDS, docs, saved_once, text, tiny

import fontes as ft
from fontes.neural.encoders.sentence import PlainModel
from fontes.neural.models import hub

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from sentence_transformers.sentence_transformer import modules as parts  # noqa: E402

from fontes.neural.models import bert  # noqa: E402

TEXTS = ["the spring", "", text(70), "  deep\n\tground ", "River unknown rivers é", text(9)]
PAIRS = [("the spring", text(7)), ("", ""), (text(3), text(90)), (text(40), "river"), ("Sea wells", "unknown é")]
POSITIONS = {"bert": 64, "roberta": 66, "xlm-roberta": 66}


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


def tokenizer_of(kind: str) -> Any:
    """A tokenizer of the class that transformers has for a kind of models."""
    if kind == "bert":
        return transformers.BertTokenizer(vocab={word: number for number, word in enumerate([*MARKS, *WORDS])})
    pieces = [(mark, 0.0) for mark in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces += [(f"▁{word}", -2.0 - number) for number, word in enumerate(dict.fromkeys(WORDS))]
    return transformers.XLMRobertaTokenizer(vocab=[*pieces, ("r", -30.0), ("▁", -31.0), ("<mask>", 0.0)])


def save_model(folder: Path, kind: str, head: str = "Model", labels: int = 1) -> Path:
    """A model of random weights, far from even attention, with a tokenizer of its kind."""
    return saved_once(("plain", kind, head, labels), lambda kept: write_model(kept, kind, head, labels), folder)


def write_model(folder: Path, kind: str, head: str, labels: int) -> None:
    torch.manual_seed(2)
    padding = 0 if kind == "bert" else 1
    name = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
    sizes = {**SIZES, "max_position_embeddings": POSITIONS[kind], "type_vocab_size": 2 if kind == "bert" else 1}
    config = getattr(transformers, f"{name}Config")(**sizes, pad_token_id=padding, num_labels=labels, layer_norm_eps=1e-5)
    model = getattr(transformers, f"{name}{head}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    with hub.quiet():
        model.save_pretrained(folder)
    tokenizer_of(kind).save_pretrained(folder)
    change(folder / "tokenizer_config.json", model_max_length=64)


def save_encoder(folder: Path, *after: Any, kind: str = "bert", pooling: Any = "mean", prompts: Any = None) -> Path:
    """A model of sentence-transformers with a transformer, pooling and what is named after it."""
    transformer = parts.Transformer(str(save_model(folder.with_name(f"{folder.name}-body"), kind)), max_seq_length=40)
    pooled = parts.Pooling(SIZES["hidden_size"], pooling_mode=pooling)
    model = sentence_transformers.SentenceTransformer(modules=[transformer, pooled, *after], prompts=prompts, device="cpu")
    with hub.quiet():
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


def theirs(folder: Path, **settings: Any) -> Any:
    with hub.quiet():
        return sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(TEXTS, **settings)


def ours(folder: Path, **settings: Any) -> ft.SentenceEncoder:
    return ft.SentenceEncoder(folder, precision="float32", device="cpu", normalize=False, **settings)


POOLINGS = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("mean", "cls", "max")]


@each("pooling", POOLINGS)
def test_each_pooling_is_that_of_sentence_transformers(pooling: Any, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", pooling=pooling)
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), theirs(folder), atol=1e-5)
    assert not by_sentence_transformers(encoder)
    assert encoder.length == 40


@each("kind", ["bert", "xlm-roberta"])
@each("activation", [torch.nn.Tanh(), torch.nn.Identity()])
def test_projections_lengths_and_prompts_are_those_of_sentence_transformers(kind: str, activation: Any, tmp_path: Path) -> None:
    projection = parts.Dense(SIZES["hidden_size"], 12, bias=kind == "bert", activation_function=activation)
    prompts = {"query": "the sea ", "document": "of "}
    folder = save_encoder(tmp_path / "m", projection, parts.Normalize(), kind=kind, prompts=prompts)
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), theirs(folder, prompt_name="query"), atol=1e-5)
    found = encoder.encode_documents([ft.Doc("", one) for one in ["river", "deep sea"]])
    with_prompt = ours(folder, query_prompt="").encode_queries(["of river", "of deep sea"])
    np.testing.assert_allclose(found, with_prompt, atol=1e-6)
    assert not by_sentence_transformers(encoder)
    assert (encoder.dim, encoder.similarity) == (12, "dot")


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta"])
def test_a_padding_token_inside_a_text_has_the_position_of_padding(kind: str, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", kind)
    config = json.loads((folder / "config.json").read_text())
    padding = config["pad_token_id"]
    shape = bert.Shape.of(config)
    assert shape is not None
    network = bert.encoder(folder / "model.safetensors", shape)
    ids = torch.tensor([[5, padding, 7, padding, padding, 9], [5, 6, 7, 8, 9, 10]])
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        expected = transformers.AutoModel.from_pretrained(folder).eval()(input_ids=ids, attention_mask=mask).last_hidden_state
        np.testing.assert_allclose(network(ids, mask).numpy(), expected.numpy(), atol=1e-4)


def test_older_settings_of_sentence_transformers_are_read_too(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", parts.Normalize())
    older = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(older))
    types = [
        {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
        for i, (p, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])
    ]
    (folder / "modules.json").write_text(json.dumps(types))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 17, "do_lower_case": False}))
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), theirs(folder), atol=1e-5)
    assert not by_sentence_transformers(encoder)
    assert encoder.length == 17


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_texts_are_put_in_lower_case_where_the_settings_say_so(kind: str, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", kind=kind)
    before = ours(folder).encode_queries(["River"])
    change(folder / "sentence_bert_config.json", do_lower_case=True)
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), theirs(folder), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(["River"]), encoder.encode_queries(["river"]), atol=1e-6)
    assert np.allclose(before, encoder.encode_queries(["River"]), atol=1e-3) == (kind == "bert")
    assert not by_sentence_transformers(encoder)


def other_activation(folder: Path) -> None:
    change(folder / "config.json", hidden_act="relu")


def without_prompt(folder: Path) -> None:
    change(folder / "1_Pooling" / "config.json", include_prompt=False)


def padding_on_the_left(folder: Path) -> None:
    change(folder / "tokenizer_config.json", padding_side="left")


@pytest.mark.parametrize("odd", [other_activation, without_prompt, padding_on_the_left])
def test_what_asks_for_more_is_left_to_sentence_transformers(odd: Callable[[Path], None], tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m")
    odd(folder)
    encoder = ours(folder)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), theirs(folder), atol=1e-5)
    assert by_sentence_transformers(encoder)


def test_another_architecture_is_left_to_sentence_transformers() -> None:
    assert by_sentence_transformers(ours(Path(tiny("distilbert"))))


def test_weights_that_are_not_all_there_are_left_to_sentence_transformers(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_encoder(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor for name, tensor in weights.items() if "layer.1.output" not in name}, folder / "model.safetensors")
    assert PlainModel.of(folder, None, "float32", "cpu") is None


def test_a_length_that_is_asked_for_cuts_as_sentence_transformers_cuts(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m")
    with hub.quiet():
        model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 9
    np.testing.assert_allclose(ours(folder, max_length=9).encode_queries(TEXTS), model.encode(TEXTS), atol=1e-5)


def test_windows_see_all_tokens_of_a_text_that_is_longer_than_the_model_reads(tmp_path: Path) -> None:
    encoder, long = ours(save_encoder(tmp_path / "m")), text(90)
    words = [long[start:end] for start, end in encoder.spans(long)]
    assert words == long.split(" ")


@each("kind", ["bert", "roberta", "xlm-roberta"])
@each("labels", [1, 2])
def test_cross_encoders_give_the_scores_of_sentence_transformers(kind: str, labels: int, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", kind, "ForSequenceClassification", labels)
    with hub.quiet():
        model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    logits = model.predict(PAIRS, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    expected = logits[:, 1] - logits[:, 0] if labels == 2 else logits
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu")
    np.testing.assert_allclose(reranker.scores(PAIRS), expected, atol=1e-4)
    assert np.ptp(expected) > 0.1
    assert not by_sentence_transformers(reranker)


def test_a_cross_encoder_of_another_architecture_is_left_to_sentence_transformers(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", "ForSequenceClassification")
    change(folder / "config.json", hidden_act="gelu_new")
    reranker = ft.CrossEncoder(folder, precision="float32", device="cpu")
    assert reranker.scores(PAIRS).shape == (len(PAIRS),)
    assert by_sentence_transformers(reranker)


def test_bfloat16_is_within_its_rounding_alone_and_in_a_batch(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", parts.Normalize())
    encoder = ours(folder).with_(precision="bfloat16")
    given = docs(3, 30, 17, 5)
    vectors, exact = encoder.encode_documents(given), ours(folder).encode_documents(given)
    assert (vectors * exact).sum(axis=1).min() > 0.999
    alone = np.concatenate([encoder.encode_documents([doc]) for doc in given])
    assert (vectors * alone).sum(axis=1).min() > 0.999


@pytest.mark.parametrize(("gelu", "residual"), [(False, False), (True, False), (False, True)])
def test_a_packed_layer_is_a_linear_layer_with_what_follows(gelu: bool, residual: bool) -> None:
    torch.manual_seed(0)
    with torch.inference_mode():
        layer = bert.Linear(64, 48).requires_grad_(False)
        layer.weight.normal_(0, 0.1)
        layer.bias.normal_(0, 0.1)
        layer = layer.bfloat16()
        rows, other = torch.randn(33, 64).bfloat16(), torch.randn(33, 48).bfloat16() if residual else None
        expected = rows.double() @ layer.weight.double().T + layer.bias.double()
        expected = torch.nn.functional.gelu(expected) if gelu else expected
        expected = expected if other is None else expected + other.double()
        for _ in range(2):
            np.testing.assert_allclose(layer(rows, gelu, other).double(), expected, atol=0.02, rtol=0.01)
        wide = layer.float()  # its weights are not those that were packed
        np.testing.assert_allclose(wide(rows.float(), gelu, None if other is None else other.float()), expected, atol=1e-5)


def test_a_search_of_the_command_line_loads_no_library_that_it_does_not_run(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", parts.Normalize())
    index = ft.Index.build([{"_id": "a", "text": "the deep sea"}, {"_id": "b", "text": "a spring"}], tmp_path / "x.index")
    index.encode(ft.SentenceEncoder(folder, precision="float32"))
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "fontes",
        "search",
        str(index.path),
        "sea",
        "--model",
        "dense",
        "--json",
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["hits"]
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "torch.nn" in modules
    others = {"transformers", "sentence_transformers", "datasets", "accelerate", "sklearn", "pandas", "scipy.stats", "faiss"}
    others |= {"torch._dynamo", "torch._inductor", "sympy", "huggingface_hub", "onnxruntime"}
    assert not modules & others


def test_the_digest_of_a_large_file_is_noted_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    weights = tmp_path / "m" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(bytes(hub.MIN_STORED_FILE))
    (weights.parent / "config.json").write_text("{}")
    first = hub.fingerprint(weights.parent)
    ((path, noted),) = json.loads((tmp_path / "cache" / "models.json").read_text()).items()
    assert Path(path) == weights
    hub._file_digest.cache_clear()
    assert hub.fingerprint(weights.parent) == first
    (tmp_path / "cache" / "models.json").write_text(json.dumps({path: [*noted[:-1], "another"]}))
    hub._file_digest.cache_clear()
    assert hub.fingerprint(weights.parent) != first  # it is read from the notes
    weights.write_bytes(bytes(hub.MIN_STORED_FILE - 1) + b"1")
    changed = hub.fingerprint(weights.parent)
    weights.write_bytes(bytes(hub.MIN_STORED_FILE))
    assert changed != first == hub.fingerprint(weights.parent)
