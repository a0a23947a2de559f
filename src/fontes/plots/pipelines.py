"""Plots of pipelines: a box for each stage, from the topics to the run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.errors import ParameterError
from ..core.part import index_names, walk
from ..core.stage import Cut, Pipeline, Scaled, Stage, Sum, steps
from .plot import INK, WIDTH, Plot, draw_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AnyStage = Stage[Any, Any]
Cell = tuple[int, float]
"""A column and a row; a row may lie halfway between two others."""

COLOURS = {  # by input and output of a stage
    ("Topics", "Topics"): ("rewrites", "#dcebf7"),
    ("Topics", "Run"): ("retrieves", "#d9efe6"),
    ("Run", "Run"): ("reranks", "#fbe8d3"),
    ("Run", "Topics"): ("feeds back", "#f3e0ec"),
}
MAX_LETTERS = 30  # maximum letters of a line in a box
LETTER_WIDTH, LINE_HEIGHT = 0.066, 0.135  # inches: the width of a letter and the height of a line in a box
PADDING, GAP = 0.09, 0.34  # inches: around the text of a box, and between columns
MAX_STAGES = 400  # stages of a plot


@dataclass(frozen=True)
class Box:
    """A stage in the plot; without a colour only its text is drawn."""

    column: int
    row: float
    title: str
    lines: tuple[str, ...] = ()
    colour: str = "white"


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows, in cells relative to the diagram's corner.

    Args:
        columns: Number of columns.
        rows: Number of rows.
        boxes: The boxes.
        arrows: Arrows between the cells of two boxes.
        first: Cells of the boxes that incoming arrows reach.
        last: Cells of the boxes that outgoing arrows leave.
    """

    columns: int
    rows: float
    boxes: tuple[Box, ...]
    arrows: tuple[tuple[Cell, Cell], ...]
    first: tuple[Cell, ...]
    last: tuple[Cell, ...]

    def moved(self, columns: int, rows: float) -> Diagram:
        """Return the diagram moved to the right and down."""
        first, last = ([(c + columns, r + rows) for c, r in cells] for cells in (self.first, self.last))
        arrows = [((a + columns, b + rows), (c + columns, d + rows)) for (a, b), (c, d) in self.arrows]
        boxes = [replace(box, column=box.column + columns, row=box.row + rows) for box in self.boxes]
        return Diagram(self.columns, self.rows, tuple(boxes), tuple(arrows), tuple(first), tuple(last))


def pipeline(stage: AnyStage) -> Plot:
    """Plot a pipeline as boxes and arrows.

    Each box is a stage with the parameters that its text shows, coloured by its input and output. The stages of a sum or a
    fusion are stacked and meet in a box of their own.

    Args:
        stage: Any stage; from text by `ft.pipeline(text, index)`.

    Raises:
        ParameterError: It has more than 400 stages.
        MissingExtraError: matplotlib is missing.
    """
    if (count := sum(isinstance(part, Stage) for part in walk(stage))) > MAX_STAGES:
        raise ParameterError(f"a pipeline of {count:,} stages is too large to draw; at most {MAX_STAGES}")
    terminals = [_leaf(Box(0, 0, kind.__name__.lower(), colour="")) for kind in (stage.takes, stage.gives)]
    block = _in_row([terminals[0], _stage_diagram(stage), terminals[1]])
    widths = [max(_width(box) for box in block.boxes if box.column == column) for column in range(block.columns)]
    lefts = [sum(widths[:column]) + GAP * column for column in range(block.columns)]
    height = max(_height(box) for box in block.boxes) + 0.25
    size = lefts[-1] + widths[-1], height * block.rows

    def draw(figure: Figure) -> str:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-0.05, max(size[0], WIDTH) + 0.05)
        axes.set_ylim(size[1] + 0.05, -0.05)
        box_at = {(box.column, box.row): box for box in block.boxes}
        for source, target in block.arrows:
            _draw_arrow(axes, [lefts[source[0]], lefts[target[0]]], box_at[source], box_at[target], height)
        for box in block.boxes:
            _draw_box(axes, lefts[box.column], box, height)
        return f"the pipeline {stage!r}, from {terminals[0].boxes[0].title} to {terminals[1].boxes[0].title}"

    return draw_plot(draw, size[1] + 0.1, max(size[0], WIDTH) + 0.1)


def _stage_diagram(stage: AnyStage) -> Diagram:
    if isinstance(stage, Pipeline):
        return _in_row([_stage_diagram(step) for step in steps(stage)])
    if isinstance(stage, Scaled):
        return _in_row([_stage_diagram(stage.stage), _leaf(Box(0, 0, f"{stage.weight:g} ×"))])
    if isinstance(stage, Sum):
        return _fork(stage.stages, Box(0, 0, "+"))
    colour = COLOURS[stage.takes.__name__, stage.gives.__name__][1]
    if isinstance(stage, Cut):
        return _leaf(Box(0, 0, f"% {stage.k}", colour=colour))
    title, *lines = [stage.name, *_parameters(stage)] if stage.name else textwrap.wrap(repr(stage), MAX_LETTERS)
    box = Box(0, 0, title, tuple(lines), colour)
    inner = getattr(stage, stage.variadic) if stage.variadic else ()
    if inner and all(isinstance(part, Stage) for part in inner):
        return _fork(inner, replace(box, colour="white"))
    return _leaf(box)


def _parameters(stage: AnyStage) -> Iterator[str]:
    text = stage.written(index_names(stage), strict=False)
    for key, value in stage.shown().items():
        if key != stage.variadic:
            yield from textwrap.wrap(f"{key}={value!r}", MAX_LETTERS, subsequent_indent="  ")
    if " % " in text.rpartition(")")[2]:
        yield f"%{text.rpartition('%')[2]}"


def _leaf(box: Box) -> Diagram:
    return Diagram(1, 1, (box,), (), ((0, 0),), ((0, 0),))


def _in_row(blocks: Sequence[Diagram]) -> Diagram:
    rows = max(block.rows for block in blocks)
    row = Diagram(0, rows, (), (), (), ())
    for block in blocks:
        block = block.moved(row.columns, (rows - block.rows) / 2)
        arrows = tuple((source, target) for source in row.last for target in block.first)
        columns = block.columns + row.columns
        row = Diagram(
            columns, rows, row.boxes + block.boxes, row.arrows + block.arrows + arrows, row.first or block.first, block.last
        )
    return row


def _fork(stages: Sequence[AnyStage], box: Box) -> Diagram:
    blocks: list[Diagram] = []
    for stage in stages:
        blocks.append(_stage_diagram(stage).moved(0, sum(block.rows for block in blocks)))
    columns, rows = max(block.columns for block in blocks), sum(block.rows for block in blocks)
    parts = [tuple(item for block in blocks for item in getattr(block, part)) for part in ("boxes", "arrows", "first", "last")]
    stack = Diagram(columns, rows, *parts)
    return _in_row([stack, _leaf(box)])


def _width(box: Box) -> float:
    return LETTER_WIDTH * max(map(len, (box.title, *box.lines))) + 2 * PADDING


def _height(box: Box) -> float:
    return LINE_HEIGHT * (1 + len(box.lines)) + 2 * PADDING


def _draw_box(axes: Axes, left: float, box: Box, height: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    middle, half = height * (box.row + 0.5), _height(box) / 2
    if box.colour:
        shape = FancyBboxPatch(
            (left, middle - half),
            _width(box),
            2 * half,
            "round,pad=0,rounding_size=0.05",
            facecolor=box.colour,
            edgecolor=INK,
            lw=0.8,
        )
        axes.add_patch(shape)
    for number, line in enumerate((box.title, *box.lines)):
        weight = "bold" if not number and box.colour else "normal"
        position = left + PADDING, middle - half + PADDING + LINE_HEIGHT * (number + 0.5)
        axes.text(*position, line, fontsize=7, family="monospace", weight=weight, va="center", parse_math=False)


def _draw_arrow(axes: Axes, lefts: Sequence[float], source: Box, target: Box, height: float) -> None:
    """Draw an arrow between boxes; it is level as far as the last gap between columns, so that it crosses no box."""
    start, end = (lefts[0] + _width(source), height * (source.row + 0.5)), (lefts[1], height * (target.row + 0.5))
    bend = max(start[0], lefts[1] - GAP)
    axes.plot([start[0], bend], [start[1], start[1]], color=INK, linewidth=0.8)
    arrow = {"arrowstyle": "->", "color": INK, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, (bend, start[1]), arrowprops=arrow)
