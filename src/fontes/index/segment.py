"""A segment of an index, its deletions, and a segment as part of one state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Bools, Indices, Int32s, Int64s, Ints, UInt64s
from ..core.errors import IndexFormatError, InputError
from ..core.strings import Strings
from ..core.values import Doc
from ..storage.arrays import REMEDY, UNSIGNED, Arrays, smallest, within, write_array
from .component import components
from .files import file_names

if TYPE_CHECKING:
    from .columns import SegmentColumns
    from .postings import PostingLists
    from .texts import DocumentStore


@dataclass(frozen=True, eq=False)
class Deletions:
    """Deleted documents of a segment.

    Args:
        dead: bool, (documents,): whether each is deleted.
        terms: uint32, ascending: numbers of the terms of deleted documents.
        df: Number of deleted documents with each of these terms.
        cf: Occurrences of each in deleted documents.
    """

    dead: Bools
    terms: Ints
    df: Ints
    cf: Ints

    @classmethod
    def of(cls, lists: PostingLists, dead: Bools) -> Deletions:
        """Return deletions of the `dead` documents, counted in their postings."""
        df, cf = lists.counted(dead)
        terms = np.flatnonzero(df)
        return cls(dead, smallest(terms), smallest(df[terms]), smallest(cf[terms]))

    @classmethod
    def read(cls, folder: Path, lists: PostingLists, counts: Mapping[str, Any]) -> Deletions:
        """Read the files of `write` for a segment's inverted index.

        `counts` are the expected numbers of deleted "documents", "postings" and "tokens". Raises IndexFormatError if a file is
        damaged or of another segment.
        """
        arrays = Arrays(folder)
        dead = arrays.array("dead", "|b1", lists.documents)
        terms = arrays.numbers("terms", len(lists.df), UNSIGNED, None)
        df, cf = (arrays.array(name, UNSIGNED, len(terms)) for name in ("df", "cf"))
        if not within(dead.view(np.uint8), 2):
            raise arrays.damaged("dead", "it has values that are neither true nor false")
        if np.any(terms[1:] <= terms[:-1]):
            raise arrays.damaged("terms", "it does not ascend")
        arrays.check_sum("dead", dead, counts["documents"], "documents")
        arrays.check_sum("df", df, counts["postings"], "postings")
        arrays.check_sum("cf", cf, counts["tokens"], "tokens")
        for name, array, segment_counts in (("df", df, lists.df), ("cf", cf, lists.cf)):
            if np.any(array > segment_counts[terms]):
                raise arrays.damaged(name, "it has counts above those of the segment")
        return cls(dead, terms, df, cf)

    def write(self, folder: Path) -> None:
        """Write the files dead, terms, df and cf."""
        for name in ("dead", "terms", "df", "cf"):
            write_array(folder, name, getattr(self, name))

    @cached_property
    def documents(self) -> int:
        """Number of deleted documents."""
        return int(np.count_nonzero(self.dead))

    def subtracted(self, counts: Ints, of: str) -> Int64s:
        """Return the segment's counts, `of` "df" or "cf", over its living documents."""
        live = counts.astype(np.int64)
        live[self.terms] -= getattr(self, of)
        return live


BASE_COMPONENTS = ("postings", "text", "columns")  # components that every index of documents has


class Segment:
    """The arrays of one segment, by memory map.

    Args:
        folder: The folder.
        entry: Its entry in the manifest, with expected counts and files; None: the files in the folder.
        texts: Whether it has the documents' texts; a segment from a CIFF file has none, and the lengths of the file.

    Attributes:
        ids: Document ids, in order.
        opened: Data of each component that was built with the documents, by name.
        unknown: Names of components whose package is not installed.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, entry: Mapping[str, Any] | None = None, texts: bool = True) -> None:
        self.folder, self.entry, self.has_texts = folder, entry or {}, texts
        self.ids: Strings = Arrays(folder).strings("doc_ids", self.entry.get("documents"), ordered=False)
        self.documents = len(self.ids)
        extra = [
            name
            for name in file_names(self.entry.get("files") or [file.name for file in folder.iterdir()])
            if name not in BASE_COMPONENTS
        ]
        self.unknown = [name for name in extra if name not in components]
        self.opened: dict[str, Any] = {}
        for name in [*BASE_COMPONENTS, *extra]:
            if name not in self.unknown and (texts or name != "text"):
                self.opened[name] = components[name].open(self)

    @property
    def lists(self) -> PostingLists:
        """The inverted index of the documents."""
        lists: PostingLists = self.opened["postings"]
        return lists

    @property
    def texts(self) -> DocumentStore:
        """Texts of the documents; InputError if the segment has none."""
        if "text" not in self.opened:
            raise InputError(
                f"{self.folder.parent} holds no text: it was made from a CIFF file, with only terms, postings and lengths; "
                "index the documents themselves to read them"
            )
        texts: DocumentStore = self.opened["text"]
        return texts

    @property
    def columns(self) -> SegmentColumns:
        """The columns of the documents' metadata."""
        columns: SegmentColumns = self.opened["columns"]
        return columns

    def check_ids(self, dead: Bools | None) -> None:
        """Raise IndexFormatError unless the ids are in order and the ids of living documents are unique.

        `dead` marks deleted documents; None: none is deleted.
        """
        order = self.ids.order.tolist()
        ids = list(zip(self.ids.take(self.ids.order), order, strict=True))
        live = [doc_id for doc_id, position in ids if dead is None or not dead[position]]
        if not all(a < b for a, b in pairwise(ids)):
            raise IndexFormatError(f"{self.folder} is damaged: its document ids are not in order; {REMEDY}")
        if not all(a != b for a, b in pairwise(live)):
            raise IndexFormatError(f"{self.folder} is damaged: a document id occurs twice; {REMEDY}")

    def docs(self, first: int, last: int) -> list[Doc]:
        """Return documents from one position up to another, deleted ones too; raises as `texts`, or if they are damaged."""
        positions = range(first, last)
        return self.texts.read([self.ids[i] for i in positions], positions)


@dataclass(frozen=True, eq=False)
class Leaf:
    """A segment as part of one state of an index.

    Args:
        segment: The segment.
        first: Ordinal of the segment's first living document in the state.
        deletions: Its deleted documents, or None.
    """

    segment: Segment
    first: int = 0
    deletions: Deletions | None = None

    @property
    def dead(self) -> Bools | None:
        """bool, (documents,): whether each is deleted; None if none is deleted."""
        return None if self.deletions is None else self.deletions.dead

    @property
    def documents(self) -> int:
        """Number of living documents."""
        return self.segment.documents - (0 if self.deletions is None else self.deletions.documents)

    @cached_property
    def state(self) -> str | None:
        """Digest of the deletions; None without any."""
        return None if self.dead is None else hashlib.sha256(self.dead.tobytes()).hexdigest()

    @cached_property
    def live(self) -> Int64s:
        """Positions of the living documents in the segment, ascending."""
        return np.arange(self.segment.documents) if self.dead is None else np.flatnonzero(~self.dead)

    @cached_property
    def living(self) -> UInt64s:
        """uint64, (documents / 64, rounded up): a bit for each document, the lowest first; 1 for living ones."""
        alive = np.ones(self.segment.documents, dtype=np.bool_) if self.dead is None else ~self.dead
        words = np.zeros(-(-len(alive) // 64), dtype=np.uint64)
        words.view(np.uint8)[: -(-len(alive) // 8)] = np.packbits(alive, bitorder="little")
        return words

    @cached_property
    def ordinals(self) -> Int32s:
        """int32, (documents,): the ordinal of each in the state, -1 for a deleted one."""
        ordinals = np.full(self.segment.documents, -1, dtype=np.int32)
        ordinals[self.live] = np.arange(self.first, self.first + self.documents, dtype=np.int32)
        return ordinals

    def check(self) -> None:
        """Raise IndexFormatError unless all components of the segment, and its deletions, fit together."""
        self.segment.check_ids(self.dead)
        for name in self.segment.opened:
            components[name].check(self, deep=True)
        if self.deletions is not None:
            counted = Deletions.of(self.segment.lists, self.deletions.dead)
            for name in ("terms", "df", "cf"):
                if not np.array_equal(getattr(counted, name), getattr(self.deletions, name)):
                    raise IndexFormatError(f"{self.segment.folder} is damaged: its deletions do not fit its postings; {REMEDY}")


def leaves_of(segments: Iterable[tuple[Segment, Deletions | None]]) -> tuple[Leaf, ...]:
    """Return consecutive leaves of the segments that have living documents."""
    leaves: list[Leaf] = []
    for segment, deletions in segments:
        leaf = Leaf(segment, leaves[-1].first + leaves[-1].documents if leaves else 0, deletions)
        if leaf.documents:
            leaves.append(leaf)
    return tuple(leaves)


def located(leaves: Sequence[Leaf], docs: Ints) -> Iterator[tuple[int, Indices, Int64s]]:
    """Locate documents, given as ordinals in the state of the leaves.

    Yields for each leaf that has any of them: its number, their indices in `docs`, their positions in the segment.
    """
    for number, leaf in enumerate(leaves):
        local = docs.astype(np.int64) - leaf.first
        rows = np.flatnonzero((local >= 0) & (local < leaf.documents))
        if len(rows):
            yield number, rows, local[rows] if leaf.dead is None else leaf.live[local[rows]]
