"""Merges of large segments beside the writes of a process that goes on, such as a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.errors import FontesError, IndexFormatError
from ..core.work import resources, work
from ..storage.artifact import staging
from .draft import MEMORY, SMALL, Draft
from .files import read_manifest, real_path
from .state import State
from .writer import ReplacedError, commit_draft, writing

MERGED = "merged"  # the staged folder's name


@contextmanager
def merged_aside(opened: State) -> Iterator[Callable[[], State | None] | None]:
    """Merge the next segments that a commit leaves because they are large, while the index may be changed.

    Args:
        opened: A state of the index.

    Yields:
        A function that puts the merged segment in place of the others, in a commit, and returns the new state; it returns None
        and changes nothing if one of them was merged or rewritten meanwhile. It raises BusyError while another process changes
        the index, and can be called again. None if there is nothing to merge.

    Raises:
        IndexFormatError: A segment is damaged.
        FontesError: The disk is full or cannot be written; nothing was changed.
    """
    state, path = opened.refreshed(), real_path(opened.path)
    if Draft(state, path).large_pile() is None:
        yield None
        return
    try:
        with staging(path / MERGED) as folder:
            draft = Draft(state, folder)
            first, last = draft.large_pile() or (0, 0)
            sources, names = tuple(draft.leaves[first:last]), [entry["name"] for entry in draft.entries[first:last]]
            try:
                with work(threads=1, memory=min(MEMORY, resources().memory)):
                    draft.merge(first, last)
            except (IndexFormatError, FileNotFoundError):
                if set(names) <= {entry["name"] for entry in read_manifest(path)["segments"]}:
                    raise
                yield None  # another process has merged them, and removed their files
                return
            merged, entry = draft.leaves[first].segment.folder, draft.entries[first]

            def install() -> State | None:
                try:
                    with writing(opened) as (newest, new_folder):
                        new = Draft(newest, new_folder)
                        new.sort_by_shard()
                        new_names = [entry["name"] for entry in new.entries]
                        start = new_names.index(names[0]) if names[0] in new_names else 0
                        if new_names[start : start + len(names)] != names:
                            return None
                        new.replace(start, sources, merged, entry)
                        new.merge_piled(SMALL)
                        return commit_draft(newest, new, new_folder)
                except ReplacedError:
                    return None

            yield install
    except OSError as error:
        raise FontesError(f"{opened.path} cannot be written: {error.strerror or error}; nothing was changed") from error
