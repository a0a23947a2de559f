"""The base of rerankers with a model of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.progress import Report, silent
from ...passages.reranker import Reranker
from ..models.base import Loaded, Pretrained

M = TypeVar("M", bound=Loaded)


@dataclass(frozen=True)
class PretrainedReranker(Pretrained[M], Reranker):
    """The base of rerankers with a model of their own, over pairs of texts.

    The model has `inputs(pairs)`, what it reads of each; `lengths(inputs)`, their tokens; and `logits(module, inputs)`, a
    float32 tensor of one score each, computed in one batch.
    """

    task = "reranking"
    unit = "pairs"
    cpu_tokens = 2048  # more is slower, since pairs are long

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report = silent) -> NDArray[np.float32]:
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        model: Any = self._model
        inputs = self._inputs(model, pairs)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            logits: NDArray[np.float32] = model.logits(model.prepared.module, [inputs[i] for i in batch]).cpu().numpy()
            return logits

        return self._in_batches(model.lengths(inputs), work, progress)

    def _inputs(self, model: Any, pairs: Sequence[tuple[str, str]]) -> Sequence[Any]:
        return model.inputs(pairs)  # type: ignore[no-any-return]


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)), worked out in float64."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
