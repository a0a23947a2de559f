"""`fontes train cross-encoder`: a reranker from queries with relevant documents and others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...options import Split

if TYPE_CHECKING:
    from ....train import Training

RUN_NEEDS = "--run, --index, --topics and --qrels belong together: the candidates to validate on, their texts and judgments"


def cross_encoder(
    examples: Annotated[str, typer.Argument(help="What `fontes mine` writes: JSON lines, or -.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the model to make.", show_default=False)],
    base: Annotated[
        str, typer.Option(help="The start: a folder, or a name on the hub.")
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    preset: Annotated[str | None, typer.Option(help="A published training: air2025.", show_default="air2025")] = None,
    loss: Annotated[str | None, typer.Option(help="bce, margin, lambda or teacher.", show_default="bce")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the examples.", show_default="2")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows of a step: pairs with bce, else groups.", show_default="16")] = None,
    lr: Annotated[float | None, typer.Option(help="The greatest learning rate.", show_default="2e-05")] = None,
    warm_up: Annotated[
        float | None, typer.Option(help="The part of the steps in which the rate rises.", show_default="0.1")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="With margin: how far apart the scores are to be.", show_default="1")
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens of a pair; more are cut.", show_default="the base's")] = None,
    dropout: Annotated[float | None, typer.Option(help="While training; 0 is quicker.", show_default="the base's")] = None,
    precision: Annotated[str | None, typer.Option(help="auto, float32 or bfloat16.", show_default="auto")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the order, the part held out, the dropout and a new head.", show_default="0")
    ] = None,
    evaluations: Annotated[int | None, typer.Option(help="How often an epoch is validated.", show_default="2")] = None,
    validation: Annotated[
        str | None, typer.Option(help="Examples to validate on.", show_default="queries that are held out")
    ] = None,
    held_out: Annotated[float | None, typer.Option(help="The share of queries to validate on.", show_default="0.1")] = None,
    best: Annotated[
        str | None, typer.Option(help="What the best state has: the least loss, or the greatest RR@5, …", show_default="loss")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Candidates to rerank and to measure.", show_default="none")] = None,
    index: Annotated[Path | None, typer.Option(help="The index that has their text.", show_default="none")] = None,
    topics: Annotated[str | None, typer.Option(help="Their topics: a file, a BEIR folder, …", show_default="none")] = None,
    qrels: Annotated[str | None, typer.Option(help="Their judgments: a file, a BEIR folder, …", show_default="none")] = None,
    split: Split = None,
    k: Annotated[int, typer.Option("-k", help="The best candidates of each topic.", min=1)] = 100,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a cross-encoder that reranks. Interrupted, the same command goes on from its last checkpoint."""
    from ....train import train_cross_encoder
    from ....train.cross_encoder import Validation
    from ....train.pair_settings import settings_of
    from ...output import print_json
    from ...progress import reporting

    changes: dict[str, Any] = {
        "loss": loss,
        "epochs": epochs,
        "batch": batch,
        "lr": lr,
        "warm_up": warm_up,
        "margin": margin,
        "max_length": max_length,
        "dropout": dropout,
        "precision": precision,
        "seed": seed,
        "evaluations": evaluations,
        "held_out": held_out,
        "best": best,
    }
    settings = settings_of(preset, **{name: value for name, value in changes.items() if value is not None})
    candidates = _candidates(run, index, topics, qrels, split, k)
    validated = Validation(validation, *candidates)
    with reporting(json) as report:
        training = train_cross_encoder(examples, output, base, settings, validated, overwrite, report)
    if json:
        print_json(training.to_dict())
    else:
        say_training(output, training, f'cross_encoder("{output}")')


def _candidates(
    run: str | None, index: Path | None, topics: str | None, qrels: str | None, split: str | None, k: int
) -> tuple[Any, Any]:
    """The run to validate on, with its documents, and its judgments; two times None where there is none."""
    from ....datasets import qrels_of, topics_of
    from ....formats import read_run
    from ...pipelines import open_index

    if run is None and index is None and topics is None and qrels is None:
        return None, None
    if run is None or index is None or topics is None or qrels is None:
        raise typer.BadParameter(RUN_NEEDS)
    candidates = read_run(run, topics_of(topics, split=split)).with_(documents=open_index(index, None)).top(k)
    return candidates, qrels_of(qrels, split=split)


def say_training(output: Path, training: Training, use: str) -> None:
    """Says what was trained, and which expression uses it."""
    from ...output import counted, say

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
