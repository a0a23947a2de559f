"""Opening the newest state of an index, and going on to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.errors import FontesError, IndexFormatError
from ..text import Analyzer
from .files import check_sizes, manifest_file, read_manifest
from .reader import Reader


def newest(path: Path, analyzer_of: Callable[[dict[str, Any]], Analyzer], before: Reader | None = None) -> Reader:
    """The newest state of the index in a directory.

    Args:
        path: The directory.
        analyzer_of: Makes the analyzer that a manifest names.
        before: An older state, whose open segments the new one shares.

    Raises:
        IndexFormatError: There is no index, or a damaged one, or one of another format version.
    """
    while True:
        seen = manifest_file(path)
        manifest = read_manifest(path)
        try:
            check_sizes(path, manifest)
            return Reader(path, manifest, analyzer_of(manifest), before)
        except IndexFormatError:
            # Another process may have replaced the manifest between two files, perhaps by an equal one; then that is opened.
            if manifest_file(path) == seen:
                raise


def refreshed(reader: Reader) -> Reader:
    """The newest state of a reader's index: the reader itself where there is no newer one."""

    def analyzer(manifest: dict[str, Any]) -> Analyzer:
        if {**manifest["analyzer"], "libraries": None} != {**reader.manifest["analyzer"], "libraries": None}:
            raise FontesError(f"{reader.path} was replaced by an index with another analyzer; open it again")
        return reader.analyzer

    if read_manifest(reader.path)["fingerprint"] == reader.fingerprint:
        return reader
    return newest(reader.path, analyzer, reader)
