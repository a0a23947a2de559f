"""The query language on the command line: what is understood, and the hint at plain queries with operators."""

import json

import pytest

ROWS = "id,text,year\n1,red fox of the desert,2019\n2,red dog and red cat,2021\n3,water and a cat,2022\n"


@pytest.fixture
def index(tmp_path, fontes):
    (tmp_path / "docs.csv").write_text(ROWS)
    assert fontes("index", tmp_path / "docs.csv", "-o", tmp_path / "x.index", "--positions")[0] == 0
    return tmp_path / "x.index"


def ids(output: str) -> list[str]:
    return [hit["id"] for hit in json.loads(output)["hits"]]


def test_a_query_in_the_language_says_what_was_understood(index, fontes):
    code, out, err = fontes("search", index, "red -desert cat year:>=2020", "--query", "--json")
    assert (code, ids(out)) == (0, ["2", "3"])
    assert err == "fontes: understood as +year:>=2020 +(red cat) -desert\n"
    assert ids(fontes("search", index, '"red fox"', "--query", "--json", "--model", "ql")[1]) == ["1"]


def test_remarks_follow_what_was_understood(index, fontes):
    code, out, err = fontes("search", index, 'colour:red "cat', "--query", "--json")
    assert (code, sorted(ids(out))) == (0, ["2", "3"])
    assert err.splitlines()[1:] == [
        "fontes: query, character 1: there is no field or column 'colour'; there are year, title, text; it is read as text",
        "fontes: query, character 12: the quotation mark is not closed",
    ]


def test_a_plain_query_with_operators_is_told_of_the_switch(index, fontes):
    code, out, err = fontes("search", index, "+red -desert", "--json")
    assert (code, ids(out)) == (0, ["1", "2"])
    assert err == "fontes: the query has operators of the query language, read as plain text here; --query reads them\n"
    assert fontes("search", index, "red fox (2019)?", "--json")[2] == ""
    assert fontes("search", index, "+red -desert", "--pipeline", "query() >> bm25()", "--json")[2] == ""


def test_topics_in_the_language(index, fontes, tmp_path):
    (tmp_path / "topics.tsv").write_text('a\t+red -desert\nb\tcat "\n')
    code, out, err = fontes("search", index, "--topics", tmp_path / "topics.tsv", "--query")
    assert (code, [line.split()[:3:2] for line in out.splitlines()]) == (0, [["a", "2"], ["b", "3"], ["b", "2"]])
    assert err == "fontes: topic 2 of 2: query, character 5: the quotation mark is not closed\n"
    plain = fontes("search", index, "--topics", tmp_path / "topics.tsv")
    assert plain[2].startswith("fontes: 1 of 2 topics have operators of the query language")


def test_strict_reading_in_a_pipeline_is_one_sentence(index, fontes):
    code, _, err = fontes("search", index, "yaer:2020", "--pipeline", "query(strict=True) >> bm25()")
    assert code == 1
    assert err.endswith("query, character 1: there is no field or column 'yaer'; did you mean 'year'?\n")
