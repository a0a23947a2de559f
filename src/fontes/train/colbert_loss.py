"""Loss and search of a trainable late-interaction model.

Imports torch and sentence-transformers: import it inside functions only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arrays import Float32s
from ..neural.late.maxsim import maxsim
from .dual_encoder import DualEncoderLoss

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

    from .encoder_fit import Scores


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
