"""DSPy: a stage as a module that retrieves passages, and as its retrieval model. Needs `fontes[dspy]`."""

from __future__ import annotations

from typing import Any

from ..core import MissingExtraError
from .searching import Search, metadata_of

try:
    import dspy
    from dspy.dsp.utils.utils import dotdict
except ImportError:
    raise MissingExtraError.of("dspy", "dspy", "FontesRetriever of DSPy") from None


class FontesRetriever(dspy.Module):
    """A module of DSPy over a stage or an index: `FontesRetriever(index.bm25(), k=3)("hot springs").passages`.

    A prediction has lists of one length, best first: `passages` (texts, after the title if there is one), `ids`, `scores` and
    `metadata`. `acall` searches in a thread. `dspy.configure(rm=retriever.rm)` makes it the retrieval model of `dspy.Retrieve`.

    Args:
        stage: From topics to a run; an index stands for its BM25.
        k: Number of passages.
        where: Filter of metadata, such as `year >= 2020`.
    """

    def __init__(self, stage: Any, k: int = 3, where: str | None = None) -> None:
        super().__init__()
        self._search = Search.of(stage)
        self.k, self.where = k, where

    def forward(self, query: str, k: int | None = None, where: str | None = None) -> dspy.Prediction:
        """Search; `k` and `where` are for this call."""
        return _prediction(self._search(query, self.k if k is None else k, self.where if where is None else where))

    async def aforward(self, query: str, k: int | None = None, where: str | None = None) -> dspy.Prediction:
        """Search in a thread; takes and returns what `forward` does."""
        hits = await self._search.later(query, self.k if k is None else k, self.where if where is None else where)
        return _prediction(hits)

    def rm(self, query: str, k: int | None = None, **options: Any) -> list[Any]:
        """Search for `dspy.Retrieve`: passages with `long_text`, `id` and `score`."""
        answer = self.forward(query, k, **options)
        rows = zip(answer.passages, answer.ids, answer.scores, strict=True)
        return [dotdict({"long_text": text, "id": doc_id, "score": score}) for text, doc_id, score in rows]


def _prediction(hits: Any) -> dspy.Prediction:
    return dspy.Prediction(
        passages=[f"{doc.title} | {doc.text}" if doc.title else doc.text for _, doc in hits],
        ids=[doc.id for _, doc in hits],
        scores=[hit.score for hit, _ in hits],
        metadata=[metadata_of(doc) for _, doc in hits],
    )
