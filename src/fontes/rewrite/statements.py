"""Statements about the user (TREC iKAT's PTKB) in queries: which of them bear on a turn, and how well they are chosen."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.parameters import tuned
from ..core.stage import Stage
from ..core.values import Qrels, Topic, Topics
from ..formats.cast import PTKB, RELEVANT
from ..lexical import BM25
from ..passages.rationales import MIN_POSITIVE_SCORE, TextScorer
from ..rerank.reranker import Reranker
from .terms import TermScores, function_words, words_of
from .turns import join_texts

if TYPE_CHECKING:
    from ..index import Index

CHOSEN = "statements"  # key of a topic's metadata
WORDS = ("content", "all")


def statements_of(topic: Topic) -> tuple[str, ...]:
    """Return the statements about a topic's user that a stage has chosen for it, best first; without such a stage, all."""
    return tuple(topic.metadata.get(CHOSEN, topic.metadata.get(PTKB, ())))


def counted_words(text: str, words: str) -> str:
    """Return a text, with "content" without English function words and signs."""
    if words == "all":
        return text
    return " ".join(word for word in words_of(text) if word[0].isalnum() and word.lower() not in function_words())


def check_words(words: str) -> None:
    """Raise ParameterError for an unknown choice of words."""
    if words not in WORDS:
        raise ParameterError(f"words is {' or '.join(map(repr, WORDS))}, not {words!r}")


@dataclass(frozen=True)
class Statements(Stage[Topics, Topics], name="statements"):
    """Appends to each query the statements about the user that bear on it, as in the baselines of TREC iKAT 2023.

    The statements of a topic are its `metadata["ptkb"]`, as read from iKAT's files; those that are chosen become its
    `metadata["statements"]`, best first, which submissions name and `canard_t5` and `llm_rewrite` can read. Each is scored
    with the topic's text, so put this stage after a rewriter: `canard_t5() >> statements()`. A topic without statements is
    unchanged. Weights of terms, as `weighted_turns` makes them, are kept.

    Args:
        index: Index whose analyzer and statistics score statements without a reranker.
        k: Maximum statements.
        reranker: Scores pairs of a query and a statement, such as the baseline's cross-encoder,
            cross-encoder/ms-marco-MiniLM-L-6-v2. None: BM25, which chooses only statements that share a term of the
            collection with the query.
        threshold: Minimum score of a chosen statement; None: any.
        words: "content" appends statements without English function words, such as "I" and "my", which have high weights in
            many collections, and BM25 ignores these words; "all" appends and scores whole statements, for `dense`.
        weight: Weight of each term of a statement, in a search by terms.
        append: Whether the statements become part of the query; otherwise they are only chosen.
    """

    index: Index
    k: int = 3
    reranker: Reranker | None = None
    threshold: float | None = None
    words: str = "content"
    weight: float = tuned(1.0, (0.1, 1.0, 0.1))
    append: bool = True

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        stated = [topic for topic in topics.values() if topic.text.strip() and topic.metadata.get(PTKB)]
        pairs = [(topic.text, statement) for topic in stated for statement in topic.metadata[PTKB]]
        if self.reranker is None:
            pairs = [(counted_words(text, self.words), counted_words(statement, self.words)) for text, statement in pairs]
        scorer = self.reranker or TextScorer(BM25(self.index))
        scores = iter(scorer.pair_scores(pairs).tolist() if pairs else ())
        least = MIN_POSITIVE_SCORE if self.reranker is None and self.threshold is None else self.threshold
        chosen: dict[str, list[str]] = {}
        for topic in stated:
            statements: Sequence[str] = topic.metadata[PTKB]
            topic_scores = list(islice(scores, len(statements)))
            best = sorted(range(len(statements)), key=lambda n: -topic_scores[n])[: self.k]
            chosen[topic.id] = [statements[n] for n in best if least is None or topic_scores[n] >= least]
        return Topics(self._with(topic, chosen[topic.id]) if topic.id in chosen else topic for topic in topics.values())

    def check(self) -> None:
        check_whole("statements: k", self.k)
        if self.reranker is not None and not isinstance(self.reranker, Reranker):
            raise ParameterError(f'statements takes a reranker, such as cross_encoder("MODEL"), not {self.reranker!r}')
        check_words(self.words)
        if not isinstance(self.weight, Real) or isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise ParameterError(f"statements: the weight must be 0 or more, not {self.weight!r}")
        super().check()

    def _with(self, topic: Topic, statements: list[str]) -> Topic:
        metadata = {**topic.metadata, CHOSEN: statements}
        if not (statements and self.append):
            return dataclasses.replace(topic, metadata=metadata)
        added = [counted_words(statement, self.words) for statement in statements]
        text, weights = join_texts(topic.text, *added), self._weights(topic, added)
        return dataclasses.replace(topic, text=text, weights=weights, query=None, origin=topic, metadata=metadata)

    def _weights(self, topic: Topic, statements: list[str]) -> Mapping[str, float] | None:
        """Return the weights of the terms of query and statements; None if all count the same."""
        if topic.weights is None and self.weight == 1:
            return None
        terms, *of_statements = self.index.analyzer.many([topic.text, *statements])
        weights = {term: float(w) for term, w in (Counter(terms) if topic.weights is None else topic.weights).items()}
        for term in (term for stated in of_statements for term in stated):
            weights[term] = weights.get(term, 0.0) + self.weight
        return weights


@dataclass(frozen=True)
class ManualStatements(Stage[Topics, Topics], name="manual_statements"):
    """Appends to each query the statements about the user that the topic's file names as relevant to it.

    For manual runs, as in TREC iKAT: `manual() >> manual_statements()`. They are `metadata["relevant_ptkb"]`, and become
    `metadata["statements"]`, as those of `statements`. A topic of a file that names none is an error.

    Args:
        words: "content" or "all", as in `statements`.
        append: Whether the statements become part of the query; otherwise they are only chosen.
    """

    words: str = "content"
    append: bool = True

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return Topics(self._with(topic) for topic in topics.values())

    def check(self) -> None:
        check_words(self.words)

    def _with(self, topic: Topic) -> Topic:
        if RELEVANT not in topic.metadata:
            raise InputError(
                f"topic '{topic.id}': its file does not say which statements are relevant; statements() chooses some"
            )
        statements = list(topic.metadata[RELEVANT])
        metadata = {**topic.metadata, CHOSEN: statements}
        if not (statements and self.append):
            return dataclasses.replace(topic, metadata=metadata)
        if topic.weights is not None:
            raise InputError(f"topic '{topic.id}' has weights of terms, which manual_statements would drop; put it before them")
        text = join_texts(topic.text, *(counted_words(statement, self.words) for statement in statements))
        return dataclasses.replace(topic, text=text, query=None, origin=topic, metadata=metadata)


def statement_scores(topics: object, qrels: object = None) -> TermScores:
    """Return precision, recall and F1 of the chosen statements, the measures of iKAT's classification of statements.

    Statements are counted over all topics that have chosen and judged ones.

    Args:
        topics: Topics after `statements`.
        qrels: Judgments of statements by their number in the list, from 1, such as the file ptkb_rel_nist of 2023: anything
            `Qrels.of` accepts. None: those that the topics' file names are relevant, all others are not.

    Raises:
        InputError: No topic has both.
    """
    chosen = {topic.id: topic.metadata for topic in Topics.of(topics).values() if CHOSEN in topic.metadata}
    if qrels is None:
        relevant = {topic: set(metadata[RELEVANT]) for topic, metadata in chosen.items() if RELEVANT in metadata}
    else:
        grades = Qrels.of(qrels)
        relevant = {
            topic: {text for number, text in enumerate(metadata[PTKB], 1) if grades[topic].get(str(number), 0) > 0}
            for topic, metadata in chosen.items()
            if topic in grades
        }
    if not relevant:
        raise InputError("no topic has chosen and judged statements; pass topics of iKAT through statements() first")
    pairs = [(set(chosen[topic][CHOSEN]), judged) for topic, judged in relevant.items()]
    counts = (sum(map(len, sets)) for sets in zip(*((judged, ours, ours & judged) for ours, judged in pairs), strict=True))
    total, predicted, correct = counts
    return TermScores(len(pairs), total, predicted, correct, "statements")
