"""Static embeddings of made-up vectors, in folders as Model2Vec and sentence-transformers write them; needs no torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

WORDS = ["[PAD]", "[UNK]", "warm", "water", "of", "a", "spring", "##s", "rises", "in", "limestone", "geyser", "river", "well"]


def words() -> Tokenizer:
    """A tokenizer of WORDS."""
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    return tokenizer


def table(rows: int = len(WORDS), columns: int = 3) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Vectors of tokens."""
    return np.random.default_rng(5).normal(size=(rows, columns)).astype(np.float32)


def model2vec(folder: Path, config: dict[str, Any], **tensors: np.ndarray[Any, Any]) -> str:
    """Write a model as Model2Vec does, its `embeddings` those of `table` unless given."""
    folder.mkdir()
    save_file({"embeddings": table(), **tensors}, folder / "model.safetensors")
    words().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config))
    modules = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return str(folder)
