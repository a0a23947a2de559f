"""Files at the edge: whoever reads them registers here, so that values can be made from a path wherever they are taken."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from .errors import ParameterError

GROUP = "fontes.formats"
readers: dict[str, Callable[..., Any]] = {}
"""By what is read ("corpus", "topics", "qrels", "run"), the function from a path to the value."""


def read(kind: str, path: str | os.PathLike[str], **options: Any) -> Any:
    """The value in the file at `path`.

    Args:
        kind: "corpus", "topics", "qrels" or "run".
        path: A file, "-" for standard input, or a folder in BEIR's form.
        **options: What the reader takes beside the path, such as a split.

    Raises:
        InputError: The file cannot be read.
        ParameterError: Nothing that reads this kind is installed.
    """
    if kind not in readers:
        for point in entry_points(group=GROUP):
            if point.dist is not None and point.dist.name == "fontes":
                import_module(point.module)
    if kind not in readers:
        raise ParameterError(f"{path}: nothing that reads a {kind} is installed")
    return readers[kind](os.fspath(path), **options)
