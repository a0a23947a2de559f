"""Common parts of plots: size, colours, labels at the ends of lines, and saving."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import MissingExtraError, ParameterError
from ..storage.files import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ..index import Index

# Okabe and Ito 2008, without the yellow, which is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
LINES = ("-", "--", "-.", ":", (0, (5, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 1)), (0, (8, 2)), (0, (3, 1)))
INK = "#222222"
STYLE = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "fontes",
    "pdf.fonttype": 42,
}
METADATA: dict[str, dict[str, object]] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
LABEL_DISTANCE = 12.0  # points from one label to the next
AXES_SHARE = 0.78  # height of the axes as a share of the figure's
WIDTH, HEIGHT = 6.3, 3.6  # inches: the width of the text on a page of A4


class Plot:
    """A figure and its caption, displayed by notebooks.

    Attributes:
        figure: A `matplotlib.figure.Figure`, created without pyplot: no window, backend or setting of the caller changes.
        caption: A sentence with all parameters and the method of a fit.
    """

    def __init__(self, figure: Figure, caption: str) -> None:
        self.figure = figure
        self.caption = caption

    def save(self, path: str | Path, dpi: int = 300) -> None:
        """Write the figure; equal figures give equal bytes.

        Args:
            path: The file, with the suffix .svg, .png or .pdf.
            dpi: Dots per inch, for .png.
        """
        write(path, [self.to_bytes(format_of(path), dpi)])

    def to_bytes(self, format: str, dpi: int = 300) -> bytes:
        """Return the figure as bytes in a format, "svg", "png" or "pdf", with `dpi` dots per inch for "png"."""
        if format not in METADATA:
            raise ParameterError(f"a plot cannot be written as '{format}'; there are {', '.join(METADATA)}")
        memory = io.BytesIO()
        with style():
            self.figure.savefig(memory, format=format, dpi=dpi, metadata=METADATA[format])
        return memory.getvalue()

    def _repr_svg_(self) -> str:
        return self.to_bytes("svg").decode()

    def __repr__(self) -> str:
        return f"Plot({self.caption!r})"


def draw_plot(draw: Callable[[Figure], str], height: float = HEIGHT, width: float = WIDTH) -> Plot:
    """Return a plot drawn by a function that gets an empty figure and returns the caption; sizes are in inches."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        caption = draw(figure)
    return Plot(figure, caption)


def style() -> AbstractContextManager[None]:
    """Return a context with Matplotlib's defaults and the settings of STYLE; raise MissingExtraError without Matplotlib."""
    try:
        from matplotlib import style as styles
    except ImportError:
        raise MissingExtraError.of("matplotlib", "plots", "a plot") from None
    context: AbstractContextManager[None] = styles.context(STYLE, after_reset=True)
    return context


def format_of(path: str | Path) -> str:
    """Return the format named by the suffix of a path; raise ParameterError for an unknown one."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in METADATA:
        raise ParameterError(f"{path}: a plot is written as {', '.join('.' + f for f in METADATA)}; choose a name that ends so")
    return ending


def require_terms(index: Index) -> None:
    """Raise ParameterError for an index of vectors or without terms."""
    if index.scale is not None:
        raise ParameterError(f"{index.path} holds vectors, which have no term frequencies; plots need an index of texts")
    if not index.tokens:
        raise ParameterError(f"{index.path} holds no terms; there is nothing to plot")


def line_style(number: int) -> dict[str, Any]:
    """Return colour and line style of line `number`, from 0; both differ between lines, for print in grey."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)]}


def label_ends(axes: Axes, lines: Iterable[tuple[Line2D, str]]) -> None:
    """Label lines beside their right ends, with labels moved apart if they would overlap.

    A line that leaves the axes earlier is labelled where it leaves them. The limits of the axes must be set already.
    """
    figure: Any = axes.figure
    to_axes = axes.transData + axes.transAxes.inverted()
    labelled = []
    for line, label in lines:
        end = _visible_end(axes, line)
        x, y = to_axes.transform(end).tolist()
        if x > 0.99:
            labelled.append((line, label, end, y))
        else:
            axes.annotate(label, end, (-10, 4), textcoords="offset points", ha="right")
    gap = LABEL_DISTANCE / (72 * AXES_SHARE * figure.get_size_inches()[1])
    for (line, label, end, _), height in zip(labelled, spaced([y for *_, y in labelled], gap), strict=True):
        axes.annotate(
            label,
            xy=end,
            xytext=(1.04, height),
            textcoords="axes fraction",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def plain_ticks(*logarithmic: Axis) -> None:
    """Label logarithmic axes with plain numbers: 1,000 for 10³; also 20 and 50 if there is room."""
    for axis in logarithmic:
        low, high = axis.get_view_interval()
        minor_digits = (2, 5) if high / low < 300 else ()

        def minor_label(value: float, _: object, digits: tuple[int, ...] = minor_digits) -> str:
            return f"{value:,.10g}" if int(f"{value:e}"[0]) in digits else ""  # the first digit

        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_formatter(minor_label)


def spaced(heights: Sequence[float], gap: float) -> list[float]:
    """Return heights (0 to 1) moved apart as little as needed for a distance of `gap`, in the same order."""
    order = np.argsort(np.asarray(heights), kind="stable")
    # Groups of labels that touch, each (sum of its heights, size): merged as long as a group overlaps the one below.
    groups: list[tuple[float, int]] = []
    for i in order:
        groups.append((heights[i], 1))
        while len(groups) > 1:
            (below, m), (above, n) = groups[-2:]
            if _start(above, n, gap) - _start(below, m, gap) >= m * gap:
                break
            groups[-2:] = [(below + above, m + n)]
    placed = [0.0] * len(heights)
    position = iter(order)
    for total, size in groups:
        start = _start(total, size, gap)
        for i in range(size):
            placed[next(position)] = start + i * gap
    limit = 1.0
    for i in order[::-1]:
        placed[i] = min(placed[i], limit)
        limit = placed[i] - gap
    return placed


def _visible_end(axes: Axes, line: Line2D) -> tuple[float, float]:
    points = np.asarray(line.get_xydata(), dtype=np.float64)
    low, high = axes.get_ylim()
    inside = np.flatnonzero((points[:, 1] >= low) & (points[:, 1] <= high))
    x, y = points[inside[-1]].tolist()
    return x, y


def _start(total: float, size: int, gap: float) -> float:
    """Height of the lowest of `size` labels whose mean height is total / size."""
    return total / size - gap * (size - 1) / 2
