"""ModernBERT runs on our own network with the results of transformers; int8 weights; threads of torch."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.runtimes import by_sentence_transformers
from support.tiny_models import MARKS, WORDS, save_tokenizer, text

import fontes as ft
from fontes.core.work import work
from fontes.neural.late.colbert import ColBERT
from fontes.neural.models import compute, hub

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from sentence_transformers.sentence_transformer import modules as parts  # noqa: E402

from fontes.neural.models import bert, modernbert  # noqa: E402
from fontes.neural.models.compute import prepare_module  # noqa: E402
from fontes.neural.models.layers import Linear  # noqa: E402

SIZES = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 48}
WINDOW = 8  # tokens that a token attends to in local attention
LENGTHS = [[1], [1, 2, 3], [5, 5, 6], [4, 70, 5], [33, 32, 31, 64, 65], [150, 3, 150]]
BIASES = {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "biases": BIASES,
    "global": {"layer_types": ["full_attention"] * 4},
    "local first": {"layer_types": ["sliding_attention", "full_attention"] * 2},
}
PAIRS = [("the spring", text(7)), ("", ""), (text(3), text(90)), (text(40), "river"), ("Sea wells", "unknown é")]


def save_model(folder: Path, head: str = "Model", **settings: Any) -> Path:
    """A ModernBERT of random weights, far from even attention, with a tokenizer of a few words."""
    torch.manual_seed(3)
    tokens = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    sizes = {"vocab_size": 40, "local_attention": WINDOW, "max_position_embeddings": 512, **SIZES, **tokens}
    model = getattr(transformers, f"ModernBert{head}")(transformers.ModernBertConfig(**sizes, **settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.15)
    with hub.quiet():
        model.save_pretrained(folder)
    inputs = {"model_input_names": ["input_ids", "attention_mask"], "model_max_length": 512}
    save_tokenizer(folder, [*MARKS, *WORDS], **inputs)
    return folder


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


def save_encoder(folder: Path, **settings: Any) -> Path:
    transformer = parts.Transformer(str(save_model(folder.with_name("body"), **settings)))
    model = sentence_transformers.SentenceTransformer(modules=[transformer, parts.Pooling(32)], device="cpu")
    with hub.quiet():
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


def batch(lengths: list[int]) -> tuple[Any, Any]:
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(5, 40, mask.shape, generator=torch.Generator().manual_seed(sum(lengths)))
    return ids * mask, mask


def network_of(folder: Path) -> Any:
    network = bert.backbone(folder)
    assert isinstance(network, modernbert.ModernBert)
    return network


@each("settings", SETTINGS.values(), SETTINGS)
def test_hidden_states_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", **settings)
    network, model = network_of(folder), transformers.AutoModel.from_pretrained(folder).eval()
    for lengths in LENGTHS:
        ids, mask = batch(lengths)
        with torch.inference_mode():
            expected = model(input_ids=ids, attention_mask=mask).last_hidden_state
            np.testing.assert_allclose(network(ids, mask), expected * mask[..., None], atol=2e-5, err_msg=str(lengths))
            np.testing.assert_allclose(network(ids, mask, every=True), expected, atol=2e-5, err_msg=str(lengths))


def test_each_setting_of_attention_changes_the_hidden_states(tmp_path: Path) -> None:
    ids, mask = batch([150, 3])
    states = []
    for number, settings in enumerate(
        [
            {},
            {"local_attention": 16},
            {"layer_types": ["full_attention"] * 4},
            {"global_rope_theta": 9.0},
            {"local_rope_theta": 9.0},
        ]
    ):
        folder = save_model(tmp_path / str(number))
        change(folder / "config.json", **settings, **({"rope_parameters": None} if "theta" in str(settings) else {}))
        with torch.inference_mode():
            states.append(network_of(folder)(ids, mask))
            expected = transformers.AutoModel.from_pretrained(folder).eval()(input_ids=ids, attention_mask=mask)
        np.testing.assert_allclose(states[-1], expected.last_hidden_state * mask[..., None], atol=2e-5)
    assert all(float((first - second).abs().max()) > 1e-2 for first, second in zip(states[1:], states[:-1], strict=True))


@each(
    "settings",
    [
        {"hidden_activation": "relu"},
        {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1.0, "factor": 2.0}}},
        {"layer_types": ["chunked_attention"] * 4},
        {"classifier_pooling": "last"},
        {"local_rope_theta": None, "rope_parameters": None},
        {"num_hidden_layers": None},
        {"num_attention_heads": 3},
        {"sliding_window": 8},
        {"quantization_config": {}},
    ],
)
def test_other_settings_are_left_to_transformers(settings: dict[str, Any]) -> None:
    config = {**transformers.ModernBertConfig(**SIZES).to_dict()}
    assert isinstance(bert.Shape.of(config), modernbert.Shape)
    assert bert.Shape.of({**config, **settings}) is None


def test_an_encoder_gives_the_vectors_of_sentence_transformers(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m")
    texts = ["the spring", "", text(300), text(70), "River unknown rivers é"]
    encoder = ft.SentenceEncoder(folder, precision="float32", device="cpu", normalize=False)
    with hub.quiet():
        expected = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(encoder.encode_queries(texts), expected, atol=1e-5)
    assert not by_sentence_transformers(encoder)


@each("pooling", ["cls", "mean"])
@each("labels", [1, 2])
def test_a_cross_encoder_gives_the_logits_of_sentence_transformers(pooling: str, labels: int, tmp_path: Path) -> None:
    settings = {**BIASES, "num_labels": labels, "classifier_pooling": pooling}
    folder = save_model(tmp_path / "m", "ForSequenceClassification", **settings)
    encoder = ft.CrossEncoder(folder, precision="float32", device="cpu")
    with hub.quiet():
        model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    expected = model.predict(PAIRS, activation_fn=torch.nn.Identity())
    expected = expected if labels == 1 else expected[:, 1] - expected[:, 0]
    np.testing.assert_allclose(encoder.scores(PAIRS), expected, atol=1e-5)
    assert not by_sentence_transformers(encoder)


@pytest.mark.parametrize("attend", [False, True])
def test_late_interaction_with_expanded_queries_gives_the_vectors_of_transformers(attend: bool, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m")
    model = ColBERT(str(folder), precision="float32", device="cpu", query_length=40, expand=True, attend=attend)
    documents = [ft.Doc("", text(length)) for length in (3, 50, 9)]
    vectors, bounds = model.encode_documents(documents)
    query = model.encode_queries(["the spring of a river"])[0]
    loaded = model._model
    assert isinstance(loaded.prepared.module.backbone, modernbert.ModernBert)
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    loaded.prepared.module.backbone.forward = lambda ids, mask, types=None, every=False: theirs(
        input_ids=ids, attention_mask=mask
    )[0]
    expected, expected_bounds = model.encode_documents(documents)
    np.testing.assert_array_equal(bounds, expected_bounds)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(query, model.encode_queries(["the spring of a river"])[0], atol=1e-5)


# int8 weights


def test_int8_weights_give_nearly_the_vectors_of_float32(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m", **BIASES)
    texts = ["the spring", text(300), text(70)]
    exact, rounded = (ft.SentenceEncoder(folder, precision=name, device="cpu") for name in ("float32", "int8"))
    cosines = (exact.encode_queries(texts) * rounded.encode_queries(texts)).sum(1)
    assert rounded.chosen_precision.startswith("int8 (calibration: ")
    assert 0.99 < cosines.min() < cosines.max() < 1 - 1e-6
    assert exact.fingerprint == rounded.fingerprint


@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_int8_weights_that_take_longer_than_without_are_a_warning(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def timed(outputs: Any, module: Any) -> tuple[np.ndarray, float]:
        rounded = any(part._int8 is not None for part in module.modules() if isinstance(part, Linear))
        return np.eye(2), seconds if rounded else 1.0

    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compute, "_timed", timed)
    encoder = ft.SentenceEncoder(save_encoder(tmp_path / "m"), precision="int8", device="cpu")
    assert encoder.chosen_precision.startswith("int8")
    warned = "int8 takes 2 times as long as" in caplog.text
    assert warned is (seconds > 1)
    monkeypatch.setattr(compute, "_timed", lambda *_: pytest.fail("timed again"))
    stored = prepare_module(bert.backbone(tmp_path / "body"), lambda module: module, precision="int8")
    assert stored.precision.seconds["int8"] == seconds


def test_int8_weights_keep_each_output_to_its_own_scale() -> None:
    from fontes.neural.models.layers import Int8Weight

    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(16, 32, generator=generator) * 10.0 ** torch.arange(-8, 8)[:, None]
    inputs = torch.randn(5, 32, generator=generator) * 10.0 ** torch.arange(-2, 3)[:, None]
    found = Int8Weight(weight).product(inputs, None)
    size = inputs.norm(dim=1, keepdim=True) * weight.norm(dim=1)
    assert float(((found - inputs @ weight.T).abs() / size).max()) < 0.02
    bias = torch.arange(16.0)
    torch.testing.assert_close(Int8Weight(weight).product(inputs, bias), found + bias)


# Threads


def threads_of(monkeypatch: pytest.MonkeyPatch, available: int, tokens: list[int]) -> list[int]:
    """Threads of torch in the batches of texts of these lengths, each in a batch of its own."""
    for name in compute.THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compute, "processors", lambda: available)
    return [int(compute.in_batches([count], 1, lambda batch: np.array([torch.get_num_threads()]))[0]) for count in tokens]


@pytest.fixture
def four_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_a_short_text_is_encoded_by_one_thread_and_a_long_one_by_all(
    monkeypatch: pytest.MonkeyPatch, four_threads: None
) -> None:
    assert threads_of(monkeypatch, 64, [1, 128, 129, 4096]) == [1, 1, 2, 4]
    assert threads_of(monkeypatch, 3, [4096]) == [3]
    with work(threads=2):
        assert threads_of(monkeypatch, 64, [4096, 1]) == [2, 1]
    assert torch.get_num_threads() == 4


def test_concurrent_encodings_share_the_threads_of_torch(monkeypatch: pytest.MonkeyPatch, four_threads: None) -> None:
    for name in compute.THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compute, "processors", lambda: 64)
    inside, go_on = threading.Event(), threading.Event()

    def encoded(tokens: int, wait: bool) -> tuple[int, int]:
        def work(batch: Any) -> Any:
            inside.set()
            assert not wait or go_on.wait(60)
            return np.array([torch.get_num_threads()])

        return int(compute.in_batches([tokens], 1, work)[0]), torch.get_num_threads()

    with ThreadPoolExecutor() as pool:
        short = pool.submit(encoded, 1, True)
        assert inside.wait(60)
        long = pool.submit(encoded, 4096, False)  # in a new thread, which torch starts with the short text's number
        assert long.result(60) == (4, 4)
        go_on.set()
        assert short.result(60) == (1, 4)
    assert torch.get_num_threads() == compute.most_threads() == 4


def test_threads_that_the_environment_names_stay(monkeypatch: pytest.MonkeyPatch, four_threads: None) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.setattr(compute, "processors", lambda: 1)
    assert compute.in_batches([1], 1, lambda batch: np.array([torch.get_num_threads()])).tolist() == [4]
    assert compute.most_threads() == 4


@pytest.mark.parametrize(("variables", "policy"), [({}, "PASSIVE"), ({"GOMP_SPINCOUNT": "7"}, None)])
def test_threads_of_torch_wait_asleep_unless_the_environment_says_how(variables: dict[str, str], policy: str | None) -> None:
    program = (
        "import os, sys, fontes.neural.models.hub as hub\n"
        "seen = []\n"
        "hub.import_module = lambda name: seen.append(os.environ.get('OMP_WAIT_POLICY'))\n"
        "hub.library('torch', 'a test'); print(seen, os.environ.get('OMP_WAIT_POLICY'), 'torch' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name not in hub.WAITING}
    found = subprocess.run(
        [sys.executable, "-c", program], env={**environment, **variables}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"{[policy]} None False"


def test_a_model_without_a_network_of_ours_still_runs(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "m")
    change(folder / "config.json", hidden_activation="gelu_new")
    encoder = ft.SentenceEncoder(folder, precision="float32", device="cpu")
    assert encoder.encode_queries(["the spring"]).shape == (1, 32)
    assert by_sentence_transformers(encoder)
