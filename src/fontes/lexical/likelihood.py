"""Query likelihood: weighting and stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Float64s, Ints
from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.part import FrozenDict
from ..core.values import Explanation
from .over_fields import WEIGHTS, FieldedModel
from .weighting import Postings, Statistics, Weighting, check_lengths, lengths_of

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class LikelihoodWeighting(Weighting):
    """Query likelihood weights: logarithms of ratios. `QueryLikelihood` describes the parameters.

    Raises:
        ParameterError: A parameter is out of range.
    """

    smoothing: str = "dirichlet"
    mu: float = 1000.0
    lambda_: float = 0.1
    lengths: str = "exact"
    fields: FrozenDict[float] | None = None

    def __post_init__(self) -> None:
        if self.smoothing not in ("dirichlet", "jelinek-mercer"):
            raise ParameterError(f"smoothing must be 'dirichlet' or 'jelinek-mercer', not '{self.smoothing}'")
        check_lengths(self.lengths)
        if not 0 < self.mu < np.inf or not 0 < self.lambda_ < 1:
            raise ParameterError(f"mu must be above 0 and lambda_ between 0 and 1, not mu={self.mu}, lambda_={self.lambda_}")

    def postings(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return the log ratio of the term's document and collection probabilities, at least 0."""
        if self.fields is not None:
            *field_parts, background = (value for _, value in self._mixed(statistics, postings))
            mixed: Float64s = np.maximum(np.log(sum(field_parts) / background), 0.0)
            return mixed
        p = postings.repeat(self._in_collection(statistics, postings.terms))
        tf, dl = postings.tf.astype(np.float64), lengths_of(statistics, postings.docs, self.lengths)
        if self.smoothing == "jelinek-mercer":
            weights: Float64s = np.log(1 + (1 - self.lambda_) * tf / dl / (self.lambda_ * p))
        else:
            weights = np.maximum(np.log(1 + tf / (self.mu * p)) + np.log(self.mu / (dl + self.mu)), 0.0)
        return weights

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain a posting by the term's collection probability, its tf, and the document length."""
        if self.fields is not None:
            return self._explain_mixture(statistics, posting)
        p = float(self._in_collection(statistics, posting.terms)[0])
        dl = lengths_of(statistics, posting.docs, self.lengths)[0]
        cf = f"p(t|C): cf={statistics.cf_of(posting.terms)[0]:g}, tokens={statistics.tokens}"
        label = f"{self._label}: tf={posting.tf[0]}, dl={dl:g}"
        return Explanation(float(self.postings(statistics, posting)[0]), label, (Explanation(p, cf),))

    def _mixed(self, statistics: Statistics, postings: Postings) -> Iterator[tuple[str, Any]]:
        """Yield (field, share · p(t|field of d)) for each field; last, ("", their sum for a document without the term)."""
        assert self.fields is not None
        assert postings.fields is not None
        background: Any = 0.0
        total = sum(self.fields.values())
        for column, name in enumerate(statistics.field_names):
            share, field_statistics, tf = self.fields[name] / total, statistics.field(name), postings.fields[:, column]
            p = np.where(field_statistics.cf_of(postings.terms) > 0, self._in_collection(field_statistics, postings.terms), 0.0)
            spread, dl = postings.repeat(p), lengths_of(field_statistics, postings.docs, self.lengths)
            if self.smoothing == "jelinek-mercer":
                in_field = np.divide(tf, dl, out=np.zeros(len(tf)), where=tf > 0)
                yield name, share * ((1 - self.lambda_) * in_field + self.lambda_ * spread)
                background = background + share * self.lambda_ * spread
            else:
                yield name, share * (tf + self.mu * spread) / (dl + self.mu)
                background = background + share * spread
        yield "", background

    def _explain_mixture(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain a posting by the share of each field, and by the same document without the term."""
        assert self.fields is not None
        assert posting.fields is not None
        *field_parts, (_, background) = self._mixed(statistics, posting)
        parts, total = [], sum(self.fields.values())
        for column, (name, value) in enumerate(field_parts):
            field_statistics = statistics.field(name)
            dl = lengths_of(field_statistics, posting.docs, self.lengths)[0]
            label = f"{name}: share {self.fields[name] / total:g} of p(t|field): tf={posting.fields[0, column]}, dl={dl:g}"
            cf = field_statistics.cf_of(posting.terms)[0]
            p = self._in_collection(field_statistics, posting.terms)[0] if cf else 0.0
            collection_part = Explanation(float(p), f"p(t|C): cf={cf:g}, tokens={field_statistics.tokens}")
            parts.append(Explanation(float(value[0]), label, (collection_part,)))
        mixture = Explanation(sum(part.value for part in parts), "p(t|d): sum over fields", tuple(parts))
        lacking = "words" if self.smoothing == "dirichlet" else "the term"
        without = Explanation(float(background[0]), f"p(t|d) of a document without {lacking}")
        return Explanation(float(self.postings(statistics, posting)[0]), self._label, (mixture, without))

    @property
    def _label(self) -> str:
        """Label of explanations, with the parameter of the smoothing."""
        parameter = f"mu={self.mu:g}" if self.smoothing == "dirichlet" else f"lambda={self.lambda_:g}"
        return f"log likelihood ratio ({self.smoothing}, {parameter})"

    def _in_collection(self, statistics: Statistics, terms: Ints) -> Float64s:
        """Return p(t|C), with 1 added to numerator and denominator as in Lucene."""
        p: Float64s = (statistics.cf_of(terms) + 1.0) / (statistics.tokens + 1)
        return p


@dataclass(frozen=True)
class QueryLikelihood(FieldedModel, name="ql"):
    """Query likelihood with a smoothed language model of each document, as Lucene and Anserini score it.

    With Dirichlet smoothing the weight of a matching term is ln(1 + tf / (mu p(t|C))) + ln(mu / (dl + mu)), but at least 0
    (Lucene's LMDirichletSimilarity); with Jelinek-Mercer smoothing ln(1 + (1 - lambda) tf / dl / (lambda p(t|C))).
    p(t|C) is (cf + 1) / (tokens + 1). (Zhai and Lafferty, SIGIR 2001.)

    With `fields` the language model of a document is a mixture of the models of its fields, whose shares are proportional to
    the weights: p(t|d) is the sum of share · p(t|field of d), each smoothed by the field's own p(t|C), which is 0 for a term
    that the field never holds. The weight is ln(p(t|d) / p(t|d')), at least 0, where d' has no words (Dirichlet) or lacks
    the term (Jelinek-Mercer). (Ogilvie and Callan, SIGIR 2003.)

    Args:
        smoothing: "dirichlet" or "jelinek-mercer".
        mu: Pseudo-count of collection terms in Dirichlet smoothing, above 0.
        lambda_: Weight of the collection in Jelinek-Mercer smoothing, between 0 and 1.
        lengths: "exact", or "lucene": rounded to Lucene's one byte, for Lucene's scores.
    """

    index: Index = field(repr=False)
    smoothing: str = "dirichlet"
    mu: float = tuned(1000.0, (100, 3000, 100), usual=True)
    lambda_: float = tuned(0.1, (0.05, 0.95, 0.05), usual=True)
    lengths: str = "exact"
    fields: Mapping[str, float] | None = WEIGHTS
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @property
    def weighting(self) -> LikelihoodWeighting:
        """Model with its parameters."""
        return LikelihoodWeighting(**self._parameters_of(LikelihoodWeighting))

    def shown(self) -> dict[str, Any]:
        """Return the parameters to show, among them always the parameter of the smoothing."""
        shown = super().shown()
        shown |= {"mu": self.mu} if self.smoothing == "dirichlet" else {"lambda_": self.lambda_}
        return {name: shown[name] for name in self.params() if name in shown}
