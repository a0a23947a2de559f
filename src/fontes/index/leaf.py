"""A segment as a reader sees it: without the documents that were deleted, at its place among the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .segment import Segment


@dataclass(frozen=True, eq=False)
class Leaf:
    """A segment of a reader.

    Args:
        segment: The segment.
        first: The reader's ordinal of its first document that is not deleted.
        dead: For each document of the segment whether it is deleted; None where none is.
    """

    segment: Segment
    first: int
    dead: NDArray[np.bool_] | None = None

    @cached_property
    def documents(self) -> int:
        """How many documents live."""
        size = len(self.segment.ids)
        return size if self.dead is None else size - int(np.count_nonzero(self.dead))

    @cached_property
    def live(self) -> NDArray[np.int64]:
        """The places in the segment of the documents that live, ascending."""
        return np.arange(self.documents) if self.dead is None else np.flatnonzero(~self.dead)

    @cached_property
    def ordinals(self) -> NDArray[np.int32]:
        """For each document of the segment its ordinal in the reader; -1 for a deleted one."""
        ordinals = np.full(len(self.segment.ids), -1, dtype=np.int32)
        ordinals[self.live] = np.arange(self.first, self.first + self.documents, dtype=np.int32)
        return ordinals
