"""The sequential dependence model: topics as terms, and pairs of neighbours as phrases and windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.query import Group, Leaf, Phrase, Term, Window
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class SequentialDependence(Stage[Topics, Topics], name="sdm"):
    """Sequential dependence model: `sdm() >> ql()`, or another lexical model.

    The topic's `query` becomes its terms, each pair of neighbours as a phrase (Indri's #1) and each as an unordered window
    (#uw8). A score is the sum over these clauses of weight times the model's score, in which phrases and windows count as
    terms. A stop word between two neighbours leaves a gap in the phrase. A topic with weights or a structured query is
    returned unchanged. The index must keep positions.

    (Metzler and Croft, "A Markov random field model for term dependencies", SIGIR 2005.)

    Args:
        index: The index that is searched, whose analyzer makes the terms.
        weights: Weights of a term, a phrase and a window; one of weight 0 is left out.
        window: The width of windows, in positions.
    """

    index: Index = field(repr=False)
    weights: tuple[float, float, float] = (0.85, 0.10, 0.05)
    window: int = 8

    def check(self) -> None:
        weights = self.weights if isinstance(self.weights, (tuple, list)) else ()
        if len(weights) != 3 or not all(isinstance(weight, Real) and 0 <= weight < float("inf") for weight in weights):
            raise ParameterError(f"weights are three numbers of terms, phrases and windows from 0 up, not {self.weights!r}")
        check_whole("window", self.window, 2)
        if any(weights[1:]):
            self.index.require_positions()

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        vocabulary = replace(self.index.analyzer, words=(1, 1)).vocabulary()
        return Topics(self._expand(topic, vocabulary) for topic in topics.values())

    def _expand(self, topic: Topic, vocabulary: Vocabulary) -> Topic:
        if topic.weights is not None or topic.query is not None:
            return topic
        spans = vocabulary.spans(topic.text)
        words = [(term, position) for position, (_, _, terms) in enumerate(spans) for term in terms]
        return replace(topic, query=Group(should=tuple(self._clauses(words))), origin=topic)

    def _clauses(self, words: list[tuple[str, int]]) -> Iterator[Leaf]:
        term_weight, phrase_weight, window_weight = self.weights
        if term_weight:
            yield from (Term(term, weight=term_weight) for term, _ in words)
        for (first, start), (second, end) in pairwise(words):
            if phrase_weight:
                yield Phrase((first, second), (0, end - start), weight=phrase_weight)
            if window_weight:
                yield Window((first, second), self.window, weight=window_weight)
