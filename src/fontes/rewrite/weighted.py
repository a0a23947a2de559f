"""Earlier turns as terms of less weight: a rewriter for lexical retrieval that needs no model."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topic, Topics
from .turns import LastTurns, last_turns, utterance

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class WeightedTurns(Stage[Topics, Topics], name="weighted_turns"):
    """Gives each topic the terms of its raw utterance and, with less weight, those of earlier turns that it lacks.

    The text becomes that of `LastTurns(k, first)`, for retrievers that use no weights. The utterance alone makes nothing of
    "why?"; joined to earlier turns as equals, it finds their documents again. This is between the two, a baseline of our own.

    Args:
        index: The index whose analyzer makes the terms; best the one that is searched.
        k: How many turns before the last one, from 0 up.
        weight: The weight of each of their terms, 0 or more, however often it was said; a term of the utterance counts 1 for
            each time.
        first: Whether the conversation's first turn counts among the earlier ones.
    """

    index: Index
    k: int = 1
    weight: float = field(default=0.3, metadata={"range": (0.1, 0.9, 0.1)})
    first: bool = True

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        self.check()
        joined = LastTurns(self.k, self.first)(topics)
        return Topics(dataclasses.replace(topic, weights=self._weights(topic)) for topic in joined.values())

    def check(self) -> None:
        check_whole("k, the number of earlier turns,", self.k, 0)
        if not isinstance(self.weight, Real) or isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise ParameterError(f"WeightedTurns: the weight of earlier turns must be 0 or more, not {self.weight!r}")

    def _weights(self, topic: Topic) -> dict[str, float]:
        turns = last_turns(topic, self.k, self.first)
        own, *others = self.index.analyzer.many([utterance(topic), *(turn.text for turn in turns)])
        said = {term: float(self.weight) for terms in others for term in terms}
        return said | {term: float(count) for term, count in Counter(own).items()}
