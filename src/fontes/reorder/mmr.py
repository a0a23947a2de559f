"""`MaximalMarginalRelevance`: relevant documents that differ from each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.progress import ProgressCallback
from ..core.run import Run
from ..core.values import Explanation
from ..passages.reranker import min_max
from .candidates import Reordering, score_before
from .term_vectors import TermVectors

if TYPE_CHECKING:
    from ..index import Index

Similarity = Callable[[int], NDArray[np.float64]]
"""The similarities of all documents of a topic to one of them."""


@dataclass(frozen=True)
class MaximalMarginalRelevance(Reordering, name="mmr"):
    """Chooses relevant documents that differ from those chosen before: `bm25() % 100 >> mmr(lambda_=0.5) % 10`.

    The next document is always the one with the greatest marginal relevance, which is its new score:

        lambda_ · relevance - (1 - lambda_) · greatest similarity to a document chosen before

    Relevance is the score, scaled to 0 to 1 over the topic's documents by (score - least) / (best - least). Similarity is the
    cosine of the documents' vectors by `encoder`, or of their terms, with the weights (1 + ln tf) · ln(N / df); one below 0
    counts as 0.

    (Carbonell and Goldstein, SIGIR 1998.)

    Args:
        index: The index that holds the documents.
        lambda_: From 0, the least similar documents, to 1, the order of the scores.
        encoder: Stored vectors to compare by, the mean where a document has several; a string is the model of a
            `SentenceEncoder`. None: terms of the stored text.
        k: Maximum documents per topic; each takes a pass over them.

    Raises:
        ParameterError: A parameter is outside its range, the index holds no vectors of the encoder, or without one no texts.
        InputError: When called: a document is not in the index, or a score is infinite.
    """

    depth_field = "k"

    index: Index = field(repr=False)
    lambda_: float = tuned(0.5, (0.1, 0.9, 0.1), (0.0, 1.0))
    encoder: Any = field(default=None, metadata={"string": "sentence_encoder"})
    k: int = 1000

    def check(self) -> None:
        number = isinstance(self.lambda_, int | float) and not isinstance(self.lambda_, bool)
        if not number or not 0 <= self.lambda_ <= 1:
            raise ParameterError(f"mmr: lambda_ is a number from 0 to 1, not {self.lambda_!r}")
        check_whole("k", self.k)
        if self.encoder is None and not self.index.has_texts:
            raise ParameterError(f"mmr: {self.index.path} holds no texts to compare; give an encoder whose vectors it has")

    def prepare(self, progress: ProgressCallback) -> None:
        """Encode the documents if the index has no vectors of the encoder."""
        if (encoder := self.params()["encoder"]) is not None:
            try:
                self.index.embeddings(encoder)
            except ParameterError:  # there are none
                self.index.encode(encoder, progress=progress)

    def key(self) -> str | None:
        """Identity of this stage, with the vectors that it compares."""
        inherited = super().key()
        if inherited is None or self.encoder is None:
            return inherited
        return f"{inherited} {self.index.embeddings(self.params()['encoder']).meta['digest']}"

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        self.check()
        relevance, docs = min_max(run, run.scores), self.ordinals(run)
        scores = np.full(run.rows, np.nan, dtype=np.float32)
        for first, last in zip(run.bounds[:-1].tolist(), run.bounds[1:].tolist(), strict=True):
            rows, values, _ = self._chosen(run, relevance, docs, first, last)
            scores[first + rows] = values
        chosen = ~np.isnan(scores)
        return run.keep(chosen).with_scores(scores[chosen])

    def explained(self, run: Run, row: int) -> Explanation:
        relevance = min_max(run, run.scores)
        rows, values, nearest = self._chosen(run, relevance, self.ordinals(run), 0, run.rows)
        places = np.flatnonzero(rows == row)
        if not len(places):
            return Explanation(0.0, f"not among the {len(rows)} documents that {self!r} chooses")
        place = int(places[0])
        relevant = float(self.lambda_ * relevance[row])
        label = (
            f"{self.lambda_:g} · relevance: {relevance[row]:g} of {run.scores[row]:g}, from 0 to 1 over {run.rows} documents"
        )
        parts = [score_before(run, row), Explanation(relevant, label)]
        if nearest[place] >= 0:
            doc_id, similarity = run.ids[int(run.codes[nearest[place]])], self._similarity(run, self.ordinals(run))(row)
            near = float(similarity[nearest[place]])
            label = f"-{1 - self.lambda_:g} · similarity {near:g} to '{doc_id}', the nearest of those chosen before"
            parts.append(Explanation(-(1 - self.lambda_) * near, label))
        return Explanation(float(values[place]), f"{self!r}: choice {place + 1}", tuple(parts))

    def _chosen(
        self, run: Run, relevance: NDArray[np.float64], docs: NDArray[np.integer[Any]], first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Choose documents of one topic.

        Returns:
            Their rows from `first` on, in the order of choice; their scores; and the row of the most similar one before, or -1.
        """
        size, steps = last - first, min(self.k, last - first)
        similar = self._similarity(run, docs[first:last]) if steps else None
        ids = run.ids.rank[run.codes[first:last]].astype(np.int64)
        relevant = self.lambda_ * relevance[first:last]
        greatest, nearest = np.zeros(size), np.full(size, -1, dtype=np.int64)
        left = np.ones(size, dtype=bool)
        rows, before = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
        values = np.zeros(steps, dtype=np.float32)
        for step in range(steps):
            # In float32, as runs have them: values only fall as more is chosen, so that choices are in the one order.
            marginal = (relevant - (1 - self.lambda_) * greatest).astype(np.float32)
            best = np.flatnonzero(left & (marginal == marginal[left].max()))
            row = int(best[np.argmax(ids[best])])
            rows[step], values[step], before[step], left[row] = row, marginal[row], nearest[row], False
            assert similar is not None
            similarities = similar(row)
            closer = similarities > greatest
            greatest[closer], nearest[closer] = similarities[closer], row
        return rows, values, before

    def _similarity(self, run: Run, docs: NDArray[np.integer[Any]]) -> Similarity:
        encoder = self.params()["encoder"]
        return self._of_terms(docs) if encoder is None else self._of_vectors(docs, encoder)

    def _of_vectors(self, docs: NDArray[np.integer[Any]], encoder: Any) -> Similarity:
        embeddings = self.index.embeddings(encoder)
        if embeddings.single:
            vectors = embeddings.decoded(docs.astype(np.int64)).astype(np.float64)
        else:
            rows = [np.arange(*embeddings.rows(doc, doc + 1)) for doc in docs.tolist()]
            vectors = np.array([embeddings.decoded(document_rows).astype(np.float64).mean(axis=0) for document_rows in rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1.0)
        return lambda row: np.asarray(vectors @ vectors[row])

    def _of_terms(self, docs: NDArray[np.integer[Any]]) -> Similarity:
        vectors = TermVectors.of(self.index.state).matrix(docs)
        one = np.zeros(vectors.shape[1])

        def similar(row: int) -> NDArray[np.float64]:
            entries = slice(vectors.indptr[row], vectors.indptr[row + 1])
            one[vectors.indices[entries]] = vectors.data[entries]
            similarities: NDArray[np.float64] = vectors @ one
            one[vectors.indices[entries]] = 0.0
            return similarities

        return similar
