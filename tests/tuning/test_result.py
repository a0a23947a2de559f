"""What `tune` gives, made by hand: its figures from the values of topics, what it says of edges, and how it prints."""

import json

import numpy as np
import pytest
from scipy import stats
from support.each import each
from support.tunings import GIVEN, VALUES, tuning

from fontes.core.expression import pipeline
from fontes.experiments.problems import planned_index
from fontes.tuning.result import Fold
from fontes.tuning.space import Choices, Range


def test_each_topic_has_the_value_of_its_own_fold_and_the_score_is_their_mean():
    held_out = [0.6, 0.9, 0.7, 0.4, 0.3, 0.4]  # of x=2 for a, c and f; of x=1 for b, d and e
    result = tuning()
    assert result.values.tolist() == held_out
    assert result.score == pytest.approx(np.mean(held_out))
    assert not result.values.flags.writeable
    assert result.difference == pytest.approx(np.mean(held_out) - np.mean(GIVEN))
    assert result.params == {"x": 1}
    assert result.best.score == pytest.approx(2.4 / 6)
    assert [fold.values.mean() for fold in result.folds] == pytest.approx([1.6 / 3, 1.7 / 3])


def test_the_interval_of_the_difference_is_that_of_paired_values_and_of_groups():
    single = tuning(units=range(6))
    differences = np.array([0.4, 0.6, 0.6, -0.1, 0.1, 0.0])
    expected = stats.t.interval(0.95, 5, differences.mean(), stats.sem(differences))
    assert single.difference_interval == pytest.approx(expected)
    assert single.interval == pytest.approx(stats.t.interval(0.95, 5, single.values.mean(), stats.sem(single.values)))
    residuals = differences - differences.mean()
    sums = np.array([residuals[0] + residuals[5], *residuals[1:5]])
    reach = stats.t.ppf(0.975, 4) * np.sqrt(5 / 4 * (sums**2).sum()) / 6
    assert tuning().difference_interval == pytest.approx((differences.mean() - reach, differences.mean() + reach))


def test_without_values_as_given_there_is_no_difference():
    result = tuning(given=None)
    assert result.difference is None
    assert result.difference_interval is None
    plain = result.to_dict()
    assert (plain["default"], plain["difference"], plain["difference_interval"]) == (None, None, None)
    assert "given" not in str(result)


def edges(name, axis, *best):
    """The warnings where these values of a parameter are equally good, and others worse."""
    good, bad = [0.5] * 6, [0.4] * 6
    trials = {((name, value),): good for value in best}
    others = axis.values if isinstance(axis, Choices) else (axis.low, (axis.low + axis.high) / 2, axis.high)
    trials |= {((name, value),): bad for value in others if value not in best}
    stage = pipeline("bm25() >> rm3() >> bm25()", planned_index())  # whose parameters have limits
    return tuning(trials, {name: axis}, stage=stage).warnings


@each(
    ("name", "axis", "best", "sentence"),
    [
        ("x", Choices((1, 2, 3)), [1], "x=1 is at the lower end of the space; smaller values may do better"),
        ("x", Choices((3, 2, 1)), [3], "x=3 is at the upper end of the space; larger values may do better"),
        ("x", Choices((1, 2, 3)), [2], None),
        ("x", Choices((1, 2, 3)), [1, 2], None),
        ("x", Choices((1, 2, 3)), [3, 2], None),
        ("x", Choices((0, 1.01, 100)), [1.01], None),  # a list has no slack
        ("x", Choices((0, 50, 99)), [0, 99], None),
        ("x", Choices(("a", "b")), ["a"], None),
        ("x", Choices((1,)), [1], None),
        ("x", Range(0.0, 10.0, False), [0.2], "x=0.2 is at the lower end of the space; smaller values may do better"),
        ("x", Range(0.0, 10.0, False), [0.21], None),
        ("x", Range(10.0, 20.0, False), [19.8], "x=19.8 is at the upper end of the space; larger values may do better"),
        ("x", Range(10.0, 20.0, False), [19.79], None),
        ("x", Range(10.0, 20.0, False), [10.1, 10.2], "x=10.1 is at the lower end of the space; smaller values may do better"),
        ("b", Choices((0, 0.5, 1)), [0], "b=0 is the last value that b can have"),
        ("b", Choices((0, 0.5, 1)), [1], "b=1 is the last value that b can have"),
        ("b", Choices((0.1, 0.5, 0.9)), [0.9], "b=0.9 is at the upper end of the space; larger values may do better"),
        ("k1", Choices((0, 1, 2)), [0], "k1=0 is the last value that k1 can have"),
        ("k1", Choices((0, 1, 2)), [2], "k1=2 is at the upper end of the space; larger values may do better"),
        ("k3", Choices((0, 1, 2)), [0], "k3=0 is the last value that k3 can have"),
        (
            "rm3__original_weight",
            Choices((0, 1)),
            [1],
            "rm3__original_weight=1 is the last value that rm3__original_weight can have",
        ),
        ("original_weight", Choices((0, 1)), [0], "original_weight=0 is the last value that original_weight can have"),
        ("bm25__b", Choices((0.25, 1)), [0.25], "bm25__b=0.25 is at the lower end of the space; smaller values may do better"),
    ],
)
def test_a_best_value_on_an_edge_is_noted_where_all_best_ones_are_there(name, axis, best, sentence):
    assert edges(name, axis, *best) == ((sentence,) if sentence else ())


def test_best_values_on_both_edges_are_noted_only_where_nothing_lies_beyond():
    assert edges("b", Choices((0, 0.5, 1)), 0, 1) == ("b=0 is the last value that b can have",)
    assert edges("x", Choices((0, 0.5, 1)), 0.5, 1) == ()


def test_the_report_has_a_line_for_each_figure():
    result = tuning(
        space={"x": Choices((1, 2, 3)), "y": Choices((None,))},
        folds=tuple(Fold({"x": fold.choice["x"], "y": None}, fold.topics, fold.values, fold.chosen) for fold in tuning().folds),
    )
    low, high = result.interval
    below, above = result.difference_interval
    units = np.array([0, 1, 2, 3, 4, 0])
    residuals = np.array(GIVEN) - np.mean(GIVEN)
    sums = np.bincount(units, residuals)
    reach = stats.t.ppf(0.975, 4) * np.sqrt(5 / 4 * (sums**2).sum()) / 6
    assert str(result).splitlines() == [
        "nDCG@10 of 6 topics in 5 groups, 2 folds; grid, 3 settings, 1.2 s",
        "",
        f"held out    0.5500  [{low:.4f}, {high:.4f}]",
        f"as given    0.2833  [{np.mean(GIVEN) - reach:.4f}, {np.mean(GIVEN) + reach:.4f}]  x=0.5",
        f"difference +0.2667  [{below:+.4f}, {above:+.4f}]",
        "",
        "fold  topics  x     y  chosen at  held out  as given",
        "   1       3  1  None     0.2667    0.5333    0.3333",
        "   2       3  2  None     0.1333    0.5667    0.2333",
        "",
        "final: x=1",
        "0.4000 on the topics that chose it, which is no estimate for others",
        "note: x=1 is at the lower end of the space; smaller values may do better",
    ]
    assert repr(result) == "Tuning(nDCG@10 0.5500 held out; x=1)"
    without = str(tuning(given=None, units=range(6))).splitlines()
    assert without[0] == "nDCG@10 of 6 topics, 2 folds; grid, 3 settings, 1.2 s"
    assert without[4:6] == ["fold  topics  x  chosen at  held out", "   1       3  1     0.2667    0.5333"]


def test_plain_values_are_those_of_the_result():
    result = tuning()
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain == {
        "measure": "nDCG@10",
        "method": "grid",
        "topics": 6,
        "groups": 5,
        "score": pytest.approx(0.55),
        "interval": pytest.approx(list(result.interval)),
        "default": {"params": {"x": 0.5}, "score": pytest.approx(np.mean(GIVEN))},
        "difference": pytest.approx(0.55 - np.mean(GIVEN)),
        "difference_interval": pytest.approx(list(result.difference_interval)),
        "params": {"x": 1},
        "score_where_chosen": pytest.approx(0.4),
        "folds": [
            {
                "params": {"x": x},
                "topics": 3,
                "score_where_chosen": pytest.approx(chosen),
                "score": pytest.approx(score),
                "default": pytest.approx(default),
            }
            for x, chosen, score, default in ((1, 0.8 / 3, 1.6 / 3, 1.0 / 3), (2, 0.4 / 3, 1.7 / 3, 0.7 / 3))
        ],
        "warnings": ["x=1 is at the lower end of the space; smaller values may do better"],
        "seconds": 1.234,
        "trials": [{"params": {"x": x}, "score": pytest.approx(np.mean(values))} for x, values in VALUES.items()],
    }
    assert set(plain) - set(result.to_dict(trials=False)) == {"trials"}


def test_settings_that_json_cannot_hold_become_lists_or_text():
    setting = {"weights": (0.5, 0.5), "k3": None, "stem": True, "name": "a", "analyzer": len, "b": [1]}
    result = tuning(
        {tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in setting.items()): [0.5] * 6}, {"b": Choices((1,))}
    )
    expected = {"weights": [0.5, 0.5], "k3": None, "stem": True, "name": "a", "analyzer": "<built-in function len>", "b": [1]}
    assert result.to_dict()["params"] == expected


def test_a_result_is_saved_in_every_form_of_a_report(tmp_path):
    result = tuning()
    for form in ("md", "tex", "csv", "json", "html"):
        result.save(tmp_path / f"tuning.{form}")
    assert "| 1 | 3 | 1 | 0.2667 | 0.5333 | 0.3333 |" in (tmp_path / "tuning.md").read_text()
    assert r"1 & 3 & 1 & 0.2667 & 0.5333 & 0.3333 \\" in (tmp_path / "tuning.tex").read_text()
    assert (tmp_path / "tuning.csv").read_text().splitlines()[0] == "x,score"
    assert json.loads((tmp_path / "tuning.json").read_text()) == json.loads(json.dumps(result.to_dict()))
    assert "final: x=1" in (tmp_path / "tuning.html").read_text()
