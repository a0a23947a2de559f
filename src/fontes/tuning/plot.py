"""The surface of a search for parameters, as a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import ParameterError
from ..plots.plot import COLOURS, INK, Plot, drawn
from .space import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .result import Tuning

BLUE, ORANGE = COLOURS[0], COLOURS[5]
CHOSEN = "chosen by folds (larger: by more)"


def surface(tuning: Tuning, parameters: str | Sequence[str] | None) -> Plot:
    """The plot of one or two parameters, by default the first two of the space; see `Tuning.plot`."""
    names = [parameters] if isinstance(parameters, str) else list(parameters or list(tuning.space)[:2])
    for name in names:
        if name not in tuning.space:
            raise ParameterError(f"'{name}' was not tuned; there are {', '.join(tuning.space)}")
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise ParameterError(f"a plot has one or two parameters, not {', '.join(names) or 'none'}")

    def draw(figure: Figure) -> str:
        axes: Any = figure.subplots()
        if len(names) == 1:
            _curve(axes, tuning, names[0])
        else:
            _map(figure, axes, tuning, *names)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small", columnspacing=1.2)
        others = [name for name in tuning.space if name not in names]
        best = f", the best over {' and '.join(others)}" if others else ""
        return (
            f"{tuning.measure} of {len(tuning.topic_ids):,} topics against {' and '.join(names)}{best}: the mean over all "
            f"topics for {len(tuning.trials):,} settings, what {len(tuning.folds)} folds chose, and the final setting."
        )

    return drawn(draw, 4.2)


def _curve(axes: Any, tuning: Tuning, name: str) -> None:
    """The best mean over one parameter."""
    place = _places(tuning, name)
    best: dict[float, float] = {}
    for trial in tuning.trials:
        at = place(trial.params[name])
        best[at] = max(best.get(at, -np.inf), trial.score)
    points = sorted(best.items())
    # Settings that were drawn at random differ in the other parameters as well: no line from one to the next.
    drawn_alone = len(tuning.space) > 1 and tuning.method != "grid"
    style = {"color": BLUE, "marker": "o", "markersize": 3, "linestyle": "none" if drawn_alone else "-"}
    axes.plot(*zip(*points, strict=True), **style, label="mean over all topics")
    for number, (value, count) in enumerate(Counter(place(fold.params[name]) for fold in tuning.folds).items()):
        style = {"color": ORANGE, "markeredgecolor": INK, "markersize": 6 + 2 * count, "linestyle": "none"}
        axes.plot(value, best[value], "s", **style, label=None if number else CHOSEN)
    final = place(tuning.params[name])
    axes.plot(final, tuning.best.score, "*", color="white", markeredgecolor=INK, markersize=11, linestyle="none", label="final")
    if tuning.default is not None and tuning.default_values is not None:
        axes.axhline(float(tuning.default_values.mean()), color=INK, linestyle=":", linewidth=1, label="as given")
    axes.set_xlabel(name)
    axes.set_ylabel(str(tuning.measure))
    axes.margins(y=0.12)
    _ticks(axes.xaxis, tuning, name)


def _map(figure: Any, axes: Any, tuning: Tuning, x: str, y: str) -> None:
    """The best mean over two parameters."""
    place_x, place_y = _places(tuning, x), _places(tuning, y)
    best: dict[tuple[float, float], float] = {}
    for trial in tuning.trials:
        at = place_x(trial.params[x]), place_y(trial.params[y])
        best[at] = max(best.get(at, -np.inf), trial.score)
    xs, ys = sorted({at[0] for at in best}), sorted({at[1] for at in best})
    if len(best) == len(xs) * len(ys) and len(xs) > 1 and len(ys) > 1:
        grid = np.array([[best[a, b] for a in xs] for b in ys])
        mesh = axes.pcolormesh(xs, ys, grid, cmap="viridis", shading="nearest")
        if min(grid.shape) > 2:
            lines = axes.contour(xs, ys, grid, levels=8, colors="white", linewidths=0.5)
            axes.clabel(lines, fontsize="x-small", fmt="%.3g")
    else:
        points = np.array([*best])
        mesh = axes.scatter(points[:, 0], points[:, 1], c=list(best.values()), cmap="viridis", s=22, label="settings")
    figure.colorbar(mesh, ax=axes, label=str(tuning.measure))
    chosen = Counter((place_x(fold.params[x]), place_y(fold.params[y])) for fold in tuning.folds)
    for number, (at, count) in enumerate(chosen.items()):
        style = {"color": ORANGE, "markeredgecolor": INK, "markersize": 6 + 2 * count, "linestyle": "none"}
        axes.plot(*at, "s", **style, label=None if number else CHOSEN)
    final = place_x(tuning.params[x]), place_y(tuning.params[y])
    axes.plot(*final, "*", color="white", markeredgecolor=INK, markersize=11, linestyle="none", label="final")
    default = tuning.default
    if default is not None and _shown(tuning, x, default[x]) and _shown(tuning, y, default[y]):
        at = place_x(default[x]), place_y(default[y])
        axes.plot(*at, "X", color="white", markeredgecolor=INK, markersize=8, linestyle="none", label="as given")
    axes.grid(False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    _ticks(axes.xaxis, tuning, x)
    _ticks(axes.yaxis, tuning, y)


def _numeric(tuning: Tuning, name: str) -> bool:
    """Whether the values of a parameter are numbers."""
    axis = tuning.space[name]
    return not isinstance(axis, Values) or axis.ordered


def _places(tuning: Tuning, name: str) -> Any:
    """From a value to where it is drawn: a number at its value, anything else at its place in the list."""
    if _numeric(tuning, name):
        return float
    values = list(map(repr, tuning.space[name].values))  # type: ignore[union-attr]
    return lambda value: float(values.index(repr(value)))


def _shown(tuning: Tuning, name: str, value: Any) -> bool:
    """Whether the value has a place in the plot."""
    axis = tuning.space[name]
    if axis.ends is not None:
        return isinstance(value, (int, float)) and axis.ends[0] <= value <= axis.ends[1]
    return isinstance(axis, Values) and repr(value) in map(repr, axis.values)


def _ticks(axis: Any, tuning: Tuning, name: str) -> None:
    """The values of a parameter that are no numbers, at the axis."""
    if not _numeric(tuning, name):
        values = tuning.space[name].values  # type: ignore[union-attr]
        axis.set_ticks(range(len(values)), [str(value) for value in values])
