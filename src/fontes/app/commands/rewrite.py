"""`fontes rewrite`: the turns of conversations so that each stands by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from ...core import Stage, Topics

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
            help="raw, manual, automatic, last-turns, weighted-turns, hqe, canard or quretec.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Where the topics go, as JSON lines.")] = "-",
    format: Annotated[str | None, typer.Option(help="The format of the input; default: detected.", show_default=False)] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="manual, automatic: raw takes the raw utterance where there is no rewrite.", show_default="error"),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", help="last-turns, weighted-turns: how many earlier turns.", min=0, show_default="3; weighted-turns 1"
        ),
    ] = None,
    first: Annotated[bool, typer.Option("--first", help="last-turns: the first turn as well.")] = False,
    index: Annotated[
        str | None, typer.Option(help="weighted-turns, hqe: the index that is searched.", show_default=False)
    ] = None,
    tagger: Annotated[
        str | None, typer.Option(help="hqe: a spaCy model, or none: any word.", show_default="en_core_web_sm")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="canard, quretec: a folder, or a name on the Hugging Face hub.",
            show_default="canard: castorini/t5-base-canard",
        ),
    ] = None,
) -> None:
    """Rewrite the turns of conversations so that each can be searched by itself."""
    from ...datasets import topics_of
    from ...formats import write_topics
    from ...rewrite import CanardT5
    from ..output import building

    options = {"missing": missing, "k": k, "first": first or None, "index": index, "tagger": tagger, "model": model}
    stage = _rewriter(with_, {name: value for name, value in options.items() if value is not None})
    given = topics_of(topics, format)
    if isinstance(stage, CanardT5):
        with building(quiet=False, noun="turn") as progress:
            write_topics(stage.rewrite(given, progress.update), output)
    else:
        write_topics(stage(given), output)


def _rewriter(name: str, options: dict[str, Any]) -> Stage[Topics, Topics]:
    """The rewriter with the options that were given.

    Raises ParameterError for a name that does not exist, an option of another rewriter, and where one is lacking.
    """
    from ...index import Index
    from ...rewrite.names import NEEDED, REWRITERS, class_of, rewriter

    _, known = class_of(name)
    for option in options:
        if option not in known:
            owners = [other for other, (_, its) in REWRITERS.items() if option in its]
            raise ParameterError(f"{'-k' if option == 'k' else f'--{option}'} is of {' and '.join(owners)}, not of {name}")
    needed = NEEDED.get(name)
    if needed and needed not in options:
        raise ParameterError(f"{name} needs --{needed}")
    if "index" in options:
        options = {**options, "index": Index.open(options["index"])}
    return rewriter(name, options)
