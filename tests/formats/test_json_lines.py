"""JSON lines, many at a time: the same documents, and the same errors, as one line at a time by Python's decoder."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from support.each import each
from support.small_collections import PROPERTY

from fontes.core import InputError
from fontes.core.strings import utf8
from fontes.formats import corpus as corpora, read_corpus
from fontes.formats.packed import Packed, Packing, join_packed, pack_docs

STRING = st.text(st.sampled_from(list("ab \"\\/\b\f\n\r\t\0\x1f\x7fé東𝒜\ud800\udc00\ufeff'{}[]:,")), max_size=8)
VALUE = STRING | st.sampled_from([None, 7, 1.5, True, [], {}, {"a": "é"}])
ROW = st.fixed_dictionaries(
    {"_id": STRING | st.sampled_from(["d1", "d2", " ", 7]), "text": STRING},
    optional={"title": VALUE, "metadata": VALUE, "more": VALUE, "Text": STRING},
)
LINE = st.tuples(ROW, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\t: ")])).map(
    lambda e: json.dumps(e[0], ensure_ascii=e[1], separators=e[2]).encode("utf-8", "surrogatepass")
)
ODD = st.sampled_from(
    [
        b"",
        b"  \t",
        b"\x0c",
        b"null",
        b"{",
        b'{"_id": "a", "text": "b"',
        b'{"_id": "a", "text": "b"} x',
        b'{"_id": "a", "text": "b"}\r',
        b' { "_id" : "a" , "text" : "b" } ',
        b'{"_id": "a", "text": "b",}',
        b'{"_id": "a", "text": "b", "text": "c"}',
        b'{"_id": "a", "text": "b", "metadata": {}}',
        b'{"_id": "a", "text": "\xff"}',
        b'{"_id": "a", "text": "\xed\xa0\x80"}',
        b'{"_id": "a", "text": "\xc0\x80\xf4\x90\x80\x80"}',
        b'{"_id": "a", "text": "\\ud83d\\ude00 \\uD83D\\uDE00 \\u00e9\\u6771\\u0000"}',
        b'{"_id": "a", "text": "\\ud83d"}',
        b'{"_id": "a", "text": "\\u12g4"}',
        b'{"_id": "a", "text": "\\x"}',
        b'{"_id": "a\\u0062", "text": "b"}',
        b'{"_id": "", "text": "b"}',
        b'{"_id": "\xe2\x80\x83", "text": "b"}',
        b'{"id": "a", "contents": "b"}',
        b'{"text": "b"}',
        b"\xef\xbb\xbf{}",
        b'{"_id": "a", "text": "b\n',
        b'{"_id": "a", "text": "\\',
        b'{"_id": "a",\n"text": "b"}',
        b'{"_id": "a", "metadata":\n{}, "text": "b"}',
        b'{"_id": "a", "text": "b"}{"_id": "c", "text": "d"}',
        b'{"_id": "a", "text": "b"} {"_id": "c",\n"text": "d"}',
        b'{"_id": "a", "text": "b", "metadata": ' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
    ]
)


def outcome(read: object) -> object:
    try:
        return read()  # type: ignore[operator]
    except InputError as error:
        return str(error)


def parts(path: Path, size: int) -> Packed:
    portions = list(read_corpus(path, format="jsonl").portions(size, 3))
    packs = [part.work() if isinstance(part, Packing) else pack_docs(part) for part in portions]
    if not sum(map(len, packs)):
        raise read_corpus(path, format="jsonl").empty()
    return join_packed(packs)


def columns(docs: Packed) -> tuple[list[str], bytes, list[list[int]], list[object]]:
    values = list(docs.values) or [{}] * len(docs)
    return docs.ids.tolist(), docs.text.tobytes(), docs.sizes.tolist(), values


@PROPERTY
@given(st.lists(LINE | LINE | ODD, min_size=1, max_size=12), st.sampled_from([1, 40, 1 << 20]), st.booleans())
@example([b'{"_id": "a", "text": "b"}'] * 9, 1 << 20, False)
def test_lines_are_read_as_pythons_decoder_reads_them(tmp_path_factory, lines, size, end):
    path = tmp_path_factory.mktemp("lines") / "corpus.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n" * end)
    assert outcome(lambda: columns(parts(path, size))) == outcome(
        lambda: columns(pack_docs(list(read_corpus(path, format="jsonl"))))
    )


@each(
    "lines",
    [
        b'{"_id": "a",\n"text": "b"}',
        b'{"_id": "a",\r\n"text": "b"}',
        b'{"_id": "a", "metadata":\n{}, "text": "b"}',
        b'{"_id": "a", "text": "b"}{"_id": "c", "text": "d"}',
        b'{"_id": "a", "text": "b"} {"_id": "c", "text": "d"}',
        b'{"_id": "a", "text": "b"} {"_id": "c", "text": "d"}\n',
        b'{"_id": "a", "text": "b", "metadata": ' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
    ],
)
def test_a_line_that_is_not_one_object_is_an_error_after_plain_ones_too(tmp_path, lines):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join([PLAIN_LINE % 1, lines, PLAIN_LINE % 2]).replace(b"\n\n", b"\n"))
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 2: broken JSON"):
        parts(path, 1 << 20)


@pytest.mark.parametrize("keys", [("_id", "title", "text"), ("id", "title", "contents"), ("docno", "Headline", "BODY")])
def test_most_lines_never_become_objects_of_python(tmp_path, monkeypatch, keys):
    one, title, text = keys
    rows = [{one: f"d{n}", title: f"Title {n}", text: f'a "text" {n}'} for n in range(100)]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = []
    doc_from = corpora.doc_from
    monkeypatch.setattr("fontes.formats.jsonl.doc_from", lambda *args: made.append(1) or doc_from(*args))
    fields = {"id": one, "title": title, "text": text}
    docs = join_packed([part.work() for part in read_corpus(path, fields=fields).portions(1 << 20, 3)])
    assert docs.ids.tolist() == [row[one] for row in rows]
    assert docs.text.tobytes().decode() == "".join(row[title] + row[text] for row in rows)
    assert not made


@pytest.mark.parametrize("line", [b'{"_id": "a", "text": "b', b'{"_id": "a", "text": "\\'])
def test_an_error_in_a_string_is_told_alike_by_both_ways_to_read(tmp_path, line):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join([line, PLAIN_LINE % 1]))
    assert outcome(lambda: parts(path, 1 << 20)) == outcome(lambda: list(read_corpus(path)))


def test_pairs_and_documents_are_the_same_bytes():
    pairs = [("a", "é"), ("b", ""), ("c", "\ud800")]
    (packing,) = read_corpus(pairs).portions(1 << 20, 256)
    assert isinstance(packing, Packing)
    assert columns(packing.work()) == columns(pack_docs(list(read_corpus(pairs))))
    assert np.array_equal(packing.work().sizes[:, 1], [2, 0, 3])


PLAIN_LINE = b'{"_id": "d%d", "title": "t", "text": "a b"}\n'


STRINGS = [
    b"\xed\xa0\x80",  # halves of surrogate pairs in UTF-8
    b"\xed\xbf\xbf",
    b"\xed\x9f\xbf",  # the letter before them
    b"\xe0\x9f\xbf",  # longer than it needs to be
    b"\xe0\xa0\x80",
    b"\xc1\xbf",
    b"\xc2\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xf0\x90\x80\x80",
    b"\xf4\x8f\xbf\xbf",  # the last letter
    b"\xf4\x90\x80\x80",  # beyond it
    b"\xf5\x80\x80\x80",
    b"\xe2\x82",  # cut within a letter
    b"\xe2\x82\xc2",
    b"\x80",
    b"\\ud83d\\ude00",
    b"\\ud83d\\ud83d",  # a second half that is none
    b"\\ud83d\\udbff",
    b"\\ud83d\\udc00",
    b"\\ud83d\\udfff",
    b"\\ud83d\\ue000",
    b"\\ud83d\\u0041",
    b"\\ud83d",
    b"\\ud83dx\\ude00",
    b"\\ud83d\\nde00",
    b"\\ude00\\ud83d",
    b"\\ud7ff",
    b"\\ue000",
    *(bytes([control]) for control in (0, 1, 8, 9, 13, 27, 31, 32, 127)),
    b"\\u00g0",
    b"\\u000G",
    b"\\u00/0",
    b"\\u00:0",
    b"\\u00@0",
    b"\\u00`0",
    b"\\uaAfF",
    b"\\u09",
    b"\\u007f\\u0080\\u07ff\\u0800\\uffff",
    b"\\x",
    b"\\",
    b'\\b\\f\\n\\r\\t\\/\\\\\\"',
]


@pytest.mark.parametrize("part", ["title", "text"])
def test_each_string_from_the_second_line_on_is_read_as_by_pythons_decoder(tmp_path, part):
    """The first line is Python's anyway: it says which keys there are."""
    assert [string for string in STRINGS if not is_read_as_by_python(tmp_path, string, part)] == []


def is_read_as_by_python(tmp_path, string, part):
    odd = {"title": b"t", "text": b"a b"} | {part: b"x" + string + b"y"}
    line = b'{"_id": "d2", "title": "%b", "text": "%b"}\n' % (odd["title"], odd["text"])
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(PLAIN_LINE % 1 + line + PLAIN_LINE % 3)
    expected = outcome(lambda: columns(pack_docs(list(read_corpus(path, format="jsonl")))))
    if outcome(lambda: columns(parts(path, 1 << 20))) != expected:
        return False
    try:
        text = json.loads(line.decode())[part]
    except ValueError:
        return isinstance(expected, str) and "line 2: " in expected
    return expected[0] == ["d1", "d2", "d3"] and utf8(text) in expected[1]
