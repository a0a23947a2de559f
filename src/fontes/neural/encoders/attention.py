"""Self-attention in place of that of a BERT-shaped model, and Nyströmformer's, which leaves padding out.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class MaskedAttention(nn.Module, ABC):
    """The query, key and value projections of a layer, with another attention, and a mask by position that is set beforehand.

    The mask is set from outside since the models of transformers make a quadratic one of what they are given.
    """

    mask: Tensor

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.query, self.key, self.value = attention.query, attention.key, attention.value
        self.heads: int = attention.num_attention_heads
        self.dim: int = attention.attention_head_size

    @abstractmethod
    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """The contexts, (batch, heads, positions, d); `mask` is bool (batch, positions)."""

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        batch, length, _width = hidden.shape
        query, key, value = (
            projection(hidden).view(batch, length, self.heads, self.dim).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        context = self.attend(query, key, value, self.mask)
        return context.transpose(1, 2).reshape(batch, length, self.heads * self.dim), None


class NystromAttention(MaskedAttention):
    """Nyströmformer's attention (Xiong et al., AAAI 2021) over any number of positions, its weights those of `attention`.

    softmax(q k') is approximated through landmarks, the means of segments of the positions. Here a text's segments are its own:
    equal where its length is a multiple of the number of landmarks (then this is the attention of transformers, on one text),
    else differing by one position; padding is in none of them. A text that is no longer than the landmarks gets full attention.
    """

    def __init__(self, attention: Any, landmarks: int) -> None:
        super().__init__(attention)
        self.landmarks = landmarks
        self.conv = attention.conv if attention.conv_kernel_size is not None else None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        kind = value.dtype
        absent = ~mask[:, None, None, :]
        value = value.masked_fill(~mask[:, None, :, None], 0.0)
        scale = 1 / math.sqrt(math.sqrt(self.dim))
        query, key = query * scale, key * scale
        if query.shape[-2] <= self.landmarks:
            context = _softmax(query @ key.transpose(-1, -2), absent) @ value
        else:
            means = _segments(mask, self.landmarks).to(kind)
            query_landmarks, key_landmarks = means @ query, means @ key
            first = _softmax(query @ key_landmarks.transpose(-1, -2))
            second = _softmax(query_landmarks @ key_landmarks.transpose(-1, -2))
            third = _softmax(query_landmarks @ key.transpose(-1, -2), absent)
            with torch.autocast(query.device.type, enabled=False):  # the iteration needs all the digits, in training too
                inverse = _inverse(second.float()).to(kind)
            context = (first @ inverse) @ (third @ value)
        return context if self.conv is None else context + self.conv(value)


def replace(module: nn.Module, make: Callable[[nn.Module], nn.Module]) -> int:
    """Replaces each `self` of the attention of `module` that has the projections; returns how many were replaced."""
    replaced = 0
    for parent in list(module.modules()):
        inner = getattr(parent, "self", None)
        if isinstance(inner, nn.Module) and all(hasattr(inner, name) for name in ("query", "key", "value")):
            parent.self = make(inner)
            replaced += 1
    return replaced


def set_mask(module: nn.Module, mask: Tensor) -> None:
    """Sets the mask, bool (batch, positions), of each MaskedAttention in `module`."""
    for part in module.modules():
        if isinstance(part, MaskedAttention):
            part.mask = mask


def _softmax(scores: Tensor, absent: Tensor | None = None) -> Tensor:
    return torch.softmax(scores if absent is None else scores.masked_fill(absent, float("-inf")), dim=-1)


def _segments(mask: Tensor, landmarks: int) -> Tensor:
    """The matrices that take the means of segments, float32 (batch, 1, landmarks, positions); no text is shorter than them."""
    lengths = mask.sum(dim=1)
    edges = torch.arange(landmarks + 1, device=mask.device) * lengths[:, None] // landmarks
    positions = torch.arange(mask.shape[1], device=mask.device)
    inside = (positions >= edges[:, :-1, None]) & (positions < edges[:, 1:, None])
    sizes = (edges[:, 1:] - edges[:, :-1]).clamp(min=1)
    return (inside / sizes[:, :, None])[:, None]


def _inverse(matrix: Tensor, steps: int = 6) -> Tensor:
    """The pseudoinverse by the iteration of Razavi et al. (2014), started as Xiong et al. start it for a single text."""
    identity = torch.eye(matrix.shape[-1], device=matrix.device)
    inverse = matrix.transpose(-1, -2) / matrix.sum(dim=-2).amax(dim=(-2, -1))[:, None, None, None]
    for _ in range(steps):
        product = matrix @ inverse
        inverse = 0.25 * inverse @ (13 * identity - product @ (15 * identity - product @ (7 * identity - product)))
    return inverse
