"""Draft of an index's next state: its segments, with additions, deletions and merges that are not committed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import Bools
from ..core.errors import IndexFormatError
from ..core.work import resources, silent, work
from ..storage.arrays import REMEDY
from ..storage.artifact import changed, file_table
from ..storage.hashes import hash_json
from ..storage.system import sync_folder
from .build import merge_segments
from .embeddings.encoded import merge_conflict, merge_encoded
from .files import DELETED, entry_of, free_name, shard_of
from .segment import Deletions, Leaf, Segment, leaves_of
from .state import State

FACTOR = 10  # number of segments of similar size that are merged into one
FEW = 4  # the same in the lowest tier, where a merge costs less than what each segment adds to searches
MIN_TIER_DOCUMENTS = 1000  # documents of the lowest tier of segments
MEMORY = 1 << 29  # maximum bytes of the merges of a commit
SMALL = 10 * MIN_TIER_DOCUMENTS  # documents up to which a server merges in a write, which takes some .03 s


class Draft:
    """Segments of the next commit.

    Args:
        state: The present state.
        draft: Folder for new segments and deletions until the commit.

    Attributes:
        entries: Entries of the manifest.
        leaves: A leaf for each entry.
    """

    def __init__(self, state: State, draft: Path) -> None:
        entries = {state.path / entry["name"]: entry for entry in state.manifest["segments"]}
        self.leaves = list(state.leaves)
        self.entries: list[dict[str, Any]] = [entries[leaf.segment.folder] for leaf in self.leaves]
        self._draft, self._has_texts = draft, state.ciff is None
        self._shards: int | None = state.manifest.get("shards")
        self._count = 0  # of folders in the draft
        self._new: dict[int, Path] = {}  # folders of deletions in the draft, by the entry's identity
        self._merged: list[tuple[tuple[Leaf, ...], Path]] = []  # merged leaves, and the folders of their segments

    def append(self, folder: Path, counts: dict[str, int], sources: Sequence[Leaf] = ()) -> None:
        """Append a finished segment, in the draft's folder; of several shards, the one with the fewest documents gets it.

        The encodings of the documents of `sources`, from which they were copied, are copied too.
        """
        shard = None
        if self._shards is not None:
            sizes: Counter[int] = Counter()
            for entry, leaf in zip(self.entries, self.leaves, strict=True):
                sizes[shard_of(entry)] += leaf.documents
            shard = min(range(min(self._shards, len(sizes) + 1)), key=lambda number: sizes[number])
        self.entries.append(entry_of(folder, counts, shard))
        if sources:
            merge_encoded(sources, folder)
            self._merged.append((tuple(sources), folder))
        self.leaves.append(Leaf(Segment(folder, texts=self._has_texts)))

    def delete(self, number: int, dead: Bools) -> None:
        """Mark further documents of a segment as deleted."""
        leaf, entry = self.leaves[number], self.entries[number]
        self._check_deletions(number, "more of its documents cannot be deleted")
        deletions = Deletions.of(leaf.segment.lists, dead if leaf.dead is None else dead | leaf.dead)
        folder = self.new_folder()
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

    def merge(self, first: int, last: int, write: Callable[[Sequence[Leaf], Path], dict[str, int]] | None = None) -> None:
        """Merge the segments from `first` up to `last` into one, or into none if they have no living documents.

        `write` writes the new segment's files, by default `merge_segments`.

        Raises IndexFormatError if a segment is damaged, which the merged segment would hide.
        """
        for number in range(first, last):
            if (problem := changed(self.leaves[number].segment.folder, self.entries[number]["files"])) is not None:
                raise IndexFormatError(f"{problem}, so that it cannot be merged; {REMEDY}")
            self._check_deletions(number, "it cannot be merged")
        leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in self.leaves[first:last])
        entries: list[dict[str, object]] = []
        merged: list[Leaf] = []
        if leaves:
            folder = self.new_folder()
            counts = (write or merge_segments)(leaves, folder)
            entries = [entry_of(folder, counts, self.entries[first].get("shard"))]
            merged = [Leaf(Segment(folder, texts=self._has_texts))]
            merge_encoded(leaves, folder)
            self._merged.append((leaves, folder))
        self.entries[first:last], self.leaves[first:last] = entries, merged

    def merge_piled(self, most: int | None = None) -> None:
        """Merge the segments that have piled up in each shard, of at most so many documents; see `piled`."""
        with work(memory=min(MEMORY, resources().memory), progress=silent):
            for first, last in self.sort_by_shard():
                while (span := piled(self.leaves[first:last], most=most)) is not None:
                    count = len(self.leaves)
                    self.merge(first + span[0], first + span[1])
                    last -= count - len(self.leaves)

    def large_pile(self) -> tuple[int, int] | None:
        """Return the range of segments to merge next that a write of a server leaves, or None.

        Small segments at its end stay outside, as the next writes will merge them.
        """
        for first, last in self.sort_by_shard():
            if (span := piled(self.leaves[first:last], least=SMALL + 1)) is not None:
                start, end = first + span[0], first + span[1]
                while end - start > 2 and self.leaves[end - 1].documents <= MIN_TIER_DOCUMENTS:
                    end -= 1
                return start, end
        return None

    def replace(self, first: int, sources: Sequence[Leaf], folder: Path, entry: dict[str, object]) -> None:
        """Put a segment in place of those from which it was merged in an earlier state.

        Args:
            first: Number of the first of them.
            sources: Their leaves in that state; documents deleted since are deleted in the merged segment.
            folder: The merged segment, which is moved into the draft.
            entry: Its entry.
        """
        last = first + len(sources)
        dead = [
            np.zeros(before.documents, np.bool_) if after.dead is None else after.dead[before.live]
            for before, after in zip(sources, self.leaves[first:last], strict=True)
        ]
        folder = folder.replace(self.new_folder())
        self.entries[first:last] = [entry]
        self.leaves[first:last] = [Leaf(Segment(folder, texts=self._has_texts))]
        self._merged.append((tuple(sources), folder))
        if (all_dead := np.concatenate(dead)).any():
            self.delete(first, all_dead)

    def merge_all(self) -> None:
        """Merge the segments of each shard into one."""
        for first, last in self.sort_by_shard():
            if last - first > 1 or self.leaves[first].dead is not None or self.leaves[first].segment.lists.is_older:
                self.merge(first, last)

    def sort_by_shard(self) -> list[tuple[int, int]]:
        """Sort the segments by shard. Returns each shard's range, last first, so that a merge moves no range to come."""
        order = sorted(range(len(self.entries)), key=lambda number: shard_of(self.entries[number]))
        self.entries, self.leaves = [self.entries[n] for n in order], [self.leaves[n] for n in order]
        edges = [n for n in range(1, len(order)) if shard_of(self.entries[n - 1]) != shard_of(self.entries[n])]
        return list(pairwise([0, *edges, len(order)]))[::-1] if order else []

    def move_into(self, path: Path) -> list[dict[str, object]]:
        """Move new folders into the index at `path`, where no manifest names them yet. Returns the manifest's entries."""
        with work(threads=1, memory=min(MEMORY, resources().memory)):
            for leaves, folder in self._merged:  # encodings made during the merge
                merge_encoded(leaves, folder)
        entries = []
        for entry, leaf in zip(self.entries, self.leaves, strict=True):
            if leaf.segment.folder.parent == self._draft:
                entry = {**entry, "name": free_name(path, entry["name"])}
                sync_folder(leaf.segment.folder)
                leaf.segment.folder.rename(path / entry["name"])
            deleted = entry["deleted"]
            if deleted is not None and id(deleted) in self._new:
                target = path / entry["name"] / deleted["name"]
                sync_folder(self._new[id(deleted)])
                if not target.exists():
                    self._new[id(deleted)].rename(target)
                sync_folder(target.parent)
            entries.append(entry)
        return entries

    def _check_deletions(self, number: int, consequence: str) -> None:
        deleted = self.entries[number]["deleted"]
        if deleted is not None and id(deleted) not in self._new:
            problem = changed(self.leaves[number].segment.folder / deleted["name"], deleted["files"])
            if problem is not None:
                raise IndexFormatError(f"{problem}, so that {consequence}; {REMEDY}")

    def new_folder(self) -> Path:
        """Make an empty folder for a segment or deletions."""
        self._count += 1
        folder = self._draft / f"new-{self._count}"
        folder.mkdir()
        return folder


def piled(leaves: Sequence[Leaf], least: int = 0, most: int | None = None) -> tuple[int, int] | None:
    """Return the range of segments to merge next, with at least and at most so many documents, or None.

    A segment is rewritten when more than half of its documents are deleted. Neighbours are merged if none has more documents
    than a tier (MIN_TIER_DOCUMENTS, MIN_TIER_DOCUMENTS · FACTOR, and so on), and FACTOR or more, in the lowest tier FEW, have
    more than the tier below, as in Lucene's logarithmic merges: a large segment is not written again for a few small ones.
    Segments whose merge would lose data are not merged.
    """

    def fits(first: int, last: int) -> bool:
        documents = sum(leaf.documents for leaf in leaves[first:last])
        return documents >= least and (most is None or documents <= most)

    for number, leaf in enumerate(leaves):
        if 2 * leaf.documents < leaf.segment.documents and merge_conflict([leaf]) is None and fits(number, number + 1):
            return number, number + 1
    tier, largest = MIN_TIER_DOCUMENTS, max((leaf.documents for leaf in leaves), default=0)
    while len(leaves) >= FEW:
        lowest = 0 if tier == MIN_TIER_DOCUMENTS else tier // FACTOR
        for first, last in _mergeable_ranges(leaves, tier):
            if sum(leaf.documents > lowest for leaf in leaves[first:last]) >= (FACTOR if lowest else FEW) and fits(first, last):
                return first, last
        if tier >= largest:
            break
        tier *= FACTOR
    return None


def _mergeable_ranges(leaves: Sequence[Leaf], tier: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of neighbouring segments of at most `tier` documents each that can be merged without losing data."""
    first = 0
    for last in range(len(leaves) + 1):
        if last == len(leaves) or leaves[last].documents > tier:
            yield first, last
            first = last + 1
        elif merge_conflict(leaves[first : last + 1]) is not None:
            yield first, last
            first = last
