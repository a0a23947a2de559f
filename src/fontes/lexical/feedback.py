"""Pseudo-relevance feedback: query expansion from the best documents of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from ..core.errors import ParameterError
from ..core.parameters import tuned
from ..core.query import Clause, Condition, Group, Term, terms_of
from ..core.run import Ranking, Run
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..text.analyzer import MAX_CACHED_WORDS

if TYPE_CHECKING:
    from ..index import Index

TERM_LENGTHS = range(2, 21)  # of feedback terms, in characters


@dataclass(frozen=True)
class RM3(Stage[Run, Topics], name="rm3"):
    """RM3 as Anserini runs it: `bm25() >> rm3() >> bm25()`.

    Each of the first `fb_docs` documents contributes its `fb_terms` most frequent terms. The relevance model weights a term by
    the sum over these documents of its share among the document's terms times the document's score. Its best `fb_terms` terms,
    normalized to sum 1, are interpolated with the topic's own normalized terms, which have the weight `original_weight`. The
    new topic holds the terms as `weights` and the old topic as `origin`.

    A structured query keeps its required and excluded clauses, the weights of its clauses are scaled to sum `original_weight`,
    and the terms of the relevance model are added as clauses that should match.

    Terms of one character or more than 20, and those with other characters than letters and digits (Anserini: a to z and
    digits) are left out. A topic without results is returned unchanged.

    (Abdul-Jaleel et al., TREC 2004; Lavrenko and Croft, SIGIR 2001.)

    Args:
        index: The index of the documents, whose stored text gives their terms.
        fb_docs: Feedback documents per topic.
        fb_terms: Terms of each document and of the relevance model.
        original_weight: Weight of the topic's own terms, from 0 to 1.
        max_df: Greatest share of documents that may hold a term.
    """

    index: Index = field(repr=False)
    fb_docs: int = tuned(10, [5, 10, 20])
    fb_terms: int = tuned(10, [5, 10, 20, 50])
    original_weight: float = tuned(0.5, (0.1, 0.9, 0.1), (0.0, 1.0))
    max_df: float = 0.1

    def check(self) -> None:
        if self.fb_docs < 1 or self.fb_terms < 1 or not 0 <= self.original_weight <= 1:
            raise ParameterError(
                f"fb_docs and fb_terms must be 1 or more and original_weight between 0 and 1, not fb_docs={self.fb_docs}, "
                f"fb_terms={self.fb_terms}, original_weight={self.original_weight}"
            )

    def apply(self, run: Run, /) -> Topics:
        self.check()
        return Topics(map(self.one, run.values()))

    @property
    def docs_read(self) -> int:
        return self.fb_docs

    def one(self, ranking: Ranking, k: int = 0, /) -> Topic:
        topic = ranking.topic
        model = self._relevance_model(ranking)
        if not model:
            return topic
        if topic.query is not None:
            return replace(topic, query=self._add_terms(topic.query, _scaled(model)), origin=topic)
        mixed = {term: self.original_weight * weight for term, weight in self._own_terms(self._mixed_with(topic)).items()}
        for term, weight in _scaled(model).items():
            mixed[term] = mixed.get(term, 0.0) + (1 - self.original_weight) * weight
        return replace(topic, weights=mixed, origin=topic)

    def _add_terms(self, query: Group, model: Mapping[str, float]) -> Group:
        """Return a structured query with further terms that should match; its required and excluded clauses stay."""
        scored = weighted_by(query, query.weight)
        total = sum(abs(clause.weight) for clause in scored.scored)
        scored = weighted_by(scored, self.original_weight / total) if total else scored
        terms = (Term(term, weight=(1 - self.original_weight) * weight) for term, weight in model.items())
        return Group(scored.must, (*scored.should, *terms), scored.must_not)

    def _mixed_with(self, topic: Topic) -> Topic:
        return topic

    def _own_terms(self, topic: Topic) -> dict[str, float]:
        """Return the weights of a topic, of the terms in its query, or the share of each term of its text; they sum to 1."""
        if topic.query is not None:
            weights: dict[str, float] = {}
            for clause in weighted_by(topic.query, topic.query.weight).scored:
                for term in terms_of(clause):
                    weights[term] = weights.get(term, 0.0) + clause.weight
            return _scaled(weights)
        return _scaled(Counter(self.index.analyzer(topic.text)) if topic.weights is None else topic.weights)

    def _relevance_model(self, ranking: Ranking) -> dict[str, float]:
        """Return the best terms of the relevance model, with weights that are not normalized."""
        best, index = ranking.top(self.fb_docs), self.index
        docs = best.docs() if best.documents is index else index.docs(best.ids)
        model: dict[str, float] = {}
        for score, terms in zip(best.scores.tolist(), index.analyzed_docs(docs), strict=True):
            counts = _ordered(Counter(terms))
            fitting = islice(filter(self._fits, counts), self.fb_terms)
            for term, share in _scaled({term: counts[term] for term in fitting}).items():
                model[term] = model.get(term, 0.0) + share * score
        return dict(islice(_ordered(model).items(), self.fb_terms))

    @cached_property
    def _fits(self) -> Callable[[str], bool]:
        """Whether a term may become a feedback term."""
        index, max_df = self.index, self.max_df * self.index.documents_with_terms

        @lru_cache(MAX_CACHED_WORDS)
        def fits(term: str) -> bool:
            return len(term) in TERM_LENGTHS and term.isalnum() and 0 < index.df_of(term) <= max_df

        return fits


@dataclass(frozen=True)
class CausalFeedback(RM3, name="causal_feedback"):
    """Terms of possible causes of an event: `bm25() >> rm3() >> bm25() >> causal_feedback() >> bm25()`.

    Documents about the causes of an event share few terms with those about the event itself. RM3 finds the topical terms,
    P(w|R); a search for these retrieves documents in which terms of causes are more frequent. Their relevance model, P(w|R'),
    estimated as in `RM3`, is divided by the topical one, which puts frequent terms that are not topical first:

        P(w|C) ∝ P(w|R') / P(w|R)   for terms of the topical model
        P(w|C) ∝ P(w|R') / ε        for all others, where ε is the mean of P(w|R') over its `fb_terms` terms

    P(w|C), normalized to sum 1, is interpolated with the terms that the topic had before RM3, which have the weight
    `original_weight`. P(w|R) are the weights of the run's topic, as set by `rm3`, or the shares of the topic's own terms. A
    topic without results is returned unchanged.

    After Datta, Ganguly, Roy, Bonin, Jochim and Mitra, "Retrieving Potential Causes from a Query Event" (SIGIR 2020), and the
    steps of their code, except that the relevance models are estimated as in `RM3`.

    Args:
        index: The index of the documents, whose stored text gives their terms.
        fb_docs: Feedback documents per topic.
        fb_terms: Terms of each document and of the relevance model.
        original_weight: Weight of the topic's terms before RM3, from 0 to 1.
        max_df: Greatest share of documents that may hold a term.
    """

    def _mixed_with(self, topic: Topic) -> Topic:
        return topic if topic.weights is None or topic.origin is None else topic.origin

    def _relevance_model(self, ranking: Ranking) -> dict[str, float]:
        model = _scaled(super()._relevance_model(ranking))
        topical = self._own_terms(ranking.topic)
        mean = 1 / max(len(model), 1)
        return {term: weight / (share if (share := topical.get(term, 0.0)) > 0 else mean) for term, weight in model.items()}


def _ordered(weights: Mapping[str, float]) -> dict[str, float]:
    """Return terms and weights, the greatest first; among equals the first term."""
    return dict(sorted(sorted(weights.items()), key=itemgetter(1), reverse=True))


def _scaled(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights scaled to sum 1; none if their sum is not above 0."""
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()} if total > 0 else {}


def weighted_by(group: Group, factor: float) -> Group:
    """Return a group of weight 1 in which the weights of clauses are multiplied by a factor and the weights of their groups."""

    def weighted(clause: Clause) -> Clause:
        if isinstance(clause, Condition):
            return clause
        if isinstance(clause, Group):
            return weighted_by(clause, factor * clause.weight)
        return replace(clause, weight=factor * clause.weight)

    return Group(tuple(map(weighted, group.must)), tuple(map(weighted, group.should)), group.must_not)
