"""Finding models, choosing a precision, and batches by tokens."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fontes.core import InputError
from fontes.core.work import work
from fontes.neural.models import compute, hub as models
from fontes.neural.models.compute import ComputePrecision, in_batches, prepare_module

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache" / "fontes"))
    return tmp_path / "cache" / "fontes" / "precision.json"


def folder_of(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in {"config.json": "{}", "model.safetensors": "weights", **files}.items():
        (path / name).write_text(text)
    return path


# Finding models


def test_a_folder_with_a_model_is_found(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model")
    assert models.find_model(folder) == models.find_model(str(folder)) == folder


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "~/absent-model", "a/b/c", ""])
def test_a_path_that_is_not_there_is_an_error_without_a_look_at_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_list_files", lambda name, seconds: pytest.fail("looked at the hub"))
    with pytest.raises(InputError, match="there is no encoder at"):
        models.find_model(name, "encoder")


def test_a_name_in_no_cache_says_how_to_get_it_when_the_hub_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as caught:
        models.find_model("someone/some-model", "cross-encoder")
    text = str(caught.value)
    assert "the cross-encoder someone/some-model is not on this machine and HF_HUB_OFFLINE is set" in text
    assert "`hf download someone/some-model`" in text
    assert "give the folder of a model" in text
    assert "unset HF_HUB_OFFLINE" in text


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hub's library, with an empty cache, told that there is a network."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    for variable in ("HF_HUB_OFFLINE", "HF_HUB_ETAG_TIMEOUT"):
        monkeypatch.delenv(variable, raising=False)
    return huggingface_hub


def test_a_hub_whose_address_is_never_found_is_not_waited_for(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "HUB_TIMEOUT", 0.05)
    over = threading.Event()  # a resolver without a network may not come back
    monkeypatch.setattr(socket, "create_connection", lambda *a, **b: over.wait() and socket.socket())
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **b: over.wait() and [])
    try:
        with pytest.raises(InputError, match=r"someone/some-model is not on this machine and .* cannot be reached"):
            models.find_model("someone/some-model")
    finally:
        over.set()


def test_how_long_the_hub_is_waited_for_can_be_set(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[Any] = []
    monkeypatch.setattr(models, "_list_files", lambda name, patience: seconds.append(patience) or [])
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, local_files_only=False, **given: given and seconds.append(given["etag_timeout"])
    )
    monkeypatch.setattr(models, "_cached", lambda name: None)
    monkeypatch.setattr(models, "Path", lambda path: Path("there"))
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "7")
    models._downloaded("someone/some-model", "model")
    assert seconds == [7, 7]


def test_a_model_in_the_hubs_cache_is_used_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "_list_files", lambda name, seconds: pytest.fail("looked at the hub"))
    repository = tmp_path / "models--owner--small"
    folder_of(repository / "snapshots" / "0123456789abcdef0123456789abcdef01234567")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123456789abcdef0123456789abcdef01234567")
    found = models.find_model("small", "encoder", owner="owner")
    assert found.name.startswith("0123")
    assert models.find_model("owner/small") == found


def test_a_download_leaves_out_what_is_not_loaded(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def download(name: str, local_files_only: bool = False, ignore_patterns: Any = None, etag_timeout: float = 0) -> str:
        if local_files_only:
            raise hub.errors.LocalEntryNotFoundError("not there")
        asked.append((name, ignore_patterns))
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", download)
    monkeypatch.setattr(models, "_list_files", lambda name, seconds: ["model.safetensors", "pytorch_model.bin"])
    assert models.find_model("small", owner="owner") == tmp_path
    monkeypatch.setattr(models, "_list_files", lambda name, seconds: ["pytorch_model.bin"])
    models.find_model("owner/old")
    assert [(name, "*.bin" in patterns, "*.onnx" in patterns) for name, patterns in asked] == [
        ("owner/small", True, True),
        ("owner/old", False, True),
    ]


def test_the_fingerprint_is_of_weights_and_settings_alone(tmp_path: Path) -> None:
    first = models.fingerprint(folder_of(tmp_path / "a"))
    folder = folder_of(tmp_path / "b", **{"README.md": "words", "pytorch_model.bin": "the same weights once more"})
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("[]")
    assert models.fingerprint(folder) == first
    (folder / "tokenizer.json").write_text("{}")
    second = models.fingerprint(folder)
    (folder / "model.safetensors").write_text("Weights")
    assert len({first, second, models.fingerprint(folder)}) == 3


def test_weights_that_change_without_changing_size_change_the_fingerprint(tmp_path: Path) -> None:
    import os

    folder = folder_of(tmp_path / "a")
    before = models.fingerprint(folder)
    (folder / "model.safetensors").write_text("Weights")
    os.utime(folder / "model.safetensors", ns=(1, 1))
    assert models.fingerprint(folder) != before


def test_two_threads_that_ask_for_a_model_load_it_once() -> None:
    calls: list[int] = []

    def load() -> list[int]:
        time.sleep(0.05)
        calls.append(1)
        return calls

    threads = [threading.Thread(target=models.load_once, args=(("a key of this test",), load)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


# Precision


class Slow(torch.nn.Linear):
    """A linear layer that takes its time in the precisions in `slow`."""

    def __init__(self, *slow: Any, noise: float = 0.0) -> None:
        super().__init__(16, 8)
        self.slow, self.noise = slow, noise

    def forward(self, x: Any) -> Any:
        if self.weight.dtype in self.slow:
            time.sleep(0.05)
        result = super().forward(x.to(self.weight.dtype))
        return result + self.noise * torch.randn_like(result) if self.weight.dtype != torch.float32 else result


def on_sample(module: Any) -> Any:
    return module(torch.linspace(-1, 1, 64).view(4, 16))


@pytest.fixture
def bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may run in bfloat16."""
    monkeypatch.setattr(compute, "candidates", lambda device: ["bfloat16"])


def test_the_quicker_precision_that_agrees_is_chosen_and_the_choice_is_kept(
    bfloat16: None, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "fontes.neural"):
        quick = prepare_module(Slow(torch.float32), on_sample)
    assert quick.precision.name == "bfloat16"
    assert quick.module.weight.dtype == torch.bfloat16
    assert quick.precision.agreement >= 0.999
    assert "Slow runs on cpu in bfloat16 (calibration: float32" in caplog.text
    assert [kept["name"] for kept in json.loads(own_cache.read_text()).values()] == ["bfloat16"]
    again = prepare_module(Slow(torch.bfloat16), on_sample)  # of the same shape: the machine has made up its mind
    assert again.precision == quick.precision


@pytest.mark.parametrize(
    "facts", [{"name": "bfloat17"}, {"seconds": 3}, {"seconds": {"float32": "x"}}, {"agreement": None}, {"x": 1}]
)
def test_a_choice_that_is_damaged_in_the_cache_is_made_again(bfloat16: None, own_cache: Path, facts: dict[str, Any]) -> None:
    prepare_module(Slow(torch.float32), on_sample)
    ((key, kept),) = json.loads(own_cache.read_text()).items()
    own_cache.write_text(json.dumps({key: {**kept, **facts}}))
    assert str(prepare_module(Slow(torch.float32), on_sample).precision).startswith("bfloat16 (calibration")


def test_a_slower_precision_is_not_chosen(bfloat16: None) -> None:
    assert prepare_module(Slow(torch.bfloat16), on_sample, cache=False).precision.name == "float32"


def test_a_precision_that_changes_the_results_is_not_chosen(bfloat16: None) -> None:
    assert prepare_module(Slow(torch.float32, noise=10.0), on_sample, cache=False).precision.name == "float32"


class Turned(torch.nn.Linear):
    """Gives, in 16 bits at once and in float32 slowly, two rows of which the second is turned by the angle of a cosine."""

    def __init__(self, cosine: float) -> None:
        super().__init__(2, 2)
        self.cosine = cosine

    def forward(self, _: Any) -> Any:
        if self.weight.dtype == torch.float32:
            time.sleep(0.02)
            return torch.tensor([[2.0, 0.0], [3.0, 0.0]])
        return torch.tensor([[2.0, 0.0], [self.cosine, (1 - self.cosine**2) ** 0.5]])


@pytest.mark.parametrize(("cosine", "name"), [(0.9992, "bfloat16"), (0.9988, "float32"), (0.99, "float32")])
def test_a_precision_must_keep_a_cosine_of_999_thousandths_in_each_row(cosine: float, name: str, bfloat16: None) -> None:
    assert prepare_module(Turned(cosine), lambda module: module(None), cache=False).precision.name == name


def test_a_damaged_cache_of_choices_is_no_error(own_cache: Path) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("not JSON")
    assert prepare_module(Slow(), on_sample).precision.name in compute.PRECISIONS


def test_a_given_precision_is_taken_without_calibration() -> None:
    found = prepare_module(Slow(), lambda module: pytest.fail("calibrated"), precision="bfloat16")
    assert (found.precision, found.module.weight.dtype) == (ComputePrecision("bfloat16", {}), torch.bfloat16)


def test_agreement_is_the_least_cosine_of_rows_and_the_correlation_of_scores() -> None:
    a = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert compute.agreement(a, 3 * a) == pytest.approx(1)
    assert compute.agreement(a, np.array([[1.0, 0.0], [2.0, 2.0]])) == pytest.approx(2**-0.5)
    assert compute.agreement(np.array([1.0, 2.0, 3.0]), np.array([11.0, 12.0, 13.0])) == pytest.approx(1)
    assert compute.agreement(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    assert compute.agreement(a, np.full((2, 2), np.nan)) == -1


# Batches


def test_batches_keep_to_their_tokens_and_results_are_in_the_order_of_the_items() -> None:
    lengths = [3, 10, 1, 4, 4, 9, 2, 30]
    batches: list[list[int]] = []

    def work(batch: Any) -> Any:
        batches.append([lengths[i] for i in batch])
        return np.array([[lengths[i], i] for i in batch])

    done = in_batches(lengths, 20, work)
    assert done.tolist() == [[length, i] for i, length in enumerate(lengths)]
    assert batches == [[30], [10, 9], [4, 4, 3, 2, 1]]
    assert all(len(batch) == 1 or len(batch) * batch[0] <= 20 for batch in batches)


def test_results_may_be_values_or_of_differing_shape() -> None:
    assert in_batches([1, 2, 3], 2, lambda batch: batch * 1.5).tolist() == [0.0, 1.5, 3.0]

    def ragged(batch: Any) -> Any:
        found = np.empty(len(batch), object)
        for place, i in enumerate(batch):
            found[place] = np.zeros(i)
        return found

    assert [len(one) for one in in_batches([5, 6, 7], 100, ragged)] == [0, 1, 2]
    assert in_batches([], 8, lambda batch: np.empty((len(batch), 4))).shape == (0, 4)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("CUDA out of memory"), torch.cuda.OutOfMemoryError("x out of memory")]
)
def test_out_of_memory_halves_the_batches_and_says_so(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    sizes: list[int] = []

    def work(batch: Any) -> Any:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise error
        return batch

    assert in_batches([5] * 12, 60, work).tolist() == list(range(12))
    assert sizes == [12, 6, 3, 3, 3, 3]
    assert "out of memory with 12 texts of up to 5 tokens; continuing with 6 at a time" in caplog.text


def test_other_errors_of_the_work_are_not_hidden() -> None:
    def work(batch: Any) -> Any:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        in_batches([1, 2], 8, work)


def test_progress_counts_items_and_the_part_of_all_tokens() -> None:
    seen: list[Any] = []
    with work(progress=seen.append):
        in_batches([1, 3, 6], 6, lambda batch: batch)
    assert [(one.task, one.done, one.total, one.fraction) for one in seen] == [("encoding", 1, 3, 0.6), ("encoding", 3, 3, 1.0)]
    assert seen[0].seconds_left == pytest.approx(seen[0].seconds * (1 / 0.6 - 1))
