"""The query language: what typed texts say, and how it is written."""

import time

import pytest
from hypothesis import example, given
from support.each import each
from support.small_collections import PROPERTY
from support.typed_queries import NAMES, TYPED

from fontes.core import ParameterError
from fontes.core.where import condition
from fontes.lexical.clauses import Clauses, Prefix, Quoted, TypedFilter, TypedSimilar, TypedWord
from fontes.lexical.syntax import MAX_CLAUSES, MAX_DEPTH, Names, read

PLAIN = ["C++", "wi-fi", "f(x)", "12:30", "-", "http://a.cz"]
A, B, C = TypedWord("a"), TypedWord("b"), TypedWord("c")


def clauses(text: str, operator: str = "or") -> Clauses:
    return read(text, NAMES, operator, strict=True).clauses


def test_a_text_says() -> None:
    for text, expected in [
        ("a b", Clauses(should=(A, B))),
        ("+a b -c", Clauses((A,), (B,), (C,))),
        ("a AND b", Clauses((A, B))),
        ("a && b || c", Clauses(should=(Clauses((A, B)), C))),
        ("a b AND c", Clauses(should=(A, Clauses((B, C))))),
        ("a AND NOT b", Clauses((A,), (), (B,))),
        ("a OR NOT b", Clauses((), (A,), (B,))),
        ("a !b", Clauses((), (A,), (B,))),
        ("+a AND b c", Clauses((A, B), (C,))),
        ("NOT a AND NOT b", Clauses(must_not=(A, B))),
        ("a (b c)", Clauses(should=(A, B, C))),
        ("a (b c)^2", Clauses(should=(A, Clauses(should=(B, C), weight=2.0)))),
        ("a +(b c)", Clauses((Clauses(should=(B, C)),), (A,))),
        ("+(+a -b) c", Clauses((A,), (C,), (B,))),
        ("a (-b)", Clauses((), (A,), (B,))),
        ("a ()", Clauses(should=(A,))),
        ("(a^2)^3", Clauses(should=(TypedWord("a", "", 6.0),))),
        ("title:a title:(b c)", Clauses(should=(TypedWord("a", "title"), TypedWord("b", "title"), TypedWord("c", "title")))),
        ('title:"a b"~2^3', Clauses(should=(Quoted("a b", 2, 0, "title", 3.0),))),
        ('"a  b"~uw8', Clauses(should=(Quoted("a b", 0, 8),))),
        ("“a b” „c a“", Clauses(should=(Quoted("a b"), Quoted("c a")))),
        (
            "a* b~ c~1 a~2^.5",
            Clauses(should=(Prefix("a"), TypedSimilar("b"), TypedSimilar("c", 1), TypedSimilar("a", 2, "", 0.5))),
        ),
        ("C++ wi-fi f(x) 12:30 - http://a.cz", Clauses(should=tuple(map(TypedWord, PLAIN)))),
        (r"\+a \AND a\ b \"c", Clauses(should=tuple(map(TypedWord, ["+a", "AND", "a b", '"c'])))),
        ("(see f(x))", Clauses(should=(TypedWord("see"), TypedWord("f(x)")))),
    ]:
        assert clauses(text) == expected


@each(
    ("text", "expected"),
    [
        ("a b", Clauses((A, B))),
        ("a b OR c", Clauses(should=(Clauses((A, B)), C))),
        ("a -b", Clauses((A,), (), (B,))),
        ("a (b OR c)", Clauses((A, Clauses(should=(B, C))))),
        ("a", Clauses(should=(A,))),
    ],
)
def test_with_and_clauses_side_by_side_must_all_match(text: str, expected: Clauses) -> None:
    assert clauses(text, "and") == expected


def test_a_comparison_of_a_column_is_a_filter() -> None:
    for text, where in [
        ("year:2020", "year == 2020"),
        ("year:>=2020", "year >= 2020"),
        ("year:[2020 TO 2024]", "year >= 2020 and year <= 2024"),
        ("year:{2020 TO 2024}", "year > 2020 and year < 2024"),
        ("year:{2020 TO *]", "year > 2020"),
        ("year:[* TO *]", "year is not None"),
        ("lang:*", "lang is not None"),
        ('lang:"pt br"', "lang == 'pt br'"),
        ('lang:[a TO "b c"}', "lang >= 'a' and lang < 'b c'"),
        ("tags:nlp", "'nlp' in tags"),
        ("score:<-1.5", "score < -1.5"),
        ("new:True", "new == True"),
        ("date:2020-12", "date >= '2020-12-01' and date < '2021-01-01'"),
        ("date:2020-02-29", "date >= '2020-02-29' and date < '2020-03-01'"),
        ("date:>2020", "date >= '2021-01-01'"),
        ("date:<=2020-05", "date < '2020-06-01'"),
        ("date:{2019 TO 2020}", "date >= '2020-01-01' and date < '2020-01-01'"),
        ("date:9999", "date >= '9999-01-01'"),
        ("date:2020-05-17T12:00:00Z", "date == '2020-05-17T12:00:00Z'"),
        (r"a\ b:2020-05-17", "metadata['a b'] >= '2020-05-17' and metadata['a b'] < '2020-05-18'"),
    ]:
        (only,) = clauses(text).must
        assert isinstance(only, TypedFilter)
        assert only.where == where
        condition(where, NAMES.columns)


def test_a_comparison_beside_words_is_required_and_one_joined_by_or_is_not() -> None:
    year = TypedFilter("year:2020", "year == 2020")
    assert clauses("year:2020 a") == Clauses((year, A))
    assert clauses("a year:2020 b") == Clauses((year, Clauses(should=(A, B))))
    assert clauses("+year:2020 a") == Clauses((year, A))
    assert clauses("+a b year:2020") == Clauses((A, year), (B,))
    assert clauses("year:2020 OR a") == Clauses(should=(year, A))
    assert clauses("a -year:2020") == Clauses((), (A,), (year,))
    cs, en = TypedFilter("lang:cs", "lang == 'cs'"), TypedFilter("lang:en", "lang == 'en'")
    assert clauses("lang:(cs OR en) a") == Clauses((Clauses(should=(cs, en)), A))
    assert clauses("(lang:cs a) b") == Clauses(should=(Clauses((cs, A)), B))


def test_a_separate_field_comes_before_a_column_and_a_joined_one_after_it() -> None:
    names = Names(("title",), ("text", "lang"), {"title": "keyword", "lang": "keyword"})
    typed = read("title:a lang:cs text:b", names)
    assert typed.clauses == Clauses((TypedFilter("lang:cs", "lang == 'cs'"), Clauses(should=(TypedWord("a", "title"), B))))
    assert (
        "the index joins its fields, so that 'text' is not searched by itself; build it with separate=True" in typed.remarks[0]
    )


def test_what_is_not_well_formed_is_read_with_a_remark_or_refused() -> None:
    for text, lenient, sentence in [
        ('title:"b c', "b c", "character 7: the quotation mark is not closed"),
        ('a year:>="2 c', "a 2 c", "character 10: the quotation mark is not closed"),
        ('a "b c', "a b c", "character 3: the quotation mark is not closed"),
        ("(a b", "a b", "character 4: a bracket is not closed"),
        ("a ) b", "a b", "character 3: the bracket closes nothing"),
        ("AND a", r"\AND a", "character 1: AND joins nothing; it is read as a word"),
        ("a OR", r"a \OR", "character 3: OR joins nothing; it is read as a word"),
        ("a AND OR b", r"a \AND b", "character 3: AND joins nothing; it is read as a word"),
        ("NOT", r"\NOT", "character 1: NOT joins nothing; it is read as a word"),
        ("tilte:a", r"tilte\:a", "character 1: there is no field or column 'tilte'; did you mean 'title'? It is read as text"),
        ("x a~9", "x a~2", "character 3: a word differs by 1 or 2 letters, not 9; 2 are taken"),
        ('"a b"~99999', '"a b"~90', "character 6: slop is from 0 to 90 words"),
        ('"a b"~uw1', '"a b"~uw2', "character 6: a window is from 2 to 90 words"),
        ("w*r", r"w\*r", "character 1: a * stands at the end of a word; w*r is read as text"),
        ("a * b", r"a \* b", "character 3: * follows no word; it is read as text"),
        ("^2", r"\^2", "character 1: ^2 follows no word; it is read as text"),
        ("harb?ur", r"harb\?ur", "character 1: ? stands for no letter; write a prefix such as harb*, or harbour~1"),
        ("a~0.8", r"a\~0.8", "character 1: after a word stand ~1, ~2 or a weight such as ^0.5; a~0.8 is read as text"),
        ("b a^-1", r"b a\^-1", "character 3: after a word stand ~1, ~2 or a weight such as ^0.5"),
        ('"a b"~x', '"a b" \\~x', "character 6: this is no operator of a phrase; write ~2, ~uw8 or ^2"),
        ('"a harb*"', '"a harb*"', "character 1: a * in quotation marks is no operator"),
        ("year>=2020", "year>=2020", "character 1: a comparison has a colon: year:>=2020; year>=2020 is read as text"),
        ("year=2020", "year=2020", "character 1: a comparison has a colon: year:2020"),
        ("title: a", "title: a", "character 1: a name is followed by its word without a space: title:word"),
        ("[2020 TO 2024]", r"\[2020 TO 2024]", "character 1: a range is of a column: year:[2020 TO 2024]"),
        ("year:old", r"year\:old", "character 1: 'year' is a column of type integer; it is compared with"),
        ("year:1e999", r"year\:1e999", "character 1: 'year' is a column of type integer; it is compared with"),
        ("year:2020^2", "+year:2020", "character 10: a comparison of a column has no weight"),
        ("a^1e30", "a^1e+06", "character 1: a weight is 1,000,000 at most"),
    ]:
        typed = read(text, NAMES)
        assert str(typed.clauses) == lenient
        assert typed.remarks[0].startswith(f"query, {sentence}")
        with pytest.raises(ParameterError) as error:
            read(text, NAMES, strict=True)
        assert typed.remarks[0].startswith(str(error.value))


@PROPERTY
@given(TYPED)
@example("+a OR year:2020")
@example('a OR (lang:cs OR lang:"pt br")^2')
@example("7:a title:body:b \\:c")
def test_the_canonical_text_is_read_as_the_same_clauses(text: str) -> None:
    for operator in ("or", "and"):
        first = read(text, NAMES, operator)
        again = read(str(first.clauses), NAMES)
        assert again.clauses == first.clauses
        assert not again.remarks or first.remarks


@PROPERTY
@given(TYPED)
def test_a_text_is_an_error_in_strict_reading_where_it_has_a_remark(text: str) -> None:
    if remarks := read(text, NAMES).remarks:
        with pytest.raises(ParameterError) as error:
            read(text, NAMES, strict=True)
        assert str(ParameterError(remarks[0])).startswith(str(error.value)[:500])
    else:
        read(text, NAMES, strict=True)


LONG = ["a " * 10_000, "+a -b " * 10_000, "a" * 100_000 + "*", "x" + " " * 1_000_000 + "y", "a:" * 50_000]
LONG += ["(" * 100_000, ")" * 100_000, "(a " * 5_000 + ")" * 5_000, "(-" * 5_000 + "a", "year:(" * 10_000, "year:[" * 20_000]
LONG += ['" ' * 50_001, "“ " * 50_000, "a AND " * 20_000, "NOT " * 20_000, "+" * 100_000, "^9" * 30_000, "~" * 100_000]
LONG += ["\\" * 100_001, '"' + "\\" * 100_000, "a~" + "1" * 100_000]


@each("text", LONG)
def test_long_and_deep_texts_are_bounded(text: str) -> None:
    start = time.process_time()
    typed = read(text, NAMES)
    assert len(list(typed.clauses.leaves)) <= MAX_CLAUSES
    assert depth(typed.clauses) <= MAX_DEPTH + 2
    assert read(str(typed.clauses), NAMES).clauses == typed.clauses
    assert time.process_time() - start < 30  # and not minutes


def depth(group: Clauses) -> int:
    inner = [one for one in (*group.must, *group.should, *group.must_not) if isinstance(one, Clauses)]
    return 1 + max(map(depth, inner), default=0)
