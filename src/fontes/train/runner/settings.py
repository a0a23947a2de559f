"""Settings of trainings, checked when they are made, with a sentence for each that makes no sense."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...core.errors import ParameterError
from ...measures import DEFAULT, Measure, parse

LOSS, LAST = "loss", "last"  # values of `best` that are no measures
BOUNDS = {
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "finite_number": "finite",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a string",
    "literal_error": "{expected}",
}


class Settings(BaseModel):
    """The base of settings.

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ParameterError("; ".join(map(self._sentence, error.errors()))) from None

    def with_(self, **changes: Any) -> Self:
        """A copy with other settings."""
        return type(self)(**{**self.model_dump(), **changes})

    @classmethod
    def _sentence(cls, problem: Any) -> str:
        """What is wrong with one setting."""
        name = problem["loc"][0]
        if problem["type"] == "extra_forbidden":
            return f"there is no setting '{name}'; there are {', '.join(cls.model_fields)}"
        bound = BOUNDS.get(problem["type"])
        if bound is None:
            return f"{name}: {problem['msg']}"
        limits = {key: int(value) if value in (0, 1) else value for key, value in problem.get("ctx", {}).items()}
        return f"{name} must be {bound.format(**limits)}, not {problem['input']!r}"


class FitSettings(Settings):
    """Settings that all trainings of encoders, rerankers and rewriters share.

    Attributes:
        epochs: Passes over what is learned from.
        batch: Rows of a step.
        lr: The greatest learning rate of AdamW: it rises linearly during the warm-up and then falls linearly to 0.
        warm_up: The steps of the warm-up: a share of all steps, from 0 to below 1; or, from 1 up, a number of steps. With more
            than the training has, the learning rate rises to the end and does not reach `lr`.
        weight_decay: Of AdamW (Loshchilov and Hutter 2019); biases and layer norms have none. With weight decay all rows of the
            word embedding are trained, so that a step takes longer.
        max_length: Tokens of an input; what is longer is cut. None: as the base says.
        dropout: Of all layers, while training; None: as the base says. 0 is about twice as quick on a CPU.
        held_out: The share of the queries that is held out to validate with, where no validation is given; from 0, which holds
            none out, to below 1.
        order: Of the rows in each epoch: "length" makes batches of rows of like length, which saves padding, and shuffles the
            batches; "shuffled" shuffles the rows.
        evaluations: How often an epoch is validated.
        best: Which state is kept: of those that were validated that of the least "loss", or of the greatest value of a measure,
            such as "RR@5", on the validation run; or the "last", whatever was validated. With "loss" and "last" such a run is
            measured by nDCG@10.
        precision: Of the products of matrices: "float32", "bfloat16", or "auto": bfloat16 where a short calibration shows that
            it is quicker here.
        seed: Of the order, the part held out, the dropout and new layers; below 2**32.

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    epochs: int = Field(default=2, gt=0)
    batch: int = Field(default=16, gt=0)
    lr: float = Field(default=2e-5, gt=0, allow_inf_nan=False)
    warm_up: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.0, ge=0, lt=1)
    max_length: int | None = Field(default=None, ge=8)
    dropout: float | None = Field(default=None, ge=0, lt=1)
    held_out: float = Field(default=0.1, ge=0, lt=1)
    order: Literal["length", "shuffled"] = "length"
    evaluations: int = Field(default=2, gt=0)
    best: str = LOSS
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = Field(default=0, ge=0, lt=2**32)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.warm_up >= 1 and not self.warm_up.is_integer():
            raise ParameterError(f"warm_up must be a share of the steps below 1, or a number of steps, not {self.warm_up:g}")
        _ = self.measure  # raises for an unknown one

    @property
    def measure(self) -> Measure:
        """The measure of a validation run: `best`, or nDCG@10 where that is no measure."""
        return parse(self.best if self.by_measure else DEFAULT[0])

    @property
    def by_measure(self) -> bool:
        """Whether the best state is chosen by a measure."""
        return self.best not in (LOSS, LAST)

    @property
    def criterion(self) -> str | None:
        """The name of the figure that the best state is chosen by: the loss or a measure; None where the last state is kept."""
        return None if self.best == LAST else str(self.measure) if self.by_measure else LOSS

    def warm_up_steps(self, steps: int) -> int:
        """The number of warm-up steps in a training of so many steps."""
        return int(self.warm_up) if self.warm_up >= 1 else math.ceil(steps * self.warm_up)
