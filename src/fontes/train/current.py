"""A reranker in training, which reranks the run to validate on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Float32s, Indices
from ..core.run import Run
from ..core.values import Qrels
from ..measures import Measure, evaluate
from ..neural.models.compute import batch_tokens, in_batches
from ..rerank.reranker import Reranker

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel
    from torch import Tensor
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class CurrentReranker(Reranker):
    """Reranker with the current weights of a model.

    Args:
        network: The model.
        inputs: Function from pairs of texts to inputs.
        lengths: Function from all inputs to their numbers of tokens.
        logits: Function from the inputs of a batch to scores.
    """

    network: BaseModel | PreTrainedModel = field(repr=False)
    inputs: Callable[[Sequence[tuple[str, str]]], Sequence[Any]] = field(repr=False)
    lengths: Callable[[Any], list[int]] = field(repr=False)
    logits: Callable[[list[Any]], Tensor] = field(repr=False)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        inputs = self.inputs(pairs)

        def work(batch: Indices) -> Float32s:
            scores: Float32s = self.logits([inputs[n] for n in batch.tolist()]).cpu().numpy()
            return scores

        tokens = batch_tokens(None, self.network.device.type)
        return np.asarray(in_batches(self.lengths(inputs), tokens, work, unit="pairs"), np.float32)

    def measured(self, run: Run, qrels: Qrels, measure: Measure) -> Callable[[], float]:
        """Return a function that reranks a run with the current model and measures it."""
        return lambda: float(evaluate(self(run), qrels, measure)[measure])

    @property
    def fingerprint(self) -> str:
        return "in training"
