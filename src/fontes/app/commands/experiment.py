"""`fontes experiment`: an experiment from its file, or the check that it comes out again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run an experiment into runs, a report and a lock; or check that it comes out again."""
    from ...experiments import Experiment
    from ..output import console, counted, print_json, say

    made = Experiment(file, output)
    tell = None if json else _tell
    if not check:
        report = made.run(tell)
        if json:
            sys.stdout.write(report.to_json())
        else:
            (console.print if console.is_terminal else print)(report)
        return
    found = made.check(tell)
    if json:
        parts = {"differences": found.differences, "notes": found.notes}
        lists = {name: [vars(one) for one in part] for name, part in parts.items()}
        print_json({"reproduced": bool(found), "numbers": found.numbers, **lists})
    else:
        for note in found.notes:
            say(f"note: {note}")
        for difference in found.differences:
            say(str(difference))
        outcome = "is reproduced" if found else f"is not reproduced: {counted(len(found.differences), 'difference')}"
        say(f"{made.output / 'experiment.lock'} {outcome}; {counted(found.numbers, 'number')} compared")
    if not found:
        raise typer.Exit(1)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
