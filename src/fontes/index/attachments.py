"""What encoders have made of the documents of segments, and what becomes of it when these are merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .leaf import Leaf


def attached(leaves: Sequence[Leaf]) -> str | None:
    """What stands in the way of a merge of these segments: vectors that only some of them have; None where nothing does."""
    return None


def merge_attachments(leaves: Sequence[Leaf], folder: Path) -> None:
    """Carries what is attached to segments over to the segment that they have been merged to."""
