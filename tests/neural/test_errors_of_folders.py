"""What errors of models that are looked for or read say: the name or folder, what is missing, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.tiny_colbert import colbert_checkpoint, safetensors, tiny_colbert
from support.tiny_splade import write

import fontes as ft
from fontes.core import InputError
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.trainable import trainable as trainable_late
from fontes.neural.models import hub as models

PAIRS = [("water", "hot water")]


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("weights")
    check_error(lambda: models.find_model(tmp_path, "encoder"), InputError, f"{tmp_path} holds no encoder", "config.json")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hub's library, with an empty cache, told that there is a network."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return huggingface_hub


def refused(hub: Any, name: str) -> Exception:
    """An error of the hub's library."""
    kind = type(name, (getattr(hub.errors, name),), {"__init__": lambda self: Exception.__init__(self, "503 from the hub\n…")})
    return kind()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("failure", "names", "remedy"),
    [
        ("RepositoryNotFoundError", "no encoder owner/small", "neither a folder nor a name on https://"),
        ("GatedRepoError", "owner/small is gated", "request access at https:// … /owner/small"),
        ("HfHubHTTPError", "owner/small … its download failed (503 from the hub)", "run `hf download"),
        (OSError("no route to host"), "owner/small … huggingface.co cannot be reached (no route to host)", "run `hf download"),
        (TimeoutError(), "owner/small … huggingface.co cannot be reached (TimeoutError)", "run `hf download"),
        (RuntimeError("Name or service not known\n…"), "owner/small … (Name or service not known)", "run `hf download"),
    ],
)
def test_a_hub_that_refuses_or_cannot_be_reached(
    hub: Any, failure: Any, names: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise refused(hub, failure) if isinstance(failure, str) else failure

    monkeypatch.setattr(hub.HfApi, "model_info", fail)
    check_error(lambda: models.find_model("owner/small", "encoder"), InputError, names, remedy)


def test_models_of_the_hub_that_are_not_on_the_machine_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    name = "cross-encoder/none-such is not on this machine"
    check_error(lambda: ft.CrossEncoder("none-such").scores(PAIRS), InputError, name, "HF_HUB_OFFLINE is set")
    check_error(lambda: ft.MonoT5().scores(PAIRS), InputError, "castorini/monot5-base-msmarco is not on this machine", "")


def without_projection(folder: Path) -> str:
    colbert_checkpoint(folder / "model", {"query_maxlen": 12, "doc_maxlen": 20})
    tensors = safetensors.load_file(folder / "model/model.safetensors")
    del tensors["linear.weight"]
    safetensors.save_file(tensors, folder / "model/model.safetensors", metadata={"format": "pt"})
    return str(folder / "model")


def pooled(**settings: Any) -> Callable[[Path], str]:
    """A ColBERT with these settings of its module for pooling."""

    def save(folder: Path) -> str:
        model = tiny_colbert(folder / "colbert").with_(pool=2)
        trainable_late(model, markers=False).save_pretrained(str(folder / "m"), create_model_card=False)
        (path,) = folder.glob("m/*HierarchicalTokenPooling/config.json")
        write(path, settings.get("whole") or {**json.loads(path.read_text()), **settings})
        return str(folder / "m")

    return save


@each(
    ("save", "names"),
    [
        (without_projection, "no linear.weight"),
        (pooled(tasks=["query", "document"]), "HierarchicalTokenPooling with other settings"),
        (pooled(whole={"pool_factor": 2}), "HierarchicalTokenPooling with other settings"),  # does not scale means
    ],
)
def test_models_of_late_interaction_that_cannot_be_read(tmp_path: Path, save: Callable[[Path], str], names: str) -> None:
    folder = save(tmp_path)
    check_error(lambda: ColBERT(folder, device="cpu").encode_queries(["a river"]), InputError, names)
