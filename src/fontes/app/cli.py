"""The command line: `fontes`. Commands read and write files or, with "-", standard input and output, and pipe.

Each module of `commands` is a command, or a group of them; a new one needs nothing here.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from . import commands
from .flags import flags
from .running import run

PANELS = ("Index", "Search", "Runs", "Measure", "Models", "Reproduce")

app = typer.Typer(
    name="fontes",
    help="Document retrieval: index a collection, search it, measure the run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"fontes {version('fontes')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; anywhere on the line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results and errors alone; anywhere on the line.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Document retrieval: index a collection, search it, measure the run."""
    flags.debug, flags.quiet = debug, quiet


def _panel(one: typer.Typer) -> int:
    """The place of a module's panel in the help."""
    entries: list[Any] = [*one.registered_commands, *one.registered_groups]
    name = entries[0].rich_help_panel
    return PANELS.index(name) if name in PANELS else len(PANELS)


_modules = [import_module(f"{commands.__name__}.{module.name}") for module in pkgutil.iter_modules(commands.__path__)]
for _commands in sorted((module.commands for module in _modules), key=_panel):
    app.add_typer(_commands)


def main() -> NoReturn:
    """Runs the command line on the process's arguments."""
    run(app)
