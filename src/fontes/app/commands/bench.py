"""`fontes bench`: the same systems on several collections, in one table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..options import Json, Ray, ray_of

commands = typer.Typer()


@commands.command(rich_help_panel="Reproduce")
def bench(
    file: Annotated[Path, typer.Argument(help="Collections and systems, in TOML.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The folder to write.", show_default="FILE's stem, .results")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run it again elsewhere and compare every number with the locks.")
    ] = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run the same systems on several collections: one table with means, ranks and tests, and an experiment for each."""
    from ...experiments import Suite
    from ...experiments.runner import LOCK
    from ..output import check_values, counted, print_check, print_json
    from ..progress import note, reporting

    if check and ray is not None:
        raise typer.BadParameter("--check runs on this machine, without --ray")
    suite = Suite(file, output)
    with reporting(json, steps=True, compiling=True) as progress:
        if not check:
            report = suite.run(progress, ray_of(ray))
        else:
            checks = suite.check(progress)
    if not check:
        if not json:
            note(f"{suite.output}: report and runs of {counted(len(report.reports), 'collection')}")
        sys.stdout.write(report.to_json() if json else f"{report}\n")
        return
    if json:
        print_json({name: check_values(one) for name, one in checks.items()})
    else:
        for name, one in checks.items():
            print_check(one, suite.output / name / LOCK)
    if not all(checks.values()):
        raise typer.Exit(1)
