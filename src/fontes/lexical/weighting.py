"""Base of lexical models: a `Weighting` computes posting weights from the collection's `Statistics`.

N is the number of documents, df the number of documents with the term, tf the term's count in the document, dl the document
length in terms, avgdl the mean dl. A score is the sum over the topic's terms of posting weight times query weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import FunctionType, MappingProxyType
from typing import Any, Protocol, cast

import numpy as np

from ..core.arrays import AnyArray, Float64s, Int32s, Int64s, Ints
from ..core.errors import ParameterError
from ..core.values import Explanation
from ..index.inversion import chunks
from ..index.parts import Part, Searchable
from ..storage.caches import Cached, LazyAttribute, weak_proxy
from .fields import chosen_fields, part_of

CHUNK_POSTINGS = 1 << 21  # postings weighted at a time
MAX_CACHED_NORMS = 8  # models
NO_IDF = 5e-324  # stands for an idf of 0, with which it gives equal weights
METHODS = (FunctionType, property, cached_property, classmethod, staticmethod)
LENGTHS = ("exact", "lucene")  # ways to count document lengths
PHRASE_IDF = ("own", "sum")  # ways to compute the idf of phrases and windows


@dataclass(frozen=True)
class Postings:
    """Postings of some terms, end to end.

    Args:
        terms: The term numbers.
        df: Number of the postings of each term.
        docs: Document ordinal of each posting.
        tf: Term frequency of each posting.
        fields: Term frequency in each separate field, (postings, F), for a weighting with `fields`; otherwise None.
    """

    terms: Ints
    df: Ints
    docs: Int32s
    tf: Int32s
    fields: Int32s | None = None

    @classmethod
    def of(cls, part: Part, weighting: Weighting, terms: Ints) -> Postings:
        """Return all postings of the terms in a part, with frequencies by field if the weighting needs them."""
        docs, tf = part.postings(terms)
        fields = None if weighting.fields is None else part.frequencies(terms)
        return cls(terms, part.df[terms], docs, tf, fields)

    def at(self, i: int) -> Postings:
        """Return a single posting of a single term."""
        rows = slice(i, i + 1)
        return replace(self, docs=self.docs[rows], tf=self.tf[rows], fields=None if self.fields is None else self.fields[rows])

    def of_field(self, column: int) -> tuple[Int64s, Postings]:
        """Return the indices of the postings that are in a field, and these as postings of the field alone."""
        assert self.fields is not None
        tf = self.fields[:, column]
        rows = np.flatnonzero(tf)
        term_of = np.repeat(np.arange(len(self.terms)), self.df)
        df = np.bincount(term_of[rows], minlength=len(self.terms))
        return rows, Postings(self.terms, df, self.docs[rows], tf[rows])

    def repeat(self, of_terms: Float64s) -> Float64s:
        """Repeat the value of each term for its postings."""
        return np.repeat(of_terms, self.df)


def posting_of(postings: Postings, doc: int) -> Postings | None:
    """Return the posting of a document among the postings of a single term; None if the document lacks the term."""
    row = int(np.searchsorted(postings.docs, doc))
    return postings.at(row) if row < len(postings.docs) and postings.docs[row] == doc else None


@dataclass(frozen=True, eq=False)
class Saturation:
    """Weights idf · (factor · tf / (tf + k1 · length) + delta), length = 1 - b + b · dl / mean, for compiled loops.

    Args:
        factor: See the formula.
        k1: See the formula.
        delta: See the formula.
        b: See the formula.
        mean: Mean of all dl.
        lengths: float64; dl of each document.
        idf: Computes idf from an array of df.
        sums_idf: Whether the idf of a phrase or window is the sum over its terms.
    """

    factor: float
    k1: float
    delta: float
    b: float
    mean: float
    lengths: Float64s
    idf: Callable[[Float64s], Float64s]
    sums_idf: bool

    @cached_property
    def parameters(self) -> tuple[float, ...]:
        """The numbers of the formula: factor, k1, delta, 1 - b, b, mean."""
        return tuple(map(float, (self.factor, self.k1, self.delta, 1 - self.b, self.b, self.mean)))

    def saturate(self, counts: Int32s, lengths: Float64s) -> Float64s:
        """Return weights without the idf, of postings with these tf and dl."""
        factor, k1, delta, constant, b, mean = self.parameters
        tf = counts.astype(np.float64)
        weights: Float64s = factor * tf / (tf + k1 * (constant + b * lengths / mean)) + delta
        return weights


class Idfs:
    """The idf of document frequencies under one model, computed by numpy when first needed.

    Args:
        function: Computes idf from an array of df.
        documents: Number of documents.

    Attributes:
        values: float64, (documents + 1,): the idf of each df; 0 if it is not computed yet.
    """

    def __init__(self, function: Callable[[Float64s], Float64s], documents: int) -> None:
        self._function, self.values = function, np.zeros(documents + 1)

    @classmethod
    def of(cls, whole: Searchable, weighting: Weighting, function: Callable[[Float64s], Float64s]) -> Idfs:
        """Return the cached idfs of a model on an index."""
        return _IDFS.of(whole).get(weighting, lambda: cls(function, len(whole)))

    def __call__(self, df: Ints) -> Float64s:
        """Return the idf of each df; a df of 0 counts as 1."""
        df = np.maximum(df, 1)
        idfs: Float64s = self.values[df]
        if not idfs.all():
            self.fill(df)
            idfs = self.values[df]
        return idfs

    def fill(self, df: Ints) -> None:
        """Compute the idf of each df that a term can have."""
        df = df[df < len(self.values)]
        with np.errstate(divide="ignore", invalid="ignore"):  # df that only deleted documents have may have no idf
            idfs = np.asarray(self._function(df.astype(np.float64)))
        self.values[df] = np.where(idfs == 0, NO_IDF, idfs)


class Weighting(ABC):
    """A model: a frozen dataclass whose fields are its parameters.

    `postings` computes the formula for many postings; `explain` explains one.
    """

    fields: Mapping[str, float] | None = None
    """Weights of separate fields, above 0, for a model that weighs them."""

    @abstractmethod
    def postings(self, statistics: Statistics, postings: Postings) -> Float64s:
        """Return the weight of each posting, float64."""

    def query(self, counts: Float64s) -> Float64s:
        """Return the query weights of a topic's terms, float64; by default the counts.

        Args:
            counts: Count of each term in the topic, or its weight.
        """
        return counts

    @property
    def weighs_terms_alone(self) -> bool:
        """Whether the query weight of a term depends only on its own count."""
        return True

    @abstractmethod
    def explain(self, statistics: Statistics, posting: Postings) -> Explanation:
        """Explain the weight of one posting."""

    def saturation(self, statistics: Statistics) -> Saturation | None:
        """Return the weights of postings as a `Saturation`; None for a model of another form.

        A class that defines other methods does not inherit it; see `saturation_of`.
        """
        return None

    def of_field(self, name: str) -> Weighting:
        """Return the model of a single field, which has no `fields`."""
        return self if self.fields is None else replace(self, fields=None)  # type: ignore[type-var]

    def cache_key(self) -> Weighting:
        """Return a weighting with equal posting weights and default query parameters."""
        return self


def saturation_of(weighting: Weighting, statistics: Statistics) -> Saturation | None:
    """Return the saturation of a weighting; None if it is inherited by a class whose own methods may change the weights."""
    for cls in type(weighting).__mro__:
        if "saturation" in vars(cls):
            return weighting.saturation(statistics)
        if any(isinstance(value, METHODS) for name, value in vars(cls).items() if not name.startswith("__")):
            return None
    return None


class Statistics:
    """Collection statistics for weightings; for a part, those of the whole index, with the part's documents and terms.

    Args:
        index: The part, or the index.

    Attributes:
        documents: N, the number of documents.
        tokens: Total number of terms in all documents.
    """

    def __init__(self, index: Searchable | Part) -> None:
        self._index: Any = index
        self._whole = cast(Searchable, weak_proxy(index.whole) if hasattr(index, "whole") else index)
        self.documents = len(self._whole)
        self.tokens = self._whole.tokens
        self._norms: Cached[Weighting, Float64s] = Cached(MAX_CACHED_NORMS)

    @classmethod
    def of(cls, index: Searchable | Part) -> Statistics:
        """Return the cached statistics of an index in its present state, or of a part."""
        return _STATISTICS.of(getattr(index, "state", index))

    @cached_property
    def lengths(self) -> Float64s:
        """dl of each document."""
        return _LENGTHS.of(base_of(self._index))[0]

    @cached_property
    def df(self) -> Float64s:
        """Document frequency of each term, float64."""
        return self._of_terms("df", None).astype(np.float64)

    @property
    def collection_df(self) -> Float64s:
        """Document frequency of each term of the collection, whether the part has it or not."""
        return self._whole.df.astype(np.float64)

    @property
    def vocabulary(self) -> Statistics:
        """Statistics of the collection's own terms."""
        return self

    @property
    def parts(self) -> Float64s | None:
        """Document frequencies of the terms of a phrase or window; None for terms of the index."""
        return None

    def over(self, lengths: Float64s) -> Statistics:
        """Return statistics of the same collection for other texts with these lengths."""
        statistics = copy(self)
        statistics.lengths, statistics._norms = lengths, Cached(MAX_CACHED_NORMS)
        vars(statistics).pop("lengths_in_one_byte", None)
        return statistics

    def counts_of(self, terms: Ints) -> Ints:
        """Return the number of documents that have each of some terms."""
        return self._of_terms("df", terms)

    def cf_of(self, terms: Ints) -> Ints:
        """Return the collection frequency of each of some terms."""
        return self._of_terms("cf", terms)

    def _of_terms(self, of: str, terms: Ints | None) -> Ints:
        if isinstance(self._index, Part):
            return self._index.in_whole(np.arange(len(self._index.df)) if terms is None else terms, of)
        counts: Ints = getattr(self._index, of)
        return counts if terms is None else counts[terms]

    def df_of(self, terms: Ints) -> Float64s:
        """Return the df of terms; at least 1, so that a term that is in no chosen field has an idf."""
        df: Float64s = np.maximum(self.counts_of(terms), 1.0)
        return df

    def field(self, name: str) -> Statistics:
        """Return the statistics of an index of one of the separate fields alone."""
        field = chosen_fields(self._whole, (name,))
        return Statistics.of(part_of(field, self._index) if isinstance(self._index, Part) else field)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Names of the separate fields, in the order of the columns of `Postings.fields`."""
        return self._whole.separate

    def weighted_tf(self, postings: Postings, weights: Mapping[str, float] | None) -> Float64s:
        """Return tf of each posting, float64; with weights, the weighted sum over fields."""
        if weights is None:
            return postings.tf.astype(np.float64)
        assert postings.fields is not None
        # Column by column, so that each sum rounds in the same way wherever it is computed.
        tf = np.zeros(len(postings.tf), dtype=np.float64)
        for column, name in enumerate(self.field_names):
            tf += weights[name] * postings.fields[:, column]
        return tf

    def weighted_lengths(self, docs: Int32s, weights: Mapping[str, float] | None, lengths: str = "exact") -> Float64s:
        """Return dl of each document, counted as one of LENGTHS; with weights, the weighted sum over fields."""
        if weights is None:
            return lengths_of(self, docs, lengths)
        dl = np.zeros(len(docs), dtype=np.float64)
        for name in self.field_names:
            dl += weights[name] * self.field(name).lengths[docs]
        return in_one_byte(np.floor(dl + 0.5)) if lengths == "lucene" else dl

    def weighted_tokens(self, weights: Mapping[str, float] | None) -> float:
        """Return the number of terms in all documents; with weights, the weighted sum over fields."""
        return self.tokens if weights is None else sum(weights[name] * self.field(name).tokens for name in self.field_names)

    @cached_property
    def cf(self) -> Float64s:
        """Collection frequency of each term, float64."""
        return self._of_terms("cf", None).astype(np.float64)

    @cached_property
    def lengths_in_one_byte(self) -> Float64s:
        """dl of each document, rounded as Lucene does."""
        lengths, in_bytes = _LENGTHS.of(base_of(self._index))
        return in_bytes() if self.lengths is lengths else in_one_byte(self.lengths)

    @cached_property
    def documents_with_terms(self) -> int:
        """Number of documents with at least one term: N as Lucene counts it."""
        counted: int | None = getattr(self._whole, "documents_with_terms", None)
        return int(np.count_nonzero(self._whole.lengths)) if counted is None else counted

    def norms(self, weighting: Weighting) -> Float64s:
        """Return the Euclidean norm of each document's posting weights; 1 for a row of zeros."""
        return self._norms.get(weighting, lambda: self._norms_of(weighting))

    def _norms_of(self, weighting: Weighting) -> Float64s:
        assert isinstance(self._index, Part)
        squares = np.zeros(len(self._index), dtype=np.float64)
        for first, last in chunks(self._index.df, CHUNK_POSTINGS):
            postings = Postings.of(self._index, weighting, np.arange(first, last))
            weights = weighting.postings(self, postings)
            np.add.at(squares, postings.docs, weights * weights)  # term by term, so that sums do not depend on chunks
        norms = np.sqrt(squares)
        norms[norms == 0] = 1.0
        return norms


class Counted(Protocol):
    """Documents and occurrences of a clause."""

    @property
    def df(self) -> int:
        """Document frequency."""
        ...

    @property
    def cf(self) -> int:
        """Collection frequency."""
        ...


class ClauseStatistics(Statistics):
    """Statistics of a clause of a structured query that counts as a term: number 0, with its own df and cf.

    The other statistics are those of the collection; for a clause in one field, lengths and tokens are those of the field.

    Args:
        vocabulary: Statistics of the collection.
        counts: The documents that match.
        parts: Computes the document frequencies of the terms of a phrase or window.
        lengths: Length of the field in each document; None: of the documents.
        tokens: Number of terms of the field in all documents.
        present: Number of documents with a term in the field.
        by_field: The same in each separate field, for a model that weighs fields.
    """

    def __init__(
        self,
        vocabulary: Statistics,
        counts: Counted,
        parts: Callable[[], Float64s | None],
        lengths: Float64s | None = None,
        tokens: int = 0,
        present: int = 0,
        by_field: Mapping[str, Statistics] = MappingProxyType({}),
    ) -> None:
        self._by_field, self._vocabulary, self._counts, self._parts = by_field, vocabulary, counts, parts
        self._present = None if lengths is None else present
        self.documents = vocabulary.documents
        self.tokens = vocabulary.tokens if lengths is None else tokens
        self.lengths = vocabulary.lengths if lengths is None else lengths
        self.df = np.array([counts.df], dtype=np.float64)

    def counts_of(self, terms: Ints) -> Ints:
        df: Int64s = self.df.astype(np.int64)[terms]
        return df

    def cf_of(self, terms: Ints) -> Ints:
        cf: Int64s = self.cf.astype(np.int64)[terms]
        return cf

    @cached_property
    def cf(self) -> Float64s:
        """Collection frequency of the clause."""
        return np.array([self._counts.cf], dtype=np.float64)

    @property
    def vocabulary(self) -> Statistics:
        return self._vocabulary

    @property
    def parts(self) -> Float64s | None:
        return self._parts()

    @cached_property
    def documents_with_terms(self) -> int:
        """Number of documents with at least one term, or with the field."""
        return self._vocabulary.documents_with_terms if self._present is None else self._present

    def field(self, name: str) -> Statistics:
        """Return the statistics of the clause in one of the separate fields alone."""
        return self._by_field[name]

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self._by_field)

    def norms(self, weighting: Weighting) -> Float64s:
        """Return the norms of all terms of the documents."""
        return self._vocabulary.norms(weighting)


def base_of(index: Searchable | Part) -> Any:
    """Return the lists of a part, which all states of an index share; an index as it is."""
    return index.lists if isinstance(index, Part) else index


def _float_lengths(base: Any) -> tuple[Float64s, Callable[[], Float64s]]:
    lengths = base.lengths.astype(np.float64)
    return lengths, cache(lambda: in_one_byte(lengths))


_LENGTHS: LazyAttribute[object, tuple[Float64s, Callable[[], Float64s]]] = LazyAttribute("float_lengths", _float_lengths)
_IDFS: LazyAttribute[Searchable, Cached[Weighting, Idfs]] = LazyAttribute("idfs", lambda index: Cached(MAX_CACHED_NORMS))
_STATISTICS: LazyAttribute[Searchable | Part, Statistics] = LazyAttribute(
    "statistics", lambda index: Statistics(weak_proxy(index))
)


def explained_tf(statistics: Statistics, posting: Postings, weights: Mapping[str, float] | None) -> Iterator[Explanation]:
    """Explain the weighted frequency of a posting, with a part for each field that has the term."""
    if weights is not None:
        for column, name in enumerate(statistics.field_names):
            rows, of_field = posting.of_field(column)
            if len(rows):
                dl = statistics.field(name).lengths[posting.docs][0]
                label = f"{name}: weight {weights[name]:g} times tf={of_field.tf[0]}, dl={dl:g}"
                yield Explanation(weights[name] * int(of_field.tf[0]), label)


def check_phrase_idf(phrase_idf: str) -> None:
    """Raise ParameterError unless the value is one of PHRASE_IDF."""
    if phrase_idf not in PHRASE_IDF:
        raise ParameterError(f"phrase_idf must be 'own' or 'sum', not {phrase_idf!r}")


def idf_of(idf: Callable[[Statistics, Any], Any], statistics: Statistics, terms: Ints, phrase_idf: str = "own") -> Float64s:
    """Return the idf of each term; for a phrase or window from its own df, or as the sum over its terms."""
    if phrase_idf == "sum" and statistics.parts is not None:
        return np.array([np.sum(idf(statistics, np.maximum(statistics.parts, 1.0)))])
    values: Float64s = idf(statistics, statistics.df_of(terms))
    return values


def check_lengths(lengths: str) -> None:
    """Raise ParameterError unless the value is one of LENGTHS."""
    if lengths not in LENGTHS:
        raise ParameterError(f"lengths must be 'exact' or 'lucene', not '{lengths}'")


def lengths_of(statistics: Statistics, docs: Int32s, lengths: str) -> Float64s:
    """Return dl of each document, counted as one of LENGTHS."""
    collection = statistics.vocabulary
    if lengths == "lucene" and statistics.lengths is collection.lengths:
        rounded: Float64s = collection.lengths_in_one_byte[docs]
        return rounded
    exact = statistics.lengths[docs]
    return in_one_byte(exact) if lengths == "lucene" else exact


def in_one_byte(lengths: AnyArray) -> AnyArray:
    """Round lengths to Lucene's one byte: exact to 39, then four significant bits (SmallFloat.intToByte4)."""
    excess = np.maximum(lengths.astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (excess >> shift << shift))
