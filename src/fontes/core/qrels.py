"""Relevance judgments."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .checks import grade_of, string_of
from .errors import InputError, ParameterError
from .io import read
from .table import Table
from .tabular import Tabular, are_all, is_frame

NO_GROUP = ("0", "Q0", "")
MAX_GRADE = 2**53  # the greatest grade: a float holds each whole number up to it


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
            value: Qrels, a mapping from topic id to a mapping from document id to grade, a table (columns such as
                query_id or qid, doc_id, docno or cord_uid, and relevance or label, by default 1), an iterable of (topic id,
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
