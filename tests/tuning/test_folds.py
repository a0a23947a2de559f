"""Folds for tuning: what stays together, and the interval of a mean over topics that depend on each other."""

import numpy as np
import pytest
from support.each import each

import fontes as ft
from fontes.tuning.folds import drawn, drawn_units, folds_of, split_by, units_of
from fontes.tuning.result import interval


def test_the_interval_is_students_for_single_topics_and_wider_for_groups_that_agree():
    from scipy import stats

    values = np.array([0.1, 0.2, 0.15, 0.7, 0.8, 0.75])
    for level, units in ((0.95, np.arange(6)), (0.8, np.array([9, 4, 2, 30, 7, 1]))):
        expected = stats.t.interval(level, 5, values.mean(), stats.sem(values))
        assert interval(values, units, level) == pytest.approx(expected)
    groups = np.array([0, 0, 0, 1, 1, 1])
    means = stats.t.interval(0.95, 1, values.mean(), stats.sem([0.15, 0.75]))
    assert interval(values, groups) == pytest.approx(means)


def test_topics_that_share_documents_through_others_are_one_unit():
    topics = ft.Topics.of(dict.fromkeys("abcde", "x"))
    qrels = ft.Qrels.of({"a": {"1": 1}, "c": {"1": 1, "2": 2}, "e": {"2": 1}, "b": {"3": 1}, "d": {"3": 0, "4": 1}})
    assert units_of(topics, qrels, "document") == [["a", "c", "e"], ["b"], ["d"]]
    assert units_of(topics, qrels, None) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert units_of(topics, qrels, lambda topic: topic.id in "ab") == [["a", "b"], ["c", "d", "e"]]


def test_one_topic_joins_two_groups_that_stood_before_it():
    topics = ft.Topics.of(dict.fromkeys("abcd", "x"))
    qrels = ft.Qrels.of({"a": {"1": 1}, "b": {"2": 1}, "c": {"1": 1, "2": 1}, "d": {"3": 2, "1": 0}})
    assert units_of(topics, qrels, "document") == [["a", "b", "c"], ["d"]]
    assert len({folds_of([["a", "b", "c"], ["d"]], 2, seed=0)[i] for i in "abc"}) == 1


@each("seed", range(8))
def test_groups_by_document_are_the_connected_components_of_the_graph_of_topics(seed):
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(seed)
    grades = rng.choice([-1, 0, 1, 2], p=[0.1, 0.85, 0.03, 0.02], size=(24, 30))
    ids = [f"q{i:02}" for i in range(24)]
    qrels = ft.Qrels.of({i: {f"d{j}": int(g) for j, g in enumerate(row)} for i, row in zip(ids, grades, strict=True)})
    relevant = (grades >= 1).astype(int)
    _, labels = connected_components(relevant @ relevant.T, directed=False)
    expected = sorted([i for i, label in zip(ids, labels, strict=True) if label == one] for one in set(labels))
    shuffled = ft.Topics.of({ids[i]: "x" for i in rng.permutation(24)})
    assert sorted(units_of(shuffled, qrels, "document")) == expected
    assert 1 < len(expected) < 24


def test_a_conversation_is_what_stands_before_the_last_underscore():
    topics = ft.Topics.of(dict.fromkeys(["a_b_1", "a_b_2", "a_c_1", "solo", "_1", "_2", "31_10", "31_2"], "x"))
    grouped = [["31_10", "31_2"], ["_1"], ["_2"], ["a_b_1", "a_b_2"], ["a_c_1"], ["solo"]]
    assert units_of(topics, ft.Qrels(), "conversation") == grouped


def test_groups_may_be_a_mapping():
    topics = ft.Topics.of(dict.fromkeys("abc", "x"))
    assert units_of(topics, ft.Qrels(), {"c": "1", "b": "2", "a": "1", "z": "3"}) == [["a", "c"], ["b"]]


@pytest.mark.parametrize(
    ("sizes", "expected"), [([3, 3, 3, 4, 5], [8, 10]), ([1, 1, 1, 1, 6], [4, 6]), ([2, 2, 2, 2, 2], [4, 6])]
)
def test_the_larger_units_are_dealt_first_each_to_the_fold_with_the_fewest_topics(sizes, expected):
    units = [[f"{place}.{i}" for i in range(size)] for place, size in enumerate(sizes)]
    for seed in range(5):
        fold_of = folds_of(units, 2, seed)
        assert sorted(np.bincount(list(fold_of.values())).tolist()) == expected
        assert sorted(fold_of) == sorted(i for unit in units for i in unit)


def test_there_may_be_as_many_folds_as_units():
    units = [["a"], ["b"], ["c"]]
    assert sorted(folds_of(units, 3, 0).values()) == [0, 1, 2]


def test_units_of_one_size_are_shuffled_by_the_seed():
    units = [[f"t{i}"] for i in range(12)]
    dealt = [folds_of(units, 3, seed) for seed in range(4)]
    assert folds_of(units, 3, 0) == dealt[0]
    assert len({tuple(sorted(one.items())) for one in dealt}) == 4


def test_the_interval_of_uneven_groups_is_that_of_a_cluster_sample():
    from scipy import stats

    values, units = np.array([0.3, 0.9, 0.4, 0.1, 0.6, 0.8, 0.2]), np.array([0, 0, 1, 1, 1, 2, 3])
    residuals = np.array([(values[units == u] - values.mean()).sum() for u in range(4)])
    error = np.sqrt(4 / 3 * (residuals**2).sum()) / 7
    assert interval(values, units) == pytest.approx(stats.t.interval(0.95, 3, values.mean(), error))


def test_folds_are_even_and_units_whole():
    units = [["a1", "a2", "a3"], ["b1", "b2"], *([f"c{i}"] for i in range(13))]
    fold_of = folds_of(units, 3, seed=4)
    assert sorted(np.bincount(list(fold_of.values())).tolist()) == [6, 6, 6]
    assert all(len({fold_of[i] for i in unit}) == 1 for unit in units)
    assert fold_of != folds_of(units, 3, seed=5)


def test_a_seed_has_the_same_division_in_every_version():
    ids = [f"c{n // 3}_{n % 3}" for n in range(12)]
    units = units_of(ft.Topics.of(dict.fromkeys(ids, "x")), ft.Qrels(), "conversation")
    assert drawn(reversed(ids), 0.25, 3) == ["c3_2", "c2_1", "c0_2"]
    assert drawn_units(units, 7, 3) == [*units[3], *units[2]]
    assert split_by(lambda topic_id: topic_id[:2], ids, 0.5, 3) == (ids[:6], ids[6:])
    assert folds_of(units, 2, 3) == {i: int(i[1] in "02") for i in ids}
