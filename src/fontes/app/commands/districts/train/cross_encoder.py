"""`fontes train cross-encoder`: a reranker from queries with relevant documents and others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ....options import Json, Split
from .options import (
    START,
    Decay,
    Dropout,
    Epochs,
    Evaluations,
    HeldOut,
    Order,
    Output,
    Overwrite,
    Precision,
    Rate,
    ValidationFile,
    WarmUp,
    chosen,
    report,
)

RUN_NEEDS = "--run, --index, --topics and --qrels belong together: the candidates to validate on, their texts and judgments"


def cross_encoder(
    examples: Annotated[str, typer.Argument(help="What `fontes mine` writes: JSON lines, or -.", show_default=False)],
    output: Output,
    base: Annotated[str, typer.Option(help="The start: a folder, or a name on the hub.")] = START,
    preset: Annotated[str | None, typer.Option(help="air2025, or air2025-run.", show_default="air2025")] = None,
    loss: Annotated[str | None, typer.Option(help="bce, margin, lambda or teacher.", show_default="bce")] = None,
    epochs: Epochs = None,
    batch: Annotated[int | None, typer.Option(help="Rows of a step: pairs with bce, else groups.", show_default="16")] = None,
    lr: Rate = None,
    warm_up: WarmUp = None,
    weight_decay: Decay = None,
    order: Order = None,
    margin: Annotated[
        float | None, typer.Option(help="With margin: how far apart the scores are to be.", show_default="1")
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens of a pair; more are cut.", show_default="the base's")] = None,
    dropout: Dropout = None,
    precision: Precision = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the order, the part held out, the dropout and a new head.", show_default="0")
    ] = None,
    evaluations: Evaluations = None,
    validation: ValidationFile = None,
    held_out: HeldOut = None,
    best: Annotated[
        str | None,
        typer.Option(help="The state to keep: of least loss, of greatest RR@5, …, or last.", show_default="loss"),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Candidates to rerank and to measure.", show_default="none")] = None,
    index: Annotated[Path | None, typer.Option(help="The index that has their text.", show_default="none")] = None,
    topics: Annotated[str | None, typer.Option(help="Their topics: a file, a BEIR folder, …", show_default="none")] = None,
    qrels: Annotated[str | None, typer.Option(help="Their judgments: a file, a BEIR folder, …", show_default="none")] = None,
    split: Split = None,
    k: Annotated[int, typer.Option("-k", help="The best candidates of each topic.", min=1)] = 100,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a cross-encoder that reranks. Interrupted, the same command goes on from its last checkpoint."""
    from .....train import CrossEncoderSettings, train_cross_encoder
    from .....train.cross_encoder import Validation, settings_of
    from ....progress import reporting

    named = chosen(CrossEncoderSettings, locals())
    settings = settings_of(preset, **named)
    candidates = _candidates(run, index, topics, qrels, split, k)
    validated = Validation(validation, *candidates)
    with reporting(json) as progress:
        training = train_cross_encoder(examples, output, base, settings, validated, overwrite, progress)
    report(output, training, f'cross_encoder("{output}")', json)


def _candidates(
    run: str | None, index: Path | None, topics: str | None, qrels: str | None, split: str | None, k: int
) -> tuple[Any, Any]:
    """The run to validate on, with its documents, and its judgments; two times None where there is none."""
    from .....datasets import qrels_of, topics_of
    from .....formats import read_run
    from ....pipelines import open_index

    if run is None and index is None and topics is None and qrels is None:
        return None, None
    if run is None or index is None or topics is None or qrels is None:
        raise typer.BadParameter(RUN_NEEDS)
    candidates = read_run(run, topics_of(topics, split=split)).with_(documents=open_index(index, None)).top(k)
    return candidates, qrels_of(qrels, split=split)
