"""A door for `fontes search INDEX QUERY` with plain options, without Typer, whose import takes longer than the search.

The options are those that `commands/search.py` declares: `tools/command_line.py` writes them to `search.json`. A line with
anything else, such as an unknown option or a number that is not plain digits, goes to Typer, which says what is wrong with it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .flags import LEXICAL, QUIET, flags

TABLE = Path(__file__).with_name("search.json")
NUMBERS = {"int": re.compile(r"[1-9][0-9]{0,8}"), "float": re.compile(r"[0-9]{1,9}(\.[0-9]{1,15})?")}
TYPES = {"int": int, "float": float, "str": str}
THREADS = "OPENBLAS_NUM_THREADS"


def quick_search(words: Sequence[str]) -> bool:
    """Search as a command line says.

    Args:
        words: The words after `search`.

    Returns:
        Whether it was done; if not, nothing was printed, and Typer has to read the line.
    """
    table = json.loads(TABLE.read_bytes())
    typed = typed_values(table["options"] | {QUIET: ["quiet", "flag"]}, words)
    if typed is None or len(typed["arguments"]) != len(table["arguments"]):
        return False
    flags.quiet = typed.pop("quiet", False)
    values: dict[str, Any] = {**table["defaults"], **dict(zip(table["arguments"], typed.pop("arguments"), strict=True))}
    values["parameters"] = {name: typed.pop(name) for name in table["parameters"] if name in typed}
    options = SimpleNamespace(**{**values, **typed, "index": Path(values["index"])})
    if options.pipeline is None and (options.model or LEXICAL[0]) in LEXICAL:
        _import_numpy_alone()
    from .searching import MisuseError, search

    try:
        search(options)
    except MisuseError:
        return False
    return True


def typed_values(options: dict[str, list[str]], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of options by name, and the "arguments"; None if a word is not plain.

    Args:
        options: Name and type of each option.
        words: The words.
    """
    values: dict[str, Any] = {"arguments": []}
    remaining = iter(words)
    for word in remaining:
        if not word or not word.isprintable():
            return None
        if not word.startswith("-"):
            values["arguments"].append(word)
            continue
        option, equals, value = word.partition("=")
        name, kind = options.get(option, ("", ""))
        if not name or name in values or (equals and (kind == "flag" or not option.startswith("--"))):
            return None
        if kind == "flag":
            values[name] = True
            continue
        value = value if equals else next(remaining, "")
        if not value or value.startswith("-") or not value.isprintable() or value == "None":
            return None
        if kind in NUMBERS and not NUMBERS[kind].fullmatch(value):
            return None
        values[name] = TYPES[kind](value)
    return values


def _import_numpy_alone() -> None:
    """Import numpy without the threads of its linear algebra, which a lexical search does not need: they take as long."""
    threads = os.environ.get(THREADS)
    os.environ.setdefault(THREADS, "1")
    import numpy  # noqa: F401

    if threads is None:
        del os.environ[THREADS]  # processes that are started from here have their own
