"""The measures of ir_measures: its values, which tools/ir_measures_values.py wrote to ir_measures.json, and its names."""

import json
import math
from pathlib import Path

import pytest

from fontes.measures import ERR, Accuracy, Compat, Judged, NumRelRet, NumRet, SetP, SetRelP, evaluate, infAP, nDCG

STORED = json.loads((Path(__file__).parent / "ir_measures.json").read_text())
ROUNDED = ("ERR", "nDCG(dcg")  # gdeval prints five decimals


def tolerance(name):
    return 6e-6 if name.startswith(ROUNDED) else 1e-6


def test_every_measure_has_the_values_of_ir_measures_for_each_topic():
    for name in STORED["values"]:
        values = evaluate(STORED["run"], STORED["qrels"], name).per_topic(name)
        expected = {topic: STORED["values"][name].get(topic, 0.0) for topic in STORED["qrels"]}
        assert values == pytest.approx(expected, abs=tolerance(name))


def test_every_measure_has_the_mean_of_ir_measures_on_a_real_run_with_five_grades(shared):
    folder = shared / "cast2021"
    names = [name for name in STORED["cast2021"] if name != "Accuracy@10"]
    evaluation = evaluate(folder / "baselines" / "doc_org_manual_bm25.run", folder / "qrels" / "test_docs.tsv", names)
    for name in names:
        assert evaluation[name] == pytest.approx(STORED["cast2021"][name], abs=tolerance(name)), name


def test_err_is_chapelle_s_sum_over_the_first_k():
    grades = [1, 0, 4, 2]
    satisfied = [(2**g - 1) / 2**4 for g in grades]
    run = {"1": {f"d{i}": -float(i) for i in range(4)}}
    qrels = {"1": {f"d{i}": g for i, g in enumerate(grades)}}
    expected = sum(s / (i + 1) * math.prod(1 - t for t in satisfied[:i]) for i, s in enumerate(satisfied[:3]))
    assert evaluate(run, qrels, ERR @ 3)[ERR @ 3] == pytest.approx(expected)
    of_five = 31 / 32 + 1 / 32 * 15 / 32 / 2
    assert evaluate(run, {"1": {"d0": 5, "d1": 4}}, ERR(max_rel=5))["ERR(max_rel=5)"] == pytest.approx(of_five)


def test_accuracy_is_1_if_all_retrieved_are_relevant_and_0_if_none():
    qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1, "x": 0}, "3": {"a": 1}}
    run = {"1": {"a": 2.0, "b": 1.0}, "2": {"x": 1.0}}
    assert evaluate(run, qrels, Accuracy).per_topic(Accuracy) == {"1": 1.0, "2": 0.0, "3": 0.0}


def test_compatibility_is_1_for_an_ideal_ranking_and_takes_equal_grades_in_any_order():
    qrels = {"1": {"a": 2, "b": 1, "c": 1, "x": 0}}
    for run in ({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 3.0, "c": 2.0, "b": 1.0}):
        assert evaluate({"1": run}, qrels, Compat)[Compat] == pytest.approx(1.0)
    assert evaluate({"1": {"b": 3.0, "a": 2.0, "c": 1.0}}, qrels, Compat)[Compat] < 0.99


def test_names_that_say_the_same_have_the_same_values():
    evaluation = evaluate(
        STORED["run"],
        STORED["qrels"],
        [NumRet(rel=1), NumRelRet, SetRelP, SetP(relative=True), nDCG, "infap", Judged, "set_map"],
    )
    assert evaluation[NumRet(rel=1)] == evaluation[NumRelRet]
    assert evaluation[SetRelP] == evaluation["SetP(relative=True)"] == evaluation["set_relative_P"]
    assert evaluation["infAP"] == evaluation[infAP]
    assert evaluation["SetAP"] == evaluation["set_map"]
