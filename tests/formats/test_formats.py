"""The registry of formats: what is in it, how the format of a file is told, and formats of other packages."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.standard_input import give_input

from fontes.core import Doc, ParameterError, Qrels, Run, Topics
from fontes.formats import (
    File,
    Format,
    formats_for,
    read_corpus,
    read_qrels,
    read_run,
    read_topics,
    write,
    write_corpus,
    write_qrels,
    write_run,
    write_topics,
)
from fontes.formats.format import KINDS, formats
from fontes.formats.records import Fields
from fontes.storage.files import InputFile

PACKAGE = '''
from fontes.core import Doc
from fontes.formats import Format

class Memo(Format, name="memo"):
    """Documents of one line each, after a word and a colon."""

    def sniff(self, kind, file):
        return 0.9 if file.start.startswith("memo:") else 0.0

    def read_corpus(self, file, fields):
        for number, line in file.texts():
            yield Doc(f"m{number}", line.partition(":")[2].strip())

    def write_corpus(self, docs):
        return (f"memo: {doc.text}\\n".encode() for doc in docs)
'''


def test_the_formats_of_the_field_are_there_the_one_that_is_written_first() -> None:
    assert {kind: list(formats_for("read", kind)) for kind in KINDS} == {
        "corpus": ["jsonl", "ciff", "claims", "csv", "json", "kilt", "parquet", "text", "trec", "tsv", "wapo", "xlsx"],
        "topics": ["jsonl", "canard", "cast", "claims", "csv", "json", "lines", "parquet", "trec", "tsv", "xlsx", "xml"],
        "qrels": ["trec", "beir", "claims", "csv", "json", "jsonl", "parquet", "tsv", "xlsx"],
        "run": ["trec", "checkthat", "csv", "ikat", "json", "jsonl", "msmarco", "parquet", "tsv"],
    }
    assert {kind: list(formats_for("write", kind)) for kind in KINDS} == {
        "corpus": ["jsonl"],
        "topics": ["jsonl", "cast"],
        "qrels": ["trec", "beir"],
        "run": ["trec", "checkthat", "ikat", "msmarco", "parquet"],
    }


def test_every_format_says_what_it_is() -> None:
    for kind in KINDS:
        for form in formats_for("read", kind).values():
            assert (type(form).__doc__ or "").partition("\n")[0].endswith((".", ":"))


@pytest.fixture
def with_memo() -> Iterator[None]:
    with formats.restored():
        exec(PACKAGE, {"__name__": "memo"})
        yield


@pytest.mark.usefixtures("with_memo")
def test_a_new_format_is_told_by_content_and_listed_and_written(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("memo: first\nmemo: {second}\n")
    assert list(read_corpus(tmp_path / "notes")) == [Doc("m1", "first"), Doc("m2", "{second}")]
    write_corpus(read_corpus(tmp_path / "notes"), tmp_path / "again", format="memo")
    assert (tmp_path / "again").read_text() == "memo: first\nmemo: {second}\n"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("memo: first\n")
    assert list(read_corpus(tmp_path / "folder")) == [Doc("m1", "first")]
    with pytest.raises(ParameterError, match="no topic format 'memo'"):
        read_topics(tmp_path / "notes", "memo")
    with pytest.raises(ParameterError, match="jsonl, ciff, claims, csv, json, kilt, memo, parquet, text"):
        read_corpus(tmp_path / "notes", "nemo")
    with pytest.raises(ParameterError, match="no named fields"):
        read_corpus(tmp_path / "notes", fields={"text": "x"})


def test_a_format_of_another_package_works_on_the_command_line(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "memo-1.0.dist-info").mkdir(parents=True)
    (site / "memo-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: memo\nVersion: 1.0\n")
    (site / "memo-1.0.dist-info" / "entry_points.txt").write_text("[fontes.formats]\nmemo = memo_format:Memo\n")
    (site / "memo_format.py").write_text(PACKAGE)
    (tmp_path / "notes").write_text("memo: first\n")
    program = f"import sys; sys.path[:0] = {[str(site), *sys.path]!r}; from fontes.app.cli import main; main()"

    def converted(*options: str) -> str:
        command = [sys.executable, "-c", program, "convert", "corpus", str(tmp_path / "notes"), "-", *options]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    assert converted() == '{"_id": "m1", "title": "", "text": "first"}\n'
    assert converted("--format", "memo", "--to", "memo") == "memo: first\n"


def test_a_format_may_be_named_for_judgments_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "columns"
    path.write_text("q\ta\t1\n")
    assert read_qrels(path, "beir").to_dict() == {"q": {"a": 1}}
    assert read_run(path, format="msmarco").to_dict() == {"q": {"a": 1.0}}


def test_one_function_writes_all_kinds(tmp_path: Path) -> None:
    write("corpus", [("1", "a")], tmp_path / "corpus")
    write("topics", {"1_1": "a"}, tmp_path / "topics", "cast")
    write("qrels", {"1": {"a": 1}}, tmp_path / "qrels")
    write("run", {"1": {"a": 1.0}}, tmp_path / "run", "trec", tag="x")
    assert list(read_corpus(tmp_path / "corpus")) == [Doc("1", "a")]
    assert read_topics(tmp_path / "topics")["1_1"].turns[0].text == "a"
    assert (tmp_path / "qrels").read_text() == "1 0 a 1\n"
    assert (tmp_path / "run").read_text() == "1 Q0 a 1 1.0 x\n"


def test_values_are_made_from_paths(tmp_path: Path) -> None:
    write_topics({"1": "one"}, tmp_path / "topics")
    write_qrels({"1": {"a": 1}}, tmp_path / "qrels")
    write_run({"1": {"a": 1.0}}, tmp_path / "run")
    assert Topics.read(tmp_path / "topics")["1"].text == "one"
    assert Qrels.of(tmp_path / "qrels").to_dict() == {"1": {"a": 1}}
    assert Run.of(tmp_path / "run").to_dict() == {"1": {"a": 1.0}}


def test_topics_judgments_and_runs_are_told_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for reader, content in ((read_topics, "1\tone\n"), (read_qrels, "1 0 a 1\n"), (read_run, "1 Q0 a 1 1.0 x\n")):
        give_input(monkeypatch, content.encode())
        assert list(reader("-")) == ["1"]  # type: ignore[operator]


def test_what_was_looked_at_is_read_again() -> None:
    for size in [0, 1, 5000, 700_000]:
        content = b"\xef\xbb\xbf\n" + b"".join(b"line %d\n" % i for i in range(size // 8)) + b"end"
        file = File(InputFile("x", io.BufferedReader(io.BytesIO(content))), "a/X.TXT.gz")  # type: ignore[arg-type]
        assert file.plain == "x.txt"
        assert content[3:].startswith(file.head)
        assert file.start == file.head.decode().lstrip()
        assert file.value is None
        assert b"".join(file.lines()) == content[3:]
        again = File(InputFile("x", io.BufferedReader(io.BytesIO(content))), "x")  # type: ignore[arg-type]
        assert again.start == file.start
        assert again.full_text == content[3:].decode()
        assert again.text() == content[3:].decode()


class Silent(Format):
    """A format without a name is not in the registry."""

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        yield Doc("1", "")


def test_a_format_without_a_name_is_a_base_for_others() -> None:
    assert Silent.can("read", "corpus")
    assert not Silent.can("write", "corpus")
    assert "" not in formats
