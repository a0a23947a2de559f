"""Reader of the query language: from a typed text to clauses.

    water springs         clauses side by side: one of them, or all of them (`operator`)
    +water -desert        a clause that must match, one that must not
    a AND b OR NOT c      AND binds tighter than OR, NOT excludes; also && || !
    (a b)^2               a group, its scores times 2
    title:water           a field; title:(hot springs) all in the brackets
    "hot springs"~2       a phrase, its words moved by 2 places at most
    "hot springs"~uw8     both words in any order within 8 words
    hydro*  geyser~1      words that begin so; words that differ by one letter
    year:2020 year:>=2020 year:[2020 TO 2024}   comparisons of a column
    \\+water               a backslash takes the meaning of an operator away

Any text can be read: what is no operator is text, and `remarks` say what was probably meant. Depth and number of clauses are
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import ParameterError
from ..core.query import MAX_WEIGHT
from ..core.registry import nearest
from .clauses import Clauses, Filter, Prefix, Quoted, Similar, TypedClause, Word, is_filter, is_name
from .conditions import between, compared

if TYPE_CHECKING:
    from ..index.state import State

MAX_CLAUSES = 1024  # words, phrases and conditions of a query
MAX_STEPS = 8 * MAX_CLAUSES  # of the reader, so that millions of operators end too
MAX_DEPTH = 40  # of brackets within each other
MAX_REMARKS = 20
MAX_SLOP, MAX_WIDTH = 90, 90  # less than the gap between two fields
MAX_EDITS = 2
OPERATORS = {"AND": "and", "&&": "and", "OR": "or", "||": "or", "NOT": "not"}
CLOSING = {'"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL), "“": re.compile(r"[“„]((?:[^”“\\]|\\.)*)[”“]", re.DOTALL)}
CLOSING["„"] = CLOSING["“"]
NAME = re.compile(r'((?:\\.|[^\s\\:"()\[\]{}])+):(?=[^\s/)])', re.DOTALL)
WEIGHT = re.compile(r"\^(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+)(?![^\s)])", re.ASCII)
AFTER_QUOTE = re.compile(r"~(uw)?(\d+)", re.ASCII)
AFTER_WORD = re.compile(r"(?:(\*)|(~)(\d{0,9}))?(?:\^(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+))?$", re.ASCII)
MAX_AFTER = 40  # characters after a word that are read as operators
VALUE = r'"((?:[^"\\]|\\.)*)"|([^\s"\[\]{}]+)'
RANGE = re.compile(rf"([\[{{])\s*(?:{VALUE})\s+(?:TO|to)\s+(?:{VALUE})\s*([\]}}])", re.DOTALL)
SIGN = re.compile(r">=|<=|>|<")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
MARKED = re.compile(r"[^\s)+!-]")
SPACE = re.compile(r"\s+")
IDENTIFIER = re.compile(r"[^\W\d][\w.-]*")
ENDING_WEIGHT = re.compile(r"(?<=[^\\])\^[\d.]{1,20}$", re.ASCII)


@dataclass(frozen=True)
class Names:
    """Names that may stand before a colon.

    Args:
        fields: Fields that are searched separately.
        joined: Fields that the index joins, so that their words are searched in all.
        columns: The type of each column by name.
    """

    fields: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State) -> Names:
        """The names of an index."""
        return cls(state.separate, () if state.separate else state.fields, state.columns)

    def __contains__(self, name: str) -> bool:
        return name in self.fields or name in self.columns or name in self.joined

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.fields, *self.columns, *self.joined)))

    def is_column(self, name: str) -> bool:
        """Whether a name means a column; a field that is searched separately comes first."""
        return name in self.columns and name not in self.fields


class Typed(NamedTuple):
    """A text as it was read.

    Attributes:
        clauses: What it says.
        operators: The operators that have a meaning in it, such as "+" and "AND"; none of a plain text.
        remarks: What was probably meant otherwise, each with its place.
    """

    clauses: Clauses
    operators: frozenset[str]
    remarks: tuple[str, ...]


def read(text: str, names: Names | None = None, operator: str = "or", strict: bool = False) -> Typed:
    """Read a text of the query language.

    Args:
        text: Any text.
        names: Names of fields and columns; others before a colon are text.
        operator: How clauses side by side are joined: "or" or "and".
        strict: Whether a remark is an error.

    Raises:
        ParameterError: Where `strict`, the text is not well-formed; the message gives the place.
    """
    reader = _Reader(text, names or Names(), operator, strict)
    clauses = reader.clauses()
    return Typed(clauses, frozenset(reader.operators), tuple(reader.remarks))


@dataclass(slots=True)
class _Token:
    kind: str  # leaf, open, close, and, or, not
    place: int
    text: str = ""  # as typed, of an operator in letters
    mark: str = ""
    clause: TypedClause | None = None
    weight: float = 1.0


class _Item(NamedTuple):
    mark: str
    clause: TypedClause
    alternative: bool = False  # joined by OR to another


class _Reader:
    def __init__(self, text: str, names: Names, operator: str, strict: bool) -> None:
        self._text, self._names, self._operator, self._strict = text, names, operator, strict
        self._fields = [""]  # of the open brackets
        self._ignored = 0  # brackets that are too deep
        self._leaves = 0
        self._unclosed: set[str] = set()  # quotation marks of which no more are closed
        self.operators: set[str] = set()
        self.remarks: list[str] = []

    def clauses(self) -> Clauses:
        """All clauses of the text."""
        self._tokens = self._checked(list(self._tokenized()))
        self._at = 0
        return self._list()

    # From characters to tokens

    def _tokenized(self) -> Iterator[_Token]:
        at, steps, mark, size = 0, 0, "", len(self._text)
        while at < size:
            steps += 1
            if steps > MAX_STEPS or self._leaves >= MAX_CLAUSES:
                self._remark(at, f"a query has {MAX_CLAUSES:,} clauses at most", "what follows is left out")
                return
            character = self._text[at]
            if character.isspace():
                at, mark = SPACE.match(self._text, at).end(), ""  # type: ignore[union-attr]
            elif character in "+-!" and at + 1 < size and MARKED.match(self._text, at + 1):
                mark, at = ("+" if character == "+" else "-"), at + 1
                self.operators.add(mark)
            elif character == ")":
                at, closed = self._closed(at)
                if closed is not None:
                    yield closed
                mark = ""
            else:
                at, one = self._begun(at)
                if one is not None:
                    one.mark, mark = mark, ""
                    yield one
        if len(self._fields) > 1:
            self._remark(size, "a bracket is not closed")

    def _closed(self, at: int) -> tuple[int, _Token | None]:
        weight = WEIGHT.match(self._text, at + 1)
        end = weight.end() if weight else at + 1
        if self._ignored:
            self._ignored -= 1
            return end, None
        if len(self._fields) == 1:
            self._remark(at, "the bracket closes nothing")
            return end, None
        self._fields.pop()
        return end, _Token("close", at, weight=self._weight(weight[1], at) if weight else 1.0)

    def _begun(self, at: int) -> tuple[int, _Token | None]:
        """The end and the token of what begins here; no token where that is skipped."""
        start, name = at, self._fields[-1]
        match = NAME.match(self._text, at)
        if match is not None and is_name(typed := ESCAPE.sub(r"\1", match[1])):
            if typed in self._names:
                at, name = match.end(), typed
                self.operators.add("field")
            elif IDENTIFIER.fullmatch(typed):
                known = f"; {nearest(typed, self._names)}" if list(self._names) else ""
                self._remark(at, f"there is no field or column '{typed[:80]}'{known}", "it is read as text")
        if self._text[at] == "(":
            return at + 1, self._opened(at, name)
        if self._names.is_column(name):
            return self._condition(start, at, name)
        if name in self._names.joined and name not in self._names.fields:
            problem = f"the index joins its fields, so that '{name}' is not searched alone"
            self._remark(start, f"{problem}; build it with separate=True (--separate)")
            name = ""
        if self._text[at] in CLOSING:
            return self._phrase(at, name) or (at + 1, None)
        return self._word(start, at, name)

    def _opened(self, at: int, name: str) -> _Token | None:
        if len(self._fields) > MAX_DEPTH:
            self._ignored += 1
            self._remark(at, f"brackets are nested more than {MAX_DEPTH} deep", "the inner ones are left out")
            return None
        self._fields.append(name)
        return _Token("open", at)

    def _phrase(self, at: int, name: str) -> tuple[int, _Token | None] | None:
        mark = self._text[at]
        match = None if mark in self._unclosed else CLOSING[mark].match(self._text, at)
        if match is None:
            self._unclosed.add(mark)
            self._remark(at, "the quotation mark is not closed")
            return None
        end, slop, width = match.end(), 0, 0
        if suffix := AFTER_QUOTE.match(self._text, end):
            end = suffix.end()
            size = int(suffix[2][:9])
            words = len(match[1].split())
            least, most = (words, MAX_WIDTH) if suffix[1] else (0, MAX_SLOP)
            if not min(least, most) <= size <= most:
                self._remark(suffix.start(), f"{'a window' if suffix[1] else 'slop'} is from {least} to {most} words")
                size = max(min(size, most), min(least, most))
            slop, width = (0, size) if suffix[1] else (size, 0)
        weight = WEIGHT.match(self._text, end)
        end = weight.end() if weight else end
        self.operators.add("phrase")
        text = " ".join(ESCAPE.sub(r"\1", match[1]).split())
        if not text:
            return end, None
        clause = Quoted(text, slop, width, name, self._weight(weight[1], at) if weight else 1.0)
        return end, self._leaf(at, clause)

    def _word(self, start: int, at: int, name: str) -> tuple[int, _Token]:
        end = self._word_end(at)
        raw = self._text[at:end]
        if start == at and raw in OPERATORS:
            return end, _Token(OPERATORS[raw], at, raw)
        prefix, similar, edits, weight = match.groups() if (match := _after(raw)) else (None, None, None, None)
        body = raw[: match.start()] if match else raw
        if not body:  # such as * or ^2 alone
            return end, self._leaf(at, Word(raw, name))
        text = ESCAPE.sub(r"\1", body)
        if "\\" in body:
            self.operators.add("\\")
        if re.search(r"(?<!\\)\*", body):
            self._remark(at, "a * stands at the end of a word", f"{raw[:80]} is read as text")
            return end, self._leaf(at, Word(ESCAPE.sub(r"\1", raw), name))
        factor = self._weight(weight, at) if weight else 1.0
        if prefix:
            self.operators.add("*")
            return end, self._leaf(at, Prefix(text, name, factor))
        if similar:
            self.operators.add("~")
            most = int(edits) if edits else None
            if most is not None and most > MAX_EDITS:
                self._remark(at, f"a word differs by 1 or {MAX_EDITS} letters, not {most}", f"{MAX_EDITS} are taken")
                most = MAX_EDITS
            return end, self._leaf(at, Word(text, name, factor) if most == 0 else Similar(text, most, name, factor))
        return end, self._leaf(at, Word(text, name, factor))

    def _condition(self, start: int, at: int, name: str) -> tuple[int, _Token | None]:
        """A comparison of a column; text where it cannot be one."""
        types, text = self._names.columns, self._text
        clause: TypedClause
        sign, interval = "", RANGE.match(text, at)
        if interval is None:
            if (match := SIGN.match(text, at)) is not None:
                sign, at = match[0], match.end()
            if text[at : at + 1] == '"' and ('"' in self._unclosed or CLOSING['"'].match(text, at) is None):
                return self._phrase(at, "") or (at + 1, None)
        try:
            if (match := interval) is not None:
                low, high = (_bound(*match.group(2, 3)), _bound(*match.group(4, 5)))
                end = match.end()
                clause = between(name, low, high, (match[1] == "[", match[6] == "]"), types)
            else:
                value: str | None
                if (match := CLOSING['"'].match(text, at)) is not None:
                    end, value = match.end(), ESCAPE.sub(r"\1", match[1])
                else:
                    end = self._word_end(at)
                    raw = text[at:end]
                    if start == at and raw in OPERATORS:
                        return end, _Token(OPERATORS[raw], at, raw)
                    if weight := ENDING_WEIGHT.search(raw):
                        raw, end = raw[: weight.start()], at + weight.start()
                    value = None if raw == "*" and not sign else ESCAPE.sub(r"\1", raw)
                clause = compared(name, sign, value, types)
        except ParameterError as error:
            self._remark(start, _problem(error), f"{text[start : min(end, start + 80)]} is read as text")
            return end, self._leaf(start, Word(text[start:end], ""))
        if weight := WEIGHT.match(text, end):
            self._remark(end, "a comparison of a column has no weight", "it is left out")
            end = weight.end()
        return end, self._leaf(start, clause)

    def _word_end(self, at: int) -> int:
        """The end of the word that begins here; in brackets it ends at one that closes them."""
        depth, text = 0, self._text
        while at < len(text) and not text[at].isspace():
            if text[at] == "\\":
                at += 1
            elif text[at] == "(":
                depth += 1
            elif text[at] == ")":
                if not depth and (len(self._fields) > 1 or self._ignored):
                    break
                depth -= 1
            at += 1
        return min(at, len(text))

    def _leaf(self, at: int, clause: TypedClause) -> _Token:
        self._leaves += 1
        return _Token("leaf", at, clause=clause)

    def _weight(self, typed: str, at: int) -> float:
        self.operators.add("^")
        weight = float(typed)
        if weight > MAX_WEIGHT:
            self._remark(at, f"a weight is {MAX_WEIGHT:,.0f} at most")
        return min(weight, MAX_WEIGHT)

    def _remark(self, at: int, problem: str, consequence: str = "") -> None:
        """Note a problem and what is done about it, or raise it where reading is strict."""
        place = f"query, character {min(at, max(len(self._text) - 1, 0)) + 1}"
        if self._strict:
            raise ParameterError(f"{place}: {problem}")
        if len(self.remarks) < MAX_REMARKS:
            joined = f"; {consequence}" if not problem.endswith("?") else f" {consequence[:1].upper()}{consequence[1:]}"
            self.remarks.append(f"{place}: {problem}{joined if consequence else ''}")

    # From tokens to clauses

    def _checked(self, tokens: list[_Token]) -> list[_Token]:
        """The tokens, with operators that join nothing as words."""
        checked: list[_Token] = []
        for number, token in enumerate(tokens):
            before = checked[-1].kind if checked else ""
            after = tokens[number + 1].kind if number + 1 < len(tokens) else ""
            if token.kind in ("and", "or"):
                joins = before in ("leaf", "close") and after in ("leaf", "open", "not")
            else:
                joins = token.kind != "not" or after in ("leaf", "open")
            if not joins:
                self._remark(token.place, f"{token.text} joins nothing", "it is read as a word")
                if self._leaves >= MAX_CLAUSES:
                    continue
                token = self._leaf(token.place, Word(token.text))
            elif token.text:
                self.operators.add(token.kind.upper())
            checked.append(token)
        return checked

    @property
    def _next(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

    def _list(self) -> Clauses:
        """The clauses up to the end of the text, or of the brackets."""
        items: list[_Item] = []
        joined = False
        while self._next not in ("", "close"):
            if self._next == "or":
                self._at += 1
                joined = True
                if items:
                    items[-1] = items[-1]._replace(alternative=True)
                continue
            items += [item._replace(alternative=joined) for item in self._conjunction()]
            joined = False
        return _group(items)

    def _conjunction(self) -> list[_Item]:
        """Clauses joined by AND as one item; the items themselves of those that are all excluded."""
        units = self._unit()
        several = False
        while self._next == "and" or (self._operator == "and" and self._next in ("leaf", "open", "not")):
            self._at += self._next == "and"
            units += self._unit()
            several = True
        if not several or all(unit.mark == "-" for unit in units):
            return units
        must = [unit._replace(mark="+") if unit.mark != "-" else unit for unit in units]
        if len(must) == 1:
            return must if any(unit.mark == "+" for unit in units) else units
        return [_Item("+" if any(unit.mark == "+" for unit in units) else "", _group(must))]

    def _unit(self) -> list[_Item]:
        """A clause with its mark; of a group of excluded clauses alone, these."""
        negated = self._next == "not"
        self._at += negated
        token = self._tokens[self._at]
        self._at += 1
        clause = token.clause
        if token.kind == "open":
            inner = self._list()
            weight = 1.0
            if self._next == "close":
                weight = self._tokens[self._at].weight
                self._at += 1
            clause = _simple(inner, weight)
        mark = "-" if negated else token.mark
        if clause is None or (mark == "-" and _excludes(clause)):
            return []
        if isinstance(clause, Clauses) and _excludes(clause):
            return [_Item("-", one) for one in clause.must_not]
        return [_Item(mark, clause)]


def _group(items: list[_Item]) -> Clauses:
    """The clauses of items side by side. A comparison of a column that is no alternative limits all others."""
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
            only_should = isinstance(clause, Clauses) and not clause.must and not clause.must_not and clause.weight == 1.0
            should += clause.should if isinstance(clause, Clauses) and only_should else [clause]
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
    """The only clause of a group in its place, times the weight; None of an empty group."""
    weight = min(weight * clauses.weight, MAX_WEIGHT)
    inside = (*clauses.must, *clauses.should)
    if not inside and not clauses.must_not:
        return None
    if len(inside) == 1 and not clauses.must_not:
        only = inside[0]
        return only if isinstance(only, Filter) else replace(only, weight=min(only.weight * weight, MAX_WEIGHT))
    return replace(clauses, weight=weight)


def _excludes(clause: TypedClause) -> bool:
    """Whether a clause is a group of excluded clauses alone."""
    return isinstance(clause, Clauses) and not clause.must and not clause.should


def _after(raw: str) -> re.Match[str] | None:
    """The operators at the end of a word, which no backslash takes away."""
    at = max(0, len(raw) - MAX_AFTER)
    while at < len(raw) and (match := AFTER_WORD.search(raw, at)) is not None:
        before = raw[: match.start()]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return match
        at = match.start() + 1
    return None


def _bound(typed: str | None, bare: str | None) -> str | None:
    """The end of a range, in quotation marks or bare; None of an open range."""
    return ESCAPE.sub(r"\1", typed) if typed is not None else None if bare == "*" else bare


def _problem(error: ParameterError) -> str:
    """The problem of a filter, without the place in a text that the user has not typed."""
    return re.sub(r"^where, character \d+: ", "", str(error)).partition("; write ")[0]
