"""A segment of an index, opened: ids, inverted index, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.strings import Strings
from ..core.values import Doc
from ..storage.arrays import Arrays
from .documents import DocumentStore
from .inverted import PostingLists


class Segment(PostingLists):
    """The arrays of one segment, by memory map.

    Args:
        folder: Where it is.
        counts: How many "documents", "terms", "postings" and "tokens" it must have.
        texts: Whether it has the documents' texts; one of CIFF has not, and its documents have the lengths that CIFF gave them.

    Attributes:
        folder: Where it is.
        ids: The document ids, in the order of the documents.
        store: The documents' texts; None where it has none.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, counts: Mapping[str, Any] | None = None, texts: bool = True) -> None:
        self.folder, counts = folder, counts or {}
        self.ids: Strings = Arrays(folder).strings("doc_ids", counts.get("documents"), ordered=False)
        super().__init__(folder, len(self.ids), counts=counts, summed=texts)
        self.store = DocumentStore(folder, len(self.ids)) if texts else None

    def check(self) -> None:
        """Raises IndexFormatError unless all parts fit together."""
        ids = [self.ids[int(i)] for i in self.ids.order]
        self._sound(all(a < b for a, b in pairwise(ids)), "its document ids are not in order")
        super().check()
        if self.store is not None:
            self.store.check()

    def read(self, ids: Sequence[str], places: Sequence[int]) -> list[Doc]:
        """The documents at these places, which have these ids.

        Raises:
            InputError: The segment has no texts.
            IndexFormatError: They are damaged.
        """
        if self.store is None:
            raise InputError(
                f"{self.folder.parent} holds no text: it was made of a CIFF file, which has terms, postings and lengths alone; "
                "make an index of the documents for what reads them"
            )
        return self.store.read(ids, places)
