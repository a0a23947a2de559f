"""Which documents of a segment are deleted, and what that takes off the counts of its terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..storage.arrays import REMEDY, read_array, smallest, write_array

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
    def read(cls, folder: Path, lists: PostingLists) -> Deletions:
        """Those that `write` wrote.

        Raises:
            IndexFormatError: A file is missing, damaged, or of another segment.
        """
        dead, terms, df, cf = (read_array(folder, name) for name in ("dead", "terms", "df", "cf"))
        sound = dead.dtype == np.bool_ and dead.shape == lists.lengths.shape
        sound = sound and all(array.dtype.kind == "u" and array.shape == terms.shape for array in (terms, df, cf))
        sound = (
            sound and terms.ndim == 1 and bool(np.all(np.diff(terms.astype(np.int64), prepend=-1, append=len(lists.df)) > 0))
        )
        sound = sound and int(dead.view(np.uint8).max(initial=0)) <= 1
        if not sound or np.any(df > lists.df[terms]) or np.any(cf > lists.cf[terms]):
            raise IndexFormatError(f"{folder} is damaged: its files do not fit the segment; {REMEDY}")
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
