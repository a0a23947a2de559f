"""Columns of dates of a named form, and columns that look like dates."""

import re
import shlex
from datetime import datetime

import pytest
from support.described import passing
from support.each import each

from fontes.core import ParameterError
from fontes.core.dates import FORMS, date_in_form, date_of, is_date
from fontes.index import Index
from fontes.index.columns import date_forms, filter_of

NOON = date_of("2020-12-25T12:00:00Z")


def built(path, *values, **options):
    docs = [{"id": f"d{number}", "text": "a cat sat", "when": value} for number, value in enumerate(values)]
    return Index.build(docs, path, **options)


@each(
    ("form", "values"),
    [
        ("%d/%m/%Y", ["24/12/2020", "25/12/2020", " 26/12/2020 "]),
        ("%m/%d/%Y", ["12/24/2020", "12/25/2020", "2020-12-26"]),
        ("%B %d, %Y, %H:%M", ["December 24, 2020, 12:30", "December 25, 2020, 00:00", "December 26, 2020, 00:00"]),
        (
            "%a %b %d %H:%M:%S %z %Y",
            ["Thu Dec 24 23:00:00 +0000 2020", "Fri Dec 25 01:00:00 +0100 2020", "Sat Dec 26 00:00:00 +0000 2020"],
        ),
        ("%Y%m%d", [20201224, "20201225", 20201226]),
        ("seconds", [1608768000, 1608854400, "1608940800.5"]),
        ("milliseconds", [1608768000000, 1608854400000, 1608940800000.0]),
        ("%Y", ["2019", 2020, 2021]),
    ],
)
def test_a_column_has_dates_of_a_named_form_also_in_additions(tmp_path, form, values):
    index = built(tmp_path / "x", *values, None, "", columns={"when": f"date:{form}"})
    assert index.columns == {"when": "date"}
    middle = "2020-01-01" if form == "%Y" else "2020-12-25"
    assert passing(index, f"when == '{middle}'") == ["d1"]
    assert passing(index, f"when > '{middle}'") == ["d2"]
    index.add([{"id": "new", "text": "x", "when": values[1]}, {"id": "iso", "text": "x", "when": middle}])
    index.merge()
    reopened = Index.open(tmp_path / "x")
    assert passing(reopened, f"when == '{middle}'") == ["d1", "new", "iso"]
    assert reopened.doc("d1").metadata == {"when": values[1]}


@each(
    ("values", "forms"),
    [
        (["25/12/2020", "01/02/2020"], ["%d/%m/%Y"]),
        (["01/02/2020", "12/11/2020"], ["%d/%m/%Y", "%m/%d/%Y"]),
        (["17 May 2020", "2020-05-17"], [""]),
        (["Fri, 25 Dec 2020 12:00:00 GMT", "Sat, 26 Dec 2020 12:00:00 GMT"], ["%a, %d %b %Y %H:%M:%S %Z"]),
        (["20201225"], ["%Y%m%d"]),
        ([1608768000, 1608854400], ["seconds"]),
        ([1608768000000], ["milliseconds"]),
        (["25/12/2020", "n. d."], None),
        (["sport", "business"], None),
        ([2019, 2020], None),
    ],
)
def test_a_column_that_looks_like_dates_is_known_by_its_forms(tmp_path, values, forms):
    index = built(tmp_path / "x", *values, None)
    assert date_forms(index.state) == ({} if forms is None else {"when": forms})


def test_numbers_look_like_dates_only_in_a_column_whose_name_says_so(tmp_path):
    docs = [{"id": "a", "text": "x", "visits": 1608768000, "created_utc": 1608768000}]
    assert date_forms(Index.build(docs, tmp_path / "x").state) == {"created_utc": ["seconds"]}


def test_each_known_form_is_parsed_as_it_is_written():
    moment = datetime.fromisoformat("2020-12-25T12:00:00+00:00")
    written = {form: moment.strftime(form) for form in FORMS}
    assert len(written) > 100
    parsed = {form: date_in_form(text, form) for form, text in written.items()}
    assert [form for form, date in parsed.items() if date not in (NOON, date_of("2020-12-25"))] == []
    dates = {form for form, text in written.items() if is_date(text)}
    assert dates == {form for form, text in written.items() if not text.isdigit() and not form.startswith("%d.%m.%y")}


@each("value", ["2020-12-25", "25/12/2020", "25 December 2020", "2020-12-25T12:00:00Z"])
@each("sign", ["<", "<=", ">", ">="])
def test_keywords_are_not_ordered_by_a_date(tmp_path, value, sign):
    index = built(tmp_path / "x", "25/12/2020", "late in 2020")
    with pytest.raises(
        ParameterError, match=r"its values are ordered as texts, not as dates; build the index with --columns when=date,"
    ):
        filter_of(index.state, f"when {sign} '{value}'")
    assert passing(index, f"when == '{value}'") == (["d0"] if value == "25/12/2020" else [])
    assert passing(index, f"when {sign} 'k'") == (["d0"] if "<" in sign else ["d1"])


@each("value", ["1.2.20", "20200101", "2020", "2020-05", "m"])
def test_what_is_perhaps_no_date_is_compared_as_a_text(tmp_path, value):
    index = built(tmp_path / "x", "1.2.19", "a text")
    assert passing(index, f"when > '{value}'") == (["d1"] if value != "m" else [])


def test_the_command_offers_dates_by_an_option_that_makes_them(tmp_path, fontes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("id,text,date,at,section\na,x,25/12/2020,1 May 2020,s\nb,x,01/02/2020,2020-05-02,s t\n")
    (tmp_path / "x.jsonl").write_text(
        '{"id": "a", "text": "x", "date": "25/12/2020", "at": "1 May 2020", "section": "s"}\n'
        '{"id": "b", "text": "x", "date": "01/02/2020", "at": "2020-05-02", "section": "s t"}\n'
    )
    for name, at in (("x.csv", ""), ("x.jsonl", "'at' looks like dates, ")):
        said = fontes("index", name, "-o", f"{name}.index")[1]
        assert f"{at}'date' looks like dates of the form %d/%m/%Y: --columns" in said
        option = re.search(r": (--columns .* --overwrite) makes dates of", said)[1]
        assert option == "--columns at=date,date=date:%d/%m/%Y,section=keyword --overwrite"
        _, again, _ = fontes("index", name, "-o", f"{name}.index", *shlex.split(option))
        assert "looks like" not in again
        assert Index.open(f"{name}.index").columns == {"at": "date", "date": "date", "section": "keyword"}
        assert passing(Index.open(f"{name}.index"), "date > '2020-12-01' and at < '2020-05-02'") == ["a"]


def test_the_form_of_a_date_may_have_commas(tmp_path, fontes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "x", "date": "May 2, 2020", "n": "7"}\n')
    fontes("index", "x.jsonl", "-o", "x.index", "--columns", "date=date:%b %d, %Y, n=integer,")
    assert Index.open("x.index").columns == {"date": "date", "n": "integer"}
