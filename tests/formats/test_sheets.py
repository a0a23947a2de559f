"""Tables that are no text, lists in JSON, and pipes."""

import datetime
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hostile import outcome

import fontes as ft
from fontes.core import Doc, InputError, MissingExtraError, Topic
from fontes.formats import read_corpus, read_qrels, read_topics

ROWS: list[list[Any]] = [
    ["qid", "question", "text", "doc_id", "label", "year", "day", "share"],
    ["q1", "moon?", "The moon", "d1", 2, 2019, datetime.date(2020, 5, 17), 0.5],
    ["q2", "water?", "Water", "d2", 0, 2021, None, None],
]


def workbook(path: Path, rows: list[list[Any]]) -> Path:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def parquet(path: Path, rows: list[list[Any]]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    return path


MAKERS = pytest.mark.parametrize(("make", "name"), [(workbook, "c.xlsx"), (parquet, "c.parquet")])


@MAKERS
def test_a_sheet_gives_documents_with_typed_metadata_topics_and_judgments(tmp_path: Path, make: Any, name: str) -> None:
    path = make(tmp_path / name, ROWS)
    docs = list(read_corpus(path, fields={"id": "doc_id"}))
    first = {"qid": "q1", "question": "moon?", "label": 2, "year": 2019, "day": "2020-05-17", "share": 0.5}
    second = {"qid": "q2", "question": "water?", "label": 0, "year": 2021}
    assert docs == [Doc("d1", "The moon", "", first), Doc("d2", "Water", "", second)]
    fields = {"text": "question"}
    assert list(read_topics(path, fields=fields).values()) == [Topic("q1", "moon?"), Topic("q2", "water?")]
    assert read_qrels(path).to_dict() == {"q1": {"d1": 2}, "q2": {"d2": 0}}


@MAKERS
def test_the_error_of_unknown_columns_says_which_is_which(tmp_path: Path, make: Any, name: str) -> None:
    path = make(tmp_path / name, [["Nr", "Claim"], [1, "The moon"]])
    with pytest.raises(InputError, match=r"row \d: no id .* --id Nr --text Claim -o c\.index"):
        list(read_corpus(path))
    assert list(read_corpus(path, fields={"id": "Nr", "text": "Claim"})) == [Doc("1", "The moon")]
    with pytest.raises(InputError, match="there is no column 'Claims'; the columns are Nr, Claim"):
        list(read_corpus(path, fields={"id": "Nr", "text": "Claims"}))


@MAKERS
def test_a_damaged_sheet_is_one_sentence(tmp_path: Path, make: Any, name: str) -> None:
    path = make(tmp_path / name, ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + b"\xff" * 40 + whole[80:])
    for reader in (lambda at: list(read_corpus(at, fields={"id": "doc_id"})), read_topics, read_qrels):
        outcome(lambda reader=reader: reader(path), str(path))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_corpus(path))


@MAKERS
def test_the_extra_is_named_where_its_library_is_missing(tmp_path: Path, monkeypatch: Any, make: Any, name: str) -> None:
    path = make(tmp_path / name, ROWS)
    for library in ("openpyxl", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'fontes\[{name.partition('.')[2]}\]'"):
        list(read_corpus(path))


@contextmanager
def pipe(content: bytes) -> Iterator[str]:
    """The path of a pipe that holds this, as a shell's <(command) gives it."""
    read, write = os.pipe()

    def fill() -> None:
        with os.fdopen(write, "wb") as end:
            end.write(content)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield f"/dev/fd/{read}"
    finally:
        thread.join()
        os.close(read)


@each("kind", ["jsonl", "json", "csv", "utf-16", "xlsx", "parquet"])
def test_a_pipe_is_recognised_and_read_once(tmp_path: Path, kind: str) -> None:
    rows = [["id", "text"], *([str(n), "fox " * 9] for n in range(9000))]
    table = "".join(f"{a},{b}\n" for a, b in rows)
    items = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    contents = {
        "jsonl": lambda: "".join(json.dumps(item) + "\n" for item in items).encode(),
        "json": lambda: json.dumps(items, indent=1).encode(),
        "csv": table.encode,
        "utf-16": lambda: table.encode("utf-16"),
        "xlsx": lambda: workbook(tmp_path / "c", rows[:300]).read_bytes(),
        "parquet": lambda: parquet(tmp_path / "c", rows).read_bytes(),
    }
    with pipe(contents[kind]()) as path:
        corpus = read_corpus(path)
        docs = list(corpus)
        with pytest.raises(InputError, match="can be read only once; write it to a file"):
            list(corpus)
    assert docs[:3] == [Doc(a, b) for a, b in rows[1:4]]
    assert len(docs) == (299 if kind == "xlsx" else 9000)


def test_a_pipe_is_one_of_several_parts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    with pipe(b"id,text\nb,y\n") as path:
        assert [doc.id for doc in read_corpus([path, tmp_path / "a.jsonl"])] == ["b", "a"]


def test_standard_input_is_recognised(fontes, tmp_path: Path) -> None:
    assert fontes("index", "-", "-o", tmp_path / "i", stdin="id;text\n1;fox\n")[0] == 0
    code, out, _ = fontes("convert", "corpus", "-", "-", stdin='[{"id": "1", "text": "fox"}]')
    assert (code, json.loads(out)) == (0, {"_id": "1", "title": "", "text": "fox"})


LIST = [{"id": "a", "text": "é東", "n": [1, {"x": "}]"}]}, {"id": "b", "text": "]"}]


@each("indent", [None, 1])
@each("buffer", [1, 7, 1 << 18])
def test_a_json_list_is_read_item_by_item(tmp_path: Path, monkeypatch: Any, indent: int | None, buffer: int) -> None:
    monkeypatch.setattr("fontes.formats.json.BUFFER", buffer)
    (tmp_path / "c.json").write_text("\ufeff " + json.dumps(LIST, indent=indent, ensure_ascii=False) + "\n ", encoding="utf-8")
    assert list(read_corpus(tmp_path / "c.json")) == [Doc("a", "é東", "", {"n": [1, {"x": "}]"}]}), Doc("b", "]")]


@each("buffer", [1, 1 << 18])
@each(
    ("content", "problem"),
    [
        ("[", "line 1: broken JSON"),
        ("[]", "holds no documents"),
        ('[{"id": "a", "text": "b"}', "line 1: broken JSON (Expecting ',' delimiter)"),
        ('[{"id": "a", "text": "b"},\n]', "line 2: broken JSON (Illegal trailing comma"),
        ('[{"id": "a", "text": "b"}\n{"id": "b"}]', "line 2: broken JSON (Expecting ',' delimiter)"),
        ('[{"id": "a", "text": "b"}]\nx', "line 2: broken JSON (Extra data)"),
        ('[{"id": "a",\n "text" "b"}]', "line 2: broken JSON (Expecting ':' delimiter)"),
        ('[{"id": "a", "text": "b"}, 12]', "item 2: a JSON int where an object"),
        ('[{"id": "a"}]', "item 1: no text"),
        ("[" + "9" * 5000 + "]", "line 1: broken JSON (a number of thousands of digits)"),
        ("[" * 100_000, "line 1: broken JSON (nested too deeply)"),
        ('{\n"docs": [{"id": "a", "text": "b"}]}', "an object that has a list of objects, 'docs'; jq -c '.[\"docs\"][]' "),
        ('{\n"id": "a", "text": "b"}\n{"id"', "line 3: broken JSON (Expecting ':' delimiter)"),
        ('{\n"id": "a", "text": "b"}\n, 1', "line 3: broken JSON (Expecting value)"),
    ],
)
def test_a_broken_list_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: Any, content: str, problem: str, buffer: int
) -> None:
    monkeypatch.setattr("fontes.formats.json.BUFFER", buffer if len(content) < 1000 else 1 << 18)
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(InputError) as caught:
        list(read_corpus(tmp_path / "c.json"))
    assert str(caught.value).startswith(f"{tmp_path / 'c.json'}")
    assert problem in str(caught.value)


OBJECTS = {
    "doc1.json": '{\n  "id": "doc1",\n  "contents": "one"\n}\n',
    "doc2.json": '[{"id": "doc2", "contents": "two"}]',
    "doc3.json": '{"id": "doc3", "contents": "three"}\n{"id": "doc4", "contents": "four"}\n',
    "doc5.json": '{"id": "doc5",\n"contents": "five"}\n\n{"id": "doc6",\n"contents": "six"}',
}


@each("first", OBJECTS)
@each("ending", ["", ".gz"])
def test_json_files_of_a_folder_hold_a_list_lines_or_objects_over_several_lines(
    tmp_path: Path, first: str, ending: str
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number, file in enumerate((first, *(file for file in OBJECTS if file != first))):
        content = OBJECTS[file].encode()
        path = folder / f"{number}-{file}{ending}"
        path.write_bytes(gzip.compress(content) if ending else content)
    assert {doc.id: doc.text for doc in read_corpus(folder)} == {
        f"doc{n}": word for n, word in enumerate(("one", "two", "three", "four", "five", "six"), 1)
    }
    assert len(ft.Index.build(folder, tmp_path / "i")) == 6
    assert len({doc.id for part in read_corpus(folder).cut(1) for doc in part}) == 6


def test_an_empty_json_file_of_a_folder_holds_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n"id": "a",\n"text": "one"\n}')
    (tmp_path / "b.json").write_text("")
    assert [doc.id for doc in read_corpus(tmp_path)] == ["a"]


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq")
def test_the_command_that_makes_lines_of_a_list_inside_an_object_works(tmp_path: Path) -> None:
    (tmp_path / "my c.json").write_text('{"version": 1,\n "my docs": [{"id": "a", "text": "b"}]}')
    with pytest.raises(InputError) as caught:
        list(read_corpus(tmp_path / "my c.json"))
    command = re.search(r"(jq -c .*) makes JSON lines", str(caught.value))[1]
    lines = subprocess.run(shlex.split(command), check=True, capture_output=True).stdout
    (tmp_path / "c.jsonl").write_bytes(lines)
    assert list(read_corpus(tmp_path / "c.jsonl")) == [Doc("a", "b")]


def test_a_list_in_memory_is_never_longer_than_what_one_item_needs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("fontes.storage.files.MAX_PIECE", 3000)
    monkeypatch.setattr("fontes.formats.json.BUFFER", 100)
    rows = [{"id": str(n), "text": "x" * 50} for n in range(300)]
    (tmp_path / "c.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match="longer than 3,000 bytes"):  # on one line, for whoever looks at lines
        read_corpus(tmp_path / "c.json")
    (tmp_path / "c.json").write_text(json.dumps(rows, indent=0))
    assert len(list(read_corpus(tmp_path / "c.json"))) == 300


def test_parquet_of_one_long_text_in_many_rows_takes_memory_for_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet_file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("fontes.formats.sheets.MAX_PIECE", 1_000_000)
    rows, text = 200, "tea " * 50_000
    kinds = arrow.DictionaryArray.from_arrays(arrow.array([n % 2 for n in range(rows)]), arrow.array([7, 8]))
    columns = {"id": [f"d{n}" for n in range(rows)], "text": [text] * rows, "kind": kinds}
    parquet_file.write_table(arrow.table(columns), tmp_path / "c.parquet")
    assert (tmp_path / "c.parquet").stat().st_size < 300_000
    del columns
    count = 0
    tracemalloc.start()
    for count, doc in enumerate(read_corpus(tmp_path / "c.parquet"), 1):
        assert (doc.id, doc.metadata["kind"]) == (f"d{count - 1}", 7 + (count - 1) % 2)
        assert len(doc.text) == len(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == rows
    assert peak < 10_000_000


def test_a_workbook_that_unpacks_to_far_more_than_its_file_is_an_error(tmp_path: Path, monkeypatch: Any) -> None:
    path = workbook(tmp_path / "c.xlsx", [["id", "text"], ["a", "x"]])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    cell = b'<c r="B2" t="inlineStr"><is><t>' + b"x" * 3_000_000 + b"</t></is></c>"
    sheet = re.sub(rb'<c r="B2".*?</c>', lambda _: cell, parts["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in (parts | {"xl/worksheets/sheet1.xml": sheet}).items():
            book.writestr(name, content)
    assert len(next(iter(read_corpus(path))).text) == 3_000_000
    monkeypatch.setattr("fontes.storage.compression.MAX_SMALL", 1000)
    with pytest.raises(
        InputError,
        match=r"c.xlsx: its contents have more than [\d,]+ bytes, for an archive of [\d,]+ bytes; save the sheet as CSV",
    ):
        list(read_corpus(path))
