"""What a conversation carries, as rewriters: raw utterances, manual and automatic rewrites, the last turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topic, Topics, Turn

MISSING = ("error", "raw")


@dataclass(frozen=True)
class Raw(Stage[Topics, Topics], name="raw"):
    """Topics whose text is the raw utterance of their last turn: what the user typed.

    A topic that was rewritten before gets its utterance back. One without turns gets the text that it had before any rewriting.
    """

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        return rewritten(given, utterance)


@dataclass(frozen=True)
class Carried(Stage[Topics, Topics]):
    """Topics whose text is a rewrite that their last turn carries; the base of `Manual` and `Automatic`."""

    kind: ClassVar[str]
    missing: str = "error"

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        if self.missing not in MISSING:
            raise ParameterError(f"missing is {' or '.join(map(repr, MISSING))}, not {self.missing!r}")
        return rewritten(given, self._text)

    def _text(self, topic: Topic) -> str:
        found: str = getattr(topic.turns[-1], self.kind) if topic.turns else ""
        if found.strip():
            return found
        if self.missing == "error":
            lack = f"its last turn has no {self.kind} rewrite" if topic.turns else f"no turns, and so no {self.kind} rewrite"
            raise InputError(f"topic '{topic.id}': {lack}; missing='raw' takes the raw utterance instead")
        return utterance(topic)


@dataclass(frozen=True)
class Manual(Carried, name="manual"):
    """Topics whose text is the manual rewrite that their last turn carries.

    missing   what a topic without one does: "error" raises InputError, which names the topic; "raw" takes the raw utterance
    """

    kind = "manual"


@dataclass(frozen=True)
class Automatic(Carried, name="automatic"):
    """Topics whose text is the automatic rewrite that their last turn carries, as those of TREC CAsT do since 2020.

    missing   what a topic without one does: "error" raises InputError, which names the topic; "raw" takes the raw utterance
    """

    kind = "automatic"


@dataclass(frozen=True)
class LastTurns(Stage[Topics, Topics], name="last_turns"):
    """Topics whose text is the raw utterances of the `k` turns before their last one, then its own, oldest first.

    k       how many earlier turns, from 0 up
    first   the utterance of the conversation's first turn goes before them all, once: it often names the subject

    A topic without earlier turns keeps its utterance. Raises ParameterError for a `k` below 0.
    """

    k: int = 3
    first: bool = False

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        check_whole("k, the number of earlier turns,", self.k, 0)
        return rewritten(given, self._text)

    def _text(self, topic: Topic) -> str:
        before = earlier(topic)
        start = max(0, len(before) - self.k)
        turns = [*before[: min(start, 1 if self.first else 0)], *before[start:]]
        return joined(*(turn.text for turn in turns), utterance(topic))


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


def joined(*texts: str, by: str = " ") -> str:
    """Texts in one, without those that are empty or blank."""
    return by.join(text.strip() for text in texts if text.strip())


def rewritten(given: Topics, text: Callable[[Topic], str]) -> Topics:
    """Topics with the texts that `text` gives for them; each keeps the topic that was given as its `origin`."""
    return Topics(dataclasses.replace(topic, text=text(topic), weights=None, origin=topic) for topic in given.values())
