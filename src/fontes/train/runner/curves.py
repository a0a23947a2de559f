"""The learning curves of a training: the loss of its steps, and what was validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...plots.plot import Plot, drawn, look
from .settings import LOSS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 100  # means of the steps' losses that are drawn


def learning_curves(losses: Sequence[float], evaluations: Sequence[Mapping[str, float]], best: int) -> Plot:
    """The loss while a model was trained, and what was validated; the step that was chosen is marked.

    Args:
        losses: The loss of each step; what is drawn are means of up to a hundred parts.
        evaluations: What was measured when: "step", "loss", and a measure by its name.
        best: The step that was chosen.

    Raises:
        MissingExtraError: There is no matplotlib.
    """
    names = list(dict.fromkeys(name for row in evaluations for name in row if name not in ("step", LOSS)))
    parts = np.array_split(np.arange(1, len(losses) + 1), min(POINTS, len(losses)))
    steps = [float(part[-1]) for part in parts]
    means = [float(np.mean([losses[n - 1] for n in part])) for part in parts]

    def draw(figure: Figure) -> str:
        every = np.atleast_1d(figure.subplots(1, 1 + len(names), sharex=True))
        every[0].plot(steps, means, label="training", **look(0))
        for number, (axes, name) in enumerate(zip(every, [LOSS, *names], strict=True), 1):
            rows = [row for row in evaluations if name in row]
            if rows:
                values = [row[name] for row in rows]
                axes.plot([row["step"] for row in rows], values, marker="o", markersize=3, label="validation", **look(number))
                axes.axvline(best, color="#7F7F7F", linewidth=0.8)
            axes.set(xlabel="step", ylabel=name)
            axes.xaxis.get_major_locator().set_params(integer=True)  # there is no half step
            axes.legend(frameon=False)
        measured = " and ".join([LOSS, *names])
        return f"the {measured} while training; the line marks step {best:,}, which was chosen"

    return drawn(draw)
