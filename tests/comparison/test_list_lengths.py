"""Notes on runs whose lists end at different lengths."""

from typing import Any

import fontes as ft
from fontes.comparison.list_lengths import length_notes

QRELS = {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}, "q3": {"d4": 1}}
LONG = {topic: {f"d{n}": 10.0 - n for n in range(1, 9)} for topic in QRELS}
SHORT = {topic: dict(list(ranking.items())[:2]) for topic, ranking in LONG.items()}


def test_compare_says_which_measures_reward_longer_lists() -> None:
    report = str(ft.compare({"all": LONG, "cut": SHORT}, None, QRELS, ["nDCG@10", "AP", "SetF"]))
    assert "cut: shorter lists, and nDCG@10, AP do not fall when a list grows; measure SetP, SetR and SetF too" in report
    assert "(documents a topic in the mean: all 8.0, cut 2.0)" in report


def test_lists_of_one_length_or_of_the_measured_depth_are_not_noted() -> None:
    for measures in (["nDCG@2", "P@1"], ["SetP", "SetF", "SetAP", "SetRelP"]):
        assert "shorter lists" not in str(ft.compare({"all": LONG, "cut": SHORT}, None, QRELS, measures))


def test_a_promise_is_noted_however_little_it_cuts() -> None:
    most = {topic: dict(list(ranking.items())[:7]) for topic, ranking in LONG.items()}
    runs: dict[str, Any] = {"all": ft.Run.of(LONG), "cut": ft.Run.of(most)}
    assert not length_notes(runs, [ft.AP])
    runs["cut"] = runs["cut"].with_(provenance={"promises": [{"kind": "recall"}]})
    assert length_notes(runs, [ft.AP])[0].startswith("cut: shorter lists, and AP does not fall when a list grows")
