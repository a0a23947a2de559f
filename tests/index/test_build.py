"""Building an index: what goes in, what is kept, and what is refused."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fontes.core import Doc, FontesError, InputError, ParameterError
from fontes.index import Index, build, segment
from fontes.text import Analyzer

PROPERTY = settings(
    deadline=None,
    max_examples=60,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
DOCS = [
    Doc("d1", "The fox jumps over the lazy dog.", "Foxes", {"year": 2020, "by": "Reynard"}),
    Doc("d2", "A dog sleeps."),
    Doc("d3", "Foxes and dogs, dogs and foxes.", "Both"),
]
WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "東", "𝒜", "z"]), max_size=12).map(" ".join)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


def postings(index: Index) -> dict[str, dict[int, int]]:
    """The inverted index as dicts: term to document position to term frequency."""
    found = {}
    for number, term in enumerate(index.terms):
        docs, tfs = index.postings(np.array([number]))
        assert docs.tolist() == sorted(set(docs.tolist()))
        found[term] = dict(zip(docs.tolist(), tfs.tolist(), strict=True))
    return found


def inverted(bags: list[Counter[str]]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for position, bag in enumerate(bags):
        for term, tf in bag.items():
            found.setdefault(term, {})[position] = tf
    return found


def files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def agrees(index: Index, bags: list[Counter[str]]) -> None:
    """The index has the statistics of these bags of words, and is sound."""
    expected = inverted(bags)
    assert postings(index) == expected
    assert index.terms.tolist() == sorted(expected, key=str.encode)
    assert index.df.tolist() == [len(expected[t]) for t in index.terms]
    assert index.cf.tolist() == [sum(expected[t].values()) for t in index.terms]
    assert index.lengths.tolist() == [bag.total() for bag in bags]
    assert index.tokens == sum(bag.total() for bag in bags)
    index.check()


@pytest.mark.parametrize(
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
    ids=["pairs", "a generator", "triples", "dicts", "documents", "a mapping", "a mixture"],
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


def test_a_missing_corpus_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        Index.build(tmp_path / "nowhere.jsonl", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


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
    index.check()


def test_metadata_that_json_cannot_hold_is_an_error_that_names_the_document(tmp_path):
    with pytest.raises(InputError, match="document 'd2': its metadata is not JSON"):
        Index.build([Doc("d1", "x"), Doc("d2", "x", "", {"set": {1}})], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_ids_may_be_any_unicode(tmp_path):
    ids = ["é", "e\u0301", "東京", "𝒜/b c", "a\tb", "a\nb", "\ue000", "𐀀", "Z", "a", "..", "\x00"]
    index = Index.build([(i, f"w{n}") for n, i in enumerate(ids)], tmp_path / "x")
    assert index.ids.tolist() == ids
    assert [index.position(i) for i in ids] == list(range(len(ids)))
    assert [d.text for d in index.docs(ids)] == [f"w{n}" for n in range(len(ids))]
    assert index.ids.order.tolist() == sorted(range(len(ids)), key=lambda n: ids[n].encode())
    assert "東京" in index
    assert "東" not in index
    assert 5 not in index
    index.check()


def test_a_document_that_is_not_there_is_an_error_that_names_it(tmp_path):
    index = Index.build(DOCS, tmp_path / "x")
    for ask in (index.position, index.doc, lambda i: index.docs(["d1", i])):
        with pytest.raises(InputError, match=r"document 'd9' is not in the index .*x"):
            ask("d9")


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


@pytest.mark.parametrize("fields", ["text", [], ()])
def test_fields_must_be_a_list_of_names(tmp_path, fields):
    with pytest.raises(ParameterError, match="fields must be a list of field names"):
        Index.build(DOCS, tmp_path / "x", fields=fields)


@pytest.mark.parametrize("memory", ["lots", "0", 0, -5, "2X", "", "-1G"])
def test_memory_must_be_a_size(tmp_path, memory):
    with pytest.raises(ParameterError, match="memory must be a size such as 500M or 2G"):
        Index.build(DOCS, tmp_path / "x", memory=memory)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "size"),
    [(1, 1), ("10", 10), ("2K", 2048), ("500M", 500 << 20), ("2G", 2 << 30), ("1.5g", 3 << 29), ("1 GiB", 1 << 30)],
)
def test_a_memory_size_reads_as_bytes(given, size):
    assert build.memory_size(given) == size


def test_an_id_that_occurs_twice_is_an_error_that_names_it_and_both_places(tmp_path):
    with pytest.raises(InputError, match="'b' occurs twice, as documents 2 and 4"):
        Index.build([("a", "x"), ("b", "x"), ("c", "x"), ("b", "y")], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_equal_once_written_occur_twice(tmp_path):
    with pytest.raises(InputError, match="occurs twice, as documents 1 and 2"):
        Index.build([("\ud800", "x"), ("\udbff", "y")], tmp_path / "x")


def test_an_empty_id_is_an_error_that_says_which_document_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 100)
    docs = [Doc(f"d{n}", "words " * 10) for n in range(9)]
    with pytest.raises(InputError, match="document 10 has an empty id"):
        Index.build([*docs, Doc("", "nobody")], tmp_path / "x")


@pytest.mark.parametrize("doc", [Doc(5, "x"), Doc("d", None), Doc("d", "x", None), Doc(None, "x"), Doc("d", b"x")])
def test_a_document_whose_parts_are_no_strings_is_an_error_of_fontes(tmp_path, doc):
    with pytest.raises(InputError):
        Index.build([doc], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


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


@PROPERTY
@given(st.lists(WORDS, max_size=12), st.sampled_from(["standard", "whitespace", "standard+words:1-2", "cjk+chars:1-2"]))
def test_postings_are_those_of_a_plain_inversion(tmp_path_factory, texts, name):
    analyzer = Analyzer.of(name)
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    index = Index.build(docs, tmp_path_factory.mktemp("i") / "x", analyzer=analyzer, threads=1)
    agrees(index, [Counter(analyzer(text)) for text in texts])


@PROPERTY
@given(st.lists(WORDS, min_size=1, max_size=25), st.integers(1, 200), st.sampled_from([1, 24 * 3, 24 * 20]), st.integers(1, 9))
def test_runs_that_were_spilled_and_merged_give_the_same_files(tmp_path_factory, texts, batch, memory, chunk):
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    folder = tmp_path_factory.mktemp("i")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "BATCH", batch)
        Index.build(docs, folder / "whole", analyzer="whitespace", threads=1)
        patch.setattr(build, "CHUNK", chunk)
        patch.setattr(segment, "CHUNK", chunk)
        index = Index.build(docs, folder / "spilled", analyzer="whitespace", threads=1, memory=memory)
        agrees(index, [Counter(text.split()) for text in texts])
    assert files(folder / "spilled") == files(folder / "whole")


def test_a_tiny_memory_spills_many_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 1_000)
    runs = []
    spilled = build.Run.spilled
    monkeypatch.setattr(build.Run, "spilled", lambda run, folder, n: (runs.append(n), spilled(run, folder, n))[1])
    docs = [(f"d{n}", f"common w{n} w{n % 7} " * (n % 5)) for n in range(400)]
    index = Index.build(docs, tmp_path / "x", memory=500, analyzer="whitespace")
    assert len(runs) > 10
    agrees(index, [Counter(text.split()) for _, text in docs])


@pytest.mark.parametrize("tf", [1, 2, 127, 128, 129, 16_383, 16_384, 100_000, 2_097_152])
def test_a_term_frequency_of_any_size_is_kept(tmp_path, tf):
    index = Index.build([("d1", "a " * tf), ("d2", "a b")], tmp_path / "x", analyzer="whitespace", threads=1)
    agrees(index, [Counter(a=tf), Counter(a=1, b=1)])


@pytest.mark.parametrize("gap", [1, 63, 64, 65, 8_191, 8_192, 8_193, 20_000])
@pytest.mark.parametrize("tf", [1, 128])
def test_a_gap_of_any_size_between_documents_is_kept(tmp_path, gap, tf):
    texts = ["" for _ in range(gap + 1)]
    texts[0] = texts[gap] = "a " * tf
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace", threads=1)
    assert postings(index) == {"a": {0: tf, gap: tf}}
    only_last = Index.build(docs[1:], tmp_path / "y", analyzer="whitespace", threads=1)
    assert postings(only_last) == {"a": {gap - 1: tf}}
    only_last.check()


def test_postings_of_several_terms_come_end_to_end(tmp_path):
    index = Index.build([("d1", "a b b"), ("d2", "b c")], tmp_path / "x", analyzer="whitespace")
    docs, tfs = index.postings(np.array([2, 1, 2], dtype=np.int32))
    assert (docs.tolist(), tfs.tolist()) == ([1, 0, 1, 1], [1, 2, 1, 1])
    docs, tfs = index.postings(np.array([], dtype=np.int32))
    assert (docs.tolist(), tfs.tolist()) == ([], [])


def test_overwriting_must_be_asked_for(tmp_path):
    Index.build(DOCS, tmp_path / "x")
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"x is an index already; overwrite=True \(--overwrite\) replaces it"):
        Index.build([("d1", "other")], tmp_path / "x")
    assert files(tmp_path) == before
    assert Index.build([("d1", "other")], tmp_path / "x", overwrite=True).terms.tolist() == ["other"]
    index = Index.open(tmp_path / "x")
    index.check()
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
    Index.build(DOCS, tmp_path / "x", overwrite=True).check()


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


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("error", [BrokenError(), KeyboardInterrupt(), InputError("line 7 is broken")])
def test_a_build_that_fails_midway_leaves_nothing_and_raises_what_happened(tmp_path, monkeypatch, threads, error):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 3_000)
    with pytest.raises(type(error)):
        Index.build(failing_after(200, error), tmp_path / "x", threads=threads, memory="4K")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_build_leaves_the_old_index_as_it_was(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 3_000)
    Index.build(DOCS, tmp_path / "x")
    before = files(tmp_path)
    with pytest.raises(BrokenError):
        Index.build(failing_after(200, BrokenError()), tmp_path / "x", threads=threads, memory="4K", overwrite=True)
    with pytest.raises(InputError, match="occurs twice"):
        Index.build([("a", "x"), ("a", "y")], tmp_path / "x", threads=threads, overwrite=True)
    assert files(tmp_path) == before
    Index.open(tmp_path / "x").check()


def test_an_error_of_the_tokenizer_comes_out_of_the_build_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 1_000)

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
    Index.build(DOCS, tmp_path / "x").check()


def test_folders_on_the_way_are_made(tmp_path):
    Index.build(DOCS, tmp_path / "a" / "b" / "x").check()


def test_a_file_where_a_folder_should_be_is_an_error_of_fontes(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FontesError, match="cannot be written"):
        Index.build(DOCS, tmp_path / "file" / "x")


@pytest.mark.parametrize("name", ["with space", "é", "x[1]", "*", "a?b", "-x", "x" * 200])
def test_an_index_may_have_any_name(tmp_path, name):
    stale = tmp_path / f".{name}.building-stale"
    stale.mkdir()
    other = tmp_path / ".xyz.building-of-another-index"
    other.mkdir()
    Index.build(DOCS, tmp_path / name)
    Index.open(tmp_path / name).check()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, other.name])


def test_a_relative_path_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Index.build(DOCS, "x")
    assert Index.open("x").bm25().search("fox").ids == ["d3", "d1"]


def test_progress_is_told_after_each_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 1_000)
    told: list[build.Progress] = []
    docs = [(f"d{n}", "words " * 20) for n in range(50)]
    Index.build(iter(docs), tmp_path / "x", progress=told.append)
    assert len(told) > 3
    assert told[-1].documents == 50
    assert [p.documents for p in told] == sorted({p.documents for p in told})
    assert all(p.seconds >= 0 and p.fraction is None and p.seconds_left is None for p in told)


def test_progress_in_a_file_has_a_fraction(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOME", 1)
    monkeypatch.setattr(build, "BATCH", 1_000)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"_id": f"d{n}", "text": "words " * 20}) + "\n" for n in range(5_000)))
    told: list[build.Progress] = []
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


def test_a_callable_analyzer_builds_and_opens_again_by_name_or_when_given(tmp_path):
    named = Index.build(DOCS, tmp_path / "named", analyzer=str.split)
    assert Index.open(tmp_path / "named").bm25().search("lazy").ids == named.bm25().search("lazy").ids == ["d1"]

    def tokenize(text: str) -> list[str]:
        return text.split()

    Index.build(DOCS, tmp_path / "local", analyzer=tokenize)
    with pytest.raises(ParameterError, match=r"cannot be imported here; give it: Index.open\(path, analyzer=…\)"):
        Index.open(tmp_path / "local")
    assert Index.open(tmp_path / "local", analyzer=tokenize).bm25().search("lazy").ids == ["d1"]
