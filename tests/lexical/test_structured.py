"""Structured queries: which documents match and with what scores, compared with a scan of the documents' terms."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.each import each
from support.lexical import MODELS, TOPICS, model, rows
from support.naive_queries import NaiveIndex, random_query
from support.small_collections import PROPERTY
from support.uncompiled import uncompiled

from fontes.core import Doc, Topic, Topics
from fontes.core.query import AnyOf, Group, Phrase, Term
from fontes.index import Index
from fontes.lexical import BM25, impacts
from fontes.lexical.bm25 import VARIANTS
from fontes.lexical.structured import SearchResult, StructuredQuery
from fontes.storage.compiled import load
from fontes.text import Analyzer

WORDS = ["a", "b", "c", "d", "e"]
ANALYZER = Analyzer(tokenizer="whitespace", stopwords=("the",))


def collection() -> tuple[list[list[str]], list[int]]:
    draw = random.Random(5)
    texts = [draw.choices([*WORDS, "the"], [5, 3, 2, 1, 1, 2], k=draw.randrange(14)) for _ in range(60)]
    return texts, [2000 + n % 10 for n in range(60)]


@pytest.fixture(scope="module")
def naive() -> NaiveIndex:
    texts, years = collection()
    return NaiveIndex([[None if word == "the" else word for word in text] for text in texts], years)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    docs = [
        Doc(f"d{n:02}", " ".join(text), metadata={"year": year})
        for n, (text, year) in enumerate(zip(*collection(), strict=True))
    ]
    path = tmp_path_factory.mktemp("structured") / "x"
    index = Index.build(docs[:40], path, analyzer=ANALYZER, positions=True, separate=True)
    index.add(docs[40:])
    return index


def topic(query: Group) -> Topic:
    return Topic("1", "", query=query)


@PROPERTY
@given(st.integers(0, 1 << 30))
def test_documents_and_scores_are_those_of_a_scan(index, naive, seed):
    query = random_query(random.Random(seed), WORDS, positions=True)
    ranking, expected = index.bm25().search(topic(query), 100), naive.ranking(query)
    assert {int(hit.id[1:]): pytest.approx(hit.score, rel=1e-5, abs=1e-6) for hit in ranking} == expected
    assert index.bm25().matches(topic(query)).tolist() == sorted(expected)
    assert ranking.total == index.bm25().count(topic(query)) == len(expected)
    for where in (None, "year >= 2005"):
        every = index.bm25(where=where).count(topic(query))
        assert [index.bm25(where=where).count(topic(query), most) for most in (1, 5, 50)] == [
            min(every, m + 1) for m in (1, 5, 50)
        ]
    assert [(hit.score, hit.id) for hit in ranking] == sorted(((hit.score, hit.id) for hit in ranking), reverse=True)


@PROPERTY
@given(st.integers(0, 1 << 30), st.sampled_from([1, 3, 10]))
def test_runs_cuts_and_filters_are_those_of_the_whole_ranking(index, seed, k):
    query, where = random_query(random.Random(seed), WORDS, positions=True), "year < 2005"
    whole = list(index.bm25().search(topic(query), 100))
    run = index.bm25(k=k)(Topics([Topic("0", "a b"), topic(query), Topic("2", "c")]))
    assert list(run["1"]) == whole[:k]
    assert list(run["0"]) == list(index.bm25().search("a b", k))
    assert list(run["2"]) == list(index.bm25().search("c", k))
    passed = [(hit.id, hit.score) for hit in whole if int(hit.id[1:]) % 10 < 5]
    assert [(hit.id, hit.score) for hit in index.bm25(where=where).search(topic(query), k)] == passed[:k]
    assert len(index.bm25(where=where).matches(topic(query))) == len(passed)


@PROPERTY
@given(st.integers(0, 1 << 30))
def test_explanations_add_up_and_say_why_a_document_does_not_match(index, seed):
    query = random_query(random.Random(seed), WORDS, positions=True)
    bm25 = index.bm25()
    scores = {hit.id: hit.score for hit in bm25.search(topic(query), 100)}
    for doc in index.ids.tolist()[::7]:
        explanation = bm25.explain(topic(query), doc)
        assert explanation.value == scores.get(doc, 0.0)
        assert ("does not match" in explanation.label) == (doc not in scores)


@each("parameters", [*MODELS, {"ql": True}])
def test_a_group_of_terms_gives_the_bytes_of_the_plain_topic(tmp_path_factory, parameters, tied):
    stage = tied.ql(k=50) if "ql" in parameters else model(tied, parameters, k=50)
    plain = stage(TOPICS)
    structured = stage(Topics(Topic(t.id, "", query=as_group(t)) for t in TOPICS.values()))
    assert structured.scores.tobytes() == plain.scores.tobytes()
    assert rows(structured) == rows(plain)


def as_group(topic: Topic) -> Group:
    weights = topic.weights or {}
    return Group(should=(*map(Term, topic.text.split()), *(Term(term, weight=weight) for term, weight in weights.items())))


def test_any_of_some_terms_has_their_frequencies_together(tmp_path):
    index = Index.build(
        [("1", "rain rains"), ("2", "rain"), ("3", "rained snow"), ("4", "snow")], tmp_path / "x", analyzer="whitespace"
    )
    merged = Index.build(
        [("1", "rain rain"), ("2", "rain"), ("3", "rain snow"), ("4", "snow")], tmp_path / "y", analyzer="whitespace"
    )
    query = Group(should=(AnyOf(("rain", "rained", "rains")),))
    for of_index in (lambda i: i.bm25(), lambda i: i.ql(), lambda i: i.tfidf(norm=None)):
        assert list(of_index(index).search(topic(query))) == list(of_index(merged).search("rain"))


def test_topics_are_searched_by_their_query_alone(index):
    query = Group(should=(Term("e"),))
    expected = list(index.bm25().search("e"))
    assert list(index.bm25().search(Topic("1", "a", weights={"b": 1.0}, query=query))) == expected


def test_facets_count_all_documents_that_match(index, naive):
    query = Group(must=(Term("a"), Term("b")), must_not=(Term("e"),))
    run = index.bm25(k=2)([topic(query)])
    assert sum(run["1"].facets("year")["year"].values()) == len(naive.ranking(query)) > 2


def test_weights_of_vectors_are_searched_by_terms_too(tmp_path):
    docs = [Doc(f"d{n}", "", metadata={"vector": {"a": n / 10, "b": 1 - n / 10}}) for n in range(1, 10)]
    index = Index.build(docs, tmp_path / "x", vectors="vector")
    ranking = index.learned_sparse().search(topic(Group(must=(Term("a"),), should=(Term("b", weight=2.0),))), 3)
    assert ranking.ids == ["d1", "d2", "d3"]
    assert np.allclose(ranking.scores, [1.9, 1.8, 1.7])


def test_a_query_that_nothing_matches_has_an_empty_ranking(index):
    for query in (Group(), Group(must_not=(Term("a"),)), Group(must=(Term("unknown"),), should=(Term("a"),))):
        assert list(index.bm25().search(topic(query))) == []
        assert index.bm25().matches(topic(query)).tolist() == []
        assert "does not match" in index.bm25().explain(topic(query), "d00").label


def plain_search(query: StructuredQuery, k: int) -> SearchResult:
    """The best documents by sums of numpy, as before the loops are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        uncompiled(patch)
        return query.search(k, None, None)


@each("k", [1, 10, 50])
@each("negative", [False, True])
def test_conjunctions_in_the_compiled_loop_are_those_of_plain_sums(index, k, negative):
    draw, terms = random.Random(k), index.terms.tolist()
    load()
    bm25 = index.bm25()
    bm25(Topics([Topic("1", terms[0]), Topic("2", terms[1])]))  # all postings are decoded
    found = 0
    for _ in range(80):
        weights = [-draw.random() if negative and draw.random() < 0.5 else draw.random() for _ in range(draw.randint(1, 4))]
        group = Group(must=tuple(Term(draw.choice(terms), weight=weight) for weight in weights))
        query = StructuredQuery(index.state, bm25.weighting, Topic("1", "", query=group))
        docs, scores, count = plain_search(query, k)
        ranking = bm25.search(Topic("1", "", query=group), k)
        assert ranking.ids == index.ids.take(docs)
        assert [hit.score for hit in ranking] == scores.tolist()
        assert len(query.matches(None)) == count
        found += count
    assert found


@each("parameters", [{}, {"lengths": "lucene"}, {"phrase_idf": "sum"}, {"k3": 2.0}, *({"variant": name} for name in VARIANTS)])
def test_a_phrase_in_the_compiled_loop_has_the_scores_of_numpy(tmp_path, parameters):
    texts, _ = collection()
    docs = [(f"d{n:02}", " ".join(text)) for n, text in enumerate(texts)]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace", positions=True)
    load()
    bm25 = index.bm25(**parameters)
    total = 0
    for terms, k in itertools.product([("a", "b"), ("b", "a"), ("the", "a", "b"), ("e", "e")], [1, 5, 50]):
        group = Group(should=(Phrase(terms, tuple(range(len(terms))), weight=1.5),))
        query = StructuredQuery(index.state, bm25.weighting, topic(group))
        docs, scores, count = plain_search(query, k)
        ranking = bm25.search(topic(group), k)
        assert ranking.ids == index.ids.take(docs)
        assert [hit.score for hit in ranking] == scores.tolist()
        assert ranking.total == bm25.count(topic(group)) == count
        total += count
    assert total


def test_a_conjunction_with_an_unknown_term_finds_nothing(index):
    load()
    group = Group(must=(Term(index.terms[0]), Term("unknownxyz")))
    assert len(index.bm25().search(Topic("1", "", query=group))) == 0
    assert len(index.bm25().matches(Topic("1", "", query=group))) == 0


@pytest.mark.parametrize("sparse", [1, 10_000])
def test_matches_are_the_same_with_decoded_postings_and_without(index, monkeypatch, sparse):
    monkeypatch.setattr(impacts, "SPARSE", sparse)
    fresh = Index.open(index.path)
    draw, terms = random.Random(2), index.terms.tolist()
    texts = [draw.sample(terms, draw.randint(1, min(6, len(terms)))) for _ in range(50)]
    groups = [Topic("1", "", query=Group(should=tuple(map(Term, words)))) for words in texts]
    before = [fresh.bm25().matches(topic).tolist() for topic in groups]
    load()
    fresh.bm25()(Topics([Topic("1", terms[0]), Topic("2", terms[1])]))
    assert [fresh.bm25().matches(topic).tolist() for topic in groups] == before
    assert [fresh.bm25().count(topic) for topic in groups] == list(map(len, before))
    assert [fresh.bm25().count(" ".join(words)) for words in texts] == list(map(len, before))
    assert [np.unique(index.postings(np.array(sorted(map(index.term_number, words))))[0]).tolist() for words in texts] == before


def test_structured_queries_are_searched_here_where_actors_hold_the_shards(index, monkeypatch):
    class Holders:
        def run(self, stage, method, arguments):
            raise AssertionError("actors are asked")

    query = topic(Group(must=(Term("a"), Term("b"))))
    expected = index.bm25()(Topics([query]))
    monkeypatch.setattr(index.state, "actors", Holders())
    assert index.bm25()(Topics([query])) == expected
    assert list(index.bm25().search(query)) == list(expected["1"])[:10]
    with pytest.raises(AssertionError, match="actors are asked"):
        index.bm25()(Topics([query, Topic("2", "a")]))


def test_counts_that_are_kept_have_a_limit(index, monkeypatch):
    from fontes.lexical import pseudo_terms

    state = Index.open(index.path).state
    monkeypatch.setattr(pseudo_terms, "MEMORY", 1_000)
    scores = []
    for _ in range(2):
        for pair in itertools.permutations(WORDS, 2):
            scores.append(BM25(state).search(topic(Group(should=(Phrase(pair, (0, 1)), AnyOf(pair)))))[0].score)
    assert scores[: len(scores) // 2] == scores[len(scores) // 2 :]
    part = state.parts[0]
    assert vars(part)["_lazy_clause_weights"]._total < 2_000
    assert vars(part.lists)["_lazy_clause_counts"]._total < 2_000
