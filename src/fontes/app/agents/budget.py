"""Answers within a budget of tokens.

A token is estimated as four bytes of UTF-8, rounded up for each answer: no tokenizer is needed, and the count is the same for
every model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...formats.json_text import json_text

BYTES = 4  # bytes per token
MORE_TOKENS = 24  # tokens reserved for the sentence on how to get more items
END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n+")


@dataclass(frozen=True)
class Answer:
    """The answer to a call, and the facts about it for the log.

    Args:
        text: Compact JSON, or a sentence for an error.
        is_error: Whether the call failed.
        documents: Ids of the documents in the answer, in order.
        index: Name of the index.
        fingerprint: Fingerprint of the index's state.
        pipeline: Name of the pipeline.
        expression: Expression of the pipeline.
        seconds: Duration.
    """

    text: str
    is_error: bool = False
    documents: tuple[str, ...] = ()
    index: str = ""
    fingerprint: str = ""
    pipeline: str = ""
    expression: str = ""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Estimated number of tokens of the text."""
        return tokens_of(self.text)


def as_json(values: object) -> str:
    """Return values as compact JSON; a lone surrogate becomes a question mark, and NaN and infinities null."""
    text = json_text(values, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace").decode()


def tokens_of(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES)


def tokens_of_values(values: object) -> int:
    """Return the estimated number of tokens of JSON values."""
    return tokens_of(as_json(values))


def cut(text: str, tokens: int) -> str:
    """Return the beginning of a text within a budget: whole sentences if they fill half of it, or else whole words."""
    piece = text.encode("utf-8", "surrogatepass")[: max(tokens, 1) * BYTES].decode("utf-8", "ignore")
    if len(piece) >= len(text):
        return text
    ends = [match.end() for match in END.finditer(piece)]
    if ends and ends[-1] >= len(piece) / 2:
        return piece[: ends[-1]]
    space = max(piece.rfind(" "), piece.rfind("\n"))
    return piece[: space + 1] if space > 0 else piece or text[:1]


def fit(
    answer: dict[str, Any], name: str, items: Iterable[dict[str, object]], tokens: int, more: Callable[[int], str | None]
) -> dict[str, Any]:
    """Return an answer with as many items (best first, at least one) under the key `name` as its budget of tokens allows.

    `more` gets the number of items in the answer and returns a sentence on how to get more of them; None if there are no more.
    """
    chosen: list[dict[str, object]] = []
    remaining = tokens - tokens_of_values({**answer, name: []}) - MORE_TOKENS
    for item in items:
        cost = tokens_of(as_json(item) + ",")
        if cost > remaining:
            if not chosen:
                chosen.append(shortened(item, remaining))
            break
        chosen.append(item)
        remaining -= cost
    result = {**answer, name: chosen}
    if sentence := more(len(chosen)):
        result["more"] = sentence
    return result


def shortened(item: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Return a copy of an item whose longest values are halved until it fits; its id is never shortened."""
    item = dict(item)
    while tokens_of_values(item) > tokens:
        sizes = {
            key: len(as_json(value)) for key, value in item.items() if key != "id" and isinstance(value, (str, list, dict))
        }
        key = max(sizes, key=lambda name: sizes[name], default="")
        if not key:
            break
        value = item.pop(key)
        if len(value) > 1:
            half = len(value) // 2
            item[key] = dict(islice(value.items(), half)) if isinstance(value, dict) else value[:half]
    return item
