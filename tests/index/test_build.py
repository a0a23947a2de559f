"""Building an index: where it goes, what it replaces, what it leaves behind, and what it says of itself."""

from __future__ import annotations

import json
import math
import warnings

import pytest
from support.each import each
from support.small import small_batches
from support.small_collections import DOCS, files

from fontes.core import Doc, FontesError, InputError
from fontes.core.errors import InputWarning
from fontes.core.work import Progress
from fontes.formats import read_corpus
from fontes.index import Index
from fontes.text import Analyzer


def test_overwriting_must_be_asked_for(tmp_path):
    Index.build(DOCS, tmp_path / "x")
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"x is an index already; overwrite=True \(--overwrite\) replaces it"):
        Index.build([("d1", "other")], tmp_path / "x")
    assert files(tmp_path) == before
    assert Index.build([("d1", "other")], tmp_path / "x", overwrite=True).terms.tolist() == ["other"]
    index = Index.open(tmp_path / "x")
    index.check(deep=True)
    assert index.ids.tolist() == ["d1"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x"]
    assert len(list((tmp_path / "x").iterdir())) == 2


def test_overwriting_where_there_is_nothing_is_a_plain_build(tmp_path):
    assert len(Index.build(DOCS, tmp_path / "x", overwrite=True)) == 3


def test_overwriting_with_the_same_documents_repairs_a_damaged_index(tmp_path):
    Index.build(DOCS, tmp_path / "x")
    damaged = next((tmp_path / "x").glob("*/postings.npy"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    Index.build(DOCS, tmp_path / "x", overwrite=True).check(deep=True)


def test_an_open_index_stays_what_it_was_when_it_is_replaced(tmp_path):
    old = Index.build(DOCS, tmp_path / "x")
    new = Index.build([("e1", "a fox")], tmp_path / "x", overwrite=True)
    assert old.docs(["d1", "d2", "d3"]) == DOCS
    assert set(old.bm25().search("fox").ids) == {"d1", "d3"}
    assert new.bm25().search("fox").ids == ["e1"]


class BrokenError(Exception):
    pass


def failing_after(count: int, error: BaseException):
    for n in range(count):
        yield Doc(f"d{n}", "some words " * 50)
    raise error


@each("threads", [1, 3])
@each("error", [BrokenError(), KeyboardInterrupt(), InputError("line 7 is broken")])
def test_a_build_that_fails_midway_leaves_nothing_and_raises_what_happened(tmp_path, monkeypatch, threads, error):
    small_batches(monkeypatch, 3_000)
    with pytest.raises(type(error)):
        Index.build(failing_after(200, error), tmp_path / "x", threads=threads, memory="4K")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_build_leaves_the_old_index_as_it_was(tmp_path, monkeypatch, threads):
    small_batches(monkeypatch, 3_000)
    Index.build(DOCS, tmp_path / "x")
    before = files(tmp_path)
    with pytest.raises(BrokenError):
        Index.build(failing_after(200, BrokenError()), tmp_path / "x", threads=threads, memory="4K", overwrite=True)
    with pytest.raises(InputError, match="occurs twice"):
        Index.build([("a", "x"), ("a", "y")], tmp_path / "x", threads=threads, overwrite=True)
    assert files(tmp_path) == before
    Index.open(tmp_path / "x").check(deep=True)


def test_an_error_of_the_tokenizer_comes_out_of_the_build_and_leaves_nothing(tmp_path, monkeypatch):
    small_batches(monkeypatch, 1_000)

    def tokenize(text: str) -> list[str]:
        if "77" in text:
            raise BrokenError
        return text.split()

    docs = [(f"d{n}", f"word {n} " * 20) for n in range(300)]
    for threads in (1, 4):
        with pytest.raises(BrokenError):
            Index.build(docs, tmp_path / "x", analyzer=tokenize, threads=threads)
        assert list(tmp_path.iterdir()) == []


def test_an_operating_system_error_of_the_documents_is_not_blamed_on_the_index(tmp_path):
    with pytest.raises(ConnectionResetError):
        Index.build(failing_after(3, ConnectionResetError(104, "Connection reset by peer")), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, "a folder"])
def test_what_is_in_the_way_and_no_index_is_left_alone(tmp_path, content):
    if content is None:
        (tmp_path / "x").write_text("mine")
    else:
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "mine.txt").write_text("mine")
    before = files(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(InputError, match="x exists and is not an index; choose another place"):
            Index.build(DOCS, tmp_path / "x", overwrite=overwrite)
    assert files(tmp_path) == before


def test_an_empty_folder_is_a_place_for_an_index(tmp_path):
    (tmp_path / "x").mkdir()
    Index.build(DOCS, tmp_path / "x").check(deep=True)


def test_folders_on_the_way_are_made(tmp_path):
    Index.build(DOCS, tmp_path / "a" / "b" / "x").check(deep=True)


def test_a_file_where_a_folder_should_be_is_an_error_of_fontes(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FontesError, match="cannot be written"):
        Index.build(DOCS, tmp_path / "file" / "x")


@each("name", ["with space", "é", "x[1]", "*", "a?b", "-x", "x" * 200])
def test_an_index_may_have_any_name(tmp_path, name):
    stale = tmp_path / f".{name}.building-stale"
    stale.mkdir()
    other = tmp_path / ".xyz.building-of-another-index"
    other.mkdir()
    Index.build(DOCS, tmp_path / name)
    Index.open(tmp_path / name).check(deep=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, other.name])


def test_a_relative_path_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Index.build(DOCS, "x")
    assert Index.open("x").bm25().search("fox").ids == ["d3", "d1"]


def test_progress_is_told_after_each_batch(tmp_path, monkeypatch):
    small_batches(monkeypatch, 1_000)
    told: list[Progress] = []
    docs = [(f"d{n}", "words " * 20) for n in range(50)]
    Index.build(iter(docs), tmp_path / "x", progress=told.append)
    assert len(told) > 3
    assert told[-1].done == 50
    assert [p.done for p in told] == sorted({p.done for p in told})
    assert all(p.seconds >= 0 and p.fraction is None and p.seconds_left is None for p in told)


def test_progress_in_a_file_has_a_fraction(tmp_path, monkeypatch):
    small_batches(monkeypatch, 1_000)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"_id": f"d{n}", "text": "words " * 20}) + "\n" for n in range(5_000)))
    told: list[Progress] = []
    Index.build(corpus, tmp_path / "x", progress=told.append)
    fractions = [p.fraction for p in told]
    assert all(f is not None and 0 < f <= 1 for f in fractions)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert told[-1].seconds_left == 0.0
    assert math.isfinite(told[0].seconds_left)


def test_info_says_what_the_index_is(tmp_path):
    index = Index.build(DOCS, tmp_path / "x")
    info = index.info()
    assert (info["documents"], info["terms"], info["tokens"]) == (3, len(index.terms), int(index.lengths.sum()))
    assert info["postings"] == int(index.df.sum())
    assert info["mean_length"] == pytest.approx(index.lengths.mean())
    segment_files = [f for f in (tmp_path / "x").glob("*/*") if f.is_file()]
    assert info["bytes"] == sum(f.stat().st_size for f in segment_files)
    assert 0 < info["bytes_of_text"] < info["bytes"]
    assert info["analyzer"] == Analyzer.of("english").to_dict()
    json.dumps(info)


def test_an_index_made_with_a_function_is_searched_where_the_function_is_passed(tmp_path):
    def tokenize(text: str) -> list[str]:
        return text.split()

    for number, function in enumerate((str.split, tokenize, lambda text: text.split())):
        built = Index.build(DOCS, tmp_path / str(number), analyzer=function)
        opened = Index.open(tmp_path / str(number), analyzer=function)
        assert opened.bm25().search("lazy").ids == built.bm25().search("lazy").ids == ["d1"]


def test_a_refused_build_over_an_index_leaves_the_old_one(tmp_path):
    docs = [Doc("d1", "a geyser", "Springs", {"year": 2020}), Doc("d2", "a spring", "", {"place": "Iceland"})]
    old = files(Index.build(docs, tmp_path / "x").path)
    with pytest.raises(InputError, match="no document has a field 'abstract'"):
        Index.build(docs, tmp_path / "x", fields=["title", "abstract"], overwrite=True)
    assert files(tmp_path / "x") == old


def test_a_field_that_few_documents_have_and_a_column_that_none_has_are_remarks(tmp_path):
    docs = [Doc(f"d{number}", "a geyser", "", {"place": "Iceland"} if number < 2 else {}) for number in range(201)]
    with pytest.warns(InputWarning, match="2 of 201 documents have a text in the field 'place'"):
        Index.build(docs, tmp_path / "x", fields=["text", "place"])
    with pytest.warns(
        InputWarning, match="no document has 'plase', which is to be a column .*; the documents have text, place"
    ):
        Index.build(docs, tmp_path / "y", columns={"plase": "keyword"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Index.build(docs[:200], tmp_path / "z", fields=["text", "place"], columns={"place": "keyword"})


def test_added_documents_without_a_text_in_the_searched_fields_are_an_error(tmp_path):
    index = Index.build([Doc("d1", "", "", {"abstract": "a geyser"})], tmp_path / "x", fields=["abstract"])
    with pytest.raises(InputError, match="the index searches abstract, and no added document has a text there; they have text"):
        index.add([("d2", "a spring")])
    assert index.ids.tolist() == ["d1"]
    with pytest.warns(InputWarning, match="no document has a title in 'headline'; the documents have abstract"):
        index.add(read_corpus([{"id": "d4", "text": "", "abstract": "hot"}], fields={"title": "headline"}))
    index.delete("d4")
    assert index.add([("d2", "a spring"), Doc("d3", "", "", {"abstract": "hot"})]).added == 2
