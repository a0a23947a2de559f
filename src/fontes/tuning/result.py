"""Result of `tune` as values, text and plot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from ..core import ParameterError, Run, Stage, Topics
from ..core.arrays import Bools, Float64s, Int64s
from ..core.parameters import parameters
from ..core.part import walk
from ..measures.measure import Measure
from ..plots.plot import COLOURS, INK, Plot, draw_plot
from ..plots.tables import ResultTable, TableReport, latex_text
from .space import Choices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from ..plots.plot import Plot
    from .space import Axis as ParameterAxis, Setting


Choice = TypeVar("Choice")
NEAR_EDGE = 0.02  # distance from an edge of a range without steps, as a share of the range


@dataclass(frozen=True, eq=False)
class Trial:
    """A scored setting, with the measure of each topic (float64) in id order."""

    params: Setting
    values: Float64s = field(repr=False)

    @property
    def score(self) -> float:
        """Mean over all topics, including those used to choose the setting."""
        return float(self.values.mean())


@dataclass(frozen=True, eq=False)
class Fold(Generic[Choice]):
    """A held-out fold.

    Args:
        choice: What was chosen on the other folds: a setting of `tune`, a pipeline of `fit`, weights of `fit_weights`.
        topics: Positions of the fold's topics in `topic_ids`, int64.
        values: The measure of each topic under the choice, float64.
        chosen: Mean of the choice over the other folds; the sum for a count.
    """

    choice: Choice
    topics: Int64s = field(repr=False)
    values: Float64s = field(repr=False)
    chosen: float


def cross_validated(
    fold_of: Int64s, choose: Callable[[int, Bools], Choice], values_of: Callable[[Choice, Bools], Float64s], measure: Measure
) -> tuple[Fold[Choice], ...]:
    """Choose on the other folds, and measure the choice on each fold.

    Args:
        fold_of: The fold of each topic, from 0.
        choose: Returns the choice for a fold from the mask of the other topics.
        values_of: Returns the measure of each topic under a choice, needed only where the mask is true.
        measure: The measure.
    """
    folds = []
    for fold in range(int(fold_of.max()) + 1):
        held_out = fold_of == fold
        choice = choose(fold, ~held_out)
        values, chosen = values_of(choice, held_out)[held_out], values_of(choice, ~held_out)[~held_out]
        folds.append(Fold(choice, np.flatnonzero(held_out), values, total_of(measure, chosen)))
    return tuple(folds)


def held_out_values(folds: Sequence[Fold[Choice]]) -> Float64s:
    """Return the measure of all topics under what the other folds chose, read-only."""
    values = np.zeros(sum(len(fold.topics) for fold in folds), dtype=np.float64)
    for fold in folds:
        values[fold.topics] = fold.values
    values.setflags(write=False)
    return values


def total_of(measure: Measure, values: Float64s) -> float:
    """Return the mean of values of topics, or the sum for a count."""
    return float(values.sum() if measure.summed else values.mean())


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut(TableReport, Generic[Choice]):
    """Base of results of a search by cross-validation: `print` shows it, `save` writes it.

    Args:
        measure: The maximised measure.
        topic_ids: The judged topics, in the order of the values.
        units: The group number of each topic, int64.
        folds: For each fold, what was chosen without it, and its values on the fold.
        baseline_values: The measure of each topic for the baseline, float64; None without one.
    """

    BASELINE: ClassVar[str] = "baseline"

    measure: Measure
    topic_ids: tuple[str, ...]
    units: Int64s = field(repr=False)
    folds: tuple[Fold[Choice], ...]
    baseline_values: Float64s | None = field(repr=False)

    @cached_property
    def values(self) -> Float64s:
        """Held-out measure of each topic, float64, in the order of `topic_ids`."""
        return held_out_values(self.folds)

    @property
    def score(self) -> float:
        """Mean of the held-out values; the sum for a count."""
        return total_of(self.measure, self.values)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95% interval of the mean of `values`, clustered by unit.

        Raises:
            ParameterError: There are fewer than two units.
        """
        return interval(self.values, self.units)

    @property
    def difference(self) -> float | None:
        """Mean over topics of the held-out value minus that of the baseline; None without one."""
        return None if self.baseline_values is None else float((self.values - self.baseline_values).mean())

    @cached_property
    def difference_interval(self) -> tuple[float, float] | None:
        """95% interval of `difference`, paired by topic and clustered by unit."""
        return None if self.baseline_values is None else interval(self.values - self.baseline_values, self.units)

    def _facts(self) -> dict[str, object]:
        """Return the figures of all results as JSON values."""
        return {
            "measure": str(self.measure),
            "topics": len(self.topic_ids),
            "groups": len(set(self.units.tolist())),
            "score": self.score,
            "interval": list(self.interval),
            "difference": self.difference,
            "difference_interval": None if self.difference_interval is None else list(self.difference_interval),
        }

    def _title(self, of_baseline: str = "") -> list[str]:
        """Return the lines of the held-out mean, the baseline, described by a text, and their difference."""
        lines = [f"held out    {self.score:.4f}  {between(self.interval)}"]
        if self.baseline_values is not None and self.difference_interval is not None:
            bounds = interval(self.baseline_values, self.units)
            baseline = f"{self.BASELINE:<10}  {self.baseline_values.mean():.4f}  {between(bounds)}  {of_baseline}".rstrip()
            lines += [baseline, f"difference {self.difference:+.4f}  {between(self.difference_interval, '+')}"]
        return lines

    def _folds_table(self, columns: Sequence[str], cells: Callable[[Choice], Iterable[str]]) -> ResultTable:
        """Return a table with a row per fold; `columns` are those of a choice, and `cells` returns its texts."""
        baseline = [] if self.baseline_values is None else [self.BASELINE]
        rows = []
        for number, fold in enumerate(self.folds, 1):
            values = [fold.values] if self.baseline_values is None else [fold.values, self.baseline_values[fold.topics]]
            figures = (fold.chosen, *(total_of(self.measure, column) for column in values))
            rows.append((str(number), str(len(fold.topics)), *cells(fold.choice), *(f"{figure:.4f}" for figure in figures)))
        caption = rf"{latex_text(str(self.measure))} of what the other folds chose, on each fold."
        return ResultTable.of(("fold", "topics", *columns, "chosen at", "held out", *baseline), rows, 0, caption=caption)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(HeldOut["Setting"]):
    """Result of `tune`.

    Args:
        measure: The maximised measure.
        topic_ids: The judged topics, in id order.
        units: The group number of each topic, int64.
        folds: For each fold, the setting chosen without it and its values on the fold.
        baseline_values: The measure of each topic under the original parameters, float64, or None.
        method: Search method: "grid", "random" or "tpe".
        space: The parsed values of each parameter.
        trials: All scored settings.
        stage: The stage with the final parameters, which have the best mean over all topics.
        default: The original parameters; None for a function with a parameter that has no default.
        seconds: Duration of the search.
    """

    TITLE = "Tuning"
    LABEL = "tab:tuning"
    BASELINE = "as given"

    method: str
    space: dict[str, ParameterAxis]
    trials: tuple[Trial, ...]
    stage: Stage[Topics, Run]
    default: Setting | None
    seconds: float

    @cached_property
    def best(self) -> Trial:
        """Trial with the best mean over all topics, of equals the present values; its score is not held out."""
        return max(self.trials, key=lambda trial: (trial.score, trial.params == self.default))

    @property
    def params(self) -> Setting:
        """Final parameters."""
        return self.best.params

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each parameter whose best values all lie at an edge of the space."""
        best = [trial for trial in self.trials if trial.score == self.best.score]
        limits = {name: parameter.limits for part in walk(self.stage) for name, parameter in parameters(type(part)).items()}
        sentences = []
        for name, axis in self.space.items():
            if axis.ends is None:
                continue
            low, high = axis.ends
            slack = 0.0 if hasattr(axis, "values") else NEAR_EDGE * (high - low)
            minimum, maximum = limits.get(name.rpartition("__")[2].partition(".")[0], (-math.inf, math.inf))
            best_values = [trial.params[name] for trial in best]
            shown = f"{name}={_format_value(self.params[name])}"
            if all(value <= low + slack for value in best_values) and low > minimum:
                sentences.append(f"{shown} is at the lower end of the space; smaller values may do better")
            elif all(value >= high - slack for value in best_values) and high < maximum:
                sentences.append(f"{shown} is at the upper end of the space; larger values may do better")
            elif all(value <= minimum or value >= maximum for value in best_values):
                sentences.append(f"{shown} is the last value that {name} can have")
        return tuple(sentences)

    def to_dict(self, trials: bool = True) -> dict[str, Any]:
        """Return JSON values.

        Args:
            trials: Whether to include the trials.
        """
        baseline, original = self.baseline_values, None
        if baseline is not None:
            original = {"params": _json_setting(self.default or {}), "score": float(baseline.mean())}
        plain = self._facts() | {
            "method": self.method,
            "default": original,
            "params": _json_setting(self.params),
            "score_where_chosen": self.best.score,
            "folds": [
                {
                    "params": _json_setting(fold.choice),
                    "topics": len(fold.topics),
                    "score_where_chosen": fold.chosen,
                    "score": float(fold.values.mean()),
                    "default": None if baseline is None else float(baseline[fold.topics].mean()),
                }
                for fold in self.folds
            ],
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
        }
        if trials:
            plain["trials"] = [{"params": _json_setting(trial.params), "score": trial.score} for trial in self.trials]
        return plain

    def _rows(self) -> list[dict[str, object]]:
        return [{**_json_setting(trial.params), "score": trial.score} for trial in self.trials]

    def plot(self, parameters: str | Sequence[str] | None = None) -> Plot:
        """Plot the mean as a curve over one parameter or a map over two, with the settings that the folds chose.

        Args:
            parameters: One or two names; by default the first two of the space. Over the other parameters the best mean is
                shown.

        Raises:
            ParameterError: A name is not in the space, or the number of names is wrong.
            MissingExtraError: matplotlib is not installed.
        """
        return surface(self, parameters)

    def _head(self) -> list[str]:
        groups = len(set(self.units.tolist()))
        grouped = "" if groups == len(self.topic_ids) else f" in {groups:,} groups"
        title = (
            f"{self.measure} of {len(self.topic_ids):,} topics{grouped}, {len(self.folds)} folds; "
            f"{self.method}, {len(self.trials):,} settings, {self.seconds:.1f} s"
        )
        return [title, "", *self._title(_format_setting(self.default or {}))]

    def _tables(self) -> list[ResultTable]:
        return [self._folds_table(tuple(self.space), lambda setting: (_format_value(setting[name]) for name in self.space))]

    def _notes(self) -> list[str]:
        final = f"final: {_format_setting(self.params)}"
        honest = f"{self.best.score:.4f} on the topics that chose it, which is no estimate for others"
        return [final, honest, *(f"note: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        return f"Tuning({self.measure} {self.score:.4f} held out; {_format_setting(self.params)})"


def interval(values: Float64s, units: Int64s, level: float = 0.95) -> tuple[float, float]:
    """Return Student's t interval of a mean, for values that may depend on each other within a unit.

    The variance is G / (G - 1) · Σ_g (Σ_{i in g} (x_i - mean))² / n² for G units and n values, as for a cluster sample
    (Cochran 1977, ch. 11); with one value per unit it is s² / n.

    Raises:
        ParameterError: There are fewer than two units.
    """
    from scipy.stats import t

    _, unit_numbers = np.unique(units, return_inverse=True)
    count = int(unit_numbers.max()) + 1 if len(unit_numbers) else 0
    if count < 2:
        raise ParameterError("an interval needs two topics, or two groups of topics, or more")
    mean = float(values.mean())
    sums = np.bincount(unit_numbers, weights=values - mean)
    error = math.sqrt(count / (count - 1) * float((sums * sums).sum())) / len(values)
    half_width = float(t.ppf((1 + level) / 2, count - 1)) * error
    return mean - half_width, mean + half_width


def between(bounds: tuple[float, float], sign: str = "") -> str:
    """Return an interval as text."""
    return f"[{bounds[0]:{sign}.4f}, {bounds[1]:{sign}.4f}]"


def _format_setting(setting: Setting) -> str:
    return ", ".join(f"{name}={_format_value(value)}" for name, value in setting.items())


def _format_value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _json_setting(setting: Setting) -> dict[str, object]:
    simple = (bool, int, float, str, type(None))
    return {
        name: value if isinstance(value, simple) else list(value) if isinstance(value, (list, tuple)) else repr(value)
        for name, value in setting.items()
    }


BLUE, ORANGE = COLOURS[0], COLOURS[5]
CHOSEN_LABEL = "chosen by folds (larger: by more)"


def surface(tuning: Tuning, parameters: str | Sequence[str] | None) -> Plot:
    """Plot one or two parameters; see `Tuning.plot`."""
    names = [parameters] if isinstance(parameters, str) else list(parameters or list(tuning.space)[:2])
    for name in names:
        if name not in tuning.space:
            raise ParameterError(f"'{name}' was not tuned; there are {', '.join(tuning.space)}")
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise ParameterError(f"a plot has one or two parameters, not {', '.join(names) or 'none'}")

    def draw(figure: Figure) -> str:
        axes: Axes = figure.subplots()
        if len(names) == 1:
            _curve(axes, tuning, names[0])
        else:
            _map(figure, axes, tuning, *names)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small", columnspacing=1.2)
        other_parameters = [name for name in tuning.space if name not in names]
        best = f", the best over {' and '.join(other_parameters)}" if other_parameters else ""
        return (
            f"{tuning.measure} of {len(tuning.topic_ids):,} topics against {' and '.join(names)}{best}: the mean over all "
            f"topics for {len(tuning.trials):,} settings, what {len(tuning.folds)} folds chose, and the final setting."
        )

    return draw_plot(draw, 4.2)


def _curve(axes: Any, tuning: Tuning, name: str) -> None:
    coordinate = _coordinate(tuning, name)
    best: dict[float, float] = {}
    for trial in tuning.trials:
        x = coordinate(trial.params[name])
        best[x] = max(best.get(x, -np.inf), trial.score)
    points = sorted(best.items())
    # Random settings also differ in the other parameters, so no line connects them.
    is_scattered = len(tuning.space) > 1 and tuning.method != "grid"
    style = {"color": BLUE, "marker": "o", "markersize": 3, "linestyle": "none" if is_scattered else "-"}
    axes.plot(*zip(*points, strict=True), **style, label="mean over all topics")
    chosen = [coordinate(fold.choice[name]) for fold in tuning.folds]
    _draw_choices(axes, [(x, best[x]) for x in chosen], (coordinate(tuning.params[name]), tuning.best.score))
    if tuning.baseline_values is not None:
        axes.axhline(float(tuning.baseline_values.mean()), color=INK, linestyle=":", linewidth=1, label="as given")
    axes.set_xlabel(name)
    axes.set_ylabel(str(tuning.measure))
    axes.margins(y=0.12)
    _ticks(axes.xaxis, tuning, name)


def _map(figure: Figure, axes: Any, tuning: Tuning, x: str, y: str) -> None:
    of_x, of_y = _coordinate(tuning, x), _coordinate(tuning, y)
    best: dict[tuple[float, float], float] = {}
    for trial in tuning.trials:
        point = of_x(trial.params[x]), of_y(trial.params[y])
        best[point] = max(best.get(point, -np.inf), trial.score)
    xs, ys = sorted({point[0] for point in best}), sorted({point[1] for point in best})
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
    chosen = [(of_x(fold.choice[x]), of_y(fold.choice[y])) for fold in tuning.folds]
    _draw_choices(axes, chosen, (of_x(tuning.params[x]), of_y(tuning.params[y])))
    default = tuning.default
    if default is not None and _is_on_axis(tuning, x, default[x]) and _is_on_axis(tuning, y, default[y]):
        point = of_x(default[x]), of_y(default[y])
        axes.plot(*point, "X", color="white", markeredgecolor=INK, markersize=8, linestyle="none", label="as given")
    axes.grid(False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    _ticks(axes.xaxis, tuning, x)
    _ticks(axes.yaxis, tuning, y)


def _draw_choices(axes: Any, chosen: Sequence[tuple[float, float]], final: tuple[float, float]) -> None:
    """Mark the points that the folds chose, larger if more folds chose one, and the final point."""
    for number, (point, count) in enumerate(Counter(chosen).items()):
        style = {"color": ORANGE, "markeredgecolor": INK, "markersize": 6 + 2 * count, "linestyle": "none"}
        axes.plot(*point, "s", **style, label=None if number else CHOSEN_LABEL)
    axes.plot(*final, "*", color="white", markeredgecolor=INK, markersize=11, linestyle="none", label="final")


def _unordered_values(tuning: Tuning, name: str) -> list[object]:
    """Return the values if they are not all numbers, else none."""
    axis = tuning.space[name]
    return list(axis.values) if isinstance(axis, Choices) and not axis.ordered else []


def _coordinate(tuning: Tuning, name: str) -> Callable[[Any], float]:
    """Return a function from values to coordinates: numbers to themselves, other values to their list index."""
    values = list(map(repr, _unordered_values(tuning, name)))
    if not values:
        return float
    return lambda value: float(values.index(repr(value)))


def _is_on_axis(tuning: Tuning, name: str, value: object) -> bool:
    axis = tuning.space[name]
    if axis.ends is not None:
        return isinstance(value, (int, float)) and axis.ends[0] <= value <= axis.ends[1]
    return isinstance(axis, Choices) and repr(value) in map(repr, axis.values)


def _ticks(axis: Axis, tuning: Tuning, name: str) -> None:
    if values := _unordered_values(tuning, name):
        axis.set_ticks(range(len(values)), [str(value) for value in values])
