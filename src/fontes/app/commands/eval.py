"""`fontes eval`: evaluate a run against judgments."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.errors import InputError
from ..options import Json, Machine, Measures, Split, check_one_stdin, reads_files

commands = typer.Typer()


@commands.command("eval", rich_help_panel="Measure")
@reads_files("id", of="topics")
def eval_(
    qrels: Annotated[str, typer.Argument(help="Judgments: a file, a BEIR folder, irds:NAME, or -.", show_default=False)],
    run: Annotated[str, typer.Argument(help="A run, or -.", show_default=False)],
    names: Annotated[list[str] | None, typer.Argument(help="The same as --measures.", show_default=False)] = None,
    measures: Measures = None,
    per_topic: Annotated[bool, typer.Option("-q", "--per-topic", help="Each topic as well.")] = False,
    split: Split = None,
    machine: Machine = None,
    json: Json = False,
) -> None:
    """Measure a run against judgments: means over all judged topics."""
    from ...datasets import qrels_of
    from ...formats import read_run
    from ...measures import DEFAULT, evaluate
    from ...measures.evaluation import refuse_exchanged
    from ...measures.names import parse_all
    from ..output import print_evaluation, print_json

    check_one_stdin(qrels=qrels, run=run)
    wanted = parse_all([*(names or []), *(measures or [])] or DEFAULT)
    try:
        ranking = read_run(run)
        judgments = qrels_of(qrels, split=split, groups=any(measure.grouped for measure in wanted))
        labels = None if machine is None else qrels_of(machine)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise
    result = evaluate(ranking, judgments, wanted, machine=labels)
    if json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_evaluation(result, per_topic)
