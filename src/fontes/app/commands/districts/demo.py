"""`fontes demo`: the examples of README, and four tasks on the sample collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...options import Json, option


def demo(
    directory: Annotated[Path | None, option("Keep indexes and runs here.", "a temporary place")] = None, json: Json = False
) -> None:
    """Run the examples of README, and measure four tasks on the sample collection."""
    from ...demo import run_demo

    run_demo(directory, json)
