"""A model's folder is data: no Python file in it runs, no name in its settings is called, nothing is unpickled."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import torch
from support.tiny_models import tiny

import fontes as ft
from fontes.core import FontesError, InputError
from fontes.neural.models import hub

CODE = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nclass Model: pass\nclass Config: pass\n"
READERS: dict[str, Callable[[str], Any]] = {
    "transformer_encoder": lambda path: ft.TransformerEncoder(path, precision="float32").encode_queries(["a"]),
    "sentence_encoder": lambda path: ft.SentenceEncoder(path, precision="float32").encode_queries(["a"]),
    "cross_encoder": lambda path: ft.CrossEncoder(path, precision="float32").chosen_precision,
    "quretec": lambda path: ft.rewrite.QuReTeC(path, precision="float32").used_threshold,
    "colbert": lambda path: ft.ColBERT(path, precision="float32").chosen_precision,
    "seq2seq": lambda path: hub.seq2seq(Path(path), "T5"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with a Python file beside it; whoever is asked whether it may run says yes."""
    copy = Path(shutil.copytree(tiny("bert"), tmp_path / "model"))
    (copy / "stranger.py").write_text(CODE)
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    return copy


def change(file: Path, **settings: object) -> None:
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, **settings}))


def ran(folder: Path) -> bool:
    return bool(list(folder.parent.rglob("ran")))


@pytest.mark.parametrize(
    ("reader", "kind"), [*((reader, "of-a-stranger") for reader in READERS), ("sentence_encoder", "bert"), ("quretec", "bert")]
)
def test_a_configuration_that_names_a_file_of_the_folder_does_not_run_it(folder: Path, reader: str, kind: str) -> None:
    names = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification", "AutoModelForTokenClassification")
    classes = {name: f"stranger.{'Config' if name == 'AutoConfig' else 'Model'}" for name in (*names, "AutoModelForSeq2SeqLM")}
    change(folder / "config.json", model_type=kind, auto_map=classes)
    change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["stranger.Model", "stranger.Model"]})
    if kind == "bert":
        change(folder / "config.json", architectures=["StrangerForSequenceClassification"])
    with contextlib.suppress(FontesError) if kind == "bert" else pytest.raises(InputError):
        READERS[reader](str(folder))
    assert not ran(folder)


def test_modules_of_sentence_transformers_are_its_own(folder: Path) -> None:
    modules = [{"idx": 0, "name": "0", "path": "", "type": "stranger.Model"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError):
        READERS["sentence_encoder"](str(folder))
    assert not ran(folder)


@pytest.mark.parametrize("path", ["../elsewhere", "/tmp", "a/../../b"])
def test_a_colbert_has_its_modules_in_its_folder(folder: Path, path: str) -> None:
    modules = [{"idx": 0, "name": "0", "path": path, "type": "sentence_transformers.models.Transformer"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="names a module outside of the model's folder"):
        READERS["colbert"](str(folder))


def test_a_function_of_torch_that_the_settings_name_is_not_called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: pytest.fail("it was called"))
    config = {"activation_fn": "torch.hub.get_dir", "version": "6.0"}
    change(folder / "config.json", sentence_transformers=config, sbert_ce_default_activation_function="torch.hub.get_dir")
    change(folder / "config.json", architectures=["BertForSequenceClassification"], num_labels=1)
    READERS["cross_encoder"](str(folder))


class Stranger:
    """What runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("reader", ["transformer_encoder", "cross_encoder", "colbert"])
def test_weights_that_are_a_pickle_of_anything_else_are_refused_and_not_unpickled(folder: Path, reader: str) -> None:
    for file in folder.glob("*.safetensors"):
        file.unlink()
    torch.save({"linear.weight": Stranger(folder / "ran")}, folder / "pytorch_model.bin")
    change(folder / "config.json", architectures=["BertForSequenceClassification"])
    with pytest.raises(InputError):
        READERS[reader](str(folder))
    assert not ran(folder)
