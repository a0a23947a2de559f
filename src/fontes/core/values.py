"""The small values that flow through a pipeline: documents, topics, hits, explanations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from .edge import read
from .errors import InputError
from .html import of_explanation


@dataclass(frozen=True, slots=True)
class Doc:
    """A document: an id, unique in its collection, a text, perhaps a title, and any JSON values as metadata."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Documents(Protocol):
    """Whoever can give the documents behind ids: an index, or any object with this one method."""

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids, in this order. Raises InputError for an id that is unknown."""
        ...


class Hit(NamedTuple):
    """One document of a ranking. `rank` counts from 1."""

    id: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: what was asked, its rewrites where known, and the answer that was given."""

    text: str
    manual: str = ""
    automatic: str = ""
    answer: str = ""
    answer_id: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need.

    `text` is what is searched. `narrative` and `description` are the longer fields of TREC topics. `turns` is the
    conversation so far, oldest first and ending with this topic's own turn. `weights`, where given, maps index terms
    (as the analyzer writes them) to weights and replaces the analysis of `text`. A rewritten topic keeps the topic that
    it came from in `origin`.
    """

    id: str
    text: str
    narrative: str = ""
    description: str = ""
    turns: tuple[Turn, ...] = ()
    weights: Mapping[str, float] | None = None
    origin: Topic | None = None


class Topics(Mapping[str, Topic]):
    """Topics by id, in the order in which they were given. Raises InputError for an id that occurs twice."""

    __slots__ = ("_topics",)

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self._topics: dict[str, Topic] = {}
        for topic in topics:
            if topic.id in self._topics:
                raise InputError(f"topic '{topic.id}' occurs twice; topic ids must be unique")
            self._topics[topic.id] = topic

    @classmethod
    def of(cls, given: object) -> Topics:
        """Topics from whatever a caller has at hand.

        Accepts Topics, a Topic, a query string (id "1"), a mapping from id to text or Topic, a pandas DataFrame (columns
        query_id or qid, and text or query), or an iterable of Topic, of (id, text) pairs, or of strings (ids "1", "2", …).
        """
        if isinstance(given, Topics):
            return given
        if isinstance(given, Topic):
            return cls([given])
        if isinstance(given, str):
            return cls([Topic("1", given)])
        if isinstance(given, Mapping):
            return cls(t if isinstance(t, Topic) else Topic(str(i), t) for i, t in given.items())
        if hasattr(given, "columns"):
            ids = column(given, ("query_id", "qid"))
            texts = column(given, ("text", "query"))
            return cls(Topic(str(i), str(t)) for i, t in zip(ids, texts, strict=True))
        if isinstance(given, Iterable):
            return cls(_topic(item, number) for number, item in enumerate(given, 1))
        raise InputError(f"topics cannot be made from {type(given).__name__}; give a query, a mapping or a list")

    @classmethod
    def read(cls, given: object) -> Topics:
        """Topics as `of` makes them; but a string is the path of a file, as is whatever has one."""
        if isinstance(given, (str, os.PathLike)):
            topics: Topics = read("topics", given)
            return topics
        return cls.of(given)

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
    """Why a score is what it is: a value, what it stands for, and the parts that it is made of."""

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


def column(frame: Any, names: tuple[str, ...]) -> list[Any]:
    """The column of a DataFrame under the first of `names` that it has."""
    for name in names:
        if name in frame.columns:
            return list(frame[name])
    raise InputError(f"the DataFrame has no column {' or '.join(names)}; it has {', '.join(map(str, frame.columns))}")


def _topic(item: object, number: int) -> Topic:
    match item:
        case Topic():
            return item
        case str():
            return Topic(str(number), item)
        case (topic_id, str() as text):
            return Topic(str(topic_id), text)
    raise InputError(f"item {number} of the topics is a {type(item).__name__}; give Topic, (id, text) or a string")
