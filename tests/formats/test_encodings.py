"""Files in other encodings than UTF-8, and with broken bytes."""

import codecs
import gzip
import os
import re
import warnings
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc
from fontes.core.errors import InputWarning
from fontes.formats import read_corpus, read_qrels, read_run, read_topics
from fontes.formats.decoding import ReadingOptions, as_utf8, detected, reading_as, remedy

TABLE = "id;text\n1;Cafés à la crème\n2;naïve\n"
DOCS = [Doc("1", "Cafés à la crème"), Doc("2", "naïve")]
BROKEN = b"".join(
    b'{"_id": "%d", "text": "caf\xc3\xa9 %s"}\n' % (n, b"\xff" if n in (3, 7_000) else b"x") for n in range(9_000)
)


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@each("name", ["c.csv", "c.csv.gz"])
@each("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_utf16_and_cp1252_are_detected_with_a_warning(tmp_path: Path, name: str, encoding: str) -> None:
    path = put(tmp_path / name, TABLE.encode(encoding))
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        assert list(read_corpus(path)) == DOCS
    said = {str(remark.message) for remark in remarks if remark.category is InputWarning}
    marked = encoding in ("utf-16", "utf-32")  # which a byte order mark says
    assert said == (
        set()
        if marked
        else {f"{path}: not UTF-8, so it is read as {encoding}; --encoding (in Python: encoding=) names another"}
    )


@each("encoding", ["cp1252", "cp1250", "latin-1", "utf-16", "cp037", "UTF-8", "shift_jis"])
def test_an_encoding_that_is_named_is_used(tmp_path: Path, encoding: str) -> None:
    text = "id;text\n1;moon\n" if encoding == "shift_jis" else TABLE.replace("à", "a").replace("è", "e").replace("ï", "i")
    path = put(tmp_path / "c.csv", text.encode(encoding))
    assert [doc.text for doc in read_corpus(path, encoding=encoding)] == [line[2:] for line in text.splitlines()[1:]]


def test_topics_judgments_and_runs_have_encodings_too(tmp_path: Path) -> None:
    topics = put(tmp_path / "t.tsv", "qid\tquery\né\tCafé à la crème\n".encode("cp1252"))
    qrels = put(tmp_path / "q.txt", "é 0 d1 1\nè 0 d1 1\n".encode("cp1252"))
    run = put(tmp_path / "r.run", "é Q0 d1 1 2.0 x\n".encode("utf-16"))
    with pytest.warns(InputWarning, match="read as cp1252"):
        assert read_topics(topics)["é"].text == "Café à la crème"
    assert read_qrels(qrels, encoding="cp1252").to_dict() == {"é": {"d1": 1}, "è": {"d1": 1}}
    assert list(read_run(run)) == ["é"]


def test_an_encoding_is_detected_only_where_it_is_plain_to_see() -> None:
    for start, encoding in [
        (b"", "utf-8"),
        (b"plain", "utf-8"),
        ("é".encode(), "utf-8"),
        ("日本語".encode()[:-1], "utf-8"),  # cut within a letter
        (b"a broken \xff byte", "utf-8"),
        (b"two \xff broken \xfe bytes", "utf-8"),
        (b"one \xe9 letter", "utf-8"),
        ("é à ü".encode() + b" \xe9 \xe8", "utf-8"),  # UTF-8 with broken bytes
        (b"\xe9 \xe8 \x00 no text", "utf-8"),
        (b"a letter \xed\xbf\xbf or \xe2\x82 that is cut", "utf-8"),
        (b"\x81\x8d no letters", "utf-8"),
        ("“é” – à".encode("cp1252"), "cp1252"),
        ("Tšekki: hyvää päivää, tyttö".encode("cp1252"), "cp1252"),
        ("naïve façade, El Niño, smörgåsbord, Übermensch, rôle".encode("cp1252"), "cp1252"),
        ("He said “no”… £5, 20 °C, 3 m², 5 µm".encode("cp1252"), "cp1252"),
        ("Žena v Polsku může zažádat".encode("iso8859-2"), "iso8859_2"),
        ("žena, žaba a žito".encode("iso8859-2"), "utf-8"),  # or Slovak in cp1250
        ("Děti šly".encode("cp1250"), "cp1250"),
        ("1\tkůň\n2\tpěšky\n".encode("cp1250"), "cp1250"),
        ("Zażółć gęślą jaźń".encode("cp1250"), "cp1250"),
        ("Árvíztűrő tükörfúrógép".encode("cp1250"), "cp1250"),
        ("Kŕdeľ ďatľov učí koňa žrať kôru".encode("cp1250"), "cp1250"),
        ("Děti šly do lesa, kůň žral".encode("iso8859-2"), "iso8859_2"),
        ("kůň pět".encode("cp1250"), "utf-8"),  # or Italian in cp1252
        ("Çocuklar ormana gitti, Şişli'de yağmur yağıyor".encode("cp1254"), "utf-8"),
        ("Дети пошли в лес".encode("cp1251"), "utf-8"),
        ("Дети пошли в лес".encode("koi8-r"), "utf-8"),
        ("Τα παιδιά πήγαν στο δάσος".encode("cp1253"), "utf-8"),
        ("Vaikai nuėjo į mišką, ąžuolas".encode("cp1257"), "utf-8"),
        ("子供たちは森へ行きました".encode("shift_jis"), "utf-8"),
        ("孩子们去了森林".encode("gb18030"), "utf-8"),
        ("abcdefgh".encode("utf-16-le"), "utf-16-le"),
        ("abcdefgh".encode("utf-16-be"), "utf-16-be"),
        (b"\xff\xfe\0\0", "utf-32"),
        (b"\xff\xfea\0", "utf-16"),
        (b"\xfe\xff\0a", "utf-16"),
    ]:
        assert detected(start) == encoding


def test_czech_in_cp1250_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = put(tmp_path / "t.tsv", "1\tDěti šly do lesa\n2\tpříliš žluťoučký kůň\n".encode("cp1250"))
    with pytest.warns(InputWarning, match="not UTF-8, so it is read as cp1250"):
        assert [topic.text for topic in read_topics(path).values()] == ["Děti šly do lesa", "příliš žluťoučký kůň"]


@each(
    ("text", "stored", "failed"),
    [
        ("Дети пошли в лес", "cp1251", None),
        ("Дети пошли в лес: это очень хороший вопрос", "cp1251", "utf-8"),
        ("Τα παιδιά πήγαν στο δάσος. Αυτή είναι μια καλή ερώτηση.", "cp1253", None),
        ("Děti šly, kůň, pěšky, už ťukal", "cp1250", "cp1252"),
        ("Çocuklar ormana gitti. Şişli'de yağmur yağıyor, ığdır çok güzel.", "cp1254", "utf-8"),
        ("孩子们去了森林。这是一个很好的问题。", "gb18030", None),
    ],
)
def test_the_encoding_that_an_error_advises_reads_the_file(
    tmp_path: Path, text: str, stored: str, failed: str | None, fontes
) -> None:
    path = put(tmp_path / "c.tsv", f"1\t{text}\n".encode(stored))
    code, _, error = fontes("index", path, "-o", tmp_path / "i", *(("--encoding", failed) if failed else ()))
    assert code == 1
    advised = re.search(r"--encoding NAME reads another encoding, such as (\S+), and", error)[1]
    assert fontes("index", path, "-o", tmp_path / "i", "--encoding", advised)[0] == 0
    assert ft.Index.open(tmp_path / "i").doc("1").text == text


@each("failed", ["utf-8", "cp1252", "cp1250", "gb18030", "utf-16"])
@each("content", [b"\xff", b"caf\xe9 \x81", b"\x81\x8d\x90", b"", bytes(range(256))])
def test_an_encoding_that_has_failed_is_not_advised(content: bytes, failed: str) -> None:
    advised = re.search(r"such as (\S+), and", remedy(content, failed))[1]
    assert codecs.lookup(advised) != codecs.lookup(failed)


def test_a_broken_byte_stops_with_its_line_and_the_options(tmp_path: Path, fontes) -> None:
    path = put(tmp_path / "b.jsonl", BROKEN)
    code, _, error = fontes("index", path, "-o", tmp_path / "b.index")
    assert (code, error.startswith(f"fontes: {path}, line 4: not UTF-8 (byte ")) == (1, True)
    assert "such as cp1252, and --errors replace puts U+FFFD in place of such bytes" in error
    code, _, error = fontes("index", path, "-o", tmp_path / "b.index", "--errors", "replace")
    assert (code, error) == (0, f"fontes: {path}: U+FFFD is in place of bytes that are not utf-8 in 2 lines, first in line 4\n")
    index = ft.Index.open(tmp_path / "b.index")
    assert [index.doc(n).text for n in ("2", "3", "7000")] == ["café x", "café \ufffd", "café \ufffd"]


def test_lines_that_had_the_replacement_before_are_not_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "1\t\ufffd\n2\t".encode() + b"a\xffb\xff\n3\tc\xff\n")
    with pytest.warns(InputWarning, match="in 2 lines, first in line 2$"):
        assert [doc.text for doc in read_corpus(path, errors="replace")] == ["\ufffd", "a\ufffdb\ufffd", "c\ufffd"]


def test_a_block_says_how_files_are_read_and_a_call_says_otherwise(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "1\té\n2\tß\n".encode("cp1250"))
    with reading_as(ReadingOptions("cp1250")):
        corpus = read_corpus(path)
        assert read_topics(path)["2"].text == "ß"
        assert [doc.text for doc in read_corpus(path, encoding="cp437")] == ["Θ", "▀"]
    assert [doc.text for doc in corpus] == ["é", "ß"]  # as it was read then


def test_a_line_of_a_pipe_is_read_before_the_next_is_written() -> None:
    reads, writes = os.pipe()
    with os.fdopen(writes, "wb", buffering=0) as end, os.fdopen(reads, "rb") as pipe:
        for line in ("café", "naïve"):
            end.write(f"{line}\n".encode("cp1252"))
            if line == "café":
                file, _ = as_utf8(pipe, "pipe", ReadingOptions("cp1252"))
            assert file.readline().decode() == f"{line}\n"


def test_xml_that_declares_its_encoding_is_read_so(tmp_path: Path) -> None:
    text = (
        '<?xml version="1.0" encoding="ENCODING"?>\n<topics><topic number="1"><title>žluťoučký kůň</title></topic></topics>\n'
    )
    for encoding in ("cp1250", "utf-16", "utf-8"):
        path = put(tmp_path / "t.xml", text.replace("ENCODING", encoding).encode(encoding))
        assert read_topics(path)["1"].text == "žluťoučký kůň"


def test_a_file_in_another_encoding_is_not_cut(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "".join(f"{n}\tcafé\n" for n in range(2000)).encode("utf-16"))
    parts = read_corpus(path).cut(1000)
    assert ([doc.id for part in parts for doc in part], len(parts)) == ([str(n) for n in range(2000)], 1)
