"""What all lexical models share: a `Weighting` gives each posting a weight, out of the collection's `Statistics`.

N is the number of documents, df that of the documents with the term, tf how often the document has it, dl the length of the
document in terms, avgdl the mean of all dl. A score is the sum over the topic's terms of posting weight times query weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.values import Explanation
from ..storage.caches import Attached, Cached, weakly

if TYPE_CHECKING:
    from ..index.postings import Searchable

Floats = NDArray[np.float64]
CHUNK = 1 << 21  # postings that are weighted at a time
NORMS = 8  # models whose norms are kept
LENGTHS = ("exact", "lucene")  # how the lengths of documents are counted


@dataclass(frozen=True)
class Postings:
    """Some postings: those of each term, end to end.

    Args:
        terms: The terms, by number.
        df: For each term how many of the postings are its own.
        docs: For each posting the ordinal of its document.
        tf: For each posting how often the document has the term.
    """

    terms: NDArray[Any]
    df: NDArray[Any]
    docs: NDArray[np.int32]
    tf: NDArray[np.int32]

    def spread(self, of_terms: Floats) -> Floats:
        """A value for each posting from one for each term."""
        return np.repeat(of_terms, self.df)


class Weighting(ABC):
    """A model: a frozen dataclass whose fields are its parameters.

    Its `postings` is the formula, for many postings at a time; its `explain` accounts for one of them.
    """

    @abstractmethod
    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """The weight of each posting, float64."""

    def query(self, counts: Floats) -> Floats:
        """The weights of a topic's terms, float64; by default the counts.

        Args:
            counts: For each term how often it occurs in the topic, or the weight that the topic gives it.
        """
        return counts

    @abstractmethod
    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """How the weight of one posting comes about."""

    def for_postings(self) -> Weighting:
        """A weighting with the same weights of postings, whatever its parameters of the topic's side are."""
        return self


class Statistics:
    """What weightings know of a collection; of a part of an index, what they know of the whole and of the part's documents.

    Attributes:
        documents: N, the number of documents.
        tokens: How many terms all documents have together.
        lengths: For each document dl, its length in terms, float64.
        df: For each term the number of documents that hold it, float64.
    """

    def __init__(self, index: Searchable) -> None:
        self._index = index
        self._whole: Searchable = getattr(index, "whole", index)
        self.documents = len(self._whole)
        self.tokens = self._whole.tokens
        self.lengths = index.lengths.astype(np.float64)
        self.df = self._whole.df.astype(np.float64)
        self._norms: Cached[Weighting, Floats] = Cached(NORMS)

    @classmethod
    def of(cls, index: Searchable) -> Statistics:
        """The statistics of an index, which keeps them."""
        return _STATISTICS.of(index)

    def over(self, lengths: Floats) -> Statistics:
        """The statistics of the same collection, for other texts of these lengths in place of its documents."""
        others = copy(self)
        others.lengths, others._norms = lengths, Cached(NORMS)
        return others

    @cached_property
    def cf(self) -> Floats:
        """For each term how often it occurs in the collection, float64."""
        return self._whole.cf.astype(np.float64)

    @cached_property
    def mean_length(self) -> float:
        """avgdl, 0 for an empty collection."""
        return self.tokens / self.documents if self.documents else 0.0

    @cached_property
    def documents_with_terms(self) -> int:
        """The number of documents that have any term: N as Lucene counts it."""
        return int(np.count_nonzero(self._whole.lengths))

    def norms(self, weighting: Weighting) -> Floats:
        """For each document the Euclidean length of its row of posting weights; 1 for a row of zeros."""
        return self._norms.get(weighting, lambda: self._norms_of(weighting))

    def _norms_of(self, weighting: Weighting) -> Floats:
        squares = np.zeros(len(self._index), dtype=np.float64)
        ends = np.cumsum(self._whole.df, dtype=np.int64)  # the same pieces in each part, so that sums round alike
        total = int(ends[-1]) if len(ends) else 0
        for terms in np.split(np.arange(len(ends)), np.searchsorted(ends, np.arange(CHUNK, total, CHUNK))):
            docs, tf = self._index.postings(terms)
            weights = weighting.postings(self, Postings(terms, self._index.df[terms], docs, tf))
            squares += np.bincount(docs, weights * weights, len(squares))
        norms = np.sqrt(squares)
        norms[norms == 0] = 1.0
        return norms


_STATISTICS: Attached[Searchable, Statistics] = Attached("statistics", lambda index: Statistics(weakly(index)))


def check_lengths(lengths: str) -> None:
    """Raises ParameterError unless this is one of LENGTHS."""
    if lengths not in LENGTHS:
        raise ParameterError(f"lengths must be 'exact' or 'lucene', not '{lengths}'")


def lengths_of(statistics: Statistics, docs: NDArray[Any], lengths: str) -> NDArray[Any]:
    """dl of each of these documents, as one of LENGTHS counts it."""
    exact = statistics.lengths[docs]
    return in_one_byte(exact) if lengths == "lucene" else exact


def in_one_byte(lengths: NDArray[Any]) -> NDArray[Any]:
    """Lengths as Lucene keeps them, in one byte: exact to 39, then four significant bits (SmallFloat.intToByte4)."""
    excess = np.maximum(lengths.astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (excess >> shift << shift))
