"""The command `fontes`. `--version` imports no command, `--help` none of Fontes, and a plain `search` no Typer."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from .flags import VERSION, command_of, flags_first, print_version

if TYPE_CHECKING:
    import typer

QUICK = "search"
COMPLETING = "_FONTES_COMPLETE"
COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # the typed line, from a shell that completes it
COLLECTED = (50_000, 20, 20)  # objects between two collections of garbage: imports make many, and nearly all stay


def main() -> NoReturn:
    """Run the command line on the process's arguments."""
    arguments = sys.argv[1:]
    if flags_first(arguments)[:1] == [VERSION]:
        print_version()
        sys.exit()
    gc.set_threshold(*COLLECTED)
    from .commands import ERROR_CODES
    from .running import run

    completed = next(filter(None, map(os.environ.get, COMPLETED)), "") if COMPLETING in os.environ else ""
    word = command_of(completed.split()[1:] or arguments)

    def command(args: list[str], **settings: object) -> Any:
        if arguments[:1] == [QUICK] and COMPLETING not in os.environ:
            from .quick import quick_search

            if quick_search(arguments[1:]):
                return 0
        from .command_line import command_line

        return command_line(word, overview=True)(args=args, **settings)

    run(command, ERROR_CODES.get(word))


def __getattr__(name: str) -> typer.Typer:
    if name != "app":
        raise AttributeError(name)
    from .command_line import command_line

    return command_line()
