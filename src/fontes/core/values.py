"""Values of a pipeline: documents, topics, judgments, hits, explanations."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from .checks import grade_of, is_missing, string_of
from .errors import InputError, ParameterError
from .hints import nearest
from .html import of_explanation
from .query import Group
from .registry import read
from .table import Table
from .tabular import TOPIC_ID, TOPIC_TEXT, Tabular, are_all, check_no_record, find, is_frame, join_with_or, listed, records_of

if TYPE_CHECKING:
    from .ranking import Ranking

TOLERANCE = "tolerance"  # the name in a topic's metadata
MODES = ("auto", "typing")
NO_GROUP = ("0", "Q0", "")
MAX_GRADE = 2**53  # the greatest grade: a float holds each whole number up to it


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
            check_no_record(value, TOPIC_ID, TOPIC_TEXT, "topics")
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


def _topic(item: Any, number: int) -> Topic:
    item = item._asdict() if len(getattr(item, "_fields", ())) > 2 else item
    match item:
        case Topic():
            return item
        case str():
            return Topic(str(number), item)
        case Mapping():
            return _topic_of_record(item, number)
        case (topic_id, str() as text):
            return Topic(string_of(topic_id, "topic id", f"item {number} of the topics"), text)
        case (topic_id, other) if is_missing(other):
            raise InputError(f"item {number} of the topics: the text of topic '{topic_id}' is missing")
        case (topic_id, other):
            problem = f"item {number} of the topics: topic '{topic_id}' is no text but a {type(other).__name__}"
            raise InputError(f"{problem}; give Topic, (id, text) or a string")
    raise InputError(f"item {number} of the topics is a {type(item).__name__}; give Topic, (id, text) or a string")


def _topic_of_record(record: Mapping[object, object], number: int) -> Topic:
    pair = tuple(_value(record, names, what, number) for names, what in ((TOPIC_ID, "id"), (TOPIC_TEXT, "text")))
    where = f"item {number} of the topics"
    narrative, description = (
        "" if is_missing(text := record.get(find(record, (name,)))) else string_of(text, name, where)
        for name in ("narrative", "description")
    )
    return replace(_topic(pair, number), narrative=narrative, description=description)


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


class Tolerated(list[dict[str, Any]]):
    """JSON values about the words of a topic that were searched with neighbours, which no reader of topics can make."""


def tolerated(topic: Topic) -> Tolerated:
    """Return the words of a topic that were searched with neighbours."""
    values = topic.metadata.get(TOLERANCE)
    return values if isinstance(values, Tolerated) else Tolerated()


def added_terms(topic: Topic) -> frozenset[str]:
    """Return the index terms that were added to a topic."""
    return frozenset(neighbour["term"] for word in tolerated(topic) for neighbour in word["also"])


def notes_of(topic: Topic) -> dict[str, str]:
    """Return for each term that was added to a topic a note on the word for which it stands."""
    notes: dict[str, str] = {}
    for word in tolerated(topic):
        for neighbour in word["also"]:
            edits = neighbour["edits"]
            kind = "completed" if not edits else f"{edits} edit{'s' * (edits > 1)}"
            note = f" ({neighbour['word']}) for '{word['word']}', {kind}: weight {neighbour['weight']:.3g}"
            notes.setdefault(neighbour["term"], note)
        if word["weight"] < 1:
            notes |= dict.fromkeys(word["terms"], f", far rarer than its completions: weight {word['weight']:.3g}")
    return notes


def check_tolerance(name: str, mode: object, allowed: tuple[str, ...] = ("off", *MODES)) -> None:
    """Raise ParameterError, naming the parameter, if a tolerance is none of those allowed."""
    if mode not in allowed:
        raise ParameterError(f"{name}: there is no '{mode}'; {nearest(str(mode), allowed)}")


class Qrels(Tabular, Mapping[str, Mapping[str, int]]):
    """Judgments: a mapping from topic id to document id to grade. Immutable.

    Documents of one topic with the same group form an evidence *set*, which is evidence only together. The groups "0" and "Q0",
    usual when the second column of TREC qrels is unused, mean none. A document may be in several groups of a topic, with one
    grade.
    """

    __slots__ = ("_grades", "_groups")

    def __init__(self, rows: Iterable[tuple[str, str, str, int]] = ()) -> None:
        """Make judgments from rows.

        Args:
            rows: (topic id, group, document id, grade).

        Raises:
            InputError: A document has two different grades for one topic, or one beyond 2^53, which a float cannot hold.
        """
        self._grades: dict[str, dict[str, int]] = {}
        self._groups: dict[str, dict[str, set[str]]] = {}
        for topic_id, group, doc_id, grade in rows:
            if not -MAX_GRADE <= grade <= MAX_GRADE:
                raise InputError(f"topic '{topic_id}', document '{doc_id}': the grade {grade} lies beyond {MAX_GRADE:,}")
            grades = self._grades.setdefault(topic_id, {})
            if grades.setdefault(doc_id, grade) != grade:
                raise InputError(
                    f"topic '{topic_id}', document '{doc_id}' is judged twice, with the grades {grades[doc_id]} and {grade}"
                )
            if group not in NO_GROUP:
                self._groups.setdefault(topic_id, {}).setdefault(group, set()).add(doc_id)

    @classmethod
    def of(cls, value: object, split: str | None = None, groups: bool | None = None, format: str | None = None) -> Qrels:
        """Convert a value to Qrels.

        Args:
            value: Qrels, a mapping from topic id to a mapping from document id to grade, a table or list of dicts (columns such
                as query_id or qid, doc_id, docno or cord_uid, and relevance or label, by default 1), an iterable of (topic id,
                document id, grade), the path of a file or of a folder in BEIR's form, "irds:NAME" or "sample:NAME", or a list
                of Qrels or paths (`Path`), which are merged. A whole number as an id stands for its digits.
            split: Split of a folder or collection; by default the only one.
            groups: Whether the second column of a TREC file names evidence sets, as for `read_qrels`.
            format: Format of a file; None: detected.

        Raises:
            InputError: The type is unsupported, an id is neither string nor whole number, a grade is no whole number, or a
                document has two grades for one topic.
            ParameterError: The split is unknown, or not named among several.
        """
        if isinstance(value, (str, os.PathLike)):
            qrels: Qrels = read("qrels", value, split=split, groups=groups, format=format)
            return qrels
        if split is not None:
            raise ParameterError(f"split='{split}' goes with the path of a folder, not with {type(value).__name__}")
        if isinstance(value, Qrels):
            return value
        if are_all(value, Qrels):
            return cls(row for qrels in value for row in cls.of(qrels).rows())
        rows: Iterable[tuple[object, object, object]]
        if is_frame(value):
            return cls(Table.of_frame(value).judgments())
        value = list(value) if isinstance(value, Iterator) else value
        if records := records_of(value):
            return cls(Table.of_records(records, "the qrels").judgments())
        if isinstance(value, Mapping):
            rows = ((t, d, g) for t, grades in value.items() for d, g in grades.items())
        elif isinstance(value, Iterable):
            rows = value
        else:
            raise InputError(f"qrels cannot be made from {type(value).__name__}; give a mapping, a DataFrame or triples")
        try:
            return cls(_row(number, row) for number, row in enumerate(rows, 1))
        except (TypeError, ValueError, AttributeError, OverflowError) as e:
            if isinstance(e, InputError):
                raise
            raise InputError(f"the qrels are not rows of topic id, document id and a whole number ({e})") from e

    def groups(self, topic_id: str, rel: int = 1) -> list[frozenset[str]]:
        """Return the evidence sets of a topic.

        Args:
            topic_id: A topic; one without judgments has no sets.
            rel: The least relevant grade.

        Returns:
            Each group whose documents all have at least the grade `rel`, and each such document in no group, alone.
        """
        grades = self._grades.get(topic_id, {})
        groups = list(self._groups.get(topic_id, {}).values())
        grouped = set().union(*groups) if groups else set()
        sets = [frozenset(g) for g in groups if all(grades[d] >= rel for d in g)]
        return sets + [frozenset((d,)) for d, grade in grades.items() if grade >= rel and d not in grouped]

    def rows(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield (topic id, group, document id, grade), group "0" for a document in none."""
        for topic_id, grades in self._grades.items():
            groups = self._groups.get(topic_id, {})
            groups_of: dict[str, list[str]] = {}
            for name, members in groups.items():
                for doc_id in members:
                    groups_of.setdefault(doc_id, []).append(name)
            for doc_id, grade in grades.items():
                for group in groups_of.get(doc_id, ["0"]):
                    yield topic_id, group, doc_id, grade

    def only(self, topics: Container[str]) -> Qrels:
        """Return the judgments of some topics, given by id."""
        return Qrels(row for row in self.rows() if row[0] in topics)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return grades by topic id and document id."""
        return {t: dict(g) for t, g in self._grades.items()}

    def to_columns(self) -> dict[str, Any]:
        """Return the columns query_id, group, doc_id, relevance, one row as in `rows`."""
        rows = list(self.rows())
        names = ("query_id", "group", "doc_id", "relevance")
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def __getitem__(self, topic_id: str) -> Mapping[str, int]:
        return MappingProxyType(self._grades[topic_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._grades)

    def __len__(self) -> int:
        return len(self._grades)

    def __repr__(self) -> str:
        return f"Qrels({len(self)} topics, {sum(map(len, self._grades.values()))} judgments)"


def _row(number: int, row: tuple[object, object, object]) -> tuple[str, str, str, int]:
    topic, doc, grade = row
    where = f"row {number} of the qrels"
    return string_of(topic, "topic id", where), "0", string_of(doc, "document id", where), grade_of(grade)
