"""The space of a search: what a mapping means, what a grid tries, what is drawn and what Optuna is asked for."""

from __future__ import annotations

import numpy as np
from support.each import each

from fontes.tuning.space import Choices, Maker, Range, axes_of, grid_of


def read(values, default=None, known=None):
    """The axis that a space with one parameter has."""
    maker = Maker(lambda x: x, None, {} if default is None else {"x": default}, {} if known is None else {"x": known})
    return axes_of({"x": values}, maker)["x"]


class Asked:
    """Stands for a trial of Optuna: remembers what is asked and answers with the last of what there is."""

    def suggest_int(self, name, low, high):
        self.seen = ("int", name, low, high)
        return high

    def suggest_float(self, name, low, high):
        self.seen = ("float", name, low, high)
        return high

    def suggest_categorical(self, name, choices):
        self.seen = ("categorical", name, choices)
        return choices[-1]


@each(
    ("values", "expected"),
    [
        ((1, 7, 2), (1, 3, 5, 7)),
        ((1, 8, 2), (1, 3, 5, 7)),
        ((5, 5, 1), (5,)),
        ((0.1, 0.7, 0.2), (0.1, 0.3, 0.5, 0.7)),
        ((0.0, 1.0, 0.1), tuple(i / 10 for i in range(11))),
        ((0, 1, 0.25), (0.0, 0.25, 0.5, 0.75, 1.0)),
        ((1, 2, 3), (1,)),
        ((-0.2, 0.2, 0.2), (-0.2, 0.0, 0.2)),
        ((np.int64(2), np.int64(4), np.int64(1)), (2, 3, 4)),
        ((np.float32(0.5), 1, 0.5), (0.5, 1.0)),
    ],
)
def test_a_tuple_of_three_is_every_number_from_low_to_high_by_the_step(values, expected):
    axis = read(values)
    assert axis == Choices(expected)
    assert [type(v) for v in axis.values] == [type(v) for v in expected]


def test_whole_numbers_are_tried_where_all_values_are_whole():
    assert read((1, 9)) == Range(1, 9, True)
    assert read((1, 9), default=4) == Range(1, 9, True)
    assert read((0, 1), default=0.75) == Range(0.0, 1.0, False)
    assert read((0, 1), default=0.75).whole is False
    assert read((1, 3, 1), default=0.5).values == (1.0, 2.0, 3.0)
    assert {type(v) for v in read((1, 3, 1), default=0.5).values} == {float}
    assert read((0.5, 9)) == Range(0.5, 9.0, False)
    assert [type(n) for n in read((1, 9)).ends] == [int, int]


def test_a_range_takes_the_step_of_the_class_where_that_knows_one():
    assert read((0.1, 0.5), known=(0.0, 1.0, 0.2)) == Range(0.1, 0.5, False, 0.2)
    assert read((0.1, 0.5), known=(0.0, 1.0)).step is None
    assert read((0.1, 0.5), known=[0.0, 1.0, 0.2]).step is None
    assert read((2, 6), known=(1, 9, 2)) == Range(2, 6, True, 2.0)
    assert [s["x"] for s in grid_of({"x": Range(2, 6, True, 2.0)})] == [2, 4, 6]


def test_a_list_is_taken_as_it_is_written():
    assert read([3, 1, 2]).values == (3, 1, 2)
    assert read(np.array([0.5, 0.25])).values == (0.5, 0.25)
    assert [type(v) for v in read(np.array([1, 2])).values] == [int, int]
    assert read(["a", None]).values == ("a", None)
    assert read({"a": 1, "b": 2}.keys()).values == ("a", "b")
    assert Choices((1, 2.5)).ordered
    assert not Choices((1, True)).ordered
    assert not Choices((1, "2")).ordered
    assert not Choices((None, 2)).ordered
    assert Choices((3, 1, 2)).ends == (1, 3)
    assert Choices((3,)).ends is None
    assert Choices(("a", "b")).ends is None
    assert Choices((1, 2)).ends == (1, 2)


def test_low_may_equal_high_and_a_step_be_longer_than_the_range():
    assert read((2.0, 2.0)) == Range(2.0, 2.0, False)
    assert read((2.0, 2.5, 7)).values == (2.0,)


def test_a_grid_is_every_combination_and_the_last_parameter_changes_fastest():
    settings = list(grid_of({"x": Choices((1, 2)), "y": Choices(("a", "b", "c"))}))
    assert settings == [{"x": x, "y": y} for x in (1, 2) for y in "abc"]


def test_draws_are_equally_likely_over_all_values_and_both_ends_of_whole_numbers():
    rng = np.random.default_rng(0)
    for axis, values in ((Choices(("a", "b", "c")), ["a", "b", "c"]), (Range(2, 5, True), [2, 3, 4, 5])):
        drawn = [axis.draw(rng) for _ in range(4_000)]
        assert sorted(set(drawn)) == values
        for value in values:
            share, expected = drawn.count(value) / 4_000, 1 / len(values)
            assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 4_000)
    between = np.array([Range(2.0, 5.0, False).draw(rng) for _ in range(4_000)])
    assert 2 <= between.min() < 2.01
    assert 4.99 < between.max() <= 5
    assert abs(between.mean() - 3.5) < 5 * np.sqrt(9 / 12 / 4_000)
    assert type(Range(2, 5, True).draw(rng)) is int
    assert type(Range(2.0, 5.0, False).draw(rng)) is float


def test_optuna_is_asked_for_numbers_as_numbers_and_for_others_as_categories():
    asked = Asked()
    assert Range(1, 9, True).suggest(asked, "k") == 9
    assert asked.seen == ("int", "k", 1, 9)
    assert Range(0.5, 0.75, False).suggest(asked, "b") == 0.75
    assert asked.seen == ("float", "b", 0.5, 0.75)
    assert Choices((0.1, 0.5, 2)).suggest(asked, "mu") == 2
    assert asked.seen == ("int", "mu", 0, 2)
    assert Choices(("x", None)).suggest(asked, "v") is None
    assert asked.seen == ("categorical", "v", [0, 1])
