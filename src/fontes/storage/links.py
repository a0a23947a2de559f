"""Symbolic links in untrusted folders: nothing is written or removed through one.

A user may link to an index or results folder, but links inside it may lead anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import FontesError


def links_in(path: Path) -> Iterator[Path]:
    """Yield the symbolic links at and below a path; none if the path does not exist."""
    if path.is_symlink():
        yield path
        return
    for name, folders, files in os.walk(path):
        yield from (entry for entry in (Path(name) / inner for inner in sorted([*folders, *files])) if entry.is_symlink())


def refuse_links(path: Path) -> None:
    """Raise FontesError if a path is or contains a symbolic link; call it before writing or removing."""
    if link := next(links_in(path), None):
        raise FontesError(f"{link} is a link, which may lead anywhere; remove it. Nothing was changed")
