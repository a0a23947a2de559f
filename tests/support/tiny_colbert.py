"""Checkpoints of late interaction with a few random weights, and a collection in the words that they know."""

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_models import save_tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

import fontes as ft  # noqa: E402
from fontes.neural.late.colbert import ColBERT  # noqa: E402
from fontes.neural.late.maxsim import maxsim  # noqa: E402

WORDS = "the old well spring water of a town rises deep ##s ##ed in rock sand pump".split()
VOCABULARY = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *WORDS]
TEXT_WORDS = "the old well spring water of a town rises deep in rock and sand pump".split()
QUERIES = {"q1": "old well water", "q2": "spring in rock", "q3": ""}


def backbone() -> Any:
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY) + 2,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.6,
    )
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def write_tokenizer(folder: Path, added: tuple[str, ...] = ()) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    tokenizer = save_tokenizer(folder, VOCABULARY)
    tokenizer.add_tokens(list(added))
    tokenizer.save_pretrained(folder)
    return tokenizer


def colbert_checkpoint(folder: Path, metadata: dict[str, Any] | None = None, binary: bool = False) -> tuple[Any, Any, Any]:
    """A checkpoint as ColBERT's code saves it, and its parts: transformer, projection, tokenizer."""
    tokenizer, model = write_tokenizer(folder), backbone()
    linear = torch.nn.Linear(32, 16, bias=False)
    (folder / "config.json").write_text(json.dumps({**model.config.to_dict(), "architectures": ["HF_ColBERT"]}))
    tensors = {**{f"bert.{name}": value for name, value in model.state_dict().items()}, "linear.weight": linear.weight.data}
    if binary:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        safetensors.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if metadata is not None:
        (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return model, linear, tokenizer


def pylate_checkpoint(folder: Path, settings: dict[str, Any], binary: bool = False) -> tuple[Any, Any, Any]:
    """A checkpoint as PyLate saves it, and its parts."""
    tokenizer, model = write_tokenizer(folder, ("[Q] ", "[D] ")), backbone()
    linear = torch.nn.Linear(32, 16, bias=False)
    model.save_pretrained(folder)
    kinds = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(kinds.items())]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 30, "do_lower_case": false}')
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    (folder / "1_Dense").mkdir()
    identity = "torch.nn.modules.linear.Identity"
    (folder / "1_Dense/config.json").write_text(
        json.dumps({"in_features": 32, "out_features": 16, "bias": False, "activation_function": identity})
    )
    if binary:
        torch.save({"linear.weight": linear.weight.data}, folder / "1_Dense/pytorch_model.bin")
    else:
        safetensors.save_file({"linear.weight": linear.weight.data}, folder / "1_Dense/model.safetensors")
    return model, linear, tokenizer


def tiny_colbert(folder: Path) -> ColBERT:
    """A model out of a checkpoint in this folder, for short texts."""
    colbert_checkpoint(folder, {"query_maxlen": 8, "doc_maxlen": 30})
    return ColBERT(str(folder), precision="float32", device="cpu")


def documents(count: int = 60) -> list[dict[str, str]]:
    rng = np.random.default_rng(11)
    return [{"_id": f"d{i:03}", "text": " ".join(rng.choice(TEXT_WORDS, int(rng.integers(3, 20)))) + "."} for i in range(count)]


def plain_scores(index: ft.Index, model: ColBERT, query: str) -> dict[str, float]:
    vectors, bounds = model.encode_documents(index.docs(index.ids))
    scores = maxsim(model.encode_queries([query])[0], vectors, bounds)
    return dict(zip(index.ids, scores.tolist(), strict=True))
