"""The command `fontes`. `fontes --version` imports no command, and `fontes --help` none of Fontes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from .flags import VERSION, command_of, flags_first, print_version

if TYPE_CHECKING:
    import typer

COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # the typed line, from a shell that completes it


def main() -> NoReturn:
    """Run the command line on the process's arguments."""
    arguments = sys.argv[1:]
    if flags_first(arguments)[:1] == [VERSION]:
        print_version()
        sys.exit()
    from .command_line import command_line
    from .commands import ERROR_CODES
    from .running import run

    completed = next(filter(None, map(os.environ.get, COMPLETED)), "") if "_FONTES_COMPLETE" in os.environ else ""
    word = command_of(completed.split()[1:] or arguments)
    run(command_line(word, overview=True), ERROR_CODES.get(word))


def __getattr__(name: str) -> typer.Typer:
    if name != "app":
        raise AttributeError(name)
    from .command_line import command_line

    return command_line()
