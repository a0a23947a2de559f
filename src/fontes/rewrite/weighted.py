"""Earlier turns as terms of less weight: a rewriter for lexical retrieval that needs no model."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from ..core.errors import ParameterError
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topic, Topics
from .turns import LastTurns, earlier, utterance

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class WeightedTurns(Stage[Topics, Topics], name="weighted_turns"):
    """Topics whose terms are those of the raw utterance and, with less weight, those of earlier turns that it lacks.

    index    whose analyzer finds the terms; best that which is searched
    k        how many turns before the last one, from 0 up
    weight   of each term of them, however often it was said; a term of the utterance counts 1 for each time
    first    the conversation's first turn counts among the earlier ones

    The text is that of `LastTurns(k, first)`, for retrievers that use no weights. The utterance alone makes nothing of "why?";
    joined to earlier turns as equals, it finds their documents again. This is between the two, a baseline of our
    own. Raises ParameterError for a `k` or a `weight` below 0.
    """

    index: Index
    k: int = 1
    weight: float = 0.3
    first: bool = True

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        joined = LastTurns(self.k, self.first)(given)
        if not isinstance(self.weight, Real) or isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise ParameterError(f"WeightedTurns: the weight of earlier turns must be 0 or more, not {self.weight!r}")
        return Topics(dataclasses.replace(topic, weights=self._weights(topic)) for topic in joined.values())

    def _weights(self, topic: Topic) -> dict[str, float]:
        before = earlier(topic)
        start = max(0, len(before) - self.k)
        texts = [utterance(topic), *(turn.text for turn in (*before[: self.first], *before[start:]))]
        own, *others = self.index.analyzer.many(texts)
        said = {term: float(self.weight) for terms in others for term in terms}
        return said | {term: float(count) for term, count in Counter(own).items()}
