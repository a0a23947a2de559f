"""Base class of parts that prompt a language model, and the facts that they record about its answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..core.answers import NAME, join_facts
from ..core.errors import ParameterError
from ..core.part import Part
from ..core.values import Explanation, Topic
from ..neural.models.base import check_fields
from ..storage.hashes import hash_json
from .answers import Request, StoredAnswer
from .model import Model
from .prompts import Message, Prompt

FILE = {"file": True}  # metadata of a field that may be the path of a file


@dataclass(frozen=True)
class LlmPart(Part):
    """A part that prompts a language model.

    Args:
        model: Language model; a string is the name of an `llm`.
        prompt: Name of a prompt of Fontes, or the path of your own file, FILE.md.
        max_tokens: Maximum tokens of an answer; a model that thinks first needs more.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("query",)
    """Placeholders that the prompt may have; it must have the first."""
    chooses: ClassVar[bool] = False
    """Whether the prompt must name two answers between which the model chooses."""

    model: Model | str = field(metadata={"string": "llm"})
    prompt: str = field(default="", kw_only=True, metadata=FILE)
    max_tokens: int = field(default=256, kw_only=True, metadata={"least": 1})

    @property
    def llm(self) -> Model:
        """The model."""
        model: Model = self.params()["model"]
        return model

    def check(self) -> None:
        if not isinstance(self.llm, Model):
            raise ParameterError(f"{self._label} takes a language model, such as 'gpt-4o-mini' or llm(…), not {self.model!r}")
        check_fields(self)
        if self.chooses and len(self._prompt.choices) != 2:
            raise ParameterError(
                f"prompt {self.prompt}: it names no two answers; write a line such as 'answers: yes, no' in its head"
            )
        super().check()

    def key(self) -> str | None:
        key = Part.key(self)  # not `super().key()`, which for a reranker is its fingerprint
        return None if key is None else f"{key} {hash_json([self._prompt.sections, self._prompt.choices])}"

    @property
    def _prompt(self) -> Prompt:
        return Prompt.of(self.prompt, *self.placeholders)

    def request(self, messages: Sequence[Message], **settings: Any) -> Request:
        """Return a request with the messages of a prompt."""
        return Request(tuple(messages), **{"max_tokens": self.max_tokens, **settings})


def fact_of(model: Model, answers: Sequence[StoredAnswer], **counts: int) -> dict[str, object]:
    """Return the fact to record about answers: the model, counts, and the answers' SHA-256."""
    return {
        "models": [model.fingerprint],
        "answers": len(answers),
        "prompt_tokens": sum(answer.prompt_tokens for answer in answers),
        "completion_tokens": sum(answer.completion_tokens for answer in answers),
        **{name: count for name, count in counts.items() if count},
        "sums": [answer.digest for answer in answers],
    }


def with_fact(topic: Topic, fact: dict[str, object], **changes: Any) -> Topic:
    """Return a topic with changes, and with a fact about answers added to its metadata."""
    previous = topic.metadata.get(NAME)
    facts = [*(previous if isinstance(previous, list) else []), fact]
    metadata = {**topic.metadata, **changes.pop("metadata", {}), NAME: facts}
    return dataclasses.replace(topic, metadata=metadata, **changes)


def provenance_of(facts: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return facts about answers as an entry of a run's provenance; empty without facts."""
    return {NAME: summary} if (summary := join_facts(facts)) else {}


def explanation_of(request: Request, answer: StoredAnswer, value: float, label: str) -> Explanation:
    """Return an explanation with the messages sent and the answer."""
    sent = tuple(Explanation(number, f"sent as {role}: {text}") for number, (role, text) in enumerate(request.messages, 1))
    return Explanation(value, label, (*sent, Explanation(len(sent) + 1, f"answered: {answer.text}")))
