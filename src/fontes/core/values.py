"""The small values that flow through a pipeline: documents, topics, hits, explanations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from .checks import string_of
from .edge import read
from .errors import InputError, ParameterError
from .html import of_explanation
from .table import Table


@dataclass(frozen=True, slots=True)
class Doc:
    """A document.

    Args:
        id: Unique in its collection.
        text: The text.
        title: The title, where there is one.
        metadata: Any JSON values by name.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Documents(Protocol):
    """Whoever can give the documents behind ids: an index, or any object with this one method."""

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids, in this order.

        Raises:
            InputError: There is no document with an id.
        """
        ...


class Hit(NamedTuple):
    """One document of a ranking.

    Attributes:
        id: The document's id.
        score: Its score.
        rank: Its rank, counted from 1.
    """

    id: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation.

    Args:
        text: The utterance as the user typed it.
        manual: A rewrite by hand, where there is one.
        automatic: A rewrite by a system, where there is one.
        answer: The answer that the user got.
        answer_id: The id of the document that the answer came from.
    """

    text: str
    manual: str = ""
    automatic: str = ""
    answer: str = ""
    answer_id: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need.

    Args:
        id: Unique among its topics.
        text: What is searched.
        narrative: What is relevant and what is not: the longest field of TREC's topics.
        description: The need in a sentence, as in TREC's topics.
        turns: The conversation so far, oldest first, ending with this topic's own turn.
        weights: Index terms (as the analyzer writes them) with their weights, in place of the analysis of `text`.
        origin: The topic that this one was rewritten from.
        metadata: Any JSON values by name, such as the label of a claim.
    """

    id: str
    text: str
    narrative: str = ""
    description: str = ""
    turns: tuple[Turn, ...] = ()
    weights: Mapping[str, float] | None = None
    origin: Topic | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Topics(Mapping[str, Topic]):
    """Topics by id, in the order in which they came. Immutable."""

    __slots__ = ("_topics",)

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        """Topics in their order.

        Raises:
            InputError: An id occurs twice, or is no string.
        """
        self._topics: dict[str, Topic] = {}
        for topic in topics:
            if not isinstance(topic.id, str):
                raise InputError(f"the id of a Topic is {topic.id!r}, not a string; write Topic('{topic.id}', …)")
            if topic.id in self._topics:
                raise InputError(f"topic '{topic.id}' occurs twice; topic ids must be unique")
            self._topics[topic.id] = topic

    @classmethod
    def of(cls, value: object) -> Topics:
        """Topics from whatever a caller has at hand.

        Args:
            value: Topics, a Topic, a query string (id "1"), a mapping from id to text or Topic, a pandas DataFrame (columns
                such as qid, query_id or id, and query, text or question), an iterable of Topic, of (id, text) pairs, or of
                strings (ids "1", "2", …), or the path of a file as a `Path`. A whole number as an id stands for its digits.

        Raises:
            InputError: It is nothing of the kind, an id is neither string nor whole number, or occurs twice.
        """
        if isinstance(value, Topics):
            return value
        if isinstance(value, Topic):
            return cls([value])
        if isinstance(value, str):
            return cls([Topic("1", value)])
        if isinstance(value, os.PathLike):
            return cls.read(value)
        if isinstance(value, Mapping):
            return cls(t if isinstance(t, Topic) else _topic((i, t), n) for n, (i, t) in enumerate(value.items(), 1))
        if hasattr(value, "columns"):
            return cls(Topic(*fields) for fields in Table.of_frame(value).topics())
        if isinstance(value, Iterable):
            return cls(_topic(item, number) for number, item in enumerate(value, 1))
        raise InputError(f"topics cannot be made from {type(value).__name__}; give a query, a mapping or a list")

    @classmethod
    def read(cls, value: object, split: str | None = None) -> Topics:
        """Topics as `of` makes them, but for a string, which is a path and not a query.

        Args:
            value: What `of` takes, or the path of a file or of a folder in BEIR's form.
            split: Of a folder: leave the topics that have judgments in this split.

        Raises:
            InputError: As `of` does, and for a file that cannot be read.
            ParameterError: There is no such split.
        """
        if isinstance(value, (str, os.PathLike)):
            topics: Topics = read("topics", value, split=split)
            return topics
        if split is not None:
            raise ParameterError(f"split='{split}' goes with the path of a folder, not with {type(value).__name__}")
        return cls.of(value)

    def judged(self, qrels: Mapping[str, object]) -> Topics:
        """The topics that have judgments, in their order.

        Args:
            qrels: A mapping from topic id to judgments.

        Raises:
            InputError: None of them has.
        """
        judged = Topics(topic for topic in self.values() if topic.id in qrels)
        if not judged:
            own, other = next(iter(self), ""), next(iter(qrels), "")
            raise InputError(
                f"none of the topics has judgments; topic ids are such as '{own}', those of the qrels such as '{other}'"
            )
        return judged

    def __getitem__(self, topic_id: str) -> Topic:
        return self._topics[topic_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def __repr__(self) -> str:
        return f"Topics({len(self)})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a score is what it is: a tree.

    Args:
        value: A number.
        label: What it stands for.
        parts: What it is made of.
    """

    value: float
    label: str
    parts: tuple[Explanation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts, for JSON."""
        return {"value": self.value, "label": self.label, "parts": [p.to_dict() for p in self.parts]}

    def _repr_html_(self) -> str:
        """The tree, which folds, for notebooks."""
        return of_explanation(self)

    def __str__(self) -> str:
        lines = [f"{self.value:.6g}  {self.label}"]
        for part in self.parts:
            lines += ["  " + line for line in str(part).splitlines()]
        return "\n".join(lines)


def _topic(item: object, number: int) -> Topic:
    match item:
        case Topic():
            return item
        case str():
            return Topic(str(number), item)
        case (topic_id, str() as text):
            return Topic(string_of(topic_id, "topic id", f"item {number} of the topics"), text)
        case (topic_id, other):
            what = f"item {number} of the topics: topic '{topic_id}' is no text but a {type(other).__name__}"
            raise InputError(f"{what}; give Topic, (id, text) or a string")
    raise InputError(f"item {number} of the topics is a {type(item).__name__}; give Topic, (id, text) or a string")


def text_of(doc: Doc) -> str:
    """Title, a space and text of a document, without spaces around: what models read of it."""
    return f"{doc.title} {doc.text}".strip()
