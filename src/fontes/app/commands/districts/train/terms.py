"""`fontes train terms`: a classifier of terms for conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from .....train import TermTraining


def terms(
    topics: Annotated[
        str, typer.Argument(help="Conversations with manual rewrites: a file of CANARD or CAsT, or -.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the model to make.", show_default=False)],
    base: Annotated[
        str, typer.Option(help="The encoder to start from: a folder, or a name on the hub.")
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    epochs: Annotated[int, typer.Option(help="Passes over the topics.")] = 3,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many.", show_default="no limit")] = None,
    batch: Annotated[int, typer.Option(help="Topics of a step.")] = 16,
    lr: Annotated[float, typer.Option(help="The greatest learning rate.")] = 1.5e-4,
    dropout: Annotated[float, typer.Option(help="Of the hidden layers, while training.")] = 0.1,
    max_length: Annotated[int, typer.Option(help="Tokens of an input; the oldest are lost first.")] = 256,
    answers: Annotated[int, typer.Option(help="Of how many turns before the current one the answers are read.")] = 0,
    weight: Annotated[float, typer.Option(help="How much a relevant word counts in the loss.")] = 1.0,
    held_out: Annotated[
        float, typer.Option(help="The share of conversations kept out: half to choose the threshold on, half to measure with.")
    ] = 0.05,
    limit: Annotated[int | None, typer.Option(help="At most so many topics.", show_default="all")] = None,
    analyzer: Annotated[str, typer.Option(help="Whose stems and stop words say which words are relevant.")] = "english",
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of the order, the part held out and the dropout.")] = 0,
    checkpoints: Annotated[
        Path | None, typer.Option(help="A folder to go on from after an interruption.", show_default="none")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a term classifier for QuReTeC. Interrupted, it leaves nothing behind but its checkpoints."""
    from .....datasets import topics_of
    from .....train import TermSettings, train_terms
    from ....output import print_json
    from ....progress import reporting

    settings = TermSettings(
        epochs=epochs,
        minutes=minutes,
        batch=batch,
        lr=lr,
        dropout=dropout,
        max_length=max_length,
        answers=answers,
        weight=weight,
        held_out=held_out,
        limit=limit,
        analyzer=analyzer,
        precision=precision,  # type: ignore[arg-type]  # settings check what they are given
        seed=seed,
    )
    with reporting(json) as report:
        training = train_terms(topics_of(topics), output, base, settings, overwrite, report, checkpoints)
    if json:
        print_json(training.to_dict())
    else:
        _say(output, training)


def _say(output: Path, training: TermTraining) -> None:
    from ....output import counted, say

    learned, steps = counted(training.trained, "topic"), counted(training.steps, "step")
    say(f"{output}: a term classifier from {learned} read {training.epochs:.2f} times in {steps} and {training.seconds:.0f} s")
    say(f"threshold {training.threshold:g}, chosen on topics with {training.chosen}")
    say(f"held out from both: {training.scores}")
