"""`fontes convert`: a file in another format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ..options import Format

commands = typer.Typer()


@commands.command(rich_help_panel="Runs")
def convert(
    kind: Annotated[str, typer.Argument(help="corpus, topics, qrels or run.", show_default=False)],
    source: Annotated[str, typer.Argument(help="The file to read, irds:NAME, or -.", show_default=False)],
    target: Annotated[str, typer.Argument(help="The file to write, or -.", show_default=False)],
    format: Format = None,
    to: Annotated[str | None, typer.Option(help="The format to write.", show_default="the first of its kind")] = None,
    tag: Annotated[str, typer.Option(help="Runs: the last column.")] = "fontes",
) -> None:
    """Rewrite a file in another format: by default in BEIR's for corpora and topics, in TREC's for qrels and runs."""
    from ...datasets import corpus_of, qrels_of, topics_of
    from ...formats import read_run, write

    readers: dict[str, Callable[[str, str | None], object]] = {
        "corpus": corpus_of,
        "topics": topics_of,
        "qrels": qrels_of,
        "run": lambda path, name: read_run(path, format=name),
    }
    if kind not in readers:
        raise typer.BadParameter(f"'{kind}' is none of {', '.join(readers)}")
    write(kind, readers[kind](source, format), target, to, tag)
