"""BERT and RoBERTa (BERT with other positions) for inference, without transformers.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from .hub import library, read_json
from .tokens import Tokens, tokens

PREFIXES = ("bert.", "roberta.")  # of weights saved with a head
POSITIONS = {"bert": False, "roberta": True, "xlm-roberta": True}  # whether positions start after that of padding
# Only these values of a configuration are implemented; a missing setting has its value.
PLAIN = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
    "auto_map": None,
}
OLDER = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Names of our weights, and of transformers'.
EMBEDDINGS = {"words": "word_embeddings", "positions": "position_embeddings", "types": "token_type_embeddings"}
LAYER = {
    "attended": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "second_norm": "output.LayerNorm",
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
    def of(cls, config: Mapping[str, Any]) -> Shape | None:
        """Read the sizes from a configuration; None if it needs more than this network implements."""
        if config.get("model_type") not in POSITIONS or any(config.get(name, plain) != plain for name, plain in PLAIN.items()):
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
        """Number of a text's first position."""
        return self.pad_token_id + 1 if POSITIONS[self.model_type] else 0


class Unset:
    """A module without initialization of its weights, which are read from a file; initializing loads torch's compiler."""

    def reset_parameters(self) -> None:
        pass


class Embedding(Unset, nn.Embedding):
    """Vectors by number."""


class Norm(Unset, nn.LayerNorm):
    """Layer normalization."""


class Linear(Unset, nn.Linear):
    """A linear layer followed by GELU or the sum with a residual.

    In bfloat16 on a CPU its weights are packed once into the processor's blocks (oneDNN) and the following operation is fused;
    torch's own layer packs them each time.
    """

    _packed: Tensor | None = None

    def forward(self, inputs: Tensor, gelu: bool = False, residual: Tensor | None = None) -> Tensor:
        """Outputs, (rows, width), of inputs (rows, input width), with GELU or a residual of the outputs' shape."""
        if inputs.dtype == torch.bfloat16 and not inputs.is_cuda and (packed := self._blocks()) is not None:
            linear: Any = torch.ops.mkldnn._linear_pointwise
            if residual is not None:
                summed: Tensor = linear.binary(inputs, residual, packed, self.bias, "add")
                return summed
            pointwise: Tensor = linear(inputs, packed, self.bias, "gelu" if gelu else "none", [], "none" if gelu else "")
            return pointwise
        outputs = functional.linear(inputs, self.weight, self.bias)
        if gelu:
            outputs = functional.gelu(outputs)
        return outputs if residual is None else outputs + residual

    def _blocks(self) -> Tensor | None:
        """The packed weights; None if torch cannot pack them."""
        if self._packed is None and not torch.is_grad_enabled() and self.weight.device.type == "cpu":
            with suppress(AttributeError, RuntimeError):  # a torch without oneDNN
                self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), None)
        return self._packed

    def _apply(self, *arguments: Any, **settings: Any) -> Any:
        self._packed = None  # the weights change their dtype or device
        return super()._apply(*arguments, **settings)  # type: ignore[no-untyped-call]


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
        """Next hidden states, (texts × positions, width)."""
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

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Last hidden states, (texts, positions, width).

        Args:
            ids: Token ids, int64 (texts, positions), padded on the right.
            mask: 1 at tokens and 0 at padding.
            types: 0 or 1, the text to which a token belongs; None: all 0.
        """
        texts, length = ids.shape
        positions = torch.arange(length, device=ids.device).expand(texts, length)
        if POSITIONS[self.shape.model_type]:  # a padding token within a text has no position
            counted = ids != self.shape.pad_token_id
            positions = counted.cumsum(1) * counted + self.shape.pad_token_id
        embedded = self.words(ids) + self.types(torch.zeros_like(ids) if types is None else types) + self.positions(positions)
        hidden: Tensor = self.norm(embedded).view(texts * length, -1)
        attending = None if bool(mask.all()) else mask.bool()[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, texts, attending)
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


def encoder(file: Path, shape: Shape) -> Bert:
    """Load the network from a file of safetensors, in float32; KeyError or RuntimeError if its weights do not fit."""
    network: Bert = _loaded(lambda: Bert(shape), _body(_stored(file), shape))
    return network


def classifier(file: Path, shape: Shape, labels: int) -> ClassifierNetwork:
    """Load the network with the head of a model for sequence classification; see `encoder`."""
    stored = _stored(file)
    names = ("classifier.dense", "classifier.out_proj") if POSITIONS[shape.model_type] else ("pooler.dense", "classifier")
    body = {f"bert.{name}": tensor for name, tensor in _body(stored, shape).items()}
    head = {
        f"{layer}.{part}": stored[f"{name}.{part}"]
        for layer, name in zip(("dense", "out"), names, strict=True)
        for part in ("weight", "bias")
    }
    network: ClassifierNetwork = _loaded(lambda: ClassifierNetwork(shape, labels), {**body, **head})
    return network


def _loaded(make: Callable[[], nn.Module], weights: dict[str, Tensor]) -> Any:
    """Build a network around these weights, without copying them."""
    with torch.device("meta"):
        network = make()
    network.load_state_dict(weights, assign=True)
    return network.eval().requires_grad_(False)


def _stored(file: Path) -> dict[str, Tensor]:
    """Tensors of a file in float32, their names without prefixes and in the current form."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in load_file(file).items():
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        for old, new in OLDER.items():
            name = name.replace(old, new)
        tensors[name] = tensor.float()
    return tensors


def _body(stored: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """Rename transformers' weights to the names of `Bert`."""
    weights = {f"{target}.weight": stored[f"embeddings.{name}.weight"] for target, name in EMBEDDINGS.items()}
    weights |= {f"norm.{part}": stored[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")}
    for number in range(shape.num_hidden_layers):
        before = f"encoder.layer.{number}."
        for part in ("weight", "bias"):
            weights |= {f"layers.{number}.{target}.{part}": stored[f"{before}{name}.{part}"] for target, name in LAYER.items()}
            three = [stored[f"{before}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            weights[f"layers.{number}.qkv.{part}"] = torch.cat(three)
    return weights


T = TypeVar("T")
logger = logging.getLogger("fontes.neural")

WEIGHTS = "model.safetensors"
BESIDE = ("fontes.json", "adapter_config.json")  # files of models that run differently
# Output and its name in `sentence_bert_config.json` by task.
SETTINGS = {"feature-extraction": ("last_hidden_state", "token_embeddings"), "sequence-classification": ("logits", "scores")}


@dataclass(frozen=True)
class Plain:
    """A supported transformer: sizes, file of weights, tokenizer, maximum number of tokens of a text, and configuration."""

    shape: Shape
    weights: Path
    tokens: Tokens
    length: int
    config: Mapping[str, Any]


def plain(folder: Path, task: str, length: int | None = None) -> Plain | None:
    """Read the transformer of a folder without its weights; None if its files need what is not implemented here.

    Args:
        folder: Folder of the transformer, which may be a module's.
        task: A key of SETTINGS.
        length: Maximum number of tokens of a text; None: the model's.
    """
    if not (folder / WEIGHTS).is_file() or any((folder / name).exists() for name in BESIDE):
        return None
    config = read_json(folder / "config.json")
    shape = Shape.of(config)
    settings: dict[str, Any] = read_json(folder / "sentence_bert_config.json", {})
    if shape is None or not _understood(settings, task):
        return None
    tokenizer = tokens(folder, shape, length or settings.get("max_seq_length"))
    if tokenizer is None or tokenizer[1] > shape.longest:
        return None
    if settings.get("do_lower_case"):
        tokenizer[0].lower()
    return Plain(shape, folder / WEIGHTS, *tokenizer, config)


def if_plain(read: Callable[[], T | None], folder: Path) -> T | None:
    """Return `read()`; None if it fails, since sentence-transformers then reports the problem itself."""
    library("torch", "running a model")
    try:
        return read()
    except Exception as error:
        logger.debug("%s is left to sentence-transformers (%s: %s)", folder, type(error).__name__, error)
        return None


def _understood(settings: Mapping[str, Any], task: str) -> bool:
    """Whether settings of sentence-transformers' Transformer equal its defaults."""
    output, name = SETTINGS[task]
    usual = {
        **{name: settings.get(name) for name in ("max_seq_length", "do_lower_case")},
        "transformer_task": task,
        "modality_config": {"text": {"method": "forward", "method_output_name": output}},
        "module_output_name": name,
    }
    return all(key in usual and value == usual[key] for key, value in settings.items())
