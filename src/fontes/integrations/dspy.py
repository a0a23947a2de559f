"""DSPy: a stage as a module that retrieves passages, or as DSPy's retrieval model. Needs `fontes[dspy]`."""

from __future__ import annotations

from typing import Any

from ..core import Doc, Hit, MissingExtraError
from .searching import IndexSearch, metadata_of

try:
    import dspy
    from dspy.dsp.utils.utils import dotdict
except ImportError:
    raise MissingExtraError.of("dspy", "dspy", "FontesRetriever of DSPy") from None


class FontesRetriever(dspy.Module):
    """A module of DSPy over a stage or an index: `FontesRetriever(index.bm25(), k=3)("hot springs").passages`.

    A prediction has lists of equal length, best document first: `passages` (the title, if there is one, and the text), `ids`,
    `scores` and `metadata`. `acall` searches in a thread. `dspy.configure(rm=retriever.rm)` makes the retriever the retrieval
    model of `dspy.Retrieve`.

    Args:
        stage: A stage from topics to a run; an index stands for its BM25.
        k: Number of passages.
        where: Filter of metadata, such as `year >= 2020`.
    """

    def __init__(self, stage: object, k: int = 3, where: str | None = None) -> None:
        super().__init__()
        self._search = IndexSearch.of(stage)
        self.k, self.where = k, where

    def forward(self, query: str, k: int | None = None, where: str | None = None) -> dspy.Prediction:
        """Search; `k` and `where` replace the retriever's own in this call."""
        return _prediction(self._search(query, *self._options(k, where)))

    async def aforward(self, query: str, k: int | None = None, where: str | None = None) -> dspy.Prediction:
        """Search in a thread; arguments and result are those of `forward`."""
        return _prediction(await self._search.later(query, *self._options(k, where)))

    def rm(self, query: str, k: int | None = None, **options: Any) -> list[Any]:
        """Search for `dspy.Retrieve`: return passages with `long_text`, `id` and `score`."""
        prediction = self.forward(query, k, **options)
        rows = zip(prediction.passages, prediction.ids, prediction.scores, strict=True)
        return [dotdict({"long_text": passage, "id": doc_id, "score": score}) for passage, doc_id, score in rows]

    def _options(self, k: int | None, where: str | None) -> tuple[int, str | None]:
        """Return `k` and `where` of a call; None stands for the retriever's own."""
        return self.k if k is None else k, self.where if where is None else where


def _prediction(hits: list[tuple[Hit, Doc]]) -> dspy.Prediction:
    return dspy.Prediction(
        passages=[f"{doc.title} | {doc.text}" if doc.title else doc.text for _, doc in hits],
        ids=[doc.id for _, doc in hits],
        scores=[hit.score for hit, _ in hits],
        metadata=[metadata_of(doc) for _, doc in hits],
    )
