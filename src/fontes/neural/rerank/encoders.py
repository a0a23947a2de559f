"""Rerankers that encode topic and document separately: by the inner product of vectors, or by late interaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.arrays import Float32s, Indices, Int64s, Ints
from ...core.errors import ParameterError, PipelineError
from ...core.run import Run
from ...core.values import Doc, Explanation, Topic
from ...core.work import Progress, reporter, unreported
from ...index import Index, State
from ...rerank.reranker import Reranker
from ..encoders.base import Encoder, document_vectors, encoder_in
from ..late.colbert import ColBERT, colbert_in
from ..late.late import explained
from ..late.maxsim import maxsim
from ..late.store import JoinedTokens, stored_tokens


@dataclass(frozen=True)
class EncoderReranker(Reranker, name="encoder_reranker"):
    """Scores the documents of a run by an encoder, which reads their text: `bm25() >> encoder_reranker("MODEL")`.

    The score is the inner product of the topic's and the document's vector, or the greatest product for a document with several
    vectors, such as windows. Unlike `dense`, it needs no stored vectors and also scores passages and sentences of a run.

    Args:
        encoder: Encodes topics and documents; a string is the model of a `SentenceEncoder`.
        cache: True keeps scores on disk, in the user's cache folder; a path keeps them in that file.

    Raises:
        InputError: When called: the run has no documents, or a topic has no text.
    """

    encoder: Encoder | str = field(metadata={"string": "sentence_encoder"})

    @property
    def fingerprint(self) -> str:
        return f"encoder {encoder_in(self).fingerprint}"

    @property
    def chosen_precision(self) -> str:
        return str(getattr(encoder_in(self), "precision", "float32"))

    def key(self) -> str | None:
        return f"{super().key()} {self.chosen_precision}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        encoder = encoder_in(self)
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        queries = {query: i for i, query in enumerate(dict.fromkeys(query for query, _ in pairs))}
        texts = {text: i for i, text in enumerate(dict.fromkeys(text for _, text in pairs))}
        query_vectors = encoder.encode_queries(list(queries))
        vectors, bounds = document_vectors(encoder, [Doc("", text) for text in texts])
        # One row per pair and vector of its document.
        documents = np.array([texts[text] for _, text in pairs])
        counts = np.diff(bounds)[documents]
        starts = np.cumsum(counts) - counts
        rows = np.repeat(bounds[documents] - starts, counts) + np.arange(counts.sum())
        query_rows = np.repeat(np.array([queries[query] for query, _ in pairs]), counts)
        products = np.einsum("ij,ij->i", query_vectors[query_rows], vectors[rows])
        scores: Float32s = np.maximum.reduceat(products, starts).astype(np.float32)
        return scores


DOCUMENTS = 1024  # documents whose token vectors are in memory at a time

Vectors = Callable[[Indices], tuple[Float32s, Int64s]]
"""Function from indices of documents to their concatenated token vectors and the bounds of each document."""


@dataclass(frozen=True)
class LateReranker(Reranker, name="late_reranker"):
    """Scores the documents of a run by late interaction: `bm25() % 100 >> late_reranker("MODEL")`.

    The score is the sum, over the tokens of the topic's text, of the greatest similarity of one of the document's tokens
    (Khattab and Zaharia, SIGIR 2020). Its absolute value is at most the number of the query's tokens. Encoding in batches
    changes it by rounding only.

    Args:
        colbert: The model; a string is a checkpoint of `ColBERT`.
        nbits: None: stored token vectors with most bits, else texts are encoded. 0: encode texts. 1, 2, 4, 16, 32: these
            stored vectors only.
        cache: As in `Reranker`, for scores of encoded texts.

    Raises:
        InputError: When called: the run has no documents, or a topic has no text.
    """

    colbert: ColBERT | str = field(metadata={"string": "colbert"})
    nbits: int | None = None

    @property
    def _colbert(self) -> ColBERT:
        return colbert_in(self)

    @property
    def fingerprint(self) -> str:
        return f"late {self._colbert.fingerprint} {self.nbits}"

    @property
    def chosen_precision(self) -> str:
        return self._colbert.chosen_precision

    def key(self) -> str | None:
        """None if the scores depend on token vectors stored with the run's index."""
        return None if self.nbits is None else f"{super().key()} {self._colbert.precision}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        texts = list(dict.fromkeys(text for _, text in pairs))
        indices = {text: i for i, text in enumerate(texts)}
        docs = np.array([indices[text] for _, text in pairs], dtype=np.int64)

        @unreported
        def vectors(group: Indices) -> tuple[Float32s, Int64s]:
            return self._colbert.encode_documents([Doc("", texts[i]) for i in group.tolist()])

        return self._scores([query for query, _ in pairs], docs, vectors)

    def rescored(self, run: Run) -> tuple[Float32s, dict[str, Any]]:
        store = self._store(run)
        if store is None or any(not topic.text.strip() for topic in run.topics.values()):
            return super().rescored(run)
        codes, docs = np.unique(run.codes, return_inverse=True)
        index: Any = run.documents
        ordinals = np.array([index.ordinal(doc_id) for doc_id in run.ids.take(codes)], dtype=np.int64)
        texts = np.array([topic.text for topic in run.topics.values()], dtype=object)
        scores = self._scores(texts[run.topic_numbers].tolist(), docs, lambda group: store.vectors(ordinals[group]))
        facts = {"fingerprint": self.fingerprint, "pairs": run.rows, "from_cache": 0, "nbits": store.nbits}
        return scores, {**facts, "vectors": store.meta["digest"]}

    def explain(self, query: str | Topic, doc_id: str | Doc) -> Explanation:
        """Explain a document's score by the tokens of the query; needs the document, as from `index.doc(id)`."""
        if not isinstance(doc_id, Doc):
            raise PipelineError(
                f"LateReranker explains the score of a document, not of the id {doc_id!r}: pass index.doc({doc_id!r})"
            )
        vectors, _ = self._colbert.encode_documents([doc_id])
        return explained(self._colbert, query.text if isinstance(query, Topic) else query, doc_id, vectors)

    def _store(self, run: Run) -> JoinedTokens | None:
        """Token vectors stored with the index of the run's documents; None to encode texts, as `nbits` allows."""
        if self.nbits == 0:
            return None
        if not isinstance(run.documents, Index | State):
            if self.nbits is not None:
                raise ParameterError(f"nbits={self.nbits}: the run's documents belong to no index with token vectors")
            return None
        try:
            return stored_tokens(run.documents, self._colbert, self.nbits)
        except ParameterError:
            if self.nbits is not None:
                raise
            return None

    def _scores(self, texts: list[str], docs: Ints, vectors: Vectors) -> Float32s:
        """Score of each pair of a text and a document of `docs`; the vectors of a document are computed once."""
        report = reporter()
        unique = list(dict.fromkeys(texts))
        queries = dict(zip(unique, self._colbert.encode_queries(unique), strict=True))
        scores, start, done = np.empty(len(texts), dtype=np.float32), time.perf_counter(), 0
        for group, pairs in _groups(docs):
            rows, bounds = vectors(group)
            for pair, i in zip(pairs.tolist(), np.searchsorted(group, docs[pairs]).tolist(), strict=True):
                first, last = int(bounds[i]), int(bounds[i + 1])
                scores[pair] = maxsim(queries[texts[pair]], rows[first:last], np.array([0, last - first]))[0]
            done += len(pairs)
            report(Progress("reranking", done, len(texts), time.perf_counter() - start, "pairs"))
        return scores


def _groups(docs: Ints) -> Iterator[tuple[Indices, Indices]]:
    """Groups of DOCUMENTS documents, ascending, and the indices in `docs` of each group."""
    unique = np.unique(docs)
    order = np.argsort(docs, kind="stable")
    ends = np.searchsorted(docs[order], unique, side="right")
    for start in range(0, len(unique), DOCUMENTS):
        group = unique[start : start + DOCUMENTS]
        yield group.astype(np.intp), order[ends[start - 1] if start else 0 : ends[start + len(group) - 1]]
