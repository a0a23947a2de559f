"""Parser of metadata filters such as `year >= 2020 and lang in ("cs", "en") and not retracted`.

Text is parsed by Python's `ast` and never evaluated. It may contain column names (`metadata["name"]` for names that are no
Python identifiers), literals, comparisons, `in`, `is None`, `and`, `or`, `not` and brackets. Logic is three-valued, as in SQL:
a comparison with a missing value is neither true nor false, nor is its negation, and only true matches.
"""

from __future__ import annotations

import ast
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from .arrays import Bools
from .dates import DATE, date_of, is_date
from .errors import FontesError, ParameterError
from .hints import meant, nearest

MAX_TEXT = 100_000  # greatest length of a text
MAX_INTEGER = 2**63 - 1  # greatest whole number, which fits into int64
MAX_DEPTH = 100  # greatest nesting depth
TYPES = ("keyword", "integer", "float", "date", "boolean", "keywords")
"""The types of columns; `keywords` is a list of them."""
REFUSED = {"text": "holds long texts", "mixed": "holds values of several types, or others than columns have"}
"""The types of metadata that are no columns, and what messages say of them."""
SIGNS = {ast.Eq: "==", ast.NotEq: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NAMES = {"keyword": "a string", "integer": "a whole number", "float": "a number", "boolean": "True or False"}
NAMES |= {"keywords": NAMES["keyword"], "date": 'a date such as "2020-05-17" or "2020-05-17T12:00:00Z"'}

Mask = Bools
SHOWN = 8  # other columns in the advice of a message
MAX_CORRECTED = 2_000  # greatest length of a corrected text
TOKEN = re.compile(
    rf"""(?P<column>metadata\[\s*(?:"[^"]*"|'[^']*')\s*\])"""
    r"""|(?P<quoted>"[^"]*"|'[^']*'|“[^”]*”|‘[^’]*’)"""
    rf"""|(?P<bare>{DATE.pattern}(?![\w-])|[+-]?\d+(?:\.\d+)?(?![\w-])|\w[\w.-]*)"""
    r"""|(?P<sign><>|[<>!=]=|=[<>]|&&|\|\||[=<>:!&|])|(?P<other>\S)"""
)
SPELLINGS = {
    "=": "==",
    ":": "==",
    "<>": "!=",
    "=<": "<=",
    "=>": ">=",
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
}
COLUMN = r"""(metadata\[[^\]]*\]|\w[\w.-]*)"""
VALUE = r"""("[^"]*"|'[^']*'|[\w+-][\w.:+-]*)"""
BETWEEN = re.compile(rf"{COLUMN}\s+(not\s+)?between\s+{VALUE}\s+and\s+{VALUE}", re.IGNORECASE)
CONTAINS = re.compile(rf"{COLUMN}\s+contains\b", re.IGNORECASE)
WORDS = {"and": "and", "or": "or", "not": "not", "in": "in", "is": "is", "none": "None", "null": "None"}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
TRUTH = {"true": "True", "yes": "True", "1": "True", "false": "False", "no": "False", "0": "False"}


class ColumnSource(Protocol):
    """Source of column values."""

    def present(self, column: str) -> Mask:
        """Return whether each document has a value."""
        ...

    def test(self, column: str, sign: str, value: object) -> Mask:
        """Return whether each document's value passes a test; false where it has none.

        Args:
            column: The name of the column.
            sign: "==", "<", "<=", ">", ">="; "in", for a tuple `value`; "holds" for a list column that contains `value`.
            value: The operand: a string, a number, a truth value; for dates `date_of`.
        """
        ...


class FilterCondition(ABC):
    """A parsed filter."""

    @abstractmethod
    def masks(self, columns: ColumnSource) -> tuple[Mask, Mask]:
        """Return masks of documents where the condition is true and where it is false; neither for missing values."""

    def passed(self, columns: ColumnSource) -> Mask:
        """Return the mask of documents where the condition is true."""
        return self.masks(columns)[0]


@dataclass(frozen=True)
class Test(FilterCondition):
    """A comparison of a column with a constant; see `ColumnSource.test`."""

    column: str
    sign: str
    value: object

    def masks(self, columns: ColumnSource) -> tuple[Mask, Mask]:
        passed = self.passed(columns)
        return passed, columns.present(self.column) & ~passed

    def passed(self, columns: ColumnSource) -> Mask:
        return columns.test(self.column, self.sign, self.value)


@dataclass(frozen=True)
class Missing(FilterCondition):
    """Whether a document has no value in a column."""

    column: str

    def masks(self, columns: ColumnSource) -> tuple[Mask, Mask]:
        present = columns.present(self.column)
        return ~present, present


@dataclass(frozen=True)
class Not(FilterCondition):
    """Negation of a condition."""

    inner: FilterCondition

    def masks(self, columns: ColumnSource) -> tuple[Mask, Mask]:
        true, false = self.inner.masks(columns)
        return false, true


@dataclass(frozen=True)
class Every(FilterCondition):
    """Conditions joined by `and`."""

    parts: tuple[FilterCondition, ...]

    def masks(self, columns: ColumnSource) -> tuple[Mask, Mask]:
        true, false = zip(*(part.masks(columns) for part in self.parts), strict=True)
        return reduce(np.logical_and, true), reduce(np.logical_or, false)

    def passed(self, columns: ColumnSource) -> Mask:
        return reduce(np.logical_and, [part.passed(columns) for part in self.parts])


def condition(text: str, types: Mapping[str, str], origin: str = "") -> FilterCondition:
    """Parse a filter.

    Args:
        text: An expression, such as `year >= 2020 and "nlp" in tags`.
        types: The type of each column by name; `REFUSED` has those of metadata that are no columns.
        origin: For a text that a program wrote: what messages begin with, in place of a position in the text.

    Raises:
        ParameterError: The expression is invalid, or has unknown columns or constants of another type; the message gives the
            place and a suggestion if there is one.
    """
    try:
        parser = _FilterParser(text, types, origin)
        return parser.condition(parser.tree())
    except ParameterError as error:
        columns = {name: kind for name, kind in types.items() if kind in TYPES}
        if origin or not isinstance(text, str) or (suggestion := correct_filter(text, columns)) is None:
            raise
        with suppress(ParameterError):  # the suggestion may be invalid, too
            parser = _FilterParser(suggestion, types)
            parser.condition(parser.tree())
            sentence = str(error)
            error = ParameterError(f"{sentence}{' ' if sentence.endswith('?') else '; '}write {suggestion}")
        raise error from None


def both(first: str | None, second: str | None) -> str | None:
    """Return the conjunction of two filters; None passes everything."""
    return f"({first}) and ({second})" if first is not None and second is not None else second if first is None else first


@dataclass(eq=False)
class PythonText:
    """A text in a subset of Python's grammar, a filter or a pipeline, with errors that give their place.

    Args:
        text: An expression.

    Attributes:
        noun: Name of such a text in messages.
        example: An example of one.
        longest: Greatest length in characters.
        counted: Text before the character number (from 1) in an error.
    """

    noun: ClassVar[str]
    example: ClassVar[str]
    longest: ClassVar[int]
    counted: ClassVar[str]

    text: str

    def tree(self) -> ast.expr:
        """Return the syntax tree of the expression.

        Raises:
            ParameterError: The text is no expression, or too long.
        """
        if not isinstance(self.text, str):
            raise ParameterError(f"a {self.noun} is written as a text, not as {type(self.text).__name__}")
        if not self.text.strip():
            raise ParameterError(f"the {self.noun} is empty; write it as {self.example}")
        if len(self.text) > self.longest:
            raise ParameterError(f"the {self.noun} has {len(self.text):,} characters; {self.longest:,} are allowed")
        self._source = self.text.replace("\n", " ").strip()  # a text may span several lines
        try:
            return ast.parse(self._source, mode="eval").body
        except SyntaxError as error:
            raise self.error((error.offset or 1) - 1, f"not an expression ({error.msg.partition(';')[0]})") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ParameterError(f"the {self.noun} cannot be read ({error or 'nested too deeply'})") from None

    def error(self, node: ast.expr | ast.keyword | int, problem: str, kind: type[FontesError] = ParameterError) -> FontesError:
        """Return the error for a problem at an expression or at a character number, from 0."""
        # ast counts columns in bytes
        column = node if isinstance(node, int) else len(self._source.encode()[: node.col_offset].decode(errors="replace"))
        return kind(f"{self.counted} {column + 1}: {problem}")


@dataclass(eq=False)
class _FilterParser(PythonText):
    noun, example, longest, counted = "filter", 'where="year >= 2020 and not retracted"', MAX_TEXT, "where, character"

    types: Mapping[str, str]
    origin: str = ""
    depth: int = 0

    def error(self, node: ast.expr | ast.keyword | int, problem: str, kind: type[FontesError] = ParameterError) -> FontesError:
        return kind(f"{self.origin}: {problem}") if self.origin else super().error(node, problem, kind)

    def condition(self, node: ast.expr) -> FilterCondition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(node, f"nested more than {MAX_DEPTH} deep")
        try:
            match node:
                case ast.BoolOp(op=ast.And()):
                    return Every(tuple(map(self.condition, node.values)))
                case ast.BoolOp():
                    return Not(Every(tuple(Not(self.condition(value)) for value in node.values)))
                case ast.UnaryOp(op=ast.Not()):
                    return Not(self.condition(node.operand))
                case ast.Compare():
                    sides = [node.left, *node.comparators]
                    pairs = tuple(map(self._compared, sides, node.ops, sides[1:]))
                    return pairs[0] if len(pairs) == 1 else Every(pairs)
            column = self._column(node)
            if column is None:
                raise self.error(node, "only columns, comparisons, in, is None, and, or, not are known here")
            if self.types[column] != "boolean":
                raise self.error(node, f"{self._described(column)}, which has to be compared: {column} == …")
            return Test(column, "==", True)
        finally:
            self.depth -= 1

    def _compared(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> FilterCondition:
        column, other = self._column(left), self._column(right)
        if column is not None and other is not None:
            raise self.error(right, "two columns; compare a column with a constant")
        test: FilterCondition
        if isinstance(sign, ast.Is | ast.IsNot):
            if column is None or not (isinstance(right, ast.Constant) and right.value is None):
                raise self.error(right, "`is` and `is not` are only for None: year is None")
            test = Missing(column)
        elif isinstance(sign, ast.In | ast.NotIn):
            test = self._inside(left, column, right, other)
        elif column is not None:
            test = self._with_constant(left, column, SIGNS[type(sign)], right)
        elif other is not None:
            test = self._with_constant(right, other, MIRRORED[SIGNS[type(sign)]], left)
        else:
            raise self.error(left, "no column; compare a column with a constant")
        return Not(test) if isinstance(sign, ast.NotEq | ast.IsNot | ast.NotIn) else test

    def _inside(self, left: ast.expr, column: str | None, right: ast.expr, other: str | None) -> FilterCondition:
        """Comparison by `in`: a column in constants, or a constant in a list column."""
        if other is not None:
            if self.types[other] != "keywords":
                raise self.error(right, f"{self._described(other)} and no list; write {other} == …, or {other} in (…, …)")
            return Test(other, "holds", self._constant(left, other))
        if column is None:
            raise self.error(left, "no column; write year in (2020, 2021), or 'nlp' in tags of a column of lists")
        if self.types[column] == "keywords":
            raise self.error(left, f"{self._described(column)}; write 'a' in {column} or 'b' in {column}")
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            raise self.error(right, f"constants in brackets follow: {column} in (…, …)")
        return Test(column, "in", tuple(self._constant(item, column) for item in right.elts))

    def _with_constant(self, node: ast.expr, column: str, sign: str, constant: ast.expr) -> FilterCondition:
        if self.types[column] == "keywords":
            raise self.error(node, f"{self._described(column)}; write 'a' in {column}")
        if self.types[column] == "boolean" and sign != "==":
            raise self.error(node, f"{self._described(column)}, which is equal or not; write {column}, or not {column}")
        value = self._constant(constant, column)
        if self.types[column] == "keyword" and sign != "==" and is_date(value):
            remedy = f"build the index with {self._typed(column, 'date')}, or with their form: {column}=date:%d/%m/%Y"
            raise self.error(node, f"{self._described(column)}, and its values are ordered as texts, not as dates; {remedy}")
        return Test(column, sign, value)

    def _column(self, node: ast.expr) -> str | None:
        match node:
            case ast.Name():
                name = node.id
            case ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=str() as name)):
                pass
            case _:
                return None
        kind = self.types.get(name)
        if kind in TYPES:
            return name
        if kind is not None:
            remedy = f"; build the index with {self._typed(name, 'TYPE')} if they fit one type" * (kind == "mixed")
            raise self.error(node, f"'{name}' {REFUSED.get(kind, 'is no column')}: it cannot be filtered by{remedy}")
        if name in ("title", "text"):
            raise self.error(node, f"the {name} of documents is searched, and cannot be filtered by; {self._hint(name)}")
        raise self.error(node, f"there is no column '{name}'; {self._hint(name)}")

    def _hint(self, name: str) -> str:
        columns = [column for column, kind in self.types.items() if kind in TYPES]
        return nearest(name, columns) if columns else "the index has none, as its documents came without metadata"

    def _constant(self, node: ast.expr, column: str) -> Any:
        kind = self.types[column]
        match node:
            case ast.Constant():
                value = node.value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if (
                not isinstance(number, bool)
            ):
                value = -number if isinstance(node.op, ast.USub) else number
            case _:
                raise self.error(node, f"{self._described(column)}, so that a constant is needed here: {NAMES[kind]}")
        if value is None:
            raise self.error(node, f"None is no value; write {column} is None")
        if isinstance(value, int | float) and (
            abs(value) > MAX_INTEGER if isinstance(value, int) else not math.isfinite(value)
        ):
            raise self.error(node, f"numbers are finite, and whole ones go up to {MAX_INTEGER:,}")
        if isinstance(value, str) and kind == "date" and date_of(value) is not None:
            return date_of(value)
        expected = {"boolean": bool, "integer": int | float, "float": int | float, "date": ()}.get(kind, str)
        if not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean"):
            number = kind == "keyword" and isinstance(value, int | float) and not isinstance(value, bool)
            numeric = "integer" if isinstance(value, int) else "float"
            remedy = f"; build the index with {self._typed(column, numeric)} to compare numbers" if number else ""
            problem = f"{self._described(column)}; it is compared with {NAMES[kind]}, not with {value!r}{remedy}"
            raise self.error(node, problem)
        return value

    def _typed(self, column: str, kind: str) -> str:
        """Return the option of a build that gives a column a type and keeps the others, which it would leave out."""
        others = [f"{name}={other}" for name, other in self.types.items() if other in TYPES and name != column]
        return f"--columns {','.join([f'{column}={kind}', *others[:SHOWN]])}" + ",…" * (len(others) > SHOWN)

    def _described(self, column: str) -> str:
        kind = self.types[column]
        return f"'{column}' is {'a list of keywords' if kind == 'keywords' else f'a column of type {kind}'}"


class _Token(NamedTuple):
    kind: str  # "column", "value", "comparison", "word" of the grammar, or "other" sign
    text: str  # in the spelling of the grammar
    value: str = ""  # text of a value, without its quotes


def correct_filter(text: str, columns: Mapping[str, str]) -> str | None:
    """Return the filter that was probably meant (possibly still invalid), or None if no known habit applies.

    Replaces `=`, `:`, `<>`, `&&` and `AND` by the grammar's signs and words, dates and unknown words by constants of the
    compared column's type, and misspelled names by the nearest column.

    Args:
        text: An invalid filter.
        columns: The type of each column by name.
    """
    if len(text) > MAX_CORRECTED:
        return None
    words = _without_sql(_subscripted(text, columns), columns)
    better = "".join(_spaced(list(_corrected(list(_tokens(words, columns)), columns))))
    return None if better == text else better


def _subscripted(text: str, columns: Iterable[str]) -> str:
    """Return a filter in which bare names of columns that are no words, such as `publish date`, are subscripts of metadata."""
    names = [re.escape(name) for name in columns if not name.isidentifier() and name[:1].isalpha() and name[-1].isalnum()]
    bare = rf"""(?<![\w"'])(?:{"|".join(sorted(names, key=len, reverse=True))})(?![\w"'])"""
    return re.sub(bare, lambda match: f"metadata[{json.dumps(match[0], ensure_ascii=False)}]", text) if names else text


def _without_sql(text: str, columns: Mapping[str, str]) -> str:
    """Return a filter with comparisons in place of `between`, and of `contains` for a list of keywords."""

    def compared(match: re.Match[str]) -> str:
        column, negated, low, high = match.groups()
        if _name(column) not in columns:
            return match[0]
        return f"not ({low} <= {column} <= {high})" if negated else f"{low} <= {column} <= {high}"

    text = BETWEEN.sub(compared, text)
    return CONTAINS.sub(lambda match: f"{match[1]} ==" if columns.get(_name(match[1])) == "keywords" else match[0], text)


def _tokens(text: str, columns: Mapping[str, str]) -> Iterator[_Token]:
    for match in TOKEN.finditer(text):
        word = match[0]
        match match.lastgroup:
            case "quoted":
                yield _Token("value", json.dumps(word[1:-1], ensure_ascii=False) if word[0] in "“‘" else word, word[1:-1])
            case "sign":
                sign = SPELLINGS.get(word, word)
                yield _Token("comparison" if sign in COMPARISONS else "word", sign)
            case "bare" if word not in columns and word.lower() in WORDS:
                yield _Token("word", WORDS[word.lower()])
            case "bare" if word not in columns:
                yield _Token("value", word, word)
            case "bare" | "column":
                yield _Token("column", word)
            case _:
                yield _Token("other", word)


def _corrected(tokens: list[_Token], columns: Mapping[str, str]) -> Iterator[str]:
    kinds = [*(token.kind for token in tokens), "", ""]
    i = 0
    while i < len(tokens):
        token, following = tokens[i], kinds[i + 1]
        if token.kind == "value" and following == "comparison" and kinds[i + 2] == "column":
            yield _constant(token.value, columns[_name(tokens[i + 2].text)])
            i += 1
            continue
        compared = following == "comparison" or (following == "word" and tokens[i + 1].text in ("in", "not", "is"))
        near = meant(token.text, columns) if token.kind == "value" and compared else []
        if token.kind != "column" and not near:
            yield token.text
            i += 1
            continue
        column = token.text if token.kind == "column" else near[0]
        kind = columns.get(_name(column), "")
        end = i + 2
        while kinds[end : end + 1] == ["value"]:
            end += 1
        if following == "comparison" and end > i + 2:
            yield _comparison(column, kind, tokens[i + 1].text, " ".join(word.value for word in tokens[i + 2 : end]))
            i = end
        elif compared and following == "word" and tokens[i + 1].text != "is":
            yield column
            i, constants = i + 1, 0
            while i < len(tokens) and tokens[i].text not in (")", "]", "and", "or"):
                constants += tokens[i].kind == "value"
                yield _constant(tokens[i].value, kind) if tokens[i].kind == "value" else tokens[i].text
                i += 1
            if constants == 1 and tokens[i - 1].text != ",":
                yield ","  # makes brackets around one constant a tuple
        else:
            yield column
            i += 1


def _comparison(column: str, kind: str, sign: str, value: str) -> str:
    if kind == "keywords" and sign in ("==", "!="):
        return f"{_constant(value, kind)} {'in' if sign == '==' else 'not in'} {column}"
    return f"{column} {sign} {_constant(value, kind)}"


def _constant(value: str, kind: str) -> str:
    """Constant in the type of its column, or the unchanged value if it does not convert."""
    quoted = json.dumps(value, ensure_ascii=False)
    if kind == "boolean":
        return TRUTH.get(value.lower(), value)
    if kind in ("integer", "float"):
        return value if re.fullmatch(r"[+-]?\d+(\.\d+)?", value) else quoted
    if kind == "date" and re.fullmatch(r"\d{4}", value) and date_of(f"{value}-01-01") is not None:
        return f'"{value}-01-01"'
    return quoted


def _name(column: str) -> str:
    return column[len("metadata[") : -1].strip()[1:-1] if column.startswith("metadata[") else column


def _spaced(words: list[str]) -> Iterator[str]:
    for previous, word in zip(["(", *words], words, strict=False):
        yield word if previous in ("(", "[") or word in (")", "]", ",") else f" {word}"
