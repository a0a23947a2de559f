"""What bench/training_recipes.py adds up over seeds."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fontes as ft

pytest.importorskip("torch")


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import training_recipes

    monkeypatch.setattr(training_recipes, "RECIPES", dict(training_recipes.RECIPES))
    return training_recipes


def test_seeds_of_a_recipe_are_recipes_that_differ_in_the_seed_only(recipes: Any) -> None:
    names = recipes.seeded("late", 3)
    assert names == ["late", "late, seed 1", "late, seed 2"]
    first, second, third = (recipes.RECIPES[name] for name in names)
    assert [one.settings.seed for one in (first, second, third)] == [0, 1, 2]
    assert second.settings.with_(seed=0) == first.settings
    assert second.examples is first.examples


def test_seeds_of_a_recipe_without_training_are_refused(recipes: Any) -> None:
    with pytest.raises(SystemExit, match="trains nothing"):
        recipes.seeded("tokens", 2)


def test_the_spread_of_one_value_is_none(recipes: Any) -> None:
    assert recipes.spread([0.5]) == {"mean": 0.5, "deviation": 0.0, "least": 0.5, "most": 0.5}
    assert recipes.spread([0.4, 0.5, 0.6]) == {"mean": 0.5, "deviation": 0.1, "least": 0.4, "most": 0.6}


def test_the_share_of_a_topic_is_chosen_on_other_topics(recipes: Any) -> None:
    import training_zeroshot

    good, bad = {"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0}
    topics = ["1", "2", "3", "4"]
    first = ft.Run.of({topic: bad if topic == "1" else good for topic in topics})
    second = ft.Run.of({topic: good if topic == "1" else bad for topic in topics})
    qrels = ft.Qrels([(topic, "0", "a", 1) for topic in topics])
    run = training_zeroshot.cross_fitted(first, second, qrels, folds=4)
    assert [run[topic].ids[0] for topic in topics] == ["b", "a", "a", "a"]


def test_the_depth_is_chosen_on_the_topics_to_choose_with(
    recipes: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    topics = ["1", "2", "3"]
    candidates = ft.Run.of({topic: {"x": 3.0, "y": 2.0, "a": 1.0} for topic in topics})
    reranked = ft.Run.of({topic: {"a": 3.0, "x": 2.0, "y": 1.0} for topic in topics})
    qrels = ft.Qrels([(topic, "0", doc, grade) for topic in topics for doc, grade in (("a", 1), ("x", 0))])
    one = SimpleNamespace(choosing="dev", testing="test", measure="RR@5", plain=lambda _: qrels, qrels=lambda _: qrels)

    def both(self: Any, name: str, of: Any, split: str, system: str, depth: int) -> tuple[ft.Run, ft.Run, float]:
        begun = candidates.top(depth)
        kept = {
            topic: {doc: 1.0 * (3 - at) for at, doc in enumerate(reranked[topic].ids) if doc in begun[topic].ids}
            for topic in topics
        }
        return begun, ft.Run.of(kept), 1.0

    monkeypatch.setattr(recipes.Bench, "both", both)
    monkeypatch.setattr(recipes.Bench, "candidates", lambda *_: candidates)
    facts = recipes.Bench(tmp_path, tmp_path)._depth("late", one, "bm25", [2, 3])
    assert facts["depth"] == 3
    assert facts["test"] == {"candidates": 0.3333, "2": 0.0, "3": 1.0}
