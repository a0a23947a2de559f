"""Pairs of texts with a label, for siamese training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..formats.records import json_rows
from ..storage.files import reading
from .examples import Example, Examples
from .training_set import TrainingSet, text_under

FIRST, SECOND, LABEL = "first", "second", "label"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, and how alike they are.

    Args:
        first: A text, such as a query.
        second: Another, such as a document.
        label: 1: they belong together; 0: they do not; or a share between the two.
        source: Where it stands, as "FILE, line 7", for errors; it counts for nothing when pairs are compared.
    """

    first: str
    second: str
    label: float
    source: str = field(default="", compare=False, repr=False)


class LabelledPairs(TrainingSet[LabelledPair]):
    """Pairs of texts with a label: what siamese training takes.

    A file has a line for each: `{"first", "second", "label"}`.

    Args:
        items: The pairs.

    Raises:
        InputError: There are none, or one has an empty text or a label that does not lie in 0 to 1; the message begins with
            where it stands.
    """

    noun = "pair"
    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> LabelledPairs:
        """Pairs from whatever a caller has at hand.

        Args:
            value: LabelledPairs; Examples, of which the positives have the label 1 and the negatives 0; an iterable of
                LabelledPair or of (first, second, label); or the path of a file of pairs or of examples.

        Raises:
            InputError: It is nothing of the kind, or cannot be learned from.
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
        """Those of a file of JSON lines, of pairs or of examples; raises as for other files."""
        with reading(os.fspath(path)) as source:
            items: list[LabelledPair] = []
            for number, row in json_rows(source):
                where = f"{source.name}, line {number}"
                example = "positive" in row and FIRST not in row
                items += _pairs(Examples._parsed(row, where)) if example else [cls._parsed(row, where)]
            if not items:
                raise InputError(f"{source.name}: holds no pairs")
        return cls(items)

    def check_labels(self) -> None:
        """Raises InputError where all pairs have one label."""
        labels = {pair.label for pair in self}
        if len(labels) == 1:
            first, last = self[0].source or "pair 1", self[-1].source or f"pair {len(self)}"
            raise InputError(
                f"{first} to {last}: all pairs have the label {labels.pop():g}; training needs two labels at least"
            )

    @classmethod
    def _parsed(cls, row: Mapping[str, Any], where: str) -> LabelledPair:
        return _pair((text_under(row, FIRST, "", where), text_under(row, SECOND, "", where), row.get(LABEL)), where)

    @staticmethod
    def _row(item: LabelledPair) -> dict[str, Any]:
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


def _pair(item: Any, where: str) -> LabelledPair:
    if isinstance(item, LabelledPair):
        return item
    match item:
        case (str() as first, str() as second, int() | float() | np.number() as label) if not isinstance(label, bool):
            with suppress(OverflowError):
                return LabelledPair(first, second, float(label), where)
    raise InputError(f"{where}: no pair of two texts and a label from 0 to 1: {str(item)[:80]}")
