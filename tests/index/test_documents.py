"""What goes into an index and comes back: documents of any kind, their ids, titles, texts and metadata."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support.each import each
from support.small import small_batches
from support.small_collections import DOCS, PROPERTY, agrees, postings

from fontes.core import Doc, InputError
from fontes.core.errors import InputWarning
from fontes.formats import read_corpus
from fontes.index import Index, texts as documents
from fontes.storage import files


@each(
    "given",
    [
        [("d1", "red fox"), ("d2", "blue")],
        (pair for pair in [("d1", "red fox"), ("d2", "blue")]),
        [("d1", "", "red fox"), ("d2", "", "blue")],
        [{"_id": "d1", "text": "red fox"}, {"id": "d2", "contents": "blue"}],
        [Doc("d1", "red fox"), Doc("d2", "blue")],
        {"d1": "red fox", "d2": "blue"},
        [Doc("d1", "red fox"), ("d2", "blue")],
    ],
)
def test_an_index_is_built_from_whatever_holds_documents(tmp_path, given):
    index = Index.build(given, tmp_path / "x")
    assert [(d.id, d.text) for d in index.docs(["d1", "d2"])] == [("d1", "red fox"), ("d2", "blue")]
    assert postings(index) == {"blue": {1: 1}, "fox": {0: 1}, "red": {0: 1}}


def test_an_index_is_built_from_a_dataframe(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["d1", "d2"], "text": ["red fox", "blue"], "year": [1, 2]})
    index = Index.build(frame, tmp_path / "x")
    assert index.ids.tolist() == ["d1", "d2"]
    assert index.doc("d2").metadata == {"year": 2}


@pytest.mark.parametrize("kind", [str, Path])
def test_an_index_is_built_from_a_file(tmp_path, kind):
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"_id": d.id, "title": d.title, "text": d.text, **d.metadata} for d in DOCS]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = Index.build(kind(corpus), kind(tmp_path / "x"))
    assert index.docs(["d1", "d2", "d3"]) == DOCS


def test_an_index_is_built_from_a_folder_of_text_files(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("one")
    (tmp_path / "corpus" / "b.txt").write_text("two")
    assert Index.build(tmp_path / "corpus", tmp_path / "x").ids.tolist() == ["a.txt", "b.txt"]


def test_documents_come_back_as_they_were(tmp_path):
    docs = [
        Doc("d1", "text\nwith\ttabs and \x00", "title", {"n": 1, "f": 1.5, "list": [1, "é", None], "map": {"a": True}, "": ""}),
        Doc("d2", "", ""),
        Doc("d3", "𝒜 東京 é", "ẞ", {"null": None, "id": "other", "text": "t"}),
        Doc("d4", "x" * 100_000, "y" * 70_000),
    ]
    Index.build(docs, tmp_path / "x")
    index = Index.open(tmp_path / "x")
    assert index.docs([d.id for d in docs]) == docs
    assert index.docs(["d4", "d1", "d4"]) == [docs[3], docs[0], docs[3]]
    assert index.docs([]) == []
    assert index.doc("d3") == docs[2]


@PROPERTY
@given(
    st.lists(
        st.tuples(st.text(max_size=300), st.text(max_size=40), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
        max_size=8,
    )
)
def test_any_text_title_and_metadata_come_back(tmp_path_factory, contents):
    docs = [Doc(f"d{i}", text, title, metadata) for i, (text, title, metadata) in enumerate(contents)]
    index = Index.build(docs, tmp_path_factory.mktemp("i") / "x", threads=1)
    assert index.docs([d.id for d in docs]) == docs
    index.check(deep=True)


def test_a_document_too_long_to_be_read_in_one_piece_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_PIECE", 40_000)
    Index.build([Doc("d1", "x" * 39_000, "y" * 980, {"a": "z" * 11})], tmp_path / "x")
    assert len(Index.open(tmp_path / "x").doc("d1").text) == 39_000
    monkeypatch.setattr(files, "MAX_PIECE", 40_000)
    with pytest.raises(InputError, match=r"document 'd2': the text is longer than 40,000 bytes, .*; split it"):
        Index.open(tmp_path / "x").add([("d3", "fox"), Doc("d2", "x" * 39_000, "y" * 980, {"a": "z" * 13})])
    assert Index.open(tmp_path / "x").ids.tolist() == ["d1"]


def test_documents_that_are_far_larger_than_their_stored_texts_are_not_read_together(tmp_path, monkeypatch):
    index = Index.build([*((f"d{n}", "fox " * 20_000) for n in range(20)), ("e1", "red fox")], tmp_path / "x")
    some = index.ids.tolist()[:6]
    monkeypatch.setattr(documents, "MAX_EXPANDED", 500_000)
    assert [doc.id for doc in index.docs(some)] == some
    with pytest.raises(
        InputError, match=r"text.bytes.npy: 20 documents have 1,600,000 bytes, more than 100 times .* with a smaller k$"
    ):
        index.docs(index.ids.tolist()[:20])
    monkeypatch.setattr(documents, "MAX_RATIO", 10_000)
    assert len(index.docs(index.ids)) == 21
    assert index.state.text_bytes([0, 20]) == 80_000 + len("red fox")


def test_ids_may_be_any_unicode(tmp_path):
    ids = ["é", "e\u0301", "東京", "𝒜/b c", "a\tb", "a\nb", "\ue000", "𐀀", "Z", "a", "..", "\x00"]
    index = Index.build([(i, f"w{n}") for n, i in enumerate(ids)], tmp_path / "x")
    assert index.ids.tolist() == ids
    assert [index.ordinal(i) for i in ids] == list(range(len(ids)))
    assert [d.text for d in index.docs(ids)] == [f"w{n}" for n in range(len(ids))]
    assert index.ids.order.tolist() == sorted(range(len(ids)), key=lambda n: ids[n].encode())
    assert "東京" in index
    assert "東" not in index
    assert 5 not in index
    index.check(deep=True)


def test_title_and_text_are_indexed_unless_told_otherwise(tmp_path):
    docs = [Doc("d1", "body", "head", {"abstract": "short", "n": 7}), Doc("d2", "body", "", {})]
    assert Index.build(docs, tmp_path / "1").terms.tolist() == ["bodi", "head"]
    assert Index.build(docs, tmp_path / "2", fields=["text"]).terms.tolist() == ["bodi"]
    assert Index.build(docs, tmp_path / "3", fields=("abstract", "title")).terms.tolist() == ["head", "short"]
    assert Index.build(docs, tmp_path / "4", fields=["n"]).terms.tolist() == ["7"]
    assert Index.open(tmp_path / "3").fields == ("abstract", "title")
    assert Index.open(tmp_path / "2").doc("d1") == docs[0]


def test_word_ngrams_reach_into_the_text_and_words_that_are_no_term_are_not_kept(tmp_path):
    index = Index.build([Doc("d1", "c", "a b")], tmp_path / "x", analyzer="standard+words:2-2")
    agrees(index, [Counter({"a b": 1, "b c": 1})])


def test_a_metadata_field_that_is_null_holds_no_words(tmp_path):
    index = Index.build([Doc("d1", "x", "", {"abstract": None})], tmp_path / "x", fields=["text", "abstract"])
    assert index.terms.tolist() == ["x"]


def test_an_empty_id_is_an_error_that_says_which_document_it_is(tmp_path, monkeypatch):
    small_batches(monkeypatch, 100)
    docs = [Doc(f"d{n}", "words " * 10) for n in range(9)]
    with pytest.raises(InputError, match="document 10 has an empty id"):
        Index.build([*docs, Doc("", "nobody")], tmp_path / "x")


def test_an_index_without_documents_works(tmp_path):
    Index.build([], tmp_path / "x")
    index = Index.open(tmp_path / "x")
    agrees(index, [])
    assert len(index) == 0
    assert index.info()["documents"] == 0
    assert index.info()["mean_length"] == 0.0
    assert index.docs([]) == []
    assert "a" not in index


def test_documents_without_any_term_are_kept(tmp_path):
    index = Index.build([("d1", ""), ("d2", "the of"), ("d3", "…")], tmp_path / "x")
    agrees(index, [Counter(), Counter(), Counter()])
    assert index.doc("d2").text == "the of"


def test_a_single_document_works(tmp_path):
    index = Index.build([("d1", "fox fox dog")], tmp_path / "x")
    agrees(index, [Counter(fox=2, dog=1)])


def test_a_name_of_the_text_that_no_document_has_is_said(tmp_path: Path) -> None:
    rows = [{"id": "1", "a": "hot"}, {"id": "2", "a": "springs", "c": "warm"}]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (str(corpus), rows):
        with pytest.warns(InputWarning, match="no document has 'b', which is to be text") as warned:
            Index.build(read_corpus(source, fields={"text": ["a", "b", "C"]}), tmp_path / "x.index", overwrite=True)
        assert len(warned) == 1


def test_a_build_may_keep_the_first_document_of_each_id(tmp_path: Path) -> None:
    docs = [{"id": "a", "text": "rain", "year": 1}, {"id": "b", "text": "snow"}, {"id": "a", "text": "hail", "place": "x"}]
    with pytest.warns(InputWarning, match="left out, as they have the id of an earlier document: 1, such as 'a'"):
        index = Index.build(docs, tmp_path / "x", duplicates="skip")
    assert index.fingerprint == Index.build(docs[:2], tmp_path / "y").fingerprint
    assert index.columns == {"year": "integer"}
