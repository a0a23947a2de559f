"""Queries with the reasoning of an agent: a sentence or more on why it searches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from string import Formatter

from ..core.errors import InputError, ParameterError
from ..core.stage import Stage
from ..core.values import Topic, Topics

REASONING = "reasoning"  # key of a topic's metadata
PLACEHOLDERS = (REASONING, "query")


@dataclass(frozen=True)
class WithReasoning(Stage[Topics, Topics], name="with_reasoning"):
    """Adds to each query the reasoning of the agent that asks it, its topic's `metadata["reasoning"]`.

    Retrievers that are trained on agents' reasoning read it with the query (Chen et al., 2026). A term that the template
    repeats counts more often: `with_reasoning("{query} {query} {reasoning}") >> bm25()`. A topic without reasoning, or with a
    structured query, is unchanged.

    Args:
        template: The new query, with the placeholders {reasoning} and {query}; {{ stands for a brace.
    """

    template: str = "{reasoning} {query}"

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return Topics(map(self._with_reasoning, topics.values()))

    def check(self) -> None:
        if not isinstance(self.template, str):
            raise ParameterError(f"with_reasoning: the template is a text, not {self.template!r}")
        try:
            fields = [field for field in Formatter().parse(self.template) if field[1] is not None]
        except ValueError as error:
            raise ParameterError(f"with_reasoning: the template {self.template!r} is invalid: {error}") from None
        for _, name, specification, conversion in fields:
            if name not in PLACEHOLDERS or specification or conversion:
                raise ParameterError(
                    f"with_reasoning: the template {self.template!r} has a placeholder besides {{reasoning}} and {{query}}; "
                    "a brace itself is written twice"
                )
        if REASONING not in {name for _, name, _, _ in fields}:
            raise ParameterError(f"with_reasoning: the template {self.template!r} has no {{reasoning}}")

    def _with_reasoning(self, topic: Topic) -> Topic:
        reasoning = reasoning_of(topic)
        if not reasoning or topic.query is not None:
            return topic
        text = self.template.format(reasoning=reasoning, query=topic.text.strip()).strip()
        return dataclasses.replace(topic, text=text, weights=None, origin=topic)


def reasoning_of(topic: Topic) -> str:
    """Return the reasoning of a topic with single spaces, "" without any; raises InputError if it is no text."""
    reasoning = topic.metadata.get(REASONING)
    if reasoning is None:
        return ""
    if not isinstance(reasoning, str):
        raise InputError(f"topic '{topic.id}': its reasoning is no text but a {type(reasoning).__name__}")
    return " ".join(reasoning.split())
