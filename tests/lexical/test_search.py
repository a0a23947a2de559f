"""Searching: which documents come back, in which order, whatever k, the threads and the batches."""

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.each import each
from support.examples import up_to
from support.lexical import MODELS, TOPICS, model, rows
from support.small import small_chunks

from fontes.core import Topic, Topics
from fontes.core.work import work
from fontes.index import Index
from fontes.lexical import direct, impacts
from fontes.storage import threads as storage_threads


@each("parameters", MODELS)
def test_a_run_is_in_the_one_order_without_duplicates(index, parameters):
    run = model(index, parameters)(TOPICS)
    for ranking in run.values():
        hits = [(hit.score, hit.id) for hit in ranking]
        assert hits == sorted(hits, reverse=True)
        assert len({doc for _, doc in hits}) == len(hits)
    scores = run["5"].scores.tolist()
    assert len(set(scores)) < len(scores)  # there are ties


@each("parameters", MODELS)
def test_the_best_k_are_the_first_k_of_all(index, parameters):
    every = rows(model(index, parameters, k=10_000)(TOPICS))
    for k in (1, 2, 99, 2_000):
        found = rows(model(index, parameters, k=k)(TOPICS))
        assert found == {topic: hits[:k] for topic, hits in every.items()}


@each("parameters", MODELS[:8:3] + MODELS[8:9])
def test_threads_change_nothing(index, parameters):
    one = model(index, parameters, threads=1)(TOPICS)
    for threads in (2, 7, 100):
        other = model(Index.open(index.path), parameters, threads=threads)(TOPICS)
        assert other == one
        assert other.scores.tobytes() == one.scores.tobytes()
        assert other.codes.tobytes() == one.codes.tobytes()


def test_as_many_threads_search_as_are_asked_for_but_no_more_than_there_are_topics(index, monkeypatch):
    pools, pool_of = [], storage_threads.pool_of

    def counted(threads):
        pools.append(threads)
        return pool_of(threads)

    monkeypatch.setattr(storage_threads, "pool_of", counted)
    index.bm25(threads=1)(TOPICS)
    assert pools == []
    index.bm25(threads=2)(TOPICS)
    index.bm25(threads=100)(TOPICS)
    with work(threads=3):
        index.bm25()(TOPICS)
    assert pools == [2, len(TOPICS), 3]
    monkeypatch.setattr(direct, "MAX_RESULTS", 40)
    index.bm25(k=20, threads=100)(TOPICS)
    assert pools[3:] == [2, 2, 2]  # two topics of 20 results at a time


@each("parameters", MODELS)
def test_a_topic_alone_gets_what_it_gets_among_others(index, parameters):
    together = model(index, parameters)(TOPICS)
    for topic in TOPICS.values():
        alone = model(Index.open(index.path), parameters).search(topic, 1000)
        assert [tuple(hit) for hit in alone] == [tuple(hit) for hit in together[topic.id]]


@pytest.mark.parametrize("parameters", MODELS[::4], ids=str)
def test_small_portions_of_work_change_nothing(index, monkeypatch, parameters):
    whole = model(index, parameters, k=20)(TOPICS)
    monkeypatch.setattr(direct, "MAX_RESULTS", 40)
    small_chunks(monkeypatch, 5)
    assert model(Index.open(index.path), parameters, k=20)(TOPICS) == whole


def test_what_was_searched_before_changes_nothing(index):
    fresh = rows(Index.open(index.path).bm25()(TOPICS))
    used = Index.open(index.path)
    for parameters in MODELS:
        model(used, parameters, k=3)("w1 w2 w9 w11")
    assert rows(used.bm25()(TOPICS)) == fresh
    assert len(impacts._MODELS.of(used)) <= impacts.MAX_MODELS


def test_threads_that_share_an_index_get_the_runs_of_their_own_models(index):
    expected = [rows(model(index, parameters)(TOPICS)) for parameters in MODELS]
    shared = Index.open(index.path)
    found: list[list[object]] = [[] for _ in MODELS]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            found[number] = [rows(model(shared, MODELS[number], threads=1)(TOPICS)) for _ in range(4)]
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(MODELS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failures == []
    assert all(run == wanted for runs, wanted in zip(found, expected, strict=True) for run in runs)


def test_a_topic_of_unknown_words_or_of_none_has_an_empty_ranking(index):
    for retriever in (index.bm25(), index.tfidf()):
        run = retriever({"a": "", "b": "unknown words", "c": "w1", "d": "…"})
        assert list(run) == ["a", "b", "c", "d"]
        assert [len(run[topic]) > 0 for topic in "abcd"] == [False, False, True, False]


def test_no_topics_give_an_empty_run(index):
    run = index.bm25()([])
    assert (len(run), run.rows) == (0, 0)
    assert index.tfidf()(Topics()).rows == 0


def test_a_k_beyond_the_collection_gives_every_match_and_no_more(index):
    run = index.bm25(k=10**9)("w1")
    assert len(run["1"]) == int(index.df[index.terms.find("w1")])
    assert index.bm25().search("w1", 1)[0] == run["1"][0]


def test_collections_without_documents_without_terms_and_of_one_document_are_searched_by_every_model(tmp_path):
    """Documents without terms are never returned, and do no harm."""
    collections = {
        "empty": [],
        "some": [("1", ""), ("2", "fox"), ("3", "the"), ("4", "fox dog")],
        "none": [("1", ""), ("2", "the")],
        "one": [("1", "fox dog dog")],
    }
    empty, some, none, one = (Index.build(docs, tmp_path / name) for name, docs in collections.items())
    for parameters in MODELS:
        run = model(empty, parameters)({"1": "fox", "2": ""})
        assert (len(run), run.rows) == (2, 0)
        assert set(model(some, parameters).search("fox").ids) == {"2", "4"}
        assert len(model(none, parameters).search("fox the")) == 0
        assert model(one, parameters).search("dog").ids == ["1"]
        assert np.isfinite(model(one, parameters).search("dog fox")[0].score)


def test_a_document_that_matches_nothing_is_not_returned_to_fill_up_the_k(index):
    ranking = index.bm25(k=5_000).search("w150", 5_000)
    holders, _ = index.postings(np.array([index.terms.find("w150")]))
    assert sorted(ranking.ids) == sorted(index.ids.take(holders))


@settings(deadline=None, max_examples=up_to(60, 10), database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["a", "a b", "b a", "b", "c c", "a c", ""]), min_size=1, max_size=30),
    st.lists(st.text(min_size=1, max_size=3), min_size=30, max_size=30, unique=True),
    st.integers(1, 12),
)
def test_tied_documents_come_in_descending_order_of_their_ids_whatever_k(tmp_path_factory, texts, ids, k):
    docs = [(doc, text) for doc, text in zip(ids, texts, strict=False) if not doc.isspace()]
    index = Index.build(docs, tmp_path_factory.mktemp("i") / "x", analyzer="whitespace", threads=1)
    every = [(hit.score, hit.id.encode()) for hit in index.bm25(threads=1).search("a c", 1000)]
    assert every == sorted(every, reverse=True)
    assert [(hit.score, hit.id.encode()) for hit in index.bm25(threads=1).search("a c", k)] == every[:k]


def test_many_topics_at_once_equal_each_alone(index):
    draw = random.Random(9)
    topics = Topics(Topic(str(n), " ".join(f"w{draw.randrange(200)}" for _ in range(4))) for n in range(300))
    run = index.bm25(k=13, threads=3)(topics)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda topic: index.bm25(k=13, threads=1)(topic)[topic.id], topics.values()))
    for topic, ranking in zip(topics, alone, strict=True):
        assert [tuple(hit) for hit in run[topic]] == [tuple(hit) for hit in ranking]
