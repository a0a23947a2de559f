"""Models of transformers whose forward pass is that of `installed`: mixed in before the model's own class, so that whoever
calls the model (an encoder here, sentence-transformers while it trains) gets it, and its weights keep their names.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.reformer import modeling_reformer as reformer

from ...core.errors import ParameterError
from .attention import NystromAttention, replace, set_mask
from .performer import FavorAttention

FILE = "fontes.json"  # in the folder of a model that transformers alone would run in another way: {"attention", "features"}


class Network:
    """Base of the architectures: texts of differing groups are computed apart.

    Attributes:
        declared: Attention that the file beside the model's configuration declares.
    """

    declared: dict[str, Any]

    def setup(self, limit: int | None) -> int | None:
        """Changes what must be changed in the model, once; `limit` and the result are the most tokens of a text."""
        return limit

    def group(self, length: int) -> int:
        """Texts of equal groups may be computed together."""
        return 0

    def padded(self, length: int) -> int:
        """The length to which texts are padded the longest of which has `length` tokens."""
        return length

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        """Arguments of the model for token ids and a mask of 0 and 1, (texts, positions)."""
        return {"input_ids": ids, "attention_mask": mask}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: Any) -> BaseModelOutput:
        """The last hidden states, (texts, positions, width), for the positions of `input_ids`, padding on the right."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        lengths = mask.sum(dim=1).clamp(min=1).tolist()
        groups: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            groups.setdefault(self.group(length), []).append(row)
        positions = input_ids.shape[1]
        parts = []
        for rows in groups.values():
            width = self.padded(max(lengths[row] for row in rows))
            aligned = {name: value for name, value in more.items() if _like(value, input_ids)}
            other = {name: value for name, value in more.items() if name not in aligned}
            of_rows = {name: _wide(value[rows], width) for name, value in aligned.items()}
            inputs = self.inputs(_wide(input_ids[rows], width, self._padding), _wide(mask[rows], width))
            hidden = cast(Any, super()).forward(**inputs, **of_rows, **other).last_hidden_state
            parts.append(_wide(hidden, positions))
        order = torch.tensor([row for rows in groups.values() for row in rows], device=input_ids.device)
        hidden = parts[0] if len(parts) == 1 else torch.cat(parts)[torch.argsort(order)]
        return BaseModelOutput(last_hidden_state=hidden)

    def save_pretrained(self, save_directory: Any, *arguments: Any, **settings: Any) -> None:
        """Saves the model as transformers does, and beside it what its attention is."""
        cast(Any, super()).save_pretrained(save_directory, *arguments, **settings)
        Path(save_directory, FILE).write_text(json.dumps(self.declared, indent=2) + "\n", encoding="utf-8")

    @property
    def _padding(self) -> int:
        return cast(Any, self).config.pad_token_id or 0


class Longformer(Network):
    """Padded to the attention window; the first token attends to all and all to it, as in its authors' classification."""

    def padded(self, length: int) -> int:
        window = cast(Any, self).config.attention_window
        return _multiple(length, window if isinstance(window, int) else max(window))

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        everywhere = torch.zeros_like(mask)
        everywhere[:, 0] = 1
        return {**super().inputs(ids, mask), "global_attention_mask": everywhere}


class Replaced(Network):
    """A model whose attention was replaced: it gets no mask itself, its attentions do."""

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        set_mask(cast(nn.Module, self), mask.bool())
        return super().inputs(ids, torch.ones_like(mask))  # and not None: without a mask transformers warns of padding


class Nystromformer(Replaced):
    """Nyström attention, whose cost is linear; transformers' defaults, 64 landmarks for 64 positions, are full attention."""

    def setup(self, limit: int | None) -> int | None:
        landmarks = cast(Any, self).config.num_landmarks
        replace(cast(nn.Module, self), lambda attention: NystromAttention(attention, landmarks))
        return limit

    def group(self, length: int) -> int:
        return int(length > cast(Any, self).config.num_landmarks)


class Performer(Replaced):
    """FAVOR+ in place of the attention of a BERT-shaped model."""

    def setup(self, limit: int | None) -> int | None:
        features = self.declared["features"]
        if not replace(cast(nn.Module, self), lambda attention: FavorAttention(attention, features)):
            raise ParameterError(f"attention='favor+' takes a BERT-shaped model, not {type(self).__name__}")
        return limit


class Reformer(Network):
    """Padded to its chunks; buckets by the padded length, hashes from a fixed seed, so that a text has one vector.

    Attributes:
        chunk: Divisor of padded lengths.
        shortest: Texts up to this length get full attention.
    """

    chunk: int
    shortest: int

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
                mix(part, AnyLength)
            elif isinstance(part, reformer.ReformerEncoder):
                mix(part, Remembered)
        if config.axial_pos_embds:
            most = math.prod(config.axial_pos_shape)
            limit = min(limit or most, most)
        if limit:  # padding takes positions too
            limit = max(limit // self.chunk * self.chunk, min(limit, self.shortest))
        return limit

    def group(self, length: int) -> int:
        return 0 if length <= self.shortest else self.padded(length)

    def padded(self, length: int) -> int:
        return length if length <= self.shortest else _multiple(length, self.chunk)

    def inputs(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        config = cast(Any, self).config
        for part in cast(nn.Module, self).modules():
            if isinstance(part, FixedHashes):
                part.num_buckets = config.num_buckets or buckets(ids.shape[1], config)
        return {**super().inputs(ids, mask), "use_cache": False}


class FixedHashes:
    """Hashing from its seed, after which the random numbers, as those of dropout, go on as if nothing had been drawn."""

    num_buckets: int | list[int]

    def _hash_vectors(self, vectors: Tensor, *arguments: Any, **settings: Any) -> Any:
        with torch.random.fork_rng(devices=[vectors.device] if vectors.is_cuda else []):
            return cast(Any, super())._hash_vectors(vectors, *arguments, **settings)


class AnyLength:
    """Axial positions that in training too are those of the text; as transformers has them they are of one length alone."""

    def train(self, mode: bool = True) -> Any:
        return cast(Any, super()).train(False)


class Remembered:
    """Reformer's layers, whose hidden states are remembered for the backward pass.

    As transformers has them they are computed again, by random seeds that no seed fixes and of which a layer has one alone,
    so that the dropout of two passes before a backward pass would not be undone, nor that of cached gradients repeated.
    """

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Any:
        encoder = cast(Any, self)
        attended = hidden_states
        for layer in encoder.layers:
            attended = attended + layer.attention(hidden_states, attention_mask=attention_mask).hidden_states
            hidden_states = hidden_states + layer.feed_forward(attended)
        both = encoder.layer_norm(torch.cat([attended, hidden_states], dim=-1))
        both = nn.functional.dropout(both, p=encoder.dropout, training=encoder.training)
        return reformer.ReformerEncoderOutput(both, [], [], None)


ARCHITECTURES: dict[str, type[Network]] = {
    "longformer": Longformer,
    "nystromformer": Nystromformer,
    "performer": Performer,
    "reformer": Reformer,
}


def install(module: Any, name: str, declared: dict[str, Any], limit: int | None) -> int | None:
    """Makes `module` the architecture called `name`, where that is one of ARCHITECTURES; returns its limit."""
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        return limit
    mix(module, architecture)
    module.declared = declared
    return cast(Network, module).setup(limit)


def mix(module: nn.Module, mixin: type) -> None:
    """Puts a class before that of `module`, which keeps its name."""
    own = type(module)
    module.__class__ = type(own.__name__, (mixin, own), {"__module__": own.__module__})


def buckets(length: int, config: Any) -> int | list[int]:
    """The number of buckets for texts of `length` positions, as transformers sets it by the first text that it sees."""
    power = (2 * (length // config.lsh_attn_chunk_length)).bit_length() - 1
    most = 2 * max(int((config.max_position_embeddings // config.lsh_attn_chunk_length) ** 0.5), config.lsh_attn_chunk_length)
    if power < 1:
        return 2
    return 2**power if 2**power <= most else [2 ** (power // 2), 2 ** (power - power // 2)]


def _like(value: Any, ids: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == ids.shape


def _wide(values: Tensor, width: int, filling: int = 0) -> Tensor:
    """Rows (texts, positions, …) cut or filled up to `width` positions."""
    missing = width - values.shape[1]
    if missing <= 0:
        return values[:, :width]
    shape = (0, missing) if values.ndim == 2 else (0, 0, 0, missing)
    return nn.functional.pad(values, shape, value=filling)


def _multiple(length: int, of: int) -> int:
    return -(-length // of) * of
