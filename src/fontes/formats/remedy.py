"""What to type where a file of documents names its id or its text in a way that is not known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.names import plain

TITLES = ("title", "headline", "heading")
TEXTS = ("text", "abstract", "content", "body", "summary", "description", "passage", "paragraph", "sentence")


def remedy(name: str, where: str, keys: Mapping[str, Sequence[Any]], row: Mapping[Any, Any]) -> str:
    """The end of an error: the options that say which field is which, as far as names and lengths tell; or nothing.

    Args:
        name: The name of the file, or "documents".
        where: The line of a file, or the item of an iterable.
        keys: By "id", "text" and "title" the fields that are known.
        row: The first record.
    """
    chosen = {part: list(own) for part, own in keys.items()}
    left = [key for key in row if not any(key in own for own in chosen.values()) and isinstance(row[key], (str, int))]
    for part, guess in (("title", _title), ("id", _id), ("text", _text)):
        if not chosen[part] and (guessed := guess(left, row)) is not None:
            chosen[part] = [guessed]
            left.remove(guessed)
    if not chosen["id"] or not chosen["text"]:
        return ""
    parts = {part: chosen[part] for part in ("id", "title", "text") if chosen[part]}
    fields = {part: own[0] if len(own) == 1 else own for part, own in parts.items()}
    if not where.startswith("line"):
        return f"; say which is which: read_corpus(…, fields={fields})"
    options = " ".join(f"--{part} {shlex.quote(str(key))}" for part, own in parts.items() for key in own)
    path = "-" if name == "standard input" else name
    index = "documents" if path == "-" else Path(path).name.partition(".")[0]
    line = f"fontes index {shlex.quote(path)} {options} -o {shlex.quote(f'{index}.index')}"
    return f"; say which is which, such as: {line} (in Python: read_corpus(…, fields={fields}))"


def _title(left: Sequence[Any], row: Mapping[Any, Any]) -> Any:
    return next((key for key in left if plain(key).endswith(TITLES)), None)


def _id(left: Sequence[Any], row: Mapping[Any, Any]) -> Any:
    """A field whose name ends as ids do, or else the first."""
    return next((key for key in left if plain(key).endswith(("id", "no", "key", "number"))), left[0] if left else None)


def _text(left: Sequence[Any], row: Mapping[Any, Any]) -> Any:
    """A field that is called as texts are, or else the one with the longest text."""
    called = next((key for key in left if any(word in plain(key) for word in TEXTS)), None)
    return max(left, key=lambda key: len(str(row[key])), default=None) if called is None else called
