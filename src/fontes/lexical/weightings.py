"""The lexical models, each a weighting: a weight for each posting out of statistics, and one for each term of a topic.

N is the number of documents, df that of the documents with the term, tf how often the document has it, dl the length of the
document in terms, avgdl the mean of all dl. A score is the sum over the topic's terms of posting weight times query weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.values import Explanation

if TYPE_CHECKING:
    from ..index import Index

Floats = NDArray[np.float64]


class Weighting(Protocol):
    """A model: hashable, its parameters as fields."""

    def postings(self, statistics: Statistics, tf: Floats, docs: NDArray[np.int32], df: Floats) -> Floats:
        """The weight of each posting, given its tf, its document (position in the index) and the df of its term."""
        ...

    def query(self, counts: Floats) -> Floats:
        """The weights of a topic's terms, given how often each occurs in it (or the weights that the topic gives)."""
        ...

    def explain(self, statistics: Statistics, tf: int, doc: int, df: int) -> Explanation:
        """How the weight of one posting comes about."""
        ...


class Statistics:
    """What weightings know of a collection."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.lengths = index.lengths
        self.df = index.df

    @cached_property
    def documents(self) -> int:
        """N, the number of documents."""
        return len(self._index)

    @cached_property
    def mean_length(self) -> float:
        """avgdl, 0 for an empty collection."""
        return self._index.tokens / len(self._index) if len(self._index) else 0.0

    @cached_property
    def documents_with_terms(self) -> int:
        """The number of documents that have any term: N as Lucene counts it."""
        return int(np.count_nonzero(self.lengths))

    @cached_property
    def _norms(self) -> dict[Weighting, Floats]:
        return {}

    def norms(self, weighting: Weighting) -> Floats:
        """For each document the Euclidean length of its row of posting weights; 1 for a row of zeros."""
        if weighting not in self._norms:
            squares = np.zeros(self.documents, dtype=np.float64)
            terms = np.arange(len(self.df))
            ends = np.cumsum(self.df, dtype=np.int64)
            for some in np.split(terms, np.searchsorted(ends, np.arange(1 << 21, int(ends[-1]), 1 << 21)) if len(ends) else []):
                docs, tfs = self._index.postings(some)
                df = np.repeat(self.df[some], self.df[some]).astype(np.float64)
                weights = weighting.postings(self, tfs.astype(np.float64), docs, df)
                squares += np.bincount(docs, weights * weights, self.documents)
            norms = np.sqrt(squares)
            norms[norms == 0] = 1.0
            self._norms[weighting] = norms
        return self._norms[weighting]


def idf_lucene(n: float, df: Any) -> Any:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): Robertson's, kept above 0 as Lucene does."""
    return np.log(1 + (n - df + 0.5) / (df + 0.5))


def idf_robertson(n: float, df: Any) -> Any:
    """ln((N - df + 0.5) / (df + 0.5)); below 0 where more than half of the documents have the term (Robertson et al. 1994)."""
    return np.log((n - df + 0.5) / (df + 0.5))


def idf_atire(n: float, df: Any) -> Any:
    """ln(N / df) (Trotman, Jia, Crane 2012)."""
    return np.log(n / df)


def idf_plus(n: float, df: Any) -> Any:
    """ln((N + 1) / df) (Lv and Zhai, CIKM 2011)."""
    return np.log((n + 1) / df)


def idf_l(n: float, df: Any) -> Any:
    """ln((N + 1) / (df + 0.5)) (Lv and Zhai, SIGIR 2011)."""
    return np.log((n + 1) / (df + 0.5))


IDF: dict[str, Callable[[float, Any], Any]] = {
    "lucene": idf_lucene,
    "robertson": idf_robertson,
    "okapi": idf_robertson,
    "atire": idf_atire,
    "plus": idf_plus,
    "l": idf_l,
}


@dataclass(frozen=True)
class BM25Weighting:
    """BM25; `fontes.BM25` describes the parameters. The weight of a posting is idf times tf part."""

    variant: str = "lucene"
    k1: float = 0.9
    b: float = 0.4
    k3: float | None = None
    delta: float = 0.0
    epsilon: float = 0.25
    lengths: str = "exact"

    def __post_init__(self) -> None:
        if self.variant not in IDF:
            raise ParameterError(f"unknown BM25 variant '{self.variant}'; there are {', '.join(IDF)}")
        if self.lengths not in ("exact", "lucene"):
            raise ParameterError(f"lengths must be 'exact' or 'lucene', not '{self.lengths}'")
        if not 0 <= self.k1 < np.inf or not 0 <= self.b <= 1:
            raise ParameterError(f"k1 must be 0 or more and b between 0 and 1, not k1={self.k1}, b={self.b}")
        if self.k3 is not None and not 0 <= self.k3 < np.inf:
            raise ParameterError(f"k3 must be 0 or more, or None, not {self.k3}")

    def postings(self, statistics: Statistics, tf: Floats, docs: NDArray[np.int32], df: Floats) -> Floats:
        """Idf times tf part."""
        weights: Floats = self._idf(statistics, df) * self._tf_part(tf, self._length_part(statistics, docs))
        return weights

    def query(self, counts: Floats) -> Floats:
        """(k3 + 1) qtf / (k3 + qtf), or qtf where k3 is None."""
        return counts if self.k3 is None else (self.k3 + 1) * counts / (self.k3 + counts)

    def explain(self, statistics: Statistics, tf: int, doc: int, df: int) -> Explanation:
        """The idf, and the tf part with the document's length."""
        idf = float(self._idf(statistics, np.float64(df)))
        length_part = float(self._length_part(statistics, np.array([doc]))[0])
        tf_part = float(self._tf_part(np.float64(tf), np.float64(length_part)))
        n, avgdl = self._collection(statistics)
        length = int(statistics.lengths[doc])
        seen = f"dl={length}" if self.lengths == "exact" else f"dl={length} kept as {_as_lucene(np.array([length]))[0]}"
        return Explanation(
            idf * tf_part,
            "idf times tf part",
            (
                Explanation(idf, f"idf ({self.variant}): N={n}, df={df}"),
                Explanation(
                    tf_part,
                    f"tf part: tf={tf}, k1={self.k1:g}" + (f", delta={self.delta:g}" if self.delta else ""),
                    (Explanation(length_part, f"length: 1 - b + b dl / avgdl, b={self.b:g}, {seen}, avgdl={avgdl:.4f}"),),
                ),
            ),
        )

    def _collection(self, statistics: Statistics) -> tuple[int, float]:
        """N and avgdl; Lucene does not count documents without a term."""
        if self.lengths == "exact":
            return statistics.documents, statistics.mean_length
        n = statistics.documents_with_terms
        return n, statistics.mean_length * statistics.documents / n if n else 0.0

    def _idf(self, statistics: Statistics, df: Any) -> Any:
        n, _ = self._collection(statistics)
        idf = IDF[self.variant](n, df)
        if self.variant == "okapi":
            return np.where(idf < 0, self.epsilon * float(np.mean(idf_robertson(n, statistics.df.astype(np.float64)))), idf)
        return idf

    def _length_part(self, statistics: Statistics, docs: NDArray[Any]) -> Floats:
        _, avgdl = self._collection(statistics)
        lengths = statistics.lengths[docs]
        if self.lengths == "lucene":
            lengths = _as_lucene(lengths)
        part: Floats = 1 - self.b + self.b * lengths.astype(np.float64) / avgdl
        return part

    def _tf_part(self, tf: Any, length_part: Any) -> Any:
        if self.variant == "lucene":
            return tf / (tf + self.k1 * length_part)
        if self.variant == "l":
            c = tf / length_part + self.delta
            return (self.k1 + 1) * c / (self.k1 + c)
        return (self.k1 + 1) * tf / (tf + self.k1 * length_part) + self.delta


@dataclass(frozen=True)
class TFIDFWeighting:
    """TF-IDF; `fontes.TFIDF` describes the parameters. The weight of a posting is tf times idf, over the row's length."""

    sublinear_tf: bool = False
    smooth_idf: bool = False
    norm: str | None = "l2"
    relative_tf: bool = False

    def __post_init__(self) -> None:
        if self.norm not in ("l2", None):
            raise ParameterError(f"norm must be 'l2' or None, not {self.norm!r}")
        if self.sublinear_tf and self.relative_tf:
            raise ParameterError("sublinear_tf and relative_tf do not go together; choose one")

    def postings(self, statistics: Statistics, tf: Floats, docs: NDArray[np.int32], df: Floats) -> Floats:
        """Tf times idf, divided by the length of the document's row."""
        if self.sublinear_tf:
            tf = 1 + np.log(tf)
        elif self.relative_tf:
            tf = tf / statistics.lengths[docs]
        weights: Floats = tf * self._idf(statistics, df)
        return weights if self.norm is None else weights / statistics.norms(self._unscaled)[docs]

    def query(self, counts: Floats) -> Floats:
        """The bag of words, scaled to unit length unless norm is None."""
        length = np.sqrt(np.sum(counts * counts))
        return counts if self.norm is None or length == 0 else counts / length

    def explain(self, statistics: Statistics, tf: int, doc: int, df: int) -> Explanation:
        """The tf, the idf, and the length of the document's row."""
        where = np.array([doc], dtype=np.int32)
        value = float(self.postings(statistics, np.array([float(tf)]), where, np.array([float(df)]))[0])
        idf = float(self._idf(statistics, np.float64(df)))
        kind, weight = f"tf={tf}", float(tf)
        if self.sublinear_tf:
            kind, weight = f"1 + ln tf, tf={tf}", float(1 + np.log(np.float64(tf)))
        elif self.relative_tf:
            kind, weight = f"tf / dl, tf={tf}, dl={int(statistics.lengths[doc])}", tf / int(statistics.lengths[doc])
        parts = [Explanation(weight, kind), Explanation(idf, f"idf: N={statistics.documents}, df={df}")]
        if self.norm is None:
            return Explanation(value, "tf times idf", tuple(parts))
        parts.append(Explanation(float(statistics.norms(self._unscaled)[doc]), "length of the document's row"))
        return Explanation(value, "tf times idf over the length of the row", tuple(parts))

    @property
    def _unscaled(self) -> TFIDFWeighting:
        return TFIDFWeighting(self.sublinear_tf, self.smooth_idf, None, self.relative_tf)

    def _idf(self, statistics: Statistics, df: Any) -> Any:
        n = statistics.documents
        return np.log((1 + n) / (1 + df)) + 1 if self.smooth_idf else np.log(n / df)


def _as_lucene(lengths: NDArray[Any]) -> NDArray[Any]:
    """Lengths as Lucene keeps them, in one byte: exact to 39, then four significant bits (SmallFloat.intToByte4)."""
    excess = np.maximum(lengths.astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (excess >> shift << shift))
