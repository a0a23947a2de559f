"""Structured queries: phrases, windows, fields, and clauses that must or must not match.

A query is a tree of clauses over index terms, which the analyzer of an index made. A topic carries it as `Topic.query`; lexical
stages search by it, and models of texts read `Topic.text`. Term, AnyOf, Phrase and Window are counted as terms: each has a
frequency in each document, a document frequency and a collection frequency of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


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
    """Terms that count as one, such as those of a prefix: its frequency is the sum of theirs.

    Args:
        terms: The terms, ascending.
        field: The field that must hold one of them; "" is any.
        weight: Factor of its score.
    """

    terms: tuple[str, ...]
    field: str = ""
    weight: float = 1.0


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


Leaf: TypeAlias = Term | AnyOf | Phrase | Window
Clause: TypeAlias = Leaf | Condition | Group
