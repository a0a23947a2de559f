"""Searching: which documents come back, in which order, whatever k, the threads and the batches; and why."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fontes.core import Cut, FontesError, InputError, ParameterError, Pipeline, Run, Topic, Topics
from fontes.index import Index
from fontes.lexical import BM25, TFIDF, impacts, searching

VARIANTS = ["lucene", "robertson", "okapi", "atire", "plus", "l"]
MODELS = [
    *({"variant": variant} for variant in VARIANTS),
    {"variant": "lucene", "lengths": "lucene", "k3": 2.0},
    {"variant": "plus", "k1": 2.0, "b": 1.0, "k3": 0.5, "delta": 0.3},
    {"norm": "l2"},
    {"norm": None, "relative_tf": True},
    {"norm": None},
    {"norm": "l2", "sublinear_tf": True, "smooth_idf": True},
]
TOPICS = Topics(
    [
        Topic("1", "w1 w2 w3"),
        Topic("2", "w0 w0 w5 nothing"),
        Topic("3", ""),
        Topic("4", "only unknown words"),
        Topic("5", " ".join(f"w{n}" for n in range(40))),
        Topic("6", "", weights={"w1": 2.0, "w7": -1.5, "w2": 0.25}),
    ]
)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    """2,900 documents, some of them three times, so that scores are tied, and enough to be pruned."""
    draw = random.Random(3)
    texts = [" ".join(f"w{int(draw.paretovariate(0.6)) % 200}" for _ in range(draw.randrange(40))) for _ in range(2_500)]
    texts += texts[:200] * 2
    ids = [f"{draw.choice('aZé東')}{n}" for n in range(len(texts))]
    draw.shuffle(ids)
    docs = list(zip(ids, texts, strict=True))
    return Index.build(docs, tmp_path_factory.mktemp("index") / "x", analyzer="whitespace")


def model(index: Index, parameters: dict[str, object], **more: object) -> BM25 | TFIDF:
    make = index.bm25 if "variant" in parameters else index.tfidf
    return make(**parameters, **more)


def rows(run: Run) -> dict[str, list[tuple[str, float]]]:
    return {topic: [(hit.id, hit.score) for hit in ranking] for topic, ranking in run.items()}


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_a_run_is_in_the_one_order_without_duplicates(index, parameters):
    run = model(index, parameters)(TOPICS)
    for ranking in run.values():
        hits = [(hit.score, hit.id) for hit in ranking]
        assert hits == sorted(hits, reverse=True)
        assert len({doc for _, doc in hits}) == len(hits)
    scores = run["5"].scores.tolist()
    assert len(set(scores)) < len(scores)  # there are ties


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_the_best_k_are_the_first_k_of_all(index, parameters):
    every = rows(model(index, parameters, k=10_000)(TOPICS))
    for k in (1, 2, 10, 99, 499, 2_000):
        found = rows(model(index, parameters, k=k)(TOPICS))
        assert found == {topic: hits[:k] for topic, hits in every.items()}


@pytest.mark.parametrize("parameters", MODELS[:8:3] + MODELS[8:9], ids=str)
def test_threads_change_nothing(index, parameters):
    one = model(index, parameters, threads=1)(TOPICS)
    for threads in (2, 7, 100):
        other = model(Index.open(index.path), parameters, threads=threads)(TOPICS)
        assert other == one
        assert other.scores.tobytes() == one.scores.tobytes()
        assert other.codes.tobytes() == one.codes.tobytes()


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_a_topic_alone_gets_what_it_gets_among_others(index, parameters):
    together = model(index, parameters)(TOPICS)
    for topic in TOPICS.values():
        alone = model(Index.open(index.path), parameters).search(topic, 1000)
        assert [tuple(hit) for hit in alone] == [tuple(hit) for hit in together[topic.id]]


@pytest.mark.parametrize("parameters", MODELS[::4], ids=str)
def test_small_portions_of_work_change_nothing(index, monkeypatch, parameters):
    whole = model(index, parameters, k=20)(TOPICS)
    monkeypatch.setattr(searching, "RESULTS", 40)
    monkeypatch.setattr(impacts, "CHUNK", 5)
    assert model(Index.open(index.path), parameters, k=20)(TOPICS) == whole


def test_what_was_searched_before_changes_nothing(index):
    fresh = rows(Index.open(index.path).bm25()(TOPICS))
    used = Index.open(index.path)
    for parameters in MODELS:
        model(used, parameters, k=3)("w1 w2 w9 w11")
    assert rows(used.bm25()(TOPICS)) == fresh
    assert len(impacts._MODELS.of(used)) <= impacts.KEPT


def test_threads_that_share_an_index_get_the_runs_of_their_own_models(index):
    expected = [rows(model(index, parameters)(TOPICS)) for parameters in MODELS]
    shared = Index.open(index.path)
    found: list[list[object]] = [[] for _ in MODELS]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            found[number] = [rows(model(shared, MODELS[number], threads=1)(TOPICS)) for _ in range(12)]
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


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_is_an_error(index, k):
    with pytest.raises(ParameterError, match=f"k must be .*, not {k}"):
        index.bm25(k=k)("w1")
    with pytest.raises(ParameterError, match="whole number from 1 up"):
        index.bm25() % k


def test_a_k_that_is_no_whole_number_is_an_error(index):
    with pytest.raises(ParameterError):
        index.bm25(k=2.5)("w1")


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_an_empty_collection_gives_empty_rankings(tmp_path, parameters):
    empty = Index.build([], tmp_path / "x")
    run = model(empty, parameters)({"1": "fox", "2": ""})
    assert (len(run), run.rows) == (2, 0)


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_documents_without_terms_are_never_returned_and_do_no_harm(tmp_path, parameters):
    some = Index.build([("1", ""), ("2", "fox"), ("3", "the"), ("4", "fox dog")], tmp_path / "some")
    assert set(model(some, parameters).search("fox").ids) == {"2", "4"}
    none = Index.build([("1", ""), ("2", "the")], tmp_path / "none")
    assert len(model(none, parameters).search("fox the")) == 0


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_a_collection_of_one_document_can_be_searched(tmp_path, parameters):
    one = Index.build([("1", "fox dog dog")], tmp_path / "x")
    assert model(one, parameters).search("dog").ids == ["1"]
    assert np.isfinite(model(one, parameters).search("dog fox")[0].score)


def test_a_document_that_matches_nothing_is_not_returned_to_fill_up_the_k(index):
    ranking = index.bm25(k=5_000).search("w150", 5_000)
    holders, _ = index.postings(np.array([index.terms.find("w150")]))
    assert sorted(ranking.ids) == sorted(index.ids.take(holders))


def test_a_negative_weight_lowers_and_a_weight_of_zero_does_nothing(index):
    plain = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0}), 5_000)}
    with_zero = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0, "w2": 0}), 5_000)}
    lowered = {hit.id: hit.score for hit in index.bm25(k=5_000).search(Topic("t", "", weights={"w1": 1.0, "w2": -1.0}), 5_000)}
    assert with_zero == plain
    both = [doc for doc in plain if lowered[doc] != plain[doc]]
    assert both
    assert all(lowered[doc] < plain[doc] for doc in both)
    only = index.bm25(k=5_000).search(Topic("t", "", weights={"w2": -1.0}), 5_000)
    assert len(only) > 0
    assert all(hit.score < 0 for hit in only)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -float("inf"), np.float32("nan"), "a", None])
def test_a_weight_that_is_no_finite_number_is_an_error_that_names_topic_and_term(index, weight):
    topics = [Topic("t1", "w1"), Topic("t2", "", weights={"w1": 1.0, "w2": weight})]
    for retriever in (index.bm25(), index.tfidf()):
        with pytest.raises(InputError, match="topic 't2', term 'w2'"):
            retriever(topics)


@pytest.mark.parametrize("weight", [0.5, 8.0, 9])
def test_k3_saturates_a_negative_weight_as_it_does_a_positive_one(index, weight):
    scores = []
    for sign in (1, -1):
        ranking = index.bm25(k3=8, k=5_000).search(Topic("t", "", weights={"w1": sign * weight}), 5_000)
        scores.append({hit.id: sign * hit.score for hit in ranking})
    assert scores[0] == scores[1]
    assert all(0 < score < np.inf for score in scores[0].values())


def test_scores_too_large_for_a_run_are_an_error_and_no_infinite_score(index):
    with pytest.raises(FontesError):
        index.bm25()(Topic("t", "", weights={"w1": 1e308, "w2": -1e308}))


@pytest.mark.parametrize("weight", [1e-8, 1e-30, 1e-44, 1e-100, 1e-303, -1e-100])
def test_a_document_that_matches_with_a_tiny_weight_is_returned(index, weight):
    usual = index.bm25(k=5_000).search("w1", 5_000)
    found = index.bm25(k=5_000).search(Topic("t", "", weights={"w1": weight}), 5_000)
    assert sorted(found.ids) == sorted(usual.ids)


def test_weights_are_those_of_terms_as_the_analyzer_writes_them(tmp_path):
    foxes = Index.build([("1", "foxes"), ("2", "dog")], tmp_path / "x")
    assert foxes.bm25().search(Topic("t", "dog", weights={"fox": 1.0})).ids == ["1"]
    assert foxes.bm25().search(Topic("t", "dog", weights={"foxes": 1.0})).ids == []
    assert foxes.bm25().search(Topic("t", "dog", weights={})).ids == []


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_an_explanation_adds_up_to_the_score_of_every_hit(index, parameters):
    retriever = model(index, parameters)
    for topic in TOPICS.values():
        for hit in retriever.search(topic, 1000)[::71]:
            explanation = retriever.explain(topic, hit.id)
            assert explanation.value == pytest.approx(hit.score, rel=1e-6, abs=1e-9)
            assert sum(part.value for part in explanation.parts) == pytest.approx(hit.score, rel=1e-6, abs=1e-6)
            for term in explanation.parts:
                posting, query = term.parts
                assert term.value == pytest.approx(posting.value * query.value, rel=1e-7)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_explanation_names_what_went_in(index, variant):
    hit = index.bm25(variant=variant).search("w1")[0]
    explanation = index.bm25(variant=variant).explain("w1 w1 nothing", hit.id)
    text, doc = str(explanation), index.ordinal(hit.id)
    for part in ("'w1'", f"N={len(index)}", f"dl={index.lengths[doc]}", f"df={index.df[index.terms.find('w1')]}", "qtf=2"):
        assert part in text
    idf, tf_part = explanation.parts[0].parts[0].parts
    assert explanation.parts[0].parts[0].value == pytest.approx(idf.value * tf_part.value, rel=1e-12)
    assert explanation.to_dict()["parts"][0]["label"] == "'w1'"


def test_an_explanation_of_tfidf_multiplies_and_divides_to_its_value(index):
    hit = index.tfidf(sublinear_tf=True).search("w1")[0]
    posting = index.tfidf(sublinear_tf=True).explain("w1", hit.id).parts[0].parts[0]
    tf, idf, length = (part.value for part in posting.parts)
    assert posting.value == pytest.approx(tf * idf / length, rel=1e-12)


def test_a_document_without_a_match_is_explained_as_zero(index):
    found = set(index.bm25(k=5_000).search("w1", 5_000).ids)
    other = next(doc for doc in index.ids if doc not in found)
    for retriever in (index.bm25(), index.tfidf()):
        explanation = retriever.explain("w1", other)
        assert explanation.value == 0
        assert explanation.parts == ()
        assert retriever.explain("", other).value == 0


def test_explaining_a_document_that_is_not_there_is_an_error_that_names_it(index):
    for retriever in (index.bm25(), index.tfidf()):
        with pytest.raises(InputError, match="document 'nobody' is not in the index"):
            retriever.explain("w1", "nobody")


def test_a_cut_is_pushed_down_into_the_retriever(index):
    retriever = index.bm25(k=100)
    assert retriever % 10 == index.bm25(k=10)
    assert retriever % 1000 == retriever
    assert retriever % 10 % 20 == index.bm25(k=10)
    assert retriever >> Cut(7) == index.bm25(k=7)
    assert not isinstance(index.tfidf() % 3, Pipeline)
    assert (retriever % 10)(TOPICS) == retriever(TOPICS).top(10)


def test_a_run_says_where_it_comes_from_and_knows_its_documents(index):
    run = index.bm25(k1=1.2, b=0.75, k=5)(TOPICS)
    assert run.provenance["index"] == str(index.path)
    assert run.provenance["fingerprint"] == index.fingerprint
    assert run.provenance["system"] == "BM25(lucene, k1=1.2, b=0.75, k=5)"
    assert run.provenance["seconds"] > 0
    assert [doc.id for doc in run["1"].docs()] == run["1"].ids
    assert list(run.topics.values()) == list(TOPICS.values())


def test_a_retriever_shows_the_parameters_that_matter(index):
    assert repr(index.bm25()) == "BM25(lucene, k1=0.9, b=0.4, k=1000)"
    assert repr(index.bm25(variant="okapi")) == "BM25(okapi, k1=1.5, b=0.75, k=1000)"
    shown = "BM25(plus, k1=0.9, b=0.4, k3=2, delta=1.0, lengths=lucene, k=10)"
    assert repr(index.bm25(variant="plus", k3=2, lengths="lucene", k=10)) == shown
    assert "sublinear_tf=True" in repr(index.tfidf(sublinear_tf=True))


def test_with_changes_a_copy_alone(index):
    retriever = index.bm25()
    changed = retriever.with_(k1=2.0, k=3)
    assert (changed.k1, changed.k, retriever.k1, retriever.k) == (2.0, 3, None, 1000)
    assert changed.with_(k1=None, k=1000) == retriever
    with pytest.raises(dataclasses.FrozenInstanceError):
        retriever.k1 = 5  # type: ignore[misc]
    assert hash(index.bm25()) == hash(retriever)


@pytest.mark.parametrize("retriever", ["bm25", "tfidf"])
def test_with_an_unknown_parameter_is_an_error_that_lists_the_known(index, retriever):
    with pytest.raises(ParameterError, match=r"has no parameter 'kk'; it has index, .*k, threads"):
        getattr(index, retriever)().with_(kk=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"variant": "bm26"}, "unknown BM25 variant 'bm26'; there are lucene"),
        ({"b": 1.01}, "b between 0 and 1"),
        ({"b": -0.1}, "b between 0 and 1"),
        ({"b": float("nan")}, "b between 0 and 1"),
        ({"k1": -0.5}, "k1 must be 0 or more"),
        ({"k1": float("inf")}, "k1 must be 0 or more"),
        ({"k1": float("nan")}, "k1 must be 0 or more"),
        ({"k3": -1}, "k3 must be 0 or more, or None"),
        ({"k3": float("nan")}, "k3 must be 0 or more, or None"),
        ({"lengths": "bytes"}, "lengths must be 'exact' or 'lucene'"),
        ({"delta": 1.0}, "BM25 lucene has no delta; plus and l have"),
        ({"variant": "plus", "delta": float("nan")}, "delta"),
        ({"variant": "plus", "delta": -1.0}, "delta"),
        ({"variant": "l", "delta": float("inf")}, "delta"),
        ({"variant": "okapi", "epsilon": float("nan")}, "epsilon"),
    ],
)
def test_a_parameter_of_bm25_outside_its_range_is_an_error(index, changes, words):
    with pytest.raises(ParameterError, match=words):
        index.bm25().with_(**changes)("w1")
    with pytest.raises(ParameterError, match=words):
        index.bm25(**changes).explain("w1", index.ids[0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"norm": "l1"}, "norm must be 'l2' or None"),
        ({"sublinear_tf": True, "relative_tf": True}, "do not go together"),
    ],
)
def test_a_parameter_of_tfidf_outside_its_range_is_an_error(index, changes, words):
    with pytest.raises(ParameterError, match=words):
        index.tfidf().with_(**changes)("w1")


@settings(
    deadline=None, max_examples=60, database=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
