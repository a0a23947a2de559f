"""Rewriters by name, with their options: for the command line and recipes, which name them alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import ParameterError
from ..core.stage import Stage
from ..core.values import Topics

if TYPE_CHECKING:
    from ..index import Index

# name to class, and to its options, each with the parameter of the class that it is
REWRITERS: dict[str, tuple[str, dict[str, str]]] = {
    "raw": ("Raw", {}),
    "manual": ("Manual", {"missing": "missing"}),
    "automatic": ("Automatic", {"missing": "missing"}),
    "last-turns": ("LastTurns", {"k": "k", "first": "first"}),
    "weighted-turns": ("WeightedTurns", {"index": "index", "k": "k"}),
    "hqe": ("HQE", {"index": "index", "tagger": "tagger"}),
    "canard": ("CanardT5", {"model": "name_or_path"}),
    "quretec": ("QuReTeC", {"model": "name_or_path"}),
}
NEEDED = {"weighted-turns": "index", "hqe": "index", "quretec": "model"}
CARRIED = ("manual", "automatic")  # rewrites that a file has, and a conversation at the terminal has not
AFTER_COLON = {"last-turns": "k", "weighted-turns": "k", "hqe": "tagger", "canard": "model", "quretec": "model"}


def class_of(name: str) -> tuple[str, dict[str, str]]:
    """The class of the rewriter of this name, and its options. Raises ParameterError for a name that does not exist."""
    if name not in REWRITERS:
        raise ParameterError(f"there is no rewriter '{name}'; there are {', '.join(REWRITERS)}")
    return REWRITERS[name]


def rewriter(name: str, options: Mapping[str, Any]) -> Stage[Topics, Topics]:
    """The rewriter of this name with some of its options. Raises ParameterError for a name that does not exist."""
    from .. import rewrite

    kind, known = class_of(name)
    stage: Stage[Topics, Topics] = getattr(rewrite, kind)(**{known[option]: value for option, value in options.items()})
    return stage


def rewriter_of(written: str, index: Index | None) -> Stage[Topics, Topics]:
    """The rewriter written as a name, or as a name and its first option, such as "last-turns:2".

    `index` is for those that look into the collection: weighted-turns and hqe.
    Raises ParameterError for what is no rewriter.
    """
    name, colon, value = written.partition(":")
    options: dict[str, Any] = {"index": index} if "index" in class_of(name)[1] else {}
    option = AFTER_COLON.get(name)
    if colon and option is None:
        raise ParameterError(f"{name} takes nothing after a colon, but got '{value}'")
    if option == "k" and colon and not value.isdecimal():
        raise ParameterError(f"{name}:{value}: how many earlier turns? A whole number is wanted, such as {name}:2")
    if option == "model" and not value and NEEDED.get(name) == "model":
        raise ParameterError(f"{name} needs its model: {name}:FOLDER")
    if colon and option is not None:
        options[option] = int(value) if option == "k" else value
    return rewriter(name, options)
