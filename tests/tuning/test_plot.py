"""The surface of a search as it is drawn: each point, line and mark stands where the values say."""

import itertools

import numpy as np
import pytest
from support.tunings import VALUES, tuning

from fontes.tuning.result import Fold
from fontes.tuning.space import Choices, Range


def lines(axes):
    """Label to the points of each line."""
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.get_lines()}


def near(points):
    """The same points, up to rounding."""
    return [pytest.approx(point) for point in points]


def two(method="grid", drop=()):
    """A result over x and y, whose mean is x + y/10 + z/100, with z not drawn; folds chose (1, 5) once and (2, 7) twice."""
    axes = {"x": Choices((1, 2)), "y": Choices((5, 6, 7)), "z": Choices((0, 3))}
    trials = {}
    for x, y, z in itertools.product(*(axis.values for axis in axes.values())):
        if (x, y) not in drop:
            trials[("x", x), ("y", y), ("z", z)] = [x + y / 10 + z / 100] * 6
    chosen = ((1, 5), (2, 7), (2, 7))
    folds = tuple(Fold({"x": x, "y": y, "z": 0}, np.arange(2) + 2 * i, np.ones(2), 1.0) for i, (x, y) in enumerate(chosen))
    return tuning(trials, axes, method=method, folds=folds, default={"x": 1, "y": 7, "z": 0})


def test_a_curve_has_means_folds_and_settings():
    plot = tuning().plot()
    (axes,) = plot.figure.axes
    means = {x: np.mean(values) for x, values in VALUES.items()}
    drawn = lines(axes)
    assert drawn["mean over all topics"] == near([(x, means[x]) for x in (1, 2, 3)])
    assert drawn["final"] == [pytest.approx((1, means[1]))]
    assert [y for _, y in drawn["as given"]] == pytest.approx([0.85 / 3] * 2)
    marks = [line for line in axes.get_lines() if line.get_marker() == "s"]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in marks] == near([(1, means[1]), (2, means[2])])
    assert [line.get_markersize() for line in marks] == [8, 8]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "nDCG@10")
    assert axes.get_lines()[0].get_linestyle() == "-"
    assert plot.caption == (
        "nDCG@10 of 6 topics against x: the mean over all topics for 3 settings, what 2 folds chose, and the final setting."
    )


def test_a_curve_over_one_of_several_parameters_shows_the_best_of_the_others():
    plot = two().plot("y")
    (axes,) = plot.figure.axes
    drawn = lines(axes)
    assert drawn["mean over all topics"] == near([(y, 2 + y / 10 + 0.03) for y in (5, 6, 7)])
    marks = {line.get_xdata()[0]: line.get_markersize() for line in axes.get_lines() if line.get_marker() == "s"}
    assert marks == {5: 8, 7: 10}
    assert "against y, the best over x and z: the mean" in plot.caption
    joined = {method: two(method).plot("y").figure.axes[0].get_lines()[0].get_linestyle() for method in ("grid", "random")}
    assert joined == {"grid": "-", "random": "None"}


def test_a_map_has_the_best_mean_of_each_pair_of_values():
    plot = two().plot(("y", "x"))
    axes = plot.figure.axes[0]
    (mesh,) = axes.collections
    assert np.asarray(mesh.get_array()).reshape(2, 3) == pytest.approx(
        np.array([[x + y / 10 + 0.03 for y in (5, 6, 7)] for x in (1, 2)])
    )
    drawn = [(line.get_marker(), *line.get_xdata(), *line.get_ydata(), line.get_markersize()) for line in axes.get_lines()]
    assert drawn == [("s", 5, 1, 8), ("s", 7, 2, 10), ("*", 7, 2, 11), ("X", 7, 1, 8)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y", "x")
    assert "against y and x, the best over z: the mean over all topics for 12 settings, what 3 folds chose" in plot.caption


def test_a_map_with_gaps_has_a_point_for_each_pair():
    axes = two(drop=[(1, 6)]).plot(["x", "y"]).figure.axes[0]
    (points,) = axes.collections
    pairs = [(x, y) for x in (1, 2) for y in (5, 6, 7) if (x, y) != (1, 6)]
    assert sorted(map(tuple, points.get_offsets().tolist())) == pairs
    of = dict(zip(map(tuple, points.get_offsets().tolist()), points.get_array().tolist(), strict=True))
    assert of == pytest.approx({(x, y): x + y / 10 + 0.03 for x, y in pairs})


def test_a_setting_as_given_that_lies_outside_the_space_is_not_drawn():
    def marks(default, space=None):
        result = two()
        changed = {**result.__dict__, "default": default}
        for name in ("values", "best", "interval", "difference_interval", "warnings"):
            changed.pop(name, None)
        if space:
            changed["space"] = space
        return [line.get_marker() for line in type(result)(**changed).plot(("x", "y")).figure.axes[0].get_lines()]

    assert "X" in marks({"x": 2, "y": 5, "z": 0})
    assert "X" in marks({"x": 1, "y": 6.5, "z": 0})
    assert "X" not in marks({"x": 3, "y": 6, "z": 0})
    assert "X" not in marks({"x": 0.9, "y": 6, "z": 0})
    assert "X" not in marks({"x": None, "y": 6, "z": 0})
    assert "X" not in marks(None)
    ranges = {"x": Range(1.0, 2.0, False), "y": Range(5, 7, True), "z": Choices((0, 3))}
    assert "X" in marks({"x": 2, "y": 5, "z": 0}, ranges)
    assert "X" not in marks({"x": 2, "y": 8, "z": 0}, ranges)


def test_values_other_than_numbers_are_named_on_the_axis_in_order():
    space = {"v": Choices(("plus", None, "lucene"))}
    trials = {(("v", "plus"),): [0.3] * 6, (("v", None),): [0.5] * 6, (("v", "lucene"),): [0.4] * 6}
    folds = tuple(Fold({"v": v}, np.arange(3) + at, np.ones(3), 1.0) for v, at in ((None, 0), ("lucene", 3)))
    axes = tuning(trials, space, folds=folds).plot("v").figure.axes[0]
    assert lines(axes)["mean over all topics"] == near([(0, 0.3), (1, 0.5), (2, 0.4)])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["plus", "None", "lucene"]
    assert lines(axes)["final"] == [pytest.approx((1, 0.5))]


def test_a_plot_without_names_has_the_first_two_parameters():
    assert "against x and y, the best over z" in two().plot().caption
    assert two().plot([]).caption == two().plot().caption
