"""Files that interrupted builds and encodings left in a folder and beside it, and their removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from ..core.errors import IndexFormatError
from ..storage.system import locked
from ..storage.temporary import Leftover, hidden, is_in_use
from .embeddings.encoded import DRAFT
from .embeddings.encoding import DRAFT_FILES
from .embeddings.vectors import FOLDER, latest
from .files import DRAFT_OF_WRITER, MANIFEST, read_manifest, real_path, unnamed_folders


def leftovers(path: Path) -> list[Leftover]:
    """Return unreferenced files beside `path`, in it, and in the indexes in it.

    `path` is an index, or a folder with indexes, runs or models; it need not exist.
    """
    path = real_path(path)
    items = list(hidden(path.parent, path.name))
    for name, folders, files in os.walk(path):
        folder = Path(name)
        folder_items = list(hidden(folder))
        if MANIFEST in files:
            folder_items += _index_leftovers(folder)
        skipped = {item.path for item in folder_items}
        folders[:] = sorted(inner for inner in folders if folder / inner not in skipped)
        items += folder_items
    return items


def _index_leftovers(path: Path) -> Iterator[Leftover]:
    """Yield files of an index that its manifest does not name: of interrupted changes and encodings, and replaced vectors."""
    with ExitStack() as stack, suppress(IndexFormatError):
        with suppress(OSError):
            stack.enter_context(locked(path.parent))  # a commit writes the manifest after the segment
        for folder in unnamed_folders(path):
            description = "a segment of no index" if folder.parent == path else "deletions that newer ones have replaced"
            yield Leftover(folder, description, False, path.parent, lambda folder=folder: folder in unnamed_folders(path))  # type: ignore[misc]
        stack.close()
        draft = path / DRAFT_OF_WRITER
        if draft.is_dir() and not draft.is_symlink():
            yield Leftover(draft, "a change that was stopped", is_in_use(draft), draft)
        for segment in read_manifest(path)["segments"]:
            yield from _segment_leftovers(path / segment["name"])


def _segment_leftovers(segment: Path) -> Iterator[Leftover]:
    newest = set(latest(segment).values())
    for entry in sorted(segment.iterdir()):
        if entry.is_symlink() or not entry.is_dir():
            continue
        if DRAFT.fullmatch(entry.name):
            description = "an encoding that was stopped; fontes encode resumes it"
            yield Leftover(entry, description, is_in_use(entry), entry)
        elif (match := FOLDER.fullmatch(entry.name)) and entry not in newest:
            newer = next(folder for folder in newest if (other := FOLDER.fullmatch(folder.name)) and other[1] == match[1])
            yield Leftover(entry, "vectors that newer ones have replaced", is_in_use(newer), newer)
        elif match:
            for file in (entry / name for name in DRAFT_FILES):
                if file.is_file():
                    yield Leftover(file, "the journal of an encoding that is complete", is_in_use(entry), entry)


def clean(path: Path) -> tuple[list[Leftover], list[Leftover]]:
    """Remove leftovers that are not in use. Returns the removed and the remaining leftovers."""
    removed: list[Leftover] = []
    remaining: list[Leftover] = []
    for item in leftovers(path):
        (removed if not item.in_use and item.remove() else remaining).append(item)
    return removed, remaining
