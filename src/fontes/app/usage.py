"""Usage errors as one sentence, with the corrected command if it is known."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..index.files import MANIFEST
from ..storage.remote import address_of
from .flags import flags

OPTION = re.compile(r"--?[A-Za-z][\w-]*")
TEXTS = ("query", "event", "text")  # arguments of several words
MUST = re.compile(r"Input should be (.*?)(, unable .*)?")  # pydantic's messages
EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)


def usage_sentence(error: Any, arguments: Sequence[str]) -> str:
    """Describe a usage error in one sentence; "" if no arguments were given and help was printed.

    Args:
        error: Click's UsageError.
        arguments: Arguments of the process.
    """
    context, message = error.ctx, _plain(str(error.message))
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    if context is None:
        return f"{error.option_name} needs a value" if hasattr(error, "option_name") else message
    path: str = context.command_path
    name = path.partition(" ")[2] or path
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        options = [option for one in context.command.params for option in one.opts if OPTION.fullmatch(option)]
        return f"{name} has no option {error.option_name}; {_similar(error.option_name, options, f'{path} -h lists them')}"
    commands = getattr(context.command, "commands", None)
    if commands is not None and message.startswith("no such command"):
        word = message.partition("'")[2].partition("'")[0]
        place = "" if name == path else f"{name} "
        return f"there is no command '{place}{word}'; {_similar(word, commands, f'{path} -h lists the commands')}"
    usage = " ".join(context.get_usage().removeprefix("Usage:").split())
    if extra := EXTRA.fullmatch(str(error.message)):
        return _of_extra(context, extra[1], arguments) or f"{name} takes fewer arguments, without '{extra[1]}': {usage}"
    parameter = getattr(error, "param", None)
    if parameter is None:
        return message
    option = next((one for one in parameter.opts if one.startswith("-")), parameter.name.upper())
    if "Missing" in type(error).__name__:
        return f"{name} needs {option}: {usage}"
    value = next((after for word, after in pairwise(arguments) if word in parameter.opts), None)
    must = MUST.fullmatch(str(error.message))
    return f"{name}: {option} must be {must[1]}" + (f", not '{value}'" if value else "") if must else f"{option}: {message}"


def refuse_exchanged(index: Path, words: str | None) -> None:
    """Raise InputError if the index follows the query.

    Args:
        index: The argument for the index.
        words: The argument for the query.
    """
    if words and not index.exists() and _is_index(Path(words)):
        exchanged = {words: str(index)}
        command = _command(lambda word: words if Path(word) == index else exchanged.get(word, word))
        raise InputError(f"the index comes before the query: {command}")


def refuse_misspelt(index: str | Path) -> None:
    """Raise InputError if there is no such index, but one with a similar name beside it."""
    path = Path(index)
    if address_of(index) is not None or path.exists():
        return
    try:
        beside = {other.stem: other.name for other in path.parent.iterdir() if _is_index(other)}
    except OSError:
        return
    if close := difflib.get_close_matches(path.stem, beside, 1):
        near = str(path.with_name(beside[close[0]]))
        command = _command(lambda word: near if Path(word) == path else word)
        raise InputError(f"{index} does not exist; did you mean {near}? {command}".rstrip())


def _of_extra(context: Any, extra: str, arguments: Sequence[str]) -> str:
    """Sentence about a query without quotes, or "" if the command has no query."""
    declared = [parameter.name for parameter in context.command.params if parameter.param_type_name == "argument"]
    texts = [name for name in declared if name in TEXTS]
    if not texts or not all(context.params.get(name) for name in declared):
        return ""
    typed = [*(str(context.params[name]) for name in declared), *extra.split()]
    if not _is_index(Path(typed[0])):
        typed.sort(key=lambda word: not _is_index(Path(word)))  # the index may follow the query
    after = len(declared) - declared.index(texts[0]) - 1  # arguments behind the text
    first, end = declared.index(texts[0]), len(typed) - after
    line = [*typed[:first], " ".join(typed[first:end]), *typed[end:]]
    rest = list(arguments)
    for word in typed:
        if word not in rest:
            return ""
        rest.remove(word)
    depth = len(context.command_path.split()) - 1
    return f"put the {texts[0]} in quotes: {shlex.join(['fontes', *rest[:depth], *line, *rest[depth:]])}"


def _command(change: Callable[[str], str]) -> str:
    """The typed command with each word changed; "" if no word was."""
    return shlex.join(["fontes", *map(change, flags.arguments)]) if flags.arguments else ""


def _is_index(path: Path) -> bool:
    try:
        return (path / MANIFEST).is_file()
    except OSError:
        return False


def _similar(word: str, known: Sequence[str], otherwise: str) -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f"did you mean {close[0]}?" if close else otherwise


def _plain(message: str) -> str:
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
