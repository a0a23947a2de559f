"""How a cross-encoder is trained: its settings, and those of published trainings."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ..core.errors import ParameterError
from .runner.settings import LAST, LOSS, FitSettings


class CrossEncoderSettings(FitSettings):
    """How a cross-encoder is trained.

    The defaults are those of the preset "air2025" (see `PRESETS`).

    Attributes:
        loss: "bce": binary cross-entropy of each pair of a query and a document; "margin": a hinge on how far the score of the
            relevant document lies above that of each other; "lambda": LambdaLoss over each group; "teacher": the squared error
            of these distances against a teacher's, whose scores the examples carry (MarginMSE).
        batch: Rows of a step: pairs with "bce", and groups, each of an example with all its documents, with the others.
        margin: How far above the others the relevant document is to lie, with "margin".

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    loss: Literal["bce", "margin", "lambda", "teacher"] = "bce"
    margin: float = Field(default=1.0, gt=0, allow_inf_nan=False)


PRESETS = {
    "air2025": CrossEncoderSettings(loss="bce", batch=16, epochs=2, held_out=0.1, best=LOSS),
    "air2025-run": CrossEncoderSettings(
        loss="bce",
        batch=16,
        epochs=2,
        lr=2e-5,
        warm_up=10_000,
        weight_decay=0.01,
        order="shuffled",
        held_out=0.0,
        best=LAST,
        precision="float32",
    ),
}
"""Published trainings. "air2025" is that of the CheckThat! 2025 report: binary cross-entropy, batches of 16, two epochs, the
checkpoint of least validation loss. The report names no validation set, so a tenth of the training queries is held out, and no
learning rate, so it is sentence-transformers' customary 2e-5, which rises over the first tenth of the steps.

"air2025-run" is what the notebook of the same authors runs: `CrossEncoder.fit` of sentence-transformers with two epochs and
shuffled batches of 16, all else by default: a learning rate of 2e-5 after 10,000 warm-up steps, weight decay .01, and, without
evaluations, the last state. With 11,392 tweets there are 7,120 steps, in which the rate rises to 1.42e-5."""


def settings_of(preset: str | None = None, **changes: Any) -> CrossEncoderSettings:
    """The settings of a preset, or the defaults, with changes.

    Args:
        preset: Its name; None: the defaults.
        **changes: Settings by name.

    Raises:
        ParameterError: There is no such preset, or a setting makes no sense.
    """
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"there is no preset '{preset}'; there are {', '.join(PRESETS)}")
    return (CrossEncoderSettings() if preset is None else PRESETS[preset]).with_(**changes)
