"""A result of tuning put together by hand, whose figures can be worked out on paper."""

import numpy as np

import fontes as ft
from fontes.measures import parse
from fontes.tuning.result import Fold, Trial, Tuning
from fontes.tuning.space import Choices

# Three settings of x, six topics in two folds; topics 0 and 5 are one group.
VALUES = {1: [0.1, 0.9, 0.2, 0.4, 0.3, 0.5], 2: [0.6, 0.1, 0.7, 0.2, 0.1, 0.4], 3: [0.0, 0.2, 0.1, 0.1, 0.0, 0.1]}
GIVEN = [0.2, 0.3, 0.1, 0.5, 0.2, 0.4]
FOLDS = {1: [1, 3, 4], 2: [0, 2, 5]}  # held out, by the setting that they are scored with


def tuning(trials=None, space=None, given=GIVEN, units=(0, 1, 2, 3, 4, 0), method="grid", **changed):
    """A result as `tune` would put it together."""
    trials = trials or {(("x", x),): values for x, values in VALUES.items()}
    folds = []
    for x, topics in FOLDS.items():
        values, rest = np.array(VALUES[x]), np.setdiff1d(np.arange(6), topics)
        folds.append(Fold({"x": x}, np.array(topics), values[topics], float(values[rest].mean())))
    made = {
        "measure": parse("nDCG@10"),
        "method": method,
        "space": space or {"x": Choices((1, 2, 3))},
        "topic_ids": tuple("abcdef"),
        "units": np.array(units),
        "trials": tuple(Trial(dict(params), np.array(values)) for params, values in trials.items()),
        "folds": tuple(folds),
        "stage": ft.core.stage.Cut(5),
        "default": None if given is None else {"x": 0.5},
        "baseline_values": None if given is None else np.array(given),
        "seconds": 1.2345,
    }
    return Tuning(**(made | changed))
