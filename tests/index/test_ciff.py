"""CIFF: an index of a file has its postings and lengths, answers as the index that wrote it, and says what is wrong."""

import contextlib
import gzip
import pickle
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.ciff import TOOLKIT, ciff, parsed, postings_list
from support.each import each
from support.examples import up_to
from support.histories import answer
from support.small_collections import PROPERTY, agrees, inverted, postings

import fontes as ft
from fontes.core import Doc, InputError, ParameterError, PipelineError
from fontes.core.errors import MissingExtraError
from fontes.core.expression import pipeline
from fontes.formats import ciff as reading
from fontes.index import Index

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "東", "～", "𝒜", "z"]), max_size=12)
BAGS = st.lists(WORDS.map(Counter), min_size=1, max_size=12)
TEXTS = ["spring water spring", "water mill", "", "spring mill mill mill", "a mill by the water"]
TOPICS = {"q1": "spring water", "q2": "mill mill", "q3": "the", "q4": "absent"}


def stored(content: bytes, folder: Path, name: str = "x.ciff") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def index_of(content: bytes, folder: Path, name: str = "x.ciff", analyzer: str = "whitespace") -> Index:
    return Index.build(stored(content, folder, name), folder / "c.index", analyzer=analyzer, overwrite=True)


def bags_of(texts: list[str]) -> list[Counter[str]]:
    return [Counter(text.split()) for text in texts]


def of_texts(texts: list[str], folder: Path) -> Index:
    docs = [(f"d{number}", text) for number, text in enumerate(texts)]
    return Index.build(docs, folder / "texts.index", analyzer="whitespace", overwrite=True)


def test_a_file_that_another_program_wrote_gives_its_postings(tmp_path):
    index = index_of(TOOLKIT, tmp_path)
    bags = bags_of(["spring water spring", "water mill", "", "spring mill mill mill " + "x " * 200, "žlutý kůň 🐎 ～"])
    assert postings(index) == inverted(bags)
    assert index.ids.tolist() == ["d1", "d2", "empty", "long", "ž"]
    assert index.lengths.tolist() == [3, 2, 0, 204, 4]
    assert index.terms.tolist() == sorted(index.terms.tolist(), key=str.encode)  # though the file has them as Java sorts them
    assert index.info()["ciff"] == parsed(TOOLKIT)[0]
    assert index.info()["mean_length"] == 42.6


@PROPERTY
@given(BAGS)
def test_any_file_gives_its_postings_and_is_written_again_byte_for_byte(tmp_path, bags):
    content = ciff(bags)
    index = index_of(content, tmp_path)
    agrees(index, bags)
    index.export(tmp_path / "again.ciff")
    assert (tmp_path / "again.ciff").read_bytes() == content


def test_the_bytes_of_a_file_are_those_of_the_format(tmp_path):
    index = of_texts(TEXTS, tmp_path)
    index.export(tmp_path / "x.ciff", description="an index")
    assert (tmp_path / "x.ciff").read_bytes().hex() == (
        "1f08011006180520062805300e3966666666666606404208616e20696e6465780d0a0161100118012204080410010e0a02627910011801220408"
        "0410011c0a046d696c6c10031805220408011001220408021003220408011001160a06737072696e6710021803220210022204080310010f0a03"
        "746865100118012204080410011b0a05776174657210031803220210012204080110012204080310010612026430180308080112026431180206"
        "080212026432080803120264331804080804120264341805"
    )


@settings(PROPERTY, max_examples=up_to(20))
@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=12))
def test_an_index_comes_back_with_the_same_files_and_answers_alike(tmp_path, texts):
    index = of_texts(texts, tmp_path)
    index.export(tmp_path / "x.ciff.gz")
    header, terms, records = parsed(gzip.decompress((tmp_path / "x.ciff.gz").read_bytes()))
    bags = bags_of(texts)
    assert terms == inverted(bags)
    assert records == [(f"d{n}", bag.total()) for n, bag in enumerate(bags)]
    assert header["total_terms_in_collection"] == index.tokens
    assert header["average_doclength"] == index.tokens / len(texts)
    other = Index.build(tmp_path / "x.ciff.gz", tmp_path / "c.index", analyzer="whitespace", overwrite=True)
    theirs, ours = (opened.state.manifest["segments"][0]["files"] for opened in (index, other))
    assert ours == {name: facts for name, facts in theirs.items() if not name.startswith("text.")}
    for name in ("bm25()", "bm25(lengths='lucene')", "tfidf()", "ql()"):
        assert answer(pipeline(name, other)({"q": "a b é 𝒜"})) == answer(pipeline(name, index)({"q": "a b é 𝒜"}))


def test_what_is_written_are_the_documents_that_live_of_all_segments(tmp_path):
    index = of_texts(TEXTS, tmp_path)
    index.add([("new", "spring spring mill"), ("last", "the end")])
    index.delete(["d1", "d2"])
    fresh = Index.build(
        [("d0", TEXTS[0]), ("d3", TEXTS[3]), ("d4", TEXTS[4]), ("new", "spring spring mill"), ("last", "the end")],
        tmp_path / "fresh.index",
        analyzer="whitespace",
    )
    for opened, name in ((index, "a.ciff"), (fresh, "b.ciff")):
        opened.export(tmp_path / name, description="")
    assert (tmp_path / "a.ciff").read_bytes() == (tmp_path / "b.ciff").read_bytes()


def test_documents_are_deleted_and_segments_merged_without_texts(tmp_path):
    index, other = index_of(ciff(bags_of(TEXTS)), tmp_path), of_texts(TEXTS, tmp_path)
    for opened in (index, other):
        opened.delete(["d1"])
    assert answer(index.bm25()(TOPICS)) == answer(other.bm25()(TOPICS))
    assert index.tokens == other.tokens
    for opened in (index, other):
        opened.merge()
    assert len(index.state.leaves) == 1
    assert answer(index.bm25()(TOPICS)) == answer(other.bm25()(TOPICS))
    index.check(deep=True)
    index.export(tmp_path / "left.ciff")
    again = Index.build(tmp_path / "left.ciff", tmp_path / "left.index", analyzer="whitespace")
    assert answer(again.bm25()(TOPICS)) == answer(other.bm25()(TOPICS))
    index.delete(index.ids)
    assert (len(index), index.tokens, len(index.bm25()(TOPICS)["q1"])) == (0, 0, 0)


def bm25(tf, dl, df, n, avgdl, k1=0.9, b=0.4):
    return np.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * dl / avgdl))


def test_the_lengths_and_the_mean_are_those_of_the_file(tmp_path):
    # As Lucene writes it: lengths of one byte, and the exact sum of all.
    bags = [Counter(a=50, b=1), Counter(a=1, c=90), Counter(b=3)]
    content = ciff(bags, lengths=[48, 88, 3])
    index = index_of(content, tmp_path)
    assert (index.lengths.tolist(), index.tokens) == ([48, 88, 3], 145)
    run = index.bm25()({"q": "a"})["q"]
    expected = {"d0": bm25(50, 48, 2, 3, 145 / 3), "d1": bm25(1, 88, 2, 3, 145 / 3)}
    assert {hit.id: hit.score for hit in run} == pytest.approx(expected, rel=1e-6)
    assert answer(index.bm25(lengths="lucene")({"q": "a"})) == answer(index.bm25()({"q": "a"}))
    index.check(deep=True)
    index.delete("d1")
    assert index.tokens == 54  # which the postings that are left add up to
    expected = {"d0": bm25(50, 48, 1, 2, 54 / 2)}
    assert {hit.id: hit.score for hit in index.bm25()({"q": "a"})["q"]} == pytest.approx(expected, rel=1e-6)
    index.merge()
    assert {hit.id: hit.score for hit in index.bm25()({"q": "a"})["q"]} == pytest.approx(expected, rel=1e-6)


def test_a_file_of_some_terms_keeps_the_sums_of_all(tmp_path):
    # As exported for the terms of some queries alone: the lengths count the others too.
    lists = [postings_list("a", {0: 2, 2: 1})]
    header = {"total_postings_lists": 40, "total_terms_in_collection": 30, "average_doclength": 10.0}
    content = ciff([Counter()] * 3, lengths=[4, 6, 20], lists=lists, **header)
    index = index_of(content, tmp_path)
    assert index.tokens == 30
    run = index.bm25()({"q": "a"})["q"]
    expected = {"d0": bm25(2, 4, 2, 3, 10), "d2": bm25(1, 20, 2, 3, 10)}
    assert {hit.id: hit.score for hit in run} == pytest.approx(expected, rel=1e-6)
    index.export(tmp_path / "again.ciff")
    assert (tmp_path / "again.ciff").read_bytes() == content
    index.delete("d2")
    assert index.tokens == 10
    index.export(tmp_path / "left.ciff")
    header, terms, records = parsed((tmp_path / "left.ciff").read_bytes())
    assert (terms, records, header["total_terms_in_collection"]) == ({"a": {0: 2}}, [("d0", 4), ("d1", 6)], 10)
    assert Index.build(tmp_path / "left.ciff", tmp_path / "left.index").tokens == 10


def test_a_file_of_some_documents_has_the_mean_of_these(tmp_path):
    header = {"total_docs": 100, "total_terms_in_collection": 5000, "average_doclength": 50.0}
    index = index_of(ciff([Counter(a=1), Counter(a=1, b=2)], **header), tmp_path)
    assert (len(index), index.tokens) == (2, 4)
    assert index.info()["ciff"]["total_docs"] == 100
    index.delete("d0")
    index.export(tmp_path / "left.ciff")
    left = parsed((tmp_path / "left.ciff").read_bytes())[0]
    assert (left["num_docs"], left["total_docs"], left["total_terms_in_collection"]) == (1, 100, 5000)
    assert Index.build(tmp_path / "left.ciff", tmp_path / "left.index").tokens == 3


def test_lists_longer_than_what_is_read_at_once_are_read_whole(tmp_path, monkeypatch):
    bags = [Counter({"everywhere": n + 1, f"t{n % 7}": 300 * n + 1}) for n in range(200)]
    content = ciff(bags)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(reading, "PIECE", size)
        agrees(index_of(content, tmp_path), bags)


def test_unknown_fields_are_skipped(tmp_path):
    extra = b"\x78\x05" + b"\x79" + bytes(8) + b"\x7a\x02ab" + b"\x7d" + bytes(4)  # of the number 15, of all kinds
    term = postings_list("a", {0: 2, 1: 1}).FromString(postings_list("a", {0: 2, 1: 1}).SerializeToString() + extra)
    content = ciff([Counter(a=2), Counter(a=1)], lists=[term])
    assert extra in content
    assert postings(index_of(content, tmp_path)) == {"a": {0: 2, 1: 1}}


WRONG = {
    "it does not begin with a header": b"",
    "is no CIFF file: its header is cut off": b"just a text, of some length, that is no message of Protobuf",
    "in its header": b"\x03\x08\x01\x17",
    "its num_docs is -1": ciff([Counter(a=1)], num_docs=-1),
    "names the version 2": ciff([Counter(a=1)], version=2),
    "holds no documents": ciff([]),
    "counts 2 documents of a collection of 1": ciff([Counter(a=1)] * 2, total_docs=1),
    "postings list 1 ('a'): its df is 3, but it has 1 postings": ciff([Counter(a=1)], lists=[postings_list("a", {0: 1}, df=3)]),
    "its cf is 9, but its frequencies add up to 1": ciff([Counter(a=1)], lists=[postings_list("a", {0: 1}, cf=9)]),
    "postings list 1: it has no term": ciff([Counter(a=1)], lists=[postings_list("", {0: 1})]),
    "('a'): it has no postings": ciff([Counter(a=1)], lists=[postings_list("a", {})]),
    "docid 5, but the header counts 1 documents": ciff([Counter(a=1)], lists=[postings_list("a", {5: 1})]),
    "after 1 comes one with the gap 0": ciff(
        [Counter(a=1)] * 2, lists=[postings_list("a", {}, df=2, cf=2, postings=[{"docid": 1, "tf": 1}, {"tf": 1}])]
    ),
    "docids do not ascend": ciff(
        [Counter(a=1)] * 2, lists=[postings_list("a", {}, df=1, cf=1, postings=[{"docid": -1, "tf": 1}])]
    ),
    "the docid 0 has the frequency 0": ciff([Counter(a=1)], lists=[postings_list("a", {}, df=1, cf=0, postings=[{}])]),
    "postings list 1: it is no message of Protobuf": ciff([Counter(a=1)]).replace(b"\x0a\x01a", b"\x0a\x7fa"),
    "a term among the postings lists 1 to 1 is not UTF-8": ciff([Counter(a=1)]).replace(b"\x0a\x01a", b"\x0a\x01\xff"),
    "of 'a' (2) comes after 'b'": ciff([Counter("ab")], lists=[postings_list("b", {0: 1}), postings_list("a", {0: 1})]),
    "of 'a' comes twice": ciff([Counter("aa")], lists=[postings_list("a", {0: 1})] * 2),
    "document 2: its docid is 0, not 1": ciff([Counter(a=1)] * 2, docids=[0, 0]),
    "document 1: it has no collection_docid": ciff([Counter(a=1)], names=[""]),
    "document id 'd' occurs twice": ciff([Counter(a=1)] * 2, names=["d", "d"]),
    "an id among the documents 1 to 1 is not UTF-8": ciff([Counter(a=1)], names=[b"\xff0"]),
    "document 'd0' has postings and no length": ciff([Counter(a=1), Counter(b=1)], lengths=[0, 1]),
    "its doclength is -7": ciff([Counter(a=1)], lengths=[-7]),
    "counts 70 terms in the collection, but the frequencies of its postings add up to 2": ciff(
        [Counter(a=2)], total_terms_in_collection=70, average_doclength=70.0
    ),
    "counts 1 terms in the collection, but": ciff([Counter(a=2)], total_terms_in_collection=1, total_postings_lists=9),
    "an average_doclength of 5": ciff([Counter(a=2)], average_doclength=5.0),
    "goes on after the 1 documents": ciff([Counter(a=1)]) + b"\x00",
    "in its header: its num_docs is 2147483648": ciff([Counter(a=1)], num_docs=1 << 31, total_docs=1 << 31),
    "it ends after 0 of 1 postings lists": ciff([Counter(a=1)]).replace(b"\x0b\x0a\x01a", b"\xff\xff\xff\xff\x07\x0a\x01a"),
    "it ends after 1 of 2 postings lists": ciff([Counter("a")], num_postings_lists=2, total_postings_lists=2)[:-5],
}


@each("problem", WRONG)
def test_what_is_wrong_is_said_in_a_sentence_that_names_the_file(tmp_path, problem):
    with pytest.raises(InputError) as error:
        index_of(WRONG[problem], tmp_path)
    assert problem in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "x.ciff"))
    assert [path.name for path in tmp_path.iterdir()] == ["x.ciff"]


def read(content: bytes) -> None:
    """Reads a file as an import does."""
    from io import BytesIO

    from fontes.storage.files import InputFile

    reader = reading.CiffReader(InputFile("x.ciff", BytesIO(content)))
    for part in (reader.lists, reader.records):
        for _ in part():
            pass
    reader.surplus()
    reader.check_mean()


def test_a_file_that_is_cut_off_is_an_error_wherever_it_ends(tmp_path):
    read(TOOLKIT)
    for length in range(len(TOOLKIT)):
        with pytest.raises(InputError, match=r"x\.ciff"):
            read(TOOLKIT[:length])
    packed = gzip.compress(TOOLKIT)
    (tmp_path / "x.ciff.gz").write_bytes(packed[:-12])
    with pytest.raises(InputError, match="gzip file is cut off"):
        Index.build(tmp_path / "x.ciff.gz", tmp_path / "c.index")


@PROPERTY
@given(st.data())
def test_a_damaged_file_is_refused_or_gives_an_index_that_is_sound(tmp_path, data):
    content = bytearray(ciff([Counter("abca"), Counter("b"), Counter("ccc")], description="d" * data.draw(st.integers(0, 3))))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from([0, 1, 2, 8, 16, 34, 127, 128, 255]))
    with contextlib.suppress(InputError):
        index_of(bytes(content), tmp_path).check(deep=True)


def test_without_protobuf_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    reading.messages.cache_clear()
    with pytest.raises(MissingExtraError, match=r"a CIFF file needs protobuf, .*'fontes\[ciff\]'"):
        index_of(TOOLKIT, tmp_path)


def test_a_file_is_known_by_its_content_and_by_its_name(tmp_path):
    assert len(index_of(TOOLKIT, tmp_path, "some.file")) == 5
    assert ft.read_corpus(stored(ciff([], num_postings_lists=0), tmp_path, "named.ciff.gz")).format == "ciff"


def test_whatever_reads_texts_says_that_there_are_none(tmp_path):
    from support.hashed_encoder import Hashed

    index = index_of(ciff(bags_of(TEXTS)), tmp_path)
    run = index.bm25()(TOPICS)
    for reads in (
        lambda: index.docs(["d0"]),
        lambda: index.analyzed(["d0"]),
        lambda: run["q1"].docs(),
        lambda: run["q1"].snippets(),
        lambda: (index.bm25() >> index.rm3())(TOPICS),
        lambda: index.encode(Hashed()),
    ):
        with pytest.raises(InputError, match=r"c\.index holds no text: it was made from a CIFF file"):
            reads()
    with pytest.raises(InputError, match=r"CrossEncoder needs the documents' text, and .*c\.index holds none"):
        run.documents_for("CrossEncoder")
    with pytest.raises(InputError, match="holds no text, so that no documents can be added"):
        index.add([Doc("new", "text")])
    with pytest.raises((InputError, ParameterError, PipelineError), match=r"no column|has none"):
        index.bm25(where="year > 2000")(TOPICS)
    assert not run["q1"].has_texts
    assert "d0" in run["q1"]._repr_html_()
    assert "d0" in run._repr_html_()


def test_an_index_of_a_file_opens_again_and_in_other_processes(tmp_path):
    index = index_of(ciff(bags_of(TEXTS)), tmp_path)
    expected = answer(index.bm25()(TOPICS))
    assert answer(Index.open(index.path, verify=True).bm25()(TOPICS)) == expected
    assert answer(pickle.loads(pickle.dumps(index)).bm25()(TOPICS)) == expected
    assert index.is_sound
    assert "a test" in index._repr_html_()
    assert index.bm25().explain("spring water", "d0").value == index.bm25().search("spring water").scores[0]


@pytest.mark.parametrize("name", ["cranfield", "scifact"])
@pytest.mark.slow
def test_real_collections_come_back_as_they_were(shared, tmp_path, name):
    index = Index.build(shared / name / "corpus.jsonl", tmp_path / "texts.index")
    index.export(tmp_path / "x.ciff")
    header, terms, records = parsed((tmp_path / "x.ciff").read_bytes()) if name == "cranfield" else ({}, {}, [])
    if terms:
        assert terms == postings(index)
        assert records == list(zip(index.ids.tolist(), index.lengths.tolist(), strict=True))
        assert header["num_docs"] == len(index)
    other = Index.build(tmp_path / "x.ciff", tmp_path / "c.index")
    topics = ft.read_topics(shared / name)
    for stage in ("bm25", "tfidf", "ql"):
        ours, theirs = (getattr(opened, stage)()(topics) for opened in (index, other))
        assert ours.scores.tobytes() == theirs.scores.tobytes()
        assert ours.codes.tobytes() == theirs.codes.tobytes()
