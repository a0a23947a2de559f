"""Checkpoints of late interaction: ColBERT's own form, that of PyLate, and plain encoders.

The two codes differ in a few points, each followed as its form has it:

                            ColBERT (HF_ColBERT)                         PyLate (modules.json)
settings                    artifact.metadata                            config_sentence_transformers.json
marker                      takes the place of a full stop that is       is put in after the first token
                            set before the text
punctuation                 ids of the first token of each character     ids of the words as they are; one that the vocabulary
                                                                         lacks stands for the unknown token
documents without settings  220 tokens                                   180 tokens

For BERT's vocabulary markers and punctuation come out the same. PyLate reads checkpoints of the first form as well, but then
filters punctuation whatever `mask_punctuation` says; here it decides.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import InputError, ParameterError
from ..models.hub import library, modules_of, read_json, tensors

CLASS = "HF_ColBERT"
METADATA = "artifact.metadata"
SENTENCE_CONFIG = "config_sentence_transformers.json"


@dataclass(frozen=True)
class TokenSettings:
    """The way from texts to tokens, and which of these get vectors.

    Args:
        form: "colbert", "pylate" or "encoder" (a model that was not made for late interaction).
        query_length: Tokens of a query, its three special ones included: longer ones are cut, shorter ones filled up.
        document_length: Greatest number of tokens of a document, its three special ones included.
        query_marker: The token after the first one of a query; "" for none.
        document_marker: The token after the first one of a document; "" for none.
        expand: Whether queries are filled up with [MASK] to query_length, each of which gets a vector.
        attend: Whether the other tokens attend to these.
        skip: Tokens of documents that get no vector: single characters or words.
    """

    form: str
    query_length: int
    document_length: int
    query_marker: str
    document_marker: str
    expand: bool
    attend: bool
    skip: tuple[str, ...]

    def with_(self, **changes: Any) -> TokenSettings:
        """A copy with those of the changes that are not None.

        Raises:
            ParameterError: For lengths that hold no text.
        """
        changed = replace(self, **{name: value for name, value in changes.items() if value is not None})
        for name in ("query_length", "document_length"):
            if (length := getattr(changed, name)) < 4:
                raise ParameterError(f"{name} must be 4 or more, as three special tokens are part of it, not {length}")
        return changed


@dataclass(frozen=True)
class ColBERTCheckpoint:
    """A checkpoint on disk, before its weights are loaded.

    Args:
        backbone: The folder of the transformer.
        dense: The folders of its projections; none in ColBERT's form, whose projection is among the backbone's weights.
        settings: The way from texts to tokens.
    """

    backbone: Path
    dense: tuple[Path, ...]
    settings: TokenSettings

    @classmethod
    def of(cls, folder: Path) -> ColBERTCheckpoint:
        """The checkpoint of a folder.

        Raises:
            InputError: A file cannot be read.
        """
        if (folder / "modules.json").is_file():
            modules = modules_of(folder)
            backbone = next((path for kind, path in modules if kind.endswith("Transformer")), None)
            if backbone is None:
                raise InputError(f"{folder} has no transformer among its modules, which token vectors need")
            dense = tuple(path for kind, path in modules if kind == "Dense")
            if dense:
                return cls(backbone, dense, _pylate(folder))
        else:
            backbone = folder
        classes = read_json(backbone / "config.json").get("architectures") or [""]
        if classes[0] == CLASS or (backbone / METADATA).is_file():
            return cls(backbone, (), _colbert(backbone))
        return cls(backbone, (), _encoder(backbone))

    def projections(self) -> list[Any]:
        """The projections, as torch modules in the order in which they are applied."""
        if self.settings.form == "colbert":
            return [_linear(tensors(self.backbone, ("linear.weight",), "the projection of ColBERT"), self.backbone)]
        return [_dense(folder) for folder in self.dense]


def _colbert(folder: Path) -> TokenSettings:
    # The defaults are those of ColBERT's settings.py; a checkpoint of its first version has no metadata.
    setting = partial(_setting, read_json(folder / METADATA, {}))
    return TokenSettings(
        "colbert",
        setting("query_maxlen", 32),
        setting("doc_maxlen", 220),
        setting("query_token_id", "[unused0]"),
        setting("doc_token_id", "[unused1]"),
        True,
        setting("attend_to_mask_tokens", False),
        tuple(string.punctuation) if setting("mask_punctuation", True) else (),
    )


def _pylate(folder: Path) -> TokenSettings:
    setting = partial(_setting, read_json(folder / SENTENCE_CONFIG, {}))
    expand = setting("do_query_expansion", True)
    return TokenSettings(
        "pylate",
        setting("query_length", 32),
        setting("document_length", 180),
        setting("query_prefix", "[Q] "),
        setting("document_prefix", "[D] "),
        expand,
        expand and setting("attend_to_expansion_tokens", False),
        tuple(setting("skiplist_words", string.punctuation)),
    )


def _setting(settings: dict[str, Any], name: str, default: Any) -> Any:
    return default if settings.get(name) is None else settings[name]


def _encoder(backbone: Path) -> TokenSettings:
    """A model that knows no markers and no [MASK] after a query gets neither."""
    config = read_json(backbone / "sentence_bert_config.json", {})
    longest = read_json(backbone / "config.json").get("max_position_embeddings") or 512
    length = config.get("max_seq_length") or min(longest, 512)
    return TokenSettings("encoder", length, length, "", "", False, False, tuple(string.punctuation))


def _dense(folder: Path) -> Any:
    """A layer of sentence-transformers or PyLate: linear, perhaps with a bias, an activation of torch, a residual."""
    torch = library("torch", "a ColBERT model")
    config = read_json(folder / "config.json")
    weights = tensors(folder, ("linear.weight",), "the projection of ColBERT", ("linear.bias", "residual.weight"))
    name = str(config.get("activation_function") or "torch.nn.modules.linear.Identity")
    activation = getattr(torch.nn, name.rpartition(".")[2], None) if name.startswith("torch.nn.") else None
    if not (isinstance(activation, type) and issubclass(activation, torch.nn.Module)):
        raise InputError(f"{folder}: its activation function {name} is none of torch.nn")
    layer = torch.nn.Sequential(_linear(weights, folder), activation())
    return _residual(layer, weights, folder) if config.get("use_residual") else layer


def _residual(layer: Any, weights: dict[str, Any], folder: Path) -> Any:
    torch = library("torch", "a ColBERT model")
    beside = torch.nn.Identity()
    if "residual.weight" in weights:
        beside = _linear({"linear.weight": weights["residual.weight"]}, folder)

    class Residual(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.beside = layer, beside

        def forward(self, vectors: Any) -> Any:
            return self.layer(vectors) + self.beside(vectors)

    return Residual()


def _linear(weights: dict[str, Any], folder: Path) -> Any:
    torch = library("torch", "a ColBERT model")
    weight, bias = weights["linear.weight"].float(), weights.get("linear.bias")
    if weight.ndim != 2:
        raise InputError(f"{folder}: its projection linear.weight has {weight.ndim} dimensions, not 2")
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias.float())
    return layer
