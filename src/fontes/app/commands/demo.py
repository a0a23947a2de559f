"""`fontes demo`: the main job on text that every machine with Python has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Json

commands = typer.Typer()


@commands.command(rich_help_panel="Reproduce")
def demo(
    directory: Annotated[Path | None, typer.Option(help="Keep the indexes here.", show_default="a temporary place")] = None,
    json: Json = False,
) -> None:
    """Index the documentation of Python's standard library, ask it questions, measure two models on it."""
    from ..demo import run_demo

    run_demo(directory, json)
