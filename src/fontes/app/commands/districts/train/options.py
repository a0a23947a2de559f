"""What the trainings of rerankers and encoders have in common on the command line: options, and what is said at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .....train import Training

Output = Annotated[Path, typer.Option("-o", "--output", help="The folder of the model to make.", show_default=False)]
Epochs = Annotated[int | None, typer.Option(help="Passes over the examples.", show_default="2")]
Rate = Annotated[float | None, typer.Option(help="The greatest learning rate.", show_default="2e-05")]
WarmUp = Annotated[
    float | None,
    typer.Option(help="The steps in which the rate rises: a share below 1, or a number from 1 up.", show_default="0.1"),
]
Decay = Annotated[float | None, typer.Option("--weight-decay", help="Of AdamW.", show_default="0")]
Order = Annotated[
    str | None, typer.Option(help="length: batches of like length; shuffled: batches of any rows.", show_default="length")
]
Dropout = Annotated[float | None, typer.Option(help="While training; 0 is quicker.", show_default="the start's")]
Precision = Annotated[str | None, typer.Option(help="auto, float32 or bfloat16.", show_default="auto")]
Evaluations = Annotated[int | None, typer.Option(help="How often an epoch is validated.", show_default="2")]
ValidationFile = Annotated[
    str | None, typer.Option("--validation", help="Examples to validate on.", show_default="queries that are held out")
]
HeldOut = Annotated[float | None, typer.Option(help="The share of queries to validate on.", show_default="0.1")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there.")]

START = "sentence-transformers/all-MiniLM-L6-v2"


def chosen(settings: type[BaseModel], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a command line names.

    Args:
        settings: The class of the settings.
        arguments: The command's arguments by name; those that are no settings, or None, are left out.
    """
    return {name: arguments[name] for name in settings.model_fields if arguments.get(name) is not None}


def report(output: Path, training: Training, use: str, json: bool) -> None:
    """Says what was trained, and which expression uses it; or prints all of it as JSON."""
    from ....output import counted, print_json, say

    if json:
        print_json(training.to_dict())
        return
    rows, steps = counted(training.rows, "row"), counted(training.steps, "step")
    seconds = training.seconds
    took = f"{seconds:.2f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    say(f"{output}: a {training.kind} from {rows} in {steps} and {took}, from {training.base}")
    if training.facts.get("new_head"):
        say(f"the start has no layer for scores: a new one was made by the seed {training.settings['seed']}")
    if training.figures:
        figures = ", ".join(f"{name} {value:.4f}" for name, value in training.figures.items())
        say(f"best after step {training.best:,}: validation {figures}")
    say(f"use it as {use}")
