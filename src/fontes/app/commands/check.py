"""`fontes check`: check an index, and list leftovers of stopped processes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..options import Json, argument, option
from ..output import counted, print_json, say
from ..pipelines import open_index

if TYPE_CHECKING:
    from ...storage.temporary import Leftover


MARKER_FILES = ("experiment.lock", "unfinished.json", "config.json")  # of folders of results and of models


def check(
    index: Annotated[Path, argument("An index, or a folder of an experiment or a model.")],
    deep: Annotated[bool, option("Compare each part with the others as well.", True, "--deep")] = False,
    clean: Annotated[bool, option("Remove leftovers of stopped processes.", True, "--clean")] = False,
    json: Json = False,
) -> None:
    """Check every file of an index, and list leftovers of stopped processes."""
    from ...index.leftovers import clean as remove_leftovers, leftovers as list_leftovers

    removed, leftovers = remove_leftovers(index) if clean else ([], list_leftovers(index))
    try:
        documents = None if _may_be_no_index(index, removed) else _check_index(index, deep)
    finally:  # leftovers matter even more for a damaged index
        if not json:
            _print_leftovers(index, removed, leftovers)
    if json:
        state = {} if documents is None else {"sound": True, "documents": documents}
        print_json(
            {"path": str(index), **state, "leftovers": list(map(_facts, leftovers)), "removed": list(map(_facts, removed))}
        )
    elif documents is None:
        say(f"{index} is not an index; only leftovers were looked for")
    else:
        say(f"{index} is sound: {counted(documents, 'document')}")


def _may_be_no_index(path: Path, removed: list[Leftover]) -> bool:
    """Whether a path is a folder of results or of a model, or no longer exists after its leftovers were removed."""
    has_results_or_model = any((path / name).is_file() for name in MARKER_FILES) or (path / "indexes").is_dir()
    return has_results_or_model or (bool(removed) and not path.exists())


def _check_index(index: Path, deep: bool) -> int:
    """Check an index and return the number of its documents."""

    opened = open_index(index)
    opened.check(deep)
    return len(opened)


def _facts(leftover: Leftover) -> dict[str, object]:
    return {"path": str(leftover.path), "what": leftover.what, "in_use": leftover.in_use}


def _print_leftovers(index: Path, removed: list[Leftover], leftovers: list[Leftover]) -> None:

    for leftover in removed:
        say(f"removed: {leftover.path} ({leftover.what})")
    for leftover in leftovers:
        remedy = (
            "another process works in it" if leftover.in_use else f"fontes check {shlex.quote(str(index))} --clean removes it"
        )
        say(f"left behind: {leftover.path} ({leftover.what}); {remedy}")
