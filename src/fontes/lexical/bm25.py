"""BM25: table of variants, weighting and stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.arrays import Float64s, Int32s
from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.parameters import tuned
from ..core.part import FrozenDict
from ..core.values import Explanation
from .fields import EXAMPLE, check_names
from .over_fields import WEIGHTS, FieldedModel
from .weighting import Postings, Saturation, Statistics, Weighting, check_lengths, check_phrase_idf, explained_tf, idf_of

if TYPE_CHECKING:
    from ..index.state import State

MAX_PARAMETER = 1e6  # keeps scores within float32
N = TypeVar("N", float, Float64s)
COMBINE = ("frequencies", "sum")  # ways to combine fields


def idf_lucene(n: float, df: N) -> Any:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): Robertson's, kept above 0 as Lucene does."""
    return np.log(1 + (n - df + 0.5) / (df + 0.5))


def idf_robertson(n: float, df: N) -> Any:
    """ln((N - df + 0.5) / (df + 0.5)); below 0 where more than half of the documents have the term."""
    return np.log((n - df + 0.5) / (df + 0.5))


def idf_atire(n: float, df: N) -> Any:
    """ln(N / df)."""
    return np.log(n / df)


def idf_plus(n: float, df: N) -> Any:
    """ln((N + 1) / df)."""
    return np.log((n + 1) / df)


def idf_l(n: float, df: N) -> Any:
    """ln((N + 1) / (df + 0.5))."""
    return np.log((n + 1) / (df + 0.5))


def tf_lucene(tf: N, length: N, k1: float, delta: float) -> N:
    """tf / (tf + k1 · length); the factor k1 + 1, which changes no ranking, is omitted."""
    return tf / (tf + k1 * length)


def tf_robertson(tf: N, length: N, k1: float, delta: float) -> N:
    """(k1 + 1) tf / (tf + k1 · length)."""
    return (k1 + 1) * tf / (tf + k1 * length)


def tf_plus(tf: N, length: N, k1: float, delta: float) -> N:
    """(k1 + 1) tf / (tf + k1 · length) + delta: at least delta for a document that has the term."""
    return tf_robertson(tf, length, k1, delta) + delta


def tf_l(tf: N, length: N, k1: float, delta: float) -> N:
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
    def defaults(self) -> dict[str, float]:
        """Defaults of the parameters that the variant has."""
        names = (field.name for field in fields(BM25Weighting))
        return {name: value for name in names if (value := getattr(self, name, None)) is not None}

    def b_by_field(self, b: Mapping[str, float | None], fields: Iterable[str]) -> FrozenDict[float]:
        """Return b with the default in place of None and for other fields."""
        return FrozenDict(
            dict.fromkeys(fields, self.b) | {name: self.b if field_b is None else field_b for name, field_b in b.items()}
        )


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
    b: float | Mapping[str, float]
    k3: float | None = None
    delta: float = 0.0
    epsilon: float = 0.25
    lengths: str = "exact"
    fields: FrozenDict[float] | None = None
    combine: str = "frequencies"
    phrase_idf: str = field(default="own", repr=False)  # the stored impacts of terms do not depend on it

    @classmethod
    def of(cls, variant: str, **parameters: Any) -> BM25Weighting:
        """Return the weighting of a variant, with its defaults in place of None."""
        definition = _variant(variant)
        if parameters.get("delta") is not None and definition.delta is None:
            having = " and ".join(name for name, other in VARIANTS.items() if other.delta is not None)
            raise ParameterError(f"BM25 {variant} has no delta; {having} have")
        chosen = {name: value for name, value in parameters.items() if value is not None}
        if isinstance(b := chosen.get("b"), Mapping):
            chosen["b"] = definition.b_by_field(b, chosen.get("fields") or ())
        return cls(variant, **{**definition.defaults, **chosen})

    def __post_init__(self) -> None:
        _variant(self.variant)
        check_lengths(self.lengths)
        check_phrase_idf(self.phrase_idf)
        self._check_fields()
        bs = self.b.values() if isinstance(self.b, Mapping) else (self.b,)
        if not 0 <= self.k1 < np.inf or not all(0 <= b <= 1 for b in bs):
            raise ParameterError(f"k1 must be 0 or more and b between 0 and 1, not k1={self.k1}, b={self.b}")
        if self.k3 is not None and not 0 <= self.k3 < np.inf:
            raise ParameterError(f"k3 must be 0 or more, or None, not {self.k3}")
        if not 0 <= self.delta < np.inf or not np.isfinite(self.epsilon):
            raise ParameterError(
                f"delta must be 0 or more and epsilon a number, not delta={self.delta}, epsilon={self.epsilon}"
            )
        for name in ("k1", "k3", "delta", "epsilon"):
            if abs(getattr(self, name) or 0.0) > MAX_PARAMETER:
                raise ParameterError(f"{name} must be at most {MAX_PARAMETER:g}, not {getattr(self, name):g}")

    def _check_fields(self) -> None:
        if self.combine not in COMBINE:
            raise ParameterError(f"combine must be 'frequencies' or 'sum', not {self.combine!r}")
        if self.fields is None and self.combine == "sum":
            raise ParameterError(f"combine='sum' adds up scores by field; give the fields, as {EXAMPLE}")
        if self.fields is None and isinstance(self.b, Mapping):
            raise ParameterError(f"b by field needs the fields, as {EXAMPLE}")
        if isinstance(self.b, Mapping) and self.fields is not None:
            check_names(self.b, self.fields, "b is of fields that have a weight, which is not")
        for name, b in self.b.items() if isinstance(self.b, Mapping) else ():
            if not isinstance(b, Real) or isinstance(b, bool):
                raise ParameterError(f"b of the field '{name}' must be a number from 0 to 1, not {b!r}")

    def postings(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return idf times tf part, or the weighted sum over fields."""
        if self.combine == "sum":
            return self._sum_fields(statistics, postings)
        idf = idf_of(self.idf, statistics, postings.terms, self.phrase_idf)
        weights: Float64s = postings.repeat(idf) * self._tf_part(*self._frequencies(statistics, postings))
        return weights

    def saturation(self, statistics: Statistics) -> Saturation | None:
        tf_part = VARIANTS[self.variant].tf_part
        if self.fields is not None or tf_part is tf_l:
            return None
        assert not isinstance(self.b, Mapping)
        _, mean = self._collection(statistics)
        lengths = statistics.lengths_in_one_byte if self.lengths == "lucene" else statistics.lengths
        factor, delta = 1.0 if tf_part is tf_lucene else self.k1 + 1, self.delta if tf_part is tf_plus else 0.0
        idf = partial(self.idf, statistics)
        return Saturation(factor, self.k1, delta, self.b, mean, lengths, idf, self.phrase_idf == "sum")

    def query(self, counts: Float64s) -> Float64s:
        """Return (k3 + 1) qtf / (k3 + qtf), or qtf if k3 is None."""
        return counts if self.k3 is None else (self.k3 + 1) * counts / (self.k3 + np.abs(counts))

    def cache_key(self) -> BM25Weighting:
        """Return the weighting with the default k3 and phrase_idf, which do not affect the postings of terms."""
        return self if self.k3 is None and self.phrase_idf == "own" else replace(self, k3=None, phrase_idf="own")

    def idf(self, statistics: Statistics, df: object) -> Any:
        """Return the idf of terms with document frequencies `df`."""
        variant = VARIANTS[self.variant]
        n, _ = self._collection(statistics)
        idf = variant.idf(n, df)
        if variant.floored:
            df_of_all = statistics.vocabulary.collection_df
            present = df_of_all[df_of_all > 0]
            return np.where(idf < 0, self.epsilon * float(np.mean(variant.idf(n, present))) if len(present) else 0.0, idf)
        return idf

    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain a posting by its idf, and its tf part with the length of the document; with fields, by field."""
        value = float(self.postings(statistics, posting)[0])
        if self.combine == "sum":
            return Explanation(value, "sum over fields", tuple(self._explain_sums(statistics, posting)))
        idf = float(idf_of(self.idf, statistics, posting.terms, self.phrase_idf)[0])
        n, _ = self._collection(statistics)
        tf, length = self._frequencies(statistics, posting)
        tf_parts: tuple[Explanation, ...] = ()
        frequency = f"{posting.tf[0]}"
        if self.fields is not None:
            frequency = f"{tf[0]:g}"
            if isinstance(self.b, Mapping):
                by_field = self._explain_lengths(statistics, posting)
            else:
                by_field = explained_tf(statistics, posting, self.fields)
            tf_parts = (Explanation(float(tf[0]), "tf: sum over fields", tuple(by_field)),)
        length_parts = () if isinstance(self.b, Mapping) else (self._explain_length(statistics, posting),)
        saturation = f"tf part: tf={frequency}, k1={self.k1:g}" + (f", delta={self.delta:g}" if self.delta else "")
        return Explanation(
            value,
            "idf times tf part",
            (
                Explanation(idf, f"idf ({self.variant}): N={n}, df={statistics.counts_of(posting.terms)[0]}"),
                Explanation(float(self._tf_part(tf, length)[0]), saturation, (*tf_parts, *length_parts)),
            ),
        )

    def _explain_length(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain the length part of a posting."""
        _, avgdl = self._collection(statistics)
        exact = statistics.weighted_lengths(posting.docs, self.fields)[0]
        rounded = statistics.weighted_lengths(posting.docs, self.fields, self.lengths)[0]
        dl = f"dl={exact:g}" + ("" if self.lengths == "exact" else f" kept as {rounded:g}")
        about = f"length: 1 - b + b dl / avgdl, b={self.b:g}, {dl}, avgdl={avgdl:.4f}"
        return Explanation(float(self._length_part(statistics, posting.docs)[0]), about)

    def _explain_lengths(self, statistics: Statistics, posting: Postings) -> Iterator[Explanation]:
        """Explain the share of each field in the weighted frequency of a posting if each field has its own b."""
        assert self.fields is not None
        for name, field_statistics, of_field in self._by_field(statistics, posting):
            weight, tf, model = self.fields[name], int(of_field.tf[0]), self.of_field(name)
            length = model._explain_length(field_statistics, of_field)
            label = f"{name}: weight {weight:g} times tf={tf} over length"
            yield Explanation(weight * tf / length.value, label, (length,))

    def _explain_sums(self, statistics: Statistics, posting: Postings) -> Iterator[Explanation]:
        """Explain the score of each field, times its weight."""
        assert self.fields is not None
        for name, field_statistics, of_field in self._by_field(statistics, posting):
            explanation = self.of_field(name).explain(field_statistics, of_field)
            weight = self.fields[name]
            yield Explanation(weight * explanation.value, f"{name}: weight {weight:g} times", (explanation,))

    def _by_field(self, statistics: Statistics, posting: Postings) -> Iterator[tuple[str, Statistics, Postings]]:
        """Yield the name, the statistics and the posting of each field that has the term of a single posting."""
        for column, name in enumerate(statistics.field_names):
            rows, of_field = posting.of_field(column)
            if len(rows):
                yield name, statistics.field(name), of_field

    def of_field(self, name: str) -> BM25Weighting:
        """Return the model of a single field."""
        if self.fields is None:
            return self
        b = self.b.get(name, VARIANTS[self.variant].b) if isinstance(self.b, Mapping) else self.b
        return replace(self, b=b, fields=None, combine="frequencies")

    def _sum_fields(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return the weighted sum of the BM25 weights of each field."""
        assert self.fields is not None
        weights = np.zeros(len(postings.docs), dtype=np.float64)
        for column, name in enumerate(statistics.field_names):
            rows, of_field = postings.of_field(column)
            weights[rows] += self.fields[name] * self.of_field(name).postings(statistics.field(name), of_field)
        return weights

    def _frequencies(self, statistics: Statistics, postings: Postings) -> tuple[Float64s, Float64s]:
        """Return tf and the length part of each posting; if each field has its own b, the sum of tf / length part, and 1."""
        if self.fields is None or not isinstance(self.b, Mapping):
            return statistics.weighted_tf(postings, self.fields), self._length_part(statistics, postings.docs)
        tf = np.zeros(len(postings.docs), dtype=np.float64)
        for column, name in enumerate(statistics.field_names):
            rows, of_field = postings.of_field(column)
            tf_of_field, length = self.of_field(name)._frequencies(statistics.field(name), of_field)
            tf[rows] += self.fields[name] * (tf_of_field / length)
        return tf, np.ones(len(tf))

    def _collection(self, statistics: Statistics) -> tuple[int, float]:
        """Return N and avgdl; with Lucene's lengths, of the documents with at least one term."""
        n, tokens = statistics.documents, statistics.weighted_tokens(self.fields)
        mean = tokens / n if tokens else 1.0  # if only deleted documents have terms
        if self.lengths == "exact":
            return n, mean
        counted = statistics.documents_with_terms
        return counted, mean * n / counted if counted else 1.0

    def _length_part(self, statistics: Statistics, docs: Int32s) -> Float64s:
        assert not isinstance(self.b, Mapping)
        _, avgdl = self._collection(statistics)
        part: Float64s = 1 - self.b + self.b * statistics.weighted_lengths(docs, self.fields, self.lengths) / avgdl
        return part

    def _tf_part(self, tf: Float64s, length_part: Float64s) -> Float64s:
        part: Float64s = VARIANTS[self.variant].tf_part(tf, length_part, self.k1, self.delta)
        return part


@dataclass(frozen=True)
class BM25(FieldedModel, name="bm25"):
    """BM25: the sum over the topic's terms of idf · tf part · query part; with `fields`, BM25F.

    `fontes.lexical.bm25.VARIANTS` lists the variants with formulas, defaults and sources; Robertson and Zaragoza (2009) and
    Trotman, Puurula and Burgess (2014) compare them. Textbooks advise k1 and k3 between 1.2 and 2, and b = 0.75, without
    training data.

    BM25F (Robertson, Zaragoza and Taylor, CIKM 2004) takes weighted sums over fields for tf, dl and avgdl, as if a field were
    repeated as often as its weight says; idf is computed over all fields together. If b is given by field, each tf is divided
    by its field's length part, 1 - b + b · dl / avgdl, before the sum, and the tf part has no other (Zaragoza et al., TREC
    2004). With combine="sum" the score is the weighted sum of the fields' own BM25 scores.

    Args:
        variant: Formulas of idf and tf part: lucene (as Anserini), robertson, okapi (as rank_bm25), atire, plus or l.
        k1: How slowly repetitions of a term in a document saturate, from 0 up. None: the variant's.
        b: Strength of length normalization, from 0 to 1, or one for each of `fields`. None: the variant's.
        k3: Saturation of the topic's own tf, (k3 + 1) qtf / (k3 + qtf), for topics as long as a paragraph. None: qtf.
        delta: Shift of the tf part (plus) or of tf / length (l), from 0 up. None: the variant's.
        epsilon: Okapi's replacement for a negative idf, as a fraction of the mean idf.
        lengths: "exact", or "lucene": rounded to Lucene's one byte, for Lucene's scores.
        combine: "frequencies", BM25F; or "sum" of scores by field, each with the field's own statistics.
        phrase_idf: Idf of phrases and windows: "own", or "sum" of that of their terms, as in Lucene.
    """

    index: State = field(repr=False)
    variant: str = "lucene"
    k1: float | None = tuned(None, (0.1, 4.5, 0.2), (0.0, np.inf), usual=True)
    b: float | Mapping[str, float] | None = tuned(None, (0.0, 1.0, 0.1), (0.0, 1.0), usual=True)
    k3: float | None = tuned(None, [None, 0.0, 2.0, 8.0], (0.0, np.inf), usual=True)
    delta: float | None = tuned(None, (0.0, 1.5, 0.1), (0.0, np.inf))
    epsilon: float = 0.25
    lengths: str = "exact"
    fields: Mapping[str, float] | None = WEIGHTS
    combine: str = "frequencies"
    phrase_idf: str = "own"
    k: int = 1000
    threads: int | None = field(default=None, repr=False)
    where: str | None = None

    @cached_property
    def weighting(self) -> BM25Weighting:
        """Model with its parameters, defaults filled in."""
        return BM25Weighting.of(**self._parameters_of(BM25Weighting))

    def shown(self) -> dict[str, Any]:
        """Return the parameters that all variants have, and others that differ from the default of the variant."""
        complete, always = self._complete, VARIANTS["lucene"].defaults
        shown = super().shown() | {name: getattr(complete, name) for name in always}
        usual = {} if self.variant not in VARIANTS else VARIANTS[self.variant].defaults
        return {
            name: shown[name]
            for name in self.params()
            if name in shown and (name in always or name not in usual or shown[name] != usual[name])
        }

    def entries(self, name: str) -> Mapping[str, Any]:
        b = self._complete.b
        if name == "b" and self.fields is not None:
            return b if isinstance(b, Mapping) else dict.fromkeys(self.fields, b)
        return super().entries(name)

    @property
    def _complete(self) -> BM25:
        if self.variant not in VARIANTS:
            return self
        definition = VARIANTS[self.variant]
        b: Any = definition.b_by_field(self.b, self.fields or ()) if isinstance(self.b, Mapping) else self.b
        defaults = {name: value for name, value in definition.defaults.items() if getattr(self, name) is None}
        return replace(super()._complete, **{"b": b, **defaults})

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
