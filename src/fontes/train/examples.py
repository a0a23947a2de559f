"""Training data: examples and labelled pairs, which are read, checked, hashed, divided and written as JSON lines."""

from __future__ import annotations

import hashlib
import math
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from sys import float_info
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

import numpy as np

from ..core.checks import check_whole, string_of
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Ranker, Stage
from ..core.tabular import Tabular, columns_of
from ..core.values import Qrels, Topic, Topics
from ..formats.records import json_line, json_rows
from ..rerank.reranker import Reranker
from ..storage.files import reading, write
from ..tuning.folds import split_by
from .runner.settings import FitSettings
from .splits import Side


class Item(Protocol):
    """An example or a labelled pair; `source` is its origin, for error messages."""

    @property
    def source(self) -> str: ...


T = TypeVar("T", bound=Item)


class TrainingSet(Tabular, Sequence[T], Generic[T]):
    """Immutable, checked training data: examples or labelled pairs in order.

    Raises InputError, which begins with the origin, for an unusable item, and if there are no items.
    """

    noun: ClassVar[str]
    __slots__ = ("_hash", "_items")

    def __init__(self, items: Iterable[T]) -> None:
        self._items = tuple(items)
        self._hash = ""
        for number, item in enumerate(self._items, 1):
            problem = self._problem(item)
            if problem:
                raise InputError(f"{item.source or f'{self.noun} {number}'}: {problem}")
        if not self._items:
            raise InputError(f"there are no {self.noun}s to learn from")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of JSON lines; raise InputError, with file and line, for anything unreadable or unusable.

        Args:
            path: File (decompressed if need be), "-" is standard input.
        """
        with reading(os.fspath(path)) as source:
            items = [cls._parse(row, f"{source.name}, line {number}") for number, row in json_rows(source)]
            if not items:
                raise InputError(f"{source.name}: contains no {cls.noun}s")
        return cls(items)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write JSON lines that read back equal; equal examples give equal bytes.

        Args:
            path: File, compressed if its name ends in .gz; "-" is standard output.
        """
        write(os.fspath(path), self._lines())

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of the file that `write` writes."""
        rows = [self._row(item) for item in self._items]
        return columns_of(rows, list(rows[0]))

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal digits, of the file that `write` writes."""
        if not self._hash:
            digest = hashlib.sha256()
            for line in self._lines():
                digest.update(line)
            self._hash = digest.hexdigest()
        return self._hash

    def held_out(self, share: float, seed: int = 0) -> tuple[Self, Self]:
        """Return the training part and the held-out part, both in order, with each query on one side.

        The choice depends on the seed and the set of queries, not on their order.

        Args:
            share: Share of the queries to hold out, between 0 and 1; at least one query.
            seed: Seed of the choice.

        Raises InputError for fewer than two queries and ParameterError for a share out of range.
        """
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ParameterError(f"the share to hold out must lie between 0 and 1, not {share!r}")
        training, held_out = split_by(self._query, self, share, check_whole("seed", seed, 0))
        if not held_out:
            raise InputError(f"all {self.noun}s have one query; at least two are needed to hold one out")
        return type(self)(training), type(self)(held_out)

    @abstractmethod
    def check_labels(self) -> None:
        """Raise InputError if all labels are equal."""

    def _lines(self) -> Iterator[bytes]:
        return (json_line(self._row(item)) for item in self._items)

    @classmethod
    @abstractmethod
    def _parse(cls, row: Mapping[str, object], origin: str) -> T: ...

    @staticmethod
    @abstractmethod
    def _row(item: T) -> dict[str, object]: ...

    @staticmethod
    @abstractmethod
    def _problem(item: T) -> str:
        """Return the reason why the item is unusable; empty if it is usable."""

    @staticmethod
    @abstractmethod
    def _query(item: T) -> str:
        """Return the text of an item's query; items of one query are on one side."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"


def text_under(row: Mapping[str, object], name: str, described: str, origin: str) -> str:
    """Return `row[name]`; raise InputError unless it is a text. `of` follows the name in the error."""
    value = row.get(name)
    if not isinstance(value, str):
        kind = "is missing" if value is None else f"is a {type(value).__name__}"
        raise InputError(f"{origin}: the {name}{described} {kind}, where a text belongs")
    return value


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of an example.

    Args:
        id: Document id.
        text: Title, a space and text.
        score: Score in the mined run or by a teacher, if any.
        rank: Rank in the mined run, from 1, if any.
    """

    id: str
    text: str
    score: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A query, a relevant document, and non-relevant documents.

    Args:
        topic: Topic id.
        query: Query text.
        positive: Relevant document; its score, if any, comes from a teacher.
        negatives: Other documents, in the order in which they were chosen; possibly none.
        source: Origin for errors, as "FILE, line 7"; ignored in comparisons.
    """

    topic: str
    query: str
    positive: Passage
    negatives: tuple[Passage, ...] = ()
    source: str = field(default="", compare=False, repr=False)


class Examples(TrainingSet[Example]):
    """Queries, each with a relevant document and negatives: the result of `mine_negatives`, the input of training.

    A file has one line per example: `{"topic", "query", "positive": {"id", "text"}, "negatives": [{"id", "text", "score",
    "rank"}, …]}`. Scores and ranks are optional; the positive may have a teacher's score. A topic may have several lines.

    Raises:
        InputError: There are no examples, or one has an empty query or text, a score that is not a number, or a negative that
            is the positive or listed twice; the message begins with its origin.
    """

    noun = "example"
    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Examples:
        """Convert an iterable of Example, the result of `mine_negatives`, or the path of a file; raise InputError."""
        if isinstance(value, (str, os.PathLike)):
            return cls.read(value)
        value = getattr(value, "examples", value)
        if isinstance(value, Examples):
            return value
        items: list[Any] = list(value) if isinstance(value, Iterable) else [value]
        if not all(isinstance(item, Example) for item in items):
            kind = next(type(item).__name__ for item in items if not isinstance(item, Example))
            raise InputError(f"examples cannot be made of a {kind}; give Examples, a list of Example, or the path of a file")
        return cls(items)

    @property
    def topics(self) -> list[str]:
        """The distinct topic ids, in order."""
        return list(dict.fromkeys(example.topic for example in self))

    def judged(self) -> Side:
        """Return the queries as topics, with their relevant documents judged 1: a test collection of the examples."""
        queries = {example.topic: example.query for example in self}
        rows = dict.fromkeys((example.topic, example.positive.id) for example in self)
        return Side(
            Topics(Topic(topic, query) for topic, query in queries.items()),
            Qrels((topic, "0", doc_id, 1) for topic, doc_id in rows),
        )

    def check_labels(self) -> None:
        """Raise InputError if no example has negatives."""
        if not any(example.negatives for example in self):
            first, last = self[0].source or "example 1", self[-1].source or f"example {len(self)}"
            problem = "no example has negatives, so there is only one label; mine some with `fontes mine`"
            raise InputError(f"{first} to {last}: {problem}")

    def scored(self, teacher: Ranker) -> Examples:
        """Return the examples with a teacher's scores of positives and negatives.

        Args:
            teacher: A reranker, such as a cross-encoder, which scores the texts; if it has a `cache`, an interrupted scoring
                resumes. Or a stage from topics to a run, such as a fusion of several systems, whose scores are assigned to the
                documents by their ids. Examples whose relevant document it does not return are left out; other documents that
                it does not return get the least score of the query's ranking.

        Raises:
            InputError: The stage returns no relevant document.
            ParameterError: The teacher is neither a reranker nor such a stage.
        """
        if isinstance(teacher, Stage) and (teacher.takes, teacher.gives) == (Topics, Run):
            return self._scored_by_run(teacher)
        pairs = list(dict.fromkeys((example.query, p.text) for example in self for p in passages_of(example)))
        of_pairs = map(round_float32, reranker_of(teacher).pair_scores(pairs))
        scores = dict(zip(pairs, of_pairs, strict=True))
        return Examples(
            _with_scores(example, [scores[example.query, p.text] for p in passages_of(example)]) for example in self
        )

    def _scored_by_run(self, teacher: Stage[Topics, Run]) -> Examples:
        """Return the examples whose relevant documents a stage returns, with its scores."""
        queries = list(dict.fromkeys(example.query for example in self))
        run = teacher(Topics(Topic(str(number), query) for number, query in enumerate(queries)))
        of_queries: dict[str, dict[str, float]] = {query: {} for query in queries}
        for topic_id, ranking in run.items():
            rounded = map(round_float32, ranking.scores.tolist())
            of_queries[queries[int(topic_id)]] = dict(zip(ranking.ids, rounded, strict=True))
        scored = []
        for example in self:
            scores = of_queries[example.query]
            if example.positive.id in scores:
                minimum = min(scores.values())
                scored.append(_with_scores(example, [scores.get(p.id, minimum) for p in passages_of(example)]))
        if not scored:
            raise InputError(
                f"the teacher {teacher!r} returns no relevant document of the examples; give it their collection, or more hits"
            )
        return Examples(scored)

    @classmethod
    def _parse(cls, row: Mapping[str, Any], origin: str) -> Example:
        if row.get("topic") is None:
            raise InputError(f"{origin}: no id under 'topic'")
        if not isinstance(row.get("positive"), Mapping):
            raise InputError(f"{origin}: no positive: an object with 'id' and 'text' under 'positive'")
        negatives = row.get("negatives")
        if not isinstance(negatives, list) or not all(isinstance(negative, Mapping) for negative in negatives):
            raise InputError(f"{origin}: no list of objects under 'negatives'; it may be empty: []")
        return Example(
            string_of(row["topic"], "topic", origin),
            text_under(row, "query", "", origin),
            _passage(row["positive"], "positive", origin),
            tuple(_passage(negative, f"negative {n}", origin) for n, negative in enumerate(negatives, 1)),
            origin,
        )

    @staticmethod
    def _row(item: Example) -> dict[str, object]:
        negatives = [_passage_row(negative) for negative in item.negatives]
        return {"topic": item.topic, "query": item.query, "positive": _passage_row(item.positive), "negatives": negatives}

    @staticmethod
    def _problem(item: Example) -> str:
        if not isinstance(item.positive, Passage):
            return f"topic '{item.topic}' has no positive"
        if not item.query.strip():
            return f"the query of topic '{item.topic}' is empty"
        ids = {item.positive.id}
        for name, passage in (("positive", item.positive), *(("negative", negative) for negative in item.negatives)):
            if not passage.text.strip():
                return f"the text of the {name} '{passage.id}' is empty"
            if passage.score is not None and not math.isfinite(passage.score):
                return f"the score of the {name} '{passage.id}' is {passage.score}, not a number"
            if name == "negative" and passage.id in ids:
                return f"the negative '{passage.id}' is the positive, or is listed twice"
            ids.add(passage.id)
        return ""

    @staticmethod
    def _query(item: Example) -> str:
        return item.query


def passages_of(example: Example) -> tuple[Passage, ...]:
    """Return the relevant document of an example and its negatives, in order."""
    return (example.positive, *example.negatives)


def _with_scores(example: Example, scores: Sequence[float]) -> Example:
    """Return the example with the scores of its positive and its negatives, in order."""
    positive, *negatives = (replace(p, score=score) for p, score in zip(passages_of(example), scores, strict=True))
    return replace(example, positive=positive, negatives=tuple(negatives))


def round_float32(score: float) -> float:
    """Return a float32 as the number with the fewest digits that rounds to it."""
    return float(str(np.float32(score)))


def _passage(row: Mapping[str, Any], name: str, origin: str) -> Passage:
    if row.get("id") is None:
        raise InputError(f"{origin}: the {name} has no 'id'")
    score, rank = row.get("score"), row.get("rank")
    number = isinstance(score, (int, float)) and not isinstance(score, bool) and abs(score) <= float_info.max
    if score is not None and not number:
        raise InputError(f"{origin}: the score of the {name} is {str(score)[:80]!r}, not a number")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 1):
        raise InputError(f"{origin}: the rank of the {name} is {rank!r}, not a whole number from 1 up")
    doc_id = string_of(row["id"], f"id of the {name}", origin)
    text = text_under(row, "text", f" of the {name} '{doc_id}'", origin)
    return Passage(doc_id, text, None if score is None else float(score), rank)


def _passage_row(passage: Passage) -> dict[str, object]:
    score = {} if passage.score is None else {"score": float(passage.score)}
    rank = {} if passage.rank is None else {"rank": int(passage.rank)}
    return {"id": passage.id, "text": passage.text, **score, **rank}


FIRST, SECOND, LABEL = "first", "second", "label"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts and their similarity label.

    Args:
        first: Text, such as a query.
        second: Text, such as a document.
        label: 1: they match; 0: they do not; or a value between.
        source: Origin for errors, as "FILE, line 7"; ignored in comparisons.
    """

    first: str
    second: str
    label: float
    source: str = field(default="", compare=False, repr=False)


class LabelledPairs(TrainingSet[LabelledPair]):
    """Labelled pairs of texts, for siamese training.

    A file has one line per pair: `{"first", "second", "label"}`.

    Raises:
        InputError: There are no pairs, or one has an empty text or a label outside 0 to 1; the message begins with its origin.
    """

    noun = "pair"
    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> LabelledPairs:
        """Convert other values to pairs; raise InputError.

        Args:
            value: LabelledPairs; Examples, whose positives have the label 1 and negatives 0; an iterable of LabelledPair or of
                (first, second, label); or the path of a file of pairs or examples.
        """
        if isinstance(value, (str, os.PathLike)):
            return cls.read(value)
        value = getattr(value, "examples", value)
        if isinstance(value, LabelledPairs):
            return value
        if isinstance(value, Examples):
            return cls(pair for example in value for pair in _pairs(example))
        if not isinstance(value, Iterable):
            raise InputError(f"labelled pairs cannot be made of a {type(value).__name__}; give (first, second, label)")
        return cls(_pair(item, f"pair {number}") for number, item in enumerate(value, 1))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LabelledPairs:
        """Read a file of JSON lines, of pairs or examples; raises as `TrainingSet.read`."""
        with reading(os.fspath(path)) as source:
            items: list[LabelledPair] = []
            for number, row in json_rows(source):
                origin = f"{source.name}, line {number}"
                example = "positive" in row and FIRST not in row
                items += _pairs(Examples._parse(row, origin)) if example else [cls._parse(row, origin)]
            if not items:
                raise InputError(f"{source.name}: contains no pairs")
        return cls(items)

    def check_labels(self) -> None:
        """Raise InputError if all pairs have one label."""
        labels = {pair.label for pair in self}
        if len(labels) == 1:
            first, last = self[0].source or "pair 1", self[-1].source or f"pair {len(self)}"
            problem = f"all pairs have the label {labels.pop():g}; training needs at least two labels"
            raise InputError(f"{first} to {last}: {problem}")

    @classmethod
    def _parse(cls, row: Mapping[str, object], origin: str) -> LabelledPair:
        return _pair((text_under(row, FIRST, "", origin), text_under(row, SECOND, "", origin), row.get(LABEL)), origin)

    @staticmethod
    def _row(item: LabelledPair) -> dict[str, object]:
        label = int(item.label) if float(item.label).is_integer() else item.label
        return {FIRST: item.first, SECOND: item.second, LABEL: label}

    @staticmethod
    def _problem(item: LabelledPair) -> str:
        for name in (FIRST, SECOND):
            if not getattr(item, name).strip():
                return f"the {name} text is empty"
        return "" if 0 <= item.label <= 1 else f"the label must be 0, 1 or a share between them, not {item.label!r}"

    @staticmethod
    def _query(item: LabelledPair) -> str:
        return item.first


def _pairs(example: Example) -> list[LabelledPair]:
    texts = [(example.positive.text, 1), *((negative.text, 0) for negative in example.negatives)]
    return [LabelledPair(example.query, text, label, example.source) for text, label in texts]


def _pair(item: object, origin: str) -> LabelledPair:
    if isinstance(item, LabelledPair):
        return item
    match item:
        case (str() as first, str() as second, int() | float() | np.number() as label) if not isinstance(label, bool):
            with suppress(OverflowError):
                return LabelledPair(first, second, float(label), origin)
    raise InputError(f"{origin}: no pair of two texts and a label from 0 to 1: {str(item)[:80]}")


Set = TypeVar("Set", bound=TrainingSet[Any])
Set_co = TypeVar("Set_co", bound=TrainingSet[Any], covariant=True)


@dataclass(frozen=True)
class TrainingSplit(Generic[Set_co]):
    """Training data, data for the validation loss (None: no validation), and the hashes of both."""

    learned: Set_co
    validation: Set_co | None
    hashes: dict[str, str]

    @property
    def queries(self) -> set[str]:
        """The training queries."""
        return queries(self.learned)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of queries that are learned from and validated on, for the card."""
        validated = 0 if self.validation is None else len(queries(self.validation))
        return {"queries": len(self.queries), "queries_validated": validated}


def training_split(data: Set, validation: Set | None, settings: FitSettings) -> TrainingSplit[Set]:
    """Return training and validation data: the given validation data, or the share of queries that the settings hold out.

    Raises InputError for a query in both, and for too few queries.
    """
    if validation is not None:
        if shared := sorted(queries(data) & queries(validation)):
            item = next(item for item in validation if type(validation)._query(item).strip() == shared[0])
            listed = ", ".join(f"'{query}'" for query in shared)
            count = f"the query {listed} is" if len(shared) == 1 else f"{len(shared):,} queries are"
            remedy = "remove it from one of the two" if len(shared) == 1 else f"remove them from one of the two: {listed}"
            raise InputError(f"{item.source or 'validation'}: {count} learned from too; {remedy}")
        return TrainingSplit(data, validation, {"examples": data.hash, "validation": validation.hash})
    hashes = {"examples": data.hash}
    if not settings.held_out:
        return TrainingSplit(data, None, hashes)
    return TrainingSplit(*data.held_out(settings.held_out, settings.seed), hashes)


def queries(data: TrainingSet[Any]) -> set[str]:
    """Return the queries of examples or pairs."""
    return {type(data)._query(item).strip() for item in data}


def unlearned(run: Run, qrels: Qrels, learned: Iterable[Example]) -> tuple[Run, Qrels]:
    """Return a validation run and its judgments without training and unjudged topics; raise InputError if none remains."""
    examples = list(learned)
    texts = {example.query.strip() for example in examples}
    learned_topics = {topic.id for topic in run.topics.values() if topic.text.strip() in texts}
    learned_topics |= {example.topic for example in examples if example.topic not in run.topics}
    left = {topic for topic in run.topics if topic in qrels and topic not in learned_topics}
    if not left:
        raise InputError(
            "no judged topic of the run is left for validation, all are learned from: hold some out, or give a run of others"
        )
    is_left = np.array([topic in left for topic in run.topics], dtype=bool)
    return run.keep(is_left[run.topic_numbers]), qrels.only(left)


DISTILLED = ("teacher", "kl", "residual")  # losses that read the scores in the examples


def check_teacher(loss: str, *sides: Iterable[Example] | None) -> None:
    """Raise InputError if a document lacks the score of a teacher, which the loss needs."""
    for example in (example for side in sides for example in side or ()):
        for passage in passages_of(example):
            if passage.score is None:
                origin = example.source or f"topic {example.topic}"
                problem = f"the document '{passage.id}' has no score of a teacher"
                raise InputError(f"{origin}: {problem}; the loss '{loss}' needs one for each, see Examples.scored")


def reranker_of(teacher: Ranker) -> Reranker:
    """Return the teacher if it is a reranker; raise ParameterError otherwise."""
    if not isinstance(teacher, Reranker):
        raise ParameterError(f"a teacher must be a reranker here, such as CrossEncoder('MODEL'), not {teacher!r}")
    return teacher
