"""`fontes train causality`: a head that tells sentences that report a cause."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def causality(
    train: Annotated[
        str, typer.Argument(help="JSON lines with text and label (1: reports a cause, 0: not), or -.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file of the head to make.", show_default=False)],
    encoder: Annotated[
        str, typer.Option(help="The encoder of the sentences: a folder, or a name on the hub.")
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    name: Annotated[
        str | None, typer.Option(help="What the head calls the encoder.", show_default="the end of its name")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Labelled sentences to measure with.", show_default="none")] = None,
    folds: Annotated[int, typer.Option(help="Of the cross-validation that chooses the regularization.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the folds and the intervals.")] = 0,
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "float32",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train the head of CausalEvidence: does a sentence report a cause?"""
    from .....neural import SentenceEncoder
    from .....train.causality import labelled, measure_causality, train_causality
    from ....output import counted, print_json, say

    model = SentenceEncoder(encoder, precision=precision)
    held_out = None if test is None else labelled(test)
    head = train_causality(train, model, folds=folds, seed=seed, name=name)
    measured = held_out and measure_causality(head.classify(model, held_out[0]), held_out[1], head.threshold, seed=seed)
    head.save(output)
    card = dict(head.card)
    if json:
        print_json({**card, "encoder": head.encoder, "test": measured.to_dict() if measured else None})
        return
    say(f"{output}: a head over {head.encoder} from {counted(card['sentences'], 'sentence')}, {card['causal']:,} causal")
    say(f"{folds}-fold cross-validation: accuracy {card['accuracy']:.3f}, F1 {card['f1']:.3f}; strength {card['strength']:g}")
    if measured:
        say(f"{test}: {measured}")
