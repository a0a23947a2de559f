"""Which documents of a segment are deleted, and what that takes off the counts of its terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..storage.arrays import UNSIGNED, Arrays, smallest, within, write_array

if TYPE_CHECKING:
    from .inverted import PostingLists


@dataclass(frozen=True, eq=False)
class Deletions:
    """The deleted documents of a segment.

    Args:
        dead: For each document of the segment whether it is deleted.
        terms: uint32, ascending: the terms of the segment that deleted documents hold.
        df: For each of these the number of deleted documents with it.
        cf: For each of these how often it occurs in deleted documents.
    """

    dead: NDArray[np.bool_]
    terms: NDArray[np.integer[Any]]
    df: NDArray[np.integer[Any]]
    cf: NDArray[np.integer[Any]]

    @classmethod
    def of(cls, lists: PostingLists, dead: NDArray[np.bool_]) -> Deletions:
        """Those of an inverted index whose documents are `dead`, counted in its postings."""
        df, cf = lists.counted(dead)
        terms = np.flatnonzero(df)
        return cls(dead, smallest(terms), smallest(df[terms]), smallest(cf[terms]))

    @classmethod
    def read(cls, folder: Path, lists: PostingLists, counts: Mapping[str, Any]) -> Deletions:
        """Those that `write` wrote.

        Args:
            folder: The folder.
            lists: The segment.
            counts: How many "documents", "postings" and "tokens" they take off it.

        Raises:
            IndexFormatError: A file is missing, damaged, or of another segment.
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
        for name, array, of_segment in (("df", df, lists.df), ("cf", cf, lists.cf)):
            if np.any(array > of_segment[terms]):
                raise arrays.damaged(name, "it has counts above those of the segment")
        return cls(dead, terms, df, cf)

    def write(self, folder: Path) -> None:
        """Writes the files dead, terms, df and cf."""
        for name in ("dead", "terms", "df", "cf"):
            write_array(folder, name, getattr(self, name))

    @cached_property
    def documents(self) -> int:
        """How many documents are deleted."""
        return int(np.count_nonzero(self.dead))

    def taken_off(self, counts: NDArray[np.integer[Any]], of: str) -> NDArray[np.int64]:
        """The counts of the segment's terms, `of` "df" or "cf", for the documents that are left."""
        left = counts.astype(np.int64)
        left[self.terms] -= getattr(self, of)
        return left
