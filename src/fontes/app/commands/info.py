"""`fontes info`: what an index holds."""

from __future__ import annotations

import typer

from ..options import IndexPath, Json

commands = typer.Typer()


@commands.command(rich_help_panel="Index")
def info(index: IndexPath, json: Json = False) -> None:
    """Say what an index holds."""
    from ...index import Index
    from ..output import print_info, print_json

    facts = Index.open(index).info()
    if json:
        print_json(facts)
    else:
        print_info(facts)
