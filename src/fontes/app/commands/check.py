"""`fontes check`: check an index, and list leftovers of stopped processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Json

if TYPE_CHECKING:
    from ...storage.leftovers import Leftover

commands = typer.Typer()

OTHERS = ("experiment.lock", "unfinished.json", "config.json")  # in folders other than indexes that may be checked


@commands.command(rich_help_panel="Index")
def check(
    index: Annotated[Path, typer.Argument(help="An index, or a folder of an experiment or a model.", show_default=False)],
    deep: Annotated[bool, typer.Option("--deep", help="Compare each part with the others as well.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove leftovers of stopped processes.")] = False,
    json: Json = False,
) -> None:
    """Check every file of an index, and list leftovers of stopped processes."""
    from ...index.leftovers import clean as removed, leftovers
    from ..output import counted, print_json, say

    gone, left = removed(index) if clean else ([], leftovers(index))
    try:
        documents = None if _is_other(index, gone) else _checked(index, deep)
    finally:  # leftovers matter even more for a damaged index
        if not json:
            _say(index, gone, left)
    if json:
        state = {} if documents is None else {"sound": True, "documents": documents}
        print_json({"path": str(index), **state, "leftovers": list(map(_facts, left)), "removed": list(map(_facts, gone))})
    elif documents is None:
        say(f"{index} is not an index; only leftovers were looked for")
    else:
        say(f"{index} is sound: {counted(documents, 'document')}")


def _is_other(place: Path, gone: list[Leftover]) -> bool:
    """Whether a path need not be an index: a folder of results or of a model, or empty after cleaning."""
    results = any((place / name).is_file() for name in OTHERS) or (place / "indexes").is_dir()
    return results or (bool(gone) and not place.exists())


def _checked(index: Path, deep: bool) -> int:
    from ..pipelines import open_index

    opened = open_index(index)
    opened.check(deep)
    return len(opened)


def _facts(item: Leftover) -> dict[str, object]:
    return {"path": str(item.path), "what": item.what, "in_use": item.in_use}


def _say(index: Path, gone: list[Leftover], left: list[Leftover]) -> None:
    from ..output import say

    for item in gone:
        say(f"removed: {item.path} ({item.what})")
    for item in left:
        remedy = "another process works in it" if item.in_use else f"fontes check {index} --clean removes it"
        say(f"left behind: {item.path} ({item.what}); {remedy}")
