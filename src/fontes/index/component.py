"""Components: the kinds of data in segments, each a class that opens, joins, writes, merges and checks it.

A component has the name that its files and folders start with: `class Positions(Component[PositionLists], name="positions")`.
Another package declares its class by an entry point of the group `fontes.components`, which is imported when a segment has
such files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ..core.errors import ParameterError
from ..core.registry import Registry
from ..core.strings import Strings

if TYPE_CHECKING:
    from ..storage.threads import Workers
    from .batches import Batch
    from .segment import Leaf, Segment
    from .settings import IndexSettings

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
DROP_REMEDY = "drop_vectors=True (--drop-vectors) drops the vectors that not all documents have"


class Attachments(Protocol):
    """Data attached to documents after a build, such as vectors; see `embeddings.store.VectorStore`."""

    def sound(self, component: Any) -> dict[str, tuple[list[Leaf], list[Any]]]: ...


class Described(Protocol):
    """Facts of a state of an index, as components need them; see `state.State`."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...
    @property
    def terms(self) -> Strings: ...
    @property
    def tokens(self) -> int: ...
    @property
    def columns(self) -> Mapping[str, str]: ...
    @property
    def vectors(self) -> Attachments: ...
    def count(self, name: str) -> int: ...
    def __len__(self) -> int: ...


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

    def __init_subclass__(cls, *, name: str = "", **keywords: object) -> None:
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

    def writer(self, building: Building) -> Writer:
        """Return a writer of a new segment's files; raise ParameterError if it is not built with the documents."""
        raise ParameterError(f"the component '{self.name}' is not built with the documents")

    @abstractmethod
    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        """Write the data of the living documents of several segments to the folder of a new one.

        Returns counts for the manifest. Raises IndexFormatError if a segment is damaged.
        """

    @abstractmethod
    def check(self, leaf: Leaf, deep: bool) -> None:
        """Raise IndexFormatError for damaged data; `deep` also compares them with one another."""

    def facts(self, state: Described) -> dict[str, object]:
        """Entries of `Index.info` about a state."""
        return {}

    def conflict(self, leaves: Sequence[Leaf]) -> str | None:
        """Return why a merge of these segments would lose data; None if it would not."""
        if all(self.name in leaf.segment.opened for leaf in leaves):
            return None
        return f"some of its documents have no data of its component '{self.name}'; {DROP_REMEDY}"


components: Registry[Any] = Registry("fontes.components", "component", COMPONENTS)
