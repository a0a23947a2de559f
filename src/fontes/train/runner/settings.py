"""Training settings, checked on construction, with a message for each invalid setting."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ...core.errors import ParameterError
from ...measures import DEFAULT, Measure, parse

LOSS, LAST = "loss", "last"  # values of `best` that are not measures
BOUNDS = {
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "finite_number": "finite",
    "multiple_of": "a multiple of {multiple_of}",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a string",
    "literal_error": "{expected}",
}


class Settings(BaseModel):
    """Base class of settings; raises one ParameterError that names all invalid settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **settings: object) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ParameterError("; ".join(map(self._sentence, error.errors()))) from None

    def with_(self, **changes: object) -> Self:
        """Return a copy with changed settings."""
        return type(self)(**{**self.model_dump(), **changes})

    @classmethod
    def _sentence(cls, problem: ErrorDetails) -> str:
        name = problem["loc"][0]
        if problem["type"] == "extra_forbidden":
            return f"there is no setting '{name}'; there are {', '.join(cls.model_fields)}"
        bound = BOUNDS.get(problem["type"])
        if bound is None:
            return f"{name}: {problem['msg']}"
        limits = {key: int(value) if value in (0, 1) else value for key, value in problem.get("ctx", {}).items()}
        return f"{name} must be {bound.format(**limits)}, not {problem['input']!r}"


class FitSettings(Settings):
    """Settings shared by trainings of encoders, rerankers and rewriters.

    Attributes:
        epochs: Passes over the training data.
        batch: Rows per step.
        lr: Peak learning rate of AdamW; warm-up and decay are linear.
        warm_up: Warm-up steps: a share of all if below 1, else a number. If it exceeds the number of steps, the learning rate
            rises to the end and does not reach `lr`.
        weight_decay: AdamW's weight decay, except for biases and layer norms. If above 0, all word embeddings are trained,
            which is slower.
        max_length: Maximum tokens of an input, truncated beyond. None: as the base.
        dropout: Dropout of all layers; None: as the base. Training with 0 is about twice as fast on a CPU.
        held_out: Share of the queries held out for validation, below 1; unused with validation examples.
        order: "length": batches of similar length, with less padding; or "shuffled".
        evaluations: Validations per epoch.
        best: State to keep: the best by "loss" on validation examples or by a measure such as "RR@5", or the "last". With
            "loss" and "last" the validation run is measured by nDCG@10.
        precision: Precision of matrix products: "float32", "bfloat16", or "auto". With "auto" it is bfloat16 if a short
            calibration shows that this is faster, else float32.
        seed: Seed of order, held-out part, dropout and new layers; below 2**32.
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

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        if self.warm_up >= 1 and not self.warm_up.is_integer():
            raise ParameterError(f"warm_up must be a share of the steps below 1, or a number of steps, not {self.warm_up:g}")
        _ = self.measure  # raises for an unknown one

    @property
    def measure(self) -> Measure:
        """Measure of a validation run: `best`, or nDCG@10 if that is not a measure."""
        return parse(self.best if self.by_measure else DEFAULT[0])

    @property
    def by_measure(self) -> bool:
        """Whether the best state is chosen by a measure."""
        return self.best not in (LOSS, LAST)

    @property
    def criterion(self) -> str | None:
        """Name of the value by which the best state is chosen, "loss" or a measure; None if the last state is kept."""
        return None if self.best == LAST else str(self.measure) if self.by_measure else LOSS

    def warm_up_steps(self, steps: int) -> int:
        """Return the number of warm-up steps in a training with a number of steps."""
        return int(self.warm_up) if self.warm_up >= 1 else math.ceil(steps * self.warm_up)
