"""Components: the kinds of data in segments, each a class that opens, joins, writes, merges and checks it.

A component has the name that its files and folders start with: `class Positions(Component[PositionLists], name="positions")`.
Another package declares its class by an entry point of the group `fontes.components`, which is imported when a segment has
such files.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..core.errors import ParameterError
from ..core.progress import ProgressCallback
from ..core.registry import Registry

if TYPE_CHECKING:
    from ..core.threads import Workers
    from .batches import Batch
    from .build import IndexSettings
    from .segment import Leaf, Segment
    from .state import State

T = TypeVar("T")
COMPONENTS = {
    "columns": "fontes.index.columns.writer:ColumnsComponent",
    "fields": "fontes.index.field_statistics:Fields",
    "late": "fontes.neural.late.store:TokenVectorsComponent",
    "positions": "fontes.index.positions:TermPositions",
    "postings": "fontes.index.postings:Postings",
    "sparse": "fontes.index.embeddings.weights:TermWeightsComponent",
    "text": "fontes.index.texts:Texts",
    "vectors": "fontes.index.embeddings.encoding:Vectors",
}
FOLDER = re.compile(r"([a-z]\w*)-[0-9a-f]{16}(-\w+)*")  # of a component encoded after the build
FILE = re.compile(r"([a-z]\w*)\..*npy")  # of a component built with the documents
POSTINGS_FILES = {"doc_ids", "doc_lengths", "terms", "df", "cf"}  # prefixes of files without the name of a component
DROP_REMEDY = "drop_vectors=True (--drop-vectors) drops the vectors that not all documents have"
DELETIONS = "deleted"  # prefix of folders that belong to no component


@dataclass(frozen=True)
class Building:
    """The build of a segment, for writers.

    Args:
        folder: Folder of the files; temporary files are beside it.
        settings: Settings of the index.
        workers: Threads that writers share.
    """

    folder: Path
    settings: IndexSettings
    workers: Workers


class Writer(ABC):
    """Writes a component of a segment from batches of documents."""

    @abstractmethod
    def write(self, batch: Batch, first: int) -> None:
        """Append documents, the first of which has the ordinal `first`."""

    def finish(self) -> None:  # noqa: B027  # most have nothing to do
        """Start the remaining work in `workers`; called after the last batch, before any writer's `close`."""

    @abstractmethod
    def close(self) -> dict[str, int]:
        """Complete the files. Return counts for the manifest."""

    def abandon(self) -> None:  # noqa: B027
        """Close unfinished files; do nothing after `close`."""


class Component(ABC, Generic[T]):
    """One kind of data of a segment's documents.

    Attributes:
        name: Name in the registry, and prefix of the names of its files.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if name:
            cls.name = name
            components.add(name, cls())

    @abstractmethod
    def open(self, segment: Segment) -> T:
        """Open the data of all documents of a segment, deleted ones too; raise IndexFormatError if a file is damaged."""

    def of(self, segment: Segment) -> T:
        """Return the opened data of a segment that has the component."""
        opened: T = segment.opened[self.name]
        return opened

    def join(self, leaves: Sequence[Leaf], parts: Sequence[Any], facts: dict[str, Any]) -> Any:
        """Join the data of the living documents of several segments; by default return `parts`, the data of each.

        `facts` describe the data if there are no segments.
        """
        return parts

    def writer(self, building: Building) -> Writer:
        """Return a writer of a new segment's files; raise ParameterError if it is not built with the documents."""
        raise ParameterError(f"the component '{self.name}' is not built with the documents")

    @abstractmethod
    def merge(self, leaves: Sequence[Leaf], folder: Path, progress: ProgressCallback) -> dict[str, int]:
        """Write the data of the living documents of several segments to the folder of a new one.

        Returns counts for the manifest. Raises IndexFormatError if a segment is damaged.
        """

    @abstractmethod
    def check(self, leaf: Leaf, deep: bool) -> None:
        """Raise IndexFormatError for damaged data; `deep` also compares them with one another."""

    def facts(self, state: State) -> dict[str, Any]:
        """Entries of `Index.info` about a state."""
        return {}

    def conflict(self, leaves: Sequence[Leaf]) -> str | None:
        """Return why a merge of these segments would lose data; None if it would not."""
        if all(self.name in leaf.segment.opened for leaf in leaves):
            return None
        return f"some of its documents have no data of its component '{self.name}'; {DROP_REMEDY}"


components: Registry[Component[Any]] = Registry("fontes.components", "component", COMPONENTS)


def folder_names(segments: Iterable[Path]) -> list[str]:
    """Names of the components that have their own folders in any of the segments."""
    names: set[str] = set()
    for segment in segments:
        with suppress(OSError):
            names |= {match[1] for entry in os.scandir(segment) if (match := FOLDER.fullmatch(entry.name))}
    return sorted(names - {DELETIONS})


def file_names(files: Iterable[str]) -> list[str]:
    """Names of the components, besides postings, that have files directly in a segment's folder."""
    names = {match[1] for file in files if (match := FILE.fullmatch(file))}
    return sorted(name for name in names if name not in POSTINGS_FILES)
