"""Encoders as rerankers: the inner product of a topic's vector with those of texts that no index has to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...core.progress import Report, silent
from ...core.values import Doc
from ..encoders.base import Encoder, document_vectors, encoder_in
from .base import Reranker


@dataclass(frozen=True)
class EncoderReranker(Reranker, name="encoder_reranker"):
    """Scores the documents of a run by an encoder, which reads their text: `bm25 % 100 >> EncoderReranker(encoder)`.

    The score is the inner product of the topic's and the document's vector; of a document with several, such as windows, the
    greatest. It is that of `dense`, for documents whose vectors are not stored, such as passages and sentences of a run.

    Args:
        encoder: Encodes topics and documents; a string is the model of a `SentenceEncoder`.
        cache: As `Reranker` has it.

    Raises:
        InputError: When it is called: the run does not know its documents, or a topic has no text.
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

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report = silent) -> NDArray[np.float32]:
        encoder = encoder_in(self)
        queries = {query: place for place, query in enumerate(dict.fromkeys(query for query, _ in pairs))}
        texts = {text: place for place, text in enumerate(dict.fromkeys(text for _, text in pairs))}
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        of_queries = encoder.encode_queries(list(queries))
        vectors, bounds = document_vectors(encoder, [Doc("", text) for text in texts], progress)
        sizes = np.diff(bounds)
        # A row for each vector of each pair's document.
        documents = np.array([texts[text] for _, text in pairs])
        copies = sizes[documents]
        starts = np.cumsum(copies) - copies
        rows = np.repeat(bounds[documents] - starts, copies) + np.arange(copies.sum())
        owners = np.repeat(np.array([queries[query] for query, _ in pairs]), copies)
        products = np.einsum("ij,ij->i", of_queries[owners], vectors[rows])
        scores: NDArray[np.float32] = np.maximum.reduceat(products, starts).astype(np.float32)
        return scores
