"""How far a long piece of work is: the one channel by which builds, encoding, reranking, training and recipes tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a piece of work is.

    Args:
        task: What is being done: "indexing", "encoding".
        done: How many units are done.
        total: How many there are, where that is known.
        seconds: How long the work has taken so far.
        unit: What is counted, in the plural.
        part: The part of the work that is done, from 0 to 1, where it is known from something other than the count, such as the
            bytes that were read.
        before: How many of the units an earlier run has done, which was interrupted.
        note: What else there is to say, such as the loss of a training.
    """

    task: str
    done: int
    total: int | None
    seconds: float
    unit: str = "documents"
    part: float | None = None
    before: int = 0
    note: str = ""

    @property
    def fraction(self) -> float | None:
        """The part of the work that is done, from 0 to 1; None where nobody knows how much there is."""
        if self.part is not None:
            return self.part
        return self.done / self.total if self.total else None

    @property
    def rate(self) -> float:
        """Units a second."""
        return (self.done - self.before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the same rate; None where that cannot be told."""
        fraction = self.fraction
        if not fraction or self.done <= self.before:
            return None
        return self.seconds * (1 / fraction - 1) * self.done / (self.done - self.before)


Report: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """The report of work that nobody watches."""
