"""Symbolic links in folders that somebody else may have filled: nothing is written or removed through one.

A user may link to an index or to a folder of results; a link inside of it may lead anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import FontesError


def links_in(path: Path) -> Iterator[Path]:
    """The symbolic links at a path and below it, whatever they lead to; none where nothing is there."""
    if path.is_symlink():
        yield path
        return
    for name, folders, files in os.walk(path):
        yield from (entry for entry in (Path(name) / inner for inner in sorted([*folders, *files])) if entry.is_symlink())


def refuse_links(path: Path) -> None:
    """Raises FontesError where a path is a symbolic link or has one below it; before anything is written or removed there."""
    if link := next(links_in(path), None):
        raise FontesError(f"{link} is a link, which may lead anywhere; remove it. Nothing was changed")
