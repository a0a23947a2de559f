"""The component of postings: several inverted indexes as one, over the documents that live, and merged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..core.progress import Report
from ..core.strings import Strings
from ..storage.arrays import REMEDY
from .component import Building, Component, components
from .deletions import Deletions
from .inverted import TERMS, PostingLists
from .kernels import append_postings
from .leaf import Leaf
from .postings import InvertedWriter, write_lists
from .tables import union

if TYPE_CHECKING:
    from .segment import Segment
    from .state import State


class JoinedLists:
    """The inverted indexes of leaves as one: what an index built of the living documents alone would hold.

    Args:
        parts: One for each leaf, in their order.
        leaves: The leaves, with the deletions as they are counted in `parts`.

    Attributes:
        lengths: Unsigned, one a document: its terms.
        terms: The terms, in ascending order.
        df: Unsigned, one a term: the documents with it.
        cf: Unsigned, one a term: its occurrences.
    """

    def __init__(self, parts: Sequence[PostingLists], leaves: Sequence[Leaf]) -> None:
        self._parts, self._leaves = parts, leaves
        self._df = [part.df.astype(np.int64) for part in parts]  # of one type, as the loop is compiled for one
        self.lengths: NDArray[np.integer[Any]] = np.concatenate(
            [np.zeros(0, np.uint8), *(part.lengths[leaf.live] for part, leaf in zip(parts, leaves, strict=True))]
        )
        terms, numbers = union([part.terms for part in parts])
        df, cf = np.zeros(len(terms), dtype=np.int64), np.zeros(len(terms), dtype=np.int64)
        for part, leaf, of_part in zip(parts, leaves, numbers, strict=True):
            deletions = leaf.deletions
            df[of_part] += part.df if deletions is None else deletions.taken_off(part.df, "df")
            cf[of_part] += part.cf if deletions is None else deletions.taken_off(part.cf, "cf")
        kept = np.flatnonzero(df)
        self.terms = terms if len(kept) == len(terms) else _ascending(terms.reordered(kept))
        self.df: NDArray[np.integer[Any]] = df[kept]
        self.cf: NDArray[np.integer[Any]] = cf[kept]
        self._numbers = [_inverse(of_part, len(terms))[kept] for of_part in numbers]
        self._number = lru_cache(TERMS)(self.terms.find)

    def term_number(self, term: str) -> int:
        """The number of a term: its place in `terms`, from 0; -1 for a term that there is not."""
        return self._number(term)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms with these numbers, end to end: the documents' ordinals, and term frequencies, both int32.

        Raises:
            IndexFormatError: The bytes are not the postings of the terms.
        """
        cursor = np.zeros(len(terms) + 1, dtype=np.int64)
        np.cumsum(self.df[terms], out=cursor[1:])
        ends = cursor[1:].copy()
        docs, tfs = np.empty(cursor[-1], dtype=np.int32), np.empty(cursor[-1], dtype=np.int32)
        for part, leaf, of_part, of_union in zip(self._parts, self._leaves, self._df, self._numbers, strict=True):
            numbers = of_union[terms]
            own = part.postings(numbers[numbers >= 0])
            fit = append_postings(numbers, of_part, *own, leaf.ordinals, cursor, docs, tfs)
            if not fit:
                break
        if not np.array_equal(cursor[:-1], ends):
            folders = " or ".join(str(leaf.segment.folder) for leaf in self._leaves if leaf.deletions is not None)
            raise IndexFormatError(f"{folders} is damaged: deletions do not fit the postings; {REMEDY}")
        return docs, tfs


def counted(leaf: Leaf, part: PostingLists) -> Leaf:
    """The leaf with its deletions counted in other lists of its documents."""
    return leaf if leaf.dead is None else Leaf(leaf.segment, leaf.first, Deletions.of(part, leaf.dead))


def merge_lists(parts: Sequence[PostingLists], leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
    """Writes the files of one inverted index: terms, df, cf, postings, doc_lengths.

    Args:
        parts: The inverted indexes of the leaves' documents: their own, or the weights that a model gave their terms.
        leaves: The leaves, the first of which has the ordinals from 0.
        folder: Where the files go.

    Returns:
        The counts of terms, postings and tokens.
    """
    own = [leaf if part is leaf.segment.lists else counted(leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
    lists = JoinedLists(parts, own)
    return write_lists(
        folder,
        lists.terms,
        lists.df,
        lists.lengths,
        lambda first, last: lists.postings(np.arange(first, last)),
    )


class Postings(Component[PostingLists], name="postings"):
    """The inverted index of the documents' terms, and their lengths."""

    def open(self, segment: Segment) -> PostingLists:
        return PostingLists(segment.folder, segment.documents, counts=segment.entry, summed=segment.has_texts)

    def join(self, leaves: Sequence[Leaf], parts: Sequence[PostingLists], facts: dict[str, Any]) -> PostingLists | JoinedLists:
        return parts[0] if len(parts) == 1 and leaves[0].dead is None else JoinedLists(parts, leaves)

    def writer(self, building: Building) -> InvertedWriter:
        return InvertedWriter(building)

    def merge(self, leaves: Sequence[Leaf], folder: Path, progress: Report) -> dict[str, int]:
        lists = [leaf.segment.lists for leaf in leaves]
        return merge_lists(lists, leaves, folder)

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            leaf.segment.lists.check()

    def facts(self, state: State) -> dict[str, Any]:
        mean = state.tokens / len(state) if len(state) else 0.0
        counts = {"terms": len(state.terms), "postings": state.count("postings"), "tokens": state.tokens}
        return {**counts, "mean_length": mean}


POSTINGS: Postings = components["postings"]  # type: ignore[assignment]


def _inverse(numbers: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    inverse = np.full(count, -1, dtype=np.int32)
    inverse[numbers] = np.arange(len(numbers), dtype=np.int32)
    return inverse


def _ascending(terms: Strings) -> Strings:
    return Strings(terms.blob, terms.offsets, np.arange(len(terms), dtype=np.uint32))
