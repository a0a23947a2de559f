"""How a term classifier is trained: the settings, checked when they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from ...core.errors import ParameterError
from ..runner.settings import Settings


class TermSettings(Settings):
    """How a term classifier is trained.

    Attributes:
        epochs: Passes over the topics.
        minutes: Stop after so many, with what was learned by then; None: no limit.
        batch: Topics of a step.
        lr: The greatest learning rate of AdamW: it rises over the first tenth and falls to 0 at the end.
        dropout: Of the hidden layers, while training; from 0 to below 1.
        max_length: Tokens of an input, 8 at least.
        answers: Of how many turns before the current one the answers belong to the history.
        weight: How much a relevant word counts in the loss against another.
        held_out: The share of conversations kept out, half to choose the threshold on and half to measure with; above 0 and
            below 1.
        limit: At most so many topics, the first after the shuffle; None: all.
        analyzer: Whose stems and stop words say which words are relevant.
        precision: Of the products of matrices: "float32", "bfloat16", or "auto": bfloat16 where the device computes in it.
        seed: Of the order, the part held out and the dropout; below 2**32.

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    epochs: int = Field(default=3, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    batch: int = Field(default=16, gt=0)
    lr: float = Field(default=1.5e-4, gt=0, allow_inf_nan=False)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_length: int = Field(default=256, ge=8)
    answers: int = Field(default=0, ge=0)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    held_out: float = Field(default=0.05, gt=0, lt=1)
    limit: int | None = Field(default=None, gt=0)
    analyzer: str = "english"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = Field(default=0, ge=0, lt=2**32)


def check_finite(settings: TermSettings, values: Sequence[float]) -> None:
    """Raises ParameterError where a loss or a probability is no number any more."""
    if not np.isfinite(values).all():
        raise ParameterError(f"with lr={settings.lr:g} and weight={settings.weight:g} the numbers overflow: take less")
