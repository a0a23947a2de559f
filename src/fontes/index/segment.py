"""A segment of an index, opened: ids, inverted index, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def check(self, dead: NDArray[np.bool_] | None = None) -> None:
        """Raises IndexFormatError unless all parts fit together.

        Args:
            dead: For each document whether it is deleted, which frees its id for a later one of the segment; None: none is.
        """
        order = self.ids.order.tolist()
        ids = list(zip(self.ids.take(self.ids.order), order, strict=True))
        self._sound(all(a < b for a, b in pairwise(ids)), "its document ids are not in order")
        live = [doc_id for doc_id, place in ids if dead is None or not dead[place]]
        self._sound(all(a != b for a, b in pairwise(live)), "a document id occurs twice")
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

    def docs(self, first: int, last: int) -> list[Doc]:
        """The documents from one place up to another, deleted ones too."""
        places = range(first, last)
        return self.read([self.ids[place] for place in places], places)
