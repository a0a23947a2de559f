"""Registry of file readers and writers, so that values can be made from a path wherever they are accepted."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .errors import ParameterError

PACKAGE = "fontes.datasets"  # fills these when it is imported, with `formats`
readers: dict[str, Callable[..., Any]] = {}
"""Functions from a path to a value, by kind: "corpus", "topics", "qrels", "run"."""
writers: dict[str, Callable[..., None]] = {}
"""Functions that write a value to a path, by kind."""


def read(kind: str, path: str | os.PathLike[str], **options: object) -> Any:
    """Read a "corpus", "topics", "qrels" or "run" from a file, "-" (standard input), a folder in BEIR's form, or a collection.

    `options` are further arguments of the reader, such as a split.

    Raises:
        InputError: The file cannot be read.
        ParameterError: No reader of this kind is installed.
    """
    return _function(readers, kind, path)(os.fspath(path), **options)


def write(kind: str, value: object, path: str | os.PathLike[str], **options: object) -> None:
    """Write a value to the file at `path`; the kinds are those of `read`, the options those of the writer.

    Raises:
        InputError: The file cannot be written.
        ParameterError: No writer of this kind is installed.
    """
    _function(writers, kind, path)(value, os.fspath(path), **options)


def _function(functions: dict[str, Callable[..., Any]], kind: str, path: object) -> Callable[..., Any]:
    if kind not in functions:
        import_module(PACKAGE)
    if kind not in functions:
        raise ParameterError(f"{path}: nothing that reads or writes a {kind} is installed")
    return functions[kind]
