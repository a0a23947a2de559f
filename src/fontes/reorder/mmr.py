"""`MaximalMarginalRelevance`: relevant documents that differ from one another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.builtin import provided
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
"""Returns the similarities of all documents of a topic to the document of a row of the topic."""


@dataclass(frozen=True)
class MaximalMarginalRelevance(Reordering, name="mmr"):
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
            except ParameterError:  # the index has no vectors of the encoder
                provided("encode")(self.index, encoder, progress=progress)

    def key(self) -> str | None:
        """Return the cache key of the class, parameters and compared vectors: see `Stage.key`."""
        key = super().key()
        if key is None or self.encoder is None:
            return key
        return f"{key} {self.index.embeddings(self.params()['encoder']).meta['digest']}"

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        self.check()
        relevance, docs = min_max(run, run.scores), self.ordinals(run)
        scores = np.full(run.rows, np.nan, dtype=np.float32)
        for start, end in pairwise(run.bounds.tolist()):
            if start < end:
                rows, values, _ = self._choose(run, relevance, docs, start, end)
                scores[start + rows] = values
        chosen = ~np.isnan(scores)
        return run.keep(chosen).with_scores(scores[chosen])

    def explained(self, run: Run, row: int) -> Explanation:
        relevance, docs = min_max(run, run.scores), self.ordinals(run)
        rows, values, nearest_rows = self._choose(run, relevance, docs, 0, run.rows)
        steps = np.flatnonzero(rows == row)
        if not len(steps):
            return Explanation(0.0, f"not among the {len(rows)} documents that {self!r} chooses")
        step = int(steps[0])
        label = (
            f"{self.lambda_:g} · relevance: {relevance[row]:g} of {run.scores[row]:g}, from 0 to 1 over {run.rows} documents"
        )
        parts = [score_before(run, row), Explanation(float(self.lambda_ * relevance[row]), label)]
        nearest_row = int(nearest_rows[step])
        if nearest_row >= 0:
            doc_id, similarity = run.ids[int(run.codes[nearest_row])], float(self._similarity(docs)(row)[nearest_row])
            label = f"-{1 - self.lambda_:g} · similarity {similarity:g} to '{doc_id}', the nearest of those chosen before"
            parts.append(Explanation(-(1 - self.lambda_) * similarity, label))
        return Explanation(float(values[step]), f"{self!r}: choice {step + 1}", tuple(parts))

    def _choose(
        self, run: Run, relevance: NDArray[np.float64], docs: NDArray[np.integer[Any]], start: int, end: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Choose documents of the topic whose rows are `start` to `end`.

        Returns:
            Rows of the chosen documents, counted from `start`, in the order of choice; their marginal relevance; and for each,
                the row of the most similar document chosen before, -1 if none is similar.
        """
        size, steps = end - start, min(self.k, end - start)
        similarities_to = self._similarity(docs[start:end])
        id_ranks = run.ids.rank[run.codes[start:end]].astype(np.int64)
        weighted_relevance = self.lambda_ * relevance[start:end]
        # Greatest similarity of each row to a chosen row, and that chosen row.
        greatest, nearest = np.zeros(size), np.full(size, -1, dtype=np.int64)
        remaining = np.ones(size, dtype=bool)
        rows, nearest_rows = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
        values = np.zeros(steps, dtype=np.float32)
        for step in range(steps):
            # In float32, like the scores of runs: values never rise from step to step, so the order of choice is ranking order.
            marginal = (weighted_relevance - (1 - self.lambda_) * greatest).astype(np.float32)
            best = np.flatnonzero(remaining & (marginal == marginal[remaining].max()))
            row = int(best[np.argmax(id_ranks[best])])
            rows[step], values[step], nearest_rows[step] = row, marginal[row], nearest[row]
            remaining[row] = False
            similarities = similarities_to(row)
            closer = similarities > greatest
            greatest[closer], nearest[closer] = similarities[closer], row
        return rows, values, nearest_rows

    def _similarity(self, docs: NDArray[np.integer[Any]]) -> Similarity:
        encoder = self.params()["encoder"]
        return self._term_similarity(docs) if encoder is None else self._vector_similarity(docs, encoder)

    def _vector_similarity(self, docs: NDArray[np.integer[Any]], encoder: Any) -> Similarity:
        embeddings = self.index.embeddings(encoder)
        if embeddings.single:
            vectors = embeddings.decoded(docs.astype(np.int64)).astype(np.float64)
        else:
            doc_rows = [np.arange(*embeddings.rows(doc, doc + 1)) for doc in docs.tolist()]
            vectors = np.array([embeddings.decoded(rows).astype(np.float64).mean(axis=0) for rows in doc_rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1.0)
        return lambda row: np.asarray(vectors @ vectors[row])

    def _term_similarity(self, docs: NDArray[np.integer[Any]]) -> Similarity:
        vectors = TermVectors.of(self.index.state).matrix(docs)
        dense_row = np.zeros(vectors.shape[1])  # zero between calls

        def similarities_to(row: int) -> NDArray[np.float64]:
            entries = slice(vectors.indptr[row], vectors.indptr[row + 1])
            dense_row[vectors.indices[entries]] = vectors.data[entries]
            similarities: NDArray[np.float64] = vectors @ dense_row
            dense_row[vectors.indices[entries]] = 0.0
            return similarities

        return similarities_to
