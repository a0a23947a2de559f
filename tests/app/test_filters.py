"""Filters on the command line: columns of an index, and searches that keep to them."""

import json

import pytest

ROWS = "id,text,year,tags\n1,red fox,2019,\n2,red dog and red cat,2021,a\n3,red cat,,b\n"


@pytest.fixture
def index(tmp_path, fontes):
    (tmp_path / "docs.csv").write_text(ROWS)
    columns = "year=integer, tags=keywords"
    assert fontes("index", tmp_path / "docs.csv", "-o", tmp_path / "x.index", "--columns", columns)[0] == 0
    return tmp_path / "x.index"


def ids(output: str) -> list[str]:
    return [hit["id"] for hit in json.loads(output)["hits"]]


def test_columns_are_shown_and_are_those_that_were_declared(index, fontes):
    assert "year=integer" in fontes("info", index)[1]
    assert json.loads(fontes("info", index, "--json")[1])["columns"] == {"tags": "keywords", "year": "integer"}


def test_a_search_keeps_to_its_filter(index, fontes):
    assert ids(fontes("search", index, "red", "--json")[1]) == ["2", "3", "1"]
    assert ids(fontes("search", index, "red", "--where", "year > 2000", "--json")[1]) == ["2", "1"]
    assert ids(fontes("search", index, "red", "--model", "tfidf", "--where", "'b' in tags", "--json")[1]) == ["3"]


def test_a_filter_is_on_every_retriever_of_a_pipeline_beside_its_own(index, fontes):
    text = 'bm25(where="year > 2000 or year is None") >> rm3() >> bm25()'
    assert ids(fontes("search", index, "red", "--pipeline", text, "--where", "year is None", "--json")[1]) == ["3"]
    both = fontes("search", index, "red", "--pipeline", "bm25(where='year > 2020')", "--where", "year < 2020", "--json")
    assert ids(both[1]) == []


def test_a_run_keeps_to_its_filter(index, fontes, tmp_path):
    (tmp_path / "topics.tsv").write_text("q1\tred\nq2\tcat\n")
    code, out, _ = fontes("search", index, "--topics", tmp_path / "topics.tsv", "--where", "year is None")
    assert code == 0
    assert [line.split()[:3:2] for line in out.splitlines()] == [["q1", "3"], ["q2", "3"]]


def test_hits_as_json_have_their_metadata_and_a_snippet(index, fontes):
    (hit,) = json.loads(fontes("search", index, "cat", "--where", "year == 2021", "--json")[1])["hits"]
    assert hit["metadata"] == {"year": "2021", "tags": "a"}
    start, end = hit["snippet"]["matches"][0]
    assert hit["snippet"]["text"][start:end] == "cat"


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("yaer > 3", "where, character 1: there is no column 'yaer'; did you mean 'year'?"),
        ("year > '3'", "where, character 8: 'year' is a column of type integer"),
        ("text == 'red'", "the text of documents is searched, and cannot be filtered by"),
    ],
)
def test_what_is_no_filter_is_one_sentence(index, fontes, where, problem):
    code, out, err = fontes("search", index, "red", "--where", where)
    assert (code, out) == (1, "")
    assert problem in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("columns", "code", "problem"),
    [
        ("year", 2, "--columns takes NAME=TYPE"),
        ("year=int", 1, "column 'year': there is no type 'int'; did you mean 'integer'?"),
        ("tags=integer", 1, "document '2': its metadata 'tags' is 'a', but the column is of type integer"),
    ],
)
def test_columns_that_cannot_be_are_refused(tmp_path, fontes, columns, code, problem):
    (tmp_path / "docs.csv").write_text(ROWS)
    done = fontes("index", tmp_path / "docs.csv", "-o", tmp_path / "x.index", "--columns", columns)
    assert done[0] == code
    assert problem in done[2]
    assert not (tmp_path / "x.index").exists()


def test_an_empty_list_of_columns_is_none(tmp_path, fontes):
    (tmp_path / "docs.csv").write_text(ROWS)
    assert fontes("index", tmp_path / "docs.csv", "-o", tmp_path / "x.index", "--columns", "")[0] == 0
    assert json.loads(fontes("info", tmp_path / "x.index", "--json")[1])["columns"] == {}


def test_a_command_sorts_and_counts(index, fontes):
    code, out, _ = fontes("search", index, "red cat", "--sort", "year", "--descending", "--facets", "year,tags", "-k", 2)
    every = json.loads(fontes("search", index, "red cat", "--sort", "year", "--facets", "year", "--json")[1])
    years = [hit["metadata"].get("year") for hit in every["hits"]]
    assert code == 0
    assert out.splitlines()[-2].startswith("year: ")
    assert out.splitlines()[-1].startswith("tags: ")
    assert [year for year in years if year] == sorted(year for year in years if year)
    assert sum(entry["count"] for entry in every["facets"]["year"]) == len([year for year in years if year])
