"""`fontes convert`: a file in another format."""

from __future__ import annotations

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
    to: Annotated[str, typer.Option(help="Runs: trec or msmarco.")] = "trec",
    tag: Annotated[str, typer.Option(help="Runs: the last column.")] = "fontes",
) -> None:
    """Rewrite a file in Fontes' first format: BEIR for corpora and topics, TREC for qrels and runs."""
    from ... import formats
    from ..inputs import corpus_of, qrels_of, topics_of

    match kind:
        case "corpus":
            formats.write_corpus(corpus_of(source, format), target)
        case "topics":
            formats.write_topics(topics_of(source, format), target)
        case "qrels":
            formats.write_qrels(qrels_of(source), target)
        case "run":
            formats.write_run(formats.read_run(source), target, tag=tag, format=to)
        case _:
            raise typer.BadParameter(f"'{kind}' is none of corpus, topics, qrels, run")
