"""Measures against k: what is drawn is what `evaluate` gives at each k."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app
from fontes.comparison import plot_measures, statistics
from fontes.core.errors import ParameterError

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
QRELS = ft.Qrels(
    (f"q{q}", str(1 + d // 2), f"d{d}", 1) for q in range(9) for d in range(4)
)  # two evidence sets of two documents
RUNS = {
    name: ft.Run.of({f"q{q}": {f"d{d}": float(score) for d, score in enumerate(RNG.random(30))} for q in range(9)})
    for name in ("first", "second")
}


def lines_of(plot: Any, panel: int) -> list[Any]:
    return [line.get_xydata().T for line in plot.figure.axes[panel].lines]


def test_each_line_is_the_mean_of_the_measure_at_each_k() -> None:
    plot = plot_measures(RUNS, QRELS, "P,SetF,Complete,nDCG", k=12, bands=False)
    for panel, measure in enumerate(["P", "SetF", "Complete", "nDCG"]):
        for (ks, values), run in zip(lines_of(plot, panel), RUNS.values(), strict=True):
            assert ks.tolist() == list(range(1, 13))
            expected = ft.evaluate(run, QRELS, [f"{measure}@{k}" for k in range(1, 13)])
            assert values.tolist() == pytest.approx(list(expected.values()))
    assert plot.caption == "P, SetF, Complete, nDCG of first, second against k from 1 to 12, means over 9 judged topics"


def test_a_deep_curve_has_fewer_points_on_a_logarithmic_axis_and_ends_at_k() -> None:
    plot = plot_measures({"first": RUNS["first"]}, QRELS, ft.R, k=75)
    ((ks, _),) = lines_of(plot, 0)
    assert (ks[:10].tolist(), ks[-2:].tolist()) == (list(range(1, 11)), [70, 75])
    assert plot.figure.axes[0].get_xscale() == "log"
    assert len(plot.figure.axes) == 1
    assert not plot.figure.legends


def test_bands_are_bootstrap_intervals_of_the_mean() -> None:
    plot = plot_measures({"first": RUNS["first"]}, QRELS, ["R"], k=6, seed=3)
    (band,) = plot.figure.axes[0].collections
    values = np.stack([ft.evaluate(RUNS["first"], QRELS, ft.R @ k).array(ft.R @ k) for k in range(1, 7)], axis=1)
    low, high = statistics.interval(values, statistics.resampled(values, 2_000, 3))
    corners = band.get_paths()[0].vertices
    for k in range(1, 7):
        ends = corners[corners[:, 0] == k][:, 1]
        assert (ends.min(), ends.max()) == pytest.approx((low[k - 1], high[k - 1]))


def test_the_same_runs_give_the_same_bytes() -> None:
    assert plot_measures(RUNS, QRELS, k=5).to_bytes("svg") == plot_measures(RUNS, QRELS, k=5).to_bytes("svg")


def test_the_command_draws_runs_by_the_names_of_their_files(tmp_path: Path) -> None:
    ft.write_qrels(QRELS, tmp_path / "qrels.txt")
    for name, run in RUNS.items():
        ft.write_run(run, tmp_path / f"{name}.run")
    files = [str(tmp_path / name) for name in ("qrels.txt", "first.run", "second.run")]
    done = CliRunner().invoke(app, ["plot", "measures", *files, "-o", str(tmp_path / "m.svg"), "-m", "P,R", "-k", "5"])
    assert done.exit_code == 0, done.output
    assert "P, R of first, second against k from 1 to 5, means over 9 judged topics, with 95% bootstrap" in done.output
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")
    for wrong, message in (
        (["plot", "measures", files[0]], "needs judgments and runs"),
        (["plot", "measures", *files, "--tf", "3"], "has no option --tf; its options are --measures, -k, --no-bands"),
        (["plot", "bm25", *files], "takes one index, not 3 files"),
        (["plot", "bm25", "-k", "3"], "fontes plot bm25 has no option -k"),
    ):
        refused = CliRunner().invoke(app, wrong)
        assert isinstance(refused.exception, ParameterError) or refused.exit_code
        assert message in f"{refused.exception} {refused.output}"
