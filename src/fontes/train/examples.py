"""Examples: a query, a document that answers it and some that do not; read, checked and written."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from sys import float_info
from typing import Any

import numpy as np

from ..core.checks import string_of
from ..core.errors import InputError, ParameterError
from ..core.progress import Report, silent
from ..core.run import Run
from ..core.stage import Stage
from .training_set import TrainingSet, text_under


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of a document in an example.

    Args:
        id: The document's id.
        text: What is read of it: title, a space and text.
        score: Its score in the run that it was mined from, or that of a teacher; None: it has none.
        rank: Its rank in that run, counted from 1; None: it was in no run.
    """

    id: str
    text: str
    score: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A query, a document that answers it, and documents that do not.

    Args:
        topic: The id of the topic.
        query: Its text.
        positive: The relevant document; its score is a teacher's, where there is one.
        negatives: The others, in the order in which they were chosen; there may be none.
        source: Where it stands, as "FILE, line 7", for errors; it counts for nothing when examples are compared.
    """

    topic: str
    query: str
    positive: Passage
    negatives: tuple[Passage, ...] = ()
    source: str = field(default="", compare=False, repr=False)


class Examples(TrainingSet[Example]):
    """Queries, each with a relevant document and some that are not: what `mine_negatives` makes and training takes.

    A file has a line for each: `{"topic", "query", "positive": {"id", "text"}, "negatives": [{"id", "text", "score", "rank"},
    …]}`. Scores and ranks may be missing; the positive may have a score too, a teacher's. Several lines may have one topic.

    Args:
        items: The examples.

    Raises:
        InputError: There are none, or one has an empty query or text, a score that is no number, or a negative that is the
            positive or is listed twice; the message begins with where it stands.
    """

    noun = "example"
    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Examples:
        """Examples from whatever a caller has at hand.

        Args:
            value: Examples, an iterable of Example, the result of `mine_negatives`, or the path of a file.

        Raises:
            InputError: It is nothing of the kind, or cannot be learned from.
        """
        if isinstance(value, (str, os.PathLike)):
            return cls.read(value)
        value = getattr(value, "examples", value)
        if isinstance(value, Examples):
            return value
        items: list[Any] = list(value) if isinstance(value, Iterable) else [value]
        if not all(isinstance(item, Example) for item in items):
            odd = next(type(item).__name__ for item in items if not isinstance(item, Example))
            raise InputError(f"examples cannot be made of a {odd}; give Examples, a list of Example, or the path of a file")
        return cls(items)

    @property
    def topics(self) -> list[str]:
        """The ids of the topics, each once, in their order."""
        return list(dict.fromkeys(example.topic for example in self))

    def check_labels(self) -> None:
        """Raises InputError where no example has negatives, so that all labels are 1."""
        if not any(example.negatives for example in self):
            first, last = self[0].source or "example 1", self[-1].source or f"example {len(self)}"
            raise InputError(
                f"{first} to {last}: no example has negatives, so there is one label only; mine some with `fontes mine`"
            )

    def scored(self, reranker: Stage[Run, Run], progress: Report = silent) -> Examples:
        """The examples with a teacher's scores in place of those of the run, of positives and of negatives.

        Args:
            reranker: Any reranker, such as a cross-encoder; with its `cache`, an interrupted scoring goes on where it was.
            progress: Is called with the pairs that are done.

        Raises:
            ParameterError: It is no reranker.
            InputError: A score is no number; the message begins with where the example stands.
        """
        from ..neural.rerank import Reranker

        if not isinstance(reranker, Reranker):
            raise ParameterError(f"a teacher must be a reranker, such as CrossEncoder('MODEL'), not {reranker!r}")
        pairs = dict.fromkeys((one.query, p.text) for one in self for p in (one.positive, *one.negatives))
        scores = dict(zip(pairs, map(short, reranker.pair_scores(list(pairs), progress)), strict=True))

        def with_score(one: Example, passage: Passage) -> Passage:
            return replace(passage, score=scores[one.query, passage.text])

        return Examples(
            replace(one, positive=with_score(one, one.positive), negatives=tuple(with_score(one, p) for p in one.negatives))
            for one in self
        )

    @classmethod
    def _parsed(cls, row: Mapping[str, Any], where: str) -> Example:
        if row.get("topic") is None:
            raise InputError(f"{where}: no id under 'topic'")
        if not isinstance(row.get("positive"), Mapping):
            raise InputError(f"{where}: no positive: an object with 'id' and 'text' under 'positive'")
        negatives = row.get("negatives")
        if not isinstance(negatives, list) or not all(isinstance(negative, Mapping) for negative in negatives):
            raise InputError(f"{where}: no list of objects under 'negatives'; it may be empty: []")
        return Example(
            string_of(row["topic"], "topic", where),
            text_under(row, "query", "", where),
            _passage(row["positive"], "positive", where),
            tuple(_passage(negative, f"negative {n}", where) for n, negative in enumerate(negatives, 1)),
            where,
        )

    @staticmethod
    def _row(item: Example) -> dict[str, Any]:
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
                return f"the score of the {name} '{passage.id}' is {passage.score}, which is no number"
            if name == "negative" and passage.id in ids:
                return f"the negative '{passage.id}' is the positive, or is listed twice"
            ids.add(passage.id)
        return ""

    @staticmethod
    def _query(item: Example) -> str:
        return item.query


def short(score: float) -> float:
    """A float32 as the number with the fewest digits that is the same float32."""
    return float(str(np.float32(score)))


def _passage(row: Mapping[str, Any], name: str, where: str) -> Passage:
    if row.get("id") is None:
        raise InputError(f"{where}: the {name} has no 'id'")
    score, rank = row.get("score"), row.get("rank")
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, (int, float)) or not abs(score) <= float_info.max
    ):
        raise InputError(f"{where}: the score of the {name} is {str(score)[:80]!r}, which is no number")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 1):
        raise InputError(f"{where}: the rank of the {name} is {rank!r}, not a whole number from 1 up")
    doc_id = string_of(row["id"], f"id of the {name}", where)
    return Passage(doc_id, text_under(row, "text", f" of the {name} '{doc_id}'", where), score, rank)


def _passage_row(passage: Passage) -> dict[str, Any]:
    score = {} if passage.score is None else {"score": float(passage.score)}
    rank = {} if passage.rank is None else {"rank": int(passage.rank)}
    return {"id": passage.id, "text": passage.text, **score, **rank}
