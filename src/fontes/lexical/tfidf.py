"""TF-IDF: weighting and stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Float64s
from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.part import FrozenDict
from ..core.values import Explanation
from .over_fields import WEIGHTS, FieldedModel
from .weighting import Postings, Statistics, Weighting, check_phrase_idf, explained_tf, idf_of

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class TFIDFWeighting(Weighting):
    """TF-IDF weights: tf times idf, over the length of the row. `TFIDF` describes the parameters.

    Raises:
        ParameterError: A parameter is out of range, or two exclude each other.
    """

    sublinear_tf: bool = False
    smooth_idf: bool = False
    norm: str | None = "l2"
    relative_tf: bool = False
    fields: FrozenDict[float] | None = None
    phrase_idf: str = field(default="own", repr=False)  # the stored impacts of terms do not depend on it

    def __post_init__(self) -> None:
        check_phrase_idf(self.phrase_idf)
        if self.norm not in ("l2", None):
            raise ParameterError(f"norm must be 'l2' or None, not {self.norm!r}")
        if self.sublinear_tf and self.relative_tf:
            raise ParameterError("sublinear_tf and relative_tf do not go together; choose one")
        if self.sublinear_tf and min((self.fields or {"": 1.0}).values()) < 1:
            raise ParameterError(f"sublinear_tf needs weights of fields from 1 up, or 0, not {self.fields}")

    def postings(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return tf times idf, divided by the norm of the document's row."""
        weights: Float64s = self._tf(statistics, postings) * postings.repeat(
            idf_of(self.idf, statistics, postings.terms, self.phrase_idf)
        )
        return weights if self.norm is None else weights / statistics.norms(self._unscaled)[postings.docs]

    def cache_key(self) -> TFIDFWeighting:
        """Return the weighting with the default phrase_idf."""
        return self if self.phrase_idf == "own" else replace(self, phrase_idf="own")

    def query(self, counts: Float64s) -> Float64s:
        """Return the bag of words, scaled to unit length unless norm is None."""
        length = np.sqrt(np.sum(counts * counts))
        return counts if self.norm is None or length == 0 else counts / length

    @property
    def weighs_terms_alone(self) -> bool:
        return self.norm is None

    def idf(self, statistics: Statistics, df: Any) -> Float64s:
        """Return the idf of terms with document frequencies `df`."""
        n = statistics.documents
        idf: Float64s = np.log((1 + n) / (1 + df)) + 1 if self.smooth_idf else np.log(n / df)
        return idf

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain a posting by tf, idf and the norm of the document's row."""
        weight = float(self.postings(statistics, posting)[0])
        tf = f"tf={statistics.weighted_tf(posting, self.fields)[0]:g}"
        if self.sublinear_tf:
            tf = f"1 + ln tf, {tf}"
        elif self.relative_tf:
            tf = f"tf / dl, {tf}, dl={statistics.weighted_lengths(posting.docs, self.fields)[0]:g}"
        idf = float(idf_of(self.idf, statistics, posting.terms, self.phrase_idf)[0])
        factors = (
            Explanation(float(self._tf(statistics, posting)[0]), tf, tuple(explained_tf(statistics, posting, self.fields))),
            Explanation(idf, f"idf: N={statistics.documents}, df={statistics.counts_of(posting.terms)[0]}"),
        )
        if self.norm is None:
            return Explanation(weight, "tf times idf", factors)
        norm = Explanation(float(statistics.norms(self._unscaled)[posting.docs][0]), "length of the document's row")
        return Explanation(weight, "tf times idf over the row's length", (*factors, norm))

    @property
    def _unscaled(self) -> TFIDFWeighting:
        return replace(self, norm=None, phrase_idf="own")

    def _tf(self, statistics: Statistics, postings: Postings) -> Float64s:
        tf = statistics.weighted_tf(postings, self.fields)
        if self.sublinear_tf:
            return 1 + np.log(tf)
        return tf / statistics.weighted_lengths(postings.docs, self.fields) if self.relative_tf else tf


@dataclass(frozen=True)
class TFIDF(FieldedModel, name="tfidf"):
    """TF-IDF: the dot product of the topic's bag of words with the document's row of tf · ln(N / df).

    With norm="l2" both are scaled to unit length, the topic's over the words that the index has; with norm=None neither is.
    Unlike scikit-learn's, the topic's vector has no idf. With `fields`, tf and dl are weighted sums over fields. (Salton and
    Buckley, 1988.)

    Args:
        sublinear_tf: 1 + ln(tf) for tf.
        smooth_idf: ln((1 + N) / (1 + df)) + 1 for ln(N / df), as scikit-learn's default.
        norm: "l2" for rows of unit length, or None.
        relative_tf: tf / dl for tf; with norm=None the plain form of textbooks.
        phrase_idf: Idf of phrases and windows: "own", or "sum" of that of their terms, as in Lucene.
    """

    index: Index = field(repr=False)
    sublinear_tf: bool = tuned(False, [False, True])
    smooth_idf: bool = tuned(False, [False, True])
    norm: str | None = tuned("l2", ["l2", None])
    relative_tf: bool = False
    fields: Mapping[str, float] | None = WEIGHTS
    phrase_idf: str = "own"
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @property
    def weighting(self) -> TFIDFWeighting:
        """Model with its parameters."""
        return TFIDFWeighting(**self._parameters_of(TFIDFWeighting))
