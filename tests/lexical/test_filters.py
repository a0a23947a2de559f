"""Lexical search under a filter: the documents that pass, with the scores of the whole collection, as many as there are."""

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from support.described import FILTERS, TYPES, described, same
from support.each import each
from support.lexical import MODELS, TOPICS, model
from support.small_collections import PROPERTY

from fontes.core import Doc, Run, Topic
from fontes.core.expression import pipeline
from fontes.index import Index
from fontes.index.columns import Filter, filter_of
from fontes.lexical import direct
from fontes.lexical.parts import part_filter
from fontes.storage import compiled

MANY = 2_000_000
WHERES = [
    "open",  # about half
    "year >= 2020 and lang in ('cs', 'en') and not open",
    "'long tag' in tags or year is None",
    "year == 1995 and open",  # some dozens
    "year == 1995 and lang == 'cs' and score > 2.5",  # a few or none
    "year < 0",
    "year > 0 or year is None",  # all
]


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    """9,000 documents in segments with deletions: enough for several windows, and for bounds of blocks."""
    docs = described(9_000)
    index = Index.build(docs[:6_000], tmp_path_factory.mktemp("filters") / "x", analyzer="whitespace", columns=TYPES)
    index.add(docs[6_000:8_000])
    index.delete([f"d{n}" for n in range(0, 8_000, 9)])
    index.add(docs[8_000:])
    return index


@pytest.fixture(scope="module")
def every(index: Index) -> Run:
    return index.bm25(k=MANY)(TOPICS)


@each("parameters", MODELS)
def test_the_best_k_are_those_of_the_whole_run_that_pass(index, parameters):
    every = model(index, parameters, k=MANY)(TOPICS)
    for where in WHERES:
        for k in (1, 10, 100, 5_000):
            assert same(model(index, parameters, k=k, where=where)(TOPICS), every, index, where, k), (where, k)


def test_likelihoods_too(index):
    for parameters in ({}, {"smoothing": "jelinek-mercer"}):
        every = index.ql(k=MANY, **parameters)(TOPICS)
        for where in WHERES:
            assert same(index.ql(k=30, where=where, **parameters)(TOPICS), every, index, where, 30), where


@PROPERTY
@given(FILTERS)
def test_whatever_the_filter(index, every, said):
    assert same(index.bm25(k=20, where=said[0])(TOPICS), every, index, said[0], 20)


def test_one_query_finds_what_a_run_finds(index):
    for where in WHERES:
        run = index.bm25(k=15, where=where)(TOPICS)
        for topic in TOPICS.values():
            assert list(index.bm25(where=where).search(topic, 15)) == list(run[topic.id])


@each("parameters", MODELS)
def test_the_first_search_with_a_filter_finds_what_the_next_ones_find(index, parameters):
    compiled.load()
    run = {where: model(index, parameters, k=15, where=where)(TOPICS) for where in WHERES}
    for number, topic in enumerate(TOPICS.values()):
        opened = Index.open(index.path)
        for where in WHERES[number % 2 :: 2]:
            stage = model(opened, parameters, where=where)
            for _ in range(3):
                assert list(stage.search(topic, 15)) == list(run[where][topic.id]), where


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_threads_and_portions_change_nothing(index, threads, monkeypatch):
    expected = index.bm25(k=50, where=WHERES[0], threads=1)(TOPICS)
    monkeypatch.setattr(direct, "MAX_RESULTS", 100)
    again = Index.open(index.path).bm25(k=50, where=WHERES[0], threads=threads)(TOPICS)
    assert again == expected
    assert again.scores.tobytes() == expected.scores.tobytes()


def test_searches_in_many_threads_share_a_filter(index):
    opened = Index.open(index.path)
    queries = [Topic(str(n), f"w{n} w{n + 1} w{n * 7 % 200}") for n in range(150)]
    bm25 = index.bm25(where=WHERES[1])
    with ThreadPoolExecutor(8) as pool:
        rankings = list(pool.map(lambda topic: list(opened.bm25(where=WHERES[1]).search(topic)), queries))
    assert rankings == [list(bm25.search(topic)) for topic in queries]


def test_a_filter_is_freed_without_a_garbage_collection(index, tmp_path):
    small = Index.build([("a", "x"), ("b", "x y")], tmp_path / "x").state
    gc.disable()
    try:
        for parts, documents in ((small.parts, 2), (index.state.parts, len(index))):
            passing = Filter("", np.arange(documents) % 2 == 0)
            assert sum(len(of_part.docs) for of_part in part_filter(parts, passing).filters) == passing.count
            freed = weakref.ref(passing)
            del passing
            assert freed() is None
    finally:
        gc.enable()


def test_weights_that_came_with_the_documents_are_filtered(tmp_path):
    docs = [Doc(f"d{n}", "", metadata={"vector": {"a": n / 10, "b": 1 - n / 10}, "odd": bool(n % 2)}) for n in range(1, 10)]
    index = Index.build(docs, tmp_path / "x", vectors="vector")
    ranking = index.learned_sparse(where="odd").search(Topic("1", "", weights={"a": 1.0}))
    assert ranking.ids == ["d9", "d7", "d5", "d3", "d1"]
    assert np.allclose(ranking.scores, [0.9, 0.7, 0.5, 0.3, 0.1])


def test_a_stage_filters_the_state_that_it_was_made_over(tmp_path):
    index = Index.build([Doc("a", "w", metadata={"year": 1}), Doc("b", "w", metadata={"year": 2})], tmp_path / "x")
    where = "year >= 2"
    before = index.bm25(where=where)
    assert before.search("w").ids == ["b"]
    index.add([Doc("c", "w", metadata={"year": 3})])
    assert sorted(index.bm25(where=where).search("w").ids) == ["b", "c"]
    index.delete("b")
    assert index.bm25(where=where).search("w").ids == ["c"]
    index.merge()
    assert index.bm25(where=where).search("w").ids == ["c"]
    assert before.search("w").ids == ["b"]


def test_facets_count_all_documents_that_match_and_not_the_k_best_alone(index):
    ids = index.ids.tolist()
    docs = dict(zip(ids, index.docs(ids), strict=True))
    for where, holds in ((None, lambda m: True), ("open", lambda m: m.get("open") is True)):
        run = index.bm25(k=3, where=where)({"q": "w1 w7", "none": "nothing"})
        matching = [d for d in docs.values() if {"w1", "w7"} & set(d.text.split()) and holds(d.metadata)]
        langs = [d.metadata["lang"] for d in matching if "lang" in d.metadata]
        facets = run.facets("lang", "open")
        assert facets["q"]["lang"] == {lang: langs.count(lang) for lang in set(langs)}
        assert list(facets["q"]["lang"].values()) == sorted(facets["q"]["lang"].values(), reverse=True)
        assert facets["none"] == {"lang": {}, "open": {}}
        assert (
            run["q"].facets("lang")
            == index.bm25(where=where).search("w1 w7", 1).facets("lang")
            == {"lang": facets["q"]["lang"]}
        )
        assert run.top(1).facets("lang")["q"] == {"lang": facets["q"]["lang"]}


def test_facets_of_a_run_that_others_made_are_of_its_own_documents(index):
    run = index.bm25(k=5)({"q": "w1"})
    own = [doc.metadata["lang"] for doc in run["q"].docs() if "lang" in doc.metadata]
    for other in (pickle.loads(pickle.dumps(run)), Run.of(run.to_dict()).with_(documents=index), (1.0 * index.bm25(k=5))("w1")):
        (facets,) = other.facets("lang").values()
        assert facets["lang"] == {lang: own.count(lang) for lang in set(own)}


def test_rankings_have_metadata_and_snippets(index):
    ranking = index.bm25(where="open").search("w150", 4)
    assert all(metadata["open"] for metadata in ranking.metadata())
    assert all("<w150>" in text for text in ranking.snippets("<", ">"))


def test_a_filter_is_part_of_the_text_and_of_the_key(index):
    stage = pipeline("bm25(where=\"lang == 'cs'\") % 5 >> rm3() >> bm25(where='year > 2000')", index)
    assert pipeline(repr(stage), index) == stage
    assert index.bm25(where="open").key() != index.bm25().key()
    codes = stage({"q": "w1 w2"}).codes
    assert len(codes)
    assert filter_of(index.state, "year > 2000").mask[codes].all()


def test_an_explanation_says_that_a_document_is_left_out(index, tmp_path: Path):
    hit = index.bm25(where="open").search("w1", 1)[0]
    explained = index.bm25(where="open").explain("w1", hit.id)
    assert np.float32(explained.value) == np.float32(hit.score)
    left_out = index.bm25(where="not open").explain("w1", hit.id)
    assert (left_out.value, left_out.label) == (0.0, "excluded by the filter not open")
