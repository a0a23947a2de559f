"""BERT and RoBERTa (BERT with other positions) for inference, without transformers, and reading models of our own networks.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import modernbert
from .hub import library, read_json
from .layers import Embedding, Linear, Norm, build, read_tensors
from .tokens import Tokens, load_tokens

T = TypeVar("T")
logger = logging.getLogger("fontes.neural")

WEIGHTS = "model.safetensors"
OTHER_SETTINGS = ("fontes.json", "adapter_config.json")  # files of models that run differently
BEHIND_PADDING = {"bert": False, "roberta": True, "xlm-roberta": True}  # whether positions start after the one of padding
# Only these values of a configuration are implemented; they are the defaults of missing settings.
IMPLEMENTED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
    "auto_map": None,
}
# Names of weights in `Bert`, with the names that transformers gives them.
EMBEDDINGS = {"words": "word_embeddings", "positions": "position_embeddings", "types": "token_type_embeddings"}
LAYER = {
    "attended": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "second_norm": "output.LayerNorm",
}
# By task: the model's output, and its name in `sentence_bert_config.json`.
TASK_OUTPUTS = {
    "feature-extraction": ("last_hidden_state", "token_embeddings"),
    "sequence-classification": ("logits", "scores"),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a network, by the names of transformers' configurations."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape | modernbert.Shape | None:
        """Read the sizes from a configuration; None if it needs more than our networks implement."""
        if config.get("model_type") == modernbert.TYPE:
            return modernbert.Shape.of(config)
        if config.get("model_type") not in BEHIND_PADDING:
            return None
        if any(config.get(name, value) != value for name, value in IMPLEMENTED.items()):
            return None
        try:
            return cls(**{name: config[name] for name in cls.__dataclass_fields__ if config.get(name) is not None})
        except TypeError:  # a missing size, for which transformers has a default
            return None

    @property
    def longest(self) -> int:
        """Maximum number of tokens of a text."""
        return self.max_position_embeddings - self.first_position

    @property
    def first_position(self) -> int:
        """Index of a text's first position."""
        return self.pad_token_id + 1 if BEHIND_PADDING[self.model_type] else 0


class Layer(nn.Module):
    """A layer: self-attention and a feed-forward network, each followed by a residual sum and a normalization."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, inner = shape.hidden_size, shape.intermediate_size
        self.heads = shape.num_attention_heads
        self.qkv, self.attended = Linear(width, 3 * width), Linear(width, width)
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.first_norm = Norm(width, shape.layer_norm_eps)
        self.second_norm = Norm(width, shape.layer_norm_eps)

    def forward(self, hidden: Tensor, texts: int, mask: Tensor | None) -> Tensor:
        """Hidden states after the layer, (texts × positions, width)."""
        rows, width = hidden.shape
        parts = self.qkv(hidden).view(texts, rows // texts, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(query, key, value, mask)
        hidden = self.first_norm(self.attended(attended.transpose(1, 2).reshape(rows, width), residual=hidden))
        normed: Tensor = self.second_norm(self.down(self.up(hidden, gelu=True), residual=hidden))
        return normed


class Bert(nn.Module):
    """The network without a head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = Embedding(shape.vocab_size, shape.hidden_size)
        self.positions = Embedding(shape.max_position_embeddings, shape.hidden_size)
        self.types = Embedding(shape.type_vocab_size, shape.hidden_size)
        self.norm = Norm(shape.hidden_size, shape.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None, every: bool = False) -> Tensor:
        """Last hidden states, (texts, positions, width).

        Args:
            ids: Token ids, int64 (texts, positions), padded on the right.
            mask: 1 at tokens and 0 at padding, which no token attends to.
            types: 0 or 1, the text to which a token belongs; None: all 0.
            every: Whether the states of padding are needed, too; they are always computed.
        """
        texts, length = ids.shape
        positions = torch.arange(length, device=ids.device).expand(texts, length)
        if BEHIND_PADDING[self.shape.model_type]:  # a padding token within a text takes no position
            not_padding = ids != self.shape.pad_token_id
            positions = not_padding.cumsum(1) * not_padding + self.shape.pad_token_id
        embedded = self.words(ids) + self.types(torch.zeros_like(ids) if types is None else types) + self.positions(positions)
        hidden: Tensor = self.norm(embedded).view(texts * length, -1)
        attention_mask = None if bool(mask.all()) else mask.bool()[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, texts, attention_mask)
        return hidden.view(texts, length, -1)


class ClassifierNetwork(nn.Module):
    """The network with a head: one value per label for each text or pair of texts."""

    def __init__(self, shape: Shape, labels: int) -> None:
        super().__init__()
        self.bert = Bert(shape)
        self.dense, self.out = Linear(shape.hidden_size, shape.hidden_size), Linear(shape.hidden_size, labels)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Values, (texts, labels); arguments as in `Bert.forward`."""
        first = self.bert(ids, mask, types)[:, 0].contiguous()
        values: Tensor = self.out(torch.tanh(self.dense(first)))
        return values


Network = Bert | modernbert.ModernBert


def encoder(file: Path, shape: Shape | modernbert.Shape) -> Network:
    """Load the network from a file of safetensors, in float32; KeyError or RuntimeError if its weights do not fit."""
    if isinstance(shape, modernbert.Shape):
        return modernbert.encoder(file, shape)
    return build(lambda: Bert(shape), _encoder_weights(read_tensors(file), shape))


def classifier(file: Path, shape: Shape | modernbert.Shape, labels: int) -> nn.Module:
    """Load the network with the head of a model for sequence classification; see `encoder`."""
    if isinstance(shape, modernbert.Shape):
        return modernbert.classifier(file, shape, labels)
    stored = read_tensors(file)
    names = ("classifier.dense", "classifier.out_proj") if BEHIND_PADDING[shape.model_type] else ("pooler.dense", "classifier")
    body = {f"bert.{name}": tensor for name, tensor in _encoder_weights(stored, shape).items()}
    head = {
        f"{layer}.{part}": stored[f"{name}.{part}"]
        for layer, name in zip(("dense", "out"), names, strict=True)
        for part in ("weight", "bias")
    }
    return build(lambda: ClassifierNetwork(shape, labels), {**body, **head})


def _encoder_weights(stored: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """Rename weights of transformers to the names in `Bert`, and join queries, keys and values."""
    weights = {f"{target}.weight": stored[f"embeddings.{name}.weight"] for target, name in EMBEDDINGS.items()}
    weights |= {f"norm.{part}": stored[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")}
    for number in range(shape.num_hidden_layers):
        prefix = f"encoder.layer.{number}."
        for part in ("weight", "bias"):
            weights |= {f"layers.{number}.{target}.{part}": stored[f"{prefix}{name}.{part}"] for target, name in LAYER.items()}
            projections = [stored[f"{prefix}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            weights[f"layers.{number}.qkv.{part}"] = torch.cat(projections)
    return weights


@dataclass(frozen=True)
class Plain:
    """A supported transformer whose weights are not loaded yet.

    Args:
        shape: Its sizes.
        weights: File of its weights.
        tokens: Its tokenizer.
        length: Maximum number of tokens of a text.
        config: Its configuration.
    """

    shape: Shape | modernbert.Shape
    weights: Path
    tokens: Tokens
    length: int
    config: Mapping[str, Any]


def plain(folder: Path, task: str, length: int | None = None) -> Plain | None:
    """Read the transformer of a folder without its weights; None if it needs features that are not implemented here.

    Args:
        folder: Folder of the transformer, which may be the folder of a module.
        task: A key of TASK_OUTPUTS.
        length: Maximum number of tokens of a text; None: the model's limit.
    """
    if not (folder / WEIGHTS).is_file() or any((folder / name).exists() for name in OTHER_SETTINGS):
        return None
    config = read_json(folder / "config.json")
    shape = Shape.of(config)
    settings: dict[str, Any] = read_json(folder / "sentence_bert_config.json", {})
    if shape is None or not _are_defaults(settings, task):
        return None
    loaded = load_tokens(folder, shape, length or settings.get("max_seq_length"))
    if loaded is None:
        return None
    tokens, max_tokens = loaded
    if max_tokens > shape.longest:
        return None
    if settings.get("do_lower_case"):
        tokens.lower()
    return Plain(shape, folder / WEIGHTS, tokens, max_tokens, config)


def try_plain(read: Callable[[], T | None], folder: Path) -> T | None:
    """Return `read()`; None if it fails, since the library that runs other models then reports the problem."""
    library("torch", "running a model")
    try:
        return read()
    except Exception as error:
        logger.debug("%s is left to other libraries (%s: %s)", folder, type(error).__name__, error)
        return None


def backbone(folder: Path) -> Network | None:
    """Load the transformer of a folder without its head and tokenizer, in float32; None if it is not supported here."""
    if not (folder / WEIGHTS).is_file() or any((folder / name).exists() for name in OTHER_SETTINGS):
        return None
    shape = Shape.of(read_json(folder / "config.json"))
    return None if shape is None else encoder(folder / WEIGHTS, shape)


def _are_defaults(settings: Mapping[str, Any], task: str) -> bool:
    """Whether the settings of a Transformer of sentence-transformers are defaults, except the length and lowercasing."""
    output, name = TASK_OUTPUTS[task]
    defaults = {
        "max_seq_length": settings.get("max_seq_length"),
        "do_lower_case": settings.get("do_lower_case"),
        "transformer_task": task,
        "modality_config": {"text": {"method": "forward", "method_output_name": output}},
        "module_output_name": name,
    }
    return all(setting in defaults and value == defaults[setting] for setting, value in settings.items())
