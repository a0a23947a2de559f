"""`Companions`: documents that belong together, such as those that are evidence for a claim only as a set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.arrays import Float64s
from ..core.parameters import tuned
from .greedy import GreedyChoice, check_weight

if TYPE_CHECKING:
    from ..index import Index

GREATEST = 100.0  # weight


@dataclass(frozen=True)
class Companions(GreedyChoice, name="companions"):
    """Chooses documents that belong together: `bm25() % 50 >> companions(weight=1)`.

    The evidence for a claim may be a set of documents, each found only with the others: the second one has few words of the
    claim, but many of the first. At each step, the document with the greatest value is chosen; its new score is its value:

        (relevance + weight · sum over chosen documents of their relevance · similarity)
        / (1 + weight · sum over chosen documents of their relevance)

    or, where this is not below the score chosen before, the next smaller number. Relevance and similarity are those of `mmr`,
    whose choice is the opposite: documents that differ. `fontes tune --measure Complete@5` finds the weight with which most
    claims have a whole evidence set among the first documents.

    (The cluster hypothesis: Jardine and van Rijsbergen, 1971; the greedy choice is Carbonell and Goldstein's, SIGIR 1998.)

    Args:
        index: The index that holds the documents.
        weight: Weight of the documents chosen before: 0 keeps the order of the scores.
        encoder: Encoder whose stored vectors are compared, or their mean if a document has several; a string is the model of a
            `SentenceEncoder`. None: terms of the stored text.
        k: Maximum documents per topic; the time per topic grows with `k` times the number of its documents.

    Raises:
        ParameterError: A parameter is outside its range; or the index holds no vectors of the encoder, or no texts if there is
            no encoder.
        InputError: When called: a document is not in the index, or a score is infinite.
    """

    index: Index = field(repr=False)
    weight: float = tuned(1.0, (0.0, 3.0, 0.25), (0.0, GREATEST))
    encoder: object = field(default=None, metadata={"string": "sentence_encoder"})
    k: int = 1000

    def check(self) -> None:
        check_weight("companions", "weight", self.weight, GREATEST)
        super().check()

    def value(self, relevance: Float64s, chosen: list[int], pull: Float64s) -> Float64s:
        return (relevance + self.weight * pull) / self._total(relevance, chosen)

    def pulled(self, pull: Float64s, relevance: float, similarities: Float64s) -> Float64s:
        return pull + relevance * similarities

    def accounted(
        self, relevance: Float64s, chosen: list[int], row: int, similarities: Float64s
    ) -> list[tuple[float, str, int]]:
        total = self._total(relevance, chosen)
        label = f"relevance {relevance[row]:g}, from 0 to 1 over {len(relevance)} documents, / {total:g}"
        parts = [(float(relevance[row]) / total, label, -1)]
        for other in chosen:
            if similarities[other] > 0 and self.weight:
                value = float(self.weight * relevance[other] * similarities[other]) / total
                factors = f"{self.weight:g} · relevance {relevance[other]:g} · similarity {similarities[other]:g}"
                parts.append((value, f"{factors} of '{{}}', chosen before, / {total:g}", other))
        return parts

    def _total(self, relevance: Float64s, chosen: list[int]) -> float:
        return 1 + self.weight * float(relevance[chosen].sum())
