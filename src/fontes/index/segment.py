"""A segment of an index, opened: ids, inverted index, texts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.strings import Strings
from ..storage.arrays import Arrays
from .documents import DocumentStore
from .inverted import PostingLists


class Segment(PostingLists):
    """The arrays of one segment, by memory map.

    Args:
        folder: Where it is.
        counts: How many "documents", "terms", "postings" and "tokens" it must have.

    Attributes:
        folder: Where it is.
        ids: The document ids, in the order of the documents.
        store: The documents' texts.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, counts: Mapping[str, Any] | None = None) -> None:
        self.folder, counts = folder, counts or {}
        self.ids: Strings = Arrays(folder).strings("doc_ids", counts.get("documents"), ordered=False)
        super().__init__(folder, len(self.ids), counts=counts)
        self.store = DocumentStore(folder, len(self.ids))

    def check(self) -> None:
        """Raises IndexFormatError unless all parts fit together."""
        ids = [self.ids[int(i)] for i in self.ids.order]
        self._sound(all(a < b for a, b in pairwise(ids)), "its document ids are not in order")
        super().check()
        self.store.check()
