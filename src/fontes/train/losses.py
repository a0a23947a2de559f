"""Losses and searches of trainable late-interaction models and learned sparse encoders.

Imports torch and sentence-transformers: import it inside functions only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from ..core.arrays import Float32s
from ..neural.late.maxsim import maxsim
from .dual_encoder import DualEncoderLoss

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SparseEncoder

    from .encoder_fit import Scores
    from .splade import SpladeSettings


class ColBERTLoss(DualEncoderLoss):
    """Loss of the sums of best similarities (Khattab and Zaharia 2020, equation 3).

    The representations of texts are tensors (texts, tokens, dimensions), with zero vectors for tokens that do not count.
    """

    def vectors(self, features: dict[str, Tensor]) -> Tensor:
        computed = self.model(features, task=features["task"])
        vectors: Tensor = computed["token_embeddings"] * computed["attention_mask"][..., None]
        return vectors

    def joined(self, parts: list[Tensor]) -> Tensor:
        longest = max(part.shape[1] for part in parts)
        return torch.cat([nn.functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part in parts])

    def scores(self, queries: Tensor, documents: Tensor) -> Tensor:
        empty = ~documents.any(dim=2)[..., None]
        # One query at a time: the similarities of all queries would need most of the memory.
        best = [(documents @ query.T).masked_fill(empty, -math.inf).amax(dim=1) for query in queries]
        return torch.stack([similarities.sum(dim=1) for similarities in best])


def maxsims(model: MultiVectorEncoder) -> Scores:
    """Return a function that scores queries and documents by the sum of best similarities."""

    def vectors(encode: Callable[..., list[Tensor]], texts: Sequence[str]) -> list[Float32s]:
        return [
            np.asarray(encoded, np.float32) for encoded in encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        ]

    def scores(queries: Sequence[str], texts: Sequence[str]) -> Float32s:
        documents = vectors(model.encode_document, texts)
        bounds = np.array([0, *accumulate(map(len, documents))])
        token_vectors = np.concatenate(documents)
        return np.stack([maxsim(query, token_vectors, bounds) for query in vectors(model.encode_query, queries)])

    return scores


class SpladeLoss(DualEncoderLoss):
    """Loss of inner products of weights, with the FLOPS penalty (Paria et al. 2020, equation 4).

    Args:
        model: A SparseEncoder.
        settings: Loss, penalty and its warm-up.
        queries: Whether queries are penalized.
    """

    def __init__(self, model: SparseEncoder, settings: SpladeSettings, queries: bool = True) -> None:
        super().__init__(model, settings)
        self._document_flops, self._query_flops = settings.document_flops, settings.query_flops if queries else 0.0
        self._warm_up = settings.flops_warm_up
        self._share = 0.0 if self._warm_up else 1.0  # of the penalty's weights

    def warm_up(self, share: float) -> None:
        """Set the weights of the penalty after a share of the training; they rise with its square (Formal et al. 2021)."""
        self._share = min(1.0, share / self._warm_up) ** 2 if self._warm_up else 1.0

    def penalty(self, queries: Tensor, documents: Tensor) -> Tensor | float:
        share = self._share if self.model.training else 1.0  # so that validation losses of different steps are comparable
        return share * (self._query_flops * flops(queries) + self._document_flops * flops(documents))


def flops(weights: Tensor) -> Tensor:
    """Return the sum over the vocabulary of the squared mean weight of a token; weights are (texts, vocabulary)."""
    return weights.mean(dim=0).square().sum()


def products(model: SparseEncoder) -> Scores:
    """Return a function that scores queries and documents by the inner product of their weights."""

    def weights(encode: Callable[..., Tensor], texts: Sequence[str]) -> sparse.csr_array:
        rows = encode(list(texts), show_progress_bar=False, convert_to_sparse_tensor=True, save_to_cpu=True).coalesce()
        return sparse.csr_array((rows.values().float().numpy(), rows.indices().numpy()), shape=tuple(rows.shape))

    def scores(queries: Sequence[str], texts: Sequence[str]) -> Float32s:
        return np.asarray((weights(model.encode_query, queries) @ weights(model.encode_document, texts).T).toarray())

    return scores
