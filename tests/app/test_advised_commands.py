"""Commands that errors advise work as they are printed, in folders whose names have spaces too."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

import fontes as ft

DOCS = [("a", "red limestone"), ("b", "blue karst")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "my files"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def advised(text: str, pattern: str) -> list[str]:
    """Return the words of the command that a text advises."""
    found = re.search(pattern, text)
    assert found, text
    return shlex.split(found[1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "my docs.jsonl",
            '{"pid": "p1", "passage": "alpha one", "docid": "d"}\n{"pid": "p2", "passage": "beta", "docid": "d"}\n',
        ),
        ("my docs.jsonl", '{"ref no": "p1", "lead text": "alpha"}\n{"ref no": "p2", "lead text": "beta"}\n'),
        ("my docs.json", '[{"key": "p1", "Überschrift title": "t", "summary": "alpha"}, {"key": "p2", "summary": "beta"}]'),
        ("my docs.csv", "Nr;Fließtext\np1;alpha beta gamma delta eps\np2;beta\n"),
        ("my docs.tsv", "published\tcode\tstory\n2020-01-01\tp1\ta b c d e f\n2020-01-01\tp2\ta b c d e f\n"),
    ],
)
def test_the_command_that_names_id_and_text_makes_the_index(place, fontes, name, text):
    (place / name).write_text(text)
    status, _, error = fontes("index", name, "-o", "x")
    assert status == 1
    command = advised(error, r"such as: fontes (.+?) \(in Python")
    assert fontes(*command)[0] == 0, error
    assert ft.Index.open(command[-1]).info()["documents"] == 2
    fields = re.search(r"read_corpus\(…, fields=(\{.+?\})\)", error)
    assert fields
    assert [doc.id for doc in ft.read_corpus(name, fields=eval(fields[1]))] == ["p1", "p2"]


@pytest.mark.parametrize("kind", ["corpus", "topics"])
def test_columns_of_a_first_line_that_is_a_document_go_by_number(place, fontes, kind):
    (place / "words.tsv").write_text("alpha\tone word\nb12\tand one more small word\nc3\tand a last small word\n")
    status, _, error = fontes("convert", kind, "words.tsv", "-")
    assert status == 1
    status, output, problem = fontes("convert", kind, "words.tsv", "-", *advised(error, r"by number: (--id 1 --text 2)"))
    assert (status, len(output.splitlines())) == (0, 3), problem


def test_the_command_for_an_index_of_another_engine_works(place, fontes):
    ft.Index.build(DOCS, "x.index").export("my index.ciff")
    status, _, error = fontes("convert", "corpus", "my index.ciff", "-")
    assert status == 1
    assert fontes(*advised(error, r"fontes (index .+? -o INDEX)"))[0] == 0
    assert ft.Index.open("INDEX").info()["documents"] == 2


def test_the_command_where_there_is_no_index_works(place, fontes):
    (place / "CORPUS").write_text('{"id": "a", "text": "red"}\n')
    status, _, error = fontes("search", "no index", "red")
    assert status == 1
    assert fontes(*advised(error, r"fontes (index CORPUS -o .+?) makes an index"), "--format", "jsonl")[0] == 0
    assert fontes("search", "no index", "red")[0] == 0


def test_options_for_an_index_and_ids_that_are_there_work(place, fontes):
    (place / "d.jsonl").write_text('{"id": "a", "text": "red"}\n')
    assert fontes("index", "d.jsonl", "-o", "x")[0] == 0
    for command in (["index", "d.jsonl", "-o", "x"], ["add", "x", "d.jsonl"]):
        status, _, error = fontes(*command)
        assert status == 1
        assert fontes(*command, *advised(error, r"\((--(?:overwrite|duplicates replace))\)"))[0] == 0


def test_the_options_for_another_encoding_work(place, fontes):
    (place / "d.jsonl").write_bytes('{"id": "a", "text": "café"}\n'.encode("cp1252"))
    status, _, error = fontes("convert", "corpus", "d.jsonl", "-")
    assert (status, "--encoding NAME" in error, "--errors replace" in error) == (1, True, True)
    assert fontes("convert", "corpus", "d.jsonl", "-", "--errors", "replace")[0] == 0
    assert json.loads(fontes("convert", "corpus", "d.jsonl", "-", "--encoding", "cp1252")[1])["text"] == "café"


@pytest.mark.skipif(not shutil.which("jq"), reason="the command that is advised is of jq")
def test_the_command_for_an_object_that_holds_the_list_works(place, fontes):
    (place / "my docs.json").write_text('{\n "docs": [{"id": "a", "text": "x"},\n {"id": "b", "text": "y"}]\n}')
    status, _, error = fontes("index", "my docs.json", "-o", "x")
    assert status == 1
    command = advised(error.replace(".NAME[]", ".docs[]"), r"(jq -c .+?) makes JSON lines")
    (place / "d.jsonl").write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    assert fontes("index", "d.jsonl", "-o", "x")[0] == 0


def test_the_command_that_removes_leftovers_works(place, fontes):
    ft.Index.build(DOCS, "x y")
    (place / "x y" / ".writer").mkdir()
    status, output, error = fontes("check", "x y")
    assert status == 0, error
    assert fontes(*advised(" ".join((output + error).split()), r"fontes (check .+? --clean) removes it"))[0] == 0
    assert not (place / "x y" / ".writer").exists()


def test_the_command_for_a_folder_that_is_no_project_works(place, fontes, collection):
    (place / "my task").mkdir()
    status, _, error = fontes("task", "check", "my task")
    assert status == 1
    new = advised(error, r"fontes (task new NAME .+?) --data … makes one")
    new[new.index("NAME")] = f"beir:{collection}"
    status, output, error = fontes(*new)
    assert status == 0, error
    assert fontes(*advised(" ".join((output + error).split()), r"fontes (task run .+?) runs it"))[0] == 0


@pytest.fixture
def collection(tmp_path):
    folder = tmp_path / "c"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "d{i}", "text": "word{i} common"}}\n' for i in range(6)))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "q{i}", "text": "word{i}"}}\n' for i in range(6)))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{i}\t1\n" for i in range(6)))
    return folder
