"""Compressed files of each kind, read and written through the one door of all readers."""

import bz2
import gzip
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import zstandard
from support.each import each
from support.standard_input import give_input
from support.zipped import zipped

from fontes.core import Doc, InputError
from fontes.formats import read_corpus, read_qrels, read_run, read_topics, write_corpus

LINE = b'{"_id":"1","text":"a"}\n'
MORE = b'{"_id":"2","text":"b"}\n'
DOCS = [Doc("1", "a"), Doc("2", "b")]
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\0\0\0abc"


COMPRESSED = {
    "gzip of two members": (gzip.compress(LINE) + gzip.compress(MORE), ".gz"),
    "bzip2 of two streams": (bz2.compress(LINE) + bz2.compress(MORE), ".bz2"),
    "xz of two streams": (lzma.compress(LINE) + lzma.compress(MORE), ".xz"),
    "lzma, the predecessor of xz": (lzma.compress(LINE + MORE, lzma.FORMAT_ALONE), ".lzma"),
    "zstd of two frames": (zstandard.compress(LINE) + zstandard.compress(MORE), ".zst"),
    "zstd with a skippable frame first": (SKIPPABLE + zstandard.compress(LINE + MORE), ".zst"),
    "zip": (zipped(("__MACOSX/._c", b"x"), ("data/c.jsonl", LINE + MORE)), ".zip"),
    "zip of gzip": (zipped(("c.jsonl.gz", gzip.compress(LINE + MORE))), ".zip"),
    "nothing": (LINE + MORE, ""),
}


@each("kind", COMPRESSED)
def test_a_file_is_decompressed_as_its_first_bytes_say_whatever_its_name(tmp_path: Path, kind: str) -> None:
    content, ending = COMPRESSED[kind]
    for name in (f"c.jsonl{ending}", "c.jsonl", "c.jsonl.gz", "c"):
        (tmp_path / name).write_bytes(content)
        assert list(read_corpus(tmp_path / name)) == DOCS
        (part,) = read_corpus(tmp_path / name).cut(1) if ending else [read_corpus(tmp_path / name)]
        assert list(part) == DOCS


@each("kind", COMPRESSED)
def test_standard_input_and_pipes_are_decompressed_too(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content, _ = COMPRESSED[kind]
    give_input(monkeypatch, content)
    assert list(read_corpus("-")) == DOCS
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb"), os.fdopen(writes, "wb") as end:
        end.write(content)
        end.close()
        assert {topic.id: topic.text for topic in read_topics(f"/dev/fd/{reads}").values()} == {"1": "a", "2": "b"}


@each("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_topics_judgments_runs_and_folders_are_read_compressed(tmp_path: Path, pack) -> None:
    ending = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}.get(sys.modules[pack.__module__], ".zst")
    (tmp_path / "qrels").mkdir()
    for name, content in (
        ("corpus.jsonl", LINE),
        ("queries.jsonl", LINE),
        ("qrels/test.tsv", b"query-id\tcorpus-id\tscore\n1\t1\t1\n"),
        ("r.run", b"1 Q0 1 1 2.5 x\n"),
    ):
        (tmp_path / f"{name}{ending}").write_bytes(pack(content))
    assert list(read_corpus(tmp_path)) == DOCS[:1]
    assert read_topics(tmp_path, split="test")["1"].text == "a"
    assert read_qrels(tmp_path).to_dict() == {"1": {"1": 1}}
    assert read_run(tmp_path / f"r.run{ending}").to_dict() == {"1": {"1": 2.5}}


@each("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_is_written_as_its_ending_says_with_equal_bytes(tmp_path: Path, ending: str) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_corpus(DOCS, tmp_path / f"{name}{ending}")
    stored = (tmp_path / f"a.jsonl{ending}").read_bytes()
    assert stored == (tmp_path / f"b.jsonl{ending}").read_bytes() != LINE + MORE
    assert list(read_corpus(tmp_path / f"a.jsonl{ending}")) == DOCS


def test_the_command_that_unpacks_an_archive_of_several_files_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = (("s/corpus.jsonl", LINE), ("s/queries.jsonl", MORE))
    Path("my s.zip").write_bytes(zipped(*files))
    with pytest.raises(
        InputError, match=r"my s\.zip: a zip archive of 2 files \(s/corpus\.jsonl, s/queries\.jsonl\)"
    ) as caught:
        read_corpus("my s.zip")
    command = shlex.split(str(caught.value).rpartition("its files: ")[2])
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert list(read_corpus(Path(command[-1]) / "s")) == DOCS[:1]


@pytest.mark.skipif(not shutil.which("tar"), reason="there is no tar")
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_the_command_that_unpacks_a_tar_archive_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_bytes(LINE)
    with tarfile.open("c.tar", mode) as archive:
        archive.add("c.jsonl")
    Path("c.jsonl").unlink()
    with pytest.raises(InputError, match=r"^c\.tar: a file of tar, which is not read; unpack it: ") as caught:
        list(read_corpus("c.tar"))
    subprocess.run(shlex.split(str(caught.value).rpartition("unpack it: ")[2]), check=True)
    assert list(read_corpus("c.jsonl")) == DOCS[:1]


def test_a_zip_archive_expands_only_to_the_limits_of_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.storage.compression.MAX_SMALL", 1000)
    (tmp_path / "c.zip").write_bytes(zipped(("c.jsonl", b" " * 1_000_000)))
    with pytest.raises(InputError, match=r"c\.zip: its contents have more than [\d,]+ bytes, for an archive of "):
        read_corpus(tmp_path / "c.zip")


def test_the_names_inside_an_archive_tell_the_format(tmp_path: Path) -> None:
    (tmp_path / "c.zip").write_bytes(zipped(("collection.tsv", b"1\tsea\n")))
    assert list(read_corpus(tmp_path / "c.zip")) == [Doc("1", "sea")]
