"""Base of the parts that ask a language model by a prompt, and what they note of its answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..core.answers import NAME, joined
from ..core.errors import ParameterError
from ..core.part import Part
from ..core.values import Explanation, Topic
from ..neural.models.base import check_fields
from ..storage.hashes import hash_json
from .answers import Kept, Request
from .model import Model
from .prompts import Message, Prompt

FILE = {"file": True}  # of a field with the path of a file


@dataclass(frozen=True)
class LlmPart(Part):
    """A part that asks a language model by a prompt.

    Args:
        model: Language model; a string is the name of an `llm`.
        prompt: A prompt of Fontes, or a file of one's own, FILE.md.
        max_tokens: Maximum tokens of an answer; more for a model that thinks first.
    """

    places: ClassVar[tuple[str, ...]] = ("query",)
    """Places of the prompt, the first of which it must have."""
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
        key = Part.key(self)  # not that of a reranker, which is its fingerprint
        return None if key is None else f"{key} {hash_json([self._prompt.sections, self._prompt.choices])}"

    @property
    def _prompt(self) -> Prompt:
        return Prompt.of(self.prompt, *self.places)

    def request(self, messages: Sequence[Message], **more: Any) -> Request:
        """Return a request with the messages of a prompt."""
        return Request(tuple(messages), **{"max_tokens": self.max_tokens, **more})


def fact(model: Model, answers: Sequence[Kept], **counts: int) -> dict[str, Any]:
    """Return what is noted of answers: the model, counts and sums."""
    return {
        "models": [model.fingerprint],
        "answers": len(answers),
        "prompt_tokens": sum(answer.prompt_tokens for answer in answers),
        "completion_tokens": sum(answer.completion_tokens for answer in answers),
        **{name: count for name, count in counts.items() if count},
        "sums": [answer.sum for answer in answers],
    }


def noted(topic: Topic, fact: dict[str, Any], **changes: Any) -> Topic:
    """Return a topic with changes, and a fact on answers in its metadata."""
    before = topic.metadata.get(NAME)
    metadata = {**topic.metadata, **changes.pop("metadata", {}), NAME: [*(before if isinstance(before, list) else []), fact]}
    return dataclasses.replace(topic, metadata=metadata, **changes)


def facts_of(facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return facts on answers as an entry of provenance; empty without any."""
    return {NAME: whole} if (whole := joined(facts)) else {}


def explained(request: Request, answer: Kept, value: float, label: str) -> Explanation:
    """Return an explanation with the messages that were sent, and the answer."""
    sent = tuple(Explanation(number, f"sent as {role}: {text}") for number, (role, text) in enumerate(request.messages, 1))
    return Explanation(value, label, (*sent, Explanation(len(sent) + 1, f"answered: {answer.text}")))
