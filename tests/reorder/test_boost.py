"""Boosts by dates, numbers and conditions."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.reordered import candidates

from fontes.core import Run
from fontes.core.expression import pipeline, tunable
from fontes.core.searches import filtered
from fontes.index import Index


def scores(stage: Any, run: Run) -> dict[str, float]:
    return {hit.id: hit.score for hit in stage(run)["q"]}


def test_a_boost_by_date_halves_with_each_half_life_before_the_newest_date(shop: Index) -> None:
    stage = shop.boost("date", half_life="10d", by=4)
    assert scores(stage, candidates(shop)) == {"b": 8.0, "a": 7.0, "d": 3.0, "c": 2.0 + 4 * 2**-2}
    assert stage(candidates(shop)).provenance["origins"] == {repr(stage): "2024-01-31"}


def test_the_origin_is_of_the_state_and_not_of_the_candidates(shop: Index) -> None:
    alone = candidates(shop).keep(np.array([True, False, False, False]))
    assert scores(shop.boost("date", half_life=10.0), alone) == {"a": 5.5}


def test_documents_after_the_origin_have_the_age_0(shop: Index) -> None:
    stage = shop.boost("date", half_life="1w", origin="2024-01-21T00:00:00Z")
    assert scores(stage, candidates(shop)) == pytest.approx({"a": 6, "b": 5, "d": 3, "c": 2 + 2 ** (-10 / 7)})


def test_a_half_life_of_numbers_is_in_their_unit(shop: Index) -> None:
    assert scores(shop.boost("sold", half_life=2), candidates(shop)) == pytest.approx(
        {"a": 5 + 2**-1, "b": 4 + 2**-1.5, "d": 3.0, "c": 3.0}
    )


def test_numbers_raise_scores_by_their_value_or_its_logarithm(shop: Index) -> None:
    assert scores(shop.boost("sold", by=2), candidates(shop)) == {"a": 7.0, "b": 4.0, "d": 3.0, "c": 8.0}
    assert scores(shop.boost("sold", log=True), candidates(shop)) == pytest.approx(
        {"a": 5 + math.log(2), "b": 4.0, "d": 3.0, "c": 2 + math.log(4)}
    )


def test_a_condition_raises_scores_by_a_constant(shop: Index) -> None:
    stage = shop.boost(where="lang == 'cs'", by=1.25)
    assert scores(stage, candidates(shop)) == {"a": 5.0, "b": 5.25, "d": 3.0, "c": 3.25}


def test_multiplied_scores_rise_by_a_share(shop: Index) -> None:
    stage = shop.boost(where="lang == 'cs'", by=0.5, multiply=True)
    assert scores(stage, candidates(shop)) == {"b": 6.0, "a": 5.0, "d": 3.0, "c": 3.0}


def test_equal_scores_keep_the_one_order(shop: Index) -> None:
    stage = shop.boost(where="lang == 'cs'", by=1)
    assert stage(candidates(shop))["q"].ids == ["b", "a", "d", "c"]


def test_fused_and_restored_runs_are_boosted_by_their_ids(shop: Index) -> None:
    run = candidates(shop)
    read = Run.of({"q": {hit.id: hit.score for hit in run["q"]}})
    stage = shop.boost("date", half_life="10d")
    assert scores(stage, read) == scores(stage, run)


def test_values_are_found_in_all_segments_beside_deletions(shop: Index, tmp_path: Path) -> None:
    other = Index.build([{"_id": "z", "text": "tea", "metadata": {"sold": 9}}], tmp_path / "other.index")
    other.add([{"_id": name, "text": "tea", "metadata": {"sold": n}} for n, name in enumerate("abcd")])
    other.delete(["z", "b"])
    assert scores(other.boost("sold"), Run.of({"q": {"d": 1.0, "a": 1.0, "c": 1.0}})) == {"d": 4.0, "c": 3.0, "a": 1.0}
    run = other.boost("sold", half_life=1)({"q": {"d": 1.0}})
    assert list(run.provenance["origins"].values()) == [3]


def test_the_text_of_a_boost_makes_it_again_and_is_tuned(shop: Index) -> None:
    text = 'bm25(k1=0.9, b=0.4) >> boost("date", half_life="180d", by=2) >> boost(where="lang == \'cs\'", by=1.2)'
    assert repr(pipeline(text, shop)) == text
    make, space = tunable('bm25() >> boost("date", half_life=tune(), by=tune())', shop)
    assert set(space) == {"boost__half_life", "boost__by"}
    assert repr(make(boost__half_life=30.0, boost__by=3.0)).endswith('boost("date", half_life=30.0, by=3.0)')


def test_an_explanation_accounts_for_the_score(shop: Index) -> None:
    stage = shop.bm25() >> shop.boost("date", half_life="10d", by=4)
    explained = stage.explain("tea", "c")
    assert explained.value == stage.search("tea", 9)[stage.search("tea", 9).ids.index("c")].score
    before, boost = explained.parts
    assert before == shop.bm25().explain("tea", "c")
    assert boost.value == 1.0
    assert "date 2024-01-11, 20 days before 2024-01-31" in boost.label
    assert "no date: no boost" in stage.explain("tea", "d").parts[1].label
    assert "is not among the 4 documents that boost gets" in stage.explain("tea", "e").label


def test_a_filter_of_the_command_line_goes_to_retrievers_alone(shop: Index) -> None:
    stage = filtered(shop.bm25() >> shop.boost("date", half_life="10d"), "lang == 'cs'")
    assert stage.search("tea").ids == ["b", "c"]


def test_a_negative_value_lowers_the_score(shop: Index) -> None:
    assert scores(shop.boost("balance"), Run.of({"q": {"a": 1.0}})) == {"a": -0.5}


def test_a_logarithm_or_a_decay_keeps_the_score_of_a_great_value_finite(tmp_path: Path) -> None:
    index = Index.build([{"id": "a", "text": "tea", "pop": 0.5}, {"id": "b", "text": "tea", "pop": 1e300}], tmp_path / "x")
    assert scores(index.boost("pop", log=True), Run.of({"q": {"b": 1.0}})) == pytest.approx({"b": 691.775}, abs=1e-3)
    assert scores(index.boost("pop", half_life=1e-300), Run.of({"q": {"a": 1.0, "b": 1.0}})) == {"a": 1.0, "b": 2.0}


def test_a_topic_without_documents_stays_empty(shop: Index) -> None:
    assert list(shop.boost("date", half_life=1)({"q": {}})["q"]) == []
