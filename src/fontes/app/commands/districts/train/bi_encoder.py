"""`fontes train bi-encoder`: an encoder of queries and documents, short or long."""

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


def bi_encoder(
    examples: Annotated[
        str,
        typer.Argument(help="What `fontes mine` writes, or with cosine labelled pairs: JSON lines, or -.", show_default=False),
    ],
    output: Output,
    encoder: Annotated[
        str, typer.Option(help="The start: a folder, a name on the hub, or an encoder as an expression.")
    ] = START,
    loss: Annotated[str | None, typer.Option(help="mnrl, teacher or cosine.", show_default="mnrl")] = None,
    epochs: Epochs = None,
    batch: Annotated[int | None, typer.Option(help="Examples or pairs of a step.", show_default="64")] = None,
    mini_batch: Annotated[
        int | None, typer.Option(help="Texts that are computed at once; 0: all of a step.", show_default="16")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="By what cosines are multiplied.", show_default="20")] = None,
    negatives: Annotated[int | None, typer.Option(help="Negatives of an example that are used.", show_default="all")] = None,
    lr: Rate = None,
    warm_up: WarmUp = None,
    weight_decay: Decay = None,
    order: Order = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens of a text; more are cut.", show_default="the start's")] = None,
    dropout: Dropout = None,
    precision: Precision = None,
    seed: Annotated[int | None, typer.Option(help="Of the order, the part held out and the dropout.", show_default="0")] = None,
    evaluations: Evaluations = None,
    validation: ValidationFile = None,
    held_out: HeldOut = None,
    best: Annotated[
        str | None,
        typer.Option(
            help="The state to keep: of least loss, of greatest nDCG@10, … of a search, or last.", show_default="loss"
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="The index to search then.", show_default="the validated examples' documents")
    ] = None,
    topics: Annotated[
        str | None, typer.Option(help="The queries then: a file, a BEIR folder, …", show_default="the validated examples'")
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(help="The judgments then: a file, a BEIR folder, …", show_default="the validated examples'")
    ] = None,
    split: Split = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train an encoder for dense retrieval. Interrupted, the same command goes on from its last checkpoint."""
    from .....datasets import qrels_of, topics_of
    from .....train import BiEncoderSettings, SearchValidation, train_bi_encoder
    from ....pipelines import open_index
    from ....progress import reporting

    named = chosen(BiEncoderSettings, locals())
    settings = BiEncoderSettings(**named | ({"mini_batch": None} if mini_batch == 0 else {}))
    search = SearchValidation(
        validation,
        None if index is None else open_index(index),
        None if topics is None else topics_of(topics, split=split),
        None if qrels is None else qrels_of(qrels, split),
    )
    with reporting(json) as progress:
        training = train_bi_encoder(examples, output, _start(encoder), settings, search, overwrite, progress)
    report(output, training, f'sentence_encoder("{output}")', json)


def _start(text: str) -> Any:
    """The encoder of an expression; anything else is the name or the folder of a model."""
    from .....core import expression

    return expression.part(text) if text.rstrip().endswith(")") else text
