"""Components: the kinds of data that segments are made of, each one class with the verbs of an index's life.

A component is registered when its module is imported, by the name with which those of its files and folders begin:
`class Positions(Component[PositionLists], name="positions")`. Another package makes that module an entry point of the group
`fontes.components`; it is imported when a segment has such files.
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

from ..core.progress import Report, silent
from ..core.registry import Registry

if TYPE_CHECKING:
    from .leaf import Leaf
    from .segment import Segment
    from .state import State

T = TypeVar("T")
DECLARATION = re.compile(r'^class \w+\([^)]*\bname="(\w+)"', re.MULTILINE)
FOLDER = re.compile(r"([a-z]\w*)-[0-9a-f]{16}(-\w+)*")  # of a component whose data are made later than a segment
DELETIONS = "deleted"  # begins the names of folders that belong to no component


@dataclass(frozen=True)
class Resources:
    """Limits of a merge.

    Args:
        memory: Bytes that postings may take.
        threads: Threads that work side by side.
        progress: Is called as documents are done.
    """

    memory: int
    threads: int
    progress: Report = silent


class Component(ABC, Generic[T]):
    """One kind of data of a segment's documents.

    Attributes:
        name: Its name in the registry and at the beginning of its files' names.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if name:
            cls.name = name
            components.add(name, cls())

    @abstractmethod
    def open(self, segment: Segment) -> T:
        """Data of all documents of a segment, deleted ones too.

        Raises:
            IndexFormatError: A file is missing or damaged.
        """

    @abstractmethod
    def merge(self, leaves: Sequence[Leaf], folder: Path, resources: Resources) -> dict[str, int]:
        """Writes the data of the living documents of several segments to the folder of a new one.

        Returns:
            Counts for the manifest.

        Raises:
            IndexFormatError: A segment is damaged.
        """

    @abstractmethod
    def check(self, leaf: Leaf, deep: bool) -> None:
        """Raises IndexFormatError unless the data are as they were written; `deep` compares them with one another as well."""

    def facts(self, state: State) -> dict[str, Any]:
        """Entries of `Index.info` about a state."""
        return {}

    def conflict(self, leaves: Sequence[Leaf]) -> str | None:
        """Reason why the data of these segments cannot be merged; None where they can."""
        return None


components: Registry[Component[Any]] = Registry("fontes.components", "component", DECLARATION)


def folder_names(segments: Iterable[Path]) -> list[str]:
    """Names of the components that have folders of their own in some segments."""
    names: set[str] = set()
    for segment in segments:
        with suppress(OSError):
            names |= {match[1] for entry in os.scandir(segment) if (match := FOLDER.fullmatch(entry.name))}
    return sorted(names - {DELETIONS})
