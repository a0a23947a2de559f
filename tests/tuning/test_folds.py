"""Folds for tuning: what stays together, and the interval of a mean over topics that depend on each other."""

from __future__ import annotations

import numpy as np
import pytest

import fontes as ft
from fontes.tuning.folds import folds_of, units_of
from fontes.tuning.result import interval


def test_the_interval_is_students_for_single_topics_and_wider_for_groups_that_agree():
    from scipy import stats

    values = np.array([0.1, 0.2, 0.15, 0.7, 0.8, 0.75])
    expected = stats.t.interval(0.95, 5, values.mean(), stats.sem(values))
    assert interval(values, np.arange(6)) == pytest.approx(expected)
    groups = np.array([0, 0, 0, 1, 1, 1])
    means = stats.t.interval(0.95, 1, values.mean(), stats.sem([0.15, 0.75]))
    assert interval(values, groups) == pytest.approx(means)


def test_topics_that_share_documents_through_others_are_one_unit():
    topics = ft.Topics.of(dict.fromkeys("abcde", "x"))
    qrels = ft.Qrels.of({"a": {"1": 1}, "c": {"1": 1, "2": 2}, "e": {"2": 1}, "b": {"3": 1}, "d": {"3": 0, "4": 1}})
    assert units_of(topics, qrels, "document") == [["a", "c", "e"], ["b"], ["d"]]
    assert units_of(topics, qrels, None) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert units_of(topics, qrels, lambda topic: topic.id in "ab") == [["a", "b"], ["c", "d", "e"]]
    with pytest.raises(ft.core.ParameterError, match="groups='document' needs judgments"):
        units_of(topics, ft.Qrels(), "document")
    with pytest.raises(ft.core.InputError, match="topic 'b' has no group"):
        units_of(topics, qrels, {"a": "1"})


def test_folds_are_even_and_units_whole():
    units = [["a1", "a2", "a3"], ["b1", "b2"], *([f"c{i}"] for i in range(13))]
    fold_of = folds_of(units, 3, seed=4)
    assert sorted(np.bincount(list(fold_of.values())).tolist()) == [6, 6, 6]
    assert all(len({fold_of[i] for i in unit}) == 1 for unit in units)
    assert fold_of != folds_of(units, 3, seed=5)
