"""Structured queries: phrases, windows, fields, and clauses that must or must not match.

A query is a tree of clauses over index terms, which the analyzer of an index made. A topic carries it as `Topic.query`; lexical
stages search by it, and models of texts read `Topic.text`. Term, AnyOf, Phrase and Window are counted as terms: each has a
frequency in each document, a document frequency and a collection frequency of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

from .errors import InputError
from .hints import nearest

T = TypeVar("T")

MAX_DEPTH = 50  # of nested groups
MAX_WEIGHT = 1e6  # of a clause
MAX_DISTANCE = 1_000_000  # of offsets of terms, slop and width, in positions


@dataclass(frozen=True, slots=True)
class Term:
    """One index term.

    Args:
        term: The term, as the analyzer writes it.
        field: The field that must hold it; "" is any.
        weight: Factor of its score.
    """

    term: str
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Terms and phrases that count as one term, such as those of a prefix: its frequency is the sum of theirs.

    Args:
        terms: The terms, ascending.
        field: The field that must hold one of them; "" is any.
        weight: Factor of its score.
        phrases: Phrases that count as well, in the same field; their own field and weight have no effect.
    """

    terms: tuple[str, ...]
    field: str = ""
    weight: float = 1.0
    phrases: tuple[Phrase, ...] = ()

    @property
    def clauses(self) -> tuple[Term | Phrase, ...]:
        """The terms and phrases as clauses of their own."""
        terms = (Term(term, self.field) for term in self.terms)
        return (*terms, *(replace(phrase, field=self.field, weight=1.0) for phrase in self.phrases))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms at consecutive positions.

    Args:
        terms: The terms, in their order.
        offsets: Position of each, counted from the first; a stop word between two terms leaves a gap.
        slop: Greatest sum of moves of terms that makes a document's terms the phrase, as in Lucene; 0 is the exact phrase.
        field: The field that must hold it; "" is any.
        weight: Factor of its score.
    """

    terms: tuple[str, ...]
    offsets: tuple[int, ...]
    slop: int = 0
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Terms in any order within so many positions, as Indri's `#uwN`.

    Args:
        terms: The terms.
        width: Greatest number of positions from the first to the last term, both counted.
        field: The field that must hold it; "" is any.
        weight: Factor of its score.
    """

    terms: tuple[str, ...]
    width: int
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter on document metadata, such as "year >= 2020"; its score is 0."""

    where: str


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses that decide together which documents match, and whose scores add up.

    A document matches if it matches all of `must` and none of `must_not`, and, where `must` is empty, one of `should`. Its
    score is the sum over the clauses of `must` and `should` that it matches.

    Args:
        must: Clauses that a document must match.
        should: Clauses that raise its score.
        must_not: Clauses that it must not match.
        weight: Factor of the score.
    """

    must: tuple[Clause, ...] = ()
    should: tuple[Clause, ...] = ()
    must_not: tuple[Clause, ...] = ()
    weight: float = 1.0

    @property
    def scored(self) -> Iterator[Leaf]:
        """The leaves below `must` and `should`, in order."""
        for clause in (*self.must, *self.should):
            if isinstance(clause, Group):
                yield from clause.scored
            elif not isinstance(clause, Condition):
                yield clause

    def to_dict(self) -> dict[str, Any]:
        """Return the query as JSON values: an object per clause with its class's arguments, without defaults."""
        return _dict_of(self)

    @classmethod
    def from_dict(cls, values: object) -> Group:
        """Make a query from the values that `to_dict` returns; an object with other keys than a group's is its only clause.

        Raises:
            InputError: The values are no query; the message gives the path to the error, such as `must[0].phrase`.
        """
        query = _clause_of(values, "query", 0)
        return query if isinstance(query, Group) else Group(should=(query,))


Leaf: TypeAlias = Term | AnyOf | Phrase | Window
Clause: TypeAlias = Leaf | Condition | Group


def terms_of(clause: Leaf) -> Iterator[str]:
    """Yield the index terms of a clause."""
    match clause:
        case Term():
            yield clause.term
        case AnyOf():
            yield from clause.terms
            for phrase in clause.phrases:
                yield from phrase.terms
        case _:
            yield from clause.terms


_KINDS: tuple[tuple[set[str], type[Leaf | Condition]], ...] = (
    ({"where"}, Condition),
    ({"term"}, Term),
    ({"terms", "width"}, Window),
    ({"terms", "offsets"}, Phrase),
    ({"terms"}, AnyOf),
)
"""Keys that identify each class of clauses; the first match applies, else Group."""


def _dict_of(clause: Clause) -> dict[str, object]:
    values: dict[str, Any] = {}
    for field in fields(clause):
        value = getattr(clause, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        if field.name == "phrases" or (isinstance(clause, Group) and field.name != "weight"):
            value = [_dict_of(inner) for inner in value]
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def _clause_of(values: object, path: str, depth: int) -> Clause:
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: a clause is an object, not {_short(values)}")
    if depth > MAX_DEPTH:
        raise InputError(f"{path}: groups are nested more than {MAX_DEPTH} deep")
    kind = next((kind for keys, kind in _KINDS if keys <= values.keys()), Group)
    declared = {field.name: field for field in fields(kind)}
    for key in values:
        if key not in declared:
            article = "an" if kind is AnyOf else "a"
            raise InputError(f"{path}: {article} {kind.__name__} has no '{str(key)[:40]}'; {nearest(str(key), declared)}")
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        inner_path = f"{path}.{key}"
        if kind is Group and key != "weight":
            value = _list(value, inner_path, "clauses", lambda item, item_path: _clause_of(item, item_path, depth + 1))
        else:
            value = _CHECKS[key](value, inner_path)
        arguments[key] = value
    if kind is Phrase and len(arguments["terms"]) != len(arguments["offsets"]):
        raise InputError(f"{path}: the phrase has {len(arguments['terms'])} terms and {len(arguments['offsets'])} offsets")
    clause: Clause = kind(**arguments)
    return clause


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{path}: a string is needed, not {_short(value)}")
    return value


def _phrase(value: object, path: str) -> Phrase:
    clause = _clause_of(value, path, MAX_DEPTH)
    if not isinstance(clause, Phrase):
        raise InputError(f"{path}: a phrase has terms and offsets, not {_short(value)}")
    return clause


def _list(value: object, path: str, noun: str, check: Callable[[object, str], T]) -> tuple[T, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{path}: a list of {noun} is needed, not {_short(value)}")
    return tuple(check(item, f"{path}[{i}]") for i, item in enumerate(value))


def _count(value: object, path: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_DISTANCE:
        raise InputError(f"{path}: a whole number from 0 to {MAX_DISTANCE:,} is needed, not {_short(value)}")
    return value


def _weight(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WEIGHT or math.isnan(value):
        raise InputError(f"{path}: a weight is a number from 0 to {MAX_WEIGHT:,.0f}, not {_short(value)}")
    return float(value)


_CHECKS: dict[str, Callable[[object, str], object]] = {
    "where": _text,
    "term": _text,
    "terms": lambda value, path: _list(value, path, "strings", _text),
    "offsets": lambda value, path: _list(value, path, "whole numbers", _count),
    "phrases": lambda value, path: _list(value, path, "phrases", _phrase),
    "slop": _count,
    "width": _count,
    "field": _text,
    "weight": _weight,
}


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"
