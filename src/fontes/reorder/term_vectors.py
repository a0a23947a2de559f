"""Term vectors of documents: tf-idf weights from their stored texts, kept in memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..index.batches import content, field_contents
from ..storage.caches import Attached, weakly

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..index.state import State

MEMORY = 1 << 26  # bytes of the vectors and words that are kept with a state


class TermVectors:
    """Unit vectors of documents, with the weights (1 + ln tf) · ln(N / df); thread-safe.

    Vectors are kept until they take more than MEMORY.

    Args:
        index: The state of an index, which has the documents' texts.
    """

    def __init__(self, index: State) -> None:
        self._index, self._lock = index, threading.Lock()
        self._forget()

    @staticmethod
    def of(index: State) -> TermVectors:
        """Return the vectors that are kept with a state."""
        return _VECTORS.of(index)

    def matrix(self, docs: NDArray[np.integer[Any]]) -> csr_array:
        """Return the vectors of documents, by ordinal, as float64 rows; a column for each of their terms, in any order."""
        from scipy.sparse import csr_array

        with self._lock:
            if self._nbytes + self._vocabulary.nbytes > MEMORY:
                self._forget()
            if new := [doc for doc in dict.fromkeys(docs.tolist()) if doc not in self._vectors]:
                self._read(new)
            vectors = [self._vectors[doc] for doc in docs.tolist()]
        terms, columns = np.unique(np.concatenate([numbers for numbers, _ in vectors]), return_inverse=True)
        bounds = np.cumsum([0, *(len(numbers) for numbers, _ in vectors)])
        return csr_array((np.concatenate([weights for _, weights in vectors]), columns, bounds), shape=(len(docs), len(terms)))

    def _forget(self) -> None:
        self._vocabulary = self._index.analyzer.vocabulary()
        self._idf = np.zeros(0)  # by number of the vocabulary; -1 for a term that the index has not
        self._vectors: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._nbytes = 0

    def _read(self, docs: list[int]) -> None:
        index = self._index
        read = index.documents(index.ids.take(np.array(docs)), docs)
        apart = len(index.fields) if index.form.apart else 1
        texts = [text for doc in read for text in (field_contents if apart > 1 else _whole)(doc, index.fields)]
        numbers, bounds = self._vocabulary.encode(texts)
        new = [index.term_number(term) for term in self._vocabulary.terms[len(self._idf) :]]
        df = index.df[np.maximum(new, 0)].astype(np.float64) if new else np.zeros(0)
        self._idf = np.concatenate([self._idf, np.where(np.array(new) >= 0, np.log(len(index) / np.maximum(df, 1)), -1.0)])
        rows = np.repeat(np.arange(len(docs), dtype=np.int64), np.diff(bounds[::apart]))
        keys, tf = np.unique(rows << 32 | numbers, return_counts=True)
        rows, terms = keys >> 32, keys & 0xFFFFFFFF
        known = self._idf[terms] >= 0
        rows, terms, weights = rows[known], terms[known], ((1 + np.log(tf)) * self._idf[terms])[known]
        lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(docs)))
        weights /= np.where(lengths > 0, lengths, 1.0)[rows]
        starts = np.searchsorted(rows, np.arange(len(docs) + 1)).tolist()
        for doc, first, last in zip(docs, starts, starts[1:], strict=False):
            self._vectors[doc] = terms[first:last].copy(), weights[first:last].copy()
        self._nbytes += terms.nbytes + weights.nbytes


def _whole(doc: Any, fields: Any) -> list[str]:
    return [content(doc, fields)]


_VECTORS: Attached[State, TermVectors] = Attached("term_vectors", lambda index: TermVectors(weakly(index)))
