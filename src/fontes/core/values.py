"""Values of a pipeline: documents, topics, hits, explanations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from .checks import is_missing, string_of
from .columns import TOPIC_ID, TOPIC_TEXT, find, join_with_or
from .errors import InputError, ParameterError
from .html import of_explanation
from .io import read
from .query import Group
from .table import Table
from .tabular import Tabular, are_all, is_frame, listed

if TYPE_CHECKING:
    from .ranking import Ranking


@dataclass(frozen=True, slots=True)
class Doc:
    """A document.

    Args:
        id: Unique in its collection.
        text: The text.
        title: The title, if any.
        metadata: Any JSON values by name.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Documents(Protocol):
    """Source of documents by id: an index, or any object with this one method.

    Results also use these if the object has them: `snippets` and `marked`, passages that fit a query; `facets`; `rationales`,
    picked sentences; and `has_texts`, False for an index without texts.
    """

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """Return the documents with these ids, in this order.

        Raises:
            InputError: An id is unknown.
        """
        ...


class _Hit(NamedTuple):
    id: str
    score: float
    rank: int


class Hit(_Hit):
    """One document of a ranking: a tuple of id, score and rank.

    Attributes:
        id: The document's id.
        score: Its score.
        rank: Its rank, counted from 1.
    """

    _ranking: Ranking | None = None

    @property
    def doc(self) -> Doc:
        """The document.

        Raises:
            InputError: The run has no `documents`, or the hit belongs to no ranking.
        """
        ranking = self._ranking_or_raise()
        return ranking._doc_at(self.rank - ranking.offset - 1)

    @property
    def snippet(self) -> str:
        """The passage of the text that best fits the topic, as in `Ranking.snippets`; raises as `doc`."""
        ranking = self._ranking_or_raise()
        return ranking._snippet_at(self.rank - ranking.offset - 1)

    def _of(self, ranking: Ranking) -> Self:
        self._ranking = ranking
        return self

    def _ranking_or_raise(self) -> Ranking:
        if self._ranking is None:
            raise InputError(f"the run of hit '{self.id}' has no documents; set them with run.with_(documents=index)")
        return self._ranking

    def __reduce__(self) -> tuple[object, ...]:
        return Hit, tuple(self)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation.

    Args:
        text: The utterance as the user typed it.
        manual: A manual rewrite, if any.
        automatic: An automatic rewrite, if any.
        answer: The answer that the user got.
        answer_id: The id of the answer's source document.
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
        text: The query text.
        narrative: Description of relevance: the longest field of TREC's topics.
        description: The need in a sentence, as in TREC's topics.
        turns: The conversation so far, oldest first, ending with this topic's own turn.
        weights: Weights of index terms (as the analyzer writes them), in place of the analysis of `text`.
        query: A structured query, by which lexical stages search in place of `text` and `weights`.
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
    query: Group | None = None


class Topics(Tabular, Mapping[str, Topic]):
    """Topics by id, in their original order. Immutable."""

    __slots__ = ("_topics",)

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        """Make topics, keeping their order.

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
        """Convert a value to Topics.

        Args:
            value: Topics, a Topic, a query string (id "1"), a mapping from id to text or Topic, a table (columns such as qid,
                query_id or id, and query, text or question), an iterable of Topic, of (id, text) pairs, of dicts with such
                keys, or of strings (ids "1", "2", …), a Series of pandas (its labels are the ids), the path of a file as a
                `Path`, or a list of Topics or paths, which are merged. A whole number as an id stands for its digits.

        Raises:
            InputError: The type is unsupported, an id is neither string nor whole number, or occurs twice; merged topics with
                one id have different texts.
        """
        if isinstance(value, Topics):
            return value
        if isinstance(value, Topic):
            return cls([value])
        if isinstance(value, str):
            return cls([Topic("1", value)])
        if isinstance(value, os.PathLike):
            return cls.read(value)
        if are_all(value, Topics):
            return cls(_merged(topic for topics in value for topic in cls.of(topics).values()))
        value = listed(value)
        if is_frame(value):
            return cls(Topic(*fields) for fields in Table.of_frame(value, TOPIC_ID, TOPIC_TEXT).topics())
        if isinstance(value, Mapping):
            return cls(t if isinstance(t, Topic) else _topic((i, t), n) for n, (i, t) in enumerate(value.items(), 1))
        if isinstance(value, Iterable):
            return cls(_topic(item, number) for number, item in enumerate(value, 1))
        raise InputError(f"topics cannot be made from {type(value).__name__}; give a query, a mapping or a list")

    @classmethod
    def read(cls, value: object, split: str | None = None, format: str | None = None) -> Topics:
        """Convert a value as `of` does, except that a string names a file or collection.

        Args:
            value: A value for `of`; the path of a file or of a folder in BEIR's form; or "irds:NAME" or "sample:NAME", as for
                `fontes.dataset`.
            split: Split of a folder or collection whose judged topics are kept.
            format: Format of a file; None: detected.

        Raises:
            InputError: As `of` does, and for a file that cannot be read.
            ParameterError: The split or format is unknown.
        """
        if isinstance(value, (str, os.PathLike)):
            topics: Topics = read("topics", value, split=split, format=format)
            return topics
        if split is not None:
            raise ParameterError(f"split='{split}' goes with the path of a folder, not with {type(value).__name__}")
        return cls.of(value)

    def judged(self, qrels: Mapping[str, object]) -> Topics:
        """Return the topics that have judgments, in order.

        Args:
            qrels: A mapping from topic id to judgments.

        Raises:
            InputError: No topic has judgments.
        """
        judged = Topics(topic for topic in self.values() if topic.id in qrels)
        if not judged:
            topic_id, other = next(iter(self), ""), next(iter(qrels), "")
            raise InputError(
                f"none of the topics has judgments; topic ids are such as '{topic_id}', those of the qrels such as '{other}'"
            )
        return judged

    def to_columns(self) -> dict[str, Any]:
        """Return the columns query_id, text, description, narrative."""
        topics = self._topics.values()
        return {"query_id": list(self)} | {
            name: [getattr(topic, name) for topic in topics] for name in ("text", "description", "narrative")
        }

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
    """A tree that explains a score.

    Args:
        value: A number.
        label: Its meaning.
        parts: Its components.
    """

    value: float
    label: str
    parts: tuple[Explanation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as nested dicts, for JSON."""
        return {"value": self.value, "label": self.label, "parts": [p.to_dict() for p in self.parts]}

    def _repr_html_(self) -> str:
        return of_explanation(self)

    def __str__(self) -> str:
        lines = [f"{self.value:.6g}  {self.label}"]
        for part in self.parts:
            lines += ["  " + line for line in str(part).splitlines()]
        return "\n".join(lines)


def _merged(topics: Iterable[Topic]) -> Iterable[Topic]:
    by_id: dict[str, Topic] = {}
    for topic in topics:
        first = by_id.setdefault(topic.id, topic)
        if (first.text, first.turns) != (topic.text, topic.turns):
            raise InputError(f"topic '{topic.id}' has two texts in the merged topics; give them different ids")
    return by_id.values()


def _topic(item: object, number: int) -> Topic:
    match item:
        case Topic():
            return item
        case str():
            return Topic(str(number), item)
        case Mapping():
            return _topic(
                tuple(_value(item, names, what, number) for names, what in ((TOPIC_ID, "id"), (TOPIC_TEXT, "text"))), number
            )
        case (topic_id, str() as text):
            return Topic(string_of(topic_id, "topic id", f"item {number} of the topics"), text)
        case (topic_id, other) if is_missing(other):
            raise InputError(f"item {number} of the topics: the text of topic '{topic_id}' is missing")
        case (topic_id, other):
            problem = f"item {number} of the topics: topic '{topic_id}' is no text but a {type(other).__name__}"
            raise InputError(f"{problem}; give Topic, (id, text) or a string")
    raise InputError(f"item {number} of the topics is a {type(item).__name__}; give Topic, (id, text) or a string")


def _value(record: Mapping[object, object], names: Sequence[str], what: str, number: int) -> object:
    """Return the value of a record under one of some names."""
    if (key := find(record, names)) is None:
        present = ", ".join(f"'{name}'" for name in record)
        raise InputError(
            f"item {number} of the topics: no {what} (a field {join_with_or(names)}); found {present or 'nothing'}"
        )
    return record[key]


def text_of(doc: Doc) -> str:
    """Return the text for models: title, a space and text, stripped."""
    return f"{doc.title} {doc.text}".strip()
