"""FAVOR+, the linear attention of the Performer, in place of the attention of a BERT-shaped model.

Choromanski et al., Rethinking Attention with Performers, ICLR 2021. With omega_1 … omega_m drawn from N(0, I) and made
orthogonal in blocks, exp(q·k) is the expectation of phi(q)·phi(k) with the positive features
phi(x)_i = exp(omega_i·x - |x|²/2) / sqrt(m), so that attention over n positions takes n·m·d steps in place of n²·d.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .attention import MaskedAttention

FEATURES = 256
EPSILON = 1e-10  # keeps the denominator above zero; the greatest feature of a query is 1


def orthogonal_features(features: int, dim: int, seed: int = 0) -> Tensor:
    """omega, float32 (features, dim): rows of N(0, I), made orthogonal within blocks of `dim` rows, their lengths random."""
    generator = torch.Generator().manual_seed(seed)
    blocks = []
    for start in range(0, features, dim):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        q = q * r.diagonal().sign()  # without these signs the directions are not uniform (Mezzadri 2007)
        blocks.append(q.T[: min(dim, features - start)])
    lengths = torch.linalg.vector_norm(torch.randn(features, dim, generator=generator), dim=1, keepdim=True)
    omega: Tensor = torch.cat(blocks) * lengths
    return omega


def favor(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, omega: Tensor) -> Tensor:
    """softmax(q k' / sqrt(d)) v, approximately, in linear time.

    Args:
        query: (batch, heads, positions, d).
        key: Likewise.
        value: Likewise.
        mask: bool, (batch, positions): the positions that are attended to.
        omega: The random features, float32, (features, d).

    Returns:
        (batch, heads, positions, d), in the dtype of `value`.
    """
    kind = value.dtype
    query, key, value = query.float(), key.float(), value.float()
    scale = query.shape[-1] ** -0.25
    absent = ~mask[:, None, :, None]
    queries = _logarithms(query * scale, omega)
    keys = _logarithms(key * scale, omega).masked_fill(absent, float("-inf"))
    # What is taken off cancels out in the quotient: by position for queries, by head for keys.
    queries = torch.exp(queries - queries.amax(dim=-1, keepdim=True)) + EPSILON
    keys = torch.exp(keys - keys.amax(dim=(-2, -1), keepdim=True)) + EPSILON
    keys = keys.masked_fill(absent, 0.0)
    weighted = queries @ (keys.transpose(-1, -2) @ value)
    total = queries @ keys.sum(dim=-2).unsqueeze(-1)
    return (weighted / total).to(kind)


class FavorAttention(MaskedAttention):
    """The self-attention of a BERT-shaped layer, with its weights, by FAVOR+."""

    def __init__(self, attention: Any, features: int = FEATURES, seed: int = 0) -> None:
        super().__init__(attention)
        self.omega = orthogonal_features(features, self.dim, seed)  # no buffer: it stays in float32

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):  # exponentials need all the digits, in training too
            return favor(query, key, value, mask, self.omega.to(query.device))


def _logarithms(x: Tensor, omega: Tensor) -> Tensor:
    """The logarithms of phi, without the factor 1 / sqrt(m), which cancels out too."""
    return x @ omega.T - x.square().sum(dim=-1, keepdim=True) / 2
