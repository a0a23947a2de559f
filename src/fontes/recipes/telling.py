"""What a recipe says while it runs: a line for each step, and how far a long one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.progress import Progress
    from ..experiments.indexes import Tell

EVERY = 10.0  # seconds between two lines about one step


@dataclass(frozen=True)
class Teller:
    """Calls `tell` with a line for each step, and `moving` with how far a long step is, again and again.

    Without `moving`, `tell` is called with that too, every ten seconds. None says nothing.
    """

    tell: Tell | None = None
    moving: Tell | None = None

    def __call__(self, line: str) -> None:
        if self.tell is not None:
            self.tell(line)

    def progress(self, doing: str, noun: str = "documents") -> Callable[[Progress], None]:
        """What to give to a step that takes long, such as `Index.build`, as its `progress`."""
        last = 0.0

        def told(progress: Progress) -> None:
            nonlocal last
            line = f"{doing}: {progress.done:,} {noun}, {progress.rate:,.0f} a second{_left(progress.seconds_left)}"
            if self.moving is not None:
                self.moving(line)
            elif not 0 <= progress.seconds - last < EVERY:  # below 0 where another step of this kind has begun
                last = progress.seconds
                self(line)

        return told


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", {seconds:.0f} s left" if seconds < 100 else f", {seconds / 60:.0f} min left"
