"""A leaf: a segment as one state of an index sees it, with its place among the others and without its deleted documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError
from ..storage.arrays import REMEDY
from .component import components
from .deletions import Deletions
from .segment import Segment


@dataclass(frozen=True, eq=False)
class Leaf:
    """A segment in a reader.

    Args:
        segment: The segment.
        first: The reader's ordinal of the segment's first living document.
        deletions: Which of its documents are deleted; None where none is.
    """

    segment: Segment
    first: int = 0
    deletions: Deletions | None = None

    @property
    def dead(self) -> NDArray[np.bool_] | None:
        """For each document of the segment whether it is deleted; None where none is."""
        return None if self.deletions is None else self.deletions.dead

    @property
    def documents(self) -> int:
        """How many of its documents live."""
        return self.segment.documents - (0 if self.deletions is None else self.deletions.documents)

    @cached_property
    def state(self) -> str | None:
        """A digest of which documents are deleted; None where none is."""
        return None if self.dead is None else hashlib.sha256(self.dead.tobytes()).hexdigest()

    @cached_property
    def live(self) -> NDArray[np.int64]:
        """The places in the segment of the documents that live, ascending."""
        return np.arange(self.segment.documents) if self.dead is None else np.flatnonzero(~self.dead)

    @cached_property
    def ordinals(self) -> NDArray[np.int32]:
        """For each document of the segment its ordinal in the reader, -1 for a deleted one."""
        ordinals = np.full(self.segment.documents, -1, dtype=np.int32)
        ordinals[self.live] = np.arange(self.first, self.first + self.documents, dtype=np.int32)
        return ordinals

    def check(self) -> None:
        """Raises IndexFormatError unless all components of the segment, and its deletions, fit together."""
        self.segment.check_ids(self.dead)
        for name in self.segment.opened:
            components[name].check(self, deep=True)
        if self.deletions is not None:
            counted = Deletions.of(self.segment.lists, self.deletions.dead)
            for name in ("terms", "df", "cf"):
                if not np.array_equal(getattr(counted, name), getattr(self.deletions, name)):
                    raise IndexFormatError(f"{self.segment.folder} is damaged: its deletions do not fit its postings; {REMEDY}")


def leaves_of(segments: Iterable[tuple[Segment, Deletions | None]]) -> tuple[Leaf, ...]:
    """Leaves one after the other, those without a living document left out."""
    leaves: list[Leaf] = []
    for segment, deletions in segments:
        leaf = Leaf(segment, leaves[-1].first + leaves[-1].documents if leaves else 0, deletions)
        if leaf.documents:
            leaves.append(leaf)
    return tuple(leaves)


def located(
    leaves: Sequence[Leaf], docs: NDArray[np.integer[Any]]
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.int64]]]:
    """For each leaf that has some of these documents: its number, where they stand among `docs`, their places in the segment.

    Args:
        leaves: The leaves of a reader.
        docs: Ordinals.
    """
    for number, leaf in enumerate(leaves):
        local = docs.astype(np.int64) - leaf.first
        here = np.flatnonzero((local >= 0) & (local < leaf.documents))
        if len(here):
            yield number, here, local[here] if leaf.dead is None else leaf.live[local[here]]
