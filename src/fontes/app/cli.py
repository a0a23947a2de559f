"""The command line: `fontes`. Commands read and write files or, with "-", standard input and output, and pipe.

Each module of `commands` is a command, or a group of them; a new one needs nothing here.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from . import commands
from .flags import EVERYWHERE, flags
from .running import run

PANELS = ("Index", "Search", "Runs", "Measure", "Models", "Reproduce")


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"fontes {version('fontes')}")
        raise typer.Exit


def _options(
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


def command_line(word: str = "") -> typer.Typer:
    """The command line.

    Args:
        word: The command that was typed. If there is a module of this name, it is the only one that is imported, for all of
            them take longer than a search.
    """
    names = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    modules = [import_module(f"{commands.__name__}.{name}") for name in ([word] if word in names else names)]
    whole = typer.Typer(
        name="fontes",
        help="Document retrieval: index a collection, search it, measure the run.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    whole.callback()(_options)
    for group in sorted((module.commands for module in modules), key=_panel):
        whole.add_typer(group)
    return whole


def main() -> NoReturn:
    """Runs the command line on the process's arguments."""
    run(command_line(next((word for word in sys.argv[1:] if word not in EVERYWHERE), "")))


def __getattr__(name: str) -> typer.Typer:
    if name != "app":
        raise AttributeError(name)
    return command_line()
