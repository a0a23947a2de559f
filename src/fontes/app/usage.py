"""Usage errors as one sentence, with the corrected command if it is known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.hints import in_place_of, meant
from ..core.tabular import join_with_or
from ..storage.remote import address_of
from .flags import flags

OPTION = re.compile(r"--?[A-Za-z][\w-]*")
TEXTS = ("query", "event", "text")  # arguments that may have several words
EXPECTED = re.compile(r"Input should be (.*?)(, unable .*)?")  # pydantic's messages
EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
INSTEAD = {
    "sort": "a stage sorts: --pipeline 'bm25() >> sort(\"year\")'",
    "where": "a retriever filters: --pipeline 'bm25(where=\"year >= 2020\")'",
    "grid": "--pipeline says what is tuned: --pipeline 'bm25(k1=tune(), b=tune(0.3, 0.9))'",
}
"""Stages and parameters of --pipeline in place of an option, by its name in `OTHER_WORDS`."""


def usage_sentence(error: Any, arguments: Sequence[str]) -> str:
    """Describe a usage error in one sentence; "" if the help was printed because there were no arguments.

    Args:
        error: Click's UsageError.
        arguments: Arguments of the process.
    """
    context, message = error.ctx, _as_clause(str(error.message))
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    if context is None:
        return f"{error.option_name} needs a value" if hasattr(error, "option_name") else message
    path: str = context.command_path
    name = path.partition(" ")[2] or path
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        options = [option for parameter in context.command.params for option in parameter.opts if OPTION.fullmatch(option)]
        return f"{name} has no option {error.option_name}; {_suggestion(error.option_name, options, f'{path} -h lists them')}"
    commands = getattr(context.command, "commands", None)
    if commands is not None and message.startswith("no such command"):
        word = message.partition("'")[2].partition("'")[0]
        parent = "" if name == path else f"{name} "
        return f"there is no command '{parent}{word}'; {_suggestion(word, commands, f'{path} -h lists the commands')}"
    usage = " ".join(context.get_usage().removeprefix("Usage:").split())
    if extra := EXTRA.fullmatch(str(error.message)):
        return _quoting_sentence(context, extra[1], arguments) or f"{name} takes fewer arguments, without '{extra[1]}': {usage}"
    parameter = getattr(error, "param", None)
    if parameter is None:
        return message
    option = next((typed for typed in parameter.opts if typed.startswith("-")), parameter.name.upper())
    if "Missing" in type(error).__name__:
        return f"{name} needs {option}: {usage}"
    value = next((following for word, following in pairwise(arguments) if word in parameter.opts), None)
    expected = EXPECTED.fullmatch(str(error.message))
    if expected is None:
        return f"{option}: {message}"
    return f"{name}: {option} must be {expected[1]}" + (f", not '{value}'" if value else "")


def refuse_exchanged(index: Path, words: str | None) -> None:
    """Raise InputError if the index follows the query.

    Args:
        index: The argument for the index.
        words: The argument for the query.
    """
    if words and not index.exists() and is_index(Path(words)):
        exchanged = {words: str(index)}
        command = _command(lambda word: words if Path(word) == index else exchanged.get(word, word))
        raise InputError(f"the index comes before the query: {command}")


def refuse_misspelt(index: str | Path) -> None:
    """Raise InputError if there is no such index but one with a similar name in its folder."""
    path = Path(index)
    if address_of(index) is not None or path.exists():
        return
    try:
        siblings = {other.stem: other.name for other in path.parent.iterdir() if is_index(other)}
    except OSError:
        return
    if close := meant(path.stem, siblings):
        similar = str(path.with_name(siblings[close[0]]))
        command = _command(lambda word: similar if Path(word) == path else word)
        raise InputError(f"{index} does not exist; did you mean {similar}? {command}".rstrip())


def _quoting_sentence(context: Any, extra: str, arguments: Sequence[str]) -> str:
    """Sentence with the command and its query in quotes; "" if the command has no query."""
    declared = [parameter.name for parameter in context.command.params if parameter.param_type_name == "argument"]
    texts = [name for name in declared if name in TEXTS]
    if not texts or not all(context.params.get(name) for name in declared):
        return ""
    typed = [*(str(context.params[name]) for name in declared), *extra.split()]
    if not is_index(Path(typed[0])):
        typed.sort(key=lambda word: not is_index(Path(word)))  # the index may follow the query
    trailing = len(declared) - declared.index(texts[0]) - 1  # number of arguments after the text
    first, end = declared.index(texts[0]), len(typed) - trailing
    line = [*typed[:first], " ".join(typed[first:end]), *typed[end:]]
    remaining = list(arguments)
    for word in typed:
        if word not in remaining:
            return ""
        remaining.remove(word)
    depth = len(context.command_path.split()) - 1
    return f"put the {texts[0]} in quotes: {shlex.join(['fontes', *remaining[:depth], *line, *remaining[depth:]])}"


def _command(change: Callable[[str], str]) -> str:
    """The typed command with each word changed; "" if no command was typed."""
    return shlex.join(["fontes", *map(change, flags.arguments)]) if flags.arguments else ""


def is_index(path: Path) -> bool:
    """Whether a path is that of an index."""
    try:
        from ..index.files import MANIFEST

        return (path / MANIFEST).is_file()
    except OSError:
        return False


def _suggestion(word: str, choices: Sequence[str], otherwise: str) -> str:
    if close := meant(word, choices):
        return f"did you mean {join_with_or(close)}?"
    return (in_place_of(word, INSTEAD) if "--pipeline" in choices else "") or otherwise


def _as_clause(message: str) -> str:
    """Click's message on one line, without its final period and its capital."""
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
