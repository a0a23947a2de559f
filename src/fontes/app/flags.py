"""What `--debug` and `--quiet` say, which stand anywhere on the line and hold for all commands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Flags:
    """The flags of the command that is running.

    Args:
        debug: Errors show their traceback.
        quiet: Nothing but results and errors is printed.
    """

    debug: bool = False
    quiet: bool = False


flags = Flags()
EVERYWHERE = ("--debug", "--quiet", "--version")


def flags_first(arguments: list[str]) -> list[str]:
    """The arguments with those that may stand anywhere brought to the front; what follows `--` stays as it is."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own, rest = arguments[:end], arguments[end:]
    return [*(word for word in own if word in EVERYWHERE), *(word for word in own if word not in EVERYWHERE), *rest]
