"""Attention for models of transformers that supports batches of texts of different lengths.

A class with the forward pass is inserted before the model's own class. Every caller of the model, including
sentence-transformers in training, gets this forward pass, and weights keep their names.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.reformer import modeling_reformer as reformer

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class MaskedAttention(nn.Module, ABC):
    """Base of attentions that use the query, key and value projections of a model's layer.

    The mask is set on the layer, since models of transformers expand the mask of a call to a quadratic one.
    """

    mask: Tensor
    """bool (batch, positions): the positions to attend to."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.query, self.key, self.value = attention.query, attention.key, attention.value
        self.heads: int = attention.num_attention_heads
        self.dim: int = attention.attention_head_size

    @abstractmethod
    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Return the contexts, (batch, heads, positions, d); `mask` is bool (batch, positions)."""

    def forward(self, hidden: Tensor, *_: object, **__: object) -> tuple[Tensor, None]:
        batch, length, _width = hidden.shape
        query, key, value = (
            projection(hidden).view(batch, length, self.heads, self.dim).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        context = self.attend(query, key, value, self.mask)
        return context.transpose(1, 2).reshape(batch, length, self.heads * self.dim), None


class NystromAttention(MaskedAttention):
    """Nyströmformer's attention (Xiong et al., AAAI 2021) over any number of positions, with the weights of `attention`.

    softmax(q k') is approximated through landmarks, the means of segments of the positions. The segments of a text cover its
    tokens without padding. They are of equal size if the text's length is a multiple of the number of landmarks (as in
    transformers for a single text); else their sizes differ by one. A text with at most as many tokens as landmarks gets full
    attention.
    """

    def __init__(self, attention: Any, landmarks: int) -> None:
        super().__init__(attention)
        self.landmarks = landmarks
        self.conv = attention.conv if attention.conv_kernel_size is not None else None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        dtype = value.dtype
        padding = ~mask[:, None, None, :]
        value = value.masked_fill(~mask[:, None, :, None], 0.0)
        scale = 1 / math.sqrt(math.sqrt(self.dim))
        query, key = query * scale, key * scale
        if query.shape[-2] <= self.landmarks:
            context = _softmax(query @ key.transpose(-1, -2), padding) @ value
        else:
            means = _segments(mask, self.landmarks).to(dtype)
            query_landmarks, key_landmarks = means @ query, means @ key
            first = _softmax(query @ key_landmarks.transpose(-1, -2))
            second = _softmax(query_landmarks @ key_landmarks.transpose(-1, -2))
            third = _softmax(query_landmarks @ key.transpose(-1, -2), padding)
            with torch.autocast(query.device.type, enabled=False):  # the iteration needs full precision, in training too
                inverse = _inverse(second.float()).to(dtype)
            context = (first @ inverse) @ (third @ value)
        return context if self.conv is None else context + self.conv(value)


def replace_attention(module: nn.Module, make: Callable[[nn.Module], nn.Module]) -> int:
    """Replace each `self` attention of `module` that has the projections by `make(attention)`; return their number."""
    replaced = 0
    for parent in list(module.modules()):
        attention = getattr(parent, "self", None)
        if isinstance(attention, nn.Module) and all(hasattr(attention, name) for name in ("query", "key", "value")):
            parent.self = make(attention)
            replaced += 1
    return replaced


def set_mask(module: nn.Module, mask: Tensor) -> None:
    """Set the mask, bool (batch, positions), of each MaskedAttention in `module`."""
    for part in module.modules():
        if isinstance(part, MaskedAttention):
            part.mask = mask


def _softmax(scores: Tensor, padding: Tensor | None = None) -> Tensor:
    return torch.softmax(scores if padding is None else scores.masked_fill(padding, float("-inf")), dim=-1)


def _segments(mask: Tensor, landmarks: int) -> Tensor:
    """Matrices that average segments, float32 (batch, 1, landmarks, positions); each text has at least `landmarks` tokens."""
    lengths = mask.sum(dim=1)
    edges = torch.arange(landmarks + 1, device=mask.device) * lengths[:, None] // landmarks
    positions = torch.arange(mask.shape[1], device=mask.device)
    inside = (positions >= edges[:, :-1, None]) & (positions < edges[:, 1:, None])
    sizes = (edges[:, 1:] - edges[:, :-1]).clamp(min=1)
    return (inside / sizes[:, :, None])[:, None]


def _inverse(matrix: Tensor, steps: int = 6) -> Tensor:
    """Pseudoinverse by the iteration of Razavi et al. (2014), initialized as in Xiong et al. for a single text."""
    identity = torch.eye(matrix.shape[-1], device=matrix.device)
    inverse = matrix.transpose(-1, -2) / matrix.sum(dim=-2).amax(dim=(-2, -1))[:, None, None, None]
    for _ in range(steps):
        product = matrix @ inverse
        inverse = 0.25 * inverse @ (13 * identity - product @ (15 * identity - product @ (7 * identity - product)))
    return inverse


FEATURES = 256  # default number of random features
EPSILON = 1e-10  # keeps the denominator of the attention above zero; the greatest feature of a query is 1


def orthogonal_features(features: int, dim: int, seed: int = 0) -> Tensor:
    """Random features, float32 (features, dim): rows of N(0, I), orthogonal within blocks of `dim` rows."""
    generator = torch.Generator().manual_seed(seed)
    blocks = []
    for start in range(0, features, dim):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        q = q * r.diagonal().sign()  # makes the directions uniform (Mezzadri 2007)
        blocks.append(q.T[: min(dim, features - start)])
    lengths = torch.linalg.vector_norm(torch.randn(features, dim, generator=generator), dim=1, keepdim=True)
    omega: Tensor = torch.cat(blocks) * lengths
    return omega


def favor(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, omega: Tensor) -> Tensor:
    """Approximate softmax(q k' / sqrt(d)) v in linear time, in the dtype of `value`.

    `query`, `key`, `value` and the result are (batch, heads, positions, d). `mask`, bool (batch, positions), selects the
    positions to attend to. `omega` are the random features, float32 (features, d).
    """
    dtype = value.dtype
    query, key, value = query.float(), key.float(), value.float()
    scale = query.shape[-1] ** -0.25
    padding = ~mask[:, None, :, None]
    queries = _logarithms(query * scale, omega)
    keys = _logarithms(key * scale, omega).masked_fill(padding, float("-inf"))
    # The maxima, subtracted by position for queries and by head for keys, cancel out in the quotient.
    queries = torch.exp(queries - queries.amax(dim=-1, keepdim=True)) + EPSILON
    keys = torch.exp(keys - keys.amax(dim=(-2, -1), keepdim=True)) + EPSILON
    keys = keys.masked_fill(padding, 0.0)
    weighted = queries @ (keys.transpose(-1, -2) @ value)
    total = queries @ keys.sum(dim=-2).unsqueeze(-1)
    return (weighted / total).to(dtype)


class FavorAttention(MaskedAttention):
    """FAVOR+ (Choromanski et al., ICLR 2021) with the weights of a BERT-shaped layer."""

    def __init__(self, attention: Any, features: int = FEATURES, seed: int = 0) -> None:
        super().__init__(attention)
        self.omega = orthogonal_features(features, self.dim, seed)  # not a buffer, so that it stays in float32

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):  # exponentials need full precision, in training too
            return favor(query, key, value, mask, self.omega.to(query.device))


def _logarithms(x: Tensor, omega: Tensor) -> Tensor:
    """Logarithms of the features of `x` without the factor 1 / sqrt(features), which cancels out too."""
    return x @ omega.T - x.square().sum(dim=-1, keepdim=True) / 2


FILE = "fontes.json"  # {"attention", "features"} of a model that transformers alone runs differently


class Network:
    """Base of the architectures, which computes each group of texts by itself."""

    declared: dict[str, Any]
    """Content of FILE."""

    def setup(self, limit: int | None) -> int | None:
        """Adapt the model; return the maximum number of tokens of a text, which is `limit` for the unchanged model."""
        return limit

    def group(self, length: int) -> int:
        """Group of a text of `length` tokens; texts of one group are computed together."""
        return 0

    def padded(self, length: int) -> int:
        """Padded length of texts of up to `length` tokens."""
        return length

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor | bool]:
        """Arguments of the model for token ids and a mask of 0 and 1, (texts, positions)."""
        return {"input_ids": ids, "attention_mask": mask}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: object) -> BaseModelOutput:
        """Last hidden states, (texts, positions, width), of `input_ids`, (texts, positions), padded on the right."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        lengths = mask.sum(dim=1).clamp(min=1).tolist()
        groups: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            groups.setdefault(self.group(length), []).append(row)
        aligned = {name: v for name, v in more.items() if isinstance(v, Tensor) and v.shape == input_ids.shape}
        other = {name: value for name, value in more.items() if name not in aligned}
        positions = input_ids.shape[1]
        parts = []
        for rows in groups.values():
            width = self.padded(max(lengths[row] for row in rows))
            inputs = self.inputs(_resized(input_ids[rows], width, self._padding), _resized(mask[rows], width))
            aligned_rows = {name: _resized(value[rows], width) for name, value in aligned.items()}
            hidden = cast(Any, super()).forward(**inputs, **aligned_rows, **other).last_hidden_state
            parts.append(_resized(hidden, positions))
        order = torch.tensor([row for rows in groups.values() for row in rows], device=input_ids.device)
        hidden = parts[0] if len(parts) == 1 else torch.cat(parts)[torch.argsort(order)]
        return BaseModelOutput(last_hidden_state=hidden)

    def save_pretrained(self, save_directory: str | Path, *arguments: object, **settings: object) -> None:
        """Save the model as transformers does, and its attention as FILE."""
        cast(Any, super()).save_pretrained(save_directory, *arguments, **settings)
        Path(save_directory, FILE).write_text(json.dumps(self.declared, indent=2) + "\n", encoding="utf-8")

    @property
    def _padding(self) -> int:
        return cast(Any, self).config.pad_token_id or 0


class Longformer(Network):
    """Texts padded to the attention window; global attention on the first token, as in its authors' classification."""

    def padded(self, length: int) -> int:
        window = cast(Any, self).config.attention_window
        return _round_up(length, window if isinstance(window, int) else max(window))

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor | bool]:
        global_mask = torch.zeros_like(mask)
        global_mask[:, 0] = 1
        return {**super().inputs(ids, mask), "global_attention_mask": global_mask}


class WithMaskedAttention(Network):
    """A model with layers of MaskedAttention, which get the mask in place of the model."""

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor | bool]:
        set_mask(cast(nn.Module, self), mask.bool())
        return super().inputs(ids, torch.ones_like(mask))  # without a mask, transformers warns of padding


class Nystromformer(WithMaskedAttention):
    """Nyström attention in linear time; the defaults of transformers, 64 landmarks for 64 positions, give full attention."""

    def setup(self, limit: int | None) -> int | None:
        landmarks = cast(Any, self).config.num_landmarks
        replace_attention(cast(nn.Module, self), lambda attention: NystromAttention(attention, landmarks))
        return limit

    def group(self, length: int) -> int:
        return int(length > cast(Any, self).config.num_landmarks)


class Performer(WithMaskedAttention):
    """FAVOR+ in place of the attention of a BERT-shaped model."""

    def setup(self, limit: int | None) -> int | None:
        features = self.declared["features"]
        if not replace_attention(cast(nn.Module, self), lambda attention: FavorAttention(attention, features)):
            raise ParameterError(f"attention='favor+' takes a BERT-shaped model, not {type(self).__name__}")
        return limit


class Reformer(Network):
    """Texts padded to chunks, with buckets by the padded length and hashes from a fixed seed: a text always has one vector."""

    chunk: int  # padded lengths are multiples of it
    shortest: int  # texts up to this length get full attention

    def setup(self, limit: int | None) -> int | None:
        config = cast(Any, self).config
        chunks = {"lsh": config.lsh_attn_chunk_length, "local": config.local_attn_chunk_length}
        used = [chunks[kind] for kind in set(config.attn_layers)]
        self.chunk, self.shortest = math.lcm(*used), min(used)
        for part in list(cast(nn.Module, self).modules()):
            if isinstance(part, reformer.LSHSelfAttention):
                part.hash_seed = config.hash_seed or 0
                mix(part, FixedHashes)
            elif isinstance(part, reformer.AxialPositionEmbeddings):
                mix(part, AnyLengthPositions)
            elif isinstance(part, reformer.ReformerEncoder):
                mix(part, StoredActivations)
        if config.axial_pos_embds:
            positions = math.prod(config.axial_pos_shape)
            limit = min(limit or positions, positions)
        if limit:  # padding takes positions too
            limit = max(limit // self.chunk * self.chunk, min(limit, self.shortest))
        return limit

    def group(self, length: int) -> int:
        return 0 if length <= self.shortest else self.padded(length)

    def padded(self, length: int) -> int:
        return length if length <= self.shortest else _round_up(length, self.chunk)

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor | bool]:
        config = cast(Any, self).config
        for part in cast(nn.Module, self).modules():
            if isinstance(part, FixedHashes):
                part.num_buckets = config.num_buckets or buckets(ids.shape[1], config)
        return {**super().inputs(ids, mask), "use_cache": False}


class FixedHashes:
    """Hashing from a fixed seed, without effect on later random numbers, such as those of dropout."""

    num_buckets: int | list[int]

    def _hash_vectors(self, vectors: Tensor, *arguments: object, **settings: object) -> object:
        with torch.random.fork_rng(devices=[vectors.device] if vectors.is_cuda else []):
            return cast(Any, super())._hash_vectors(vectors, *arguments, **settings)


class AnyLengthPositions:
    """Axial positions for texts of any length; in training those of transformers have one length."""

    def train(self, mode: bool = True) -> object:
        return cast(Any, super()).train(False)


class StoredActivations:
    """Reformer's layers with activations stored for the backward pass.

    transformers recomputes them from one random seed per layer, so that two forward passes before a backward pass, as with
    cached gradients, would not repeat their dropout.
    """

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: object
    ) -> reformer.ReformerEncoderOutput:
        encoder = cast(Any, self)
        attended = hidden_states
        for layer in encoder.layers:
            attended = attended + layer.attention(hidden_states, attention_mask=attention_mask).hidden_states
            hidden_states = hidden_states + layer.feed_forward(attended)
        joined = encoder.layer_norm(torch.cat([attended, hidden_states], dim=-1))
        joined = nn.functional.dropout(joined, p=encoder.dropout, training=encoder.training)
        return reformer.ReformerEncoderOutput(joined, [], [], None)


ARCHITECTURES: dict[str, type[Network]] = {
    "longformer": Longformer,
    "nystromformer": Nystromformer,
    "performer": Performer,
    "reformer": Reformer,
}


def install(module: Any, name: str, declared: dict[str, object], limit: int | None) -> int | None:
    """Turn `module` into the architecture `name`, if it is one of ARCHITECTURES; return its maximum number of tokens."""
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        return limit
    mix(module, architecture)
    module.declared = declared
    return cast(Network, module).setup(limit)


def mix(module: nn.Module, mixin: type) -> None:
    """Insert the class `mixin` before the class of `module`; the name of the class is unchanged."""
    base = type(module)
    module.__class__ = type(base.__name__, (mixin, base), {"__module__": base.__module__})


def buckets(length: int, config: PretrainedConfig) -> int | list[int]:
    """Number of hash buckets for texts of `length` positions; transformers derives it from the first text only."""
    power = (2 * (length // config.lsh_attn_chunk_length)).bit_length() - 1
    limit = 2 * max(int((config.max_position_embeddings // config.lsh_attn_chunk_length) ** 0.5), config.lsh_attn_chunk_length)
    if power < 1:
        return 2
    return 2**power if 2**power <= limit else [2 ** (power // 2), 2 ** (power - power // 2)]


def _resized(values: Tensor, width: int, fill: int = 0) -> Tensor:
    """Cut or pad rows (texts, positions, …) to `width` positions."""
    missing = width - values.shape[1]
    if missing <= 0:
        return values[:, :width]
    shape = (0, missing) if values.ndim == 2 else (0, 0, 0, missing)
    return nn.functional.pad(values, shape, value=fill)


def _round_up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple
