"""Rewriters that use turns: raw utterances, manual and automatic rewrites, the last turns."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar

from ..core.checks import check_whole
from ..core.errors import InputError, InputWarning, ParameterError
from ..core.expression import pipeline
from ..core.parameters import tuned
from ..core.part import walk
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Topic, Topics, Turn

if TYPE_CHECKING:
    from ..index import Index


MISSING = ("error", "raw")


@dataclass(frozen=True)
class Raw(Stage[Topics, Topics], name="raw"):
    """Replaces each topic's text with the raw utterance of its last turn.

    Undoes earlier rewriting. A topic without turns gets its text before any rewriting.
    """

    def apply(self, topics: Topics, /) -> Topics:
        return with_texts(topics, utterance)


@dataclass(frozen=True)
class AsTyped(Stage[Run, Run], name="as_typed"):
    """Restores the texts of a run's topics from before any rewriting, for a reranker.

    Documents and scores stay: `plain_posts() >> bm25() % 20 >> as_typed() >> cross_encoder("MODEL")`.
    """

    returns_subset: ClassVar[bool] = True

    def apply(self, run: Run, /) -> Run:
        return run.with_(topics=Topics(original(topic) for topic in run.topics.values()))


@dataclass(frozen=True)
class StoredRewrite(Stage[Topics, Topics]):
    """Uses a rewrite stored with each topic's last turn; the base of `Manual` and `Automatic`.

    Args:
        missing: How to treat topics without such a rewrite: "error", or "raw" for the raw utterance.
    """

    kind: ClassVar[str]
    """The attribute of a turn that has the rewrite."""
    missing: str = "error"

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return with_texts(topics, self._rewrite)

    def check(self) -> None:
        if self.missing not in MISSING:
            raise ParameterError(f"missing is {' or '.join(map(repr, MISSING))}, not {self.missing!r}")

    def _rewrite(self, topic: Topic) -> str:
        rewrite: str = getattr(topic.turns[-1], self.kind) if topic.turns else ""
        if rewrite.strip():
            return rewrite
        if self.missing == "error":
            lack = f"its last turn has no {self.kind} rewrite" if topic.turns else f"no turns, and so no {self.kind} rewrite"
            raise InputError(f"topic '{topic.id}': {lack}; missing='raw' takes the raw utterance instead")
        return utterance(topic)


@dataclass(frozen=True)
class Manual(StoredRewrite, name="manual"):
    """Uses the manual rewrite stored with each topic's last turn."""

    kind = "manual"


@dataclass(frozen=True)
class Automatic(StoredRewrite, name="automatic"):
    """Uses the automatic rewrite stored with each topic's last turn, as in TREC CAsT since 2020."""

    kind = "automatic"


@dataclass(frozen=True)
class LastTurns(Stage[Topics, Topics], name="last_turns"):
    """Prepends the raw utterances of the `k` turns before the last, oldest first.

    A topic without earlier turns keeps its utterance.

    Args:
        k: Earlier turns, from 0 up.
        first: Put the conversation's first turn before them.
    """

    k: int = 3
    first: bool = False

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        warn_without_turns(topics)
        return with_texts(topics, self._join)

    def check(self) -> None:
        check_whole("k, the number of earlier turns,", self.k, 0)

    def _join(self, topic: Topic) -> str:
        return join_texts(*(turn.text for turn in last_turns(topic, self.k, self.first)), utterance(topic))


def utterance(topic: Topic) -> str:
    """Return the raw utterance of the topic's last turn; without turns, its text before any rewriting."""
    return topic.turns[-1].text if topic.turns else original(topic).text


def original(topic: Topic) -> Topic:
    """Return the topic before any rewriting."""
    while topic.origin is not None:
        topic = topic.origin
    return topic


def earlier(topic: Topic) -> tuple[Turn, ...]:
    """Return the turns before the topic's own, oldest first."""
    return topic.turns[:-1]


def last_turns(topic: Topic, k: int, first: bool) -> tuple[Turn, ...]:
    """Return the `k` turns before the topic's own, oldest first; with `first`, after the conversation's first turn."""
    previous = earlier(topic)
    start = max(0, len(previous) - k)
    return (*previous[: min(start, int(first))], *previous[start:])


def warn_without_turns(topics: Topics) -> None:
    """Warn if none of several topics has turns, as those of a file of utterances: a stage that reads turns has no effect."""
    if len(topics) > 1 and not any(topic.turns for topic in topics.values()):
        problem = f"none of the {len(topics):,} topics has turns, so each is searched without the others"
        warnings.warn(InputWarning(f"{problem}; give a file of conversations, such as TREC CAsT's"), stacklevel=3)


def join_texts(*texts: str, by: str = " ") -> str:
    """Join texts that are not blank."""
    return by.join(text.strip() for text in texts if text.strip())


def with_texts(topics: Topics, text: Callable[[Topic], str]) -> Topics:
    """Return topics with new texts, each with the old topic as its `origin`."""
    return Topics(
        dataclasses.replace(topic, text=text(topic), weights=None, query=None, origin=topic) for topic in topics.values()
    )


def turns_rewriter(text: str, index: object, option: str) -> Stage[Topics, Topics]:
    """Return the stage of an expression, which rewrites turns that a user types.

    Args:
        text: An expression.
        index: Index for stages that need one.
        option: Name of the option, for messages.

    Raises:
        ParameterError: The expression is invalid, or uses rewrites stored with the turns.
        PipelineError: It is not a stage from topics to topics.
    """
    stage: Stage[Topics, Topics] = pipeline(text, index)
    stage.require(Topics, Topics, option)
    for part in walk(stage):
        if isinstance(part, StoredRewrite) and part.missing == "error":
            raise ParameterError(f"what is typed carries no {part.kind} rewrite, so {part!r} has nothing to use")
    return stage


def conversation_of(topic: Topic) -> str:
    """Return the id of a turn's conversation: the topic's id up to the last "_"."""
    return topic.id.rpartition("_")[0] or topic.id


@dataclass(frozen=True)
class WeightedTurns(Stage[Topics, Topics], name="weighted_turns"):
    """Adds the terms of earlier turns to a topic's utterance, with less weight.

    The text becomes the text of `LastTurns(k, first)`, for retrievers without weights. This is our own baseline, between the
    utterance alone, which fails for "why?", and the unweighted turns, which find the earlier documents again.

    Args:
        index: Index whose analyzer makes the terms, ideally the one that is searched.
        k: Turns before the last one, from 0 up.
        weight: Weight of each of their terms, regardless of repetitions.
        first: Whether to count the conversation's first turn among the earlier turns.
    """

    index: Index
    k: int = 1
    weight: float = tuned(0.3, (0.1, 0.9, 0.1))
    first: bool = True

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        joined = LastTurns(self.k, self.first)(topics)
        return Topics(dataclasses.replace(topic, weights=self._weights(topic)) for topic in joined.values())

    def check(self) -> None:
        check_whole("k, the number of earlier turns,", self.k, 0)
        if not isinstance(self.weight, Real) or isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise ParameterError(f"WeightedTurns: the weight of earlier turns must be 0 or more, not {self.weight!r}")

    def _weights(self, topic: Topic) -> dict[str, float]:
        turns = last_turns(topic, self.k, self.first)
        terms, *earlier_terms = self.index.analyzer.many([utterance(topic), *(turn.text for turn in turns)])
        weights = {term: float(self.weight) for terms_of_turn in earlier_terms for term in terms_of_turn}
        return weights | {term: float(count) for term, count in Counter(terms).items()}
