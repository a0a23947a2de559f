"""Filters as text: what cannot be meant is refused with its place."""

import contextlib

import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to

from fontes.core import ParameterError
from fontes.core.dates import date_of, date_text
from fontes.core.where import both, condition, correct_filter

TYPES = {
    "year": "integer",
    "lang": "keyword",
    "open": "boolean",
    "tags": "keywords",
    "born": "date",
    "score": "float",
    "abstract": "text",
    "nested": "mixed",
}


def test_a_filter_in_the_style_of_another_language_is_corrected() -> None:
    for text, better in [
        ("year = 2020", "year == 2020"),
        ("year:2020", "year == 2020"),
        ("year <> 2020 AND lang=cs", 'year != 2020 and lang == "cs"'),
        ("year > 2000 && !open", "year > 2000 and not open"),
        ("born > 2016-05-01", 'born > "2016-05-01"'),
        ("2016-12-10 <= born < 2017-12-10", '"2016-12-10" <= born < "2017-12-10"'),
        ("born >= 2015", 'born >= "2015-01-01"'),
        ("born == 2016-05-01T10:00Z", 'born == "2016-05-01T10:00Z"'),
        ("tags:nlp", '"nlp" in tags'),
        ("tags != 'nlp' OR NOT open = true", '"nlp" not in tags or not open == True'),
        ("lang in (cs, en)", 'lang in ("cs", "en")'),
        ("lang NOT IN (cs)", 'lang not in ("cs",)'),
        ("lang = upper sorbian", 'lang == "upper sorbian"'),
        ("lang == “cs”", 'lang == "cs"'),
        ("lang == 3", 'lang == "3"'),
        ("year == '2020'", "year == 2020"),
        ("score IS NOT NULL and metadata['lang'] = cs", "score is not None and metadata['lang'] == \"cs\""),
        ("yaer > 1", "year > 1"),
        ("open == 1", "open == True"),
        ("year between 3 and 4", "3 <= year <= 4"),
        ("year NOT BETWEEN 3 AND 4 OR lang = cs", 'not (3 <= year <= 4) or lang == "cs"'),
        ("born between 2016-05-01 and 2017", '"2016-05-01" <= born <= "2017-01-01"'),
        ("tags contains nlp and year > 3", '"nlp" in tags and year > 3'),
    ]:
        with pytest.raises(ParameterError, match=r"^where, character \d+: ") as error:
            condition(text, TYPES)
        assert str(error.value).endswith(f" write {better}")
        condition(better, TYPES)


def test_no_filter_is_proposed_that_cannot_be_read() -> None:
    for text in [
        "place between 3 and 4",
        "lang contains c",
        "(year = 3",
        "born = yesterday",
        "a = b",
        "year = many",
        "x" * 3_000,
    ]:
        with pytest.raises(ParameterError) as error:
            condition(text, TYPES)
        assert "; write " not in str(error.value)


@settings(max_examples=up_to(300), deadline=None)
@given(st.text(st.sampled_from("yeartgslno ()[]'\"<>=!,.0129-+*&|\\\n\0é{}:@_"), max_size=40) | st.text(max_size=20))
def test_any_text_is_a_filter_or_a_sentence(text: str) -> None:
    with contextlib.suppress(ParameterError):
        condition(text, TYPES)


def test_the_same_can_be_written_in_several_ways() -> None:
    for text, plain in [
        ("2018 <= year < 2020", "year >= 2018 and year < 2020"),
        ("metadata['year'] == 2020", "year == 2020"),
        ("year == 2020\n and open", "year == 2020 and open"),
        ("2018 < year", "year > 2018"),
        ("open == True", "open"),
    ]:
        assert condition(text, TYPES) == condition(plain, TYPES)


def test_two_filters_are_joined_as_a_whole() -> None:
    assert both("a or b", "c or d") == "(a or b) and (c or d)"
    assert (both(None, "c"), both("a", None), both(None, None)) == ("c", "a", None)


def test_a_date_is_a_moment_by_utc() -> None:
    for text, seconds, shown in [
        ("1970-01-01", 0, "1970-01-01"),
        ("1970-01-02", 86_400, "1970-01-02"),
        ("1969-12-31", -86_400, "1969-12-31"),
        ("1970-01-01T01:00:00+01:00", 0, "1970-01-01"),
        ("1970-01-01 00:00:01.5", 1.5, "1970-01-01T00:00:01.500000Z"),
        ("1970-01-01T00:01Z", 60, "1970-01-01T00:01:00Z"),
    ]:
        assert date_of(text) == seconds * 1_000_000
        assert date_text(date_of(text)) == shown


def test_other_text_is_no_date() -> None:
    for text in ["2020", "2020-1-1", "2020-02-30", "20200101", "2020-01-01T25:00", "yesterday", "2020-01-01x"]:
        assert date_of(text) is None


def test_numbers_are_advised_for_columns_of_keywords_alone() -> None:
    for text in ("born == 5", "open == 5", "lang == True"):
        with pytest.raises(ParameterError) as error:
            condition(text, TYPES)
        assert "--columns" not in str(error.value)


def test_a_negative_number_is_a_constant() -> None:
    condition("year == -5", TYPES)


def test_a_column_in_brackets_is_corrected_like_others() -> None:
    assert correct_filter('metadata["a year"] = 2020', {"a year": "integer"}) == 'metadata["a year"] == 2020'


def test_a_column_whose_name_is_no_word_is_put_in_brackets() -> None:
    columns = {"publish date": "date", "date": "date", "a-b": "integer", "2020": "integer", "": "keyword", "==": "keyword"}
    for text, better in [
        ("publish date > 2016-05-01", 'metadata["publish date"] > "2016-05-01"'),
        ("date > 2016-05-01 and a-b = 3", 'date > "2016-05-01" and metadata["a-b"] == 3'),
        ("metadata['publish date'] = 2016-05-01", "metadata['publish date'] == \"2016-05-01\""),
    ]:
        with pytest.raises(ParameterError) as error:
            condition(text, columns)
        assert str(error.value).endswith(f" write {better}")
