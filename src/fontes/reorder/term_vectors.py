"""Term vectors of documents: tf-idf weights from their stored texts, cached in memory."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Float64s, Int64s, Ints
from ..index.batches import content, field_contents
from ..storage.caches import LazyAttribute, weak_proxy

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..index.state import State

MAX_BYTES = 1 << 26  # maximum size of the vectors and the vocabulary cached for a state


class TermVectors:
    """Unit vectors of documents, with the weights (1 + ln tf) · ln(N / df); thread-safe.

    Vectors are cached; all are dropped when they and the vocabulary take more than MAX_BYTES.

    Args:
        index: The state of an index that stores the documents' texts.
    """

    def __init__(self, index: State) -> None:
        self._index, self._lock = index, threading.Lock()
        self._clear()

    @staticmethod
    def of(index: State) -> TermVectors:
        """Return the cached vectors of a state."""
        return _VECTORS.of(index)

    def matrix(self, docs: Ints) -> csr_array:
        """Return the vectors of documents, given by ordinal, as float64 rows with a column for each term of these documents."""
        from scipy.sparse import csr_array

        with self._lock:
            if self._nbytes + self._vocabulary.nbytes > MAX_BYTES:
                self._clear()
            if new := [doc for doc in dict.fromkeys(docs.tolist()) if doc not in self._vectors]:
                self._add(new)
            vectors = [self._vectors[doc] for doc in docs.tolist()]
        terms, columns = np.unique(np.concatenate([numbers for numbers, _ in vectors]), return_inverse=True)
        bounds = np.cumsum([0, *(len(numbers) for numbers, _ in vectors)])
        return csr_array((np.concatenate([weights for _, weights in vectors]), columns, bounds), shape=(len(docs), len(terms)))

    def _clear(self) -> None:
        self._vocabulary = self._index.analyzer.vocabulary()
        self._idf = np.zeros(0)  # of the terms of the vocabulary; -1 for a term that is not in the index
        self._vectors: dict[int, tuple[Int64s, Float64s]] = {}
        self._nbytes = 0

    def _add(self, docs: list[int]) -> None:
        """Compute and cache the vectors of documents that are not cached."""
        index = self._index
        contents = index.documents(index.ids.take(np.array(docs)), docs)
        if index.settings.apart:
            texts_per_doc = len(index.fields)
            texts = [text for doc in contents for text in field_contents(doc, index.fields)]
        else:
            texts_per_doc = 1
            texts = [content(doc, index.fields) for doc in contents]
        numbers, bounds = self._vocabulary.encode(texts)
        df = np.array([index.df_of(term) for term in self._vocabulary.terms[len(self._idf) :]], dtype=np.float64)
        idf = np.where(df > 0, np.log(len(index) / np.maximum(df, 1)), -1.0)
        self._idf = np.concatenate([self._idf, idf])
        rows = np.repeat(np.arange(len(docs), dtype=np.int64), np.diff(bounds[::texts_per_doc]))
        keys, tf = np.unique(rows << 32 | numbers, return_counts=True)
        rows, terms = keys >> 32, keys & 0xFFFFFFFF
        indexed = self._idf[terms] >= 0
        rows, terms, weights = rows[indexed], terms[indexed], ((1 + np.log(tf)) * self._idf[terms])[indexed]
        lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(docs)))
        weights /= np.where(lengths > 0, lengths, 1.0)[rows]
        doc_bounds = np.searchsorted(rows, np.arange(len(docs) + 1)).tolist()
        for doc, (start, end) in zip(docs, pairwise(doc_bounds), strict=True):
            self._vectors[doc] = terms[start:end].copy(), weights[start:end].copy()
        self._nbytes += terms.nbytes + weights.nbytes


_VECTORS: LazyAttribute[State, TermVectors] = LazyAttribute("term_vectors", lambda index: TermVectors(weak_proxy(index)))
