"""`fontes experiment`: run an experiment, or check that its results are reproduced."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..options import Json, Ray, ray_of

commands = typer.Typer()


@commands.command(rich_help_panel="Reproduce")
def experiment(
    file: Annotated[Path, typer.Argument(help="The experiment, in TOML.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The folder to write.", show_default="FILE's stem, .results")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run it again elsewhere and compare every number with the lock.")
    ] = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run an experiment and write runs, a report and a lock; or check that its results are reproduced."""
    from ...experiments import Experiment
    from ...experiments.provenance import Check
    from ...experiments.runner import LOCK
    from ..output import check_values, console, counted, print_check, print_json
    from ..progress import note, reporting

    if check and ray is not None:
        raise typer.BadParameter("--check runs on this machine, without --ray")
    one = Experiment(file, output)
    with reporting(json, steps=True, compiling=True) as report:
        result = one.check(report) if check else one.run(report, ray_of(ray))
    if not isinstance(result, Check):
        if json:
            sys.stdout.write(result.to_json())
        else:
            note(f"{one.output}: report and runs of {counted(len(result.systems), 'system')}")
            (console.print if console.is_terminal else print)(result)
        return
    if json:
        print_json(check_values(result))
    else:
        print_check(result, one.output / LOCK)
    if not result:
        raise typer.Exit(1)
