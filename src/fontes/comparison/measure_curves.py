"""Curves of measures against k: `plot_measures`, and their values for the page of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..core import ParameterError, Run
from ..core.arrays import Floats
from ..core.checks import check_whole
from ..measures.evaluation import check_agreement, judgments_of
from ..measures.measure import Measure
from ..measures.names import COMMA, parse_all
from ..measures.ranks import Ranks
from ..plots.plot import Plot, draw_plot, line_style, plain_ticks
from . import statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT = ("P", "R", "SetF", "RR")
MAX_LINEAR = 20  # greatest k of a linear axis, with a value at every k
LOGARITHMIC_KS = sorted({k * int(power) for power in 10 ** np.arange(6) for k in (1, 2, 3, 4, 5, 6, 7, 8, 9)} | {15, 150, 1500})
RESAMPLES = 2_000
PANEL_HEIGHT = 2.5  # in inches
TITLES = {"P": "precision", "R": "recall", "SetF": "F1", "RR": "reciprocal rank", "Complete": "one evidence set is complete"}


def values_at(ranks: Ranks, measure: Measure, ks: Iterable[int]) -> Floats:
    """Return the values of a measure at each k, float64, (topics, ks)."""
    return np.stack([np.asarray((measure @ k).score(ranks), dtype=np.float64) for k in ks], axis=1)


def plot_measures(
    runs: Mapping[str, object],
    qrels: object,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    k: int = 20,
    bands: bool = True,
    seed: int = 0,
) -> Plot:
    """Plot measures of runs against k over all judged topics, one panel per measure and one line per run.

    Args:
        runs: By name of the system, anything that `Run.of` accepts.
        qrels: Anything that `Qrels.of` accepts.
        measures: As for `evaluate`, without cutoffs: P, R, SetF (F1), RR, nDCG, Complete, …
        k: The greatest k. Up to 20 every k is drawn; beyond, the axis is logarithmic.
        bands: Whether to draw 95% bootstrap intervals (BCa, 2,000 samples of the topics).
        seed: Seed of the bootstrap.

    Raises:
        InputError: A run cannot be read, or does not belong to the judgments.
        ParameterError: There is no run, a measure is unknown, has a cutoff or takes none, or k is below 2.
        MissingExtraError: matplotlib is not installed.
    """
    parsed = _without_cutoff(measures)
    if check_whole("k", k) < 2:
        raise ParameterError("a curve needs k from 1 to 2 or more, not to 1")
    if not runs:
        raise ParameterError("there is no run to plot; give runs in a mapping from name to run")
    judgments = judgments_of(qrels, parsed)
    ranks = {}
    for name, value in runs.items():
        run = Run.of(value)
        check_agreement(run, judgments, f"the run '{name}'")
        ranks[name] = Ranks.of(run, judgments)
    ks = list(range(1, k + 1)) if k <= MAX_LINEAR else [*(number for number in LOGARITHMIC_KS if number < k), k]
    values = {measure: {name: values_at(run_ranks, measure, ks) for name, run_ranks in ranks.items()} for measure in parsed}
    rows = -(-len(parsed) // 2)

    def draw(figure: Figure) -> str:
        panels = figure.subplots(rows, min(2, len(parsed)), squeeze=False).ravel()
        for panel, measure in zip(panels, parsed, strict=False):
            _draw_panel(panel, measure, ks, values[measure], seed if bands else None)
        for panel in panels[len(parsed) :]:
            panel.set_visible(False)
        if len(ranks) > 1:
            lines, labels = panels[0].get_legend_handles_labels()
            figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
        intervals = ", with 95% bootstrap intervals of the mean" if bands else ""
        names = ", ".join(map(str, parsed))
        return f"{names} of {', '.join(ranks)} against k from 1 to {k}, means over {len(judgments):,} judged topics{intervals}"

    return draw_plot(draw, height=PANEL_HEIGHT * rows + (0.4 if len(ranks) > 1 else 0))


def _draw_panel(panel: Axes, measure: Measure, ks: list[int], values: Mapping[str, Floats], seed: int | None) -> None:
    """Draw the means of a measure, a line per run, with intervals unless the seed is None."""
    for number, (name, run_values) in enumerate(values.items()):
        style = line_style(number)
        panel.plot(ks, run_values.mean(axis=0), label=name, **style)
        if seed is not None and len(run_values) > 1:
            low, high = statistics.interval(run_values, statistics.resampled(run_values, RESAMPLES, seed))
            panel.fill_between(ks, low, high, color=style["color"], alpha=0.12, linewidth=0)
    panel.set_title(f"{measure}@k" + (f": {TITLES[str(measure)]}" if str(measure) in TITLES else ""), loc="left")
    panel.set(xlabel="k", xlim=(ks[0], ks[-1]))
    panel.set_ylim(bottom=0)
    if ks[-1] > MAX_LINEAR:
        panel.set_xscale("log")
        plain_ticks(panel.xaxis)
    else:
        panel.set_xticks([k for k in (1, 5, 10, 15, 20) if k <= ks[-1]] if ks[-1] > 5 else ks)


def _without_cutoff(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Return the measures, without the cutoff that k replaces; ParameterError if they have one already or take none."""
    items = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    names = [name for item in items for name in (COMMA.split(item) if isinstance(item, str) else [str(item)]) if name.strip()]
    for name in names:
        if "@" in name:
            raise ParameterError(f"the measure is drawn at every k; write {name.partition('@')[0].strip()} for {name.strip()}")
    parsed = parse_all(f"{name}@1" for name in names)
    for measure in parsed:
        if not isinstance(measure.cutoff, int):
            raise ParameterError(f"{measure.name} is measured at a recall, not at k; its curve is in the page of a comparison")
    return [replace(measure, cutoff=None) for measure in parsed]
