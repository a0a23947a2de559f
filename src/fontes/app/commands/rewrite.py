"""`fontes rewrite`: the turns of conversations so that each stands by itself."""

from __future__ import annotations

from typing import Annotated

import typer

commands = typer.Typer()


@commands.command()
def rewrite(
    topics: Annotated[
        str, typer.Argument(help="A file of topics with turns, sample:harbour/conversations, or -.", show_default=False)
    ],
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            help="The rewriter: raw(), manual(), automatic(), 'last_turns(k=2)', weighted_turns(), hqe(), canard_t5(), "
            "'quretec(\"FOLDER\")', or several with >> between.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Where the topics go, as JSON lines.")] = "-",
    format: Annotated[str | None, typer.Option(help="The format of the input; default: detected.", show_default=False)] = None,
    index: Annotated[
        str | None, typer.Option(help="weighted_turns, hqe: the index that is searched.", show_default=False)
    ] = None,
) -> None:
    """Rewrite the turns of conversations so that each can be searched by itself."""
    from ...core import Topics
    from ...core.expression import pipeline
    from ...formats import write_topics
    from ...index import Index
    from ..inputs import topics_of
    from ..output import building

    stage = pipeline(with_, None if index is None else Index.open(index))
    stage.require(Topics, Topics, "fontes rewrite")
    given = topics_of(topics, format)
    with building(quiet=False, noun="turn") as progress:
        write_topics(stage(given, progress=progress.update), output)
