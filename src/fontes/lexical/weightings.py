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
from ..storage.caches import Attached, Cached

if TYPE_CHECKING:
    from ..index import Index

Floats = NDArray[np.float64]
CHUNK = 1 << 21  # postings that are weighted at a time
NORMS = 8  # models whose norms are kept


@dataclass(frozen=True)
class Postings:
    """Some postings: those of each term of `terms` (positions in the index), end to end, `df` of them for each."""

    terms: NDArray[Any]
    df: NDArray[Any]
    docs: NDArray[np.int32]
    tf: NDArray[np.int32]

    def spread(self, of_terms: Floats) -> Floats:
        """A value for each posting from one for each term."""
        return np.repeat(of_terms, self.df)


class Weighting(Protocol):
    """A model: hashable, its parameters as fields."""

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """The weight of each posting."""
        ...

    def query(self, counts: Floats) -> Floats:
        """The weights of a topic's terms, given how often each occurs in it (or the weights that the topic gives)."""
        ...

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """How the weight of one posting comes about."""
        ...


class Statistics:
    """What weightings know of a collection. df, cf and lengths are float64."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.documents = len(index)
        self.tokens = index.tokens
        self.lengths = index.lengths.astype(np.float64)
        self.df = index.df.astype(np.float64)
        self._norms: Cached[Weighting, Floats] = Cached(NORMS)

    @classmethod
    def of(cls, index: Index) -> Statistics:
        """The statistics of an index, which keeps them."""
        return _STATISTICS.of(index)

    @cached_property
    def cf(self) -> Floats:
        """For each term how often it occurs in the collection."""
        return self._index.cf.astype(np.float64)

    @cached_property
    def mean_length(self) -> float:
        """avgdl, 0 for an empty collection."""
        return self.tokens / self.documents if self.documents else 0.0

    @cached_property
    def documents_with_terms(self) -> int:
        """The number of documents that have any term: N as Lucene counts it."""
        return int(np.count_nonzero(self.lengths))

    def norms(self, weighting: Weighting) -> Floats:
        """For each document the Euclidean length of its row of posting weights; 1 for a row of zeros."""
        return self._norms.get(weighting, lambda: self._norms_of(weighting))

    def _norms_of(self, weighting: Weighting) -> Floats:
        squares = np.zeros(self.documents, dtype=np.float64)
        ends = np.cumsum(self._index.df, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        for terms in np.split(np.arange(len(ends)), np.searchsorted(ends, np.arange(CHUNK, total, CHUNK))):
            docs, tf = self._index.postings(terms)
            weights = weighting.postings(self, Postings(terms, self._index.df[terms], docs, tf))
            squares += np.bincount(docs, weights * weights, self.documents)
        norms = np.sqrt(squares)
        norms[norms == 0] = 1.0
        return norms


_STATISTICS = Attached("statistics", Statistics)


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
    """BM25; `fontes.lexical.BM25` describes the parameters. The weight of a posting is idf times tf part."""

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
        if not 0 <= self.delta < np.inf or not np.isfinite(self.epsilon):
            raise ParameterError(
                f"delta must be 0 or more and epsilon a number, not delta={self.delta}, epsilon={self.epsilon}"
            )

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """Idf times tf part."""
        idf = self.idf(statistics, statistics.df[postings.terms])
        tf_part = self._tf_part(postings.tf.astype(np.float64), self._length_part(statistics, postings.docs))
        weights: Floats = postings.spread(idf) * tf_part
        return weights

    def query(self, counts: Floats) -> Floats:
        """(k3 + 1) qtf / (k3 + qtf), or qtf where k3 is None."""
        return counts if self.k3 is None else (self.k3 + 1) * counts / (self.k3 + np.abs(counts))

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The idf, and the tf part with the document's length."""
        idf = float(self.idf(statistics, statistics.df[posting.terms])[0])
        length_part = self._length_part(statistics, posting.docs)
        tf_part = float(self._tf_part(posting.tf.astype(np.float64), length_part)[0])
        n, avgdl = self._collection(statistics)
        length = statistics.lengths[posting.docs]
        seen = f"dl={length[0]:g}" + ("" if self.lengths == "exact" else f" kept as {_as_lucene(length)[0]:g}")
        saturation = f"tf part: tf={posting.tf[0]}, k1={self.k1:g}" + (f", delta={self.delta:g}" if self.delta else "")
        about_length = f"length: 1 - b + b dl / avgdl, b={self.b:g}, {seen}, avgdl={avgdl:.4f}"
        return Explanation(
            float(self.postings(statistics, posting)[0]),
            "idf times tf part",
            (
                Explanation(idf, f"idf ({self.variant}): N={n}, df={posting.df[0]}"),
                Explanation(tf_part, saturation, (Explanation(float(length_part[0]), about_length),)),
            ),
        )

    def _collection(self, statistics: Statistics) -> tuple[int, float]:
        """N and avgdl; Lucene does not count documents without a term."""
        if self.lengths == "exact":
            return statistics.documents, statistics.mean_length
        n = statistics.documents_with_terms
        return n, statistics.mean_length * statistics.documents / n if n else 0.0

    def idf(self, statistics: Statistics, df: Any) -> Any:
        """The idf of terms that `df` documents have."""
        n, _ = self._collection(statistics)
        idf = IDF[self.variant](n, df)
        if self.variant == "okapi":
            return np.where(idf < 0, self.epsilon * float(np.mean(idf_robertson(n, statistics.df))), idf)
        return idf

    def _length_part(self, statistics: Statistics, docs: NDArray[Any]) -> Floats:
        _, avgdl = self._collection(statistics)
        lengths = statistics.lengths[docs]
        if self.lengths == "lucene":
            lengths = _as_lucene(lengths)
        part: Floats = 1 - self.b + self.b * lengths / avgdl
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
    """TF-IDF; `fontes.lexical.TFIDF` describes the parameters. The weight of a posting is tf times idf, over the row's length."""

    sublinear_tf: bool = False
    smooth_idf: bool = False
    norm: str | None = "l2"
    relative_tf: bool = False

    def __post_init__(self) -> None:
        if self.norm not in ("l2", None):
            raise ParameterError(f"norm must be 'l2' or None, not {self.norm!r}")
        if self.sublinear_tf and self.relative_tf:
            raise ParameterError("sublinear_tf and relative_tf do not go together; choose one")

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """Tf times idf, divided by the length of the document's row."""
        weights: Floats = self._tf(statistics, postings) * postings.spread(self.idf(statistics, statistics.df[postings.terms]))
        return weights if self.norm is None else weights / statistics.norms(self._unscaled)[postings.docs]

    def query(self, counts: Floats) -> Floats:
        """The bag of words, scaled to unit length unless norm is None."""
        length = np.sqrt(np.sum(counts * counts))
        return counts if self.norm is None or length == 0 else counts / length

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The tf, the idf, and the length of the document's row."""
        value = float(self.postings(statistics, posting)[0])
        tf = f"tf={posting.tf[0]}"
        if self.sublinear_tf:
            tf = f"1 + ln tf, {tf}"
        elif self.relative_tf:
            tf = f"tf / dl, {tf}, dl={statistics.lengths[posting.docs][0]:g}"
        idf = float(self.idf(statistics, statistics.df[posting.terms])[0])
        parts = [
            Explanation(float(self._tf(statistics, posting)[0]), tf),
            Explanation(idf, f"idf: N={statistics.documents}, df={posting.df[0]}"),
        ]
        if self.norm is None:
            return Explanation(value, "tf times idf", tuple(parts))
        norm = float(statistics.norms(self._unscaled)[posting.docs][0])
        return Explanation(
            value, "tf times idf over the row's length", (*parts, Explanation(norm, "length of the document's row"))
        )

    @property
    def _unscaled(self) -> TFIDFWeighting:
        return TFIDFWeighting(self.sublinear_tf, self.smooth_idf, None, self.relative_tf)

    def _tf(self, statistics: Statistics, postings: Postings) -> Floats:
        tf = postings.tf.astype(np.float64)
        if self.sublinear_tf:
            return 1 + np.log(tf)
        return tf / statistics.lengths[postings.docs] if self.relative_tf else tf

    def idf(self, statistics: Statistics, df: Any) -> Floats:
        """The idf of terms that `df` documents have."""
        n = statistics.documents
        idf: Floats = np.log((1 + n) / (1 + df)) + 1 if self.smooth_idf else np.log(n / df)
        return idf


@dataclass(frozen=True)
class LikelihoodWeighting:
    """Query likelihood; `fontes.lexical.QueryLikelihood` describes the parameters."""

    smoothing: str = "dirichlet"
    mu: float = 1000.0
    lambda_: float = 0.1
    lengths: str = "exact"

    def __post_init__(self) -> None:
        if self.smoothing not in ("dirichlet", "jelinek-mercer"):
            raise ParameterError(f"smoothing must be 'dirichlet' or 'jelinek-mercer', not '{self.smoothing}'")
        if self.lengths not in ("exact", "lucene"):
            raise ParameterError(f"lengths must be 'exact' or 'lucene', not '{self.lengths}'")
        if not 0 < self.mu < np.inf or not 0 < self.lambda_ < 1:
            raise ParameterError(f"mu must be above 0 and lambda_ between 0 and 1, not mu={self.mu}, lambda_={self.lambda_}")

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """The logarithm of how much likelier the document makes the term than the collection does, 0 where it is less."""
        p = postings.spread(self._collection(statistics, postings.terms))
        tf, dl = postings.tf.astype(np.float64), self._lengths(statistics, postings.docs)
        if self.smoothing == "jelinek-mercer":
            weights: Floats = np.log(1 + (1 - self.lambda_) * tf / dl / (self.lambda_ * p))
        else:
            weights = np.maximum(np.log(1 + tf / (self.mu * p)) + np.log(self.mu / (dl + self.mu)), 0.0)
        return weights

    def query(self, counts: Floats) -> Floats:
        """How often each term occurs."""
        return counts

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The probability of the term in the collection, its tf, and the length of the document."""
        p = float(self._collection(statistics, posting.terms)[0])
        dl = self._lengths(statistics, posting.docs)[0]
        smoothing = f"mu={self.mu:g}" if self.smoothing == "dirichlet" else f"lambda={self.lambda_:g}"
        cf = f"p(t|C): cf={statistics.cf[posting.terms[0]]:g}, tokens={statistics.tokens}"
        label = f"log likelihood ratio ({self.smoothing}, {smoothing}): tf={posting.tf[0]}, dl={dl:g}"
        return Explanation(float(self.postings(statistics, posting)[0]), label, (Explanation(p, cf),))

    def _collection(self, statistics: Statistics, terms: NDArray[Any]) -> Floats:
        """p(t|C), with 1 added above and below as Lucene does."""
        p: Floats = (statistics.cf[terms] + 1) / (statistics.tokens + 1)
        return p

    def _lengths(self, statistics: Statistics, docs: NDArray[Any]) -> Floats:
        lengths = statistics.lengths[docs]
        return _as_lucene(lengths) if self.lengths == "lucene" else lengths


@dataclass(frozen=True)
class ImpactWeighting:
    """Given weights, kept in the index as whole numbers: the weight times `scale`."""

    scale: float

    def postings(self, statistics: Statistics, postings: Postings) -> Floats:
        """The weights as given, to a whole multiple of 1 / scale."""
        weights: Floats = postings.tf / self.scale
        return weights

    def query(self, counts: Floats) -> Floats:
        """The topic's weights."""
        return counts

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The weight."""
        return Explanation(float(posting.tf[0]) / self.scale, "weight in the document's vector")


def _as_lucene(lengths: NDArray[Any]) -> NDArray[Any]:
    """Lengths as Lucene keeps them, in one byte: exact to 39, then four significant bits (SmallFloat.intToByte4)."""
    excess = np.maximum(lengths.astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (excess >> shift << shift))
