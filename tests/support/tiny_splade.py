"""Masked language models of random weights and a small size, as folders of sentence-transformers' SparseEncoder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from support.tiny_models import MARKS, SIZES, WORDS, save_tokenizer, saved_once, torch, transformers

VOCABULARY = [*MARKS, *dict.fromkeys(WORDS)]
FILL = 3  # numbers of the model without a token
SIZE = len(VOCABULARY) + FILL
CONFIGURATIONS: dict[str, Any] = {
    "bert": lambda: transformers.BertConfig(vocab_size=SIZE, **SIZES, max_position_embeddings=64),
    "roberta": lambda: transformers.RobertaConfig(vocab_size=SIZE, **SIZES, max_position_embeddings=66, pad_token_id=0),
    "modernbert": lambda: transformers.ModernBertConfig(
        vocab_size=SIZE,
        **SIZES,
        max_position_embeddings=64,
        local_attention=8,
        pad_token_id=0,
        bos_token_id=2,
        cls_token_id=2,
        eos_token_id=3,
        sep_token_id=3,
    ),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=SIZE, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64
    ),
    "electra": lambda: transformers.ElectraConfig(
        vocab_size=SIZE, embedding_size=16, **SIZES, max_position_embeddings=64, tie_word_embeddings=True
    ),
}


def masked_lm(folder: Path, kind: str = "bert", **settings: Any) -> Path:
    """A masked language model of one of CONFIGURATIONS and its tokenizer; about half of its logits are above 0."""
    return saved_once(("masked", kind, repr(settings)), lambda kept: _save(kept, kind, settings), folder)


def _save(folder: Path, kind: str, settings: dict[str, Any]) -> None:
    torch.manual_seed(5)
    configuration = CONFIGURATIONS[kind]()
    configuration.update(settings)
    model = transformers.AutoModelForMaskedLM.from_config(configuration)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0, 0.3)
            if "norm" in name.lower() and name.endswith("weight"):
                parameter.add_(1)
    model.save_pretrained(folder)
    save_tokenizer(folder, VOCABULARY, model_max_length=100_000)


def splade(folder: Path, pooling: dict[str, str] | None = None, settings: dict[str, Any] | None = None, **config: Any) -> Path:
    """The same model with the files of a SparseEncoder.

    Args:
        folder: Where it goes.
        pooling: The configuration of SpladePooling.
        settings: Of config_sentence_transformers.json, such as prompts.
        **config: Of sentence_bert_config.json, such as max_seq_length.
    """
    masked_lm(folder)
    package = "sentence_transformers.sparse_encoder.models"
    kinds = {"": "MLMTransformer", "1_SpladePooling": "SpladePooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"{package}.{kind}"} for i, (path, kind) in enumerate(kinds.items())
    ]
    write(folder / "modules.json", modules)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False, **config})
    write(folder / "1_SpladePooling/config.json", {"pooling_strategy": "max", "activation_function": "relu", **(pooling or {})})
    write(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder", **(settings or {})})
    return folder


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def dense(vectors: Any, size: int = SIZE) -> np.ndarray:
    """Term vectors as a matrix, a row a text."""
    matrix = np.zeros((len(vectors), size), np.float32)
    matrix[np.repeat(np.arange(len(vectors)), np.diff(vectors.bounds)), vectors.terms] = vectors.weights
    return matrix
