"""Flags of all commands, such as `--debug` and `--quiet`, allowed anywhere on the line; and options without a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise


@dataclass
class Flags:
    """Flags of the running command.

    Args:
        debug: Show tracebacks of errors.
        quiet: Print only results and errors.
        arguments: The command line, as typed.
    """

    debug: bool = False
    quiet: bool = False
    arguments: tuple[str, ...] = ()


flags = Flags()
VERSION = "--version"
QUIET = "--quiet"
GLOBAL_FLAGS = ("--debug", QUIET, "--replay", VERSION)
BUDGET = "--token-budget"  # allowed anywhere, with its value
RAY, DENSE = "--ray", "--dense"  # options whose value may be left out
LEXICAL = ("bm25", "tfidf", "ql")
MODELS = (*LEXICAL, "dense", "hybrid")
"""Values of the option --model."""
ADDRESS = re.compile(r"auto|local|(ray://)?\S+:\d+")


def flags_first(arguments: list[str]) -> list[str]:
    """Move the flags that may stand anywhere to the front; arguments after `--` stay."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, operands = _join_values(arguments[:end]), arguments[end:]
    return [*filter(_is_global, options), *(word for word in options if not _is_global(word)), *operands]


def print_version() -> None:
    """Print the version of Fontes."""
    from importlib.metadata import version

    print(f"fontes {version('fontes')}")


def ray_of(ray: str | None) -> bool | str | None:
    """Value of the option `Ray`: an address, or True if the option has no value."""
    return True if ray == "" else ray


def command_of(arguments: list[str]) -> str:
    """The first word that is neither a flag nor the value of a flag."""
    return next((word for word in _join_values(arguments) if not _is_global(word)), "")


def _is_global(word: str) -> bool:
    return word in GLOBAL_FLAGS or word.startswith(f"{BUDGET}=")


def _join_values(arguments: list[str]) -> list[str]:
    """Join `--token-budget` with its value, and give `--ray` and `--dense` without a value an empty one, by `=`."""
    words = [f"{word}=" if _lacks_value(word, following) else word for word, following in pairwise([*arguments, ""])]
    if BUDGET in words[:-1]:
        i = words.index(BUDGET)
        words[i : i + 2] = [f"{BUDGET}={words[i + 1]}"]
    return words


def _lacks_value(word: str, following: str) -> bool:
    if word == DENSE:
        return following == "" or following.startswith("-")
    return word == RAY and not ADDRESS.fullmatch(following)
