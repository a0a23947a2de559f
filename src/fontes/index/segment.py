"""A segment of an index: document ids, and the components that it has, opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError, InputError
from ..core.strings import Strings
from ..core.values import Doc
from ..storage.arrays import REMEDY, Arrays
from .component import components, file_names

if TYPE_CHECKING:
    from .columns import SegmentColumns
    from .documents import DocumentStore
    from .inverted import PostingLists

KERNEL = ("postings", "text", "columns")  # components that every index of documents has


class Segment:
    """The arrays of one segment, by memory map.

    Args:
        folder: Where it is.
        entry: Its entry in the manifest: counts that it must have, and its files; None: what is in the folder.
        texts: Whether it has the documents' texts; one of CIFF has not, and its documents have the lengths that CIFF gave them.

    Attributes:
        ids: The document ids, in the order of the documents.
        opened: The data of each component that is built with the documents, by its name.
        unknown: Names of components whose package is not installed.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(self, folder: Path, entry: Mapping[str, Any] | None = None, texts: bool = True) -> None:
        self.folder, self.entry, self.has_texts = folder, entry or {}, texts
        self.ids: Strings = Arrays(folder).strings("doc_ids", self.entry.get("documents"), ordered=False)
        self.documents = len(self.ids)
        others = [
            name
            for name in file_names(self.entry.get("files") or [file.name for file in folder.iterdir()])
            if name not in KERNEL
        ]
        self.unknown = [name for name in others if name not in components]
        self.opened: dict[str, Any] = {}
        for name in [*KERNEL, *others]:
            if name not in self.unknown and (texts or name != "text"):
                self.opened[name] = components[name].open(self)

    @property
    def lists(self) -> PostingLists:
        """The inverted index of the documents."""
        lists: PostingLists = self.opened["postings"]
        return lists

    @property
    def texts(self) -> DocumentStore:
        """The documents' texts.

        Raises:
            InputError: The segment has none.
        """
        if "text" not in self.opened:
            raise InputError(
                f"{self.folder.parent} holds no text: it was made of a CIFF file, which has terms, postings and lengths alone; "
                "make an index of the documents for what reads them"
            )
        texts: DocumentStore = self.opened["text"]
        return texts

    @property
    def columns(self) -> SegmentColumns:
        """The columns of the documents' metadata."""
        columns: SegmentColumns = self.opened["columns"]
        return columns

    def check_ids(self, dead: NDArray[np.bool_] | None) -> None:
        """Raises IndexFormatError unless the ids are in order and each living document has its own.

        Args:
            dead: For each document whether it is deleted, which frees its id for a later one of the segment; None: none is.
        """
        order = self.ids.order.tolist()
        ids = list(zip(self.ids.take(self.ids.order), order, strict=True))
        live = [doc_id for doc_id, place in ids if dead is None or not dead[place]]
        if not all(a < b for a, b in pairwise(ids)):
            raise IndexFormatError(f"{self.folder} is damaged: its document ids are not in order; {REMEDY}")
        if not all(a != b for a, b in pairwise(live)):
            raise IndexFormatError(f"{self.folder} is damaged: a document id occurs twice; {REMEDY}")

    def read(self, ids: Sequence[str], places: Sequence[int]) -> list[Doc]:
        """The documents at these places, which have these ids.

        Raises:
            InputError: The segment has no texts.
            IndexFormatError: They are damaged.
        """
        return self.texts.read(ids, places)

    def docs(self, first: int, last: int) -> list[Doc]:
        """The documents from one place up to another, deleted ones too."""
        places = range(first, last)
        return self.read([self.ids[place] for place in places], places)
