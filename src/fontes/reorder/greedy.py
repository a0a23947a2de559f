"""`GreedyChoice`: base class of stages that choose documents one after the other, each by its similarity to those before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ..core.arrays import Float32s, Float64s, Ints
from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.registry import provided
from ..core.run import Run
from ..core.values import Explanation
from ..rerank.reranker import min_max
from .candidates import Reordering, score_before
from .term_vectors import TermVectors

Similarity = Callable[[int], Float64s]
"""Returns the similarities of all documents of a topic to the document of a row of the topic."""


class GreedyChoice(Reordering):
    """Base class of stages that choose documents one after the other.

    Attributes:
        encoder: Encoder whose stored vectors are compared, or their mean if a document has several; None: term vectors.
        k: Maximum documents per topic.
    """

    depth_field: ClassVar[str] = "k"
    encoder: Any
    k: int

    @abstractmethod
    def value(self, relevance: Float64s, chosen: list[int], pull: Float64s) -> Float64s:
        """Return the value of each document of a topic at the next step.

        Args:
            relevance: Relevance of each document, 0 to 1.
            chosen: Rows chosen before.
            pull: What their similarities come to, by `pulled`; first zeros.
        """

    @abstractmethod
    def pulled(self, pull: Float64s, relevance: float, similarities: Float64s) -> Float64s:
        """Return `pull` after a document of some relevance is chosen, to which all documents have these similarities."""

    @abstractmethod
    def accounted(
        self, relevance: Float64s, chosen: list[int], row: int, similarities: Float64s
    ) -> list[tuple[float, str, int]]:
        """Return the value of a row after the rows chosen before as parts: value, label, and the row it is due to or -1."""

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, with the encoder of named vectors in place of their name."""
        params = super().params()
        return (
            params if self.encoder is None else {**params, "encoder": provided("named_encoder")(self.index, params["encoder"])}
        )

    def check(self) -> None:
        check_whole("k", self.k)
        if self.encoder is None and not self.index.has_texts:
            raise ParameterError(
                f"{self.name}: {self.index.path} holds no texts to compare; give an encoder whose vectors it has"
            )

    def prepare(self) -> None:
        """Encode the documents if the index has no vectors of the encoder."""
        if (encoder := self.params()["encoder"]) is not None:
            try:
                self.index.embeddings(encoder)
            except ParameterError:  # the index has no vectors of the encoder
                provided("encode")(self.index, encoder)

    def key(self) -> str | None:
        """Return the cache key of the class, parameters and compared vectors: see `Stage.key`."""
        key = super().key()
        if key is None or self.encoder is None:
            return key
        return f"{key} {self.index.embeddings(self.params()['encoder']).meta['digest']}"

    def apply(self, run: Run, /) -> Run:
        self.check()
        relevance, docs = min_max(run, run.scores), self.ordinals(run)
        scores = np.full(run.rows, np.nan, dtype=np.float32)
        for start, end in pairwise(run.bounds.tolist()):
            if start < end:
                rows, values = self._choose(run, relevance, docs, start, end)
                scores[start + np.array(rows)] = values
        chosen = ~np.isnan(scores)
        return run.keep(chosen).with_scores(scores[chosen])

    def explained(self, run: Run, row: int) -> Explanation:
        relevance, docs = min_max(run, run.scores), self.ordinals(run)
        rows, values = self._choose(run, relevance, docs, 0, run.rows)
        if row not in rows:
            return Explanation(0.0, f"not among the {len(rows)} documents that {self!r} chooses")
        step = rows.index(row)
        parts = [score_before(run, row)]
        for part, label, other in self.accounted(relevance, rows[:step], row, self._similarity(docs)(row)):
            parts.append(Explanation(part, label.format(run.ids[int(run.codes[other])])))
        return Explanation(float(values[step]), f"{self!r}: choice {step + 1}", tuple(parts))

    def _choose(self, run: Run, relevance: Float64s, docs: Ints, start: int, end: int) -> tuple[list[int], Float32s]:
        """Choose documents of the topic whose rows are `start` to `end`.

        Returns:
            Rows of the chosen documents, counted from `start`, in the order of choice; and their values, which fall.
        """
        similarities_to, relevance = self._similarity(docs[start:end]), relevance[start:end]
        id_ranks = run.ids.rank[run.codes[start:end]].astype(np.int64)
        pull, remaining, chosen = np.zeros(end - start), np.ones(end - start, dtype=bool), list[int]()
        values = np.full(min(self.k, end - start), np.inf, dtype=np.float32)
        for step in range(len(values)):
            # In float32, like the scores of runs.
            value = self.value(relevance, chosen, pull).astype(np.float32)
            best = np.flatnonzero(remaining & (value == value[remaining].max()))
            row = int(best[np.argmax(id_ranks[best])])
            values[step] = value[row]
            if step and (value[row], id_ranks[row]) > (values[step - 1], id_ranks[chosen[-1]]):
                values[step] = np.nextafter(values[step - 1], np.float32(-np.inf))
            remaining[row] = False
            chosen.append(row)
            pull = self.pulled(pull, float(relevance[row]), similarities_to(row))
        return chosen, values

    def _similarity(self, docs: Ints) -> Similarity:
        encoder = self.params()["encoder"]
        return self._term_similarity(docs) if encoder is None else self._vector_similarity(docs, encoder)

    def _vector_similarity(self, docs: Ints, encoder: Any) -> Similarity:
        embeddings = self.index.embeddings(encoder)
        if embeddings.single:
            vectors = embeddings.decoded(docs.astype(np.int64)).astype(np.float64)
        else:
            doc_rows = [np.arange(*embeddings.rows(doc, doc + 1)) for doc in docs.tolist()]
            vectors = np.array([embeddings.decoded(rows).astype(np.float64).mean(axis=0) for rows in doc_rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1.0)
        return lambda row: np.maximum(vectors @ vectors[row], 0.0)

    def _term_similarity(self, docs: Ints) -> Similarity:
        vectors = TermVectors.of(self.index.state).matrix(docs)
        dense_row = np.zeros(vectors.shape[1])  # zero between calls

        def similarities_to(row: int) -> Float64s:
            entries = slice(vectors.indptr[row], vectors.indptr[row + 1])
            dense_row[vectors.indices[entries]] = vectors.data[entries]
            similarities: Float64s = vectors @ dense_row
            dense_row[vectors.indices[entries]] = 0.0
            return similarities

        return similarities_to


def check_weight(stage: str, name: str, weight: object, greatest: float) -> None:
    """Raise ParameterError unless a weight is a number from 0 to `greatest`."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= greatest:
        raise ParameterError(f"{stage}: {name} is a number from 0 to {greatest:g}, not {weight!r}")
