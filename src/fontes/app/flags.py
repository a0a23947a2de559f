"""Flags of all commands, such as `--debug` and `--quiet`, allowed anywhere on the line; and `--ray` without a value."""

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
EVERYWHERE = ("--debug", "--quiet", "--replay", "--version")
BUDGET = "--token-budget"  # allowed anywhere, with its value
RAY = "--ray"
ADDRESS = re.compile(r"auto|local|(ray://)?\S+:\d+")


def flags_first(arguments: list[str]) -> list[str]:
    """Move the flags that may stand anywhere to the front; arguments after `--` stay."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = _with_values(arguments[:end]), arguments[end:]
    return [*filter(_is_first, options), *(word for word in options if not _is_first(word)), *rest]


def command_of(arguments: list[str]) -> str:
    """The first word that is no flag and no value of one."""
    return next((word for word in _with_values(arguments) if not _is_first(word)), "")


def _is_first(word: str) -> bool:
    return word in EVERYWHERE or word.startswith(f"{BUDGET}=")


def _with_values(arguments: list[str]) -> list[str]:
    words = [f"{RAY}=" if word == RAY and not ADDRESS.fullmatch(after) else word for word, after in pairwise([*arguments, ""])]
    if BUDGET in words[:-1]:
        at = words.index(BUDGET)
        words[at : at + 2] = [f"{BUDGET}={words[at + 1]}"]
    return words
