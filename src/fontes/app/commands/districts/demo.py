"""`fontes demo`: the main job on text that every machine with Python has, and four tasks on stories that come along."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...options import Json

commands = typer.Typer()


@commands.command(rich_help_panel="Reproduce")
def demo(
    directory: Annotated[Path | None, typer.Option(help="Keep the indexes here.", show_default="a temporary place")] = None,
    json: Json = False,
) -> None:
    """Index and search Python's documentation, measure two models on it, and go through four tasks on stories."""
    from ...demo import run_demo

    run_demo(directory, json)
