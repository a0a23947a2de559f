"""`fontes check`: whether an index is sound."""

from __future__ import annotations

import typer

from ..options import IndexPath, Json

commands = typer.Typer()


@commands.command(rich_help_panel="Index")
def check(index: IndexPath, json: Json = False) -> None:
    """Read every file of an index and say whether it is sound."""
    from ...index import Index
    from ..output import counted, print_json, say

    opened = Index.open(index)
    opened.check()
    if json:
        print_json({"path": str(index), "sound": True, "documents": len(opened)})
    else:
        say(f"{index} is sound: {counted(len(opened), 'document')}")
