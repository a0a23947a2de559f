"""Language models in runs and topics: the token budget, and the facts about model answers in a run's provenance."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .values import Topic, Topics

NAME = "llm"  # key of model answers in a topic's metadata and a run's provenance
ANSWER = "answer"  # key of the answer to the user in a topic's metadata
COUNT_NAMES = ("answers", "prompt_tokens", "completion_tokens", "repaired", "unknown", "missing")


class TokenBudget:
    """Tokens that language models may use, shared by threads. A call reserves the most that it may use, then reports its use.

    Args:
        limit: The maximum number of tokens.
        spent: Tokens spent earlier.
    """

    def __init__(self, limit: int, spent: int = 0) -> None:
        self.limit, self.spent, self._reserved = limit, spent, 0
        self._change = threading.Condition()

    def reserve(self, tokens: int) -> bool:
        """Reserve tokens for a call, waiting for calls in progress if they may leave enough; False if there are too few."""
        with self._change:
            while self.spent + self._reserved + tokens > self.limit:
                if self.spent + tokens > self.limit or not self._reserved:
                    return False
                self._change.wait()
            self._reserved += tokens
            return True

    def reserve_rest(self) -> int:
        """Reserve all remaining tokens, and return their number."""
        with self._change:
            remaining = max(0, self.limit - self.spent - self._reserved)
            self._reserved += remaining
            return remaining

    def left(self) -> int:
        """Return the number of tokens that are not spent."""
        return self.limit - self.spent

    def used(self) -> int:
        """Return the number of tokens that are spent or reserved."""
        return self.spent + self._reserved

    def settle(self, reserved: int, used: int) -> None:
        """Replace a reservation by the tokens that were used."""
        with self._change:
            self._reserved -= reserved
            self.spent += used
            self._change.notify_all()


def answers_of(topics: Topics) -> dict[str, object]:
    """Return counts and SHA-256 sums of the answers of language models that topics carry; empty without any."""
    facts = (topic.metadata.get(NAME) for topic in topics.values() if topic.metadata)
    return join_facts(fact for listed in facts if isinstance(listed, (list, tuple)) for fact in listed if _is_fact(fact))


def cited_answer(topic: Topic) -> dict[str, Any] | None:
    """Return the answer with citations that a topic carries, as JSON values with "text" and "sentences"; None without one."""
    value = topic.metadata.get(ANSWER)
    return dict(value) if isinstance(value, Mapping) and {"text", "sentences"} <= value.keys() else None


def join_facts(facts: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Join the facts of several answers: counts are added, sums and models are listed once."""
    sums: dict[str, None] = {}
    models: dict[str, None] = {}
    counts = dict.fromkeys(COUNT_NAMES, 0)
    for fact in facts:
        sums |= dict.fromkeys(fact["sums"])
        models |= dict.fromkeys(fact["models"])
        for name in COUNT_NAMES:
            counts[name] += fact.get(name, 0)
    return {"models": list(models), **counts, "sums": list(sums)} if sums else {}


def sums_of(provenance: Mapping[str, object]) -> list[str]:
    """Return the sums of all answers behind a run, also of runs that it was fused from, in ascending order."""
    return sorted({value for facts in _facts(provenance) for value in facts["sums"]})


def _facts(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if _is_fact(value.get(NAME)):
            yield value[NAME]
        for item in value.values():
            yield from _facts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _facts(item)


def _is_fact(value: object) -> bool:
    return isinstance(value, Mapping) and {"models", "sums"} <= value.keys()
