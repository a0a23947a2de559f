"""Clauses of the query language as typed, before their words are analysed, and their canonical text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TypedWord:
    """A word, `title:springs^2`.

    Args:
        text: The word as typed.
        field: The field that must hold it; "" is any.
        weight: Factor of its score.
    """

    text: str
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix of words, `hydro*`.

    Args:
        text: The prefix as typed.
        field: The field that must hold one of them; "" is any.
        weight: Factor of its score.
    """

    text: str
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class TypedSimilar:
    """Words that differ from a word by few letters, `geyser~1`.

    Args:
        text: The word as typed.
        edits: Greatest number of letters inserted, deleted, replaced, or exchanged with the next; None: by the word's length.
        field: The field that must hold one of them; "" is any.
        weight: Factor of its score.
    """

    text: str
    edits: int | None = None
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Quoted:
    """A phrase, `"hot springs"~2`, or words in any order within a window, `"hot springs"~uw8`.

    Args:
        text: The words as typed, separated by single spaces.
        slop: Greatest number of places by which its words may move in all.
        width: Width of the window in words; 0 for a phrase.
        field: The field that must hold it; "" is any.
        weight: Factor of its score.
    """

    text: str
    slop: int = 0
    width: int = 0
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class TypedFilter:
    """A comparison of a column, `year:[2020 TO 2024]`.

    Args:
        text: The canonical text of the comparison.
        where: The comparison as a filter, such as "year >= 2020 and year <= 2024".
    """

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Clauses:
    """A group of clauses in brackets, or a whole query; see `core.query.Group`."""

    must: tuple[TypedClause, ...] = ()
    should: tuple[TypedClause, ...] = ()
    must_not: tuple[TypedClause, ...] = ()
    weight: float = 1.0

    @property
    def leaves(self) -> Iterator[Typed]:
        """Clauses that are not groups, in the order of the canonical text."""
        for clause in (*self.must, *self.should, *self.must_not):
            if isinstance(clause, Clauses):
                yield from clause.leaves
            else:
                yield clause

    @property
    def words(self) -> Iterator[str]:
        """Words of the clauses that must or should match, without operators and conditions."""
        for clause in (*self.must, *self.should):
            if isinstance(clause, Clauses):
                yield from clause.words
            elif not isinstance(clause, TypedFilter):
                yield clause.text

    def __str__(self) -> str:
        """Return the canonical text, which reads as these clauses if clauses side by side are joined by OR."""
        should = [_canonical(clause) for clause in self.should]
        if any(is_filter(clause) for clause in self.should):  # without OR, a filter beside other clauses would be required
            should = [" OR ".join([*(f"+{_canonical(clause)}" for clause in self.must[-1:]), *should])]
            must = self.must[:-1]
        else:
            must = self.must
        parts = [
            *(f"+{_canonical(clause)}" for clause in must),
            *should,
            *(f"-{_canonical(clause)}" for clause in self.must_not),
        ]
        return " ".join(parts)


Typed: TypeAlias = TypedWord | Prefix | TypedSimilar | Quoted | TypedFilter
TypedClause: TypeAlias = Typed | Clauses

INSIDE = re.compile(r'[\\\s"()*~^]')
LETTERS = re.compile(r"[\w?]+")
LEADING = re.compile(r'[-+!\[{><="“”„]')
OPERATOR = re.compile(r"AND|OR|NOT|&&|\|\|")


def is_filter(clause: TypedClause) -> bool:
    """Whether a clause consists only of comparisons of columns, and has no score."""
    return (
        all(isinstance(leaf, TypedFilter) for leaf in clause.leaves)
        if isinstance(clause, Clauses)
        else isinstance(clause, TypedFilter)
    )


def escaped(text: str) -> str:
    """Return a word with a backslash before each character that would otherwise be an operator."""
    if OPERATOR.fullmatch(text):
        return f"\\{text}"
    inside = INSIDE.sub(r"\\\g<0>", text)
    if has_wildcard(text):
        inside = inside.replace("?", "\\?")
    name, _, value = text.partition(":")
    if is_name(name) and value and value[0] != "/":
        inside = inside.replace(":", "\\:")
    return f"\\{inside}" if LEADING.match(inside) else inside


def is_name(text: str) -> bool:
    """Whether a text before a colon may name a field or a column, unlike the hour in 12:30."""
    return bool(text) and not text.isdecimal()


def has_wildcard(text: str) -> bool:
    """Whether a word has a question mark before a letter, as other query languages write any one letter: harb?ur."""
    return "?" in text.rstrip("?") and LETTERS.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return a text in quotation marks."""
    return '"' + re.sub(r'["\\]', r"\\\g<0>", text) + '"'


def _canonical(clause: TypedClause) -> str:
    match clause:
        case TypedFilter(text):
            return text
        case Clauses():
            return f"({clause}){_weight(clause.weight)}"
        case Quoted(text, slop, width):
            body = quoted(text) + (f"~uw{width}" if width else f"~{slop}" if slop else "")
        case Prefix(text):
            body = f"{escaped(text)}*"
        case TypedSimilar(text, edits):
            body = f"{escaped(text)}~{'' if edits is None else edits}"
        case TypedWord(text):
            body = escaped(text)
    return f"{f'{escaped(clause.field)}:' if clause.field else ''}{body}{_weight(clause.weight)}"


def _weight(weight: float) -> str:
    if weight == 1.0:
        return ""
    short = f"{weight:g}"
    return f"^{short if float(short) == weight else repr(weight)}"
