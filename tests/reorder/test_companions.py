"""Documents that belong together: the greedy choice by relevance and by similarity to what is chosen before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.hashed_encoder import Hashed

from fontes import Index, Qrels, evaluate
from fontes.core.expression import pipeline, tunable
from fontes.reorder.term_vectors import TermVectors

TEXTS = {
    "claim": "the pump of marl creek was late in march",
    "first": "the pump of marl creek failed in march and the fitter of tollen was called",
    "second": "the fitter of tollen came after nine hours",
    "noise1": "a pump in the town hall",
    "noise2": "march was cold at the creek",
    "other": "bread and butter",
}
RUN = {"q": {"first": 9.0, "noise1": 4.0, "noise2": 3.5, "second": 3.0, "other": 1.0}, "r": {"other": 1.0}, "s": {}}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(list(TEXTS.items()), tmp_path_factory.mktemp("companions") / "x.index", analyzer="whitespace")


def by_hand(index: Index, ranking: dict[str, float], similarity: Any, weight: float) -> list[tuple[str, float]]:
    """Return the choices and their values, one by one from the formula."""
    least, best = min(ranking.values()), max(ranking.values())
    relevance = {doc: (score - least) / (best - least) if best > least else 1.0 for doc, score in ranking.items()}
    chosen: list[tuple[str, float]] = []
    while len(chosen) < len(ranking):
        others = [doc for doc, _ in chosen]
        total = 1 + weight * sum(relevance[other] for other in others)
        values = {
            doc: (relevance[doc] + weight * sum(relevance[other] * similarity(doc, other) for other in others)) / total
            for doc in ranking.keys() - set(others)
        }
        chosen.append(max(values.items(), key=lambda one: (one[1], one[0])))
    return chosen


def cosine_of_terms(index: Index) -> Any:
    ids = list(index.ids)
    vectors = TermVectors.of(index.state).matrix(np.arange(len(ids))).toarray()
    return lambda one, other: float(vectors[ids.index(one)] @ vectors[ids.index(other)])


@each("weight", [0.0, 0.5, 1.0, 3.0])
def test_choices_are_those_of_the_formula(index: Index, weight: float) -> None:
    run = index.companions(weight=weight)(RUN)
    expected = by_hand(index, RUN["q"], cosine_of_terms(index), weight)
    assert list(run["q"].ids) == [doc for doc, _ in expected]
    values = np.array([value for _, value in expected])
    assert run["q"].scores.tolist() == pytest.approx(np.minimum.accumulate(values).tolist(), abs=1e-6)
    assert (len(run["r"]), len(run["s"])) == (1, 0)


def test_a_second_document_is_found_by_the_first(index: Index) -> None:
    sets = Qrels([("q", "1", "first", 1), ("q", "1", "second", 1)])
    plain, together = index.companions(weight=0)(RUN), index.companions()(RUN)
    assert list(plain["q"].ids) == list(RUN["q"])
    assert list(together["q"].ids)[:2] == ["first", "second"]
    values = [evaluate(run, sets, "Complete@2")["Complete@2"] for run in (plain, together)]
    assert values == [0.0, 1.0]
    assert list(index.mmr(lambda_=0.5)(RUN)["q"].ids)[1] != "second"


def test_scores_fall_where_values_rise(tmp_path: Path) -> None:
    """A copy of the best document has a greater value than the document chosen before it."""
    index = Index.build([("a", "tea leaf"), ("b", "tea leaf"), ("c", "old stone"), ("d", "wet sand")], tmp_path / "x.index")
    run = index.companions(weight=5)({"q": {"c": 2.0, "a": 1.9, "b": 1.0, "d": 0.9}})["q"]
    assert list(run.ids) == ["c", "a", "b", "d"]
    assert all(np.diff(run.scores) < 0)
    assert run.scores[2] == np.nextafter(run.scores[1], np.float32(-np.inf))


def test_vectors_are_compared_where_an_encoder_is_named(index: Index) -> None:
    encoder = Hashed()
    index.encode(encoder)
    ids = list(index.ids)
    vectors = index.embeddings(encoder).decoded(slice(0, len(ids))).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def cosine(one: str, other: str) -> float:
        return max(0.0, float(vectors[ids.index(one)] @ vectors[ids.index(other)]))

    expected = [doc for doc, _ in by_hand(index, RUN["q"], cosine, 1.5)]
    assert list(index.companions(weight=1.5, encoder=encoder)(RUN)["q"].ids) == expected


def test_a_cut_is_the_beginning_of_the_whole(index: Index) -> None:
    whole = index.companions()(RUN)
    for k in range(1, 6):
        assert (index.companions() % k)(RUN) == whole.top(k)
    assert repr(pipeline("bm25() % 100 >> companions(weight=2) % 10", index)).endswith("% 100 >> companions(weight=2) % 10")


def test_an_explanation_names_the_documents_chosen_before(index: Index) -> None:
    stage = index.bm25() >> index.companions()
    for hit in stage.search(TEXTS["claim"]):
        explained = stage.explain(TEXTS["claim"], hit.id)
        assert sum(part.value for part in explained.parts[1:]) >= hit.score - 1e-6
    label = str(stage.explain(TEXTS["claim"], "second"))
    assert "of 'first', chosen before" in label
    assert "not among the 1 documents" in (index.bm25() >> index.companions(k=1)).explain(TEXTS["claim"], "second").label


def test_the_weight_is_tuned(index: Index) -> None:
    make, space = tunable("bm25() >> companions(weight=tune())", index)
    assert space == {"companions__weight": (0.0, 3.0, 0.25)}
    assert repr(make(companions__weight=2.0)).endswith("companions(weight=2.0)")
