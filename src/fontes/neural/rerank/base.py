"""The base of rerankers with a model of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...passages.reranker import Reranker
from ..models.base import Loaded, Pretrained

M = TypeVar("M", bound=Loaded)


@dataclass(frozen=True)
class PretrainedReranker(Pretrained[M], Reranker):
    """The base of rerankers with a model of their own, over pairs of texts."""

    task = "reranking"
    unit = "pairs"
    cpu_tokens = 2048  # more is slower, since pairs are long


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)), worked out in float64."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
