"""The sequential dependence model, phrases weighed by models, and what follows a structured query: feedback and snippets."""

import math
from pathlib import Path

import pytest

from fontes.core import Topic, Topics, pipeline
from fontes.core.query import AnyOf, Group, Phrase, Term, Window
from fontes.index import Index
from fontes.lexical import Statistics

DOCS = [
    ("1", "the desert spring feeds a desert spring oasis"),
    ("2", "spring rain in the desert"),
    ("3", "rain in spring and rain in autumn"),
    ("4", "an oasis of the desert"),
    ("5", "snow"),
]
DESERT_SPRING = Phrase(("desert", "spring"), (0, 1))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(DOCS, tmp_path / "x", positions=True)


def test_topics_become_terms_phrases_and_windows_of_neighbours(index):
    topic = index.sdm()(Topics.of("Springs in the deserts, rain"))["1"]
    assert topic.query == Group(
        should=(
            Term("spring", weight=0.85),
            Term("desert", weight=0.85),
            Term("rain", weight=0.85),
            Phrase(("spring", "desert"), (0, 3), weight=0.1),
            Window(("spring", "desert"), 8, weight=0.05),
            Phrase(("desert", "rain"), (0, 1), weight=0.1),
            Window(("desert", "rain"), 8, weight=0.05),
        )
    )
    assert topic.origin is not None
    assert topic.origin.query is None


def test_scores_are_those_of_the_formula_with_each_pair_as_a_term(index):
    """Counted by hand over the terms of DOCS, 16 without stop words."""

    def ql(tf: int, cf: int, dl: int) -> float:
        p = (cf + 1) / (index.tokens + 1)
        return max(math.log(1 + tf / (10 * p)) + math.log(10 / (dl + 10)), 0.0)

    assert index.lengths.tolist() == [6, 3, 4, 2, 1]
    scores = {hit.id: hit.score for hit in (index.sdm() >> index.ql(mu=10)).search("desert spring")}
    # desert: cf 4; spring: cf 4; "desert spring": cf 2, in document 1; windows of 8 begin at 1, 2 and 6 in 1, and at 0 in 2
    first = 0.85 * (ql(2, 4, 6) + ql(2, 4, 6)) + 0.10 * ql(2, 2, 6) + 0.05 * ql(3, 4, 6)
    second = 0.85 * (ql(1, 4, 3) + ql(1, 4, 3)) + 0.05 * ql(1, 4, 3)
    assert scores["1"] == pytest.approx(first, rel=1e-6)
    assert scores["2"] == pytest.approx(second, rel=1e-6)
    assert sorted(scores) == ["1", "2", "3", "4"]


def test_a_weight_of_zero_leaves_its_clauses_out_and_needs_no_positions(tmp_path):
    index = Index.build(DOCS, tmp_path / "plain")
    only_terms = index.sdm(weights=(1, 0, 0)) >> index.bm25()
    assert list(only_terms.search("desert spring")) == list(index.bm25().search("desert spring"))


def test_the_stage_has_a_text(index):
    made = pipeline("sdm(weights=(0.8, 0.1, 0.1), window=4) >> ql()", index=index)
    assert made == index.sdm(weights=(0.8, 0.1, 0.1), window=4) >> index.ql()


def test_topics_that_say_what_they_search_for_stay_as_they_are(index):
    topics = Topics([Topic("1", "a b", weights={"a": 1.0}), Topic("2", "c d", query=Group(should=(Term("c"),)))])
    assert list(index.sdm()(topics).values()) == list(topics.values())


@pytest.mark.parametrize("name", ["bm25", "tfidf"])
def test_the_idf_of_a_phrase_is_its_own_or_the_sum_of_its_terms(index, name):
    topic = Topic("1", "", query=Group(should=(DESERT_SPRING,)))
    make = getattr(index, name)
    own, summed = (make(phrase_idf=kind).search(topic)[0].score for kind in ("own", "sum"))
    idf = make().weighting.idf
    statistics = Statistics.of(index.state)
    expected = (idf(statistics, 3.0) + idf(statistics, 3.0)) / idf(statistics, 1.0)
    assert summed / own == pytest.approx(float(expected), rel=1e-6)
    assert make(phrase_idf="sum").explain(topic, "1").value == pytest.approx(summed, rel=1e-6)
    assert list(make(phrase_idf="sum").search("desert spring")) == list(make().search("desert spring"))


def test_explanations_say_where_a_phrase_stands(index):
    topic = Topic("1", "", query=Group(should=(DESERT_SPRING, Window(("rain", "spring"), 3))))
    assert index.bm25().explain(topic, "1").parts[0].label == '"desert spring" at text 1-2, text 5-6'
    assert index.bm25().explain(topic, "2").parts[0].label == "window of 3: 'rain' 'spring' at text 0-1"


def test_snippets_mark_the_words_of_a_phrase_where_they_stand_as_one(tmp_path):
    filler = "spring water " * 30
    text = f"A desert without water. {filler} At last the desert spring of the {filler}"
    index = Index.build([("1", text)], tmp_path / "x", positions=True)
    ranking = index.bm25().search(Topic("1", "desert spring", query=Group(must=(DESERT_SPRING,))))
    (snippet,) = ranking.snippets()
    assert snippet.count("**") == 4
    assert "the **desert** **spring** of" in snippet
    both = Topic("1", "", query=Group(must=(DESERT_SPRING,), should=(Term("last"),)))
    assert "At **last** the **desert** **spring**" in index.bm25().search(both).snippets()[0]
    apart = Topic("1", "", query=Group(should=(AnyOf(("desert", "oasi")),)))
    assert "**desert** without" in index.bm25().search(apart).snippets()[0]


def test_feedback_keeps_what_must_match_and_adds_terms_that_raise_the_score(index):
    query = Group(must=(Term("desert", weight=3.0),), should=(Term("spring"),), must_not=(Term("autumn"),))
    feedback = index.rm3(max_df=1.0, fb_terms=3, original_weight=0.6)
    topic = (index.bm25() >> feedback)(Topics([Topic("1", "", query=query)]))["1"]
    assert topic.query is not None
    assert topic.query.must == (Term("desert", weight=pytest.approx(0.45)),)
    assert topic.query.should[0] == Term("spring", weight=pytest.approx(0.15))
    assert topic.query.must_not == (Term("autumn"),)
    added = topic.query.should[1:]
    assert len(added) == 3
    assert sum(clause.weight for clause in added) == pytest.approx(0.4)  # type: ignore[union-attr]
    assert sorted(index.bm25().search(topic).ids) == ["1", "2", "4"]
