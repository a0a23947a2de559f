"""`fontes info`: describe an index."""

from __future__ import annotations

import typer

from ..options import IndexPath, Json, Partial

commands = typer.Typer()


@commands.command(rich_help_panel="Index")
def info(index: IndexPath, partial: Partial = False, json: Json = False) -> None:
    """Describe an index."""
    from ..output import print_info, print_json
    from ..pipelines import open_index

    facts = open_index(index, partial=partial).info()
    if json:
        print_json(facts)
    else:
        print_info(facts)
