"""BM25: table of variants, weighting and stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.registry import nearest
from ..core.values import Explanation
from .retriever import Lexical
from .weighting import Floats, Postings, Statistics, Weighting, check_lengths, lengths_of

if TYPE_CHECKING:
    from ..index import Index


def idf_lucene(n: float, df: Any) -> Any:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): Robertson's, kept above 0 as Lucene does."""
    return np.log(1 + (n - df + 0.5) / (df + 0.5))


def idf_robertson(n: float, df: Any) -> Any:
    """ln((N - df + 0.5) / (df + 0.5)); below 0 where more than half of the documents have the term."""
    return np.log((n - df + 0.5) / (df + 0.5))


def idf_atire(n: float, df: Any) -> Any:
    """ln(N / df)."""
    return np.log(n / df)


def idf_plus(n: float, df: Any) -> Any:
    """ln((N + 1) / df)."""
    return np.log((n + 1) / df)


def idf_l(n: float, df: Any) -> Any:
    """ln((N + 1) / (df + 0.5))."""
    return np.log((n + 1) / (df + 0.5))


def tf_lucene(tf: Any, length: Any, k1: float, delta: float) -> Any:
    """tf / (tf + k1 · length); the factor k1 + 1, which changes no ranking, is omitted."""
    return tf / (tf + k1 * length)


def tf_robertson(tf: Any, length: Any, k1: float, delta: float) -> Any:
    """(k1 + 1) tf / (tf + k1 · length)."""
    return (k1 + 1) * tf / (tf + k1 * length)


def tf_plus(tf: Any, length: Any, k1: float, delta: float) -> Any:
    """(k1 + 1) tf / (tf + k1 · length) + delta: at least delta for a document that has the term."""
    return tf_robertson(tf, length, k1, delta) + delta


def tf_l(tf: Any, length: Any, k1: float, delta: float) -> Any:
    """(k1 + 1) c / (k1 + c), where c = tf / length + delta."""
    c = tf / length + delta
    return (k1 + 1) * c / (k1 + c)


@dataclass(frozen=True)
class Variant:
    """A variant of BM25: two pure functions and default parameters.

    Args:
        idf: Computes a term's idf from N and df.
        tf_part: Computes the tf part from tf, the length part 1 - b + b · dl / avgdl, k1 and delta.
        source: Publication of the formula.
        k1: Default of k1.
        b: Default of b.
        delta: Default of delta; None for a variant without one.
        floored: Whether an idf below 0 becomes epsilon times the mean idf of all terms.
    """

    idf: Callable[[float, Any], Any]
    tf_part: Callable[[Any, Any, float, float], Any]
    source: str
    k1: float = 0.9
    b: float = 0.4
    delta: float | None = None
    floored: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """Defaults of the parameters that the variant has."""
        names = (field.name for field in fields(BM25Weighting))
        return {name: value for name in names if (value := getattr(self, name, None)) is not None}


VARIANTS: dict[str, Variant] = {
    "lucene": Variant(idf_lucene, tf_lucene, "Lucene's BM25Similarity, with the defaults of Anserini"),
    "robertson": Variant(idf_robertson, tf_robertson, "Robertson et al., Okapi at TREC-3, 1994"),
    "okapi": Variant(idf_robertson, tf_robertson, "BM25Okapi of rank_bm25", k1=1.5, b=0.75, floored=True),
    "atire": Variant(idf_atire, tf_robertson, "Trotman, Jia and Crane, Towards an efficient and effective search engine, 2012"),
    "plus": Variant(idf_plus, tf_plus, "Lv and Zhai, Lower-bounding term frequency normalization, CIKM 2011", delta=1.0),
    "l": Variant(idf_l, tf_l, "Lv and Zhai, When documents are very long, BM25 fails!, SIGIR 2011", delta=0.5),
}


@dataclass(frozen=True)
class BM25Weighting(Weighting):
    """BM25 weights: idf times tf part. `BM25` describes the parameters.

    Raises:
        ParameterError: The variant is unknown, or a parameter is out of range.
    """

    variant: str
    k1: float
    b: float
    k3: float | None = None
    delta: float = 0.0
    epsilon: float = 0.25
    lengths: str = "exact"

    @classmethod
    def of(cls, variant: str, **parameters: Any) -> BM25Weighting:
        """Return the weighting of a variant, with its defaults in place of None."""
        known = _variant(variant)
        if parameters.get("delta") is not None and known.delta is None:
            having = " and ".join(name for name, other in VARIANTS.items() if other.delta is not None)
            raise ParameterError(f"BM25 {variant} has no delta; {having} have")
        chosen = {name: value for name, value in parameters.items() if value is not None}
        return cls(variant, **{**known.defaults, **chosen})

    def __post_init__(self) -> None:
        _variant(self.variant)
        check_lengths(self.lengths)
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
        weights: Floats = postings.spread(idf) * self._tf_part(postings, self._length_part(statistics, postings.docs))
        return weights

    def query(self, counts: Floats) -> Floats:
        """(k3 + 1) qtf / (k3 + qtf), or qtf where k3 is None."""
        return counts if self.k3 is None else (self.k3 + 1) * counts / (self.k3 + np.abs(counts))

    def for_postings(self) -> BM25Weighting:
        """Return the weighting with the default k3, which affects queries only."""
        return self if self.k3 is None else replace(self, k3=None)

    def idf(self, statistics: Statistics, df: Any) -> Any:
        """Return the idf of terms with document frequencies `df`."""
        variant = VARIANTS[self.variant]
        n, _ = self._collection(statistics)
        idf = variant.idf(n, df)
        if variant.floored:
            return np.where(idf < 0, self.epsilon * float(np.mean(variant.idf(n, statistics.vocabulary.df))), idf)
        return idf

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """The idf, and the tf part with the document's length."""
        idf = float(self.idf(statistics, statistics.df[posting.terms])[0])
        length_part = self._length_part(statistics, posting.docs)
        n, avgdl = self._collection(statistics)
        exact = statistics.lengths[posting.docs][0]
        rounded = lengths_of(statistics, posting.docs, self.lengths)[0]
        dl = f"dl={exact:g}" + ("" if self.lengths == "exact" else f" kept as {rounded:g}")
        saturation = f"tf part: tf={posting.tf[0]}, k1={self.k1:g}" + (f", delta={self.delta:g}" if self.delta else "")
        about_length = f"length: 1 - b + b dl / avgdl, b={self.b:g}, {dl}, avgdl={avgdl:.4f}"
        of_length = Explanation(float(length_part[0]), about_length)
        return Explanation(
            float(self.postings(statistics, posting)[0]),
            "idf times tf part",
            (
                Explanation(idf, f"idf ({self.variant}): N={n}, df={posting.df[0]}"),
                Explanation(float(self._tf_part(posting, length_part)[0]), saturation, (of_length,)),
            ),
        )

    def _collection(self, statistics: Statistics) -> tuple[int, float]:
        """N and avgdl; Lucene does not count documents without a term."""
        if self.lengths == "exact":
            return statistics.documents, statistics.mean_length
        n = statistics.documents_with_terms
        return n, statistics.mean_length * statistics.documents / n if n else 0.0

    def _length_part(self, statistics: Statistics, docs: NDArray[Any]) -> Floats:
        _, avgdl = self._collection(statistics)
        part: Floats = 1 - self.b + self.b * lengths_of(statistics, docs, self.lengths) / avgdl
        return part

    def _tf_part(self, postings: Postings, length_part: Floats) -> Floats:
        tf = postings.tf.astype(np.float64)
        part: Floats = VARIANTS[self.variant].tf_part(tf, length_part, self.k1, self.delta)
        return part


@dataclass(frozen=True)
class BM25(Lexical, name="bm25"):
    """BM25: the sum over the topic's terms of idf · tf part · query part.

    `fontes.lexical.bm25.VARIANTS` lists the variants with formulas, defaults and sources; Robertson and Zaragoza (2009) and
    Trotman, Puurula and Burgess (2014) compare them. Textbooks advise k1 and k3 between 1.2 and 2, and b = 0.75, without
    training data.

    Args:
        variant: The formulas of idf and tf part, and the defaults of k1, b and delta: lucene (as Anserini), robertson, okapi
            (as rank_bm25), atire, plus or l.
        k1: How slowly repetitions of a term in a document saturate, from 0 up. None: the variant's.
        b: Strength of length normalization, from 0 to 1. None: the variant's.
        k3: The query part is (k3 + 1) qtf / (k3 + qtf). It matters for topics as long as a paragraph. None: qtf.
        delta: Shift of the tf part (plus) or of tf / length (l), from 0 up. None: the variant's.
        epsilon: Okapi's replacement for an idf below 0, as a fraction of the mean idf of all terms.
        lengths: "exact", or "lucene": lengths rounded to Lucene's one byte and documents without any term not counted, so that
            each score equals Lucene's.
    """

    index: Index = field(repr=False)
    variant: str = "lucene"
    k1: float | None = tuned(None, (0.1, 4.5, 0.2), (0.0, np.inf), usual=True)
    b: float | None = tuned(None, (0.0, 1.0, 0.1), (0.0, 1.0), usual=True)
    k3: float | None = tuned(None, [None, 0.0, 2.0, 8.0], (0.0, np.inf), usual=True)
    delta: float | None = tuned(None, (0.0, 1.5, 0.1), (0.0, np.inf))
    epsilon: float = 0.25
    lengths: str = "exact"
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @cached_property
    def weighting(self) -> BM25Weighting:
        """Model with its parameters, defaults filled in."""
        return BM25Weighting.of(**self._parameters_of(BM25Weighting))

    def shown(self) -> dict[str, Any]:
        """Return parameters whose defaults all variants have always; others if they are not the variant's default."""
        complete, always = self._complete, VARIANTS["lucene"].defaults
        shown = super().shown() | {name: getattr(complete, name) for name in always}
        usual = {} if self.variant not in VARIANTS else VARIANTS[self.variant].defaults
        return {
            name: shown[name]
            for name in self.params()
            if name in shown and (name in always or name not in usual or shown[name] != usual[name])
        }

    def key(self) -> str | None:
        return super(BM25, self._complete).key()

    @property
    def _complete(self) -> BM25:
        known = {} if self.variant not in VARIANTS else VARIANTS[self.variant].defaults
        return replace(self, **{name: value for name, value in known.items() if getattr(self, name) is None})

    def __eq__(self, other: object) -> bool:
        """Compare parameters after filling in the variant's defaults."""
        if not isinstance(other, BM25):
            return NotImplemented
        return self._complete.params() == other._complete.params()

    def __hash__(self) -> int:
        return hash(tuple(self._complete.params().values()))


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise ParameterError(f"there is no BM25 variant '{name}'; {nearest(name, VARIANTS)}")
    return VARIANTS[name]
