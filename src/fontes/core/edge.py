"""Registry of file readers, so that values can be made from a path wherever they are accepted."""

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
    """Read a value from the file at `path`.

    Args:
        kind: "corpus", "topics", "qrels" or "run".
        path: A file, "-" for standard input, or a folder in BEIR's form.
        **options: Other arguments of the reader, such as a split.

    Raises:
        InputError: The file cannot be read.
        ParameterError: No reader of this kind is installed.
    """
    if kind not in readers:
        for point in entry_points(group=GROUP):
            if point.dist is not None and point.dist.name == "fontes":
                import_module(point.module)
    if kind not in readers:
        raise ParameterError(f"{path}: nothing that reads a {kind} is installed")
    return readers[kind](os.fspath(path), **options)
