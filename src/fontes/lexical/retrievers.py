"""The lexical retrievers: stages from topics to runs."""

from __future__ import annotations

import itertools
import math
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Self

import numpy as np

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Report
from ..core.run import Ranking, Run
from ..core.stage import Stage, check_depth
from ..core.values import Explanation, Topic, Topics
from .searching import Bags, search_topic, search_topics
from .weightings import BM25Weighting, ImpactWeighting, LikelihoodWeighting, Postings, Statistics, TFIDFWeighting, Weighting

if TYPE_CHECKING:
    from ..index import Index

MOST_WEIGHT = 1e30  # keeps scores within float32
DEFAULTS = {"okapi": (1.5, 0.75)}  # k1 and b, as rank_bm25; all other variants as Anserini
DELTAS = {"plus": 1.0, "l": 0.5}


class Lexical(Stage[Topics, Run]):
    """A retriever whose model is a weighting. A document matches when it holds a term of the topic, whatever its score."""

    index: Index
    k: int
    threads: int | None

    @property
    @abstractmethod
    def weighting(self) -> Weighting:
        """The model with its parameters."""

    def apply(self, given: Topics, progress: Report, /) -> Run:
        k = self._depth
        weighting = self.weighting
        bags = _bags(weighting, self._counts(list(given.values())))
        return search_topics(self.index, weighting, given, bags, k, self.threads or os.cpu_count() or 1)

    def search(self, query: str | Topic, k: int = 10) -> Ranking:
        topic = query if isinstance(query, Topic) else Topic("1", query)
        k = min(check_depth(k), self._depth)
        weighting = self.weighting
        return search_topic(self.index, weighting, topic, _bags(weighting, self._counts([topic])), k)

    @property
    def _depth(self) -> int:
        return check_whole("k", self.k)

    def cut(self, k: int) -> Self:
        return self if k >= self.k else self.with_(k=k)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """The score of the document, term by term. It adds up to the score in the run."""
        topic = query if isinstance(query, Topic) else Topic("1", query)
        weighting = self.weighting
        statistics = Statistics.of(self.index)
        doc = self.index.ordinal(doc_id)
        counts = self._counts([topic])[0]
        _, terms, weights = _bags(weighting, [counts])
        parts = []
        for term, weight in zip(terms.tolist(), weights.tolist(), strict=True):
            docs, tfs = self.index.postings(np.array([term]))
            at = int(np.searchsorted(docs, doc))
            if at < len(docs) and docs[at] == doc:
                posting = Postings(np.array([term]), np.array([len(docs)]), docs[at : at + 1], tfs[at : at + 1])
                of_posting = weighting.explain(statistics, posting)
                of_query = Explanation(weight, f"query part: qtf={counts[term]:g}")
                value = weight * float(np.float32(of_posting.value))
                parts.append(Explanation(value, f"'{self.index.terms[term]}'", (of_posting, of_query)))
        total = float(np.float32(sum(part.value for part in parts)))
        return Explanation(
            total, f"{self!r}: sum over terms" if parts else "no term of the topic is in the document", tuple(parts)
        )

    def _counts(self, topics: Sequence[Topic]) -> list[dict[int, float]]:
        """For each topic its terms that the index has, as positions, and how often they occur, or their given weights."""
        analyzed = iter(self.index.analyzer.many([t.text for t in topics if t.weights is None]))
        counts = []
        for topic in topics:
            weights: Mapping[str, float] = Counter(next(analyzed)) if topic.weights is None else topic.weights
            bag: dict[int, float] = {}
            for term, weight in weights.items():
                if not isinstance(weight, Real) or not math.isfinite(weight):
                    raise InputError(f"topic '{topic.id}', term '{term}': the weight {weight!r} is not a finite number")
                if not abs(weight) <= MOST_WEIGHT:
                    raise InputError(f"topic '{topic.id}', term '{term}': the weight {weight!r} is beyond {MOST_WEIGHT:g}")
                number = self.index.term_number(term)
                if number >= 0 and weight != 0:
                    bag[number] = float(weight)
            counts.append(bag)
        return counts


@dataclass(frozen=True)
class BM25(Lexical, name="bm25"):
    """BM25: the sum over the topic's terms of idf · tf part · query part.

    With norm = k1 · (1 - b + b · dl / avgdl):

    variant     idf                                    tf part                               defaults
    lucene      ln(1 + (N - df + 0.5) / (df + 0.5))    tf / (tf + norm)                      k1=0.9, b=0.4, as Anserini
    robertson   ln((N - df + 0.5) / (df + 0.5))        (k1 + 1) tf / (tf + norm)             k1=0.9, b=0.4
    okapi       the same, below 0 replaced by          (k1 + 1) tf / (tf + norm)             k1=1.5, b=0.75, as rank_bm25
                epsilon times the mean idf
    atire       ln(N / df)                             (k1 + 1) tf / (tf + norm)             k1=0.9, b=0.4
    plus        ln((N + 1) / df)                       (k1 + 1) tf / (tf + norm) + delta     k1=0.9, b=0.4, delta=1
    l           ln((N + 1) / (df + 0.5))               (k1 + 1) c / (k1 + c), with           k1=0.9, b=0.4, delta=0.5
                                                       c = k1 · tf / norm + delta

    (Robertson and Zaragoza 2009; Trotman, Puurula and Burgess 2014 for the variants; Lv and Zhai 2011 for plus and l.)

    k3          the query part is (k3 + 1) qtf / (k3 + qtf), or qtf where k3 is None; it matters for topics as long as a
                paragraph
    lengths     "exact", or "lucene": lengths rounded to Lucene's one byte and documents without any term not counted, so
                that each score equals Lucene's
    k           how many documents a topic gets at most
    threads     default: as many as the machine has; they do not change the run

    Without training data textbooks advise k1 and k3 between 1.2 and 2, and b = 0.75.
    """

    index: Index = field(repr=False)
    variant: str = "lucene"
    k1: float | None = None
    b: float | None = None
    k3: float | None = None
    delta: float | None = None
    epsilon: float = 0.25
    lengths: str = "exact"
    k: int = 1000
    threads: int | None = field(default=None, repr=False)

    @property
    def weighting(self) -> BM25Weighting:
        """The model with its parameters, defaults filled in."""
        k1, b = DEFAULTS.get(self.variant, (0.9, 0.4))
        if self.delta is not None and self.variant not in DELTAS:
            raise ParameterError(f"BM25 {self.variant} has no delta; plus and l have")
        return BM25Weighting(
            self.variant,
            k1 if self.k1 is None else self.k1,
            b if self.b is None else self.b,
            self.k3,
            DELTAS.get(self.variant, 0.0) if self.delta is None else self.delta,
            self.epsilon,
            self.lengths,
        )

    def __repr__(self) -> str:
        w = self.weighting
        others = {"k3": w.k3, "delta": w.delta or None, "lengths": w.lengths if w.lengths != "exact" else None, "k": self.k}
        shown = [f"{name}={value}" for name, value in others.items() if value is not None]
        return f"BM25({', '.join([w.variant, f'k1={w.k1:g}', f'b={w.b:g}', *shown])})"


@dataclass(frozen=True)
class TFIDF(Lexical, name="tfidf"):
    """TF-IDF: the dot product of the topic's bag of words with the document's row of tf · ln(N / df).

    With norm="l2" both are scaled to unit length, the topic's over the words that the index has; with norm=None neither is.
    The idf is not part of the topic's side, unlike scikit-learn's.

    sublinear_tf   1 + ln(tf) for tf
    smooth_idf     ln((1 + N) / (1 + df)) + 1 for ln(N / df), as scikit-learn's default
    relative_tf    tf / dl for tf; with norm=None the plain form of textbooks
    k, threads     as for BM25

    (Salton and Buckley 1988.)
    """

    index: Index = field(repr=False)
    sublinear_tf: bool = False
    smooth_idf: bool = False
    norm: str | None = "l2"
    relative_tf: bool = False
    k: int = 1000
    threads: int | None = field(default=None, repr=False)

    @property
    def weighting(self) -> TFIDFWeighting:
        """The model with its parameters."""
        return TFIDFWeighting(self.sublinear_tf, self.smooth_idf, self.norm, self.relative_tf)


@dataclass(frozen=True)
class QueryLikelihood(Lexical, name="ql"):
    """Query likelihood with a smoothed language model of each document, as Lucene and Anserini score it.

    smoothing   "dirichlet": ln(1 + tf / (mu p(t|C))) + ln(mu / (dl + mu)) for each term that the document has, 0 where that
                is below 0 (Lucene's LMDirichletSimilarity); or "jelinek-mercer": ln(1 + (1 - lambda) tf / dl / (lambda p(t|C)))
    mu          for Dirichlet
    lambda_     for Jelinek-Mercer, the weight of the collection
    lengths     "exact", or "lucene": rounded to Lucene's one byte
    k, threads  as for BM25

    p(t|C) is (cf + 1) / (tokens + 1). (Zhai and Lafferty, SIGIR 2001.)
    """

    index: Index = field(repr=False)
    smoothing: str = "dirichlet"
    mu: float = 1000.0
    lambda_: float = 0.1
    lengths: str = "exact"
    k: int = 1000
    threads: int | None = field(default=None, repr=False)

    @property
    def weighting(self) -> LikelihoodWeighting:
        """The model with its parameters."""
        return LikelihoodWeighting(self.smoothing, self.mu, self.lambda_, self.lengths)


@dataclass(frozen=True)
class LearnedSparse(Lexical, name="learned_sparse"):
    """The dot product of given term weights: documents' vectors, which the index was built with, and topics' weights.

    For learned sparse encoders such as SPLADE or uniCOIL. A topic's vector is its `weights`; a topic with text only gets the
    weight 1 for each time that a term occurs in it.

    k, threads  as for BM25
    """

    index: Index = field(repr=False)
    k: int = 1000
    threads: int | None = field(default=None, repr=False)

    @property
    def weighting(self) -> ImpactWeighting:
        """The model with its parameters. Raises ParameterError for an index of texts."""
        if self.index.scale is None:
            raise ParameterError(
                f"{self.index.path} holds texts, not vectors; Index.build(…, vectors='vector') makes one of vectors"
            )
        return ImpactWeighting(self.index.scale)


def _bags(weighting: Weighting, counts: Sequence[dict[int, float]]) -> Bags:
    """The terms of each topic in ascending order, with their query weights."""
    ordered = [sorted(bag.items()) for bag in counts]
    terms = np.array([term for bag in ordered for term, _ in bag], dtype=np.int32)
    bounds = np.array([0, *itertools.accumulate(map(len, ordered))], dtype=np.int64)
    weights = [weighting.query(np.array([count for _, count in bag])) for bag in ordered if bag]
    return bounds, terms, weights[0] if len(weights) == 1 else np.concatenate([np.zeros(0), *weights])
