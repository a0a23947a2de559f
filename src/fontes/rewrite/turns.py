"""Rewriters that use the turns of a conversation: raw utterances, manual and automatic rewrites, the last turns."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.expression import pipeline
from ..core.part import walk
from ..core.progress import Report
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Topic, Topics, Turn

if TYPE_CHECKING:
    from ..index import Index

MISSING = ("error", "raw")


@dataclass(frozen=True)
class Raw(Stage[Topics, Topics], name="raw"):
    """Takes the raw utterance of each topic's last turn: what the user typed.

    A topic that was rewritten before gets its utterance back. One without turns gets the text that it had before any rewriting.
    """

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        return rewritten(topics, utterance)


@dataclass(frozen=True)
class AsTyped(Stage[Run, Run], name="as_typed"):
    """Gives the topics of a run the texts that they had before any rewriting, for a reranker that is to read these.

    Documents and scores stay: `plain_posts() >> bm25() % 20 >> as_typed() >> cross_encoder("MODEL")`.
    """

    def apply(self, run: Run, progress: Report, /) -> Run:
        return run.with_(topics=Topics(original(topic) for topic in run.topics.values()))


@dataclass(frozen=True)
class Carried(Stage[Topics, Topics]):
    """Takes a rewrite that each topic's last turn carries; the base of `Manual` and `Automatic`.

    Args:
        missing: What becomes of a topic without such a rewrite: "error" raises InputError, which names the topic; "raw" takes
            the raw utterance.
    """

    kind: ClassVar[str]
    """The attribute of a turn that has the rewrite."""
    missing: str = "error"

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        self.check()
        return rewritten(topics, self._rewrite)

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
class Manual(Carried, name="manual"):
    """Takes the manual rewrite that each topic's last turn carries."""

    kind = "manual"


@dataclass(frozen=True)
class Automatic(Carried, name="automatic"):
    """Takes the automatic rewrite that each topic's last turn carries, as those of TREC CAsT do since 2020."""

    kind = "automatic"


@dataclass(frozen=True)
class LastTurns(Stage[Topics, Topics], name="last_turns"):
    """Puts the raw utterances of the `k` turns before a topic's last one before its own, oldest first.

    A topic without earlier turns keeps its utterance.

    Args:
        k: How many earlier turns, from 0 up.
        first: Whether the utterance of the conversation's first turn goes before them all, once: it often names the subject.
    """

    k: int = 3
    first: bool = False

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        self.check()
        return rewritten(topics, self._joined)

    def check(self) -> None:
        check_whole("k, the number of earlier turns,", self.k, 0)

    def _joined(self, topic: Topic) -> str:
        return joined(*(turn.text for turn in last_turns(topic, self.k, self.first)), utterance(topic))


def utterance(topic: Topic) -> str:
    """The raw utterance of the topic's last turn; without turns, the text that the topic had before any rewriting."""
    return topic.turns[-1].text if topic.turns else original(topic).text


def original(topic: Topic) -> Topic:
    """The topic as it was before any rewriting."""
    while topic.origin is not None:
        topic = topic.origin
    return topic


def earlier(topic: Topic) -> tuple[Turn, ...]:
    """The turns before the topic's own, oldest first."""
    return topic.turns[:-1]


def last_turns(topic: Topic, k: int, first: bool) -> tuple[Turn, ...]:
    """The `k` turns before the topic's own, oldest first; before them, where `first` says so, the conversation's first turn."""
    before = earlier(topic)
    start = max(0, len(before) - k)
    return (*before[: min(start, int(first))], *before[start:])


def joined(*texts: str, by: str = " ") -> str:
    """Texts in one, without those that are empty or blank."""
    return by.join(text.strip() for text in texts if text.strip())


def rewritten(topics: Topics, text: Callable[[Topic], str]) -> Topics:
    """The topics with the texts that `text` gives for them; each new topic keeps the one before it as its `origin`."""
    return Topics(dataclasses.replace(topic, text=text(topic), weights=None, origin=topic) for topic in topics.values())


def turns_rewriter(text: str, index: Any, doing: str) -> Stage[Topics, Topics]:
    """The stage that rewrites turns as they are typed.

    Args:
        text: An expression.
        index: The index of stages that look into one.
        doing: Name of the option, for messages.

    Raises:
        ParameterError: The expression cannot be read, or it takes rewrites that come with the turns.
        PipelineError: It does not go from topics to topics.
    """
    stage: Stage[Topics, Topics] = pipeline(text, index)
    stage.require(Topics, Topics, doing)
    for part in walk(stage):
        if isinstance(part, Carried) and part.missing == "error":
            raise ParameterError(f"what is typed carries no {part.kind} rewrite, so {part!r} has nothing to take")
    return stage


def conversation_of(topic: Topic) -> str:
    """The id of the conversation of a turn: the topic's without the last "_" and what follows."""
    return topic.id.rpartition("_")[0] or topic.id


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
