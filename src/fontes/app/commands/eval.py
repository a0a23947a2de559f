"""`fontes eval`: a run measured against judgments."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json, Split

commands = typer.Typer()

MEASURES = ("nDCG@10", "AP", "R@100")


@commands.command("eval", rich_help_panel="Measure")
def eval_(
    qrels: Annotated[str, typer.Argument(help="Judgments: a file, a BEIR folder, irds:NAME, or -.", show_default=False)],
    run: Annotated[str, typer.Argument(help="A run, or -.", show_default=False)],
    measures: Annotated[
        list[str] | None, typer.Argument(help="nDCG@10, AP, R@100, 'P(rel=2)@5', …", show_default=" ".join(MEASURES))
    ] = None,
    per_topic: Annotated[bool, typer.Option("-q", "--per-topic", help="Each topic as well.")] = False,
    split: Split = None,
    json: Json = False,
) -> None:
    """Measure a run against judgments: means over all judged topics."""
    from ...datasets import qrels_of
    from ...formats import read_run
    from ...measures import evaluate
    from ..output import print_evaluation, print_json

    if qrels == "-" and run == "-":
        raise typer.BadParameter("qrels and run cannot both be -")
    result = evaluate(read_run(run), qrels_of(qrels, split=split), measures or list(MEASURES))
    if json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_evaluation(result, per_topic)
