"""`fontes late`: late interaction over an index, with any ColBERT model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

commands = typer.Typer()


@commands.command()
def late(
    index: Annotated[Path, typer.Argument(help="An index directory.", show_default=False)],
    model: Annotated[str, typer.Argument(help="A ColBERT model: a folder, or a name on the hub.", show_default=False)],
    query: Annotated[str | None, typer.Argument(help="A question or keywords.", show_default=False)] = None,
    topics: Annotated[str | None, typer.Option(help="A file of topics, irds:NAME, or -.", show_default=False)] = None,
    nbits: Annotated[int, typer.Option(help="Bits a dimension: 1, 2, 4; 16 or 32 keep the vectors whole.")] = 2,
    dim: Annotated[int | None, typer.Option(help="Dimensions of the vectors.", show_default="the model's")] = None,
    query_length: Annotated[int | None, typer.Option(help="Tokens of a query.", show_default="the model's")] = None,
    document_length: Annotated[
        int | None, typer.Option(help="Tokens of a document at most.", show_default="the model's")
    ] = None,
    search: Annotated[str, typer.Option(help="centroids, or exhaustive.")] = "centroids",
    k: Annotated[
        int | None, typer.Option("-k", help="Documents a topic.", min=1, show_default="10; with --topics 1000")
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="Where the run goes, with --topics.")] = "-",
    tag: Annotated[str, typer.Option(help="The name of the run, its last column.")] = "fontes",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make the token vectors anew.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Store the documents' token vectors with an index, unless they are there; then search them, if a query is given."""
    from ...formats import write_run
    from ...index import Index
    from ...neural import ColBERT, encode_late
    from ..inputs import topics_of
    from ..output import building, print_hits, print_json, run_as_json

    if query is not None and topics is not None:
        raise typer.BadParameter("give either a query or --topics FILE")
    opened = Index.open(index)
    colbert = ColBERT(model, dim, query_length, document_length)
    with building(json) as progress:
        made = encode_late(opened, colbert, nbits=nbits, overwrite=overwrite, progress=progress.update)
    if query is None and topics is None:
        _say(opened, made, progress.seconds, json)
        return
    stage = opened.late(colbert, algorithm=search, k=k or (10 if topics is None else 1000), nbits=nbits)
    run: Any = stage({"1": query} if topics is None else topics_of(topics))
    if json:
        for ranking in run.values():
            print_json(run_as_json(ranking, text=topics is None))
    elif topics is None:
        print_hits(run["1"], opened)
    else:
        write_run(run, output, tag=tag)


def _say(index: Any, made: dict[str, Any], seconds: float, json: bool) -> None:
    """What is stored, and what the search finds of it."""
    from ..output import counted, print_json, say, size

    if json:
        print_json({**made, "seconds": round(seconds, 3)})
        return
    vectors = f"{counted(made['tokens'], 'token vector')} of {counted(len(index), 'document')}"
    form = f"{made['dim']} dimensions, {made['nbits']} bits, {counted(made['centroids'], 'centroid')}"
    say(f"{index.path}: {vectors}, {form} in {seconds:.1f} s; {size(made['bytes'])}")
    shares = [f"{value:.3f} of the best {depth}" for depth, value in made["recall"].items() if depth.isdigit()]
    if shares:
        say(f"found of what the exhaustive search finds: {', '.join(shares)} ({made['recall']['queries']} queries)")
