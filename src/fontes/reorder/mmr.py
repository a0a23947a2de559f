"""`MaximalMarginalRelevance`: relevant documents that differ from one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Float64s
from ..core.parameters import tuned
from .greedy import GreedyChoice, check_weight

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class MaximalMarginalRelevance(GreedyChoice, name="mmr"):
    """Chooses relevant documents that differ from those chosen before: `bm25() % 100 >> mmr(lambda_=0.5) % 10`.

    At each step, the document with the greatest marginal relevance is chosen; its new score is its marginal relevance:

        lambda_ · relevance - (1 - lambda_) · greatest similarity to a document chosen before

    Relevance is the score, scaled to 0 to 1 over the topic's documents by (score - min) / (max - min). Similarity is the cosine
    of the documents' vectors by `encoder`, or of their term vectors, with the weights (1 + ln tf) · ln(N / df); a negative
    cosine counts as 0.

    (Carbonell and Goldstein, SIGIR 1998.)

    Args:
        index: The index that holds the documents.
        lambda_: Weight of relevance: 0 chooses the least similar documents, 1 keeps the order of the scores.
        encoder: Encoder whose stored vectors are compared, or their mean if a document has several; a string is the model of a
            `SentenceEncoder`. None: terms of the stored text.
        k: Maximum documents per topic; the time per topic grows with `k` times the number of its documents.

    Raises:
        ParameterError: A parameter is outside its range; or the index holds no vectors of the encoder, or no texts if there is
            no encoder.
        InputError: When called: a document is not in the index, or a score is infinite.
    """

    index: Index = field(repr=False)
    lambda_: float = tuned(0.5, (0.1, 0.9, 0.1), (0.0, 1.0))
    encoder: object = field(default=None, metadata={"string": "sentence_encoder"})
    k: int = 1000

    def check(self) -> None:
        check_weight("mmr", "lambda_", self.lambda_, 1.0)
        super().check()

    def value(self, relevance: Float64s, chosen: list[int], pull: Float64s) -> Float64s:
        return self.lambda_ * relevance - (1 - self.lambda_) * pull

    def pulled(self, pull: Float64s, relevance: float, similarities: Float64s) -> Float64s:
        return np.maximum(pull, similarities)

    def accounted(
        self, relevance: Float64s, chosen: list[int], row: int, similarities: Float64s
    ) -> list[tuple[float, str, int]]:
        label = f"{self.lambda_:g} · relevance {relevance[row]:g}, from 0 to 1 over {len(relevance)} documents"
        parts = [(float(self.lambda_ * relevance[row]), label, -1)]
        nearest = max(chosen, key=lambda other: float(similarities[other]), default=None)
        if nearest is not None and similarities[nearest] > 0:
            similarity = float(similarities[nearest])
            label = f"-{1 - self.lambda_:g} · similarity {similarity:g} to '{{}}', the nearest of those chosen before"
            parts.append((-(1 - self.lambda_) * similarity, label, nearest))
        return parts
