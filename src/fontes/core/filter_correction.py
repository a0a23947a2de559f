"""Suggestions for invalid filters, from habits of SQL and search boxes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .dates import DATE, date_of
from .hints import meant

MAX_TEXT = 2_000  # greatest length of a corrected text
TOKEN = re.compile(
    rf"""(?P<column>metadata\[\s*(?:"[^"]*"|'[^']*')\s*\])"""
    r"""|(?P<quoted>"[^"]*"|'[^']*'|“[^”]*”|‘[^’]*’)"""
    rf"""|(?P<bare>{DATE.pattern}(?![\w-])|[+-]?\d+(?:\.\d+)?(?![\w-])|\w[\w.-]*)"""
    r"""|(?P<sign><>|[<>!=]=|=[<>]|&&|\|\||[=<>:!&|])|(?P<other>\S)"""
)
SIGNS = {"=": "==", ":": "==", "<>": "!=", "=<": "<=", "=>": ">=", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}
WORDS = {"and": "and", "or": "or", "not": "not", "in": "in", "is": "is", "none": "None", "null": "None"}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
TRUTH = {"true": "True", "yes": "True", "1": "True", "false": "False", "no": "False", "0": "False"}


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
    if len(text) > MAX_TEXT:
        return None
    better = "".join(_spaced(list(_corrected(list(_tokens(text, columns)), columns))))
    return None if better == text else better


def _tokens(text: str, columns: Mapping[str, str]) -> Iterator[_Token]:
    for match in TOKEN.finditer(text):
        word = match[0]
        match match.lastgroup:
            case "quoted":
                yield _Token("value", json.dumps(word[1:-1], ensure_ascii=False) if word[0] in "“‘" else word, word[1:-1])
            case "sign":
                sign = SIGNS.get(word, word)
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
