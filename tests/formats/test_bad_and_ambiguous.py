"""Which column or key is the id, columns without a name, and documents that are left out."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core.errors import InputWarning
from fontes.formats.records import _guess_id, _guess_text, remedy_of


def put(folder: Path, text: str, name: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def lines(folder: Path, *rows: dict, name: str = "a.jsonl") -> Path:
    return put(folder, "".join(f"{json.dumps(row)}\n" for row in rows), name)


def ids(path: Path, **options) -> list[str]:
    return [doc.id for doc in ft.read_corpus(path, **options)]


def test_the_id_of_a_passage_comes_before_that_of_its_document(tmp_path):
    rows = [{"pid": f"p{i}", "text": "alpha", "docid": f"D{i}"} for i in range(3)]
    assert ids(lines(tmp_path, *rows)) == ["p0", "p1", "p2"]
    assert ids(put(tmp_path, "docid\tpid\ttext\nD1\tp1\talpha\nD1\tp2\tbeta\n", "a.tsv")) == ["p1", "p2"]


def test_an_id_that_is_unique_comes_before_one_that_repeats(tmp_path):
    path = lines(tmp_path, *({"pid": "person 7", "docno": f"d{i}", "text": "x"} for i in range(3)))
    with pytest.warns(InputWarning, match="the ids are in 'docno', as 'pid' repeats"):
        assert ids(path) == ft.Index.build(path, tmp_path / "x.index").bm25().search("x").ids[::-1] == ["d0", "d1", "d2"]
    assert ids(path, format="jsonl") == ids(path, fields={"id": "docno"}) == ["d0", "d1", "d2"]


def test_ids_of_passages_under_other_names_come_first_if_they_are_ids(tmp_path):
    passages = [{"doc_id": "D1", "passage_id": f"D1-{i}", "text": "x"} for i in range(3)]
    with pytest.warns(InputWarning, match="the ids are in 'passage_id', not in 'doc_id'"):
        assert ids(lines(tmp_path, *passages)) == ["D1-0", "D1-1", "D1-2"]
    numbered = [{"doc_id": f"D{i}", "chunk_id": i, "text": "x"} for i in range(3)]
    assert ids(lines(tmp_path, *numbered)) == ["D0", "D1", "D2"]
    named = [{"id": f"i{i}", "passage_id": f"p{i}", "text": "x"} for i in range(3)]
    assert ids(lines(tmp_path, *named)) == ["i0", "i1", "i2"]


def test_an_id_is_advised_only_where_it_may_be_one():
    for rows, expected in [
        (
            [{"date": "2020-01-05", "host": "example.org", "uri": "u1"}, {"date": "2020-01-06", "host": "a.cz", "uri": "u2"}],
            "uri",
        ),
        ([{"published": "2020-01-05T10:00", "site": "example.org"}], None),
        ([{"day": "5/1/2020", "key": "k"}], "key"),
        ([{"section_no": "1", "name": "a"}, {"section_no": "1", "name": "b"}], "name"),
        ([{"docid": "d1", "passage_id": "d1#0"}], "passage_id"),
        ([{"category_id": "3", "1": "0"}, {"category_id": "3", "1": "1"}], "1"),
        ([{"headline": "two words"}], None),
        ([{"flag": True}], None),
        ([{"created": "17", "ip": "10.0.0.1", "server": "example.org:80", "weight": "0.25", "ref": "r1"}], "ref"),
    ]:
        assert _guess_id(list(rows[0]), rows) == expected


def test_the_text_that_is_advised_has_the_name_of_a_text():
    for names, expected in [
        (("content_type", "content"), "content"),
        (("passage_id", "passage"), "passage"),
        (("text_length", "full_text"), "full_text"),
        (("start", "segment"), "segment"),
        (("abstract_id", "words"), "words"),
        (("lang", "abstract_en"), "abstract_en"),
    ]:
        assert _guess_text(names, [dict.fromkeys(names, "x") | {"words": "some words here"}]) == expected


def test_an_id_that_repeats_is_advised_only_where_there_is_no_other():
    rows = [{"doc_id": "D", "part": f"p{number}", "passage": "some words"} for number in range(2)]
    keys = {"id": ("doc_id",), "title": (), "text": ()}
    assert "--id part --text passage " in remedy_of("a.jsonl", keys, rows)
    others = [row | {"part": "p"} for row in rows]
    assert "--id doc_id --text passage " in remedy_of("a.jsonl", keys, others)


def test_without_a_possible_id_nothing_is_advised():
    repeated = [{"_id": "a", "lead": "some words here"}, {"_id": "a", "lead": "other words here"}]
    assert "--id _id --text lead " in remedy_of("a.jsonl", {"id": ("_id",), "title": (), "text": ()}, repeated)
    assert remedy_of("a.jsonl", {"id": ("_id",), "title": (), "text": ()}, [{"_id": "a b c"}, {"_id": "a b c"}]) == ""
    assert remedy_of("a.csv", {"id": (), "title": (), "text": ()}, [{"date": "2020-01-05", "lead": "some words here"}]) == ""


UNNAMED = {
    "tweets.tsv": '\ttweet_content\n0\tfirst claim\n11\t"with ""quotes"" , and tab"\n',
    "claims.tsv": '\tvclaim\ttitle\n0\tclaim text\tthe title\n11\t"claim ""quoted"""\ttitle two\n',
    "a.csv": ",doc\n0,alpha\n11,beta\n",
    "b.csv": ",text\n0,alpha\n11,beta\n",
    "words.tsv": "\tposting\nx\tfirst claim\ny\tsecond\n",
}


@each("name", UNNAMED)
def test_the_command_for_a_table_whose_ids_have_no_name_works(tmp_path, fontes, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, UNNAMED[name], name)
    status, _, error = fontes("index", name, "-o", "x.index")
    assert status == 1
    command = re.search(r"such as: fontes (.+?) \(in Python: read_corpus\(…, fields=(.+?)\)\)", error)
    assert command, error
    status, _, problem = fontes(*shlex.split(command[1]))
    assert status == 0, problem
    expected = [line.split("," if name.endswith("csv") else "\t")[0] for line in UNNAMED[name].splitlines()[1:]]
    assert [doc.id for doc in ft.read_corpus(name, fields=eval(command[2]))] == expected
    for chosen in ({"id": "1", "text": "2"}, {"id": "", "text": "2"}):
        assert ids(Path(name), fields=chosen) == expected


def test_the_command_for_a_workbook_whose_ids_have_no_name_works(tmp_path, fontes, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    for row in ((None, "doc"), (10, "alpha one"), (11, "beta two")):
        book.active.append(row)
    book.save("claims.xlsx")
    status, _, error = fontes("index", "claims.xlsx", "-o", "x.index")
    command = re.search(r"such as: fontes (.+?) \(in Python", error)
    assert status == 1
    assert command, error
    assert fontes(*shlex.split(command[1]))[0] == 0
    assert ids(Path("claims.xlsx"), fields={"id": "1", "text": "doc"}) == ["10", "11"]


@pytest.mark.parametrize("name", ["tweets.tsv", "words.tsv"])
def test_the_options_for_topics_whose_ids_have_no_name_work(tmp_path, fontes, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, UNNAMED[name], name)
    status, _, error = fontes("convert", "topics", name, "-")
    options = re.search(r"say which is which: (.+?) \(in Python", error)
    assert status == 1
    assert options, error
    status, output, problem = fontes("convert", "topics", name, "-", *shlex.split(options[1]))
    assert status == 0, problem
    assert ["first claim" in line for line in output.splitlines()] == [True, False]


def test_an_index_of_pandas_beside_an_id_is_left_out(tmp_path):
    docs = list(ft.read_corpus(put(tmp_path, ",id,text\n0,x,alpha\n1,y,beta\n", "b.csv")))
    assert [(doc.id, doc.text, dict(doc.metadata)) for doc in docs] == [("x", "alpha", {}), ("y", "beta", {})]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"id": "", "text": "x"}\n{"id": "a", "text": "y"}\n{"id": "b"\n{"id": "c", "text": "z"}\n'),
        ("a.json", '[{"id": "", "text": "x"}, {"id": "a", "text": "y"}, 7, {"id": "c", "text": "z"}]'),
        ("a.csv", "id,text\n,x\na,y\nb,y,z\nc,z\n"),
        ("a.tsv", "a\ty\n\tx\nb\ty\tz\nc\tz\n"),
        ("a.trec", "<DOC><TEXT>x</TEXT></DOC><DOC><DOCNO>a</DOCNO></DOC>\n<DOC></DOC><DOC><DOCNO>c</DOCNO></DOC>"),
    ],
)
def test_as_many_bad_documents_as_allowed_are_left_out_and_named(tmp_path, fontes, name, text):
    path = put(tmp_path, text, name)
    for allowed in (0, 1):
        with pytest.raises(ft.FontesError):
            ids(path, skip_bad=allowed)
    with pytest.warns(InputWarning, match="left out, 2 of at most 2"):
        assert ids(path, skip_bad=2) == ["a", "c"]
    status, _, problem = fontes("index", path, "-o", tmp_path / "x.index", "--skip-bad", "2")
    assert status == 0, problem
    assert [line.rpartition("; ")[2] for line in problem.splitlines() if "left out" in line] == [
        "left out, 1 of at most 2",
        "left out, 2 of at most 2",
    ]
    assert ft.Index.open(tmp_path / "x.index").info()["documents"] == 2


def test_bad_documents_are_counted_over_all_files_and_once_in_each_reading(tmp_path):
    (tmp_path / "parts").mkdir()
    for part in "ab":
        lines(tmp_path / "parts", {"id": "", "text": "x"}, {"id": part, "text": "x"}, name=f"{part}.jsonl")
    with pytest.raises(ft.FontesError, match=r"b.jsonl, line 1: the id is empty.*; 1 bad before it were left out"):
        ids(tmp_path / "parts", skip_bad=1)
    corpus = ft.read_corpus(tmp_path / "parts", skip_bad=2)
    assert [doc.id for doc in corpus] == [doc.id for doc in corpus] == ["a", "b"]
    assert [doc.id for doc in ft.read_corpus([("a", "x"), ("", "y")], skip_bad=1)] == ["a"]


def test_the_first_line_of_fevers_pages_is_left_out_with_a_warning(tmp_path, fontes):
    pages = [{"id": "", "text": "", "lines": ""}, {"id": "Kelvin", "text": "Kelvin is a town .", "lines": "0\tKelvin …"}]
    path = lines(tmp_path, *pages, name="wiki-001.jsonl")
    with pytest.warns(InputWarning, match="line 1: FEVER's empty page, without id, text and lines; left out"):
        assert ids(path) == ["Kelvin"]
    status, _, problem = fontes("index", path, "-o", tmp_path / "x.index")
    assert (status, "FEVER's empty page" in problem) == (0, True)
    with pytest.raises(ft.FontesError, match="line 1: the id is empty; skip_bad="):
        ids(lines(tmp_path, {"id": "", "text": "no quirk", "lines": ""}))
