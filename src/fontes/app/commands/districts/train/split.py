"""`fontes split`: split topics into training and test, without duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def split(
    topics: Annotated[str, typer.Argument(help="Topics: a file, a BEIR folder, irds:NAME, or -.", show_default=False)],
    qrels: Annotated[
        list[str] | None,
        typer.Argument(help="Judgments: a file, a BEIR folder, irds:NAME, or -; several are merged.", show_default="none"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A directory for both sides.", show_default="only the report")
    ] = None,
    test: Annotated[float, typer.Option(help="The share for testing, below 1, or from 1 up a number of topics.")] = 0.2,
    group: Annotated[
        str | None, typer.Option(help="Topics of one document or conversation on one side.", show_default="none")
    ] = None,
    split_: Annotated[
        str | None, typer.Option("--split", help="Of judgments in a BEIR folder.", show_default="the only one")
    ] = None,
    near: Annotated[float, typer.Option(help="The similarity that makes a duplicate; 0: do not look for near ones.")] = 0.8,
    seed: Annotated[int, typer.Option(help="How the topics are shuffled.")] = 0,
    more: Annotated[list[str] | None, typer.Option("--with", help="More topics to merge; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Split topics into training and test without duplicates, and report what the sides have in common."""
    from .....datasets import qrels_of, topics_of
    from .....train import split as split_topics
    from ....output import print_json

    if [topics, *(qrels or []), *(more or [])].count("-") > 1:
        raise typer.BadParameter("only one of the inputs can be -")
    result = split_topics(
        [topics_of(name) for name in (topics, *(more or []))],
        [qrels_of(name, split=split_) for name in qrels] if qrels else None,
        int(test) if test >= 1 and test == int(test) else test,
        groups=group,
        near=near or None,
        seed=seed,
    )
    if output is not None:
        result.save(output)
    if json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))
