"""Changing an index: documents added and deleted, segments merged, each in one step by one writer at a time."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.progress import Report, silent
from ..core.strings import Strings
from ..core.values import Doc
from ..formats import read_corpus
from ..storage.arrays import REMEDY, sync_folder
from ..storage.artifact import changed, drafting, file_table
from ..storage.hashes import hash_json
from ..storage.interrupts import uninterrupted
from ..storage.locks import locked
from .attached.merging import attached, merge_attachments
from .build import TermWeights, build_segment
from .columns import ColumnWriter, Schema
from .deletions import Deletions
from .files import (
    DELETED,
    DRAFT_OF_WRITER,
    WRITER,
    complete,
    entry_of,
    free_name,
    read_manifest,
    replace_manifest,
    write_manifest,
)
from .leaf import Leaf, leaves_of
from .merge import merge_segments
from .reader import Reader
from .segment import Segment

HOLDER = "holder.json"
DUPLICATES = ("error", "skip", "replace")
FACTOR = 10  # segments of about the same size that are merged when there are as many
SMALL = 1000  # documents up to which segments are of the same size
MEMORY = 1 << 29  # bytes that the merges of a commit may take


@dataclass(frozen=True)
class Change:
    """What a commit has changed, and what there is now.

    Args:
        added: Documents that have come.
        replaced: How many of these took the place of another.
        skipped: Documents that did not come, as their id was there; or ids that were to be deleted and were not there.
        deleted: Documents that have gone without another in their place.
        documents: How many documents there are now.
        segments: How many segments there are now.
    """

    added: int = 0
    replaced: int = 0
    skipped: int = 0
    deleted: int = 0
    documents: int = 0
    segments: int = 0


class State:
    """Segments on their way into a commit: the entries of the manifest with what is open of them.

    Args:
        reader: The state that is there.
        draft: Where new folders are until the commit.

    Attributes:
        entries: The manifest's.
        leaves: A leaf for each entry.
    """

    def __init__(self, reader: Reader, draft: Path) -> None:
        entries = {reader.path / entry["name"]: entry for entry in reader.manifest["segments"]}
        self.leaves = list(reader.leaves)
        self.entries: list[dict[str, Any]] = [entries[leaf.segment.folder] for leaf in self.leaves]
        self._draft = draft
        self._count = 0  # of folders in the draft
        self._new: dict[int, Path] = {}  # folders of deletions in the draft, by the entry's identity

    def append(self, folder: Path, counts: dict[str, int]) -> None:
        """Adds a finished segment that is in the draft."""
        self.entries.append(entry_of(folder, counts))
        self.leaves.append(Leaf(Segment(folder)))

    def delete(self, number: int, dead: NDArray[np.bool_]) -> None:
        """Marks documents of a segment as deleted, beside those that are."""
        leaf, entry = self.leaves[number], self.entries[number]
        deletions = Deletions.of(leaf.segment, dead if leaf.dead is None else dead | leaf.dead)
        folder = self._folder()
        deletions.write(folder)
        files = file_table(folder)
        counts = {
            "documents": deletions.documents,
            "postings": int(deletions.df.sum(dtype=np.int64)),
            "tokens": int(deletions.cf.sum(dtype=np.int64)),
        }
        deleted = {"name": f"{DELETED}-{hash_json(files)[:16]}", **counts, "files": files}
        self.entries[number] = {**entry, "deleted": deleted}
        self.leaves[number] = Leaf(leaf.segment, leaf.first, deletions)
        self._new[id(deleted)] = folder

    def merge(self, first: int, last: int, memory: int, threads: int, progress: Report) -> None:
        """Makes one segment of those from `first` to `last`, or none where they have no document left.

        Raises:
            IndexFormatError: One is not as it was written; its damage would have sums that fit.
        """
        for entry, leaf in zip(self.entries[first:last], self.leaves[first:last], strict=True):
            if (problem := changed(leaf.segment.folder, entry["files"])) is not None:
                raise IndexFormatError(f"{problem}, so that it cannot be merged; {REMEDY}")
        leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in self.leaves[first:last])
        entries: list[dict[str, Any]] = []
        merged: list[Leaf] = []
        if leaves:
            folder = self._folder()
            counts = merge_segments(leaves, folder, memory=memory, threads=threads, progress=progress)
            entries, merged = [entry_of(folder, counts)], [Leaf(Segment(folder))]
            merge_attachments(leaves, folder, memory=memory, threads=threads)
        self.entries[first:last], self.leaves[first:last] = entries, merged

    def merge_piled(self, threads: int) -> None:
        """Merges what has piled up; see `piled`."""
        while (some := piled(self.leaves)) is not None:
            self.merge(*some, MEMORY, threads, silent)

    def place(self, path: Path) -> list[dict[str, Any]]:
        """Puts the new folders into the index at `path`, where nobody reads them yet. Returns the entries of the manifest."""
        entries = []
        for entry, leaf in zip(self.entries, self.leaves, strict=True):
            if leaf.segment.folder.parent == self._draft:
                entry = {**entry, "name": free_name(path, entry["name"])}
                sync_folder(leaf.segment.folder)
                leaf.segment.folder.rename(path / entry["name"])
            deleted = entry["deleted"]
            if deleted is not None and id(deleted) in self._new:
                place = path / entry["name"] / deleted["name"]
                sync_folder(self._new[id(deleted)])
                if not place.exists():
                    self._new[id(deleted)].rename(place)
                sync_folder(place.parent)
            entries.append(entry)
        return entries

    def _folder(self) -> Path:
        """An empty folder in the draft."""
        self._count += 1
        folder = self._draft / f"new-{self._count}"
        folder.mkdir()
        return folder


def piled(leaves: Sequence[Leaf]) -> tuple[int, int] | None:
    """The first and the one after the last of the segments to merge next; None where it is well.

    One is written anew when more than half of its documents are deleted, and FACTOR or more beside one another of which none
    has more documents than its tier (up to SMALL, FACTOR times that, and so on) become one, as Lucene's logarithmic merges.
    Segments with other vectors are left apart.
    """
    for number, leaf in enumerate(leaves):
        if 2 * leaf.documents < leaf.segment.documents and attached([leaf]) is None:
            return number, number + 1
    tier, most = SMALL, max((leaf.documents for leaf in leaves), default=0)
    while len(leaves) >= FACTOR:
        for first, last in _alike(leaves, tier):
            if last - first >= FACTOR:
                return first, last
        if tier >= most:
            break
        tier *= FACTOR
    return None


def _alike(leaves: Sequence[Leaf], tier: int) -> Iterator[tuple[int, int]]:
    """Ranges of segments beside one another of at most so many documents that have the same vectors."""
    first = 0
    for last in range(len(leaves) + 1):
        if last == len(leaves) or leaves[last].documents > tier:
            yield first, last
            first = last + 1
        elif attached(leaves[first : last + 1]) is not None:
            yield first, last
            first = last


def add(
    reader: Reader, docs: str | Path | Iterable[Any], duplicates: str, memory: int, threads: int, progress: Report
) -> tuple[Change, Reader]:
    """Adds documents; see `Index.add`. Returns what has changed, and the new state."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates must be error, skip or replace, not {duplicates!r}")
    documents = read_corpus(docs)
    skipped = 0
    with _writing(reader) as (before, draft):
        seen: set[str] = set()

        def fits(doc: Doc) -> bool:
            nonlocal skipped
            if doc.id in seen or doc.id in before:
                skipped += 1
                return False
            seen.add(doc.id)
            return True

        folder = draft / "segment"
        folder.mkdir()
        columns = ColumnWriter(folder, before.schema)
        counts = build_segment(
            documents,
            folder,
            before.analyzer,
            before.fields,
            weights=None if before.scale is None else TermWeights(before.fields[0]),
            memory=memory,
            threads=threads,
            progress=progress,
            columns=columns,
            only=fits if duplicates == "skip" else None,
            repeated=duplicates == "replace",
        )
        state = State(before, draft)
        replaced = 0
        if counts["documents"]:
            state.append(folder, counts)
            replaced = _replaced(state, before, duplicates)
        state.merge_piled(threads)
        after = _committed(before, state, draft, columns.schema)
    added = len(after) - len(before) + replaced
    return Change(added, replaced, skipped, 0, len(after), len(after.leaves)), after


def delete(reader: Reader, ids: Sequence[str], missing: str) -> tuple[Change, Reader]:
    """Deletes documents; see `Index.delete`. Returns what has changed, and the new state."""
    if missing not in ("error", "skip"):
        raise ParameterError(f"missing must be error or skip, not {missing!r}")
    for doc_id in ids:
        if not isinstance(doc_id, str):
            raise ParameterError(f"an id is a string, not {doc_id!r}")
    with _writing(reader) as (before, draft):
        table = Strings.of(ids)
        ordinals = before.ordinals(table)
        absent = np.flatnonzero(ordinals < 0)
        if len(absent) and missing == "error":
            more = f" (nor are {len(absent) - 1:,} others)" if len(absent) > 1 else ""
            raise InputError(
                f"document '{table[int(absent[0])]}' is not in the index {before.path}{more}; nothing was deleted; "
                "missing='skip' (--missing skip) deletes those that are there"
            )
        state = State(before, draft)
        _delete(state, before, np.unique(ordinals[ordinals >= 0]))
        state.merge_piled(os.cpu_count() or 1)
        after = _committed(before, state, draft)
    gone = len(before) - len(after)
    return Change(0, 0, len(absent), gone, len(after), len(after.leaves)), after


def merge(reader: Reader, memory: int, threads: int, drop_vectors: bool, progress: Report) -> tuple[Change, Reader]:
    """Merges all segments; see `Index.merge`. Returns what there is, and the new state."""
    with _writing(reader) as (before, draft):
        state = State(before, draft)
        if not drop_vectors and (problem := attached(state.leaves)) is not None:
            raise FontesError(f"{before.path} cannot be merged: {problem}")
        if len(state.leaves) > 1 or any(leaf.dead is not None for leaf in state.leaves):
            state.merge(0, len(state.leaves), memory, threads, progress)
        after = _committed(before, state, draft)
    return Change(documents=len(after), segments=len(after.leaves)), after


def _replaced(state: State, before: Reader, duplicates: str) -> int:
    """Deletes the documents whose ids the last segment has again, and all but the last of its own with the same id.

    Returns:
        How many documents of the index have gone for those.

    Raises:
        InputError: There are such, and they are not to be replaced.
    """
    new = state.leaves[-1].segment
    ordinals = before.ordinals(new.ids)
    again = np.flatnonzero(ordinals >= 0)
    if len(again) and duplicates == "error":
        more = f", as are {len(again) - 1:,} others" if len(again) > 1 else ""
        raise InputError(
            f"document '{new.ids[int(again[0])]}' is in the index {before.path} already{more}; nothing was added; "
            "duplicates='replace' (--duplicates replace) puts the new one in its place, 'skip' keeps the old one"
        )
    places = np.unique(ordinals[again])
    _delete(state, before, places)
    if duplicates == "replace":
        order = new.ids.order
        in_order = new.ids.take(order)
        dead = np.zeros(new.documents, dtype=np.bool_)
        for i in range(len(in_order) - 1):
            dead[order[i]] = in_order[i] == in_order[i + 1]
        if dead.any():
            state.delete(len(state.leaves) - 1, dead)
    return len(places)


def _delete(state: State, before: Reader, ordinals: NDArray[np.int64]) -> None:
    """Deletes documents of the state that was before, by their ordinals, ascending."""
    for number, leaf in enumerate(before.leaves):
        own = ordinals[(ordinals >= leaf.first) & (ordinals < leaf.first + leaf.documents)]
        if len(own):
            dead = np.zeros(leaf.segment.documents, dtype=np.bool_)
            dead[leaf.live[own - leaf.first]] = True
            state.delete(number, dead)


@contextmanager
def _writing(reader: Reader) -> Iterator[tuple[Reader, Path]]:
    """The newest state of a reader's index, and an empty folder to make its changes in; nobody else changes it meanwhile.

    Raises:
        FontesError: Somebody else changes it, or the disk is full or cannot be written.
    """
    path, busy = reader.path, FontesError("the index is being changed")
    try:
        with drafting(path.absolute() / WRITER, busy) as draft:
            _empty(draft)
            (draft / HOLDER).write_text(json.dumps(_holder()), encoding="utf-8")
            try:
                yield reader.refreshed(), draft
            finally:
                with uninterrupted():
                    _empty(draft)
    except FontesError as error:
        if error is not busy:
            raise
        who = _shown(path / DRAFT_OF_WRITER / HOLDER)
        raise FontesError(f"{path} is being changed by {who}; wait until that is done") from None
    except OSError as error:
        if getattr(error, "of_documents", False):
            raise
        raise FontesError(f"{path} cannot be written: {error.strerror or error}; nothing was changed") from error


def _holder() -> dict[str, Any]:
    return {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now().astimezone().isoformat(" ", "seconds"),
    }


def _shown(holder: Path) -> str:
    """Who it is that changes an index."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {facts['process']} on {facts['host']} since {facts['since']}"
    return "another process"


def _empty(draft: Path) -> None:
    for entry in draft.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()


def _committed(before: Reader, state: State, draft: Path, schema: Schema | None = None) -> Reader:
    """Makes a state the index's, in one step, and opens it.

    Raises:
        FontesError: The index was replaced meanwhile.
    """
    if state.entries == before.manifest["segments"]:
        return before
    path = before.path.absolute()
    facts = {key: value for key, value in before.manifest.items() if key not in ("fingerprint", "segments")}
    if schema is not None:
        facts["columns"] = schema.to_json()
    with uninterrupted(before.path), locked(path.parent):
        if read_manifest(path)["fingerprint"] != before.fingerprint:
            raise FontesError(f"{before.path} was replaced by another index meanwhile; nothing was changed")
        write_manifest(draft, complete(facts, state.place(path)))
        replace_manifest(path, draft)
    return before.refreshed()
