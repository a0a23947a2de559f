"""ModernBERT (Warner et al., 2024) for inference, without transformers and without padding between texts.

Pre-normalized layers with rotary positions, gated feed-forward networks, and attention that is global in some layers and within
a window in the others. Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.work import processor_features
from .layers import Embedding, Linear, Norm, build, read_tensors

TYPE = "modernbert"
LOCAL, GLOBAL = "sliding_attention", "full_attention"
THETAS = {GLOBAL: ("global_rope_theta", 160_000.0), LOCAL: ("local_rope_theta", 10_000.0)}  # names in older configurations
GLOBAL_EVERY = 3  # default of `global_attn_every_n_layers`
HAS_AMX = "amx_bf16" in processor_features()
BLOCK = 32  # queries of a block of local attention
# Only these values of a configuration are implemented; they are the defaults of missing settings.
IMPLEMENTED = {
    "hidden_activation": "gelu",
    "classifier_activation": "gelu",
    "head_dim": None,
    "rope_scaling": None,
    "sliding_window": None,  # half of `local_attention` if set
    "quantization_config": None,
    "auto_map": None,
}
# Names of weights of a layer in `ModernBert`, with the names that transformers gives them.
LAYER = {"first_norm": "attn_norm", "attended": "attn.Wo", "second_norm": "mlp_norm", "down": "mlp.Wo"}


@dataclass(frozen=True)
class Shape:
    """Sizes of a network, by the names of transformers' configurations.

    `layer_types` and `thetas` hold, for each layer, whether its attention is local, and the base of its rotary positions.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    layer_types: tuple[str, ...]
    thetas: tuple[float, ...]
    pad_token_id: int = 50283
    norm_eps: float = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    classifier_bias: bool = False
    classifier_pooling: str = "cls"
    local_attention: int = 128
    model_type: str = TYPE

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape | None:
        """Read the sizes from a configuration; None if it needs more than this network implements."""
        if any(config.get(name, value) != value for name, value in IMPLEMENTED.items()):
            return None
        thetas = _thetas(config)
        layers, types = config.get("num_hidden_layers", 0), config.get("layer_types")
        if types is None:
            every = config.get("global_attn_every_n_layers", GLOBAL_EVERY)
            types = [LOCAL if layer % every else GLOBAL for layer in range(layers)]
        if thetas is None or len(types) != layers or not set(types) <= {LOCAL, GLOBAL}:
            return None
        read = {name: config[name] for name in cls.__dataclass_fields__ if config.get(name) is not None}
        read |= {"layer_types": tuple(types), "thetas": tuple(thetas[kind] for kind in types)}
        try:
            shape = cls(**read)
        except TypeError:  # a missing size, for which transformers has a default
            return None
        even = shape.hidden_size % (2 * shape.num_attention_heads) == 0
        return shape if even and shape.classifier_pooling in ("cls", "mean") else None

    @property
    def longest(self) -> int:
        """Maximum number of tokens of a text."""
        return self.max_position_embeddings

    @property
    def window(self) -> int:
        """Greatest distance of tokens that attend to each other in a layer of local attention."""
        return self.local_attention // 2


def _thetas(config: Mapping[str, Any]) -> dict[str, float] | None:
    """Bases of the rotary positions of both kinds of layers; None for rotary positions of another kind."""
    thetas = {}
    for kind, (old_name, default) in THETAS.items():
        settings = (config.get("rope_parameters") or {}).get(kind) or {}
        theta = settings.get("rope_theta", config.get(old_name, default))
        if settings.get("rope_type", "default") != "default" or not settings.keys() <= {"rope_type", "rope_theta"}:
            return None
        if not isinstance(theta, (int, float)):
            return None
        thetas[kind] = float(theta)
    return thetas


class PackedBatch:
    """The tokens of a batch, one text behind the other without padding.

    Args:
        mask: 1 at tokens and 0 at padding, which is on the right and which no token attends to; (texts, positions).
        every: Whether padding gets hidden states, too.
        window: Greatest distance of tokens that attend to each other in local attention.
    """

    def __init__(self, mask: Tensor, every: bool, window: int) -> None:
        texts, length = mask.shape
        self.size = mask.shape
        included = torch.ones_like(mask) if every else mask
        self.indices = included.flatten().nonzero().squeeze(1)
        """Index of each token in the padded batch."""
        self.positions = self.indices % length
        attended, lengths = mask.sum(1), included.sum(1)
        self._keys = mask.flatten()[self.indices].bool() if every else None
        self._groups = list(_groups(lengths.tolist(), attended.tolist()))
        self.blocks = None
        if max((text[1] for text in self._groups), default=0) > window + 1:
            text = torch.arange(texts, device=mask.device).repeat_interleave(lengths)
            self.blocks = Blocks(text, self._keys, window)

    def padded(self, rows: Tensor) -> Tensor:
        """Rows of tokens as a padded batch with zeros at padding, (texts, positions, width)."""
        texts, length = self.size
        if len(rows) == texts * length:
            return rows.view(texts, length, rows.shape[1])
        batch = rows.new_zeros(texts * length, rows.shape[1])
        batch[self.indices] = rows
        return batch.view(texts, length, rows.shape[1])

    def attend(self, parts: Tensor) -> Tensor:
        """Global attention: queries, keys and values (tokens, 3, heads, head width) to rows (tokens, width)."""
        results = parts.new_empty(len(parts), parts.shape[2] * parts.shape[3])
        start = 0
        for texts, length, attended in self._groups:
            end = start + texts * length
            group = parts[start:end].view(texts, length, *parts.shape[1:]).permute(2, 0, 3, 1, 4)
            query, key, value = group.unbind(0)
            states = functional.scaled_dot_product_attention(query, key[:, :, :attended], value[:, :, :attended])
            results[start:end] = states.transpose(1, 2).reshape(texts * length, results.shape[1])
            start = end
        return results


def _groups(lengths: list[int], attended: list[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of texts of equal length: their number, the number of tokens of each, and how many of them are attended to."""
    start = 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or (lengths[end], attended[end]) != (lengths[start], attended[start]):
            yield end - start, lengths[start], attended[start]
            start = end


class Blocks:
    """Local attention of packed texts: each block of queries attends to its surroundings, in one call for all blocks.

    Args:
        text: Number of the text of each token.
        keys: Whether a token is attended to; None: all are.
        window: Greatest distance of tokens that attend to each other.
    """

    def __init__(self, text: Tensor, keys: Tensor | None, window: int) -> None:
        self._tokens, self.window = len(text), window
        self._count = -(-len(text) // BLOCK)
        self.rows = self._count * BLOCK + 2 * window
        """Rows of a buffer of queries, keys and values, with `window` rows before the first token."""
        texts = text.new_full((self.rows,), -1)
        texts[window : window + len(text)] = text
        attended = texts.clone()
        if keys is not None:
            attended[window : window + len(text)][~keys] = -2
        queries = texts[window : window + self._count * BLOCK].view(self._count, BLOCK, 1)
        surroundings = attended.unfold(0, BLOCK + 2 * window, BLOCK).unsqueeze(1)
        distance = torch.arange(BLOCK + 2 * window, device=text.device) - torch.arange(BLOCK, device=text.device)[:, None]
        self._mask = ((queries == surroundings) & (distance >= 0) & (distance <= 2 * window)).unsqueeze(1)

    def buffer(self, parts: Tensor, dtype: torch.dtype) -> Tensor:
        """Return rows of queries, keys and values to be filled in behind `window` rows; those around them are zeros."""
        buffer = parts.new_empty(self.rows, *parts.shape[1:], dtype=dtype)
        buffer[: self.window] = 0
        buffer[self.window + len(parts) :] = 0
        return buffer

    def attend(self, parts: Tensor) -> Tensor:
        """Local attention; `parts` as in `PackedBatch.attend`, with the rows of the buffer."""
        window, count = self.window, self._count
        if self._mask.dtype != parts.dtype:  # once for all layers; torch would do it in each
            self._mask = torch.zeros_like(self._mask, dtype=parts.dtype).masked_fill_(~self._mask, -torch.inf)
        query = parts[window : window + count * BLOCK, 0].view(count, BLOCK, *parts.shape[2:]).transpose(1, 2)
        key, value = (parts[:, part].unfold(0, BLOCK + 2 * window, BLOCK).permute(0, 1, 3, 2) for part in (1, 2))
        states = functional.scaled_dot_product_attention(query, key, value, self._mask)
        return states.transpose(1, 2).reshape(count * BLOCK, -1)[: self._tokens]


class Rotation:
    """Rotary positions (Su et al., 2021) of packed tokens.

    The two numbers of each pair are neighbours, while transformers keeps them in two halves: `_encoder_weights` orders the
    weights of queries and keys so, which leaves their products unchanged.
    """

    def __init__(self, positions: Tensor, width: int, theta: float) -> None:
        exponents = torch.arange(0, width, 2, dtype=torch.float, device=positions.device) / width
        angles = torch.arange(int(positions.max()) + 1 if len(positions) else 0, device=positions.device)[:, None].float()
        angles = angles * (1.0 / theta**exponents)
        factors = torch.polar(torch.ones_like(angles), angles)
        self._factors = factors[positions][:, None, None, :]  # (tokens, 1, 1, width / 2)

    def rotate(self, parts: Tensor, target: Tensor) -> None:
        """Write rotated queries and keys, and values, (tokens, 3, heads, width), to `target`, which may be `parts`."""
        tokens, _, heads, width = parts.shape
        pairs = parts[:, :2].float().view(tokens, 2, heads, width // 2, 2)
        turned = torch.view_as_complex(pairs) * self._factors
        target[:, :2] = torch.view_as_real(turned).flatten(-2)
        if target is not parts:
            target[:, 2] = parts[:, 2]


class Layer(nn.Module):
    """A layer: self-attention and a gated feed-forward network, each after a normalization and added to its input."""

    def __init__(self, shape: Shape, number: int) -> None:
        super().__init__()
        width, inner, bias = shape.hidden_size, shape.intermediate_size, shape.mlp_bias
        self.heads = shape.num_attention_heads
        self.local = shape.layer_types[number] == LOCAL
        self.first_norm = Norm(width, shape.norm_eps, bias=shape.norm_bias) if number else nn.Identity()
        self.qkv = Linear(width, 3 * width, bias=shape.attention_bias)
        self.attended = Linear(width, width, bias=shape.attention_bias)
        self.second_norm = Norm(width, shape.norm_eps, bias=shape.norm_bias)
        self.up, self.gate, self.down = (
            Linear(*sizes, bias=bias) for sizes in ((width, inner), (width, inner), (inner, width))
        )

    def forward(self, hidden: Tensor, packed: PackedBatch, rotation: Rotation) -> Tensor:
        """Hidden states after the layer, (tokens, width)."""
        tokens, width = hidden.shape
        parts = self.qkv(self.first_norm(hidden)).view(tokens, 3, self.heads, width // self.heads)
        # Without AMX torch's attention is faster in float32, in which rotated queries and keys are anyway.
        dtype = torch.float32 if hidden.device.type == "cpu" and not HAS_AMX else hidden.dtype
        if self.local and packed.blocks is not None:
            buffer = packed.blocks.buffer(parts, dtype)
            rotation.rotate(parts, buffer[packed.blocks.window :][:tokens])
            attended = packed.blocks.attend(buffer)
        else:
            rotated = parts if dtype == parts.dtype else parts.new_empty(parts.shape, dtype=dtype)
            rotation.rotate(parts, rotated)
            attended = packed.attend(rotated)
        hidden = self.attended(attended.to(hidden.dtype), residual=hidden)
        normed = self.second_norm(hidden)
        added: Tensor = self.down(self.gate(normed, factor=self.up(normed, gelu=True)), residual=hidden)
        return added


class ModernBert(nn.Module):
    """The network without a head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = Embedding(shape.vocab_size, shape.hidden_size)
        self.norm = Norm(shape.hidden_size, shape.norm_eps, bias=shape.norm_bias)
        self.layers = nn.ModuleList(Layer(shape, number) for number in range(shape.num_hidden_layers))
        self.last_norm = Norm(shape.hidden_size, shape.norm_eps, bias=shape.norm_bias)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None, every: bool = False) -> Tensor:
        """Last hidden states, (texts, positions, width), 0 at padding.

        Args:
            ids: Token ids, int64 (texts, positions), padded on the right.
            mask: 1 at tokens and 0 at padding, which no token attends to.
            types: Ignored: this network has no token types.
            every: Whether to compute the states of padding, too.
        """
        packed = PackedBatch(mask, every, self.shape.window)
        width = self.shape.hidden_size // self.shape.num_attention_heads
        rotations = {theta: Rotation(packed.positions, width, theta) for theta in set(self.shape.thetas)}
        hidden = self.norm(self.words(ids.flatten()[packed.indices]))
        for layer, theta in zip(self.layers, self.shape.thetas, strict=True):
            hidden = layer(hidden, packed, rotations[theta])
        return packed.padded(self.last_norm(hidden))


class ClassifierNetwork(nn.Module):
    """The network with a head: one value per label for each text or pair of texts."""

    def __init__(self, shape: Shape, labels: int) -> None:
        super().__init__()
        width = shape.hidden_size
        self.body = ModernBert(shape)
        self.dense = Linear(width, width, bias=shape.classifier_bias)
        self.norm = Norm(width, shape.norm_eps, bias=shape.norm_bias)
        self.out = Linear(width, labels)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Values, (texts, labels); arguments as in `ModernBert.forward`."""
        hidden = self.body(ids, mask)
        if self.body.shape.classifier_pooling == "mean":
            text = (hidden.sum(1) / mask.sum(1, keepdim=True)).to(hidden.dtype)  # states of padding are 0
        else:
            text = hidden[:, 0].contiguous()
        values: Tensor = self.out(self.norm(self.dense(text, gelu=True)))
        return values


def encoder(file: Path, shape: Shape) -> ModernBert:
    """Load the network from a file of safetensors, in float32; KeyError or RuntimeError if its weights do not fit."""
    return build(lambda: ModernBert(shape), _encoder_weights(read_tensors(file), shape))


def classifier(file: Path, shape: Shape, labels: int) -> ClassifierNetwork:
    """Load the network with the head of a model for sequence classification; see `encoder`."""
    stored = read_tensors(file)
    weights = {f"body.{name}": tensor for name, tensor in _encoder_weights(stored, shape).items()}
    for target, name in {"dense": "head.dense", "norm": "head.norm", "out": "classifier"}.items():
        weights |= _renamed(stored, name, target)
    return build(lambda: ClassifierNetwork(shape, labels), weights)


def _encoder_weights(stored: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """Rename weights of transformers to the names in `ModernBert`, and order and split them as it does."""
    weights = {"words.weight": stored["embeddings.tok_embeddings.weight"]}
    weights |= _renamed(stored, "embeddings.norm", "norm") | _renamed(stored, "final_norm", "last_norm")
    for number in range(shape.num_hidden_layers):
        source, target = f"layers.{number}.", f"layers.{number}."
        for own_name, name in LAYER.items():
            weights |= _renamed(stored, source + name, target + own_name)
        for part, tensor in _renamed(stored, f"{source}attn.Wqkv", "").items():
            weights[f"{target}qkv{part}"] = _in_pairs(tensor, shape.num_attention_heads)
        for part, tensor in _renamed(stored, f"{source}mlp.Wi", "").items():
            up, gate = tensor.chunk(2)
            weights |= {f"{target}up{part}": up.contiguous(), f"{target}gate{part}": gate.contiguous()}
    return weights


def _renamed(stored: dict[str, Tensor], name: str, target: str) -> dict[str, Tensor]:
    """Weight and bias of a layer, as far as it has them, under another name."""
    parts = {part: stored[name + part] for part in (".weight", ".bias") if name + part in stored}
    return {target + part: tensor for part, tensor in parts.items()}


def _in_pairs(tensor: Tensor, heads: int) -> Tensor:
    """Rows of queries, keys and values where the two halves of each head of queries and keys become pairs of neighbours."""
    parts = tensor.view(3, heads, 2, -1, *tensor.shape[1:])
    paired = parts[:2].transpose(2, 3).reshape(2, -1, *tensor.shape[1:])
    return torch.cat([*paired, parts[2].reshape(-1, *tensor.shape[1:])])
