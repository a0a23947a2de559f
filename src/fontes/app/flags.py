"""Flags of all commands, `--debug` and `--quiet`, allowed anywhere on the line; and `--ray` without a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise


@dataclass
class Flags:
    """Flags of the running command.

    Args:
        debug: Show tracebacks of errors.
        quiet: Print results and errors alone.
        arguments: The command line, as typed.
    """

    debug: bool = False
    quiet: bool = False
    arguments: tuple[str, ...] = ()


flags = Flags()
EVERYWHERE = ("--debug", "--quiet", "--version")
RAY = "--ray"
ADDRESS = re.compile(r"auto|local|(ray://)?\S+:\d+")


def flags_first(arguments: list[str]) -> list[str]:
    """Move the flags that may stand anywhere to the front; arguments after `--` stay."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own, rest = _with_values(arguments[:end]), arguments[end:]
    return [*(word for word in own if word in EVERYWHERE), *(word for word in own if word not in EVERYWHERE), *rest]


def _with_values(arguments: list[str]) -> list[str]:
    return [f"{RAY}=" if word == RAY and not ADDRESS.fullmatch(after) else word for word, after in pairwise([*arguments, ""])]
