"""RM3 and causal feedback: the terms of the best documents and their weights, worked out here once more in plain Python."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fontes.core import Run, Topic, Topics
from fontes.core.expression import pipeline
from fontes.index import Index

TEXTS = {
    "a": "fox fox fox dog dog cat owl",
    "b": "fox dog dog dog bee bee ant",
    "c": "cat owl x 2-3 wordwordwordwordword_",
    "d": "fox x yy zz",
    "e": "",
}
RANKING = {"a": 3.0, "b": 2.0, "d": 0.5}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(list(TEXTS.items()), tmp_path_factory.mktemp("rm3") / "x", analyzer="whitespace")


def scaled(weights: dict[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def best(weights: dict[str, float], terms: int) -> dict[str, float]:
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:terms])


def expected(
    own: dict[str, float],
    docs: int = 10,
    terms: int = 10,
    original: float = 0.5,
    max_df: float = 0.1,
    texts: dict[str, str] = TEXTS,
    ranking: dict[str, float] = RANKING,
) -> dict[str, float]:
    """Abdul-Jaleel et al. (2004) with the choice of terms, and the defaults, of Anserini."""
    bags = {doc: Counter(text.split()) for doc, text in texts.items()}
    df = Counter(term for bag in bags.values() for term in bag)
    documents = sum(bool(bag) for bag in bags.values())
    model: dict[str, float] = {}
    for doc, score in sorted(ranking.items(), key=lambda item: -item[1])[:docs]:
        bag = {
            term: float(count)
            for term, count in bags[doc].items()
            if 2 <= len(term) <= 20 and term.isalnum() and df[term] <= max_df * documents
        }
        for term, share in scaled(best(bag, terms)).items():
            model[term] = model.get(term, 0.0) + score * share
    feedback = scaled(best(model, terms))
    return {
        term: original * scaled(own).get(term, 0.0) + (1 - original) * feedback.get(term, 0.0) for term in {**own, **feedback}
    }


@pytest.mark.parametrize(("docs", "terms", "original", "max_df"), [(2, 3, 0.5, 1.0), (3, 10, 0.2, 0.5), (1, 2, 0.9, 1.0)])
def test_the_new_weights_are_those_of_the_formula(index: Index, docs: int, terms: int, original: float, max_df: float) -> None:
    stage = index.rm3(fb_docs=docs, fb_terms=terms, original_weight=original, max_df=max_df)
    topic = stage(Run.of({"1": RANKING}, Topics([Topic("1", "fox fox owl")])))["1"]
    assert topic.weights == pytest.approx(expected({"fox": 2.0, "owl": 1.0}, docs, terms, original, max_df))
    assert topic.origin == Topic("1", "fox fox owl")


def test_the_weights_of_a_topic_stand_for_its_text(index: Index) -> None:
    run = Run.of({"1": RANKING}, Topics([Topic("1", "owl", weights={"cat": 3.0, "dog": 1.0})]))
    topic = index.rm3(max_df=1.0)(run)["1"]
    assert topic.weights == pytest.approx(expected({"cat": 3.0, "dog": 1.0}, max_df=1.0))


def test_on_random_collections_the_new_weights_are_those_of_the_formula(tmp_path: Path) -> None:
    draws = np.random.default_rng(5)
    for number in range(6):
        words = draws.permutation([*(f"w{i}" for i in range(30)), "w", "w-1", "é2", "w" * 20, "w" * 21])
        sizes = draws.permutation([*range(1, 33), *[0] * 8])  # 32 documents with terms, so that shares of them are exact
        texts = {f"d{i:02}": " ".join(words[draws.zipf(1.3, size) % 35]) for i, size in enumerate(sizes)}
        index = Index.build(list(texts.items()), tmp_path / f"{number}", analyzer="whitespace")
        ranking = {doc: float(score) for doc, score in zip(texts, draws.permutation(40) / 4, strict=True) if score > 0.5}
        own = {f"w{i}": float(draws.integers(1, 4)) for i in draws.permutation(30)[:3]}
        run = Run.of({"1": ranking}, Topics([Topic("1", "", weights=own)]))
        assert index.rm3()(run)["1"].weights == pytest.approx(expected(own, texts=texts, ranking=ranking))
        chosen = {"docs": 2 + 4 * number, "terms": 12 - 2 * number, "original": number / 5, "max_df": (number + 1) / 8}
        stage = index.rm3(
            fb_docs=chosen["docs"], fb_terms=chosen["terms"], original_weight=chosen["original"], max_df=chosen["max_df"]
        )
        assert stage(run)["1"].weights == pytest.approx(expected(own, texts=texts, ranking=ranking, **chosen))


def test_a_topic_whose_own_weights_add_up_to_nothing_has_those_of_the_feedback_alone(index: Index) -> None:
    run = Run.of({"1": RANKING}, Topics([Topic("1", "", weights={"cat": 1.0, "bee": -1.0})]))
    assert index.rm3(max_df=1.0)(run)["1"].weights == pytest.approx(expected({}, max_df=1.0))


def test_a_topic_without_results_stays_as_it_is(index: Index) -> None:
    topics = Topics([Topic("1", "fox"), Topic("2", "unknown")])
    rewritten = index.rm3()(Run.of({"1": RANKING, "2": {}}, topics))
    assert rewritten["2"] == topics["2"]


def test_a_pipeline_searches_again_with_the_terms_of_the_first_documents(index: Index, tmp_path: Path) -> None:
    again = index.bm25() >> index.rm3(fb_docs=1, max_df=1.0) >> index.bm25()
    assert index.bm25().search("owl cat dog").ids[0] == "a"
    assert set(again.search("bee").ids) > set(index.bm25().search("bee").ids)


def test_causal_feedback_divides_the_shares_of_terms_by_those_of_the_topical_model(index: Index) -> None:
    """Datta et al. (2020): P(w|R') / P(w|R) for topical terms, / ε, the mean of P(w|R'), for others; mixed with the query."""
    first = Topic("1", "fox owl")
    topical = {"fox": 0.5, "owl": 0.3, "dog": 0.2, "elk": 0.0}
    run = Run.of({"1": RANKING}, Topics([Topic("1", "fox owl", weights=topical, origin=first)]))
    stage = index.causal_feedback(fb_docs=2, fb_terms=4, original_weight=0.4, max_df=1.0)
    # Of a: fox 3, dog 2, cat 1, owl 1 of 7; of b: dog 3, bee 2, ant 1, fox 1 of 7; scores 3 and 2.
    sums = {"fox": 3 * 3 + 2 * 1, "dog": 3 * 2 + 2 * 3, "bee": 2 * 2, "cat": 3 * 1}  # and owl 3, after cat
    total = sum(sums.values())
    model = {term: value / total for term, value in sums.items()}
    causal = scaled({"fox": model["fox"] / 0.5, "dog": model["dog"] / 0.2, "bee": model["bee"] * 4, "cat": model["cat"] * 4})
    topic = stage(run)["1"]
    assert topic.weights == pytest.approx(
        {"fox": 0.4 / 2 + 0.6 * causal["fox"], "owl": 0.4 / 2, **{t: 0.6 * causal[t] for t in ("dog", "bee", "cat")}}
    )
    assert topic.text == "fox owl"
    assert topic.origin is run.topics["1"]


def test_causal_feedback_without_a_topical_model_takes_the_topics_own_terms_for_it(index: Index) -> None:
    run = Run.of({"1": {"d": 1.0}}, Topics([Topic("1", "fox")]))
    topic = index.causal_feedback(max_df=1.0, original_weight=0.0)(run)["1"]
    # The terms of d are fox, yy and zz, each 1/3: fox is divided by 1, its share of the topic, the others by 1/3.
    assert topic.weights == pytest.approx({"fox": 1 / 7, "yy": 3 / 7, "zz": 3 / 7})


def test_causal_feedback_leaves_a_topic_without_results_as_it_is(index: Index) -> None:
    topics = Topics([Topic("1", "unknown")])
    assert index.causal_feedback()(Run.of({"1": {}}, topics))["1"] == topics["1"]


def test_causal_feedback_is_a_pipeline_after_rm3(index: Index) -> None:
    text = "bm25(k1=0.9, b=0.4) >> rm3(max_df=1.0) >> bm25(k1=0.9, b=0.4) >> causal_feedback(max_df=1.0) >> bm25(k1=0.9, b=0.4)"
    stage = pipeline(text, index)
    assert repr(stage) == text
    assert set(stage.search("bee").ids) > set(index.bm25().search("bee").ids)


def test_terms_are_more_clauses_of_a_structured_query(index: Index) -> None:
    bm25 = index.bm25()
    plain, asked = bm25 >> index.rm3(fb_docs=2) >> bm25, index.query() >> bm25 >> index.rm3(fb_docs=2) >> bm25
    expected = plain.search("fox dog")
    ranking = asked.search("fox OR dog")
    assert ranking.ids == expected.ids
    np.testing.assert_allclose(ranking.scores, expected.scores, rtol=1e-6)
    assert [hit.id for hit in asked.search("+dog fox -bee")] == ["a"]
    assert [hit.id for hit in asked.search("fox dog -bee")] == [i for i in expected.ids if i != "b"]
