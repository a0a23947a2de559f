"""Reader of the query language: from a typed text to clauses.

    water springs         clauses side by side: one of them, or all of them (`operator`)
    +water -desert        a clause that must match, one that must not
    a AND b OR NOT c      AND binds tighter than OR, NOT excludes; also && || !
    (a b)^2               a group, its scores times 2
    title:water           a field; title:(hot springs) all in the brackets
    "hot springs"~2       a phrase, its words moved by 2 places at most
    "hot springs"~uw8     both words in any order within 8 words
    hydro*  geyser~1      words with a prefix; words that differ by one letter
    year:2020 year:>=2020 year:[2020 TO 2024}   comparisons of a column
    \\+water               a backslash takes the meaning of an operator away

Any text can be read: everything that is not an operator is text, and `remarks` note what was probably meant otherwise. The
depth and the number of clauses are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.query import MAX_WEIGHT
from .clauses import (
    Clauses,
    Prefix,
    Quoted,
    TypedClause,
    TypedFilter,
    TypedSimilar,
    TypedWord,
    has_wildcard,
    is_filter,
    is_name,
)
from .conditions import between, compared

if TYPE_CHECKING:
    from ..index.state import State

MAX_CLAUSES = 1024  # words, phrases and conditions of a query
MAX_STEPS = 8 * MAX_CLAUSES  # of the reader, which limits operators as well
MAX_DEPTH = 40  # of nested brackets
MAX_REMARKS = 20
MAX_SLOP, MAX_WIDTH = 90, 90  # less than the gap between two fields
MAX_EDITS = 2
OPERATORS = {"AND": "and", "&&": "and", "OR": "or", "||": "or", "NOT": "not"}
CLOSING = {'"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL), "“": re.compile(r"[“„]((?:[^”“\\]|\\.)*)[”“]", re.DOTALL)}
CLOSING["„"] = CLOSING["“"]
NAME = re.compile(r'((?:\\.|[^\s\\:"“”„()\[\]{}])+):(?=[^\s/)])', re.DOTALL)
WEIGHT = re.compile(r"\^(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+)(?![^\s)])", re.ASCII)
AFTER_QUOTE = re.compile(r"~(uw)?(\d+)", re.ASCII)
AFTER_WORD = re.compile(r"(?:(\*)|(~)(\d{0,9}))?(?:\^(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+))?$", re.ASCII)
MAX_OPERATOR_LENGTH = 40  # characters after a word that are read as operators
VALUE = r'"((?:[^"\\]|\\.)*)"|([^\s"\[\]{}]+)'
RANGE = re.compile(rf"([\[{{])\s*(?:{VALUE})\s+(?:TO|to)\s+(?:{VALUE})\s*([\]}}])", re.DOTALL)
SIGN = re.compile(r">=|<=|>|<")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
MARKED = re.compile(r"[^\s)+!-]")
UNREAD_SIZE = re.compile(r"\w[~^][-.\d]+$")  # an operator with a number that it does not take: ~0.8, ^-1
UNREAD_SIGN = re.compile(r"([^\s<>=]+)(>=|<=|>|<|=)(\S+)")  # a comparison without a colon: year>=2020
STAR_INSIDE = re.compile(r"\w\*")
SPACE = re.compile(r"\s+")
IDENTIFIER = re.compile(r"[^\W\d][\w.-]*")
ENDING_WEIGHT = re.compile(r"(?<=[^\\])\^[\d.]{1,20}$", re.ASCII)


@dataclass(frozen=True)
class Names:
    """Names that may stand before a colon.

    Args:
        fields: Fields that are searched separately.
        joined: Fields that the index joins, which cannot be searched separately.
        columns: The type of each column by name.
    """

    fields: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State) -> Names:
        """Return the names of an index."""
        return cls(state.separate, () if state.separate else state.fields, state.columns)

    def __contains__(self, name: str) -> bool:
        return name in self.fields or name in self.columns or name in self.joined

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.fields, *self.columns, *self.joined)))

    def is_column(self, name: str) -> bool:
        """Whether a name means a column, not a separate field of the same name."""
        return name in self.columns and name not in self.fields


class Typed(NamedTuple):
    """The result of reading a text.

    Attributes:
        clauses: The clauses of the text.
        operators: Operators that have a meaning in the text, such as "+" and "AND"; none for a plain text.
        remarks: Parts that were probably meant otherwise, each with its position.
    """

    clauses: Clauses
    operators: frozenset[str]
    remarks: tuple[str, ...]


def read(text: str, names: Names | None = None, operator: str = "or", strict: bool = False) -> Typed:
    """Read a text of the query language.

    Args:
        text: Any text.
        names: Names of fields and columns; other words before a colon are text.
        operator: How clauses side by side are joined: "or" or "and".
        strict: Whether a remark is an error.

    Raises:
        ParameterError: The text is not well-formed, and `strict` is set; the message gives the position.
    """
    reader = _Reader(text, names or Names(), operator, strict)
    clauses = reader.clauses()
    return Typed(clauses, frozenset(reader.operators), tuple(reader.remarks))


@dataclass(slots=True)
class _Token:
    kind: str  # leaf, open, close, and, or, not
    position: int
    text: str = ""  # an operator in letters, as typed
    mark: str = ""  # + or -
    clause: TypedClause | None = None
    weight: float = 1.0


class _Item(NamedTuple):
    mark: str  # +, - or ""
    clause: TypedClause
    alternative: bool = False  # joined by OR to another clause


class _Reader:
    def __init__(self, text: str, names: Names, operator: str, strict: bool) -> None:
        self._text, self._names, self._operator, self._strict = text, names, operator, strict
        self._fields = [""]  # fields of the open brackets
        self._ignored = 0  # open brackets that are nested too deep
        self._leaves = 0
        self._unclosed: set[str] = set()  # quotation marks that are not closed in the rest of the text
        self.operators: set[str] = set()
        self.remarks: list[str] = []

    def clauses(self) -> Clauses:
        """Return all clauses of the text."""
        self._tokens = self._check_operators(list(self._tokenize()))
        self._token_index = 0
        return self._parse_list()

    # From characters to tokens

    def _tokenize(self) -> Iterator[_Token]:
        """Yield clauses, brackets and operators in letters."""
        position, steps, mark, size = 0, 0, "", len(self._text)
        while position < size:
            steps += 1
            if steps > MAX_STEPS or self._leaves >= MAX_CLAUSES:
                self._remark(position, f"a query has {MAX_CLAUSES:,} clauses at most", "what follows is left out")
                return
            character = self._text[position]
            if character.isspace():
                position, mark = SPACE.match(self._text, position).end(), ""  # type: ignore[union-attr]
            elif character in "+-!" and position + 1 < size and MARKED.match(self._text, position + 1):
                mark, position = ("+" if character == "+" else "-"), position + 1
                self.operators.add(mark)
            elif character == ")":
                position, closed = self._read_closing(position)
                if closed is not None:
                    yield closed
                mark = ""
            else:
                position, token = self._read_clause(position)
                if token is not None:
                    token.mark, mark = mark, ""
                    yield token
        if len(self._fields) > 1:
            self._remark(size, "a bracket is not closed")

    def _read_closing(self, position: int) -> tuple[int, _Token | None]:
        """Read a closing bracket with its weight; return its end and its token, None if it is skipped."""
        self.operators.add("(")
        weight = WEIGHT.match(self._text, position + 1)
        end = weight.end() if weight else position + 1
        if self._ignored:
            self._ignored -= 1
            return end, None
        if len(self._fields) == 1:
            self._remark(position, "the bracket closes nothing")
            return end, None
        self._fields.pop()
        return end, _Token("close", position, weight=self._weight(weight[1], position) if weight else 1.0)

    def _read_clause(self, position: int) -> tuple[int, _Token | None]:
        """Read a clause, a group or an operator in letters; return its end and its token, None if it is skipped."""
        start, name = position, self._fields[-1]
        match = NAME.match(self._text, position)
        if match is not None and is_name(typed := ESCAPE.sub(r"\1", match[1])):
            if typed in self._names:
                position, name = match.end(), typed
                self.operators.add("field")
            elif IDENTIFIER.fullmatch(typed):
                suggestion = f"; {nearest(typed, self._names)}" if list(self._names) else ""
                self._remark(position, f"there is no field or column '{typed[:80]}'{suggestion}", "it is read as text")
        if self._text[position] == "(":
            return position + 1, self._open_bracket(position, name)
        if self._names.is_column(name):
            return self._read_condition(start, position, name)
        if name in self._names.joined and name not in self._names.fields:
            problem = f"the index joins its fields, so that '{name}' is not searched by itself"
            self._remark(start, f"{problem}; build it with separate=True (--separate)")
            name = ""
        if self._text[position] in CLOSING:
            return self._read_phrase(position, name) or (position + 1, None)
        return self._read_word(start, position, name)

    def _open_bracket(self, position: int, name: str) -> _Token | None:
        """Open a group whose words are in the field `name`; None if it is nested too deep."""
        self.operators.add("(")
        if len(self._fields) > MAX_DEPTH:
            self._ignored += 1
            self._remark(position, f"brackets are nested more than {MAX_DEPTH} deep", "the inner ones are left out")
            return None
        self._fields.append(name)
        return _Token("open", position)

    def _read_phrase(self, position: int, name: str) -> tuple[int, _Token | None] | None:
        """Read a phrase or window with its operators; None if the quotation mark is not closed."""
        mark = self._text[position]
        match = None if mark in self._unclosed else CLOSING[mark].match(self._text, position)
        if match is None:
            self._unclosed.add(mark)
            self._remark(position, "the quotation mark is not closed")
            return None
        end, slop, width = match.end(), 0, 0
        if suffix := AFTER_QUOTE.match(self._text, end):
            end = suffix.end()
            size = int(suffix[2][:9])
            words = len(match[1].split())
            low, high = (words, MAX_WIDTH) if suffix[1] else (0, MAX_SLOP)
            if not min(low, high) <= size <= high:
                self._remark(suffix.start(), f"{'a window' if suffix[1] else 'slop'} is from {low} to {high} words")
                size = max(min(size, high), min(low, high))
            slop, width = (0, size) if suffix[1] else (size, 0)
        weight = WEIGHT.match(self._text, end)
        end = weight.end() if weight else end
        self.operators.add("phrase")
        if self._text[end : end + 1] in ("~", "^"):
            self._remark(end, "this is no operator of a phrase; write ~2, ~uw8 or ^2", "it is read as text")
        if STAR_INSIDE.search(match[1]):
            self._remark(position, "a * in quotation marks is no operator", "it is read as text")
        text = " ".join(ESCAPE.sub(r"\1", match[1]).split())
        if not text:
            return end, None
        clause = Quoted(text, slop, width, name, self._weight(weight[1], position) if weight else 1.0)
        return end, self._leaf(position, clause)

    def _read_word(self, start: int, position: int, name: str) -> tuple[int, _Token]:
        """Read a word with its operators, or an operator in letters; the clause begins at `start`, with its field."""
        end = self._word_end(position)
        raw = self._text[position:end]
        if start == position and raw in OPERATORS:
            return end, _Token(OPERATORS[raw], position, raw)
        prefix, similar, edits, weight = match.groups() if (match := _trailing_operators(raw)) else (None, None, None, None)
        body = raw[: match.start()] if match else raw
        if not body:
            self._remark(position, f"{raw} follows no word", "it is read as text")
            return end, self._leaf(position, TypedWord(raw, name))
        text = ESCAPE.sub(r"\1", body)
        if problem := self._unread_operator(position, body, text):
            self._remark(position, problem, f"{raw[:80]} is read as text")
        if "\\" in body:
            self.operators.add("\\")
        if re.search(r"(?<!\\)\*", body):
            self._remark(position, "a * stands at the end of a word", f"{raw[:80]} is read as text")
            return end, self._leaf(position, TypedWord(ESCAPE.sub(r"\1", raw), name))
        factor = self._weight(weight, position) if weight else 1.0
        if prefix:
            self.operators.add("*")
            return end, self._leaf(position, Prefix(text, name, factor))
        if similar:
            self.operators.add("~")
            distance = int(edits) if edits else None
            if distance is not None and distance > MAX_EDITS:
                self._remark(position, f"a word differs by 1 or {MAX_EDITS} letters, not {distance}", f"{MAX_EDITS} are taken")
                distance = MAX_EDITS
            return end, self._leaf(
                position, TypedWord(text, name, factor) if distance == 0 else TypedSimilar(text, distance, name, factor)
            )
        return end, self._leaf(position, TypedWord(text, name, factor))

    def _unread_operator(self, position: int, body: str, text: str) -> str:
        """Return why a word, as typed and without backslashes, is none of the operators that it looks like; "" for others."""
        sign = UNREAD_SIGN.fullmatch(text)
        if has_wildcard(body):
            return "? stands for no letter; write a prefix such as harb*, or harbour~1"
        if UNREAD_SIZE.search(body):
            return f"after a word stand ~1, ~{MAX_EDITS} or a weight such as ^0.5"
        if sign is not None and self._names.is_column(sign[1]):
            comparison = "" if sign[2] == "=" else sign[2]
            return f"a comparison has a colon: {sign[1]}:{comparison}{sign[3][:40]}"
        if text.endswith(":") and text[:-1] in self._names:
            return f"a name is followed by its word without a space: {text}word"
        if RANGE.match(self._text, position):
            return "a range is of a column: year:[2020 TO 2024]"
        return ""

    def _read_condition(self, start: int, position: int, name: str) -> tuple[int, _Token | None]:
        """Read a comparison of a column; if it is malformed, read it as text."""
        types, text = self._names.columns, self._text
        clause: TypedClause
        sign, interval = "", RANGE.match(text, position)
        if interval is None:
            if (match := SIGN.match(text, position)) is not None:
                sign, position = match[0], match.end()
            if text[position : position + 1] == '"' and ('"' in self._unclosed or CLOSING['"'].match(text, position) is None):
                return self._read_phrase(position, "") or (position + 1, None)
        try:
            if (match := interval) is not None:
                low, high = (_bound(*match.group(2, 3)), _bound(*match.group(4, 5)))
                end = match.end()
                clause = between(name, low, high, (match[1] == "[", match[6] == "]"), types)
            else:
                value: str | None
                if (match := CLOSING['"'].match(text, position)) is not None:
                    end, value = match.end(), ESCAPE.sub(r"\1", match[1])
                else:
                    end = self._word_end(position)
                    raw = text[position:end]
                    if start == position and raw in OPERATORS:
                        return end, _Token(OPERATORS[raw], position, raw)
                    if weight := ENDING_WEIGHT.search(raw):
                        raw, end = raw[: weight.start()], position + weight.start()
                    value = None if raw == "*" and not sign else ESCAPE.sub(r"\1", raw)
                clause = compared(name, sign, value, types)
        except ParameterError as error:
            self._remark(start, _problem(error), f"{text[start : min(end, start + 80)]} is read as text")
            return end, self._leaf(start, TypedWord(text[start:end], ""))
        if weight := WEIGHT.match(text, end):
            self._remark(end, "a comparison of a column has no weight", "it is left out")
            end = weight.end()
        return end, self._leaf(start, clause)

    def _word_end(self, position: int) -> int:
        """Return the end of a word; inside brackets, a closing bracket ends it."""
        depth, text = 0, self._text
        while position < len(text) and not text[position].isspace():
            if text[position] == "\\":
                position += 1
            elif text[position] == "(":
                depth += 1
            elif text[position] == ")":
                if not depth and (len(self._fields) > 1 or self._ignored):
                    break
                depth -= 1
            position += 1
        return min(position, len(text))

    def _leaf(self, position: int, clause: TypedClause) -> _Token:
        self._leaves += 1
        return _Token("leaf", position, clause=clause)

    def _weight(self, typed: str, position: int) -> float:
        """Return a weight as typed, bounded by MAX_WEIGHT."""
        self.operators.add("^")
        weight = float(typed)
        if weight > MAX_WEIGHT:
            self._remark(position, f"a weight is {MAX_WEIGHT:,.0f} at most")
        return min(weight, MAX_WEIGHT)

    def _remark(self, position: int, problem: str, consequence: str = "") -> None:
        """Note a problem and its consequence; raise ParameterError if reading is strict."""
        location = f"query, character {min(position, max(len(self._text) - 1, 0)) + 1}"
        if self._strict:
            raise ParameterError(f"{location}: {problem}")
        if len(self.remarks) < MAX_REMARKS:
            joined = f"; {consequence}" if not problem.endswith("?") else f" {consequence[:1].upper()}{consequence[1:]}"
            self.remarks.append(f"{location}: {problem}{joined if consequence else ''}")

    # From tokens to clauses

    def _check_operators(self, tokens: list[_Token]) -> list[_Token]:
        """Return the tokens, with operators that join nothing replaced by words."""
        checked: list[_Token] = []
        for number, token in enumerate(tokens):
            before = checked[-1].kind if checked else ""
            after = tokens[number + 1].kind if number + 1 < len(tokens) else ""
            if token.kind in ("and", "or"):
                joins = before in ("leaf", "close") and after in ("leaf", "open", "not")
            else:
                joins = token.kind != "not" or after in ("leaf", "open")
            if not joins:
                self._remark(token.position, f"{token.text} joins nothing", "it is read as a word")
                if self._leaves >= MAX_CLAUSES:
                    continue
                token = self._leaf(token.position, TypedWord(token.text))
            elif token.text:
                self.operators.add(token.kind.upper())
            checked.append(token)
        return checked

    @property
    def _next_kind(self) -> str:
        """Kind of the next token, "" at the end."""
        return self._tokens[self._token_index].kind if self._token_index < len(self._tokens) else ""

    def _parse_list(self) -> Clauses:
        """Read the clauses up to the end of the text, or of the brackets."""
        items: list[_Item] = []
        joined = False
        while self._next_kind not in ("", "close"):
            if self._next_kind == "or":
                self._token_index += 1
                joined = True
                if items:
                    items[-1] = items[-1]._replace(alternative=True)
                continue
            items += [item._replace(alternative=joined) for item in self._parse_conjunction()]
            joined = False
        return _group(items)

    def _parse_conjunction(self) -> list[_Item]:
        """Read clauses joined by AND as one item; if all are excluded, return their items."""
        units = self._parse_unit()
        several = False
        while self._next_kind == "and" or (self._operator == "and" and self._next_kind in ("leaf", "open", "not")):
            self._token_index += self._next_kind == "and"
            units += self._parse_unit()
            several = True
        if not several or all(unit.mark == "-" for unit in units):
            return units
        must = [unit._replace(mark="+") if unit.mark != "-" else unit for unit in units]
        if len(must) == 1:
            return must if any(unit.mark == "+" for unit in units) else units
        return [_Item("+" if any(unit.mark == "+" for unit in units) else "", _group(must))]

    def _parse_unit(self) -> list[_Item]:
        """Read a clause with its mark; for a group of excluded clauses only, return these clauses."""
        negated = self._next_kind == "not"
        self._token_index += negated
        token = self._tokens[self._token_index]
        self._token_index += 1
        clause = token.clause
        if token.kind == "open":
            inner = self._parse_list()
            weight = 1.0
            if self._next_kind == "close":
                weight = self._tokens[self._token_index].weight
                self._token_index += 1
            clause = _simple(inner, weight)
        mark = "-" if negated else token.mark
        if clause is None or (mark == "-" and _excludes(clause)):
            return []
        if isinstance(clause, Clauses) and _excludes(clause):
            return [_Item("-", member) for member in clause.must_not]
        return [_Item(mark, clause)]


def _group(items: list[_Item]) -> Clauses:
    """Return the clauses of items side by side. A comparison of a column must match unless OR joins it to others."""
    must: list[TypedClause] = []
    should: list[TypedClause] = []
    must_not = [item.clause for item in items if item.mark == "-"]
    several = len(items) - len(must_not) > 1
    for mark, clause, alternative in items:
        if mark == "+" or (not mark and not (alternative and several) and is_filter(clause)):
            if isinstance(clause, Clauses) and not clause.should and clause.weight == 1.0:
                must += clause.must
                must_not += clause.must_not
            else:
                must.append(clause)
        elif not mark:
            if isinstance(clause, Clauses) and not clause.must and not clause.must_not and clause.weight == 1.0:
                should += clause.should
            else:
                should.append(clause)
    if must and should and all(map(is_filter, must)):
        scored = _simple(Clauses(should=tuple(should)), 1.0)
        if isinstance(scored, Clauses) and not scored.should and scored.weight == 1.0:
            must += scored.must
            must_not += scored.must_not
        elif scored is not None:
            must.append(scored)
        should = []
    if not must and not must_not and len(should) == 1 and isinstance(should[0], Clauses) and should[0].weight == 1.0:
        return should[0]
    return Clauses(tuple(must), tuple(should), tuple(must_not))


def _simple(clauses: Clauses, weight: float) -> TypedClause | None:
    """Return a group times a weight, simplified to its clause if it has one only; None for an empty group."""
    weight = min(weight * clauses.weight, MAX_WEIGHT)
    inside = (*clauses.must, *clauses.should)
    if not inside and not clauses.must_not:
        return None
    if len(inside) == 1 and not clauses.must_not:
        only = inside[0]
        return only if isinstance(only, TypedFilter) else replace(only, weight=min(only.weight * weight, MAX_WEIGHT))
    return replace(clauses, weight=weight)


def _excludes(clause: TypedClause) -> bool:
    """Whether a clause is a group of excluded clauses only."""
    return isinstance(clause, Clauses) and not clause.must and not clause.should


def _trailing_operators(raw: str) -> re.Match[str] | None:
    """Return the match of the operators at the end of a word, unless a backslash precedes them."""
    start = max(0, len(raw) - MAX_OPERATOR_LENGTH)
    while start < len(raw) and (match := AFTER_WORD.search(raw, start)) is not None:
        before = raw[: match.start()]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return match
        start = match.start() + 1
    return None


def _bound(typed: str | None, bare: str | None) -> str | None:
    """Return the bound of a range, in quotation marks or bare; None for an open range."""
    return ESCAPE.sub(r"\1", typed) if typed is not None else None if bare == "*" else bare


def _problem(error: ParameterError) -> str:
    """Return the message of a filter's error, without the position in a filter that the user has not typed."""
    return re.sub(r"^where, character \d+: ", "", str(error)).partition("; write ")[0]
