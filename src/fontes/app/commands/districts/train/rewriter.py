"""`fontes train rewriter`: a T5 that writes turns of conversations so that they stand by themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from ....options import Json
from .options import Decay, Dropout, Evaluations, Order, Output, Overwrite, Precision, WarmUp, chosen, report


def rewriter(
    topics: Annotated[
        str, typer.Argument(help="Conversations with manual rewrites: a file of CANARD or CAsT, or -.", show_default=False)
    ],
    output: Output,
    base: Annotated[str, typer.Option(help="The T5 to start from: a folder, or a name on the hub.")] = "google-t5/t5-base",
    epochs: Annotated[int | None, typer.Option(help="Passes over the turns.", show_default="3")] = None,
    batch: Annotated[int | None, typer.Option(help="Turns of a step.", show_default="32")] = None,
    lr: Annotated[float | None, typer.Option(help="The greatest learning rate.", show_default="0.0003")] = None,
    warm_up: WarmUp = None,
    weight_decay: Decay = None,
    order: Order = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens of a context; the oldest parts are lost first.", show_default="512")
    ] = None,
    target_length: Annotated[int | None, typer.Option(help="Tokens of a rewrite; more are cut.", show_default="64")] = None,
    answers: Annotated[
        int | None, typer.Option(help="Of how many turns before the current one the answers are read.", show_default="3")
    ] = None,
    dropout: Dropout = None,
    precision: Precision = None,
    seed: Annotated[int | None, typer.Option(help="Of the order, the part held out and the dropout.", show_default="0")] = None,
    evaluations: Evaluations = None,
    validation: Annotated[
        str | None, typer.Option(help="Other conversations to validate on.", show_default="some that are held out")
    ] = None,
    held_out: Annotated[
        float | None, typer.Option(help="The share of conversations to validate on.", show_default="0.05")
    ] = None,
    best: Annotated[str | None, typer.Option(help="The state to keep: of least loss, or last.", show_default="loss")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many turns to learn from.", show_default="all")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a T5 that rewrites turns. Interrupted, the same command goes on from its last checkpoint."""
    from .....datasets import topics_of
    from .....train import RewriterSettings, train_rewriter
    from ....progress import reporting

    named = chosen(RewriterSettings, locals())
    settings = RewriterSettings(**named)
    others = None if validation is None else topics_of(validation)
    with reporting(json) as progress:
        training = train_rewriter(topics_of(topics), output, base, settings, others, overwrite, progress)
    report(output, training, f'canard_t5("{output}")', json)
