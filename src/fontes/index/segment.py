"""A segment of an index, opened: ids, inverted index, texts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ..core.strings import Strings
from ..storage.arrays import read_array
from .documents import DocumentStore
from .inverted import PostingLists


class Segment(PostingLists):
    """The arrays of one segment, by memory map.

    Attributes:
        folder: Where it is.
        ids: The document ids, in the order of the documents.
        store: The documents' texts.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = Strings(
            read_array(folder, "doc_ids.bytes"), read_array(folder, "doc_ids.bounds"), read_array(folder, "doc_ids.order")
        )
        super().__init__(folder, len(self.ids))
        self.store = DocumentStore(folder)

    def check(self) -> None:
        """Raises IndexFormatError unless all parts fit together."""
        ids = [self.ids[int(i)] for i in self.ids.order]
        self._sound(all(a < b for a, b in pairwise(ids)), "its document ids are not in order")
        super().check()
        self.store.check()
